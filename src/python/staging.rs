//! Cleaning up behind worker processes.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::error::to_py_err;
use crate::fs;

/// Removes what an ended process of this machine left unfinished below `base`.
#[pyfunction]
pub(super) fn remove_staging_of(py: Python<'_>, base: PathBuf, process: u32) -> PyResult<()> {
    py.detach(|| fs::remove_staging_of(base, process)).map_err(|error| to_py_err(&error))
}
