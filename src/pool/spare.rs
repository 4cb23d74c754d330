//! Work of a pool that is of use at any time: its threads do a little of it whenever there is no task for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::task::drop_payload;

/// Does a part of some work, short enough for a task to wait for it, and returns whether there may be more to do. Called by
/// any thread of the pool, and by several at once.
pub type Spare = dyn Fn() -> bool + Send + Sync;

/// The spare work of a pool. Each ends with its last owner, who is not the pool.
#[derive(Default)]
pub(super) struct SpareWork {
    works: Mutex<Vec<Weak<Spare>>>,
    /// Whether to look for any: threads ask after every task.
    is_there: AtomicBool,
}

impl SpareWork {
    pub(super) fn add(&self, work: &Arc<Spare>) {
        let mut works = self.lock();
        works.push(Arc::downgrade(work));
        self.is_there.store(true, Ordering::Release);
    }

    pub(super) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Acquire)
    }

    /// Does a part of the oldest work.
    pub(super) fn do_some(&self) {
        let first = self.lock().first().cloned();
        let Some(first) = first else { return };
        let outcome = catch_unwind(AssertUnwindSafe(|| first.upgrade().is_some_and(|work| work())));
        if !outcome.unwrap_or_else(|payload| (drop_payload(payload), false).1) {
            let mut works = self.lock();
            works.retain(|work| !work.ptr_eq(&first));
            self.is_there.store(!works.is_empty(), Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Spare>>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SpareWork {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SpareWork")
    }
}
