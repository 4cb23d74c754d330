//! Memory of Python objects: the buffer protocol, and `bytes` whose content other threads read.
#![expect(unsafe_code, reason = "the buffer protocol is a C interface")]

use std::ffi::CStr;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::to_py_err;
use crate::memory::filled;
use crate::reader::PayloadBuffer;
use crate::writer::SharedBytes;

/// A view of the memory that an object exports, of any shape and strides. The exporter keeps it in place meanwhile.
pub(super) struct BufferView<'py> {
    py: Python<'py>,
    // Exporters may keep pointers into the structure, so it stays where it is.
    view: Box<ffi::Py_buffer>,
}

impl<'py> BufferView<'py> {
    /// Whether the object speaks the protocol at all.
    pub(super) fn is_supported(object: &Bound<'py, PyAny>) -> bool {
        // SAFETY: the object is alive and the interpreter is attached.
        unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
    }

    /// Asks for the memory.
    pub(super) fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object is alive, and `view` is writable and does not move until it is released.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { py: object.py(), view })
    }

    /// Whether the elements, or fields of them, are references to Python objects.
    pub(super) fn holds_objects(&self) -> bool {
        if self.view.format.is_null() {
            return false;
        }
        // SAFETY: a format is a string that lives as long as the view.
        let format = unsafe { CStr::from_ptr(self.view.format) }.to_bytes();
        // Names of fields stand between colons and say nothing about types.
        format.split(|byte| *byte == b':').step_by(2).any(|types| types.contains(&b'O'))
    }

    /// The bytes where they are, if their order in memory is that of the elements.
    pub(super) fn as_contiguous(&self) -> Option<&[u8]> {
        // SAFETY: the view was filled by its exporter.
        let contiguous = unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.view, ORDER) } != 0;
        if !contiguous {
            return None;
        }
        let len = usize::try_from(self.view.len).unwrap_or(0);
        if len == 0 {
            return Some(&[]);
        }
        // SAFETY: a contiguous view has `len` readable bytes from `buf`, which the exporter keeps in place until release.
        // The interpreter is attached, and whoever holds the slice runs no Python code, so nobody writes meanwhile.
        Some(unsafe { slice::from_raw_parts(self.view.buf.cast::<u8>(), len) })
    }

    /// The bytes in the order of the elements, last index fastest.
    pub(super) fn gather(&self) -> PyResult<Vec<u8>> {
        let len = usize::try_from(self.view.len).unwrap_or(0);
        let mut bytes = filled(0_u8, len, "a copy of a payload").map_err(|error| to_py_err(&error))?;
        // SAFETY: the target has exactly `len` bytes, and the view is valid.
        let status = unsafe {
            ffi::PyBuffer_ToContiguous(bytes.as_mut_ptr().cast(), &raw const *self.view, self.view.len, ORDER)
        };
        if status == 0 { Ok(bytes) } else { Err(PyErr::fetch(self.py)) }
    }
}

/// Row-major, in the words of the protocol.
const ORDER: std::ffi::c_char = b'C'.cast_signed();

impl Drop for BufferView<'_> {
    fn drop(&mut self) {
        // SAFETY: the view was acquired once and is released once, with the interpreter attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}

/// A `bytes` object whose content is read without the interpreter.
pub(super) struct SharedPyBytes {
    start: *const u8,
    len: usize,
    // Keeps the memory alive. When it goes on a thread without the interpreter, pyo3 drops it later on one that has it.
    _owner: Py<PyBytes>,
}

impl SharedPyBytes {
    pub(super) fn new(bytes: &Bound<'_, PyBytes>) -> Self {
        let content = bytes.as_bytes();
        Self { start: content.as_ptr(), len: content.len(), _owner: bytes.clone().unbind() }
    }
}

// SAFETY: the memory of `bytes` never changes or moves while the object lives, and the object itself is not touched.
unsafe impl Send for SharedPyBytes {}
// SAFETY: as above; all access is reading.
unsafe impl Sync for SharedPyBytes {}

impl SharedBytes for SharedPyBytes {
    fn as_slice(&self) -> &[u8] {
        // SAFETY: the owner is alive and its content does not change.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

/// A `bytes` object that is being filled and that nobody else has seen yet.
pub(super) struct NewBytes {
    start: *mut u8,
    object: Py<PyBytes>,
}

// SAFETY: only the bytes are touched away from the interpreter, see `PayloadBuffer`; they do not move.
unsafe impl Send for NewBytes {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl Sync for NewBytes {}

impl NewBytes {
    /// The finished object.
    pub(super) fn into_object(self) -> Py<PyBytes> {
        self.object
    }
}

// SAFETY: a `bytes` object keeps its bytes in one place. Nobody reads them before `into_object`, which comes after they
// are filled.
unsafe impl PayloadBuffer for NewBytes {
    fn allocate(len: usize) -> Option<Self> {
        let size = ffi::Py_ssize_t::try_from(len).ok()?;
        // SAFETY: the reader allocates on the thread that called it and not while it waits, and nothing in here calls
        // it without the interpreter.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: without a source the bytes are left as they are; a null result is an exception, taken right here.
        let object =
            unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyBytes_FromStringAndSize(std::ptr::null(), size)) };
        let Some(object) = object else {
            drop(PyErr::take(py));
            return None;
        };
        // SAFETY: the object is a `bytes`.
        let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>();
        // SAFETY: as above.
        Some(Self { start, object: unsafe { object.cast_into_unchecked() }.unbind() })
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    unsafe fn assume_filled(&mut self, _len: usize) {}
}
