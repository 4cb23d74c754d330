//! A fixed number of named native threads that run tasks for everybody who shares them.

mod blocks;
mod chores;
#[cfg(feature = "faults")]
mod fault;
mod fork;
mod lane;
mod spare;
mod task;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

pub use blocks::{map_blocks, run_all};
pub use chores::Chore;
pub use fork::ForkStamp;
pub use lane::Lane;
pub use spare::Spare;
pub use task::Task;

use crate::error::{Error, Result};
use chores::Chores;
use spare::SpareWork;

/// Most threads a pool may have.
pub const MAX_THREADS: usize = 1024;

/// How many it may have, as users read it.
pub const THREADS: &str = "1 ... 1024";

/// How long a thread waits for a task before it sees to the chores of the pool, and waits again.
const CHORE_INTERVAL: Duration = Duration::from_secs(20);

/// Exactly as many threads as asked for, named `drt-worker-0`, `drt-worker-1`, ….
///
/// They start with the pool, run tasks in the order they were submitted, and end with the pool: dropping it runs
/// what is still queued and joins them. A panic ends one task, never a thread.
///
/// Tasks should not own the pool they run on. If one drops the last handle all the same, the threads end by
/// themselves without being joined, because a thread cannot wait for itself.
#[derive(Debug)]
pub struct WorkerPool {
    id: u64,
    stamp: ForkStamp,
    /// `None` only while the pool is being dropped.
    queue: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    chores: Arc<Chores>,
    chore_interval: Duration,
    #[cfg(feature = "faults")]
    countdown: fault::Countdown,
    spare: Arc<SpareWork>,
}

/// What travels to a thread.
enum Job {
    Call(Box<dyn FnOnce() + Send>),
    Task(Arc<dyn task::Runnable>),
    Step(lane::Step),
}

thread_local! {
    /// Identity of the pool this thread belongs to; 0 for all other threads.
    static POOL_OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

static NEXT_POOL: AtomicU64 = AtomicU64::new(1);

impl WorkerPool {
    /// Starts `threads` threads.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless `threads` is 1 ... 1024, [`Error::Unusable`] when the system refuses a thread;
    /// then those that had started are gone again.
    pub fn new(threads: usize) -> Result<Arc<Self>> {
        Self::with_chore_interval(threads, CHORE_INTERVAL)
    }

    /// The same with threads that see to chores after another time without a task.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_chore_interval(threads: usize, interval: Duration) -> Result<Arc<Self>> {
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(Error::out_of_range("num_workers", THREADS, threads));
        }
        let (sender, receiver) = crossbeam_channel::unbounded();
        let id = NEXT_POOL.fetch_add(1, Ordering::Relaxed);
        let chores = Arc::new(Chores::default());
        let spare = Arc::new(SpareWork::default());
        let mut pool = Self {
            id,
            stamp: ForkStamp::here()?,
            queue: Some(sender),
            threads: Vec::with_capacity(threads),
            chores: Arc::clone(&chores),
            chore_interval: interval,
            #[cfg(feature = "faults")]
            countdown: fault::Countdown::default(),
            spare: Arc::clone(&spare),
        };
        for number in 0..threads {
            let (receiver, chores, spare) = (receiver.clone(), Arc::clone(&chores), Arc::clone(&spare));
            let thread = thread::Builder::new().name(format!("drt-worker-{number}"));
            let spawned = thread.spawn(move || work(id, receiver, &chores, interval, &spare));
            match spawned {
                Ok(handle) => pool.threads.push(handle),
                // Dropping the pool joins the threads that did start.
                Err(reason) => {
                    return Err(Error::Unusable(format!(
                        "cannot start worker thread {} of {threads}: {reason}; lower num_workers or raise the limit on threads",
                        number + 1
                    )));
                }
            }
        }
        Ok(Arc::new(pool))
    }

    /// How many threads the pool has.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Whether the calling thread belongs to this pool. It must then not wait for a queued task: it may be the only
    /// thread that could run it.
    #[must_use]
    pub fn is_own_thread(&self) -> bool {
        POOL_OF_THREAD.get() == self.id
    }

    /// An error in a forked child, where the pool has no threads.
    ///
    /// # Errors
    /// [`Error::Unusable`], see [`ForkStamp::check`].
    pub fn check(&self) -> Result<()> {
        self.stamp.check()
    }

    /// How long a thread is idle before it sees to the chores.
    #[must_use]
    pub fn chore_interval(&self) -> Duration {
        self.chore_interval
    }

    /// Has `chore` called by each thread that has been idle for a while, again and again, until its last owner lets go of it.
    pub fn add_chore(&self, chore: &Arc<Chore>) {
        self.chores.add(chore);
    }

    /// Has `work` done by threads that have no task, until it says that all is done or its last owner lets go of it.
    ///
    /// # Errors
    /// [`Error::Unusable`] in a forked child.
    pub fn add_spare_work(&self, work: &Arc<Spare>) -> Result<()> {
        self.check()?;
        self.spare.add(work);
        // Wakes those that wait for a task.
        (0..self.threads()).try_for_each(|_| self.submit(|| ()))
    }

    /// Queues `call`. Whoever wants a result, or to help or cancel, uses a [`Task`].
    ///
    /// # Errors
    /// [`Error::Unusable`] in a forked child.
    pub fn submit(&self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        self.enqueue(Job::Call(Box::new(call)))
    }

    fn enqueue(&self, job: Job) -> Result<()> {
        self.jobs()?.send(job).map_err(|_| closed())
    }

    /// Where jobs go.
    fn jobs(&self) -> Result<&Sender<Job>> {
        self.check()?;
        self.queue.as_ref().ok_or_else(closed)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        if self.stamp.is_inherited() {
            // Neither the threads nor whoever holds the queue's locks exist here: leave everything as it is.
            std::mem::forget(self.queue.take());
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        // Without a sender the threads end once the queue is empty.
        drop(self.queue.take());
        let by_own_thread = self.is_own_thread();
        for thread in self.threads.drain(..) {
            if by_own_thread {
                // Not even the others may be joined: one of them may be waiting for the task that runs this.
                drop(thread);
            } else {
                // A thread never panics: every job is caught.
                let _ = thread.join();
            }
        }
    }
}

fn closed() -> Error {
    Error::Unusable("the worker pool is closed; create a new DatasetRuntime".to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "the thread's end of the queue goes with the thread")]
fn work(pool: u64, jobs: Receiver<Job>, chores: &Chores, interval: Duration, spare: &SpareWork) {
    POOL_OF_THREAD.set(pool);
    loop {
        let wait = if spare.is_there() { Duration::ZERO } else { interval };
        let job = match jobs.recv_timeout(wait) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A task catches its own panic; what is caught here is a plain call's, or a destructor's.
        let outcome = catch_unwind(AssertUnwindSafe(|| match job {
            Some(Job::Call(call)) => call(),
            Some(Job::Task(task)) => task.run_if_queued(),
            Some(Job::Step(step)) => step.run(),
            None if wait.is_zero() => spare.do_some(),
            None => chores.run(),
        }));
        if let Err(payload) = outcome {
            task::drop_payload(payload);
        }
    }
}
