//! `CacheSummary`: what a cache consists of.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::error::to_py_err;
use crate::format::manifest::FormatVersion;
use crate::reader;

/// What a cache consists of, without its samples.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(super) struct CacheSummary {
    core: reader::CacheSummary,
}

#[pymethods]
impl CacheSummary {
    /// Looks at the cache in a directory.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let core = py.detach(|| reader::CacheSummary::open(path)).map_err(|error| to_py_err(&error))?;
        Ok(Self { core })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.core.path.clone()
    }

    #[getter]
    fn format_version(&self) -> u32 {
        match self.core.version {
            FormatVersion::V2 => 2,
            FormatVersion::V3 => 3,
        }
    }

    #[getter]
    fn cache_id(&self) -> Option<u64> {
        self.core.cache_id.map(|id| id.0)
    }

    #[getter]
    fn source_name(&self) -> &str {
        &self.core.source_name
    }

    #[getter]
    fn fingerprint(&self) -> Option<&str> {
        self.core.source_fingerprint.as_deref()
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.core.sample_count
    }

    #[getter]
    fn payload_bytes(&self) -> u64 {
        self.core.payload_bytes
    }

    #[getter]
    fn file_bytes(&self) -> u64 {
        self.core.file_bytes
    }

    #[getter]
    fn shards(&self) -> usize {
        self.core.shard_count
    }

    #[getter]
    fn compression(&self) -> Vec<&'static str> {
        self.core.compression.iter().map(|algo| algo.as_str()).collect()
    }

    /// Names and kinds of the metadata columns.
    #[getter]
    fn schema(&self) -> Vec<(&str, &'static str)> {
        self.core.schema.iter().map(|field| (field.name.as_str(), field.kind.as_str())).collect()
    }

    #[getter]
    fn has_record_checksums(&self) -> bool {
        self.core.has_record_checksums
    }
}
