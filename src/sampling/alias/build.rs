//! From weights to an [`AliasTable`]: passes over the weights in blocks that may run at the same time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lengths::Lengths;
use super::pairing::{Pairing, tiles};
use super::{AliasTable, alias_bits};
use crate::error::{Error, Result};
use crate::memory::filled;
use crate::prefetch::advise_huge_pages;
use crate::sampling::total::{ExactSum, Survey, exponent_of};

/// Rows done by one call. What is built does not depend on it.
pub(super) const BLOCK_ROWS: usize = 1 << 14;

/// Weights that are looked at in one go.
const SURVEYED_TOGETHER: usize = 1 << 10;

/// Most weights from which the sum of all is guessed.
const GUESSED_FROM: usize = 1 << 12;

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
        let Some(pairing) = pair(weights, run)? else { return Ok(None) };
        let mut cells = empty_cells(weights.len())?;
        let alias_bits = alias_bits(weights.len() as u64);
        let parts: Vec<_> = cells.chunks_mut(BLOCK_ROWS).map(Mutex::new).collect();
        spread(weights.len(), run)(parts.len(), &|block| {
            if let Some(part) = parts.get(block) {
                let mut part = lock(part);
                pairing.fill(weights, block, |place, threshold, alias| {
                    if let Some(cell) = part.get_mut(place) {
                        *cell = packed(threshold, alias, alias_bits);
                    }
                });
            }
            Ok(())
        })?;
        drop(parts);
        Ok(Some(Self { cells: cells.into(), alias_bits, capacity: pairing.capacity() }))
    }
}

/// Room for the cells of a table.
pub(super) fn empty_cells(rows: usize) -> Result<Vec<u64>> {
    let mut cells = filled(0, rows, "the sampling table")?;
    advise_huge_pages(&mut cells);
    Ok(cells)
}

/// A cell as one number. The capacity is at most 2^62 / rows + 2, so that every threshold fits above the bits of an alias.
#[inline]
pub(super) fn packed(threshold: u64, alias: usize, alias_bits: u32) -> u64 {
    threshold << alias_bits | alias as u64
}

/// Who shares what with whom, known at some rows, or `None` if all weights are equal. Two passes over the weights.
///
/// # Errors
/// As [`AliasTable::build`].
pub(super) fn pair(weights: &[f64], run: &mut RunBlocks<'_>) -> Result<Option<Pairing>> {
    let rows = weights.len() as u64;
    if rows == 0 {
        return Err(Error::InvalidValue("there are no rows to draw from; keep at least one row".to_owned()));
    }
    if rows > MAX_ROWS {
        return Err(Error::InvalidValue(format!(
            "a table with different weights has at most {MAX_ROWS} rows, found {rows}"
        )));
    }
    let mut run = spread(weights.len(), run);
    let run: &mut RunBlocks<'_> = &mut run;
    let guess = guessed_magnitude(weights);
    let guessed = Lengths::new(guess);
    let (survey, mut sum) = map(weights, run, &|block, weights| {
        let mut survey = Survey::EMPTY;
        let mut sum = 0_u64;
        // Small enough to be in the processor's nearest cache the second time.
        for weights in weights.chunks(SURVEYED_TOGETHER) {
            survey = survey.joined(Survey::of(weights));
            sum = sum.wrapping_add(guessed.sum(weights));
        }
        if survey.is_valid() { Ok((survey, sum)) } else { Err(invalid_weight(block * BLOCK_ROWS, weights)) }
    })?
    .into_iter()
    .fold((Survey::EMPTY, 0_u64), |all, one| (all.0.joined(one.0), all.1.wrapping_add(one.1)));
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
    let lengths = Lengths::new(magnitude);
    if magnitude != guess {
        sum = map(weights, run, &|_, weights| Ok(lengths.sum(weights)))?.iter().sum();
    }
    let lengths = lengths.filled_up(weights.len(), sum);
    let parts = map(weights, run, &|block, _| Ok(tiles(lengths, weights, block)))?;
    Ok(Some(Pairing::new(lengths, &parts.concat())))
}

/// `run`, unless there is but one block, which would only be passed to another thread and waited for.
fn spread<'a>(
    rows: usize,
    run: &'a mut RunBlocks<'_>,
) -> impl FnMut(usize, &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> + 'a {
    move |blocks, work| if rows <= BLOCK_ROWS { one_by_one(blocks, work) } else { run(blocks, work) }
}

/// The magnitude of the sum of all weights, estimated from some of them. Any number for weights that are not valid.
fn guessed_magnitude(weights: &[f64]) -> i32 {
    let step = weights.len().div_ceil(GUESSED_FROM);
    let looked_at = weights.len().div_ceil(step);
    let sum: f64 = weights.iter().step_by(step).sum();
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let whole = sum / looked_at as f64 * weights.len() as f64;
    exponent_of(whole)
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
