//! The next draws of a stream while what they need may still be on disk: the pool, not the consumer, makes the draws, asks
//! the kernel for their records early, and looks for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::pool::{Task, WorkerPool};
use crate::reader::{Announced, CacheSet, Drawn, Manner, PlannedSample, announce, plan_cold};

/// Draws on their way to being planned, in their order.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    blocks: VecDeque<Block>,
    planning: Option<Task<Vec<PlannedSample>>>,
}

/// Draws whose records come into memory together.
#[derive(Debug)]
struct Block {
    rows: Rows,
    manner: Manner,
    /// Bytes that the kernel has to read for them, about.
    load: u64,
}

#[derive(Debug)]
enum Rows {
    /// The pool makes them, and has their records read.
    Coming(Task<Announced>),
    /// So many of them are taken.
    AtHand(Announced, usize),
}

impl Ahead {
    /// Whether there are no draws in here.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.planning.is_none()
    }

    /// Bytes that were asked for and are not planned yet, about.
    pub(super) fn load(&self) -> u64 {
        self.blocks.iter().map(|block| block.load).sum()
    }

    /// Adds the rows that `draw` gives. The kernel has to read about `load` bytes for them.
    ///
    /// # Errors
    /// [`Error::Unusable`](crate::error::Error) in a forked child.
    pub(super) fn announce(
        &mut self,
        set: &Arc<CacheSet>,
        pool: &WorkerPool,
        (manner, load): (Manner, u64),
        draw: impl FnOnce() -> Drawn + Send + 'static,
    ) -> Result<()> {
        let set = Arc::clone(set);
        let rows = Task::spawn(pool, move || Ok(announce(&set, manner, draw)))?;
        self.blocks.push_back(Block { rows: Rows::Coming(rows), manner, load });
        Ok(())
    }

    /// Whether the rows that were added last are still to come.
    pub(super) fn is_coming(&self) -> bool {
        matches!(self.blocks.back(), Some(Block { rows: Rows::Coming(task), .. }) if !task.is_done())
    }

    /// The next rows, at most so many, if they are at hand and nothing before them is being planned.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::error::Error).
    pub(super) fn next_rows(&mut self, most: usize) -> Result<Option<NextRows<'_>>> {
        if self.planning.is_some() {
            return Ok(None);
        }
        let Some(block) = self.blocks.front_mut() else { return Ok(None) };
        if !block.is_at_hand()? {
            return Ok(None);
        }
        match &block.rows {
            Rows::AtHand(Announced { rows, in_runs }, taken) => {
                let rows = rows.get(*taken..).unwrap_or_default();
                let rows = rows.get(..most).unwrap_or(rows);
                Ok(Some(NextRows { rows, in_runs: *in_runs, manner: block.manner }))
            }
            Rows::Coming(_) => Ok(None),
        }
    }

    /// Takes the next `count` rows away.
    pub(super) fn take(&mut self, count: usize) {
        if let Some(Block { rows: Rows::AtHand(announced, taken), .. }) = self.blocks.front_mut() {
            *taken += count;
            if *taken >= announced.rows.len() {
                self.blocks.pop_front();
            }
        }
    }

    /// Has the next rows planned, at most so many, if they are at hand and no others are being planned.
    ///
    /// # Errors
    /// [`Error::Unusable`](crate::error::Error) in a forked child, [`Error::Panicked`](crate::error::Error).
    pub(super) fn begin_to_plan(&mut self, set: &Arc<CacheSet>, pool: &WorkerPool, most: usize) -> Result<()> {
        let Some(next) = self.next_rows(most)? else { return Ok(()) };
        let (rows, set) = (next.rows.to_vec(), Arc::clone(set));
        let count = rows.len();
        self.planning = Some(Task::spawn(pool, move || Ok(plan_cold(&set, &rows)))?);
        self.take(count);
        Ok(())
    }

    /// Waits for the plan that is being made, or else for the next rows, at most this long. Returns whether they are there.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        match (&self.planning, self.blocks.front()) {
            (Some(plan), _) => plan.wait(timeout),
            (None, Some(Block { rows: Rows::Coming(rows), .. })) => rows.wait(timeout),
            (None, _) => true,
        }
    }

    /// The plan, if it is finished.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::error::Error).
    pub(super) fn take_plan(&mut self) -> Result<Option<Vec<PlannedSample>>> {
        self.planning.take_if(|planning| planning.is_done()).map(Task::take).transpose()
    }
}

/// Rows that were drawn.
pub(super) struct NextRows<'a> {
    pub(super) rows: &'a [u64],
    /// Whether their records, and those of their block, lie in a few runs.
    pub(super) in_runs: bool,
    /// How they came into memory.
    pub(super) manner: Manner,
}

impl Block {
    /// Whether there are rows here, if need be taken over from the pool.
    fn is_at_hand(&mut self) -> Result<bool> {
        if let Rows::Coming(task) = &self.rows {
            if !task.is_done() {
                return Ok(false);
            }
            let nothing = Rows::AtHand(Announced { rows: Vec::new(), in_runs: false }, 0);
            if let Rows::Coming(task) = std::mem::replace(&mut self.rows, nothing) {
                self.rows = Rows::AtHand(task.take()?, 0);
            }
        }
        Ok(true)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Whoever lets go of a stream may rely on its files being closed.
        settle(self.planning.as_ref());
        for block in &self.blocks {
            if let Rows::Coming(task) = &block.rows {
                settle(Some(task));
            }
        }
    }
}

/// Makes sure that a task neither runs nor will run.
fn settle<T: Send>(task: Option<&Task<T>>) {
    if let Some(task) = task {
        while !task.cancel() && !task.wait(Duration::MAX) {}
    }
}
