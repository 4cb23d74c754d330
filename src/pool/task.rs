//! One piece of work with a result, which may be run by a pool thread or by whoever waits for it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{ForkStamp, Job, WorkerPool};
use crate::error::{Error, Result};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;
const CANCELLED: u8 = 3;

/// A handle on queued work. Dropping it cancels the work if it has not started.
///
/// The work runs at most once, by whoever first moves the state from queued to running. If the handle is dropped
/// while the work runs, its result is dropped by the thread that runs it; who minds calls [`cancel`](Self::cancel)
/// and, when that came too late, [`wait`](Self::wait) first.
pub struct Task<T: Send + 'static> {
    stamp: ForkStamp,
    shared: Arc<Shared<T>>,
}

type Work<T> = Box<dyn FnOnce() -> Result<T> + Send>;

struct Shared<T> {
    state: AtomicU8,
    /// Emptied by whoever moves the state away from queued. Never contended.
    work: Mutex<Option<Work<T>>>,
    outcome: Mutex<Outcome<T>>,
    finished: Condvar,
}

struct Outcome<T> {
    result: Option<Result<T>>,
    /// Whether anybody sleeps on `finished`: waking nobody would still be a system call.
    awaited: bool,
}

/// What a pool thread sees of a task.
pub(super) trait Runnable: Send + Sync {
    fn run_if_queued(&self);
}

impl<T: Send + 'static> Task<T> {
    /// Queues `work` on `pool`.
    ///
    /// # Errors
    /// [`Error::Unusable`] in a forked child.
    pub fn spawn(pool: &WorkerPool, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let (task, runnable) = Self::new(pool, Box::new(work));
        pool.enqueue(Job::Task(runnable))?;
        Ok(task)
    }

    /// A task, and what a thread of `pool` runs.
    pub(super) fn new(pool: &WorkerPool, work: Work<T>) -> (Self, Arc<dyn Runnable>) {
        #[cfg(feature = "faults")]
        let work = if pool.countdown.is_due() { Box::new(|| super::fault::panic()) } else { work };
        let shared = Arc::new(Shared {
            state: AtomicU8::new(QUEUED),
            work: Mutex::new(Some(work)),
            outcome: Mutex::new(Outcome { result: None, awaited: false }),
            finished: Condvar::new(),
        });
        (Self { stamp: pool.stamp, shared: Arc::clone(&shared) }, shared)
    }

    /// Helps: runs the work on the calling thread if nobody has started it. Returns whether it did.
    #[expect(clippy::must_use_candidate, reason = "called for its effect as well")]
    pub fn try_run(&self) -> bool {
        !self.stamp.is_inherited() && self.shared.try_run()
    }

    /// Whether [`take`](Self::take) would return at once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stamp.is_inherited() || self.shared.is_finished()
    }

    /// Waits until the work is done, or for `timeout`. Returns [`is_done`](Self::is_done).
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.is_done() || self.shared.wait(timeout)
    }

    /// The result of the work; runs it here if nobody has started it, waits while it runs.
    ///
    /// # Errors
    /// The work's own; [`Error::Panicked`] if it panicked, [`Error::Interrupted`] if it was cancelled,
    /// [`Error::Unusable`] in a forked child.
    pub fn take(self) -> Result<T> {
        self.stamp.check()?;
        self.shared.try_run();
        while !self.shared.wait(Duration::MAX) {}
        self.shared.lock().result.take().unwrap_or(Err(Error::Interrupted))
    }

    /// Cancels the work if it has not started. Returns whether it did: then it never runs.
    #[expect(clippy::must_use_candidate, reason = "called for its effect as well")]
    pub fn cancel(&self) -> bool {
        !self.stamp.is_inherited() && self.shared.cancel()
    }
}

impl<T: Send + 'static> fmt::Debug for Task<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.shared.state.load(Ordering::Relaxed) {
            QUEUED => "queued",
            RUNNING => "running",
            DONE => "done",
            _ => "cancelled",
        };
        formatter.debug_tuple("Task").field(&state).finish()
    }
}

impl<T: Send + 'static> Drop for Task<T> {
    fn drop(&mut self) {
        // In a forked child nothing may be locked; the queue, which is leaked there, keeps the parts alive.
        if !self.stamp.is_inherited() && !self.shared.cancel() && self.shared.is_finished() {
            // A result nobody took is dropped here and not by the pool thread, which may still hold its share.
            let result = self.shared.lock().result.take();
            drop(result);
        }
    }
}

impl<T: Send> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Outcome<T>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_finished(&self) -> bool {
        self.state.load(Ordering::Acquire) >= DONE
    }

    /// The work, if this call moved the state from queued to `next`.
    fn claim(&self, next: u8) -> Option<Work<T>> {
        self.state.compare_exchange(QUEUED, next, Ordering::AcqRel, Ordering::Acquire).ok()?;
        self.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn try_run(&self) -> bool {
        let Some(work) = self.claim(RUNNING) else { return false };
        let result = run_caught(work);
        let mut outcome = self.lock();
        outcome.result = Some(result);
        // Under the lock, so that a waiter sees it either before it sleeps or by being woken.
        self.state.store(DONE, Ordering::Release);
        if outcome.awaited {
            self.finished.notify_all();
        }
        true
    }

    fn cancel(&self) -> bool {
        let Some(work) = self.claim(CANCELLED) else { return false };
        if self.lock().awaited {
            self.finished.notify_all();
        }
        drop(work);
        true
    }

    fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut outcome = self.lock();
        while !self.is_finished() {
            outcome.awaited = true;
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            outcome = self.finished.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl<T: Send> Runnable for Shared<T> {
    fn run_if_queued(&self) {
        self.try_run();
    }
}

/// Runs `work`; a panic becomes an error.
pub(super) fn run_caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        drop_payload(payload);
        Err(Error::Panicked(text.unwrap_or_else(|| "a panic without a message".to_owned())))
    })
}

/// Drops what a panic carried, which could panic in turn.
pub(super) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}
