//! The next rows of a stream while they may still be on disk: the kernel is asked for their records early, and the pool,
//! not the consumer, looks for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::pool::{Task, WorkerPool};
use crate::reader::{CacheSet, PlannedSample, announce, plan_cold};

/// Rows on their way to being planned, in draw order.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    announced: VecDeque<Announced>,
    planning: Option<Planning>,
}

/// Rows whose records the kernel was asked for, or is about to be.
#[derive(Debug)]
struct Announced {
    rows: Vec<u64>,
    task: Option<Task<()>>,
}

/// Rows that the pool plans. Also holds the task that asks for their records, lest that is cancelled.
#[derive(Debug)]
struct Planning {
    plan: Task<Vec<PlannedSample>>,
    announcement: Option<Task<()>>,
}

impl Ahead {
    /// Whether there are no rows in here.
    pub(super) fn is_empty(&self) -> bool {
        self.announced.is_empty() && self.planning.is_none()
    }

    /// Rows that were announced and are not being planned yet.
    pub(super) fn announced(&self) -> u64 {
        self.announced.iter().map(|block| block.rows.len() as u64).sum()
    }

    /// Has the kernel asked for the records of `rows`.
    pub(super) fn announce(&mut self, set: &Arc<CacheSet>, pool: &WorkerPool, rows: Vec<u64>) {
        let (set, shared) = (Arc::clone(set), rows.clone());
        let task = Task::spawn(pool, move || {
            announce(&set, &shared);
            Ok(())
        });
        self.announced.push_back(Announced { rows, task: task.ok() });
    }

    /// Has the first announced rows planned, unless others still are.
    ///
    /// # Errors
    /// [`Error::Unusable`](crate::error::Error) in a forked child.
    pub(super) fn begin_to_plan(&mut self, set: &Arc<CacheSet>, pool: &WorkerPool) -> Result<()> {
        if self.planning.is_none()
            && let Some(Announced { rows, task }) = self.announced.pop_front()
        {
            let set = Arc::clone(set);
            let plan = Task::spawn(pool, move || Ok(plan_cold(&set, &rows)))?;
            self.planning = Some(Planning { plan, announcement: task });
        }
        Ok(())
    }

    /// The plan that is being made, to be waited for.
    pub(super) fn pending(&self) -> Option<&Task<Vec<PlannedSample>>> {
        self.planning.as_ref().map(|planning| &planning.plan)
    }

    /// The plan, if it is finished.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::error::Error).
    pub(super) fn take_plan(&mut self) -> Result<Option<Vec<PlannedSample>>> {
        let Some(Planning { plan, announcement }) = self.planning.take_if(|planning| planning.plan.is_done()) else {
            return Ok(None);
        };
        settle(announcement.as_ref());
        plan.take().map(Some)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Whoever lets go of a stream may rely on its files being closed.
        settle(self.pending());
        let planning = self.planning.iter().filter_map(|planning| planning.announcement.as_ref());
        let announced = self.announced.iter().filter_map(|block| block.task.as_ref());
        planning.chain(announced).for_each(|task| settle(Some(task)));
    }
}

/// Makes sure that a task neither runs nor will run.
fn settle<T: Send>(task: Option<&Task<T>>) {
    if let Some(task) = task {
        while !task.cancel() && !task.wait(Duration::MAX) {}
    }
}
