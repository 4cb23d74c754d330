//! Which sample each row of a table stands for.

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_array::{Array as _, RecordBatch, UInt64Array};

use super::columns::{Column, Places, fill_blocks};
use super::{Block, Work};
use crate::cancel::Waiter;
use crate::dataset::metadata::{CACHE_ID, SAMPLE_ID};
use crate::dataset::table::{ActiveTable, RowMap};
use crate::error::{Error, Result};
use crate::ids::{CacheId, SampleId};
use crate::memory::filled;
use crate::pool::map_blocks;
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

/// The ids of all batches, and the samples they stand for.
pub(super) struct Identities {
    pub(super) cache_ids: Vec<UInt64Array>,
    pub(super) sample_ids: Vec<UInt64Array>,
    pub(super) rows: RowMap,
}

/// Those of `before`, if the given ids are in the very memory where that table has them: in a frame that only has other
/// weights. Nobody else writes to that memory, which belongs to this library.
pub(super) fn shared(before: &ActiveTable, batches: &[RecordBatch], places: &Places) -> Option<Identities> {
    let metadata = before.made_metadata()?;
    let known = |name| -> Option<Vec<UInt64Array>> {
        let batches = metadata.batches.iter().filter(|batch| batch.num_rows() > 0);
        batches.map(|batch| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>().cloned()).collect()
    };
    let given = |place: usize| -> Option<Vec<&UInt64Array>> {
        batches.iter().map(|batch| batch.columns().get(place)?.as_primitive_opt::<UInt64Type>()).collect()
    };
    let is_same = |known: &[UInt64Array], given: &[&UInt64Array]| {
        let places = |ids: &UInt64Array| ids.values().as_ptr_range();
        given.iter().all(|ids| ids.null_count() == 0)
            && known.iter().map(places).eq(given.iter().map(|ids| places(ids)))
    };
    let (cache_ids, sample_ids) = (known(CACHE_ID)?, known(SAMPLE_ID)?);
    let same = is_same(&cache_ids, &given(places.cache_id)?) && is_same(&sample_ids, &given(places.sample_id)?);
    same.then(|| Identities { cache_ids, sample_ids, rows: before.rows().clone() })
}

/// Finds the sample of every row.
pub(super) fn identities(
    work: &Work<'_>,
    caches: &CacheSet,
    places: &Places,
    waiter: &mut dyn Waiter,
) -> Result<Identities> {
    let mut ids = |name, place| work.numbers::<UInt64Type>(&Column { name, place }, waiter).map(|ids| ids.parts);
    let (cache_ids, sample_ids) = (ids(CACHE_ID, places.cache_id)?, ids(SAMPLE_ID, places.sample_id)?);
    let rows = row_map(work, caches, &Ids { cache_ids: &cache_ids, sample_ids: &sample_ids }, waiter)?;
    Ok(Identities { cache_ids, sample_ids, rows })
}

fn row_map(work: &Work<'_>, caches: &CacheSet, ids: &Ids<'_>, waiter: &mut dyn Waiter) -> Result<RowMap> {
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
        list(work, caches, ids, narrow, rows, waiter).map(|samples| RowMap::Narrow(samples.into()))
    } else {
        list(work, caches, ids, |row| row, rows, waiter).map(|samples| RowMap::Wide(samples.into()))
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
    fill_blocks(work, &mut all, waiter, &|block, part| {
        let (cache_ids, sample_ids) = ids.of(block);
        let mut known: Option<(u64, u64, u64)> = None;
        for (offset, ((cache_id, sample_id), slot)) in cache_ids.iter().zip(sample_ids).zip(part).enumerate() {
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
