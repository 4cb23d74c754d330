//! Finds the records of consecutive draws, all at once: each pass asks for the memory that the next one reads.

use crate::error::Error;
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
    /// Where its record lies.
    pub record: RecordPlace,
    /// Length of the payload, decompressed.
    pub len: usize,
}

/// Records up to this size are asked for as a whole, as far as [`SMALL_RECORD_PREFETCH`] goes.
const SMALL_RECORD: usize = 16 << 10;

/// The processor fetches the rest of a record by itself once it is read in order.
const SMALL_RECORD_PREFETCH: usize = 2 << 10;

/// Of a large record only the length in front is asked for.
const LARGE_RECORD_PREFETCH: usize = 8;

/// Plans the samples of `rows`, which are numbered through all caches.
#[must_use]
pub fn plan(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    let mut samples = Vec::with_capacity(rows.len());
    for row in rows {
        let place = set.place(*row);
        if let Some(cache) = set.caches().get(place.cache) {
            cache.index().prefetch(place.row);
            cache.prefetch_metadata(place.row);
        }
        let record = RecordPlace::NOWHERE;
        samples.push(PlannedSample { place, found: Ok(FoundPayload { record, len: 0 }) });
    }
    for sample in &mut samples {
        sample.found = find_record(set, sample.place);
    }
    for sample in &mut samples {
        if let Ok(found) = &mut sample.found
            && let Err(error) = find_payload(set, sample.place, found)
        {
            sample.found = Err(error);
        }
    }
    samples
}

/// Plans one sample.
pub(super) fn plan_one(set: &CacheSet, place: Place) -> PlannedSample {
    let found = find_record(set, place).and_then(|mut found| {
        find_payload(set, place, &mut found)?;
        Ok(found)
    });
    PlannedSample { place, found }
}

#[inline]
fn find_record(set: &CacheSet, place: Place) -> Result<FoundPayload, Box<Error>> {
    let record = set.record_place(place)?;
    let size = record.end - record.start;
    let limit = if size <= SMALL_RECORD { SMALL_RECORD_PREFETCH } else { LARGE_RECORD_PREFETCH };
    prefetch_record(&set.shard_bytes(place.cache, &record)?, &record, limit);
    if let Some(cache) = set.caches().get(place.cache) {
        cache.prefetch_texts(place.row);
    }
    Ok(FoundPayload { record, len: 0 })
}

#[inline]
fn find_payload(set: &CacheSet, place: Place, found: &mut FoundPayload) -> Result<(), Box<Error>> {
    let shard = set.shard_bytes(place.cache, &found.record)?;
    let stored = stored_payload(set, place, &shard, &found.record)?;
    match found.record.algo.original_len(stored) {
        Ok(len) => {
            found.len = len;
            Ok(())
        }
        Err(damage) => Err(Box::new(damaged_record(set, place, &found.record, damage))),
    }
}
