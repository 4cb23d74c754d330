//! Arguments that have to be plain Python ints.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// A plain int, not a bool and nothing that merely converts to one.
pub(super) fn plain_int<'a, 'py>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyInt>> {
    value.cast_exact::<PyInt>().map_err(|_| {
        let found =
            value.get_type().fully_qualified_name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("{name} must be an int, found {found}"))
    })
}
