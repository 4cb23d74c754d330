//! `Runtime`: the threads, and the operations that begin with them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use super::arguments::{int_text, plain_int};
use super::config::{reader_config, writer_config};
use super::dataset::Dataset;
use super::enter::enter;
use super::error::to_py_err;
use super::progress::sink;
use super::source::PySource;
use crate::error::Error;
use crate::pool::THREADS;
use crate::runtime;
use crate::terminal::TerminalVerification;
use crate::writer::{Source, WriteOutcome};

/// What became of a source: its name, then the published cache as a `Path`, or the reason why there is none as a `str`.
type Outcome<'py> = (String, Bound<'py, PyAny>);

/// Owner of a fixed number of native threads.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(super) struct Runtime {
    core: runtime::Runtime,
    closed: AtomicBool,
}

#[pymethods]
impl Runtime {
    #[new]
    fn new(py: Python<'_>, num_workers: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = plain_int("num_workers", num_workers)?;
        // What does not even fit the type is out of range.
        let number =
            number.extract::<usize>().map_err(|_| Error::out_of_range("num_workers", THREADS, int_text(number)));
        let core = py.detach(|| number.and_then(runtime::Runtime::new)).map_err(|error| to_py_err(&error))?;
        Ok(Self { core, closed: AtomicBool::new(false) })
    }

    #[getter]
    fn num_workers(&self) -> usize {
        self.core.num_workers()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Raises unless the runtime can be used.
    fn check_open(&self) -> PyResult<()> {
        self.core.pool().map(drop).map_err(|error| to_py_err(&error))
    }

    #[pyo3(signature = (sources, base, config, *, reuse))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        sources: Vec<Bound<'py, PyAny>>,
        base: PathBuf,
        config: &Bound<'py, PyAny>,
        reuse: bool,
    ) -> PyResult<Vec<Outcome<'py>>> {
        let config = writer_config(config)?;
        let mut progress = sink(py, config.show_progress)?;
        let outcomes = enter(py, move |waiter, parked| {
            let mut sources =
                sources.into_iter().map(|source| PySource::new(source, parked)).collect::<Result<Vec<_>, Error>>()?;
            let mut sources: Vec<&mut dyn Source> = sources.iter_mut().map(|source| source as _).collect();
            if reuse {
                self.core.write_missing(&mut sources, &base, &config, waiter, &mut *progress)
            } else {
                self.core.write(&mut sources, &base, &config, waiter, &mut *progress)
            }
        })?;
        let told = outcomes.into_iter().map(|WriteOutcome { source_name, result }| {
            let told = match result {
                Ok(path) => path.into_pyobject(py)?.into_any(),
                Err(message) => message.into_pyobject(py)?.into_any(),
            };
            Ok((source_name, told))
        });
        told.collect()
    }

    /// Verifies all checksums of a cache. `title` stands in front of the progress; without one there is none.
    fn verify(&self, py: Python<'_>, path: PathBuf, title: Option<String>) -> PyResult<()> {
        let line = title.map(TerminalVerification::new);
        enter(py, move |waiter, _| {
            let mut progress = |checked, total| {
                if let Some(line) = &line {
                    line.update(checked, total);
                }
            };
            self.core.verify(&path, waiter, &mut progress)
        })
    }

    fn open(&self, py: Python<'_>, paths: Vec<PathBuf>, config: &Bound<'_, PyAny>) -> PyResult<Dataset> {
        let config = reader_config(config)?;
        let dataset = enter(py, move |waiter, _| self.core.open(&paths, config, waiter))?;
        Dataset::new(py, dataset)
    }

    fn open_population(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        config: &Bound<'_, PyAny>,
        population: PathBuf,
        first: u64,
        stop: u64,
    ) -> PyResult<Dataset> {
        let config = reader_config(config)?;
        let dataset =
            enter(py, move |waiter, _| self.core.open_population(&paths, config, &population, first..stop, waiter))?;
        Dataset::new(py, dataset)
    }

    /// Ends the threads unless somebody else uses them.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Relaxed);
        py.detach(|| self.core.close());
    }
}
