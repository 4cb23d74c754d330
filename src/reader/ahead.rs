//! What is done about records that may still be on disk, by threads that may wait for it.

use std::hint::black_box;

use crate::format::metadata::RawValue;
use crate::prefetch::{ask_for, is_in_memory};
use crate::reader::cache_set::{CacheSet, RecordPlace};
use crate::reader::plan::{PlannedSample, plan};

/// Bytes that are asked for at once: the kernel quietly leaves out what goes beyond the read-ahead of the device, of which
/// this is the usual one.
const PIECE: usize = 128 << 10;

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

/// [`plan`], and a look at everything that whoever makes samples of the rows will look at.
#[must_use]
pub fn plan_cold(set: &CacheSet, rows: &[u64]) -> Vec<PlannedSample> {
    let planned = plan(set, rows);
    let columns = set.schema().fields().len();
    for sample in &planned {
        let cache = set.caches().get(sample.place.cache);
        let Some(values) = cache.and_then(|cache| cache.metadata().row(sample.place.row)) else { continue };
        for column in 0..columns {
            if let Some(RawValue::Text(text)) = black_box(values.value(column)) {
                black_box(text.first());
                black_box(text.last());
            }
        }
    }
    planned
}
