//! Work that splits into numbered blocks, done by all threads of a pool while the caller waits.
#![expect(unsafe_code, reason = "blocks may borrow from the caller, whom the queue cannot name")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Task, WorkerPool, task};
use crate::cancel::{CancelToken, Waiter};
use crate::error::{Error, Result};

/// One block of work: its number and a flag that it should look at every few milliseconds.
type BlockWork<'a, T> = &'a (dyn Fn(usize, &CancelToken) -> Result<T> + Sync);

/// Runs `work` for the block numbers `0..blocks` on the threads of `pool` and returns the results in order.
///
/// The outcome does not depend on the number of threads: after a failure no later block starts, earlier ones
/// finish, and the error of the earliest failing block is returned. When the waiter wants to stop, the token given
/// to the blocks is cancelled. Borrowed data is fine: no block is running any more when this returns.
///
/// # Errors
/// The first error by block number; [`Error::Interrupted`] from the waiter; [`Error::Unusable`] in a forked child.
pub fn map_blocks<T: Send>(
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
    blocks: usize,
    work: BlockWork<'_, T>,
) -> Result<Vec<T>> {
    pool.check()?;
    let round = Round {
        work,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        cancel: CancelToken::new(),
        results: (0..blocks).map(|_| Mutex::new(None)).collect(),
    };
    round.run(pool, waiter)?;
    let missing = || Err(Error::Interrupted);
    round.results.into_iter().map(|slot| into_inner(slot).unwrap_or_else(missing)).collect()
}

/// [`map_blocks`] for work that has no results.
///
/// # Errors
/// As [`map_blocks`].
pub fn run_all(pool: &WorkerPool, waiter: &mut dyn Waiter, blocks: usize, work: BlockWork<'_, ()>) -> Result<()> {
    map_blocks(pool, waiter, blocks, work).map(drop)
}

struct Round<'a, T> {
    work: BlockWork<'a, T>,
    next: AtomicUsize,
    failed: AtomicBool,
    cancel: CancelToken,
    results: Vec<Mutex<Option<Result<T>>>>,
}

impl<T: Send> Round<'_, T> {
    fn run(&self, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<()> {
        let mut running = Running { tasks: Vec::new(), cancel: &self.cancel };
        for _ in 0..pool.threads().min(self.results.len()) {
            running.tasks.push(spawn_borrowing(pool, Box::new(|| self.drain()))?);
        }
        if pool.is_own_thread() {
            // All other threads may be waiting in the same way, and this one cannot run what is queued behind it.
            self.drain();
            running.cancel_queued();
        }
        waiter.wait(&mut |timeout| running.wait(timeout))
        // Here `running` goes, and waits.
    }

    /// Does blocks until none is left.
    fn drain(&self) {
        while !self.failed.load(Ordering::Acquire) && !self.cancel.is_cancelled() {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            // Numbers are claimed in order, so every block before a failed one has been claimed, and finishes.
            let Some(slot) = self.results.get(block) else { return };
            let result = task::run_caught(|| (self.work)(block, &self.cancel));
            if result.is_err() {
                self.failed.store(true, Ordering::Release);
            }
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    }
}

fn into_inner<T>(slot: Mutex<T>) -> T {
    slot.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The tasks of one round. When it goes, in whatever way, none of them runs or will run.
struct Running<'a> {
    tasks: Vec<Task<()>>,
    cancel: &'a CancelToken,
}

impl Running<'_> {
    fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        self.tasks.iter().all(|task| task.wait(deadline.saturating_duration_since(Instant::now())))
    }
}

impl Running<'_> {
    /// Once all blocks are claimed, nobody misses a task that has not started.
    fn cancel_queued(&self) {
        for task in &self.tasks {
            task.cancel();
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.cancel.cancel();
        for task in &self.tasks {
            // The closure of a cancelled task is dropped by `cancel`, that of a finished one before it counts as
            // finished.
            while !task.cancel() && !task.wait(Duration::MAX) {}
        }
    }
}

/// Queues work that borrows. Only [`Running`] may hold the task.
fn spawn_borrowing<'a>(pool: &WorkerPool, work: Box<dyn FnOnce() + Send + 'a>) -> Result<Task<()>> {
    // SAFETY: only the lifetime changes. The task goes into a `Running` at once, and that does not go, even by a
    // panic, before the closure is gone; nobody forgets it. `'a` outlives it, because the closure borrows from the
    // caller of `Round::run`, in whose frame the `Running` lives. In a forked child, which has none of the threads,
    // nobody runs the closure.
    let work: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(work) };
    Task::spawn(pool, move || {
        work();
        Ok(())
    })
}
