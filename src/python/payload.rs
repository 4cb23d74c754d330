//! Payloads on their way in: what counts as bytes, and taking them without a copy where nothing can change them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use super::buffer::{BufferView, PIECE_BYTES, SharedPyBytes};
use super::enter::pause;
use super::scalar::Numpy;
use crate::writer::{PayloadRef, SHARE_FROM};

/// The first element of what a source yielded, held so that its bytes can be looked at.
pub(super) enum Payload<'py> {
    /// Bytes that nobody can change.
    Bytes(Bound<'py, PyBytes>),
    /// Memory that is copied when the sample is taken over.
    View(BufferView<'py>),
    /// Memory that took long to copy.
    Copy(Arc<Vec<u8>>),
}

impl<'py> Payload<'py> {
    /// Holds `data`, or says why it is no payload.
    pub(super) fn new(data: Bound<'py, PyAny>, numpy: &mut Numpy) -> PyResult<Result<Self, String>> {
        let data = match data.cast_into::<PyBytes>() {
            Ok(bytes) => return Ok(Ok(Self::Bytes(bytes))),
            Err(other) => other.into_inner(),
        };
        // A NumPy scalar exports its memory, but it is a number and its bytes are those of one machine.
        if !BufferView::is_supported(&data) || numpy.is_scalar(&data)? {
            let found = data.get_type().fully_qualified_name()?;
            return Ok(Err(format!(
                "data must be bytes-like (bytes, bytearray, memoryview or another buffer), found {found}; \
                 serialise it to bytes first"
            )));
        }
        let view = match BufferView::new(&data) {
            Ok(view) => view,
            Err(error)
                if error.is_instance_of::<PyValueError>(data.py()) && data.is_exact_instance_of::<PyMemoryView>() =>
            {
                let text = "data must be bytes-like, found a released memoryview; release it only after the write";
                return Ok(Err(text.to_owned()));
            }
            // An array of dates, for example: the protocol has no word for them.
            Err(error) if error.is_instance_of::<PyValueError>(data.py()) => {
                let found = data.get_type().fully_qualified_name()?;
                return Ok(Err(format!(
                    "data must be bytes-like, found {found}, which does not show its memory ({}); \
                     convert it to bytes, as with .tobytes()",
                    error.value(data.py())
                )));
            }
            Err(error) => return Err(error),
        };
        if view.holds_objects() {
            return Ok(Err(
                "data must be bytes-like, found a buffer of Python objects; serialise them first".to_owned()
            ));
        }
        if view.len() <= PIECE_BYTES {
            return Ok(Ok(Self::View(view)));
        }
        Ok(Ok(Self::Copy(Arc::new(view.copy(|| pause(data.py()))?))))
    }

    /// Calls `take` with the bytes. No Python code runs between looking at them and the return of `take`.
    pub(super) fn with<T>(&self, take: impl FnOnce(PayloadRef<'_>) -> T) -> PyResult<T> {
        match self {
            Self::Bytes(bytes) if bytes.as_bytes().len() >= SHARE_FROM => {
                Ok(take(PayloadRef::Shared(Box::new(SharedPyBytes::new(bytes)))))
            }
            Self::Bytes(bytes) => Ok(take(PayloadRef::Copied(bytes.as_bytes()))),
            Self::View(view) => match view.as_contiguous() {
                Some(bytes) => Ok(take(PayloadRef::Copied(bytes))),
                None => Ok(take(PayloadRef::Copied(&view.copy(|| Ok(()))?))),
            },
            Self::Copy(bytes) => Ok(take(PayloadRef::Shared(Box::new(Arc::clone(bytes))))),
        }
    }
}
