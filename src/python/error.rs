//! The one table from errors of the core to Python exceptions.

use std::io;
use std::path::Path;

use pyo3::exceptions::{
    PyFileExistsError, PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;

use crate::error::Error;

/// The exception for an error of the core.
pub(super) fn to_py_err(error: &Error) -> PyErr {
    exception(error, error.to_string())
}

/// The class that the cause decides, with the message of the outermost error.
fn exception(cause: &Error, message: String) -> PyErr {
    match cause {
        Error::InvalidValue(_) | Error::InvalidCache { .. } => PyValueError::new_err(message),
        Error::WrongType(_) => PyTypeError::new_err(message),
        Error::File { action, path, source } => os_error(action, path, source, message),
        Error::AlreadyExists { path, detail } => {
            PyFileExistsError::new_err((libc::EEXIST, detail.clone(), path.clone().into_os_string()))
        }
        Error::UnknownSample(_) => PyIndexError::new_err(message),
        Error::Sample { cache_path, cache_id, sample_id, source } => match &**source {
            Error::File { action, path, source } => {
                let sample = format!("{action} (sample {sample_id} of cache {cache_id} in {})", cache_path.display());
                os_error(&sample, path, source, message)
            }
            source => exception(source, message),
        },
        Error::OutOfMemory { .. } => PyMemoryError::new_err(message),
        Error::Unusable(_) | Error::Panicked(_) => PyRuntimeError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// `OSError` with errno and filename, so that Python picks the subclass; without an errno there are only two cases.
fn os_error(action: &str, path: &Path, source: &io::Error, message: String) -> PyErr {
    if source.kind() == io::ErrorKind::InvalidInput && source.raw_os_error().is_none() {
        // A path that no system call accepts, such as one with a NUL.
        return PyValueError::new_err(message);
    }
    let reason = source.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let errno = source.raw_os_error().unwrap_or(match source.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::NotADirectory => libc::ENOTDIR,
        io::ErrorKind::IsADirectory => libc::EISDIR,
        _ => libc::EIO,
    });
    PyOSError::new_err((errno, format!("cannot {action}: {reason}"), path.as_os_str().to_owned()))
}
