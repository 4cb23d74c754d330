//! From weights to an [`AliasTable`]: passes over the weights in blocks that may run at the same time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pairing::{Lengths, Pairing};
use super::{AliasTable, alias_bits};
use crate::error::{Error, Result};
use crate::memory::filled;
use crate::prefetch::advise_huge_pages;
use crate::sampling::total::{ExactSum, Survey};

/// Rows done by one call. What is built does not depend on it.
pub(super) const BLOCK_ROWS: usize = 1 << 14;

/// Most rows of a table: leaves 28 bits for the threshold of a cell.
const MAX_ROWS: u64 = 1 << 36;

/// Does work for the block numbers below a count, at the same time if it can, and returns when all is done or
/// something failed.
pub type RunBlocks<'a> = dyn FnMut(usize, &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> + 'a;

/// The simplest [`RunBlocks`]: one block after the other, on the calling thread.
///
/// # Errors
/// The first error of a block.
pub fn one_by_one(blocks: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    (0..blocks).try_for_each(work)
}

impl AliasTable {
    /// A table for these weights, or `None` if all are equal (in their bits) and so no table is needed.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when there is no weight, one is not positive and finite, or their sum is not finite;
    /// whatever `run` returns.
    pub fn build(weights: &[f64], run: &mut RunBlocks<'_>) -> Result<Option<Self>> {
        let rows = weights.len() as u64;
        if rows == 0 {
            return Err(Error::InvalidValue("there are no rows to draw from; keep at least one row".to_owned()));
        }
        if rows > MAX_ROWS {
            return Err(Error::InvalidValue(format!(
                "a table with different weights has at most {MAX_ROWS} rows, found {rows}"
            )));
        }
        // One block would only be passed to another thread and waited for.
        let mut here = one_by_one;
        let run: &mut RunBlocks<'_> = if weights.len() <= BLOCK_ROWS { &mut here } else { run };
        let survey = map(weights, run, &survey)?.into_iter().fold(Survey::EMPTY, Survey::joined);
        let magnitude = match survey.magnitude() {
            Some(magnitude) => magnitude,
            None => exact_magnitude(weights, run)?,
        };
        if magnitude >= f64::MAX_EXP {
            return Err(Error::InvalidValue(
                "the sum of the weights is not finite; divide all weights by the same number".to_owned(),
            ));
        }
        if survey.is_equal() {
            return Ok(None);
        }
        let mut lengths = Lengths::new(weights, magnitude);
        let sums = map(weights, run, &|block, _| Ok(lengths.sum(block)))?;
        lengths.fill_up(sums.iter().sum());
        let pairing = Pairing::new(lengths, &map(weights, run, &|block, _| Ok(lengths.tiles(block)))?.concat());

        // The capacity is at most 2^62 / rows + 2, so that every threshold fits above the bits of an alias.
        let alias_bits = alias_bits(rows);
        let mut cells = filled(0, weights.len(), "the sampling table")?;
        advise_huge_pages(&mut cells);
        let parts: Vec<_> = cells.chunks_mut(BLOCK_ROWS).map(Mutex::new).collect();
        run(parts.len(), &|block| {
            if let Some(part) = parts.get(block) {
                pairing.fill(block, &mut lock(part), |threshold, alias| threshold << alias_bits | alias as u64);
            }
            Ok(())
        })?;
        drop(parts);
        Ok(Some(Self { cells: cells.into(), alias_bits, capacity: lengths.capacity() }))
    }
}

/// Applies `work` to the number and the weights of each block; results in order.
fn map<T: Send>(
    weights: &[f64],
    run: &mut RunBlocks<'_>,
    work: &(dyn Fn(usize, &[f64]) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let blocks: Vec<_> = weights.chunks(BLOCK_ROWS).map(|block| (block, Mutex::new(None))).collect();
    run(blocks.len(), &|number| {
        if let Some((block, result)) = blocks.get(number) {
            *lock(result) = Some(work(number, block)?);
        }
        Ok(())
    })?;
    Ok(blocks
        .into_iter()
        .filter_map(|(_, result)| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn survey(block: usize, weights: &[f64]) -> Result<Survey> {
    let first_row = block * BLOCK_ROWS;
    let survey = Survey::of(weights);
    if survey.is_valid() { Ok(survey) } else { Err(invalid_weight(first_row, weights)) }
}

fn invalid_weight(first_row: usize, weights: &[f64]) -> Error {
    let fault = weights.iter().enumerate().find(|(_, weight)| !(weight.is_finite() && **weight > 0.0));
    let (row, weight) = fault.map_or((first_row, f64::NAN), |(row, weight)| (first_row + row, *weight));
    let advice = if weight == 0.0 { "; to leave a row out, filter it from the table" } else { "" };
    Error::InvalidValue(format!(
        "column \"weight\", row {row}: expected a positive finite number, found {weight}{advice}"
    ))
}

fn exact_magnitude(weights: &[f64], run: &mut RunBlocks<'_>) -> Result<i32> {
    let whole = Mutex::new(ExactSum::ZERO);
    map(weights, run, &|_, block| {
        let mut sum = ExactSum::ZERO;
        sum.add_all(block);
        lock(&whole).add_sum(&sum);
        Ok(())
    })?;
    let magnitude = lock(&whole).magnitude();
    Ok(magnitude)
}
