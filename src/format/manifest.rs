//! `manifest.json`, whatever its version: what a cache consists of.

use std::path::Path;

use super::compression::Compression;
use super::schema::Field;
use super::{RESTORE, manifest_v2, manifest_v3};
use crate::error::{Error, Result};
use crate::ids::CacheId;

/// Characters of a hexadecimal BLAKE3 or SHA-256 digest.
const DIGEST_CHARS: usize = 64;

/// Format versions that can be read. New caches are written as version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FormatVersion {
    /// Without a stored cache id: the position of the path in the call stands for it.
    V2,
    /// With a stored cache id.
    V3,
}

/// One shard as the manifest describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardEntry {
    /// File name within the directory of shards; a plain path segment.
    pub name: String,
    /// Sum of the payload lengths before compression.
    pub uncompressed_byte_len: u64,
    /// Length of the file.
    pub byte_len: u64,
    /// How its payloads are stored.
    pub compression: Compression,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// The file with one checksum for each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChecksums {
    /// File name within the cache; a plain path segment.
    pub file: String,
    /// SHA-256 of that file.
    pub sha256: String,
}

/// The content of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Version it was read as. Writing always makes version 3.
    pub version: FormatVersion,
    /// Present exactly in version 3.
    pub cache_id: Option<CacheId>,
    /// Name of the source the cache was made from.
    pub source_name: String,
    /// Number of samples.
    pub sample_count: u64,
    /// Columns in the order of `metadata.arrow`.
    pub metadata_schema: Vec<Field>,
    /// SHA-256 of `metadata.arrow`.
    pub metadata_sha256: String,
    /// SHA-256 of `index.bin`.
    pub index_sha256: String,
    /// Shards; their position is what the index refers to.
    pub shards: Vec<ShardEntry>,
    /// Checksums of single records, where the cache has them.
    pub record_checksums: Option<RecordChecksums>,
    /// What the source said about the state of its data.
    pub source_fingerprint: Option<String>,
    /// Checksum of the manifest itself as it was read. Writing computes it anew.
    pub manifest_checksum: Option<String>,
}

impl Manifest {
    /// Reads the content of a manifest file; `path` is for messages only.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when it is no manifest of a known version.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let invalid = |detail: String| {
            let advice = if detail.contains("write the cache again") { "" } else { RESTORE };
            Error::invalid_cache(path, format!("expected a cache manifest, found {detail}{advice}"))
        };
        let text = std::str::from_utf8(bytes).map_err(|error| invalid(format!("invalid UTF-8: {error}")))?;
        // What another version means by a key may be anything: its number comes first.
        let raw = manifest_v2::RawManifest::parse(text)
            .map_err(|found| invalid(manifest_v2::other_version(text).unwrap_or(found)))?;
        raw.into_manifest().map_err(invalid)
    }

    /// Compares a version 3 manifest with the checksum it carries. Other versions and manifests without one pass.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when it is no manifest or was changed after it was written.
    pub fn verify_checksum(path: &Path, bytes: &[u8]) -> Result<()> {
        let manifest = Self::parse(path, bytes)?;
        match (manifest.version, &manifest.manifest_checksum) {
            (FormatVersion::V3, Some(expected)) if !manifest_v3::checksum_holds(bytes, expected) => {
                Err(Error::invalid_cache(
                    path,
                    "manifest_checksum does not match: the manifest was changed or damaged after it was written; \
                     write the cache again",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Digest of everything it says, with this cache id, however its file spells it; `None` if it cannot be written.
    #[must_use]
    pub fn content_digest(&self, cache_id: CacheId) -> Option<blake3::Hash> {
        let same = Self { cache_id: Some(cache_id), ..self.clone() };
        same.to_bytes().ok().map(|bytes| blake3::hash(&bytes))
    }

    /// The content of a version 2 manifest file as version 3 with this cache id; `path` is for messages only. All other
    /// keys keep their order and their values, as they are spelled.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when it is no manifest of version 2.
    pub fn upgrade(path: &Path, bytes: &[u8], cache_id: CacheId) -> Result<Vec<u8>> {
        let old = Self::parse(path, bytes)?;
        if old.version != FormatVersion::V2 {
            return Err(Error::invalid_cache(path, "expected a manifest of version 2, found version 3"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| Error::invalid_cache(path, error.to_string()))?;
        let upgraded = manifest_v3::upgraded(text, cache_id)?;
        let new = Self::parse(path, &upgraded)?;
        let manifest_checksum = new.manifest_checksum.clone();
        if new != (Self { version: FormatVersion::V3, cache_id: Some(cache_id), manifest_checksum, ..old }) {
            return Err(Error::invalid_cache(
                path,
                "expected a manifest that says the same in version 3, found one that does not; write the cache again",
            ));
        }
        Ok(upgraded)
    }

    /// The file content for this manifest, as version 3 with a checksum of its own.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when there is no cache id or a number that JSON cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        manifest_v3::to_bytes(self)
    }
}

/// Where the digest in a manifest of ours begins: it is the last value, followed by a quote, a line end and a brace.
pub(super) fn digest_start(file_len: usize) -> Option<usize> {
    file_len.checked_sub(DIGEST_CHARS + "\"\n}".len())
}

/// BLAKE3 of `bytes` with the digest at `start` replaced by zeros.
pub(super) fn digest_without(bytes: &[u8], start: usize) -> Option<String> {
    let head = bytes.get(..start)?;
    let tail = bytes.get(start.checked_add(DIGEST_CHARS)?..)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(&[b'0'; DIGEST_CHARS]).update(tail);
    Some(hasher.finalize().to_hex().to_string())
}
