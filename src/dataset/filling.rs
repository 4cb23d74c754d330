//! Sampling tables that the pool fills while nobody needs its threads, from the first draw on.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::error::Result;
use crate::pool::{ForkStamp, Spare, WorkerPool};
use crate::sampling::LazyTable;

/// One table that is to be filled.
pub(super) struct Filling {
    stamp: ForkStamp,
    /// Emptied before the table goes. Threads of the pool fill it under the lock, so that none of them is the last owner of
    /// weights that perhaps only a thread of the interpreter may release.
    table: Arc<RwLock<Option<Arc<LazyTable>>>>,
    work: OnceLock<Arc<Spare>>,
}

impl Filling {
    pub(super) fn new(table: Arc<LazyTable>) -> Result<Self> {
        Ok(Self { stamp: ForkStamp::here()?, table: Arc::new(RwLock::new(Some(table))), work: OnceLock::new() })
    }

    /// Has the pool fill the table, if that has not begun.
    pub(super) fn begin(&self, pool: &WorkerPool) -> Result<()> {
        if self.work.get().is_some() {
            return Ok(());
        }
        let table = Arc::clone(&self.table);
        let fill = move || {
            let table = table.read().unwrap_or_else(PoisonError::into_inner);
            table.as_ref().is_some_and(|table| table.fill_block())
        };
        let mut begins = false;
        let work = self.work.get_or_init(|| {
            begins = true;
            Arc::new(fill)
        });
        if begins { pool.add_spare_work(work) } else { Ok(()) }
    }
}

impl fmt::Debug for Filling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Filling")
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // In a forked child a thread that is not there may hold the lock.
        if !self.stamp.is_inherited() {
            *self.table.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}
