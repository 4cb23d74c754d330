//! Calls that run Python code, on threads that the interpreter may take away in the middle of them.
//!
//! Before Python 3.14 an ending interpreter ends daemon threads with `pthread_exit` as soon as they want to run
//! bytecode. That unwinds the stack, which Rust answers by aborting the process. A thread that comes by here in this way stops
//! for ever instead, as it does from 3.14 on; the process ends without it. pyo3 does the same where it attaches.
#![expect(unsafe_code, reason = "the C interface, declared so that it may unwind")]

use std::ffi::c_int;
use std::thread;

use pyo3::exceptions::PyStopIteration;
use pyo3::ffi::{Py_buffer, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyMapping, PyString, PyTuple};

mod raw {
    use std::ffi::c_int;

    use pyo3::ffi::{Py_buffer, PyObject};

    unsafe extern "C-unwind" {
        pub(super) fn PyMapping_Items(mapping: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_CallNoArgs(callable: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Str(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Repr(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetAttr(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_GetBuffer(object: *mut PyObject, view: *mut Py_buffer, flags: c_int) -> c_int;
        pub(super) fn Py_DecRef(object: *mut PyObject);
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
    let function = may_unwind(function);
    // SAFETY: the functions in `raw` take any object that is alive, and this thread is attached.
    taken(py, kept(|| unsafe { function(object.as_ptr()) }))
}

/// The same with a second object.
fn call_with<'py>(
    function: unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject) -> *mut PyObject,
    object: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = may_unwind(function);
    // SAFETY: as above; callers pass what the function takes as its second object.
    required(taken(object.py(), kept(|| unsafe { function(object.as_ptr(), other.as_ptr()) })))
}

/// Hides which function it is. Link-time optimisation joins the declarations above with those of pyo3, which say that the same
/// functions never unwind, and then takes away what keeps the thread.
fn may_unwind<F>(function: F) -> F {
    std::hint::black_box(function)
}

/// Makes a call of the C interface from which the thread may not come back.
fn kept<T>(call: impl FnOnce() -> T) -> T {
    let guard = StayHere;
    let result = call();
    std::mem::forget(guard);
    result
}

/// What a call gave that returns a new reference, or null and perhaps an exception.
fn taken(py: Python<'_>, result: *mut PyObject) -> Option<PyResult<Bound<'_, PyAny>>> {
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

/// Fills `view` with the memory of an object, whose class may have a `__buffer__`.
///
/// # Safety
/// `view` stays where it is until it is released.
pub(super) unsafe fn buffer(object: &Bound<'_, PyAny>, view: &mut Py_buffer, flags: c_int) -> PyResult<()> {
    let function = may_unwind(raw::PyObject_GetBuffer);
    // SAFETY: the object is alive, this thread is attached, and the caller keeps `view` in place.
    let status = kept(|| unsafe { function(object.as_ptr(), &raw mut *view, flags) });
    if status == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
}

/// Lets go of an object, which may run what is left of a generator.
pub(super) fn release<T>(object: Bound<'_, T>) {
    let function = may_unwind(raw::Py_DecRef);
    // SAFETY: the reference is given away, and this thread is attached.
    kept(|| unsafe { function(object.into_ptr()) });
}

/// Only the end of an iteration is null without an exception.
fn required(result: Option<PyResult<Bound<'_, PyAny>>>) -> PyResult<Bound<'_, PyAny>> {
    result.unwrap_or_else(|| Err(PyStopIteration::new_err(())))
}
