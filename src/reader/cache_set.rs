//! All caches of a dataset as one range of rows: which cache a row belongs to, and where its record lies.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::format::compression::CompressionAlgo;
use crate::format::manifest::FormatVersion;
use crate::format::record::payload_offset;
use crate::format::schema::Schema;
use crate::ids::{CacheId, SampleId};
use crate::reader::cache::{Cache, unknown_sample};
use crate::reader::record::{RECORD_PREFETCH, prefetch_lines};
use crate::reader::shards::{MAPPED_AT_OPEN, ShardFile, ShardMaps};
use crate::reader::temperature::Temperature;

/// The caches of a dataset, in the order they were given. Immutable, and shared by everything that reads from them.
#[derive(Debug)]
pub struct CacheSet {
    caches: Vec<Cache>,
    /// First row of each cache among all rows, and the number of all rows behind them.
    row_starts: Vec<u64>,
    /// First shard of each cache among all shards.
    shard_starts: Vec<usize>,
    positions: HashMap<CacheId, usize>,
    schema: Schema,
    shards: ShardMaps,
    temperature: Temperature,
    mean_record_bytes: u64,
}

/// A row: which cache, and which sample of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Position of the cache in its set.
    pub cache: usize,
    /// Physical row within that cache.
    pub row: u64,
}

/// A record, found in the index and inside its shard. Nothing of the record itself was read.
#[derive(Debug, Clone, Copy)]
pub struct RecordPlace {
    /// Number of the shard among all shards.
    pub shard: usize,
    /// First byte.
    pub start: usize,
    /// Byte behind the last one.
    pub end: usize,
    /// How the payload is stored.
    pub algo: CompressionAlgo,
}

impl CacheSet {
    /// Puts caches together.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when there are none, two have the same identity, or their schemas differ;
    /// [`Error::InvalidCache`] when there is no sample at all.
    pub fn new(caches: Vec<Cache>) -> Result<Self> {
        let Some(first) = caches.first() else {
            return Err(Error::InvalidValue("paths must name at least one cache, found none".to_owned()));
        };
        let schema = first.schema().clone();
        let mut positions = HashMap::with_capacity(caches.len());
        let mut row_starts = Vec::with_capacity(caches.len() + 1);
        let mut shard_starts = Vec::with_capacity(caches.len());
        let (mut rows, mut shards) = (0_u64, 0_usize);
        for (position, cache) in caches.iter().enumerate() {
            if let Some(other) = positions.insert(cache.id(), position).and_then(|other| caches.get(other)) {
                return Err(same_id(other, cache));
            }
            if !schema.same_columns(cache.schema()) {
                return Err(other_schema(first, cache));
            }
            row_starts.push(rows);
            shard_starts.push(shards);
            rows = rows.checked_add(cache.sample_count()).ok_or_else(|| {
                Error::InvalidValue("the caches hold more than 2^64 samples together; open fewer".to_owned())
            })?;
            shards += cache.shard_count();
        }
        row_starts.push(rows);
        if rows == 0 {
            return Err(Error::invalid_cache(first.path(), "expected at least one sample, found none"));
        }
        let bytes = caches.iter().map(Cache::shard_bytes).fold(0, u64::saturating_add);
        Ok(Self {
            caches,
            row_starts,
            shard_starts,
            positions,
            schema,
            shards: ShardMaps::new(shards),
            temperature: Temperature::unknown(),
            mean_record_bytes: bytes / rows,
        })
    }

    /// The caches, in the order they were given.
    #[must_use]
    #[inline]
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// The cache at a position.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when there is none.
    #[inline]
    pub fn cache(&self, position: usize) -> Result<&Cache> {
        self.caches
            .get(position)
            .ok_or_else(|| Error::InvalidValue(format!("there is no cache at position {position}")))
    }

    /// The directories of the caches.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.caches.iter().map(|cache| cache.path().to_path_buf()).collect()
    }

    /// The columns that all caches have.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of samples of all caches together.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.row_starts.last().copied().unwrap_or(0)
    }

    /// Bytes of a record, about.
    #[must_use]
    pub fn mean_record_bytes(&self) -> u64 {
        self.mean_record_bytes
    }

    /// Whether reads are likely to wait for the disk.
    #[must_use]
    #[inline]
    pub fn temperature(&self) -> &Temperature {
        &self.temperature
    }

    /// First row of a cache among all rows.
    #[must_use]
    pub fn row_start(&self, cache: usize) -> u64 {
        self.row_starts.get(cache).copied().unwrap_or(u64::MAX)
    }

    /// Position of the cache with this identity.
    #[must_use]
    #[inline]
    pub fn position(&self, id: CacheId) -> Option<usize> {
        match self.caches.as_slice() {
            [only] => (only.id() == id).then_some(0),
            _ => self.positions.get(&id).copied(),
        }
    }

    /// The cache and sample of a row, which must be smaller than [`row_count`](Self::row_count).
    #[must_use]
    #[inline]
    pub fn place(&self, row: u64) -> Place {
        if self.caches.len() == 1 {
            return Place { cache: 0, row };
        }
        // Empty caches share their start with the next one: the last of them is the one that has the row.
        let cache = self.row_starts.partition_point(|start| *start <= row).saturating_sub(1);
        Place { cache, row: row - self.row_starts.get(cache).copied().unwrap_or(row) }
    }

    /// The sample with these identities.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] when there is none.
    #[inline]
    pub fn find(&self, cache_id: CacheId, sample_id: SampleId) -> Result<Place> {
        let cache = self.position(cache_id).ok_or_else(|| self.unknown_cache(cache_id))?;
        match self.caches.get(cache) {
            Some(found) if sample_id.0 < found.sample_count() => Ok(Place { cache, row: sample_id.0 }),
            found => Err(unknown_sample(cache_id, sample_id, found.map_or(0, Cache::sample_count))),
        }
    }

    /// Where the record of a sample lies, checked against the length of its shard.
    ///
    /// # Errors
    /// [`Error::UnknownSample`] when there is no such sample, [`Error::InvalidCache`] when its index row points outside.
    #[inline]
    pub fn record_place(&self, place: Place) -> std::result::Result<RecordPlace, Box<Error>> {
        let found = || {
            let (row, algo) = self.caches.get(place.cache)?.index_row(place.row)?;
            // On 64-bit systems nothing is lost here; elsewhere a record beyond the address space cannot be mapped either.
            let start = usize::try_from(row.offset).ok()?;
            let end = start.checked_add(usize::try_from(row.length).ok()?)?;
            let shard = self.shard_starts.get(place.cache)? + usize::try_from(row.shard).ok()?;
            Some(RecordPlace { shard, start, end, algo })
        };
        found().ok_or_else(|| Box::new(self.record_fault(place)))
    }

    /// The payload of a sample where it lies, if it is stored as it is in a shard that is mapped already, and nothing is
    /// wrong with its record. Asks for the record behind it, which is likely to be read next: the processor fetches ahead
    /// by itself within a page only.
    #[must_use]
    #[inline]
    pub(super) fn verbatim_payload(&self, place: Place) -> Option<&[u8]> {
        let (row, algo) = self.caches.get(place.cache)?.index_row(place.row)?;
        if algo != CompressionAlgo::None {
            return None;
        }
        let start = usize::try_from(row.offset).ok()?;
        let shard = self.shard_starts.get(place.cache)?.checked_add(usize::try_from(row.shard).ok()?)?;
        let bytes = self.shards.pinned(shard)?.get(start..)?;
        let (record, behind) = bytes.split_at_checked(usize::try_from(row.length).ok()?)?;
        prefetch_lines(behind.get(..record.len().min(RECORD_PREFETCH)).unwrap_or_default());
        record.get(payload_offset(record)?..)
    }

    /// Bytes of a shard that is mapped already.
    #[must_use]
    #[inline]
    pub(super) fn mapped(&self, place: &RecordPlace) -> Option<&[u8]> {
        self.shards.pinned(place.shard)?.get(place.start..place.end)
    }

    #[cold]
    fn record_fault(&self, place: Place) -> Error {
        match self.cache(place.cache) {
            Ok(cache) => cache.index_fault(place.row),
            Err(error) => error,
        }
    }

    /// Shows the bytes of a shard of this cache, numbered through all caches, to `read`.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::InvalidCache`] when it cannot be mapped as it was.
    #[inline]
    pub(super) fn with_shard<T>(
        &self,
        cache: usize,
        shard: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> std::result::Result<T, Box<Error>> {
        match self.shards.pinned(shard) {
            Some(bytes) => Ok(read(bytes)),
            None => {
                self.shards.bytes(shard, || self.shard_file(cache, shard)).map(|bytes| read(&bytes)).map_err(Box::new)
            }
        }
    }

    /// Where a shard of this cache is, numbered through all caches.
    pub(super) fn shard_file(&self, cache: usize, shard: usize) -> Option<ShardFile> {
        let first = self.shard_starts.get(cache)?;
        self.caches.get(cache)?.shard_file(shard.checked_sub(*first)?)
    }

    /// Number of shards of all caches together.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Compares some shards, numbered through all caches, with the manifests. The first ones of the set are mapped
    /// by the way, so that deleting their files does not matter any more.
    ///
    /// # Errors
    /// [`Error::File`] when one is not there, [`Error::InvalidCache`] when one has another length.
    pub fn check_shards(&self, shards: Range<usize>) -> Result<()> {
        for number in shards {
            let position = self.shard_starts.partition_point(|start| *start <= number).saturating_sub(1);
            let (Some(cache), Some(first)) = (self.caches.get(position), self.shard_starts.get(position)) else {
                continue;
            };
            let shard = number - first;
            if number < MAPPED_AT_OPEN {
                self.shards.bytes(number, || cache.shard_file(shard))?;
            } else {
                cache.check_shards(shard..shard + 1)?;
            }
        }
        Ok(())
    }

    /// Says which sample `error` is about.
    #[cold]
    #[must_use]
    pub fn sample_error(&self, place: Place, error: Error) -> Error {
        match self.caches.get(place.cache) {
            Some(cache) => cache.sample_error(place.row, error),
            None => error,
        }
    }

    fn unknown_cache(&self, id: CacheId) -> Error {
        let mut known: Vec<String> = self.caches.iter().take(5).map(|cache| cache.id().to_string()).collect();
        if self.caches.len() > known.len() {
            known.push("...".to_owned());
        }
        Error::UnknownSample(format!("no cache has cache_id {id}; this dataset has {}", known.join(", ")))
    }
}

fn same_id(one: &Cache, other: &Cache) -> Error {
    let versions = [one, other].map(|cache| cache.manifest().version);
    let advice = if one.path() == other.path() {
        "pass each cache once"
    } else if one.source_name() == other.source_name() && one.id() == CacheId::of_source_name(one.source_name()) {
        "their sources had the same name: give sources different names, and write one of them again"
    } else if versions.contains(&FormatVersion::V2) {
        "a cache of version 2 has the position of its path for an id: pass it at another position, or write it again"
    } else {
        "caches of version 2 that were migrated in separate calls both kept the position they had there: write one of \
         them again from its source, which gives it an id of its own; caches to be read together are migrated together"
    };
    Error::InvalidValue(format!(
        "paths must name caches of different cache_id, found {} in both {} and {}; {advice}",
        one.id(),
        one.path().display(),
        other.path().display()
    ))
}

fn other_schema(one: &Cache, other: &Cache) -> Error {
    Error::InvalidValue(format!(
        "paths must name caches with the same metadata columns, found {} in {} but {} in {}; \
         open them as separate datasets",
        describe(one.schema()),
        one.path().display(),
        describe(other.schema()),
        other.path().display()
    ))
}

/// `{label: int, split: string}`
fn describe(schema: &Schema) -> String {
    let fields: Vec<String> = schema.fields().iter().map(|field| format!("{}: {}", field.name, field.kind)).collect();
    format!("{{{}}}", fields.join(", "))
}
