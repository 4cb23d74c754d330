//! Arguments that have to be of one Python type and nothing that merely converts to it, and how they are told.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyType};

/// Digits of more bits than this tell nobody anything; Python refuses to print some thousands.
const SHOWN_BITS: u64 = 128;

/// A plain int, no bool.
pub(super) fn plain_int<'a, 'py>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyInt>> {
    value.cast_exact::<PyInt>().map_err(|_| wrong_type(name, "an int", value))
}

/// A bool.
pub(super) fn plain_bool(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(PyBoolMethods::is_true).map_err(|_| wrong_type(name, "a bool", value))
}

/// The exception for a value of another type than `expected`.
pub(super) fn wrong_type(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = class_name(&value.get_type(), "another type");
    PyTypeError::new_err(format!("{name} must be {expected}, found {found}"))
}

/// Name of a class for messages, or other words where it has none.
pub(super) fn class_name(class: &Bound<'_, PyType>, otherwise: &str) -> String {
    class.fully_qualified_name().map_or_else(|_| otherwise.to_owned(), |name| name.to_string())
}

/// An int as messages tell it.
pub(super) fn int_text(value: &Bound<'_, PyInt>) -> String {
    let bits = value.call_method0(intern!(value.py(), "bit_length")).and_then(|bits| bits.extract::<u64>());
    match bits {
        Ok(bits) if bits > SHOWN_BITS => format!("an int of {bits} bits"),
        _ => value.to_string(),
    }
}
