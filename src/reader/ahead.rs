//! What is done about records that may still be on disk, by threads that may wait for it.

use std::hint::black_box;

use crate::error::Error;
use crate::format::metadata::RawValue;
use crate::prefetch::{ask_for, bring_in, is_in_memory, keep_in_large_pages, waits_for_disk};
use crate::reader::cache_set::{CacheSet, Place, RecordPlace};
use crate::reader::plan::{PlannedSample, plan};

/// Bytes that are asked for at once. The kernel quietly leaves out what goes beyond the read-ahead of the device or its
/// largest request, whichever is more; this is less than the usual one.
const PIECE: usize = 512 << 10;

/// Bytes of a record that are waited for when it is read alone: a larger one is copied without an interpreter.
const LOOKED_AT: usize = 256 << 10;

/// Payloads below this mean size are copied by whoever asked for them, who must not wait for the disk.
pub const SMALL_MEAN_BYTES: usize = 16 << 10;

/// No page is smaller.
const PAGE: usize = 4096;

/// Records with no more bytes between them are read together with what lies between them.
const GAP: usize = 16 << 10;

/// A run has at least so many records, on average, where records are said to lie in runs.
const RUN_RECORDS: usize = 8;

/// How records come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// The kernel is asked for each record, and nobody waits: for records in many places.
    Ask,
    /// They are read one after the other, and their metadata is looked at: for records behind one another, for which the
    /// kernel reads ahead by itself, in large pieces, which it does not if it is asked for them.
    Bring,
}

/// Rows that were drawn.
#[derive(Debug, Default)]
pub struct Drawn {
    /// In the order of their draws.
    pub rows: Vec<u64>,
    /// Others, far from them and from each other. Whether these are in memory tells something about the whole; whether
    /// `rows` are only tells that the kernel read ahead, if it was brought to read what lies before them.
    pub others: Vec<u64>,
}

/// Rows whose records are in memory, or on their way.
#[derive(Debug, Default)]
pub struct Announced {
    /// The rows, in the order of their draws.
    pub rows: Vec<u64>,
    /// Whether their records lie in a few runs.
    pub in_runs: bool,
}

/// Has the kernel read the records of the rows that `draw` gives as far as they are not in memory. Those that lie in many
/// places are asked for in any manner.
pub fn announce(set: &CacheSet, manner: Manner, draw: impl FnOnce() -> Drawn) -> Announced {
    let waits = waits_for_disk();
    let Drawn { rows, others } = draw();
    let mut missing = others.iter().any(|row| !is_record_in_memory(set, set.place(*row)));
    if manner == Manner::Bring
        && let Some(cache) = rows.first().and_then(|row| set.caches().get(set.place(*row).cache))
    {
        keep_in_large_pages(cache.index().rows().as_flattened());
        keep_in_large_pages(cache.metadata().file());
    }
    let runs = runs(set, &rows);
    let in_runs = runs.len() <= rows.len().div_ceil(RUN_RECORDS);
    for (cache, run) in runs {
        // What cannot be mapped fails when it is read.
        let _ = set.with_shard(cache, run.shard, |shard| {
            let bytes = shard.get(run.start..run.end).unwrap_or_default();
            missing |=
                if manner == Manner::Bring && in_runs { bring_run(shard, bytes) } else { ask_for_run(set, bytes) };
        });
    }
    if manner == Manner::Bring {
        for row in &rows {
            look_at_metadata(set, set.place(*row));
        }
    }
    set.temperature().looked(missing || waits_for_disk() != waits);
    Announced { rows, in_runs }
}

/// The records of rows, those together that lie behind one another, and their caches.
fn runs(set: &CacheSet, rows: &[u64]) -> Vec<(usize, RecordPlace)> {
    let mut runs: Vec<(usize, RecordPlace)> = Vec::new();
    for row in rows {
        let place = set.place(*row);
        let Ok(record) = set.record_place(place) else { continue };
        match runs.last_mut() {
            Some((_, last)) if follows(last, &record) => last.end = record.end,
            _ => runs.push((place.cache, record)),
        }
    }
    runs
}

/// Asks the kernel for what is not in memory. Returns whether it says that anything is missing.
fn ask_for_run(set: &CacheSet, bytes: &[u8]) -> bool {
    let mut missing = false;
    for piece in bytes.chunks(PIECE) {
        let absent = !is_in_memory(piece);
        if absent || set.temperature().is_distrustful() {
            ask_for(piece);
        }
        missing |= absent;
    }
    missing
}

/// Reads a run of a shard, and waits for it. Returns whether anything was missing.
fn bring_run(shard: &[u8], bytes: &[u8]) -> bool {
    let mut missing = false;
    for piece in bytes.chunks(PIECE) {
        if !missing && !is_in_memory(piece) {
            keep_in_large_pages(shard);
            missing = true;
        }
        // Also what is there already: the kernel reads on when that is touched.
        bring_in(piece);
    }
    missing
}

fn is_record_in_memory(set: &CacheSet, place: Place) -> bool {
    let index = set.caches().get(place.cache).map(|cache| cache.index().rows());
    let slot = index.and_then(|index| index.get(usize::try_from(place.row).ok()?));
    if slot.is_some_and(|slot| !is_in_memory(slot)) {
        return false;
    }
    let Ok(record) = set.record_place(place) else { return true };
    let in_memory = set.with_shard(place.cache, record.shard, |shard| {
        // Of a large one the beginning will do.
        is_in_memory(shard.get(record.start..record.end.min(record.start.saturating_add(PIECE))).unwrap_or_default())
    });
    // What cannot be mapped fails when it is read.
    in_memory.unwrap_or(true)
}

/// Whether a record lies behind others of its shard, and not far from them.
fn follows(last: &RecordPlace, record: &RecordPlace) -> bool {
    last.shard == record.shard && record.start.checked_sub(last.end).is_some_and(|gap| gap <= GAP)
}

/// [`plan`], and a look at everything that whoever makes samples of the rows will look at, except for large payloads: those are
/// copied by the pool.
#[must_use]
pub fn plan_cold(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    let planned = plan(set, rows);
    let bytes: usize = planned.iter().filter_map(|sample| sample.found.as_ref().ok()).map(|found| found.len).sum();
    let small = bytes / planned.len().max(1) < SMALL_MEAN_BYTES;
    for PlannedSample { place, found } in &planned {
        look_at_metadata(set, *place);
        if small && let Ok(found) = found {
            // What cannot be mapped fails when it is copied.
            let _ = set.with_shard(place.cache, found.stored.shard, |shard| {
                touch(shard.get(found.stored.start..found.stored.end).unwrap_or_default());
            });
        }
    }
    planned
}

/// A plan of rows that nobody could look for: whatever went wrong is an error of each sample.
#[cold]
#[must_use]
pub fn plan_failed(set: &CacheSet, rows: &[u64], error: &Error) -> Vec<PlannedSample> {
    let failed =
        rows.iter().map(|row| PlannedSample { place: set.place(*row), found: Err(Box::new(error.for_each())) });
    failed.collect()
}

/// Reads everything that whoever makes one sample reads at once, so that it does not wait for the disk then.
pub(super) fn look_at(set: &CacheSet, place: Place) {
    let waits = waits_for_disk();
    let mut missing = false;
    if let Ok(record) = set.record_place(place) {
        // What cannot be mapped fails when it is copied.
        let _ = set.with_shard(place.cache, record.shard, |shard| {
            let bytes = shard.get(record.start..record.end).unwrap_or_default();
            missing = ask_for_run(set, bytes);
            touch(bytes.get(..LOOKED_AT).unwrap_or(bytes));
        });
    }
    look_at_metadata(set, place);
    set.temperature().looked(missing || waits_for_disk() != waits);
}

/// Reads everything of the metadata of a sample that making it reads.
pub(super) fn look_at_metadata(set: &CacheSet, place: Place) {
    let cache = set.caches().get(place.cache);
    let Some(values) = cache.and_then(|cache| cache.metadata().row(place.row)) else { return };
    for column in 0..set.schema().fields().len() {
        if let Some(RawValue::Text(text)) = black_box(values.value(column)) {
            touch(text);
        }
    }
}

/// Reads a byte of every page.
fn touch(bytes: &[u8]) {
    black_box(bytes.iter().step_by(PAGE).fold(0, |all, byte| all | byte));
    black_box(bytes.last());
}
