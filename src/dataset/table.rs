//! The active table: which samples there are to draw from, in which order, and how. Immutable; an update makes another one.

use std::sync::{Arc, OnceLock};

use crate::cancel::Waiter;
use crate::dataset::metadata::{Metadata, fresh_metadata};
use crate::error::Result;
use crate::pool::WorkerPool;
use crate::prefetch::prefetch;
use crate::reader::{CacheSet, ReaderConfig};
use crate::sampling::DrawStream;

/// Rows to draw from.
#[derive(Debug)]
pub(super) struct ActiveTable {
    rows: RowMap,
    draws: DrawStream,
    metadata: OnceLock<Arc<Metadata>>,
}

/// From a row of the table to the sample it stands for, as a row among all rows of all caches.
#[derive(Debug)]
pub(super) enum RowMap {
    /// Every sample once, in order.
    Identity,
    /// Any samples, any number of times; for data sets of less than 2^32 samples.
    Narrow(Vec<u32>),
    /// The same for all others.
    Wide(Vec<u64>),
}

impl ActiveTable {
    /// The table of a dataset as it was opened: every sample once, with weight 1.
    pub(super) fn fresh(set: &CacheSet, config: &ReaderConfig) -> Result<Self> {
        let rows = set.row_count();
        let draws = if config.shuffle { DrawStream::uniform(rows, config.seed) } else { DrawStream::cyclic(rows) };
        Ok(Self { rows: RowMap::Identity, draws: draws?, metadata: OnceLock::new() })
    }

    /// A table that was given by the user. `draws` has as many rows as `rows` and `metadata`.
    pub(super) fn given(rows: RowMap, draws: DrawStream, metadata: Metadata) -> Self {
        Self { rows, draws, metadata: OnceLock::from(Arc::new(metadata)) }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.draws.rows()
    }

    /// Fills `rows` with the samples at `start` and the following draw positions.
    pub(super) fn physical_rows(&self, start: u128, rows: &mut [u64]) {
        self.draws.draws(start, rows);
        match &self.rows {
            RowMap::Identity => {}
            RowMap::Narrow(samples) => look_up(samples, rows),
            RowMap::Wide(samples) => look_up(samples, rows),
        }
    }

    /// The table as users see it. Made when it is first asked for; afterwards it costs nothing.
    pub(super) fn metadata(&self, set: &CacheSet, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<Arc<Metadata>> {
        if let Some(metadata) = self.metadata.get() {
            return Ok(Arc::clone(metadata));
        }
        let made = Arc::new(fresh_metadata(set, pool, waiter)?);
        // Whoever comes second takes what is there.
        Ok(Arc::clone(self.metadata.get_or_init(|| made)))
    }
}

fn look_up<T: Copy + Into<u64>>(samples: &[T], rows: &mut [u64]) {
    let slot = |row: u64| usize::try_from(row).ok().and_then(|row| samples.get(row));
    for row in &*rows {
        if let Some(slot) = slot(*row) {
            prefetch(slot);
        }
    }
    for row in rows {
        // A draw is always below the number of rows.
        *row = slot(*row).map_or(u64::MAX, |sample| (*sample).into());
    }
}
