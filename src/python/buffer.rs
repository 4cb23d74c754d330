//! Memory of Python objects: the buffer protocol, and `bytes` whose content other threads read.
#![expect(unsafe_code, reason = "the buffer protocol is a C interface")]

use std::ffi::CStr;
use std::slice;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::calls;
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
        // SAFETY: what the box holds does not move until it is released.
        unsafe { calls::buffer(object, &mut view, ffi::PyBUF_FULL_RO) }?;
        let view = Self { py: object.py(), view };
        if view.view.len < 0 {
            let text = format!("a buffer of {} bytes; this object breaks the buffer protocol", view.view.len);
            return Err(PyBufferError::new_err(text));
        }
        Ok(view)
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
        // Without a shape there is one row of bytes, and without strides there are no gaps.
        let contiguous = self.view.shape.is_null() || self.view.strides.is_null() || {
            // SAFETY: the view was filled by its exporter.
            unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.view, ORDER) != 0 }
        };
        if !contiguous {
            return None;
        }
        let len = self.len();
        if len == 0 {
            return Some(&[]);
        }
        // SAFETY: a contiguous view has `len` readable bytes from `buf`, which the exporter keeps in place until release.
        // The interpreter is attached, and whoever holds the slice runs no Python code, so nobody writes meanwhile.
        Some(unsafe { slice::from_raw_parts(self.view.buf.cast::<u8>(), len) })
    }

    /// How many bytes the elements have.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }

    /// A copy of the bytes in the order of the elements, last index fastest. It is made in pieces, and `between` is called
    /// before each: code of the user may run there, also in other threads, and what it writes may be in the copy.
    pub(super) fn copy(&self, mut between: impl FnMut() -> PyResult<()>) -> PyResult<Vec<u8>> {
        let mut bytes = filled(0_u8, self.len(), "a copy of a payload").map_err(|error| to_py_err(&error))?;
        if self.as_contiguous().is_none() {
            // SAFETY: the structure is plain data. The copy is never released, and the view outlives it.
            let whole = unsafe { std::ptr::read(&raw const *self.view) };
            // SAFETY: memory with gaps has a shape and strides, see `as_contiguous`, and the target has its length.
            unsafe { copy_with_gaps(self.py, whole, &mut bytes, &mut between) }?;
            return Ok(bytes);
        }
        let mut start = 0;
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            between()?;
            // Looked at anew for each piece: other code has run meanwhile.
            let source = self.as_contiguous().and_then(|bytes| bytes.get(start..start + piece.len()));
            piece.copy_from_slice(source.unwrap_or_default());
            start += piece.len();
        }
        Ok(bytes)
    }
}

/// Copies the elements of `part` to `target`, in pieces with `between` before each.
///
/// # Safety
/// `part` is a view, or a part of one, that the exporter keeps in place. Its shape and strides have `ndim` numbers, its
/// suboffsets as many unless they are null, and its elements have as many bytes as `target`.
unsafe fn copy_with_gaps(
    py: Python<'_>,
    mut part: ffi::Py_buffer,
    target: &mut [u8],
    between: &mut dyn FnMut() -> PyResult<()>,
) -> PyResult<()> {
    part.len = target.len().cast_signed();
    if target.len() <= PIECE_BYTES || part.ndim == 0 {
        between()?;
        // SAFETY: the target has exactly `len` bytes, and the part is valid as the caller says.
        let status =
            unsafe { ffi::PyBuffer_ToContiguous(target.as_mut_ptr().cast(), &raw const part, part.len, ORDER) };
        return if status == 0 { Ok(()) } else { Err(PyErr::fetch(py)) };
    }
    // SAFETY: there is a first dimension.
    let (extent, stride) = unsafe { (*part.shape, *part.strides) };
    let slice = target.len() / usize::try_from(extent).unwrap_or(1).max(1);
    // Several values of the first index at once, or parts of a single one where that has very many elements.
    let step = if slice <= PIECE_BYTES { PIECE_BYTES / slice.max(1) } else { 1 };
    for (number, piece) in target.chunks_mut(step * slice).enumerate() {
        let mut next = part;
        // SAFETY: this is where the exporter says the elements with this first index begin.
        next.buf = unsafe { part.buf.cast::<u8>().offset(stride * (number * step).cast_signed()) }.cast();
        let mut shape;
        if slice <= PIECE_BYTES {
            // SAFETY: as the caller says.
            shape = unsafe { slice::from_raw_parts(part.shape, usize::try_from(part.ndim).unwrap_or(0)) }.to_vec();
            if let Some(extent) = shape.first_mut() {
                *extent = (piece.len() / slice.max(1)).cast_signed();
            }
            next.shape = shape.as_mut_ptr();
        } else {
            // SAFETY: the dimension that is left out has its number in each of these; where it says so, the elements lie
            // behind a pointer (the rule of the protocol for suboffsets).
            unsafe {
                if !part.suboffsets.is_null() {
                    if *part.suboffsets >= 0 {
                        next.buf = (*next.buf.cast::<*mut u8>()).offset(*part.suboffsets).cast();
                    }
                    next.suboffsets = part.suboffsets.add(1);
                }
                (next.shape, next.strides) = (part.shape.add(1), part.strides.add(1));
            }
            next.ndim -= 1;
            if next.ndim == 0 {
                next.suboffsets = std::ptr::null_mut();
            }
        }
        // SAFETY: a part of what the caller vouches for.
        unsafe { copy_with_gaps(py, next, piece, between) }?;
    }
    Ok(())
}

/// Bytes that are copied without a look at whether somebody else wants the interpreter.
pub(super) const PIECE_BYTES: usize = 4 << 20;

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
