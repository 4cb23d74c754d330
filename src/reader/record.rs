//! The bytes of one record within its shard: never trusted, always compared with their bounds.

use crate::error::Error;
use crate::format::Damage;
use crate::format::record::payload_offset;
use crate::prefetch::prefetch;
use crate::reader::cache_set::{CacheSet, Place, RecordPlace};

/// Bytes that the processor loads at once.
const CACHE_LINE: usize = 64;

/// The processor fetches the rest of a record by itself once it is read in order.
pub(super) const RECORD_PREFETCH: usize = 2 << 10;

/// Asks for the first bytes of a record ahead of time.
#[inline]
pub(super) fn prefetch_record(shard: &[u8], record: &RecordPlace, limit: usize) {
    let end = record.end.min(record.start.saturating_add(limit));
    prefetch_lines(shard.get(record.start..end).unwrap_or_default());
}

/// Asks for some bytes ahead of time.
#[inline]
pub(super) fn prefetch_lines(bytes: &[u8]) {
    for line in bytes.chunks(CACHE_LINE) {
        prefetch(line);
    }
}

/// Where the stored payload lies within the shard: behind the envelope, whose length is read.
///
/// # Errors
/// [`Damage`] when the record claims more than it holds.
#[inline]
pub(super) fn stored_payload(shard: &[u8], record: &RecordPlace) -> Result<RecordPlace, Damage> {
    match shard.get(record.start..record.end).and_then(payload_offset) {
        // The offset lies within the record.
        Some(offset) => Ok(RecordPlace { start: record.start + offset, ..*record }),
        None => Err(too_short()),
    }
}

#[cold]
fn too_short() -> Damage {
    Damage("it is shorter than its envelope says".to_owned())
}

/// The record, or the stored payload in it, is not what it should be.
#[cold]
pub(super) fn damaged_record(set: &CacheSet, place: Place, record: &RecordPlace, damage: &Damage) -> Error {
    let file = set.shard_file(place.cache, record.shard);
    Error::invalid_cache(
        file.map(|file| file.path).unwrap_or_default(),
        format!("damaged record at bytes {} to {}: {damage}; write the cache again", record.start, record.end),
    )
}
