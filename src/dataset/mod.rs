//! Datasets: caches, an active table, a cursor. Every mutation replaces an immutable snapshot.

mod ahead;
mod dump;
mod filling;
mod metadata;
mod policy;
mod population;
mod samples;
mod stream;
mod table;
mod type_name;
mod update;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use metadata::Metadata;
pub use population::PopulationOrder;
pub use samples::{Sample, Samples};
pub use stream::SampleStream;

use crate::cancel::{Waiter, while_waiting};
use crate::error::{Error, Result};
use crate::format::schema::Schema;
use crate::ids::{CacheId, SampleId};
use crate::memory::keep_freed_blocks;
use crate::pool::{ForkStamp, WorkerPool};
use crate::reader::{CacheSet, Fetched, PayloadBuffer, ReaderConfig, fetch_one, open_caches};
use crate::sampling::Cursor;
use crate::upgrade::{ManifestUpdate, upgrade_manifests};
use population::MappedPopulation;
use table::ActiveTable;

/// Samples of one or more caches, with a table that says which of them are drawn, and how often.
#[derive(Debug)]
pub struct Dataset {
    paths: Vec<PathBuf>,
    schema: Schema,
    config: ReaderConfig,
    /// Looked at before the lock, which a forked child may have inherited locked.
    stamp: ForkStamp,
    /// `None` once closed.
    state: Mutex<Option<State>>,
}

/// What an open dataset consists of.
#[derive(Debug)]
struct State {
    caches: Arc<CacheSet>,
    pool: Arc<WorkerPool>,
    table: Arc<ActiveTable>,
    /// How many tables there were before this one.
    table_version: u64,
    epoch_len: u64,
    cursor: Cursor,
}

impl Dataset {
    /// Opens the caches in `paths`. The dataset keeps `pool` alive.
    ///
    /// # Errors
    /// See [`open_caches`] and [`ReaderConfig::check`].
    pub fn open(
        paths: &[PathBuf],
        config: ReaderConfig,
        pool: Arc<WorkerPool>,
        waiter: &mut dyn Waiter,
    ) -> Result<Self> {
        config.check()?;
        let caches = open_caches(paths, config.validate_cache, &pool, waiter)?;
        let table = ActiveTable::fresh(&caches, &config)?;
        Self::over(caches, table, config, pool)
    }

    /// Opens the caches in `paths` with rows of the population that another dataset over them exported to the file
    /// `population`. The file is mapped, not read.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::InvalidValue`] when the population is not one of these caches or has other rows.
    pub fn open_population(
        paths: &[PathBuf],
        config: ReaderConfig,
        population: &Path,
        rows: Range<u64>,
        pool: Arc<WorkerPool>,
        waiter: &mut dyn Waiter,
    ) -> Result<Self> {
        config.check()?;
        let caches = open_caches(paths, config.validate_cache, &pool, waiter)?;
        let population = while_waiting(waiter, || MappedPopulation::open(population, caches.row_count()))?;
        let table = ActiveTable::exported(&population, &rows, &config, &pool, waiter)?;
        Self::over(caches, table, config, pool)
    }

    fn over(caches: CacheSet, table: ActiveTable, config: ReaderConfig, pool: Arc<WorkerPool>) -> Result<Self> {
        Ok(Self {
            paths: caches.paths(),
            schema: caches.schema().clone(),
            stamp: ForkStamp::here()?,
            state: Mutex::new(Some(State {
                epoch_len: table.len(),
                table: Arc::new(table),
                table_version: 0,
                cursor: Cursor::new(),
                caches: Arc::new(caches),
                pool,
            })),
            config,
        })
    }

    /// Absolute paths of its caches, in the order of their rows.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The metadata columns of its samples.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How it reads.
    #[must_use]
    pub fn config(&self) -> &ReaderConfig {
        &self.config
    }

    /// Samples that the next iterator will give.
    ///
    /// # Errors
    /// [`Error::Unusable`] when it is closed, or was inherited through `fork`.
    pub fn epoch_len(&self) -> Result<u64> {
        self.with_state(|state| Ok(state.epoch_len))
    }

    /// Rows of the active table.
    ///
    /// # Errors
    /// As [`epoch_len`](Self::epoch_len).
    pub fn row_count(&self) -> Result<u64> {
        self.with_state(|state| Ok(state.table.len()))
    }

    /// How often the table was replaced.
    ///
    /// # Errors
    /// As [`epoch_len`](Self::epoch_len).
    pub fn table_version(&self) -> Result<u64> {
        self.with_state(|state| Ok(state.table_version))
    }

    /// Its caches.
    ///
    /// # Errors
    /// As [`epoch_len`](Self::epoch_len).
    pub fn caches(&self) -> Result<Arc<CacheSet>> {
        self.with_state(|state| Ok(Arc::clone(&state.caches)))
    }

    /// Sets how many samples later iterators give.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless `epoch_len` is 1 ... 2^63-1; else as [`epoch_len`](Self::epoch_len).
    pub fn set_epoch_len(&self, epoch_len: u64) -> Result<()> {
        Error::check_positive("epoch_len", epoch_len)?;
        self.with_state(|state| {
            state.epoch_len = epoch_len;
            Ok(())
        })
    }

    /// Reserves the next window of the draw stream and returns its samples, as the dataset is now. The window is used up
    /// even if the stream is dropped.
    ///
    /// # Errors
    /// As [`epoch_len`](Self::epoch_len).
    pub fn samples<B: PayloadBuffer>(&self) -> Result<SampleStream<B>> {
        self.with_state(|state| {
            let len = state.epoch_len;
            state.table.expect_draws(&state.pool)?;
            let start = state.cursor.reserve(len)?;
            Ok(SampleStream::new(
                Arc::clone(&state.caches),
                Arc::clone(&state.table),
                Arc::clone(&state.pool),
                stream::Window { start, len },
                self.config.prefetch_size,
            ))
        })
    }

    /// Prepares this process for making, or receiving, batches of so many samples over and over again.
    ///
    /// # Errors
    /// As [`epoch_len`](Self::epoch_len).
    pub fn expect_batches(&self, samples: u64) -> Result<()> {
        keep_freed_blocks(self.caches()?.mean_record_bytes().saturating_mul(samples));
        Ok(())
    }

    /// Reads one sample, active or not, on the calling thread. Moves no cursor.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] when there is none with these ids, [`Error::Sample`] when it cannot be read,
    /// [`Error::Interrupted`] from `waiter`; else as [`epoch_len`](Self::epoch_len).
    pub fn get_item<B: PayloadBuffer>(
        &self,
        cache_id: CacheId,
        sample_id: SampleId,
        waiter: &mut dyn Waiter,
    ) -> Result<(Arc<CacheSet>, Fetched<B>)> {
        let caches = self.caches()?;
        let place = caches.find(cache_id, sample_id)?;
        let payload = fetch_one(&caches, place, waiter)?;
        Ok((caches, Fetched { place, payload: Ok(payload) }))
    }

    /// The active table. Made when a table is first asked for it; its buffers are shared afterwards.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when stored metadata is damaged, [`Error::Interrupted`] from `waiter`; else as
    /// [`epoch_len`](Self::epoch_len).
    pub fn metadata(&self, waiter: &mut dyn Waiter) -> Result<Arc<Metadata>> {
        let (caches, pool, table) = self.snapshot()?;
        table.metadata(&caches, &pool, waiter)
    }

    /// Replaces the active table for later iterators, starts a fresh draw stream, and sets the epoch
    /// length to the number of rows. After an error everything is as before.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when the table breaks a rule: the message names column, row and value;
    /// [`Error::Interrupted`] from `waiter`; else as [`epoch_len`](Self::epoch_len).
    pub fn update_metadata(&self, table: Metadata, waiter: &mut dyn Waiter) -> Result<()> {
        let (caches, pool, before) = self.snapshot()?;
        let origin = update::Origin::User;
        let table = update::build(table, &origin, Some(&before), &caches, &self.config, &pool, waiter)?;
        let table = Arc::new(table);
        let replaced = self.with_state(|state| {
            state.epoch_len = table.len();
            state.cursor = Cursor::new();
            state.table_version += 1;
            Ok(std::mem::replace(&mut state.table, table))
        })?;
        // Perhaps gigabytes: not under the lock.
        drop(replaced);
        Ok(())
    }

    /// Writes what readers need in order to draw from the active table to the new file `path`, for
    /// [`open_population`](Self::open_population), and returns the number of rows. `parts` are the rows that readers
    /// will draw from by weight; a reader of other rows makes a table of its own.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for parts without rows or with rows there are not, [`Error::File`] when the file exists
    /// or cannot be written, [`Error::Interrupted`] from `waiter`; then what was written stays behind. Else as
    /// [`epoch_len`](Self::epoch_len).
    pub fn export_population(
        &self,
        path: &Path,
        order: PopulationOrder,
        parts: &[Range<u64>],
        waiter: &mut dyn Waiter,
    ) -> Result<u64> {
        let (caches, pool, table) = self.snapshot()?;
        population::export(&table, &caches, path, order, parts, &pool, waiter)
    }

    /// One word for identities and weights of all rows of the active table, in their order.
    ///
    /// # Errors
    /// [`Error::Interrupted`] from `waiter`; else as [`epoch_len`](Self::epoch_len).
    pub fn table_digest(&self, waiter: &mut dyn Waiter) -> Result<String> {
        let (caches, pool, table) = self.snapshot()?;
        population::digest(&table, &caches, &pool, waiter)
    }

    /// Stores the identities of its caches in their manifests, as [`upgrade_manifests`] does. The dataset itself stays as it
    /// is.
    ///
    /// # Errors
    /// As [`upgrade_manifests`]; else as [`epoch_len`](Self::epoch_len).
    pub fn update_manifests(&self, waiter: &mut dyn Waiter) -> Result<ManifestUpdate> {
        let (caches, pool, _) = self.snapshot()?;
        upgrade_manifests(&caches, &pool, waiter)
    }

    /// Lets go of everything. Streams that exist go on; everything else is [`Error::Unusable`] from now on. Closing twice
    /// is fine.
    pub fn close(&self) {
        if !self.stamp.is_inherited() {
            let state = self.lock().take();
            // Unmaps files, and joins threads if nobody else uses them: not under the lock.
            drop(state);
        }
    }

    /// What an operation works on while others may replace it.
    fn snapshot(&self) -> Result<(Arc<CacheSet>, Arc<WorkerPool>, Arc<ActiveTable>)> {
        self.with_state(|state| Ok((Arc::clone(&state.caches), Arc::clone(&state.pool), Arc::clone(&state.table))))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.stamp.check()?;
        match self.lock().as_mut() {
            Some(state) => work(state),
            None => Err(Error::Unusable("the dataset is closed; open it again".to_owned())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
