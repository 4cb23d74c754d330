//! `SampleIterator`: what `iter(dataset)` gives. Threads may share one; each sample goes to one of them.
#![expect(
    unsafe_code,
    reason = "the samples at hand are claimed without a lock, which only the interpreter can promise"
)]

use std::cell::UnsafeCell;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyList, PyString};

use super::buffer::NewBytes;
use super::enter::enter;
use super::error::to_py_err;
use super::sample::SampleFactory;
use super::text::TextCache;
use super::turns::Turns;
use crate::dataset::SampleStream;
use crate::error::Result;
use crate::reader::{CacheSet, Chunk, Taken};

/// Samples of one window, in the order of its draws.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(super) struct SampleIterator {
    factory: Arc<SampleFactory>,
    caches: Arc<CacheSet>,
    /// Samples that are ready to be handed out. Only touched within a critical section on this object, and never by
    /// anything that could run Python code, so that with a global lock nothing else is needed.
    ready: UnsafeCell<Chunk<NewBytes>>,
    /// Texts that come again. Only touched as `ready` is.
    texts: UnsafeCell<TextCache>,
    /// Where more of them come from.
    turns: Turns,
}

// SAFETY: `ready` and `texts` are only touched within a critical section, see there; everything else is `Sync`.
unsafe impl Sync for SampleIterator {}

impl SampleIterator {
    pub(super) fn new(stream: SampleStream<NewBytes>, factory: Arc<SampleFactory>) -> Result<Self> {
        Ok(Self {
            factory,
            caches: Arc::clone(stream.caches()),
            texts: UnsafeCell::new(TextCache::new(stream.caches().schema().fields().len())),
            ready: UnsafeCell::default(),
            turns: Turns::new(stream)?,
        })
    }

    /// Takes the next sample at hand for the caller alone.
    #[inline]
    fn claim(slf: &Bound<'_, Self>) -> Option<Taken<NewBytes>> {
        // SAFETY: within the section, see `ready`; taking an element out of a vector runs no Python code.
        with_critical_section(slf.as_any(), || unsafe { (*slf.get().ready.get()).next() })
    }

    /// Takes the next sample for the caller alone; `None` at the end of the window.
    #[inline]
    fn next_sample(slf: &Bound<'_, Self>) -> PyResult<Option<Taken<NewBytes>>> {
        match Self::claim(slf) {
            Some(sample) => Ok(Some(sample)),
            None => Self::refill(slf),
        }
    }

    /// Makes the Python object of a sample.
    #[inline]
    fn build<'py>(slf: &Bound<'py, Self>, sample: Taken<NewBytes>) -> PyResult<Bound<'py, PyAny>> {
        let iterator = slf.get();
        let text = |column, bytes: &[u8]| Self::text(slf, column, bytes);
        iterator.factory.build(slf.py(), &iterator.caches, sample.read(&iterator.caches), text)
    }

    /// The Python string of UTF-8 bytes in a column.
    #[inline]
    fn text(slf: &Bound<'_, Self>, column: usize, bytes: &[u8]) -> PyResult<Py<PyString>> {
        let py = slf.py();
        let texts = slf.get().texts.get();
        // SAFETY: within the section, see `ready`; nothing in a text cache runs Python code.
        if let Some(text) = with_critical_section(slf.as_any(), || unsafe { (*texts).find(py, column, bytes) }) {
            return Ok(text);
        }
        // Outside: an error is an object, for which the interpreter may collect garbage, and that may come back here.
        let text = PyString::from_bytes(py, bytes)?.unbind();
        // SAFETY: as above.
        with_critical_section(slf.as_any(), || unsafe { (*texts).remember(py, column, bytes, &text) });
        Ok(text)
    }

    /// Makes samples available and takes the first of them; `None` at the end of the window.
    #[cold]
    fn refill(slf: &Bound<'_, Self>) -> PyResult<Option<Taken<NewBytes>>> {
        enter(slf.py(), |waiter, _| {
            let mut turn = slf.get().turns.take(slf.py(), waiter)?;
            loop {
                // Somebody else may have been here while this thread waited for its turn.
                if let Some(sample) = Self::claim(slf) {
                    return Ok(Some(sample));
                }
                let Some(chunk) = turn.next_chunk(waiter)? else { return Ok(None) };
                // SAFETY: within the section, see `ready`. What is replaced holds no samples any more: only whoever
                // has the turn refills, and it has just found nothing.
                let exhausted = with_critical_section(slf.as_any(), || unsafe {
                    std::mem::replace(&mut *slf.get().ready.get(), chunk)
                });
                drop(exhausted);
            }
        })
    }
}

#[pymethods]
impl SampleIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        if slf.get().turns.is_inherited() {
            return "SampleIterator(of a parent process)".to_owned();
        }
        match slf.get().turns.progress() {
            Some((window, delivered)) => {
                // SAFETY: within the section, see `ready`; nothing is changed.
                let ready = with_critical_section(slf.as_any(), || unsafe { (*slf.get().ready.get()).len() });
                format!("SampleIterator({} of {window} samples left)", window - delivered + ready as u64)
            }
            None => "SampleIterator(being advanced by another thread)".to_owned(),
        }
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let iterator = slf.get();
        iterator.turns.check().map_err(|error| to_py_err(&error))?;
        let claimed = Self::next_sample(slf)?;
        claimed.map(|sample| Self::build(slf, sample)).transpose()
    }

    /// The next samples, `size` of them unless the window ends before; none behind its end. If one cannot be read, the
    /// whole batch is its error, and the next batch begins behind this one.
    fn next_batch<'py>(slf: &Bound<'py, Self>, size: u64) -> PyResult<Bound<'py, PyList>> {
        let iterator = slf.get();
        iterator.turns.check().map_err(|error| to_py_err(&error))?;
        let mut batch = Vec::new();
        let mut failure = None;
        for _ in 0..size {
            let Some(sample) = Self::next_sample(slf)? else { break };
            match Self::build(slf, sample) {
                Ok(sample) => batch.push(sample),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or_else(|| PyList::new(slf.py(), batch), Err)
    }
}
