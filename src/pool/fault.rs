//! Lets a chosen task panic. Only builds with the feature `faults` have this, and only tests have that feature.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use super::WorkerPool;

/// How many more tasks are queued before the one that panics, and one more; 0 for none.
#[derive(Debug, Default)]
pub(super) struct Countdown(AtomicU64);

impl WorkerPool {
    /// Has a task panic in place of its work: the one that is queued behind so many others from now on.
    pub fn panic_behind(&self, tasks: u64) {
        self.countdown.0.store(tasks + 1, Ordering::SeqCst);
    }

    /// Whether the task that is to panic is still to be queued.
    #[must_use]
    pub fn is_to_panic(&self) -> bool {
        self.countdown.0.load(Ordering::SeqCst) > 0
    }
}

impl Countdown {
    /// Called for each task that is queued.
    pub(super) fn is_due(&self) -> bool {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left == Ok(1)
    }
}

/// Panics without a word on the terminal.
pub(super) fn panic() -> ! {
    resume_unwind(Box::new("a fault of a test"))
}
