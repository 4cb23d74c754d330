//! One cache on disk, opened: its identity, schema, index and metadata columns. Costs by files, not by samples.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::compression::CompressionAlgo;
use crate::format::index::{Index, IndexRow};
use crate::format::manifest::{FormatVersion, Manifest};
use crate::format::metadata::MetadataFile;
use crate::format::schema::Schema;
use crate::fs::{INDEX_FILE, MANIFEST_FILE, METADATA_FILE, SHARDS_DIR, check_regular};
use crate::ids::{CacheId, SampleId};
use crate::mapped::MappedFile;
use crate::reader::shards::{ShardFile, changed_length};
use crate::value::ValueRef;

/// A complete cache whose files have the lengths and columns that its manifest promises.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    id: CacheId,
    source_name: String,
    source_fingerprint: Option<String>,
    sample_count: u64,
    index: Index,
    metadata: MetadataFile,
    shards: Vec<ShardPart>,
    manifest: ManifestStamp,
}

/// What the manifest was when the cache was opened.
#[derive(Debug, Clone, Copy)]
pub struct ManifestStamp {
    /// Its version.
    pub version: FormatVersion,
    /// Digest of the file.
    pub file: blake3::Hash,
    /// For version 2, digest of what it says with the identity that the cache has here, however it is spelled.
    pub content: Option<blake3::Hash>,
}

/// What reading needs to know of one shard.
#[derive(Debug)]
struct ShardPart {
    name: Box<str>,
    byte_len: u64,
    algo: CompressionAlgo,
}

/// A cache together with its manifest, which only opening and verifying need.
#[derive(Debug)]
pub struct OpenedCache {
    /// The cache.
    pub cache: Cache,
    /// What its manifest says.
    pub manifest: Manifest,
}

impl OpenedCache {
    /// Opens the directory `path`. `position` is its place in the call: the identity of a version 2 cache.
    /// Shards are not looked at: see [`Cache::check_shards`].
    ///
    /// # Errors
    /// [`Error::File`] when there is no such directory or a file cannot be read, [`Error::InvalidCache`] when a file is
    /// missing, damaged or does not fit the others.
    pub fn open(path: &Path, position: u64) -> Result<Self> {
        let path = std::fs::canonicalize(path).map_err(|error| Error::file("open", path, error))?;
        let manifest_path = path.join(MANIFEST_FILE);
        let file = map_manifest(&path)?;
        let manifest = Manifest::parse(&manifest_path, &file)?;
        // Version 2 has none.
        let id = manifest.cache_id.unwrap_or(CacheId(position));
        let stamp = ManifestStamp {
            version: manifest.version,
            file: blake3::hash(&file),
            content: match manifest.version {
                FormatVersion::V2 => manifest.content_digest(id),
                FormatVersion::V3 => None,
            },
        };
        let index = Index::open(path.join(INDEX_FILE), manifest.sample_count)?;
        let metadata = Arc::new(MappedFile::open(path.join(METADATA_FILE))?);
        let metadata = MetadataFile::open(&metadata, &manifest.metadata_schema, manifest.sample_count)?;
        let shards = manifest.shards.iter().map(|shard| ShardPart {
            name: shard.name.as_str().into(),
            byte_len: shard.byte_len,
            algo: shard.compression.algo,
        });
        let cache = Cache {
            id,
            source_name: manifest.source_name.clone(),
            source_fingerprint: manifest.source_fingerprint.clone(),
            sample_count: manifest.sample_count,
            index,
            metadata,
            shards: shards.collect(),
            manifest: stamp,
            path,
        };
        Ok(Self { cache, manifest })
    }
}

/// Maps the manifest of the cache in `path`.
fn map_manifest(path: &Path) -> Result<MappedFile> {
    MappedFile::open(path.join(MANIFEST_FILE)).map_err(|error| match error.io_source().map(std::io::Error::kind) {
        Some(ErrorKind::NotFound) => Error::invalid_cache(
            path,
            format!(
                "missing manifest: expected a complete cache with a {MANIFEST_FILE}, found a directory without one; \
                 pass the directory of one cache, or write it again"
            ),
        ),
        Some(ErrorKind::NotADirectory) => {
            let text = "not a directory; pass the directory of one cache";
            Error::file("open the cache", path, std::io::Error::new(ErrorKind::NotADirectory, text))
        }
        _ => error,
    })
}

impl Cache {
    /// Opens the cache in the directory `path` with all its shards checked.
    ///
    /// # Errors
    /// As [`OpenedCache::open`] and [`check_shards`](Self::check_shards).
    pub fn open(path: &Path, position: u64) -> Result<Self> {
        let cache = OpenedCache::open(path, position)?.cache;
        cache.check_shards(0..cache.shard_count())?;
        Ok(cache)
    }

    /// Compares the lengths of some shards with the manifest.
    ///
    /// # Errors
    /// [`Error::File`] when one is not there, [`Error::InvalidCache`] when one has another length.
    pub fn check_shards(&self, shards: Range<usize>) -> Result<()> {
        for file in shards.filter_map(|shard| self.shard_file(shard)) {
            let found = std::fs::metadata(&file.path).map_err(|error| Error::file("inspect", &file.path, error))?;
            check_regular("open", &file.path, &found)?;
            if found.len() != file.byte_len {
                return Err(changed_length(&file, found.len()));
            }
        }
        Ok(())
    }

    /// Absolute path of its directory, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> CacheId {
        self.id
    }

    /// Name of the source it was written from.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Its manifest as it was when the cache was opened.
    #[must_use]
    pub const fn manifest(&self) -> &ManifestStamp {
        &self.manifest
    }

    /// Fingerprint of the source it was written from, if it had one.
    #[must_use]
    pub fn source_fingerprint(&self) -> Option<&str> {
        self.source_fingerprint.as_deref()
    }

    /// Number of samples.
    #[must_use]
    pub const fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// Its metadata columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.metadata.schema()
    }

    /// Its index.
    #[must_use]
    #[inline]
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// Its metadata, with columns in schema order.
    #[must_use]
    #[inline]
    pub const fn metadata(&self) -> &MetadataFile {
        &self.metadata
    }

    /// Number of shards.
    #[must_use]
    #[inline]
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Length of a shard and how it stores payloads; `None` when there is no such shard.
    #[must_use]
    #[inline]
    pub fn shard(&self, shard: usize) -> Option<(u64, CompressionAlgo)> {
        self.shards.get(shard).map(|part| (part.byte_len, part.algo))
    }

    /// Length of all shards together.
    #[must_use]
    pub fn shard_bytes(&self) -> u64 {
        self.shards.iter().map(|part| part.byte_len).fold(0, u64::saturating_add)
    }

    /// Where a record lies, and how its payload is stored; `None` unless it lies within its shard.
    #[must_use]
    #[inline]
    pub fn index_row(&self, row: u64) -> Option<(IndexRow, CompressionAlgo)> {
        let found = self.index.get(row)?;
        let (byte_len, algo) = self.shard(usize::try_from(found.shard).ok()?)?;
        (found.offset.checked_add(found.length)? <= byte_len).then_some((found, algo))
    }

    /// Why there is no [`index_row`](Self::index_row): [`Error::UnknownSample`], or [`Error::InvalidCache`] when it
    /// points outside.
    #[cold]
    #[must_use]
    pub fn index_fault(&self, row: u64) -> Error {
        let Some(IndexRow { shard, offset, length }) = self.index.get(row) else {
            return unknown_sample(self.id, SampleId(row), self.sample_count);
        };
        let detail = match usize::try_from(shard).ok().and_then(|shard| self.shard(shard)) {
            Some((byte_len, _)) => {
                format!("row {row} points to {length} bytes at {offset} of shard {shard}, which has {byte_len} bytes")
            }
            None => format!("row {row} points to shard {shard}, but there are {}", self.shard_count()),
        };
        Error::invalid_cache(self.path().join(INDEX_FILE), format!("{detail}; write the cache again"))
    }

    /// Where a shard is and how long; `None` when there is no such shard.
    #[must_use]
    pub fn shard_file(&self, shard: usize) -> Option<ShardFile> {
        let part = self.shards.get(shard)?;
        let path = self.path.join(SHARDS_DIR).join(&*part.name);
        Some(ShardFile { path, byte_len: part.byte_len })
    }

    /// Asks for the metadata slots of one row ahead of time.
    #[inline]
    pub fn prefetch_metadata(&self, row: u64) {
        self.metadata.prefetch(row);
    }

    /// Asks for the metadata texts of one row ahead of time; reads the slots that
    /// [`prefetch_metadata`](Self::prefetch_metadata) asked for.
    #[inline]
    pub fn prefetch_texts(&self, row: u64) {
        self.metadata.prefetch_texts(row);
    }

    /// One metadata value: `column` is its place in the schema, `row` the sample.
    ///
    /// # Errors
    /// [`Error::Sample`] when the value is damaged.
    #[inline]
    pub fn value(&self, column: usize, row: u64) -> Result<ValueRef<'_>> {
        self.metadata.value(column, row).map_err(|error| self.sample_error(row, error))
    }

    /// Says which sample `error` is about.
    #[cold]
    #[must_use]
    pub fn sample_error(&self, row: u64, error: Error) -> Error {
        if matches!(error, Error::Sample { .. }) {
            return error;
        }
        Error::Sample {
            cache_path: self.path.clone(),
            cache_id: self.id,
            sample_id: SampleId(row),
            source: Box::new(error),
        }
    }
}

#[cold]
pub(super) fn unknown_sample(cache_id: CacheId, sample_id: SampleId, count: u64) -> Error {
    let range = if count == 0 { "is empty".to_owned() } else { format!("has 0 to {}", count - 1) };
    Error::UnknownSample(format!("no sample has sample_id {sample_id} in cache {cache_id}, which {range}"))
}
