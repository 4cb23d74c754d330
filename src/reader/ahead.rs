//! What is done about records that may still be on disk, by threads that may wait for it.

use std::hint::black_box;

use crate::format::metadata::RawValue;
use crate::prefetch::{ask_for, is_in_memory};
use crate::reader::cache_set::{CacheSet, RecordPlace};
use crate::reader::plan::{PlannedSample, plan};

/// Bytes that are asked for at once. The kernel quietly leaves out what goes beyond the read-ahead of the device or its
/// largest request, whichever is more; this is less than the usual one.
const PIECE: usize = 512 << 10;

/// Payloads below this mean size are copied by whoever asked for them, who must not wait for the disk.
pub const SMALL_MEAN_BYTES: usize = 16 << 10;

/// No page is smaller.
const PAGE: usize = 4096;

/// Asks the kernel to read the records of `rows` that are not in memory, without waiting for them.
pub fn announce(set: &CacheSet, rows: &[u64]) {
    let temperature = set.temperature();
    let (mut missing, anyway) = (false, temperature.is_distrustful());
    let mut announce = |cache: usize, stretch: &RecordPlace| {
        // What cannot be mapped fails when it is read.
        let _ = set.with_shard(cache, stretch.shard, |shard| {
            for piece in shard.get(stretch.start..stretch.end).unwrap_or_default().chunks(PIECE) {
                let absent = !is_in_memory(piece);
                if absent || anyway {
                    ask_for(piece);
                }
                missing |= absent;
            }
        });
    };
    let mut stretch: Option<(usize, RecordPlace)> = None;
    for row in rows {
        let place = set.place(*row);
        let Ok(record) = set.record_place(place) else { continue };
        match &mut stretch {
            // Records behind one another are one stretch.
            Some((_, last)) if last.shard == record.shard && last.end == record.start => last.end = record.end,
            _ => {
                if let Some((cache, last)) = stretch.replace((place.cache, record)) {
                    announce(cache, &last);
                }
            }
        }
    }
    if let Some((cache, last)) = stretch {
        announce(cache, &last);
    }
    temperature.looked(missing);
}

/// [`plan`], and a look at everything that whoever makes samples of the rows will look at, except for large payloads: those are
/// copied by the pool.
#[must_use]
pub fn plan_cold(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    let planned = plan(set, rows);
    let bytes: usize = planned.iter().filter_map(|sample| sample.found.as_ref().ok()).map(|found| found.len).sum();
    let small = bytes / planned.len().max(1) < SMALL_MEAN_BYTES;
    let columns = set.schema().fields().len();
    for PlannedSample { place, found } in &planned {
        let cache = set.caches().get(place.cache);
        if let Some(values) = cache.and_then(|cache| cache.metadata().row(place.row)) {
            for column in 0..columns {
                if let Some(RawValue::Text(text)) = black_box(values.value(column)) {
                    touch(text);
                }
            }
        }
        if small && let Ok(found) = found {
            // What cannot be mapped fails when it is copied.
            let _ = set.with_shard(place.cache, found.stored.shard, |shard| {
                touch(shard.get(found.stored.start..found.stored.end).unwrap_or_default());
            });
        }
    }
    planned
}

/// Reads a byte of every page.
fn touch(bytes: &[u8]) {
    black_box(bytes.iter().step_by(PAGE).fold(0, |all, byte| all | byte));
    black_box(bytes.last());
}
