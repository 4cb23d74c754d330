//! The bytes of one record within its shard: never trusted, always compared with their bounds.

use crate::error::{Error, Result};
use crate::format::record::payload_offset;
use crate::prefetch::prefetch;
use crate::reader::cache_set::{CacheSet, Place, RecordPlace};

/// Bytes that the processor loads at once.
const CACHE_LINE: usize = 64;

/// Asks for the first bytes of a record ahead of time.
#[inline]
pub(super) fn prefetch_record(shard: &[u8], record: &RecordPlace, limit: usize) {
    let end = record.end.min(record.start.saturating_add(limit));
    let Some(bytes) = shard.get(record.start..end) else { return };
    for line in bytes.chunks(CACHE_LINE) {
        prefetch(line);
    }
}

/// The stored payload within a record.
///
/// # Errors
/// [`Error::InvalidCache`] when the record claims more than it holds.
#[inline]
pub(super) fn stored_payload<'a>(
    set: &CacheSet,
    place: Place,
    shard: &'a [u8],
    record: &RecordPlace,
) -> Result<&'a [u8]> {
    let stored = || {
        let bytes = shard.get(record.start..record.end)?;
        bytes.get(payload_offset(bytes)?..)
    };
    stored().ok_or_else(|| damaged_record(set, place, record, "it is shorter than its envelope says"))
}

/// The record is not what a record should be.
#[cold]
pub(super) fn damaged_record(
    set: &CacheSet,
    place: Place,
    record: &RecordPlace,
    fault: impl std::fmt::Display,
) -> Error {
    let file = set.caches().get(place.cache).and_then(|cache| cache.shard_file(record.cache_shard));
    Error::invalid_cache(
        file.map(|file| file.path).unwrap_or_default(),
        format!("damaged record at bytes {} to {}: {fault}; write the cache again", record.start, record.end),
    )
}
