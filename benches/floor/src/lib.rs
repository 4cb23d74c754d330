//! What reading is measured against: the same objects made by native code that does as little as possible.
//!
//! It trusts every byte, looks nothing up ahead, shares no texts and knows one layout: three columns, an int, a float and a text.

use std::fs::File;
use std::path::PathBuf;

use memmap2::Mmap;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyString, PyType};

/// Makes tuples of one class with one cache id.
struct Factory {
    class: Py<PyType>,
    keys: [Py<PyString>; 3],
    cache_id: Py<PyAny>,
}

impl Factory {
    fn new(py: Python<'_>, class: Py<PyType>, names: [String; 3], cache_id: u64) -> PyResult<Self> {
        let keys = names.map(|name| PyString::intern(py, &name).unbind());
        Ok(Self { class, keys, cache_id: cache_id.into_pyobject(py)?.into_any().unbind() })
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
        (int, float, text): (i64, f64, &str),
        row: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let [first, second, third] = &self.keys;
        let metadata = PyDict::new(py);
        metadata.set_item(first, int)?;
        metadata.set_item(second, PyFloat::new(py, float))?;
        metadata.set_item(third, PyString::new(py, text))?;
        let data = PyBytes::new(py, payload);
        let row = row.into_pyobject(py)?;
        // SAFETY: the class is a subclass of `tuple` with four fields; nobody sees it before it is filled.
        unsafe {
            let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 4))?;
            ffi::PyTuple_SetItem(tuple.as_ptr(), 0, data.into_ptr());
            ffi::PyTuple_SetItem(tuple.as_ptr(), 1, metadata.into_ptr());
            ffi::PyTuple_SetItem(tuple.as_ptr(), 2, self.cache_id.clone_ref(py).into_ptr());
            ffi::PyTuple_SetItem(tuple.as_ptr(), 3, row.into_ptr());
            Ok(tuple)
        }
    }
}

/// Hands out samples that are made of nothing: what the objects alone cost.
#[pyclass]
struct Objects {
    factory: Factory,
    payload: Vec<u8>,
    left: u64,
}

#[pymethods]
impl Objects {
    #[new]
    fn new(py: Python<'_>, class: Py<PyType>, names: [String; 3], payload_bytes: usize, count: u64) -> PyResult<Self> {
        Ok(Self { factory: Factory::new(py, class, names, 1_000_000)?, payload: vec![7; payload_bytes], left: count })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let int = i64::try_from(self.left)?;
        self.factory.sample(py, &self.payload, (int, 0.5, "train"), self.left).map(Some)
    }
}

/// The files of one cache, mapped, and its metadata in native memory.
#[pyclass(frozen)]
struct NaiveReader {
    factory: Factory,
    index: Mmap,
    shards: Vec<Mmap>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    ends: Vec<usize>,
    text: String,
}

#[pymethods]
impl NaiveReader {
    #[new]
    fn new(
        py: Python<'_>,
        class: Py<PyType>,
        cache_id: u64,
        index: PathBuf,
        shards: Vec<PathBuf>,
        columns: (Vec<i64>, Vec<f64>, Vec<String>),
        names: [String; 3],
    ) -> PyResult<Self> {
        let map = |path: PathBuf| -> PyResult<Mmap> {
            // SAFETY: nobody changes the files of a benchmark.
            Ok(unsafe { Mmap::map(&File::open(path)?)? })
        };
        let (ints, floats, texts) = columns;
        let mut text = String::new();
        let mut ends = vec![0];
        for part in texts {
            text.push_str(&part);
            ends.push(text.len());
        }
        Ok(Self {
            factory: Factory::new(py, class, names, cache_id)?,
            index: map(index)?,
            shards: shards.into_iter().map(map).collect::<PyResult<_>>()?,
            ints,
            floats,
            ends,
            text,
        })
    }

    /// Samples in the given order.
    fn samples(slf: Py<Self>, order: Vec<u64>) -> NaiveSamples {
        NaiveSamples { reader: slf, order: order.into_iter() }
    }

    /// One sample.
    fn get_item<'py>(&self, py: Python<'py>, _cache_id: u64, row: u64) -> PyResult<Bound<'py, PyAny>> {
        self.sample(py, row)
    }
}

impl NaiveReader {
    fn sample<'py>(&self, py: Python<'py>, row: u64) -> PyResult<Bound<'py, PyAny>> {
        let at = usize::try_from(row)?;
        let word = |bytes: &[u8], start: usize| -> PyResult<usize> {
            let word = bytes.get(start..).and_then(|rest| rest.first_chunk()).ok_or_else(no_row)?;
            Ok(usize::try_from(u64::from_le_bytes(*word))?)
        };
        let (shard, offset, length) =
            (word(&self.index, at * 24)?, word(&self.index, at * 24 + 8)?, word(&self.index, at * 24 + 16)?);
        let shard = self.shards.get(shard).ok_or_else(no_row)?;
        let start = offset + 8 + word(shard, offset)?;
        let payload = shard.get(start..offset + length).ok_or_else(no_row)?;
        let text = self.text.get(self.ends[at]..self.ends[at + 1]).ok_or_else(no_row)?;
        self.factory.sample(py, payload, (self.ints[at], self.floats[at], text), row)
    }
}

#[pyclass]
struct NaiveSamples {
    reader: Py<NaiveReader>,
    order: std::vec::IntoIter<u64>,
}

#[pymethods]
impl NaiveSamples {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.order.next().map(|row| self.reader.get().sample(py, row)).transpose()
    }
}

fn no_row() -> PyErr {
    PyValueError::new_err("the cache has no such row")
}

#[pymodule]
mod native_floor {
    #[pymodule_export]
    use super::{NaiveReader, Objects};
}
