//! Configurations: every field of the frozen Python objects is checked again, since they can be made without their checks.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};

use super::arguments::{int_text, plain_bool, plain_int, wrong_type};
use super::error::to_py_err;
use crate::error::{Error, POSITIVE};
use crate::format::compression::{Compression, CompressionAlgo};
use crate::{reader, writer};

/// What a seed may be.
const SEEDS: &str = "0 ... 2^64-1";

/// What a number of processes may be.
const PROCESSES: &str = "0 ... 2^63-1";

/// Reads a `WriterConfig`. What concerns several processes is checked, and not used here.
pub(super) fn writer_config(config: &Bound<'_, PyAny>) -> PyResult<writer::WriterConfig> {
    let processes = field(config, "num_processes")?;
    if integer("num_processes", PROCESSES, &processes)? > i64::MAX.cast_unsigned() {
        return Err(outside("num_processes", PROCESSES, &processes));
    }
    let timeout = number("process_timeout_seconds", &field(config, "process_timeout_seconds")?)?;
    if !(timeout.is_finite() && timeout > 0.0) {
        let text = format!("process_timeout_seconds must be finite and greater than 0, found {timeout}");
        return Err(PyValueError::new_err(text));
    }
    let compression = field(config, "shard_compression")?;
    let profiler = field(config, "profiler")?;
    let profile = path("profiler.path", &field(&profiler, "path")?)?;
    let checked = writer::WriterConfig {
        prefetch_size: size(config, "prefetch_size")?,
        max_shard_bytes: size(config, "max_shard_bytes")?,
        compression: Compression {
            algo: algo(&field(&compression, "algo")?)?,
            ratio: number("shard_compression.ratio", &field(&compression, "ratio")?)?,
        },
        show_progress: flag(config, "show_progress")?,
        validate_cache: flag(config, "validate_cache")?,
        profiler: plain_bool("profiler.enabled", &field(&profiler, "enabled")?)?.then_some(profile),
    };
    checked.check().map_err(|error| to_py_err(&error))?;
    Ok(checked)
}

/// Reads a `ReaderConfig`.
pub(super) fn reader_config(config: &Bound<'_, PyAny>) -> PyResult<reader::ReaderConfig> {
    Ok(reader::ReaderConfig {
        seed: integer("seed", SEEDS, &field(config, "seed")?)?,
        prefetch_size: size(config, "prefetch_size")?,
        shuffle: flag(config, "shuffle")?,
        validate_cache: flag(config, "validate_cache")?,
    })
}

/// Raises unless the `ReaderConfig` can be used: for calls that do other work before they read.
#[pyfunction]
pub(super) fn check_reader_config(config: &Bound<'_, PyAny>) -> PyResult<()> {
    reader_config(config).map(drop)
}

fn field<'py>(config: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    config.getattr_opt(name)?.ok_or_else(|| {
        let class = config.get_type().name().map_or_else(|_| "the object".to_owned(), |name| name.to_string());
        PyValueError::new_err(format!(
            "a configuration needs {name}, found none in {class}; make it by calling its class"
        ))
    })
}

fn integer(name: &str, range: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    plain_int(name, value)?.extract().map_err(|_| outside(name, range, value))
}

fn outside(name: &str, range: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.cast::<PyInt>().map_or_else(|_| "no int".to_owned(), int_text);
    to_py_err(&Error::out_of_range(name, range, found))
}

fn size(config: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let value = field(config, name)?;
    let size = integer(name, POSITIVE, &value)?;
    Error::check_positive(name, size).map_err(|error| to_py_err(&error))?;
    Ok(size)
}

fn flag(config: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    plain_bool(name, &field(config, name)?)
}

/// A float, or an int where one is asked for.
fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(int) = value.cast_exact::<PyInt>() {
        return int.extract().map_err(|_| outside(name, "finite and greater than 0", value));
    }
    value.cast::<PyFloat>().map(PyFloatMethods::value).map_err(|_| wrong_type(name, "a float", value))
}

fn algo(value: &Bound<'_, PyAny>) -> PyResult<CompressionAlgo> {
    const NAME: &str = "shard_compression.algo";
    let text = value.cast::<PyString>().map_err(|_| wrong_type(NAME, "a str", value))?.to_string_lossy();
    CompressionAlgo::from_name(&text)
        .ok_or_else(|| PyValueError::new_err(format!("{NAME} must be \"none\" or \"lz4\", found {text:?}")))
}

fn path(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value.extract().map_err(|_| wrong_type(name, "a str or a Path", value))
}
