//! Draw streams, and the cursor that hands out windows of one.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use super::philox::{Purpose, Words, below, below_wide};
use super::{RunBlocks, SharedSlice, WeightTable};
use crate::error::{Error, Result};

/// An endless sequence of row numbers. What stands at a position depends on nothing but the stream and the position,
/// so any window can be computed alone, by anybody. Clones share their tables.
#[derive(Debug, Clone)]
pub struct DrawStream(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Row 0, 1, 2, …, and over again.
    Cyclic { rows: NonZeroU64 },
    /// Every row with the same probability.
    Uniform { rows: NonZeroU64, words: Words },
    /// Every row in proportion to its weight.
    Weighted { table: Arc<WeightTable>, part: Part, words: Words },
}

/// Consecutive rows of a table of weights.
#[derive(Debug, Clone, Copy)]
struct Part {
    first_row: u64,
    rows: u64,
    /// Where on the line of weights they lie.
    start: u64,
    length: u64,
}

impl DrawStream {
    /// The rows in order, again and again.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] without rows.
    pub fn cyclic(rows: u64) -> Result<Self> {
        Ok(Self(Kind::Cyclic { rows: at_least_one(rows)? }))
    }

    /// Rows with equal probability, with replacement.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] without rows.
    pub fn uniform(rows: u64, seed: u64) -> Result<Self> {
        Ok(Self(Kind::Uniform { rows: at_least_one(rows)?, words: Words::new(seed, Purpose::Uniform) }))
    }

    /// Rows in proportion to `weights`, with replacement; the [`uniform`](Self::uniform) stream if all are equal.
    ///
    /// # Errors
    /// As [`WeightTable::build`].
    pub fn weighted(weights: SharedSlice<f64>, seed: u64, run: &mut RunBlocks<'_>) -> Result<Self> {
        let rows = weights.as_slice().len() as u64;
        match WeightTable::build(weights, run)? {
            None => Self::uniform(rows, seed),
            Some(table) => Self::weighted_part(Arc::new(table), 0..rows, seed),
        }
    }

    /// The rows `rows` of `table` in proportion to their weights, numbered from 0.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] without rows, or if the table has fewer.
    pub fn weighted_part(table: Arc<WeightTable>, rows: Range<u64>, seed: u64) -> Result<Self> {
        let count = rows.end.saturating_sub(rows.start);
        let (start, length) = table.stretch(rows.clone());
        if count == 0 || rows.end > table.rows() || length == 0 {
            return Err(Error::InvalidValue(format!(
                "expected rows among the {} of the table, found {} to {}",
                table.rows(),
                rows.start,
                rows.end
            )));
        }
        let part = Part { first_row: rows.start, rows: count, start, length };
        Ok(Self(Kind::Weighted { table, part, words: Words::new(seed, Purpose::Weighted) }))
    }

    /// How many rows there are to draw from.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Kind::Cyclic { rows } | Kind::Uniform { rows, .. } => rows.get(),
            Kind::Weighted { part, .. } => part.rows,
        }
    }

    /// The table of a weighted stream.
    #[must_use]
    pub fn table(&self) -> Option<&WeightTable> {
        match &self.0 {
            Kind::Weighted { table, .. } => Some(table),
            Kind::Cyclic { .. } | Kind::Uniform { .. } => None,
        }
    }

    /// The row at one position.
    #[must_use]
    pub fn draw(&self, position: u128) -> u64 {
        let mut row = [0];
        self.draws(position, &mut row);
        let [row] = row;
        row
    }

    /// Fills `out` with the rows at `start`, `start + 1`, …. Windows come from a [`Cursor`], which never hands out
    /// one that passes the last position, 2^128 - 1.
    pub fn draws(&self, start: u128, out: &mut [u64]) {
        match &self.0 {
            Kind::Cyclic { rows } => fill_cyclic(*rows, start, out),
            Kind::Uniform { rows, words } => {
                fill(*words, start, out, |words| words, |word| below(word, rows.get()));
            }
            Kind::Weighted { table, part, words } => {
                let number = |(high, low)| below_wide(high, low, part.length);
                fill(*words, start, out, |[a, b, c, d]| [(a, b), (c, d)], number);
                for position in &mut *out {
                    *position = position.saturating_add(part.start);
                }
                table.rows_at(out);
                for row in out {
                    *row = row.saturating_sub(part.first_row);
                }
            }
        }
    }
}

fn at_least_one(rows: u64) -> Result<NonZeroU64> {
    NonZeroU64::new(rows).ok_or_else(|| Error::InvalidValue("a draw stream needs at least one row".to_owned()))
}

fn fill_cyclic(rows: NonZeroU64, start: u128, out: &mut [u64]) {
    // A remainder below `rows` has 64 bits.
    let mut row = u64::try_from(start % u128::from(rows.get())).unwrap_or(0);
    for slot in out {
        *slot = row;
        row = if row == rows.get() - 1 { 0 } else { row + 1 };
    }
}

/// Fills `out` with numbers made by `number` from pieces of random blocks, `N` pieces a block.
#[inline]
fn fill<const N: usize, P: Copy>(
    words: Words,
    start: u128,
    out: &mut [u64],
    pieces: impl Fn([u64; 4]) -> [P; N],
    number: impl Fn(P) -> Option<u64>,
) {
    let mut block = start / N as u128;
    let mut skip = usize::try_from(start % N as u128).unwrap_or(0);
    let mut rest = out;
    while !rest.is_empty() {
        let (now, later) = rest.split_at_mut(rest.len().min(N - skip));
        let first_attempt = pieces(words.block(block, 0));
        for (offset, (slot, piece)) in now.iter_mut().zip(first_attempt.into_iter().skip(skip)).enumerate() {
            let piece_number = skip + offset;
            let retry = |attempt| {
                let piece = pieces(words.block(block, attempt)).into_iter().nth(piece_number);
                piece.and_then(&number)
            };
            // Each attempt succeeds with a probability of more than one half.
            *slot = number(piece).or_else(|| (1..).find_map(retry)).unwrap_or(0);
        }
        (rest, skip) = (later, 0);
        block = block.wrapping_add(1);
    }
}

/// Hands out consecutive windows of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    next: u128,
}

impl Cursor {
    /// Starts at the first position.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 0 }
    }

    /// Takes the next `len` positions and returns the first of them.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when the stream has fewer positions left; then nothing is taken.
    pub fn reserve(&mut self, len: u64) -> Result<u128> {
        let start = self.next;
        self.next = start.checked_add(u128::from(len)).ok_or_else(|| {
            Error::InvalidValue(format!("the draw stream has no {len} positions left behind position {start}"))
        })?;
        Ok(start)
    }
}
