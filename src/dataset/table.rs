//! The active table: which samples there are to draw from, in which order, and how. Immutable; an update makes another one.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_buffer::ScalarBuffer;

use crate::cancel::Waiter;
use crate::dataset::filling::Filling;
use crate::dataset::metadata::{Metadata, fresh_metadata};
use crate::dataset::population::MappedPopulation;
use crate::error::{Error, Result};
use crate::pool::WorkerPool;
use crate::prefetch::prefetch;
use crate::reader::{CacheSet, ReaderConfig};
use crate::sampling::DrawStream;

/// Rows to draw from.
#[derive(Debug)]
pub(super) struct ActiveTable {
    rows: RowMap,
    draws: DrawStream,
    /// What is left to do for `draws`.
    filling: Option<Filling>,
    /// `None` if the table is somewhere else, and only what is needed to draw is here.
    metadata: Option<OnceLock<Arc<Metadata>>>,
}

/// From a row of the table to the sample it stands for, as a row among all rows of all caches. Clones share the samples.
#[derive(Debug, Clone)]
pub(super) enum RowMap {
    /// Samples in their order, from this one on.
    From(u64),
    /// Any samples, any number of times; for data sets of less than 2^32 samples.
    Narrow(ScalarBuffer<u32>),
    /// The same for all others.
    Wide(ScalarBuffer<u64>),
}

impl RowMap {
    /// The sample of one row.
    pub(super) fn sample(&self, row: usize) -> Option<u64> {
        match self {
            Self::From(first) => first.checked_add(row as u64),
            Self::Narrow(samples) => samples.get(row).copied().map(u64::from),
            Self::Wide(samples) => samples.get(row).copied(),
        }
    }
}

impl ActiveTable {
    /// The table of a dataset as it was opened: every sample once, with weight 1.
    pub(super) fn fresh(set: &CacheSet, config: &ReaderConfig) -> Result<Self> {
        let rows = set.row_count();
        let draws = if config.shuffle { DrawStream::uniform(rows, config.seed) } else { DrawStream::cyclic(rows) };
        Ok(Self { rows: RowMap::From(0), draws: draws?, filling: None, metadata: Some(OnceLock::new()) })
    }

    /// A table that was given by the user. `draws` has as many rows as `rows` and `metadata`.
    pub(super) fn given(rows: RowMap, draws: DrawStream, metadata: Metadata) -> Result<Self> {
        let filling = draws.lazy_table().filter(|table| table.filled().is_none()).cloned();
        let filling = filling.map(Filling::new).transpose()?;
        Ok(Self { rows, draws, filling, metadata: Some(OnceLock::from(Arc::new(metadata))) })
    }

    /// Has the pool make later draws faster.
    pub(super) fn expect_draws(&self, pool: &WorkerPool) -> Result<()> {
        self.filling.as_ref().map_or(Ok(()), |filling| filling.begin(pool))
    }

    /// Some rows of an exported table.
    pub(super) fn exported(
        population: &MappedPopulation,
        rows: &Range<u64>,
        config: &ReaderConfig,
        pool: &WorkerPool,
        waiter: &mut dyn Waiter,
    ) -> Result<Self> {
        check_rows(rows, population.rows())?;
        let draws = if config.shuffle {
            population.draws(rows, config.seed, pool, waiter)
        } else {
            DrawStream::cyclic(rows.end - rows.start)
        };
        Ok(Self { rows: population.samples(rows), draws: draws?, filling: None, metadata: None })
    }

    /// From rows to samples.
    pub(super) fn rows(&self) -> &RowMap {
        &self.rows
    }

    /// The table as users see it, if there is one already. Before it is made, all samples are there once, with weight 1.
    pub(super) fn made_metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()?.get().map(Arc::as_ref)
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.draws.rows()
    }

    /// Whether draws go through the rows in their order.
    pub(super) fn is_in_order(&self) -> bool {
        self.draws.is_cyclic()
    }

    /// Fills `rows` with the samples at `start` and the following draw positions.
    pub(super) fn physical_rows(&self, start: u128, rows: &mut [u64]) {
        self.draws.draws(start, rows);
        match &self.rows {
            RowMap::From(0) => {}
            RowMap::From(first) => rows.iter_mut().for_each(|row| *row = row.saturating_add(*first)),
            RowMap::Narrow(samples) => look_up(samples, rows),
            RowMap::Wide(samples) => look_up(samples, rows),
        }
    }

    /// The table as users see it. Made when it is first asked for; afterwards it costs nothing.
    pub(super) fn metadata(&self, set: &CacheSet, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<Arc<Metadata>> {
        let Some(slot) = &self.metadata else {
            return Err(Error::Unusable(
                "this dataset draws from an exported population and has no table; ask the dataset that exported it"
                    .to_owned(),
            ));
        };
        if let Some(metadata) = slot.get() {
            return Ok(Arc::clone(metadata));
        }
        let made = Arc::new(fresh_metadata(set, pool, waiter)?);
        // Whoever comes second takes what is there.
        Ok(Arc::clone(slot.get_or_init(|| made)))
    }
}

/// Whether `part` is some of `rows` rows.
pub(super) fn check_rows(part: &Range<u64>, rows: u64) -> Result<()> {
    if !part.is_empty() && part.end <= rows {
        return Ok(());
    }
    Err(Error::InvalidValue(format!(
        "expected rows among the {rows} of the population, found {} to {}",
        part.start, part.end
    )))
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
