//! What writers left unfinished: finding and removing it.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::error::to_py_err;
use crate::cancel::CancelToken;
use crate::fs;

/// Finds the staging directories of this library below `base`; gives each with whether its writer is dead.
#[pyfunction]
pub(super) fn find_staging(py: Python<'_>, base: PathBuf) -> PyResult<Vec<(PathBuf, bool)>> {
    let found = py.detach(|| fs::find_staging(base, &CancelToken::new())).map_err(|error| to_py_err(&error))?;
    Ok(found.into_iter().map(|staging| (staging.path, staging.is_dead)).collect())
}

/// Removes what writers that are dead left unfinished below `base`.
#[pyfunction]
pub(super) fn sweep_staging(py: Python<'_>, base: PathBuf) -> PyResult<()> {
    py.detach(|| fs::sweep(base, &CancelToken::new())).map_err(|error| to_py_err(&error))
}
