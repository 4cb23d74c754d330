//! Which sample each row of a table stands for.

use std::sync::{Mutex, PoisonError};

use arrow_array::UInt64Array;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;

use super::{Block, Work};
use crate::cancel::Waiter;
use crate::dataset::metadata::{CACHE_ID, SAMPLE_ID};
use crate::dataset::table::{ActiveTable, RowMap};
use crate::error::{Error, Result};
use crate::ids::{CacheId, SampleId};
use crate::memory::filled;
use crate::pool::{map_blocks, run_all};
use crate::reader::{Cache, CacheSet};

/// Rows that are compared before looking at the result.
const COMPARED_AT_ONCE: usize = 1024;

/// The ids of all batches.
struct Ids<'a> {
    cache_ids: &'a [UInt64Array],
    sample_ids: &'a [UInt64Array],
}

impl<'a> Ids<'a> {
    /// Cache ids and sample ids of a block.
    fn of(&self, block: &Block) -> (&'a [u64], &'a [u64]) {
        (part(self.cache_ids, block), part(self.sample_ids, block))
    }
}

fn part<'a>(ids: &'a [UInt64Array], block: &Block) -> &'a [u64] {
    ids.get(block.batch).and_then(|ids| ids.values().get(block.rows.clone())).unwrap_or_default()
}

/// What the rows of `before` are, if the ids are in the very memory where that table has them: in a frame that only has other
/// weights.
pub(super) fn shared(before: &ActiveTable, cache_ids: &[UInt64Array], sample_ids: &[UInt64Array]) -> Option<RowMap> {
    let metadata = before.made_metadata()?;
    let is_same = |name, given: &[UInt64Array]| {
        let batches = metadata.batches.iter().filter(|batch| batch.num_rows() > 0);
        let columns = batches.filter_map(|batch| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>());
        let (known, given) =
            (columns.map(|ids| ids.values().as_ptr_range()), given.iter().map(|ids| ids.values().as_ptr_range()));
        known.eq(given)
    };
    (is_same(CACHE_ID, cache_ids) && is_same(SAMPLE_ID, sample_ids)).then(|| before.rows().clone())
}

/// Finds the sample of every row.
pub(super) fn row_map(
    work: &Work<'_>,
    caches: &CacheSet,
    cache_ids: &[UInt64Array],
    sample_ids: &[UInt64Array],
    waiter: &mut dyn Waiter,
) -> Result<RowMap> {
    let ids = Ids { cache_ids, sample_ids };
    let rows: usize = work.blocks.iter().map(|block| block.rows.len()).sum();
    if rows as u64 == caches.row_count() {
        let in_order = map_blocks(work.pool, waiter, work.blocks.len(), &|number, cancel| {
            cancel.check()?;
            let Some(block) = work.blocks.get(number) else { return Ok(true) };
            let (cache_ids, sample_ids) = ids.of(block);
            Ok(is_in_order(caches, block.first as u64, cache_ids, sample_ids))
        })?;
        if in_order.into_iter().all(|in_order| in_order) {
            return Ok(RowMap::From(0));
        }
    }
    if u32::try_from(caches.row_count()).is_ok() {
        let narrow = |row: u64| u32::try_from(row).unwrap_or(u32::MAX);
        list(work, caches, &ids, narrow, rows, waiter).map(|samples| RowMap::Narrow(samples.into()))
    } else {
        list(work, caches, &ids, |row| row, rows, waiter).map(|samples| RowMap::Wide(samples.into()))
    }
}

/// Whether these are the ids of all samples from `row` on, counted through all caches.
fn is_in_order(caches: &CacheSet, mut row: u64, mut cache_ids: &[u64], mut sample_ids: &[u64]) -> bool {
    while !cache_ids.is_empty() {
        let place = caches.place(row);
        let Ok(cache) = caches.cache(place.cache) else { return false };
        let left = usize::try_from(cache.sample_count() - place.row).unwrap_or(usize::MAX);
        let len = cache_ids.len().min(left).min(COMPARED_AT_ONCE);
        let (these, later) = cache_ids.split_at(len);
        let (these_samples, later_samples) = sample_ids.split_at(len);
        let differences = these
            .iter()
            .zip(these_samples)
            .zip(place.row..)
            .fold(0, |all, ((id, sample), expected)| all | (id ^ cache.id().0) | (sample ^ expected));
        if differences != 0 {
            return false;
        }
        row += len as u64;
        (cache_ids, sample_ids) = (later, later_samples);
    }
    true
}

/// The samples of all rows, as numbers through all caches.
fn list<T: Copy + Default + Send>(
    work: &Work<'_>,
    caches: &CacheSet,
    ids: &Ids<'_>,
    convert: impl Fn(u64) -> T + Sync,
    rows: usize,
    waiter: &mut dyn Waiter,
) -> Result<Vec<T>> {
    let mut all = filled(T::default(), rows, "the rows of the table")?;
    let mut rest = all.as_mut_slice();
    let mut parts = Vec::with_capacity(work.blocks.len());
    for block in &work.blocks {
        let (part, later) = rest.split_at_mut(block.rows.len());
        parts.push(Mutex::new(part));
        rest = later;
    }
    run_all(work.pool, waiter, parts.len(), &|number, cancel| {
        cancel.check()?;
        let (Some(block), Some(part)) = (work.blocks.get(number), parts.get(number)) else { return Ok(()) };
        let (cache_ids, sample_ids) = ids.of(block);
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: Option<(u64, u64, u64)> = None;
        for (offset, ((cache_id, sample_id), slot)) in cache_ids.iter().zip(sample_ids).zip(part.iter_mut()).enumerate()
        {
            let (_, start, count) = match known {
                Some(known) if known.0 == *cache_id => known,
                _ => *known.insert(find_cache(work, caches, *cache_id, block.first + offset)?),
            };
            if *sample_id >= count {
                return Err(unknown(work, caches, *cache_id, *sample_id, block.first + offset));
            }
            *slot = convert(start + sample_id);
        }
        Ok(())
    })?;
    drop(parts);
    Ok(all)
}

/// Identity, first row and number of samples of a cache.
fn find_cache(work: &Work<'_>, caches: &CacheSet, id: u64, row: usize) -> Result<(u64, u64, u64)> {
    let found = caches.position(CacheId(id)).and_then(|position| {
        let count = caches.cache(position).map(Cache::sample_count).ok()?;
        Some((id, caches.row_start(position), count))
    });
    found.ok_or_else(|| unknown(work, caches, id, 0, row))
}

#[cold]
fn unknown(work: &Work<'_>, caches: &CacheSet, cache_id: u64, sample_id: u64, row: usize) -> Error {
    let (column, value) =
        if caches.position(CacheId(cache_id)).is_none() { (CACHE_ID, cache_id) } else { (SAMPLE_ID, sample_id) };
    let why = match caches.find(CacheId(cache_id), SampleId(sample_id)) {
        Err(error) => error.to_string(),
        Ok(_) => "it is no sample of this dataset".to_owned(),
    };
    work.origin.unknown(&format!("column {column:?}, row {row}: found {value}, but {why}"))
}
