//! Rows by weight in one look-up: Walker's alias method in whole numbers.

mod build;
mod lazy;
mod lengths;
mod pairing;

use super::SharedSlice;
use super::philox::wide_product;
use crate::error::{Error, Result};
use crate::prefetch::prefetch;

pub use build::{RunBlocks, one_by_one};
pub use lazy::LazyTable;

/// Draws that are looked up together, so that their cache misses overlap.
const BATCH: usize = 128;

/// One cell for each row, all of the same capacity: the cell's own row fills it up to a threshold, one other row,
/// its alias, the rest. Over all cells, every row fills as much as its weight.
///
/// A cell is one number: the threshold above, the alias in the lower `alias_bits`.
#[derive(Debug, Clone)]
pub struct AliasTable {
    cells: SharedSlice<u64>,
    alias_bits: u32,
    capacity: u64,
}

impl AliasTable {
    /// How many rows can be drawn.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.cells.as_slice().len() as u64
    }

    /// Puts together what [`cells`](Self::cells) and [`capacity`](Self::capacity) of a table gave, for example from
    /// the map of a file.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when they cannot belong together. What the cells hold is not looked at: made-up cells
    /// give made-up rows, perhaps beyond the last one.
    pub fn from_parts(cells: SharedSlice<u64>, capacity: u64) -> Result<Self> {
        let rows = cells.as_slice().len() as u64;
        let alias_bits = alias_bits(rows);
        if rows < 2 || capacity.leading_zeros() < alias_bits {
            return Err(Error::InvalidValue(format!(
                "expected an alias table, found {rows} cells with a capacity of {capacity}"
            )));
        }
        Ok(Self { cells, alias_bits, capacity })
    }

    /// The cells, packed.
    #[must_use]
    pub fn cells(&self) -> &SharedSlice<u64> {
        &self.cells
    }

    /// How many units each cell holds.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Threshold and alias of a row's cell: of its units, the row has those below the threshold, the alias the rest.
    #[must_use]
    pub fn cell(&self, row: u64) -> Option<(u64, u64)> {
        let cell = self.cells.as_slice().get(usize::try_from(row).ok()?)?;
        Some((cell >> self.alias_bits, cell & low_bits(self.alias_bits)))
    }

    /// Replaces random words, none of them refused by [`below`](super::philox::below) for this number of rows, by rows.
    pub(super) fn rows_for(&self, words: &mut [u64]) {
        let cells = self.cells.as_slice();
        if let [word] = words {
            *word = self.row_for(cells, *word);
            return;
        }
        for batch in words.chunks_mut(BATCH) {
            for word in &*batch {
                if let Some(cell) = cells.get(cell_and_level(*word, cells.len()).0) {
                    prefetch(cell);
                }
            }
            for word in batch {
                *word = self.row_for(cells, *word);
            }
        }
    }

    #[inline]
    fn row_for(&self, cells: &[u64], word: u64) -> u64 {
        let (row, level) = cell_and_level(word, cells.len());
        let cell = cells.get(row).copied().unwrap_or(0);
        let (_, level) = wide_product(level, self.capacity);
        if level < cell >> self.alias_bits { row as u64 } else { cell & low_bits(self.alias_bits) }
    }
}

/// As many bits as the number of the last row needs.
#[inline]
const fn alias_bits(rows: u64) -> u32 {
    u64::BITS - rows.saturating_sub(1).leading_zeros()
}

/// The cell that a word falls into, and how high in it, as a share of 2^64.
#[inline]
fn cell_and_level(word: u64, cells: usize) -> (usize, u64) {
    let (level, cell) = wide_product(word, cells as u64);
    // Below the number of cells, which fits.
    (usize::try_from(cell).unwrap_or(usize::MAX), level)
}

/// A number whose lowest `count` bits are set; `count` is below 64.
#[inline]
const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}
