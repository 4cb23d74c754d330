//! Draw streams, and the cursor that hands out windows of one.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::philox::{Purpose, Words, below};
use super::{AliasTable, LazyTable, RunBlocks, SharedSlice};
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
    Weighted { table: Table, words: Words },
}

#[derive(Debug, Clone)]
enum Table {
    Filled(Arc<AliasTable>),
    Lazy(Arc<LazyTable>),
}

impl Table {
    fn rows(&self) -> u64 {
        match self {
            Self::Filled(table) => table.rows(),
            Self::Lazy(table) => table.rows(),
        }
    }

    fn rows_for(&self, words: &mut [u64]) {
        match self {
            Self::Filled(table) => table.rows_for(words),
            Self::Lazy(table) => table.rows_for(words),
        }
    }
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
    /// As [`AliasTable::build`].
    pub fn weighted(weights: &[f64], seed: u64, run: &mut RunBlocks<'_>) -> Result<Self> {
        let rows = weights.len() as u64;
        match AliasTable::build(weights, run)? {
            None => Self::uniform(rows, seed),
            Some(table) => Ok(Self::from_table(Arc::new(table), seed)),
        }
    }

    /// The same stream, ready sooner: it draws slowly until its [`lazy_table`](Self::lazy_table) is filled.
    ///
    /// # Errors
    /// As [`AliasTable::build`].
    pub fn weighted_soon(weights: SharedSlice<f64>, seed: u64, run: &mut RunBlocks<'_>) -> Result<Self> {
        let rows = weights.as_slice().len() as u64;
        match LazyTable::new(weights, run)? {
            None => Self::uniform(rows, seed),
            Some(table) => Ok(Self::by_weight(Table::Lazy(Arc::new(table)), seed)),
        }
    }

    /// Rows in proportion to the weights from which `table` was made.
    #[must_use]
    pub fn from_table(table: Arc<AliasTable>, seed: u64) -> Self {
        Self::by_weight(Table::Filled(table), seed)
    }

    fn by_weight(table: Table, seed: u64) -> Self {
        Self(Kind::Weighted { table, words: Words::new(seed, Purpose::Weighted) })
    }

    /// How many rows there are to draw from.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match &self.0 {
            Kind::Cyclic { rows } | Kind::Uniform { rows, .. } => rows.get(),
            Kind::Weighted { table, .. } => table.rows(),
        }
    }

    /// The table that somebody should fill, if there is one.
    #[must_use]
    pub fn lazy_table(&self) -> Option<&Arc<LazyTable>> {
        match &self.0 {
            Kind::Weighted { table: Table::Lazy(table), .. } => Some(table),
            Kind::Weighted { .. } | Kind::Cyclic { .. } | Kind::Uniform { .. } => None,
        }
    }

    /// Whether rows come with equal probability.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        matches!(self.0, Kind::Uniform { .. })
    }

    /// The row at one position.
    #[must_use]
    pub fn draw(&self, position: u128) -> u64 {
        let mut row = [0];
        self.draws(position, &mut row);
        let [row] = row;
        row
    }

    /// Whether the rows come in their order.
    #[must_use]
    pub fn is_cyclic(&self) -> bool {
        matches!(self.0, Kind::Cyclic { .. })
    }

    /// Fills `out` with the rows at `start`, `start + 1`, …. Windows come from a [`Cursor`], which never hands out
    /// one that passes the last position, 2^128 - 1.
    pub fn draws(&self, start: u128, out: &mut [u64]) {
        match &self.0 {
            Kind::Cyclic { rows } => fill_cyclic(*rows, start, out),
            Kind::Uniform { rows, words } => fill(*words, start, out, |word| below(word, rows.get())),
            Kind::Weighted { table, words } => {
                let rows = table.rows();
                fill(*words, start, out, |word| below(word, rows).and(Some(word)));
                table.rows_for(out);
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

/// Words of a block, one for each draw.
const BLOCK_WORDS: u8 = 4;

/// Fills `out` with what `number` makes of the words at `start`, `start + 1`, …; a word for which it makes nothing is
/// replaced by that of the next attempt.
#[inline]
fn fill(words: Words, start: u128, out: &mut [u64], number: impl Fn(u64) -> Option<u64>) {
    let head = usize::try_from(start.wrapping_neg() % u128::from(BLOCK_WORDS)).unwrap_or(0).min(out.len());
    let (head, rest) = out.split_at_mut(head);
    let (blocks, tail) = rest.as_chunks_mut::<{ BLOCK_WORDS as usize }>();
    let block_count = blocks.len() as u128;

    let first_word = usize::try_from(start % u128::from(BLOCK_WORDS)).unwrap_or(0);
    fill_part(words, start / u128::from(BLOCK_WORDS), first_word, head, &number);
    let first_block = start.div_ceil(u128::from(BLOCK_WORDS));
    for (block, slots) in (first_block..).zip(blocks) {
        let drawn = words.block(block, 0).map(&number);
        if let [Some(a), Some(b), Some(c), Some(d)] = drawn {
            *slots = [a, b, c, d];
        } else {
            fill_part(words, block, 0, slots, &number);
        }
    }
    fill_part(words, first_block + block_count, 0, tail, &number);
}

/// Fills `out` from the words of one block, beginning with `first_word`.
fn fill_part(words: Words, block: u128, first_word: usize, out: &mut [u64], number: &impl Fn(u64) -> Option<u64>) {
    if out.is_empty() {
        return;
    }
    let first_attempt = words.block(block, 0);
    for ((word_number, word), slot) in first_attempt.into_iter().enumerate().skip(first_word).zip(out) {
        let retry = |attempt| words.block(block, attempt).get(word_number).copied().and_then(number);
        // Each attempt succeeds with a probability of more than one half.
        *slot = number(word).or_else(|| (1..).find_map(retry)).unwrap_or(0);
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
        Self::at(0)
    }

    /// Goes on at a position.
    #[must_use]
    pub const fn at(position: u128) -> Self {
        Self { next: position }
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
