//! Calls that run Python code, on threads that the interpreter may take away in the middle of them.
//!
//! Before Python 3.14 an ending interpreter ends daemon threads with `pthread_exit` as soon as they want to run
//! bytecode. That unwinds the stack, which Rust answers by aborting the process. A thread that comes by here in this way stops
//! for ever instead, as it does from 3.14 on; the process ends without it. pyo3 does the same where it attaches.
#![expect(unsafe_code, reason = "the C interface, declared so that it may unwind")]

use std::thread;

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyMapping, PyString, PyTuple};

mod raw {
    use pyo3::ffi::PyObject;

    unsafe extern "C-unwind" {
        pub(super) fn PyMapping_Items(mapping: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_CallNoArgs(callable: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Str(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Repr(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetAttr(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_CallObject(callable: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject;
    }
}

/// Keeps the thread when it is unwound.
struct StayHere;

impl Drop for StayHere {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}

/// Makes one call that returns a new reference, or null and perhaps an exception.
fn call<'py>(
    py: Python<'py>,
    function: unsafe extern "C-unwind" fn(*mut PyObject) -> *mut PyObject,
    object: &Bound<'py, PyAny>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    // SAFETY: the functions in `raw` take any object that is alive, and this thread is attached.
    kept(py, || unsafe { function(object.as_ptr()) })
}

/// The same with a second object.
fn call_with<'py>(
    function: unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject) -> *mut PyObject,
    object: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: as above; callers pass what the function takes as its second object.
    required(kept(object.py(), || unsafe { function(object.as_ptr(), other.as_ptr()) }))
}

/// Makes a call of the C interface that returns a new reference, or null and perhaps an exception.
fn kept(py: Python<'_>, call: impl FnOnce() -> *mut PyObject) -> Option<PyResult<Bound<'_, PyAny>>> {
    let guard = StayHere;
    let result = call();
    std::mem::forget(guard);
    // SAFETY: such calls return a reference of the caller's own, or null.
    match unsafe { Bound::from_owned_ptr_or_opt(py, result) } {
        Some(object) => Some(Ok(object)),
        None => PyErr::take(py).map(Err),
    }
}

/// The next object; `None` at the end.
pub(super) fn next<'py>(iterator: &Bound<'py, PyIterator>) -> Option<PyResult<Bound<'py, PyAny>>> {
    call(iterator.py(), raw::PyIter_Next, iterator.as_any())
}

/// What `iter(object)` gives.
pub(super) fn iter<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    required(call(object.py(), raw::PyObject_GetIter, object)).and_then(|iterator| Ok(iterator.cast_into()?))
}

/// What `list(mapping.items())` gives.
pub(super) fn items<'py>(mapping: &Bound<'py, PyMapping>) -> PyResult<Bound<'py, PyList>> {
    required(call(mapping.py(), raw::PyMapping_Items, mapping.as_any())).and_then(|items| Ok(items.cast_into()?))
}

/// What `callable()` gives.
pub(super) fn call_no_args<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    required(call(callable.py(), raw::PyObject_CallNoArgs, callable))
}

/// What `object.name` gives, which may be a property.
pub(super) fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    call_with(raw::PyObject_GetAttr, object, name.as_any())
}

/// What `object.name(*arguments)` gives.
pub(super) fn method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    call_with(raw::PyObject_CallObject, &attribute(object, name)?, arguments.as_any())
}

/// What `str(object)` gives.
pub(super) fn text<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    required(call(object.py(), raw::PyObject_Str, object)).and_then(|text| Ok(text.cast_into()?))
}

/// What `repr(object)` gives.
pub(super) fn shown<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    required(call(object.py(), raw::PyObject_Repr, object)).and_then(|text| Ok(text.cast_into()?))
}

/// Only the end of an iteration is null without an exception.
fn required(result: Option<PyResult<Bound<'_, PyAny>>>) -> PyResult<Bound<'_, PyAny>> {
    result.unwrap_or_else(|| Err(PyStopIteration::new_err(())))
}
