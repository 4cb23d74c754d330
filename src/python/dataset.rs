//! `Dataset`: caches opened together, their active table, and iterators over it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};

use super::arguments::{int_text, plain_int};
use super::arrow;
use super::buffer::NewBytes;
use super::enter::enter;
use super::error::to_py_err;
use super::iterator::SampleIterator;
use super::sample::SampleFactory;
use crate::dataset::{self, PopulationOrder};
use crate::error::{Error, POSITIVE};
use crate::ids::{CacheId, SampleId};
use crate::reader::ReaderConfig;
use crate::upgrade::{ManifestStatus, StoppedUpdate};

/// Path, id and status of a manifest.
type ManifestOutcome<'py> = (Bound<'py, PyAny>, u64, &'static str);
/// Path of the manifest that ended an update, and why.
type Stopped<'py> = (Bound<'py, PyAny>, String);

/// Caches opened together.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(super) struct Dataset {
    core: dataset::Dataset,
    factory: Arc<SampleFactory>,
    closed: AtomicBool,
}

impl Dataset {
    pub(super) fn new(py: Python<'_>, core: dataset::Dataset) -> PyResult<Self> {
        let caches = core.caches().map_err(|error| to_py_err(&error))?;
        let factory = SampleFactory::new(py, &caches)?;
        Ok(Self { core, factory: Arc::new(factory), closed: AtomicBool::new(false) })
    }
}

#[pymethods]
impl Dataset {
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Raises unless the dataset can be used.
    fn check_open(&self) -> PyResult<()> {
        self.core.table_version().map(drop).map_err(|error| to_py_err(&error))
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.core.paths().to_vec()
    }

    fn __len__(&self) -> PyResult<usize> {
        let len = self.core.epoch_len().map_err(|error| to_py_err(&error))?;
        usize::try_from(len).map_err(|_| PyOverflowError::new_err("the epoch is longer than a Python length can be"))
    }

    fn set_epoch_len(&self, epoch_len: &Bound<'_, PyAny>) -> PyResult<()> {
        let epoch_len = plain_int("epoch_len", epoch_len)?;
        let len =
            epoch_len.extract::<u64>().map_err(|_| Error::out_of_range("epoch_len", POSITIVE, int_text(epoch_len)));
        len.and_then(|len| self.core.set_epoch_len(len)).map_err(|error| to_py_err(&error))
    }

    /// Prepares this process for batches of so many samples.
    fn expect_batches(&self, samples: u64) -> PyResult<()> {
        self.core.expect_batches(samples).map_err(|error| to_py_err(&error))
    }

    /// Begins the next window.
    fn samples(&self) -> PyResult<SampleIterator> {
        let stream = self.core.samples::<NewBytes>().map_err(|error| to_py_err(&error))?;
        SampleIterator::new(stream, Arc::clone(&self.factory)).map_err(|error| to_py_err(&error))
    }

    fn get_item<'py>(
        &self,
        py: Python<'py>,
        cache_id: &Bound<'py, PyAny>,
        sample_id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cache_id = identity("cache_id", cache_id)?;
        let sample_id = identity("sample_id", sample_id)?;
        let (cache_id, sample_id) = (CacheId(cache_id), SampleId(sample_id));
        let (caches, sample) = enter(py, |waiter, _| self.core.get_item::<NewBytes>(cache_id, sample_id, waiter))?;
        let text = |_, bytes: &[u8]| PyString::from_bytes(py, bytes).map(Bound::unbind);
        self.factory.build(py, &caches, sample, text)
    }

    /// Changes with every update of the table.
    fn table_version(&self) -> PyResult<u64> {
        self.core.table_version().map_err(|error| to_py_err(&error))
    }

    /// The active table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request that the interface allows to decline: consumers cast what they get.
        let _ = requested_schema;
        let table = enter(py, |waiter, _| self.core.metadata(waiter))?;
        arrow::export(py, &table)
    }

    fn update_metadata(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_open()?;
        let table = arrow::import(table)?;
        enter(py, |waiter, _| self.core.update_metadata(table, waiter))
    }

    /// Writes what other processes need in order to draw from the active table; gives its number of rows.
    #[pyo3(signature = (path, *, weighted, order_seed, parts))]
    fn export_population(
        &self,
        py: Python<'_>,
        path: PathBuf,
        weighted: bool,
        order_seed: Option<u64>,
        parts: Vec<(u64, u64)>,
    ) -> PyResult<u64> {
        let order = match (weighted, order_seed) {
            (false, _) => PopulationOrder::Table,
            (true, None) => PopulationOrder::WeightedTable,
            (true, Some(seed)) => PopulationOrder::WeightedShuffled(seed),
        };
        let parts: Vec<_> = parts.into_iter().map(|(start, stop)| start..stop).collect();
        enter(py, move |waiter, _| self.core.export_population(&path, order, &parts, waiter))
    }

    /// Exports table and configuration into a directory; gives the path of the configuration.
    #[pyo3(signature = (directory, *, num_workers=None))]
    fn dump_config<'py>(
        &self,
        py: Python<'py>,
        directory: PathBuf,
        num_workers: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let config = enter(py, move |waiter, _| self.core.dump_config(&directory, num_workers, waiter))?;
        Ok(config.into_pyobject(py)?.into_any())
    }

    /// Opens what `dump_config` exported.
    #[staticmethod]
    fn from_config(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let core = enter(py, move |waiter, _| dataset::Dataset::from_config(&path, waiter))?;
        Self::new(py, core)
    }

    /// Stores the ids of the caches in their manifests; gives path, id and status of each, and where and why it stopped.
    fn update_manifests<'py>(&self, py: Python<'py>) -> PyResult<(Vec<ManifestOutcome<'py>>, Option<Stopped<'py>>)> {
        let to_path = |path: PathBuf| Ok::<_, PyErr>(path.into_pyobject(py)?.into_any());
        let (entries, stopped) = match enter(py, |waiter, _| self.core.update_manifests(waiter))? {
            Ok(entries) => (entries, None),
            Err(StoppedUpdate { path, message, entries }) => (entries, Some((to_path(path)?, message))),
        };
        let entries =
            entries.into_iter().map(|entry| Ok((to_path(entry.path)?, entry.cache_id.0, status(entry.status))));
        Ok((entries.collect::<PyResult<_>>()?, stopped))
    }

    /// Seed, prefetch size, whether it shuffles, and whether caches were validated.
    fn reader_config(&self) -> (u64, u64, bool, bool) {
        let ReaderConfig { seed, prefetch_size, shuffle, validate_cache } = *self.core.config();
        (seed, prefetch_size, shuffle, validate_cache)
    }

    /// Rows of the active table.
    fn row_count(&self) -> PyResult<u64> {
        self.core.row_count().map_err(|error| to_py_err(&error))
    }

    /// Identities and weights of the active table as one word.
    fn table_digest(&self, py: Python<'_>) -> PyResult<String> {
        enter(py, |waiter, _| self.core.table_digest(waiter))
    }

    /// Lets go of files and threads.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Relaxed);
        py.detach(|| self.core.close());
    }
}

/// An id as a number; no sample has an id that is none.
fn identity(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let value = plain_int(name, value)?;
    value
        .extract()
        .map_err(|_| PyIndexError::new_err(format!("no sample has {name} {}; ids are 0 ... 2^64-1", int_text(value))))
}

fn status(status: ManifestStatus) -> &'static str {
    match status {
        ManifestStatus::Updated => "updated",
        ManifestStatus::Unchanged => "unchanged",
        ManifestStatus::DurabilityUnknown => "durability_unknown",
    }
}
