//! Cleaning up behind worker processes.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::error::to_py_err;
use crate::cancel::CancelToken;
use crate::fs;

/// Removes what writers that are dead left unfinished below `base`.
#[pyfunction]
pub(super) fn sweep_staging(py: Python<'_>, base: PathBuf) -> PyResult<()> {
    py.detach(|| fs::sweep(base, &CancelToken::new())).map_err(|error| to_py_err(&error))
}
