//! Finds the records of consecutive draws, all at once: each pass asks for the memory that the next one reads.

use crate::error::Error;
use crate::format::compression::CompressionAlgo;
use crate::reader::cache_set::{CacheSet, Place, RecordPlace};
use crate::reader::record::{damaged_record, prefetch_record, stored_payload};

/// A sample that is about to be read.
#[derive(Debug)]
pub struct PlannedSample {
    /// Which sample.
    pub place: Place,
    /// What there is to read, or why it cannot be read.
    pub found: Result<FoundPayload, Box<Error>>,
}

/// A payload whose length is known.
#[derive(Debug, Clone, Copy)]
pub struct FoundPayload {
    /// Where it is stored. While a plan is made, first the whole record.
    pub stored: RecordPlace,
    /// Length of the payload, decompressed.
    pub len: usize,
}

/// Records up to this size are asked for as a whole, as far as [`SMALL_RECORD_PREFETCH`] goes.
const SMALL_RECORD: usize = 16 << 10;

/// The processor fetches the rest of a record by itself once it is read in order.
const SMALL_RECORD_PREFETCH: usize = 2 << 10;

/// Records up to this size, and all index rows and metadata, the processor fetches by itself when they are read in order.
const TINY_RECORD: usize = 256;

/// Of a large record only the length in front is asked for.
const LARGE_RECORD_PREFETCH: usize = 8;

/// Plans the samples of `rows`, which are numbered through all caches.
#[must_use]
pub fn plan(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    let in_order = rows.windows(2).all(|pair| matches!(pair, [row, next] if row.wrapping_add(1) == *next));
    if !in_order {
        for row in rows {
            let place = set.place(*row);
            if let Some(cache) = set.caches().get(place.cache) {
                cache.index().prefetch(place.row);
                cache.prefetch_metadata(place.row);
            }
        }
    } else if let Some(first) = rows.first()
        && set.record_place(set.place(*first)).is_ok_and(|record| record.end - record.start <= TINY_RECORD)
    {
        return rows.iter().map(|row| plan_one(set, set.place(*row))).collect();
    }
    let mut samples: Vec<_> = rows.iter().map(|row| find_record(set, set.place(*row))).collect();
    for sample in &mut samples {
        if let Ok(FoundPayload { stored, .. }) = sample.found {
            sample.found = find_payload(set, sample.place, &stored);
        }
    }
    samples
}

/// Plans one sample.
#[inline]
pub(super) fn plan_one(set: &CacheSet, place: Place) -> PlannedSample {
    PlannedSample { place, found: set.record_place(place).and_then(|record| find_payload(set, place, &record)) }
}

/// Finds a record and asks for its first bytes; the length of the payload is not known yet.
#[inline]
fn find_record(set: &CacheSet, place: Place) -> PlannedSample {
    let found = set.record_place(place).and_then(|record| {
        let size = record.end - record.start;
        let limit = if size <= SMALL_RECORD { SMALL_RECORD_PREFETCH } else { LARGE_RECORD_PREFETCH };
        set.with_shard(place.cache, record.shard, |shard| prefetch_record(shard, &record, limit))?;
        if let Some(cache) = set.caches().get(place.cache) {
            cache.prefetch_texts(place.row);
        }
        Ok(FoundPayload { stored: record, len: 0 })
    });
    PlannedSample { place, found }
}

#[inline]
fn find_payload(set: &CacheSet, place: Place, record: &RecordPlace) -> Result<FoundPayload, Box<Error>> {
    let found = set.with_shard(place.cache, record.shard, |shard| {
        let stored = stored_payload(shard, record)?;
        let len = match stored.algo {
            CompressionAlgo::None => stored.end - stored.start,
            CompressionAlgo::Lz4 => {
                stored.algo.original_len(shard.get(stored.start..stored.end).unwrap_or_default())?
            }
        };
        Ok(FoundPayload { stored, len })
    })?;
    found.map_err(|damage| Box::new(damaged_record(set, place, record, &damage)))
}
