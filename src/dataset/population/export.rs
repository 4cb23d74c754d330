//! From an active table to the file of its population.

use std::ops::Range;
use std::path::Path;

use arrow_array::Float64Array;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;

use super::file::{self, Samples, index};
use super::order::shuffled;
use crate::cancel::Waiter;
use crate::dataset::metadata::{Metadata, WEIGHT};
use crate::dataset::table::{ActiveTable, RowMap, check_rows};
use crate::error::Result;
use crate::pool::{WorkerPool, run_all};
use crate::reader::CacheSet;
use crate::sampling::AliasTable;

/// How the readers of a population go through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PopulationOrder {
    /// In the order of the table. Weights are not needed.
    Table,
    /// By weight, from rows in the order of the table.
    WeightedTable,
    /// By weight, from rows in an order that follows from this seed: the order matters to those who draw from a part.
    WeightedShuffled(u64),
}

/// Writes the population of `table` to the new file `path`, with tables for `parts` of its rows, and returns the number
/// of rows.
pub(in crate::dataset) fn export(
    table: &ActiveTable,
    caches: &CacheSet,
    path: &Path,
    order: PopulationOrder,
    parts: &[Range<u64>],
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
) -> Result<u64> {
    let rows = table.len();
    parts.iter().try_for_each(|part| check_rows(part, rows))?;
    let order_of_rows = match order {
        PopulationOrder::WeightedShuffled(seed) => Some(shuffled(rows, seed, pool, waiter)?),
        PopulationOrder::Table | PopulationOrder::WeightedTable => None,
    };
    let order_of_rows = order_of_rows.as_deref();
    let weights = match (order, table.made_metadata()) {
        (PopulationOrder::Table, _) | (_, None) => None,
        (_, Some(metadata)) => Some(weights(metadata, order_of_rows)),
    };
    let weights = weights.filter(|weights| weights.windows(2).any(|pair| pair.first() != pair.last()));
    let mut tables = Vec::new();
    for part in if weights.is_some() { parts } else { &[] } {
        let weights = weights.as_deref().and_then(|weights| weights.get(index(part.start)..index(part.end)));
        let table = AliasTable::build(weights.unwrap_or_default(), &mut |blocks, work| {
            run_all(pool, waiter, blocks, &|block, cancel| {
                cancel.check()?;
                work(block)
            })
        })?;
        tables.push((part.clone(), table));
    }
    let row_at = |place: usize| match order_of_rows {
        None => Some(place),
        Some(order) => order.get(place).and_then(|row| usize::try_from(*row).ok()),
    };
    let sample = |place| row_at(place).and_then(|row| table.rows().sample(row));
    let samples = match (table.rows(), order_of_rows) {
        (RowMap::From(0), None) => Samples::InOrder,
        _ => Samples::Listed(&sample),
    };
    run_all(pool, waiter, 1, &|_, cancel| {
        file::write(path, rows, caches.row_count(), &samples, weights.as_deref(), &tables, cancel)
    })?;
    Ok(rows)
}

/// The weights of all rows in one piece.
fn weights(metadata: &Metadata, order: Option<&[u64]>) -> Vec<f64> {
    let parts = weight_columns(metadata);
    let mut weights = Vec::with_capacity(parts.iter().map(|part| part.values().len()).sum());
    for part in parts {
        weights.extend_from_slice(part.values());
    }
    let Some(order) = order else { return weights };
    let weight = |row: &u64| usize::try_from(*row).ok().and_then(|row| weights.get(row)).copied();
    order.iter().filter_map(weight).collect()
}

/// The weights of each batch. Every table has this column.
pub(super) fn weight_columns(metadata: &Metadata) -> Vec<&Float64Array> {
    let columns = metadata.batches.iter().filter_map(|batch| batch.column_by_name(WEIGHT));
    columns.filter_map(|column| column.as_primitive_opt::<Float64Type>()).collect()
}
