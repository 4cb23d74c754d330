//! The active table as users see it: ids, stored columns, weight, and whatever columns they added.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::cancel::Waiter;
use crate::error::{Error, Result};
use crate::format::schema::Field as StoredField;
use crate::memory::{filled, with_room};
use crate::pool::{WorkerPool, map_blocks};
use crate::reader::{Cache, CacheSet};
use crate::value::Kind;

/// Column with the identity of the cache.
pub(super) const CACHE_ID: &str = "cache_id";
/// Column with the row within the cache.
pub(super) const SAMPLE_ID: &str = "sample_id";
/// Column with the weight of the row.
pub(super) const WEIGHT: &str = "weight";

/// A table of Arrow batches that share one schema. Cloning it copies no values.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// Names and types of the columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// The Arrow type of a stored column.
pub(super) fn stored_type(field: &StoredField) -> DataType {
    match field.kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::String => DataType::Utf8,
    }
}

/// The table of a dataset that was never updated: one batch or more for each cache, stored columns on the mapped files.
/// Every stored value is checked on the way.
pub(super) fn fresh_metadata(set: &CacheSet, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<Metadata> {
    check_names(set)?;
    let caches = set.caches();
    let stored = map_blocks(pool, waiter, caches.len(), &|cache, _| {
        caches.get(cache).map_or_else(|| Ok(Vec::new()), |cache| cache.metadata().to_record_batches())
    })?;
    let mut fields =
        vec![Field::new(CACHE_ID, DataType::UInt64, false), Field::new(SAMPLE_ID, DataType::UInt64, false)];
    fields.extend(set.schema().fields().iter().map(|field| Field::new(&field.name, stored_type(field), false)));
    fields.push(Field::new(WEIGHT, DataType::Float64, false));
    let schema = Arc::new(Schema::new(fields));

    let shared = SharedColumns::for_rows(caches.iter().map(Cache::sample_count).max().unwrap_or(0))?;
    let mut batches = Vec::new();
    for (cache, stored) in caches.iter().zip(stored) {
        let mut first = 0;
        for batch in stored {
            let rows = batch.num_rows();
            let columns = shared.around(cache, first, &batch);
            let whole = RecordBatch::try_new(Arc::clone(&schema), columns)
                .map_err(|error: ArrowError| Error::invalid_cache(cache.path(), error.to_string()))?;
            first += rows;
            batches.push(whole);
        }
    }
    Ok(Metadata { schema, batches })
}

/// Refuses stored columns with names that tables need themselves. This library writes none, others may.
///
/// # Errors
/// [`Error::InvalidCache`].
pub(super) fn check_names(set: &CacheSet) -> Result<()> {
    let clash = set.schema().fields().iter().find(|field| [CACHE_ID, SAMPLE_ID, WEIGHT].contains(&field.name.as_str()));
    match (clash, set.caches().first()) {
        (Some(field), Some(cache)) => Err(Error::invalid_cache(
            cache.path(),
            format!(
                "the metadata column {:?} has the name of a column that tables have anyway, so that there is no table of \
                 this cache; iterate over its samples without one, or write it again with another key",
                field.name
            ),
        )),
        _ => Ok(()),
    }
}

/// Columns that are the same for all caches, as long as the largest cache.
struct SharedColumns {
    sample_ids: ScalarBuffer<u64>,
    weights: ScalarBuffer<f64>,
}

impl SharedColumns {
    fn for_rows(rows: u64) -> Result<Self> {
        let count = usize::try_from(rows)
            .map_err(|_| Error::InvalidValue(format!("a table of {rows} rows does not fit into memory")))?;
        let mut sample_ids = with_room(count, "the sample ids of the table")?;
        sample_ids.extend(0..rows);
        Ok(Self { sample_ids: sample_ids.into(), weights: filled(1.0, count, "the weights of the table")?.into() })
    }

    /// All columns for some stored rows of a cache, the first of which is row `first`.
    fn around(&self, cache: &Cache, first: usize, stored: &RecordBatch) -> Vec<ArrayRef> {
        let rows = stored.num_rows();
        let cache_ids = UInt64Array::from_value(cache.id().0, rows);
        let sample_ids = UInt64Array::new(self.sample_ids.slice(first, rows), None);
        let weights = Float64Array::new(self.weights.slice(0, rows), None);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(cache_ids), Arc::new(sample_ids)];
        columns.extend(stored.columns().iter().cloned());
        columns.push(Arc::new(weights));
        columns
    }
}
