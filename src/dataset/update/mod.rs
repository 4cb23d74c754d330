//! From a table that a user gives to an active table: every rule is checked before anything is replaced.

mod columns;
mod origin;
mod rows;
mod weights;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::cancel::Waiter;
use crate::dataset::metadata::{CACHE_ID, Metadata, SAMPLE_ID, WEIGHT, check_names};
use crate::dataset::table::ActiveTable;
use crate::error::{Error, Result};
use crate::pool::{WorkerPool, run_all};
use crate::reader::{CacheSet, ReaderConfig};
use crate::sampling::{DrawStream, SharedSlice};
use columns::{Column, Places};
pub(super) use origin::Origin;

/// Rows that one task looks at.
const BLOCK_ROWS: usize = 1 << 16;

/// The rows of a table, cut into blocks, and who works on them.
struct Work<'a> {
    batches: &'a [RecordBatch],
    blocks: Vec<Block>,
    pool: &'a WorkerPool,
    origin: &'a Origin<'a>,
}

/// Rows of one batch that one task looks at.
#[derive(Debug, Clone)]
struct Block {
    batch: usize,
    /// Within the batch.
    rows: Range<usize>,
    /// Number of its first row within the table.
    first: usize,
}

/// Makes an active table of `given`, which comes from `origin`. It may share the ids of the table `before` it.
///
/// # Errors
/// As `origin` has it for a broken rule, with column, row and value; [`Error::Interrupted`] from `waiter`.
pub(super) fn build(
    given: Metadata,
    origin: &Origin<'_>,
    before: Option<&ActiveTable>,
    caches: &CacheSet,
    config: &ReaderConfig,
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
) -> Result<ActiveTable> {
    check_names(caches)?;
    let places = Places::find(&given.schema, caches.schema(), origin)?;
    let mut batches: Vec<RecordBatch> = given.batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
    if let Some(known) = before.and_then(ActiveTable::made_metadata) {
        take_back(&mut batches, known);
    }
    let work = Work { blocks: blocks_of(&batches), batches: &batches, pool, origin };
    if work.blocks.is_empty() {
        return Err(origin
            .broken("expected a table with at least one row, found none", "keep the samples that should be drawn"));
    }
    let weights = work.numbers::<Float64Type>(&Column { name: WEIGHT, place: places.weight }, waiter)?;
    let draws = if config.shuffle {
        let whole = SharedSlice::new(weights::whole(&weights)?);
        let draws = DrawStream::weighted_soon(whole, config.seed, &mut |blocks, block_work| {
            run_all(pool, waiter, blocks, &|block, cancel| {
                cancel.check()?;
                block_work(block)
            })
        });
        if let Err(Error::InvalidValue(_)) = &draws {
            weights::check(&work, &weights.parts, waiter)?;
        }
        draws?
    } else {
        weights::check(&work, &weights.parts, waiter)?;
        DrawStream::cyclic(weights.parts.iter().map(|part| part.len() as u64).sum())?
    };
    let rows::Identities { cache_ids, sample_ids, rows } =
        match before.and_then(|before| rows::shared(before, work.batches, &places)) {
            Some(identities) => identities,
            None => rows::identities(&work, caches, &places, waiter)?,
        };

    let number = |name, data_type| Field::new(name, data_type, false);
    let table = places.arrange(
        &given.schema,
        [number(CACHE_ID, DataType::UInt64), number(SAMPLE_ID, DataType::UInt64), number(WEIGHT, DataType::Float64)]
            .map(Arc::new),
    );
    let schema = Arc::new(Schema::new(table));
    let numbers = cache_ids.into_iter().zip(sample_ids).zip(weights.parts);
    let arranged = batches.iter().zip(numbers).map(|(batch, ((cache_ids, sample_ids), weights))| {
        let numbers: [ArrayRef; 3] = [Arc::new(cache_ids), Arc::new(sample_ids), Arc::new(weights)];
        let columns = places.arrange_columns(batch, numbers);
        RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| origin.broken(&format!("the table is no valid Arrow table: {error}"), "build it anew"))
    });
    let batches = arranged.collect::<Result<_>>()?;
    ActiveTable::given(rows, draws, Metadata { schema, batches })
}

/// Puts the arrays of `known` in the place of those that are in the very same memory: they went out with a table and came back,
/// and what came back keeps the table alive that they went out with, and so all tables before it.
fn take_back(batches: &mut [RecordBatch], known: &Metadata) {
    let known = known.batches.iter().filter(|batch| batch.num_rows() > 0);
    for (batch, known) in batches.iter_mut().zip(known) {
        let schema = batch.schema();
        let columns = batch.columns().iter().zip(schema.fields()).map(|(given, field)| {
            let known = known.column_by_name(field.name());
            let is_same = |known: &&ArrayRef| known.to_data().ptr_eq(&given.to_data());
            Arc::clone(known.filter(is_same).unwrap_or(given))
        });
        // With the same types and lengths nothing can fail.
        if let Ok(taken) = RecordBatch::try_new(Arc::clone(&schema), columns.collect()) {
            *batch = taken;
        }
    }
}

fn blocks_of(batches: &[RecordBatch]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut first = 0;
    for (batch, rows) in batches.iter().map(RecordBatch::num_rows).enumerate() {
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let rows = start..rows.min(start + BLOCK_ROWS);
            let len = rows.len();
            blocks.push(Block { batch, rows, first });
            first += len;
        }
    }
    blocks
}
