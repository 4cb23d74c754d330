//! The front door: a runtime owns the worker threads and everything begins with it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cancel::Waiter;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::pool::{ForkStamp, WorkerPool};
use crate::progress::ProgressSink;
use crate::reader::{ReaderConfig, verify_directory};
use crate::writer::{Refuse, Reuse, Source, WriteOutcome, WriterConfig, write_sources};

/// Owns a fixed number of worker threads that all operations share.
///
/// ```
/// use dataset_rt::cancel::PlainWaiter;
/// use dataset_rt::progress::NoProgress;
/// use dataset_rt::runtime::Runtime;
/// use dataset_rt::value::MetadataValue;
/// use dataset_rt::writer::{IterSource, WriterConfig};
///
/// # fn main() -> dataset_rt::error::Result<()> {
/// # let base = tempfile::tempdir().unwrap();
/// let runtime = Runtime::new(2)?;
/// let samples = (0..3).map(|number| (vec![0; 10], vec![("label".to_owned(), MetadataValue::Int(number))]));
/// let mut source = IterSource::new("digits", samples);
/// let outcomes = runtime.write(
///     &mut [&mut source],
///     base.path(),
///     &WriterConfig::default(),
///     &mut PlainWaiter::default(),
///     &mut NoProgress,
/// )?;
/// assert_eq!(outcomes[0].result, Ok(base.path().join("digits")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runtime {
    num_workers: usize,
    /// Looked at before the lock, which a forked child may have inherited locked.
    stamp: ForkStamp,
    /// `None` once closed. Operations and datasets keep handles of their own.
    pool: Mutex<Option<Arc<WorkerPool>>>,
}

impl Runtime {
    /// Starts `num_workers` threads.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless it is 1 ... 1024, [`Error::Unusable`] when the system refuses a thread.
    pub fn new(num_workers: usize) -> Result<Self> {
        let pool = WorkerPool::new(num_workers)?;
        Ok(Self { num_workers, stamp: ForkStamp::here()?, pool: Mutex::new(Some(pool)) })
    }

    /// How many threads it was made with.
    #[must_use]
    pub fn num_workers(&self) -> usize {
        self.num_workers
    }

    /// The threads.
    ///
    /// # Errors
    /// [`Error::Unusable`] when the runtime is closed or was inherited through `fork`.
    pub fn pool(&self) -> Result<Arc<WorkerPool>> {
        self.stamp.check()?;
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.clone().ok_or_else(|| Error::Unusable("the runtime is closed; create a new one".to_owned()))
    }

    /// Writes one new cache for each source below `base` and returns one outcome each, in the same order.
    ///
    /// A source that fails, or whose cache exists already, has an error for its outcome and disturbs no other.
    ///
    /// # Errors
    /// What concerns the whole call: a bad configuration, names that collide, a closed runtime,
    /// [`Error::Interrupted`]. Caches that were finished by then stay.
    pub fn write(
        &self,
        sources: &mut [&mut dyn Source],
        base: &Path,
        config: &WriterConfig,
        waiter: &mut dyn Waiter,
        progress: &mut dyn ProgressSink,
    ) -> Result<Vec<WriteOutcome>> {
        let pool = self.pool()?;
        write_sources(&pool, sources, base, config, &mut Refuse, waiter, progress)
    }

    /// Opens the caches in `paths` as one dataset, which keeps the threads alive by itself.
    ///
    /// # Errors
    /// What [`Dataset::open`] says; [`Error::Unusable`] as for [`pool`](Self::pool).
    pub fn open(&self, paths: &[PathBuf], config: ReaderConfig, waiter: &mut dyn Waiter) -> Result<Dataset> {
        Dataset::open(paths, config, self.pool()?, waiter)
    }

    /// Opens the caches in `paths` with some rows of an exported population, as [`Dataset::open_population`] does.
    ///
    /// # Errors
    /// What [`Dataset::open_population`] says; [`Error::Unusable`] as for [`pool`](Self::pool).
    pub fn open_population(
        &self,
        paths: &[PathBuf],
        config: ReaderConfig,
        population: &Path,
        rows: Range<u64>,
        waiter: &mut dyn Waiter,
    ) -> Result<Dataset> {
        Dataset::open_population(paths, config, population, rows, self.pool()?, waiter)
    }

    /// Verifies every checksum of the cache in the directory `path`. Meanwhile `progress` is told, again and again, how many
    /// bytes of the shards were checked, and how many there are.
    ///
    /// # Errors
    /// What is wrong with the cache: see [`verify`](crate::reader::verify); [`Error::Unusable`] as for [`pool`](Self::pool).
    pub fn verify(
        &self,
        path: &Path,
        waiter: &mut dyn Waiter,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<()> {
        verify_directory(path, &*self.pool()?, waiter, progress)
    }

    /// Writes one cache for each source below `base` unless it is there already: complete caches are used as they are.
    ///
    /// A source whose cache exists with another fingerprint, or whose place is taken by something that is no complete
    /// cache, has an error for its outcome.
    ///
    /// # Errors
    /// What concerns the whole call, as for [`write`](Self::write).
    pub fn write_missing(
        &self,
        sources: &mut [&mut dyn Source],
        base: &Path,
        config: &WriterConfig,
        waiter: &mut dyn Waiter,
        progress: &mut dyn ProgressSink,
    ) -> Result<Vec<WriteOutcome>> {
        let pool = self.pool()?;
        let mut existing = Reuse { pool: &pool, validate: config.validate_cache };
        write_sources(&pool, sources, base, config, &mut existing, waiter, progress)
    }

    /// Opens one cache for each source below `base` as one dataset, after [`write_missing`](Self::write_missing).
    ///
    /// # Errors
    /// What concerns the whole call, as for [`write`](Self::write).
    pub fn from_sources(
        &self,
        sources: &mut [&mut dyn Source],
        base: &Path,
        writer_config: &WriterConfig,
        reader_config: ReaderConfig,
        waiter: &mut dyn Waiter,
        progress: &mut dyn ProgressSink,
    ) -> Result<SourcesDataset> {
        reader_config.check()?;
        let pool = self.pool()?;
        let outcomes = self.write_missing(sources, base, writer_config, waiter, progress)?;
        let paths: Vec<PathBuf> = outcomes.iter().filter_map(|outcome| outcome.result.clone().ok()).collect();
        if paths.is_empty() {
            let message = format!("no cache could be loaded: {}", why_none(&outcomes));
            return Ok(SourcesDataset { outcomes, dataset: Err(message) });
        }
        let dataset = match Dataset::open(&paths, reader_config, pool, waiter) {
            Ok(dataset) => Ok(dataset),
            Err(error @ (Error::Interrupted | Error::Unusable(_) | Error::Panicked(_))) => return Err(error),
            Err(error) => Err(format!("no cache could be loaded: {error}")),
        };
        Ok(SourcesDataset { outcomes, dataset })
    }

    /// Lets go of the threads: they end with the last dataset and operation that uses them. Closing twice is fine.
    pub fn close(&self) {
        if self.stamp.is_inherited() {
            return;
        }
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Joins the threads if nobody else uses them: not under the lock.
        drop(pool);
    }
}

/// What became of sources that were to be one dataset.
#[derive(Debug)]
pub struct SourcesDataset {
    /// One outcome for each source, in the same order.
    pub outcomes: Vec<WriteOutcome>,
    /// The caches that could be had, or why they are no dataset.
    pub dataset: std::result::Result<Dataset, String>,
}

/// What to say when no source has a cache.
fn why_none(outcomes: &[WriteOutcome]) -> String {
    let failed = outcomes.iter().find_map(|outcome| Some((&outcome.source_name, outcome.result.as_ref().err()?)));
    match (failed, outcomes.len()) {
        (None, _) => "no source was given".to_owned(),
        (Some((name, reason)), 1) => format!("source {name:?} failed: {reason}"),
        (Some((name, reason)), all) => {
            format!("source {name:?} failed: {reason}; so did all {all} sources, see their results")
        }
    }
}
