//! One word for a whole table: equal for equal identities and weights in equal order, wherever the caches are.

use std::ops::Range;

use super::export::weight_columns;
use crate::cancel::Waiter;
use crate::dataset::table::ActiveTable;
use crate::error::Result;
use crate::pool::{WorkerPool, map_blocks};
use crate::reader::CacheSet;

/// Rows that are hashed together. Part of what the digest means.
const BLOCK_ROWS: usize = 1 << 16;

/// BLAKE3 over `cache_id`, `sample_id` and the bits of the weight of every row, in blocks, and then over the blocks.
pub(in crate::dataset) fn digest(
    table: &ActiveTable,
    caches: &CacheSet,
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
) -> Result<String> {
    let rows = usize::try_from(table.len()).unwrap_or(usize::MAX);
    let weights = table.made_metadata().map(weight_columns).unwrap_or_default();
    let mut starts = Vec::with_capacity(weights.len());
    let mut end = 0;
    for part in &weights {
        starts.push(end);
        end += part.values().len();
    }
    let weights_from = |row: usize| {
        let part = starts.partition_point(|start| *start <= row).saturating_sub(1);
        let skipped = row - starts.get(part).copied().unwrap_or(row);
        let here = weights.get(part).and_then(|part| part.values().get(skipped..)).unwrap_or_default();
        let later = weights.iter().skip(part + 1).flat_map(|part| part.values().iter());
        here.iter().chain(later).copied()
    };
    let blocks = map_blocks(pool, waiter, rows.div_ceil(BLOCK_ROWS), &|block, cancel| {
        cancel.check()?;
        let first = block * BLOCK_ROWS;
        let range = first..rows.min(first + BLOCK_ROWS);
        // Before the table is made, every weight is 1.
        let weights = weights_from(first).chain(std::iter::repeat(1.0));
        Ok(hash_rows(table, caches, range, weights))
    })?;
    let mut whole = blake3::Hasher::new();
    whole.update(&(rows as u64).to_le_bytes());
    for block in blocks {
        whole.update(block.as_bytes());
    }
    Ok(whole.finalize().to_hex().to_string())
}

fn hash_rows(
    table: &ActiveTable,
    caches: &CacheSet,
    rows: Range<usize>,
    weights: impl Iterator<Item = f64>,
) -> blake3::Hash {
    let mut bytes = Vec::with_capacity(rows.len() * 24);
    for (row, weight) in rows.zip(weights) {
        let place = caches.place(table.rows().sample(row).unwrap_or(u64::MAX));
        let cache = caches.cache(place.cache).map_or(u64::MAX, |cache| cache.id().0);
        bytes.extend_from_slice(&cache.to_le_bytes());
        bytes.extend_from_slice(&place.row.to_le_bytes());
        bytes.extend_from_slice(&weight.to_bits().to_le_bytes());
    }
    blake3::hash(&bytes)
}
