//! Finds the records of consecutive draws, all at once: each pass asks for the memory that the next one reads.

use std::ops::Range;

use crate::error::Error;
use crate::format::compression::CompressionAlgo;
use crate::prefetch::is_in_memory;
use crate::reader::cache_set::{CacheSet, Place, RecordPlace};
use crate::reader::record::{RECORD_PREFETCH, damaged_record, prefetch_record, stored_payload};

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

/// Records up to this size are asked for as a whole, as far as [`RECORD_PREFETCH`] goes.
const SMALL_RECORD: usize = 16 << 10;

/// Of a large record only the length in front is asked for.
const LARGE_RECORD_PREFETCH: usize = 8;

/// Samples of one cache whose small records lie behind each other in one shard. The processor fetches all of that by itself
/// when it is read in order, so nothing has to be planned.
#[derive(Debug, Clone)]
pub struct Stretch {
    cache: usize,
    rows: Range<u64>,
    shard: usize,
    /// Where the records lie within their shard.
    bytes: Range<usize>,
}

impl Stretch {
    /// `rows`, which are numbered through all caches, if they are such samples and have at most `limit` bytes together.
    #[must_use]
    pub fn find(set: &CacheSet, rows: &[u64], limit: usize) -> Option<Self> {
        let (first, last) = (set.place(*rows.first()?), set.place(*rows.last()?));
        let (start, end) = (set.record_place(first).ok()?, set.record_place(last).ok()?);
        let bytes = end.end.checked_sub(start.start)?;
        let fits = first.cache == last.cache && start.shard == end.shard && bytes <= limit;
        let verbatim = start.algo == CompressionAlgo::None;
        (fits && verbatim && are_in_order(rows)).then_some(Self {
            cache: first.cache,
            rows: first.row..last.row + 1,
            shard: start.shard,
            bytes: start.start..end.end,
        })
    }

    /// Bytes of all records together.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the kernel says that all records are in memory. Tells the set if they are not.
    #[must_use]
    pub fn is_in_memory(&self, set: &CacheSet) -> bool {
        let in_memory = set.with_shard(self.cache, self.shard, |shard| {
            is_in_memory(shard.get(self.bytes.clone()).unwrap_or_default())
        });
        // What cannot be mapped fails when it is read.
        let in_memory = in_memory.unwrap_or(true);
        if !in_memory {
            set.temperature().looked(true);
        }
        in_memory
    }
}

impl ExactSizeIterator for Stretch {}

impl Iterator for Stretch {
    type Item = Place;

    #[inline]
    fn next(&mut self) -> Option<Place> {
        self.rows.next().map(|row| Place { cache: self.cache, row })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

/// Whether each row follows the one before.
fn are_in_order(rows: &[u64]) -> bool {
    rows.windows(2).all(|pair| matches!(pair, [row, next] if row.wrapping_add(1) == *next))
}

/// Plans the samples of `rows`, which are numbered through all caches.
#[must_use]
pub fn plan(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    if !are_in_order(rows) {
        for row in rows {
            prefetch_slots(set, set.place(*row));
        }
    }
    let mut samples: Vec<_> = rows.iter().map(|row| find_record(set, set.place(*row))).collect();
    for sample in &mut samples {
        if let Ok(FoundPayload { stored, .. }) = sample.found {
            sample.found = find_payload(set, sample.place, &stored);
        }
    }
    samples
}

/// Plans one sample. What making it reads is asked for as early as in a plan of many.
#[inline]
pub(super) fn plan_one(set: &CacheSet, place: Place) -> PlannedSample {
    prefetch_slots(set, place);
    let mut sample = find_record(set, place);
    sample.found = sample.found.and_then(|found| find_payload(set, place, &found.stored));
    sample
}

/// Asks for the index row and the metadata slots of a sample.
#[inline]
fn prefetch_slots(set: &CacheSet, place: Place) {
    if let Some(cache) = set.caches().get(place.cache) {
        cache.index().prefetch(place.row);
        cache.prefetch_metadata(place.row);
    }
}

/// Finds a record and asks for its first bytes; the length of the payload is not known yet.
#[inline]
fn find_record(set: &CacheSet, place: Place) -> PlannedSample {
    let found = set.record_place(place).and_then(|record| {
        let size = record.end - record.start;
        let limit = if size <= SMALL_RECORD { RECORD_PREFETCH } else { LARGE_RECORD_PREFETCH };
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
