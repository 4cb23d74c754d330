//! The next draws of a stream while what they need may still be on disk: the pool, not the consumer, makes the draws, asks
//! the kernel for their records early, and looks for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::dataset::table::ActiveTable;
use crate::error::Result;
use crate::pool::{Lane, Task, WorkerPool};
use crate::reader::{Announced, CacheSet, Drawn, Manner, PlannedSample, announce, plan_cold, plan_failed};

/// Places all over the table that are looked at while records are brought into memory in order, and one more.
const PROBES: u64 = 16;

/// Draws on their way to being planned, in their order.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    blocks: VecDeque<Block>,
    planning: Option<Planning>,
    lane: Lane,
}

/// A stretch of the draws of a table. They are the same whenever they are made.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    pub(super) table: Arc<ActiveTable>,
    /// First draw position.
    pub(super) start: u128,
    pub(super) count: usize,
}

/// Draws whose records come into memory together.
#[derive(Debug)]
struct Block {
    draws: Draws,
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

/// Rows that the pool plans.
#[derive(Debug)]
struct Planning {
    rows: Arc<[u64]>,
    task: Task<Vec<PlannedSample>>,
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

    /// Adds draws. The kernel has to read about `load` bytes for them.
    ///
    /// # Errors
    /// [`Error::Unusable`](crate::error::Error) in a forked child; then nothing was added.
    pub(super) fn announce(
        &mut self,
        set: &Arc<CacheSet>,
        pool: &WorkerPool,
        (manner, load): (Manner, u64),
        draws: Draws,
    ) -> Result<()> {
        let (set, to_make) = (Arc::clone(set), draws.clone());
        let work = move || Ok(announce(&set, manner, || to_make.with_others(manner)));
        let rows = match manner {
            Manner::Ask => Task::spawn(pool, work)?,
            // One after the other: two threads at once would look like random reads to the kernel.
            Manner::Bring => self.lane.spawn(pool, work)?,
        };
        self.blocks.push_back(Block { draws, rows: Rows::Coming(rows), manner, load });
        Ok(())
    }

    /// The next rows, at most so many, if they are at hand and nothing before them is being planned.
    pub(super) fn next_rows(&mut self, most: usize) -> Option<NextRows<'_>> {
        if self.planning.is_some() {
            return None;
        }
        let block = self.blocks.front_mut()?;
        let manner = block.manner;
        let (Announced { rows, in_runs }, taken) = block.at_hand()?;
        let rows = rows.get(taken..).unwrap_or_default();
        Some(NextRows { rows: rows.get(..most).unwrap_or(rows), in_runs: *in_runs, manner })
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
    /// [`Error::Unusable`](crate::error::Error) in a forked child; then nothing was taken away.
    pub(super) fn begin_to_plan(&mut self, set: &Arc<CacheSet>, pool: &WorkerPool, most: usize) -> Result<()> {
        let Some(next) = self.next_rows(most) else { return Ok(()) };
        let rows: Arc<[u64]> = next.rows.into();
        let (set, to_plan) = (Arc::clone(set), Arc::clone(&rows));
        let task = Task::spawn(pool, move || Ok(plan_cold(&set, &to_plan)))?;
        self.take(rows.len());
        self.planning = Some(Planning { rows, task });
        Ok(())
    }

    /// Waits for the plan that is being made, or else for the next rows, at most this long. Returns whether there is
    /// something to go on with.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        match (&self.planning, self.blocks.front()) {
            (Some(planning), _) => planning.task.wait(timeout),
            (None, Some(Block { rows: Rows::Coming(rows), .. })) => rows.wait(timeout),
            (None, _) => true,
        }
    }

    /// The plan, if it is finished.
    pub(super) fn take_plan(&mut self, set: &CacheSet) -> Option<Vec<PlannedSample>> {
        let Planning { rows, task } = self.planning.take_if(|planning| planning.task.is_done())?;
        Some(task.take().unwrap_or_else(|error| plan_failed(set, &rows, &error)))
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

impl Draws {
    fn make(&self) -> Vec<u64> {
        let mut rows = vec![0; self.count];
        self.table.physical_rows(self.start, &mut rows);
        rows
    }

    /// The draws, and others that tell something about the whole.
    fn with_others(&self, manner: Manner) -> Drawn {
        let mut others = Vec::new();
        if manner == Manner::Bring {
            let step = u128::from(self.table.len() / PROBES);
            others.resize(usize::try_from(PROBES - 1).unwrap_or(0), 0);
            for (number, other) in (1..).zip(&mut others) {
                self.table.physical_rows(self.start + number * step, std::slice::from_mut(other));
            }
        }
        Drawn { rows: self.make(), others }
    }
}

impl Block {
    /// The rows, and how many of them are taken, if they are there; if need be taken over from the pool.
    fn at_hand(&mut self) -> Option<(&Announced, usize)> {
        if let Rows::Coming(task) = &self.rows {
            if !task.is_done() {
                return None;
            }
            let nothing = Rows::AtHand(Announced::default(), 0);
            if let Rows::Coming(task) = std::mem::replace(&mut self.rows, nothing) {
                // Whatever went wrong there, it is not known to concern these rows: whoever plans them will see.
                let drawn = |_| Announced { rows: self.draws.make(), in_runs: false };
                self.rows = Rows::AtHand(task.take().unwrap_or_else(drawn), 0);
            }
        }
        match &self.rows {
            Rows::AtHand(announced, taken) => Some((announced, *taken)),
            Rows::Coming(_) => None,
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Whoever lets go of a stream may rely on its files being closed.
        settle(self.planning.as_ref().map(|planning| &planning.task));
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
