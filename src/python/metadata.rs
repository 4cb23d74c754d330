//! Rows of metadata on their way in: the quick way for plain dicts like the first one, the general way for any mapping.
#![expect(unsafe_code, reason = "walking a dict without a reference count for each value needs the C interface")]

use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};

use super::calls;
use super::scalar::{INT_TOO_LARGE, LONE_SURROGATE, Numpy, Scalar};
use crate::error::{Error, Result, excerpt};
use crate::format::schema::Schema;
use crate::value::ValueRef;
use crate::writer::{PayloadRef, Rows};

/// A metadata mapping, read by the general way.
pub(super) struct Row<'py> {
    cells: Vec<(Bound<'py, PyString>, Scalar<'py>)>,
}

impl<'py> Row<'py> {
    /// Reads any mapping; the inner error says why it is none of ours. May run Python code.
    pub(super) fn new(metadata: &Bound<'py, PyAny>, numpy: &mut Numpy) -> PyResult<std::result::Result<Self, String>> {
        let Ok(mapping) = metadata.cast::<PyMapping>() else {
            let found = metadata.get_type().fully_qualified_name()?;
            return Ok(Err(format!("metadata must be a mapping with str keys, found {found}")));
        };
        let items = calls::items(mapping)?;
        let mut cells = Vec::with_capacity(items.len());
        for item in items {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            let key = match key.cast_into::<PyString>() {
                Ok(key) if key.to_str().is_ok() => key,
                Ok(key) => return Ok(Err(format!("metadata key {} is no valid Unicode; rename it", shown(&key)?))),
                Err(other) => {
                    let key = other.into_inner();
                    let found = key.get_type().fully_qualified_name()?;
                    return Ok(Err(format!("metadata keys must be str, found {} of type {found}", shown(&key)?)));
                }
            };
            cells.push((key, Scalar::new(&value, numpy)?));
        }
        Ok(Ok(Self { cells }))
    }

    /// Adds the sample to `rows`.
    pub(super) fn push(&self, payload: PayloadRef<'_>, rows: &mut Rows) -> Result<()> {
        let mut values = Vec::with_capacity(self.cells.len());
        for (key, scalar) in &self.cells {
            let key = key.to_str().map_err(|_| rows.refuse("metadata key is no valid Unicode"))?;
            values.push((
                key,
                match scalar {
                    Scalar::Bool(value) => ValueRef::Bool(*value),
                    Scalar::Int(value) => ValueRef::Int(*value),
                    Scalar::Float(value) => ValueRef::Float(*value),
                    Scalar::Text(text) => {
                        ValueRef::String(text.to_str().map_err(|_| rows.refuse("metadata text is no valid Unicode"))?)
                    }
                    Scalar::Refused(found) => return Err(refused(rows, key, found)),
                },
            ));
        }
        rows.push(payload, &values)
    }
}

/// An object as a message shows it. Runs Python code.
fn shown(object: &Bound<'_, PyAny>) -> PyResult<String> {
    match calls::shown(object) {
        Ok(text) => Ok(excerpt(&text.to_string_lossy()).into_owned()),
        // An int of thousands of digits.
        Err(error) if error.is_instance_of::<PyValueError>(object.py()) => Ok("something unprintable".to_owned()),
        Err(error) => Err(error),
    }
}

/// The error for a value that is of no kind: what was expected depends on whether row 0 has the key.
fn refused(rows: &Rows, key: &str, found: &str) -> Error {
    match rows.schema().map(|schema| schema.position(key)) {
        None => rows.refuse(format_args!(
            "metadata key {:?}: expected bool, int, float or string, found {found}",
            excerpt(key)
        )),
        Some(Some(column)) => rows.wrong_kind(column, found),
        Some(None) => rows.unexpected_key(key, found),
    }
}

/// The keys of row 0 in the order of its dict. Rows made by the same line of code repeat them, as the same objects.
pub(super) struct Template {
    keys: Vec<(Py<PyString>, usize)>,
    /// Values of the row at hand, borrowed from its dict; kept for its memory only.
    values: Vec<*mut ffi::PyObject>,
}

impl Template {
    /// The keys of a dict that has exactly the columns of `schema`.
    pub(super) fn new(metadata: &Bound<'_, PyAny>, schema: &Schema) -> Option<Self> {
        let dict = metadata.cast_exact::<PyDict>().ok()?;
        let mut keys = Vec::with_capacity(dict.len());
        for key in dict.keys() {
            let key = key.cast_into_exact::<PyString>().ok()?;
            let column = schema.position(key.to_str().ok()?)?;
            keys.push((key.unbind(), column));
        }
        (keys.len() == schema.len()).then(|| Self { keys, values: Vec::new() })
    }

    /// Adds the sample to `rows` if its metadata is a dict with these keys in this order and values of exact Python
    /// types; `None` if it is anything else. Runs no Python code.
    pub(super) fn push(
        &mut self,
        metadata: &Bound<'_, PyAny>,
        rows: &mut Rows,
        begin: impl FnOnce(&mut Rows) -> Result<()>,
    ) -> Option<Result<()>> {
        let dict = metadata.cast_exact::<PyDict>().ok()?;
        // Only a free-threaded interpreter needs the section: elsewhere nobody runs before this returns.
        with_critical_section(metadata, || {
            self.collect(dict)?;
            Some(begin(rows).and_then(|()| self.push_values(metadata.py(), rows)))
        })
    }

    /// Finds the values, in the order of the keys, if the dict is like the first one.
    fn collect(&mut self, dict: &Bound<'_, PyDict>) -> Option<()> {
        self.values.clear();
        let (mut position, mut key, mut value) = (0, ptr::null_mut(), ptr::null_mut());
        for (expected, _) in &self.keys {
            // SAFETY: the dict is alive and nothing changes it during the walk, since no Python code runs.
            let found =
                unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) } != 0;
            if !found || (key != expected.as_ptr() && !is_same_text(key, expected)) {
                return None;
            }
            self.values.push(value);
        }
        (dict.len() == self.keys.len() && self.values.iter().all(|value| is_exact(*value))).then_some(())
    }

    fn push_values(&self, py: Python<'_>, rows: &mut Rows) -> Result<()> {
        for ((_, column), value) in self.keys.iter().zip(&self.values) {
            // SAFETY: the dict holds the value and cannot change before this function returns.
            let value = unsafe { Borrowed::from_ptr(py, *value) };
            if let Ok(text) = value.cast_exact::<PyString>() {
                match text.to_str() {
                    Ok(text) => rows.push_value(*column, ValueRef::String(text))?,
                    Err(_) => return Err(rows.wrong_kind(*column, LONE_SURROGATE)),
                }
            } else if let Ok(number) = value.cast_exact::<PyInt>() {
                match number.extract() {
                    Ok(number) => rows.push_value(*column, ValueRef::Int(number))?,
                    Err(_) => return Err(rows.wrong_kind(*column, INT_TOO_LARGE)),
                }
            } else if let Ok(number) = value.cast_exact::<PyFloat>() {
                rows.push_value(*column, ValueRef::Float(number.value()))?;
            } else {
                // SAFETY: `collect` has seen that the type is one of four.
                let truth = unsafe { value.cast_unchecked::<PyBool>() }.is_true();
                rows.push_value(*column, ValueRef::Bool(truth))?;
            }
        }
        rows.end_row()
    }
}

/// Whether a key that is another object is an equal string.
fn is_same_text(key: *mut ffi::PyObject, expected: &Py<PyString>) -> bool {
    // SAFETY: both objects are alive, and both are strings when they are compared, which runs no Python code.
    unsafe { ffi::PyUnicode_CheckExact(key) != 0 && ffi::PyUnicode_Compare(key, expected.as_ptr()) == 0 }
}

/// Whether reading the value cannot run Python code.
fn is_exact(value: *mut ffi::PyObject) -> bool {
    // SAFETY: the value is alive.
    unsafe {
        ffi::PyUnicode_CheckExact(value) != 0
            || ffi::PyLong_CheckExact(value) != 0
            || ffi::PyFloat_CheckExact(value) != 0
            || ffi::PyBool_Check(value) != 0
    }
}
