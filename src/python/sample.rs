//! Samples on their way out: `CachedSample` tuples made without calling Python.
#![expect(unsafe_code, reason = "a tuple of a subclass is filled in place, which only the C interface can do")]

use std::convert::Infallible;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};

use super::buffer::NewBytes;
use super::error::to_py_err;
use crate::error::Error;
use crate::format::metadata::RawValue;
use crate::reader::{Cache, CacheSet, Fetched};

/// Everything that the samples of one dataset share.
pub(super) struct SampleFactory {
    class: Py<PyType>,
    /// Set where a tuple has to be made by `tuple.__new__`.
    tuple_new: Option<ffi::newfunc>,
    keys: Vec<Py<PyString>>,
    cache_ids: Vec<Py<PyAny>>,
}

impl SampleFactory {
    pub(super) fn new(py: Python<'_>, set: &CacheSet) -> PyResult<Self> {
        let class = py.import("dataset_rt.records")?.getattr("CachedSample")?.cast_into::<PyType>()?;
        let keys = set.schema().fields().iter().map(|field| PyString::intern(py, &field.name).unbind()).collect();
        let cache_ids = set.caches().iter().map(|cache| number(py, cache.id().0)).collect();
        Ok(Self { class: class.unbind(), tuple_new: tuple_new(py), keys, cache_ids })
    }

    /// Makes the sample around its payload. `text` makes the strings: of a column, from UTF-8 bytes that nobody checked.
    ///
    /// # Errors
    /// When the payload could not be read, or a metadata value is damaged.
    #[inline]
    pub(super) fn build<'py>(
        &self,
        py: Python<'py>,
        caches: &CacheSet,
        sample: Fetched<NewBytes>,
        text: impl FnMut(usize, &[u8]) -> PyResult<Py<PyString>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Fetched { place, payload } = sample;
        let data = payload.map_err(|error| to_py_err(&error))?.into_object();
        let (Some(cache), Some(cache_id)) = (caches.caches().get(place.cache), self.cache_ids.get(place.cache)) else {
            return Err(to_py_err(&Error::Unusable(format!("there is no cache at position {}", place.cache))));
        };
        let metadata =
            self.metadata(py, cache, place.row, text).map_err(|column| unusable(cache, column, place.row))?;
        let fields = [data.into_any(), metadata, cache_id.clone_ref(py), number(py, place.row)];
        match self.tuple_new {
            None => self.fill_tuple(py, fields),
            Some(tuple_new) => self.call_new(py, tuple_new, fields),
        }
    }

    /// The metadata of one row, or the column whose value cannot be made.
    #[inline]
    fn metadata(
        &self,
        py: Python<'_>,
        cache: &Cache,
        row: u64,
        mut text: impl FnMut(usize, &[u8]) -> PyResult<Py<PyString>>,
    ) -> Result<Py<PyAny>, usize> {
        let dict = PyDict::new(py);
        let values = cache.metadata().row(row).ok_or(0_usize)?;
        for (column, key) in self.keys.iter().enumerate() {
            let value = match values.value(column).ok_or(column)? {
                RawValue::Bool(value) => PyBool::new(py, value).to_owned().into_any().unbind(),
                RawValue::Int(value) => number(py, value),
                RawValue::Float(value) => PyFloat::new(py, value).into_any().unbind(),
                RawValue::Text(bytes) => text(column, bytes).map_err(|_| column)?.into_any(),
            };
            // SAFETY: all three are alive, and the dict is one.
            let status = unsafe { ffi::PyDict_SetItem(dict.as_ptr(), key.as_ptr(), value.as_ptr()) };
            if status != 0 {
                // The keys are strings: only memory can be missing.
                drop(PyErr::take(py));
                return Err(column);
            }
        }
        Ok(dict.into_any().unbind())
    }

    /// The quick way: a tuple of the class, allocated empty and filled before anybody can see it.
    fn fill_tuple<'py>(&self, py: Python<'py>, fields: [Py<PyAny>; 4]) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the class is a subclass of `tuple` without storage of its own; a null result is an exception.
        let tuple =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 4))? };
        let [data, metadata, cache_id, sample_id] = fields;
        let set = |position, field: Py<PyAny>| {
            // SAFETY: the position exists, nobody else refers to the tuple, and the reference is handed over.
            let status = unsafe { ffi::PyTuple_SetItem(tuple.as_ptr(), position, field.into_ptr()) };
            if status == 0 { Ok(()) } else { Err(PyErr::fetch(py)) }
        };
        set(0, data)?;
        set(1, metadata)?;
        set(2, cache_id)?;
        set(3, sample_id)?;
        Ok(tuple)
    }

    /// The way for interpreters whose tuples remember their hash, which an empty allocation would leave wrong.
    fn call_new<'py>(
        &self,
        py: Python<'py>,
        tuple_new: ffi::newfunc,
        fields: [Py<PyAny>; 4],
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyTuple::new(py, [PyTuple::new(py, fields)?])?;
        // SAFETY: this is the constructor of `tuple`, called as the interpreter calls it for a subclass.
        unsafe {
            Bound::from_owned_ptr_or_err(py, tuple_new(self.class.as_ptr().cast(), arguments.as_ptr(), ptr::null_mut()))
        }
    }
}

/// Why a value could not be handed out.
#[cold]
fn unusable(cache: &Cache, column: usize, row: u64) -> PyErr {
    let error = cache.value(column, row).err();
    to_py_err(&error.unwrap_or_else(|| Error::Unusable("cannot make a metadata value: out of memory".to_owned())))
}

/// A Python int.
#[inline]
fn number<'py>(
    py: Python<'py>,
    value: impl IntoPyObject<'py, Target = PyInt, Output = Bound<'py, PyInt>, Error = Infallible>,
) -> Py<PyAny> {
    let Ok(number) = value.into_pyobject(py);
    number.into_any().unbind()
}

/// The constructor of `tuple`, from the first version on whose tuples remember their hash.
fn tuple_new(py: Python<'_>) -> Option<ffi::newfunc> {
    if py.version_info() < (3, 14) {
        return None;
    }
    // SAFETY: `tuple` is a type, and this slot of it holds a function of this signature.
    unsafe {
        let slot = ffi::PyType_GetSlot(&raw mut ffi::PyTuple_Type, ffi::Py_tp_new);
        (!slot.is_null()).then(|| std::mem::transmute::<*mut std::ffi::c_void, ffi::newfunc>(slot))
    }
}
