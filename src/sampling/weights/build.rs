//! Makes a [`WeightTable`]: two passes over the weights, both in blocks that may run at the same time.

use std::sync::{Mutex, PoisonError};

use super::{LINE, Scale, WeightTable};
use crate::error::{Error, Result};
use crate::sampling::SharedSlice;
use crate::sampling::total::{ExactSum, Survey};

/// Rows done by one call. What is built does not depend on it.
const BLOCK_ROWS: usize = 1 << 16;
const BLOCK_LINES: usize = BLOCK_ROWS / LINE;

/// Most rows of a table: lines are numbered with 32 bits.
const MAX_ROWS: u64 = 1 << 35;

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

impl WeightTable {
    /// A table for these weights, or `None` if all are equal (in their bits) and so no table is needed.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when there is no weight, one is not positive and finite, or their sum is not finite;
    /// whatever `run` returns.
    pub fn build(weights: SharedSlice<f64>, run: &mut RunBlocks<'_>) -> Result<Option<Self>> {
        let rows = weights.as_slice();
        if rows.is_empty() {
            return Err(Error::InvalidValue("there are no rows to draw from; keep at least one row".to_owned()));
        }
        if rows.len() as u64 > MAX_ROWS {
            return Err(Error::InvalidValue(format!(
                "a weighted table has at most {MAX_ROWS} rows, found {}",
                rows.len()
            )));
        }
        let survey = survey(rows, run)?;
        let magnitude = match survey.magnitude() {
            Some(magnitude) => magnitude,
            None => exact_magnitude(rows, run)?,
        };
        if magnitude > f64::MAX_EXP - 1 {
            return Err(Error::InvalidValue(
                "the sum of the weights is not finite; divide all weights by the same number".to_owned(),
            ));
        }
        if survey.is_equal() {
            return Ok(None);
        }
        let scale = Scale::for_sum(magnitude);
        let (mut starts, block_starts, total) = lengths(rows, scale, run)?;
        let lines = starts.len() as u64;
        let bucket_shift = bits(total - 1).saturating_sub(bits(lines));
        let guide = guide(&mut starts, &block_starts, total, bucket_shift, run)?;
        Ok(Some(Self { weights, starts: starts.into(), guide: guide.into(), bucket_shift, total, scale }))
    }
}

/// Length in binary digits.
fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

fn survey(rows: &[f64], run: &mut RunBlocks<'_>) -> Result<Survey> {
    let whole = Mutex::new(Survey::EMPTY);
    run(rows.len().div_ceil(BLOCK_ROWS), &|block| {
        let (first, part) = part_of(rows, block);
        let survey = Survey::of(part);
        if !survey.is_valid() {
            return Err(invalid_weight(first, part));
        }
        let mut whole = lock(&whole);
        *whole = whole.joined(survey);
        Ok(())
    })?;
    Ok(into_inner(whole))
}

fn exact_magnitude(rows: &[f64], run: &mut RunBlocks<'_>) -> Result<i32> {
    let whole = Mutex::new(ExactSum::ZERO);
    run(rows.len().div_ceil(BLOCK_ROWS), &|block| {
        let mut sum = ExactSum::ZERO;
        sum.add_all(part_of(rows, block).1);
        lock(&whole).add_sum(&sum);
        Ok(())
    })?;
    Ok(into_inner(whole).magnitude())
}

fn invalid_weight(first_row: usize, weights: &[f64]) -> Error {
    let fault = weights.iter().enumerate().find(|(_, weight)| !(weight.is_finite() && **weight > 0.0));
    let (row, weight) = fault.map_or((first_row, f64::NAN), |(row, weight)| (first_row + row, *weight));
    let advice = if weight == 0.0 { "; to leave a row out, filter it from the table" } else { "" };
    Error::InvalidValue(format!(
        "column \"weight\", row {row}: expected a positive finite number, found {weight}{advice}"
    ))
}

/// Where each line starts within its block, where each block starts, and where all ends.
fn lengths(rows: &[f64], scale: Scale, run: &mut RunBlocks<'_>) -> Result<(Vec<u64>, Vec<u64>, u64)> {
    let mut starts = vec![0; rows.len().div_ceil(LINE)];
    let parts: Vec<_> = starts.chunks_mut(BLOCK_LINES).map(|lines| Mutex::new((lines, 0))).collect();
    run(parts.len(), &|block| {
        if let Some(part) = parts.get(block) {
            let (starts, length) = &mut *lock(part);
            for (start, line) in starts.iter_mut().zip(part_of(rows, block).1.chunks(LINE)) {
                *start = *length;
                *length += line.iter().map(|weight| scale.length(*weight)).sum::<u64>();
            }
        }
        Ok(())
    })?;
    let mut total = 0;
    let mut block_starts = Vec::with_capacity(parts.len());
    for part in parts {
        block_starts.push(total);
        total += into_inner(part).1;
    }
    Ok((starts, block_starts, total))
}

/// Makes `starts` absolute and finds the line in which each bucket begins.
fn guide(
    starts: &mut [u64],
    block_starts: &[u64],
    total: u64,
    shift: u32,
    run: &mut RunBlocks<'_>,
) -> Result<Vec<u32>> {
    let first_bucket_from = |position: u64| {
        let bucket = position.div_ceil(1 << shift);
        usize::try_from(bucket).unwrap_or(usize::MAX)
    };
    let last_line = line_number(starts.len() - 1);
    let mut guide = vec![last_line; first_bucket_from(total) + 1];
    let mut parts = Vec::with_capacity(block_starts.len());
    let mut rest = guide.as_mut_slice();
    let mut first_bucket = 0;
    let block_ends = block_starts.iter().skip(1).copied().chain([total]);
    for ((lines, start), end) in starts.chunks_mut(BLOCK_LINES).zip(block_starts).zip(block_ends) {
        let next_bucket = first_bucket_from(end);
        let (buckets, others) = rest.split_at_mut(next_bucket - first_bucket);
        parts.push(Mutex::new(Part { lines, start: *start, end, buckets, first_bucket: first_bucket as u64 }));
        (rest, first_bucket) = (others, next_bucket);
    }
    run(parts.len(), &|block| {
        if let Some(part) = parts.get(block) {
            lock(part).fill(line_number(block * BLOCK_LINES), shift);
        }
        Ok(())
    })?;
    drop(parts);
    Ok(guide)
}

/// What one block of lines contributes to the guide.
struct Part<'a> {
    lines: &'a mut [u64],
    start: u64,
    end: u64,
    /// The buckets that begin in these lines.
    buckets: &'a mut [u32],
    first_bucket: u64,
}

impl Part<'_> {
    fn fill(&mut self, first_line: u32, shift: u32) {
        for start in &mut *self.lines {
            *start += self.start;
        }
        let mut buckets = (self.first_bucket..).map(|bucket| bucket << shift).zip(&mut *self.buckets).peekable();
        let line_ends = self.lines.iter().skip(1).copied().chain([self.end]);
        for (line, end) in (first_line..).zip(line_ends) {
            while let Some((_, bucket)) = buckets.next_if(|(start, _)| *start < end) {
                *bucket = line;
            }
        }
    }
}

/// Lines are numbered with 32 bits, which the limit on rows guarantees.
fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// First row of a block, and its weights.
fn part_of(rows: &[f64], block: usize) -> (usize, &[f64]) {
    let first = block * BLOCK_ROWS;
    let rest = rows.get(first..).unwrap_or_default();
    (first, rest.get(..BLOCK_ROWS).unwrap_or(rest))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
