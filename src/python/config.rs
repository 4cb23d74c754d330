//! Configurations: the fields of the frozen Python objects, checked again by the core.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::format::compression::{Compression, CompressionAlgo};
use crate::{reader, writer};

/// `WriterConfig`, as far as one process is concerned.
#[derive(FromPyObject)]
pub(super) struct WriterConfig {
    prefetch_size: u64,
    max_shard_bytes: u64,
    shard_compression: ShardCompression,
    show_progress: bool,
    validate_cache: bool,
    profiler: Profiler,
}

#[derive(FromPyObject)]
struct ShardCompression {
    algo: String,
    ratio: f64,
}

#[derive(FromPyObject)]
struct Profiler {
    enabled: bool,
    path: PathBuf,
}

/// `ReaderConfig`.
#[derive(FromPyObject)]
pub(super) struct ReaderConfig {
    seed: u64,
    prefetch_size: u64,
    shuffle: bool,
    validate_cache: bool,
}

impl WriterConfig {
    pub(super) fn into_core(self) -> PyResult<writer::WriterConfig> {
        let ShardCompression { algo, ratio } = self.shard_compression;
        let algo = CompressionAlgo::from_name(&algo).ok_or_else(|| {
            PyValueError::new_err(format!("compression algo must be \"none\" or \"lz4\", found {algo:?}"))
        })?;
        Ok(writer::WriterConfig {
            prefetch_size: self.prefetch_size,
            max_shard_bytes: self.max_shard_bytes,
            compression: Compression { algo, ratio },
            show_progress: self.show_progress,
            validate_cache: self.validate_cache,
            profiler: self.profiler.enabled.then_some(self.profiler.path),
        })
    }
}

impl ReaderConfig {
    pub(super) fn into_core(self) -> reader::ReaderConfig {
        let Self { seed, prefetch_size, shuffle, validate_cache } = self;
        reader::ReaderConfig { seed, prefetch_size, shuffle, validate_cache }
    }
}
