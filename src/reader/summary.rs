//! What a cache consists of, for people and programs that want to know without reading samples.

use std::path::{Path, PathBuf};

use super::cache::OpenedCache;
use crate::error::{Error, Result};
use crate::format::compression::CompressionAlgo;
use crate::format::manifest::FormatVersion;
use crate::format::schema::Field;
use crate::fs::{INDEX_FILE, MANIFEST_FILE, METADATA_FILE};
use crate::ids::CacheId;

/// What the manifest and the lengths of the files of a cache say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSummary {
    /// Absolute path of its directory, without symbolic links.
    pub path: PathBuf,
    /// Version of its manifest.
    pub version: FormatVersion,
    /// Its stored identity; version 2 has none.
    pub cache_id: Option<CacheId>,
    /// Name of the source it was written from.
    pub source_name: String,
    /// Fingerprint of that source, if it had one.
    pub source_fingerprint: Option<String>,
    /// Number of samples.
    pub sample_count: u64,
    /// Payload bytes of all samples before compression.
    pub payload_bytes: u64,
    /// Bytes of all its files.
    pub file_bytes: u64,
    /// Number of shards.
    pub shard_count: usize,
    /// How the shards store payloads: each way once, in the order of the shards.
    pub compression: Vec<CompressionAlgo>,
    /// Its metadata columns, in the order of its table.
    pub schema: Vec<Field>,
    /// Whether single records have checksums.
    pub has_record_checksums: bool,
}

impl CacheSummary {
    /// Opens the cache in the directory `path`, compares the lengths of its files with the manifest, and sums up.
    ///
    /// # Errors
    /// As [`Cache::open`](super::Cache::open).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let OpenedCache { cache, manifest } = OpenedCache::open(path.as_ref(), 0)?;
        cache.check_shards(0..cache.shard_count())?;
        let mut file_bytes = cache.shard_bytes();
        let checksums = manifest.record_checksums.as_ref().map(|stated| stated.file.as_str());
        for file in [MANIFEST_FILE, METADATA_FILE, INDEX_FILE].into_iter().chain(checksums) {
            let file = cache.path().join(file);
            let found = std::fs::metadata(&file).map_err(|error| Error::file("inspect", &file, error))?;
            file_bytes = file_bytes.saturating_add(found.len());
        }
        let mut compression = Vec::new();
        for shard in &manifest.shards {
            if !compression.contains(&shard.compression.algo) {
                compression.push(shard.compression.algo);
            }
        }
        let payload_bytes = manifest.shards.iter().map(|shard| shard.uncompressed_byte_len);
        Ok(Self {
            path: cache.path().to_path_buf(),
            version: manifest.version,
            cache_id: manifest.cache_id,
            source_name: manifest.source_name,
            source_fingerprint: manifest.source_fingerprint,
            sample_count: manifest.sample_count,
            payload_bytes: payload_bytes.fold(0, u64::saturating_add),
            file_bytes,
            shard_count: manifest.shards.len(),
            compression,
            schema: manifest.metadata_schema,
            has_record_checksums: manifest.record_checksums.is_some(),
        })
    }
}
