//! Metadata values on their way in: Python and `NumPy` scalars by kind, and hints for everything else.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};

use super::calls;

/// What is said of a string that UTF-8 cannot hold.
pub(super) const LONE_SURROGATE: &str = "string with a lone surrogate, which is no valid Unicode; replace it";

/// What is said of an int that a column cannot hold.
pub(super) const INT_TOO_LARGE: &str = "int outside -2^63 ... 2^63-1; store it as a string or a float";

/// One value of a metadata mapping.
pub(super) enum Scalar<'py> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Bound<'py, PyString>),
    /// What was found instead of a value, and what to do about it.
    Refused(String),
}

impl<'py> Scalar<'py> {
    /// Reads any object. May run Python code.
    pub(super) fn new(value: &Bound<'py, PyAny>, numpy: &mut Numpy) -> PyResult<Self> {
        // A bool is an int to Python, and a numpy.float64 a float: order matters only for bool.
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(Self::Bool(value.is_true()));
        }
        if let Ok(value) = value.cast::<PyInt>() {
            return Ok(Self::from_int(value));
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Ok(Self::Float(value.value()));
        }
        if let Ok(value) = value.cast::<PyString>() {
            return Ok(match value.to_str() {
                Ok(_) => Self::Text(value.clone()),
                Err(_) => Self::Refused(LONE_SURROGATE.to_owned()),
            });
        }
        if numpy.is_scalar(value)? {
            return Self::from_numpy(value);
        }
        Self::refused(value)
    }

    fn from_int(value: &Bound<'py, PyInt>) -> Self {
        match value.extract() {
            Ok(value) => Self::Int(value),
            Err(_) => Self::Refused(INT_TOO_LARGE.to_owned()),
        }
    }

    fn from_numpy(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let dtype = calls::attribute(value, intern!(py, "dtype"))?;
        let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
        let item_size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
        if !(matches!(kind, 'b' | 'i' | 'u') || kind == 'f' && item_size <= size_of::<f64>()) {
            return Self::refused(value);
        }
        let item = calls::method(value, intern!(py, "item"), &PyTuple::empty(py))?;
        if let Ok(value) = item.cast::<PyBool>() {
            Ok(Self::Bool(value.is_true()))
        } else if let Ok(value) = item.cast::<PyInt>() {
            Ok(Self::from_int(value))
        } else {
            Ok(Self::Float(item.extract()?))
        }
    }

    fn refused(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let class = value.get_type();
        let hint = match class.name()?.to_str()? {
            "NoneType" => "leave no gaps: use NaN, \"\" or a value of your own for what is unknown",
            "bytes" | "bytearray" | "memoryview" | "bytes_" => "decode it, or make it part of the payload",
            "datetime" | "date" | "time" | "timedelta" | "Timestamp" | "Timedelta" | "datetime64" | "timedelta64" => {
                "store .isoformat() or a number of seconds"
            }
            "Decimal" | "Fraction" => "store float() or str() of it",
            "list" | "tuple" | "dict" | "set" | "frozenset" | "ndarray" => {
                "store one key for each element, or a JSON string"
            }
            _ => "convert it to bool, int, float or str",
        };
        Ok(Self::Refused(format!("{}; {hint}", class.fully_qualified_name()?)))
    }
}

/// Knows the scalars of `NumPy` without importing it: where it is not imported, there are none.
#[derive(Default)]
pub(super) struct Numpy {
    generic: Option<Py<PyType>>,
}

impl Numpy {
    /// Whether `value` is an instance of `numpy.generic`.
    pub(super) fn is_scalar(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        if self.generic.is_none() {
            let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
            // A module that is still being imported may lack the name.
            self.generic = match modules.get_item(intern!(py, "numpy")) {
                Ok(numpy) => numpy.getattr(intern!(py, "generic")).ok().and_then(|generic| generic.extract().ok()),
                Err(_) => None,
            };
        }
        match &self.generic {
            Some(generic) => value.is_instance(generic.bind(py)),
            None => Ok(false),
        }
    }
}
