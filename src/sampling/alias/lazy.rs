//! An alias table that can be drawn from before its cells are filled, and that is filled by whoever has time for it.
#![expect(unsafe_code, reason = "the same numbers are written by several threads first and read as plain ones later")]

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::build::{BLOCK_ROWS, empty_cells, packed, pair};
use super::pairing::Pairing;
use super::{AliasTable, RunBlocks, alias_bits, cell_and_level};
use crate::error::Result;
use crate::sampling::SharedSlice;
use crate::sampling::philox::wide_product;

/// Whoever makes so many draws at once fills some cells as well.
const MANY_DRAWS: usize = 64;

/// A table of which each cell is worked out when a draw needs it, a hundred times slower than looking it up, until all of them
/// are filled. Draws are the same before and afterwards.
#[derive(Debug)]
pub struct LazyTable {
    weights: SharedSlice<f64>,
    pairing: Pairing,
    cells: Arc<Cells>,
    next_block: AtomicUsize,
    blocks_left: AtomicUsize,
    filled: OnceLock<AliasTable>,
}

/// One number for each row. Every block of them is written by one thread.
#[derive(Debug)]
struct Cells(Vec<AtomicU64>);

impl LazyTable {
    /// A table for these weights, or `None` if all are equal (in their bits) and so no table is needed. One that is small is
    /// filled at once.
    ///
    /// # Errors
    /// As [`AliasTable::build`].
    pub fn new(weights: SharedSlice<f64>, run: &mut RunBlocks<'_>) -> Result<Option<Self>> {
        let rows = weights.as_slice().len();
        let Some(pairing) = pair(weights.as_slice(), run)? else { return Ok(None) };
        let table = Self {
            weights,
            pairing,
            cells: Arc::new(Cells::new(empty_cells(rows)?)),
            next_block: AtomicUsize::new(0),
            blocks_left: AtomicUsize::new(rows.div_ceil(BLOCK_ROWS)),
            filled: OnceLock::new(),
        };
        if rows <= BLOCK_ROWS {
            table.fill_block();
        }
        Ok(Some(table))
    }

    /// Fills some of the cells, which takes about half a millisecond, unless others fill the last ones. Returns whether there
    /// may be more to fill.
    pub fn fill_block(&self) -> bool {
        let block = self.next_block.fetch_add(1, Ordering::Relaxed);
        let Some(cells) = self.cells.0.chunks(BLOCK_ROWS).nth(block) else { return false };
        let alias_bits = alias_bits(self.rows());
        self.pairing.fill(self.weights.as_slice(), block, |place, threshold, alias| {
            if let Some(cell) = cells.get(place) {
                cell.store(packed(threshold, alias, alias_bits), Ordering::Relaxed);
            }
        });
        // Whoever is last has seen what all others wrote, and passes it on with the table.
        if self.blocks_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let cells = SharedSlice::new(Filled(Arc::clone(&self.cells)));
            let table = AliasTable { cells, alias_bits, capacity: self.pairing.capacity() };
            // Nobody else was last.
            let _ = self.filled.set(table);
        }
        true
    }

    /// The table once it is filled.
    #[must_use]
    pub fn filled(&self) -> Option<&AliasTable> {
        self.filled.get()
    }

    /// How many rows can be drawn.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.weights.as_slice().len() as u64
    }

    /// Threshold and alias of a row's cell, worked out. As [`AliasTable::cell`].
    #[must_use]
    pub fn cell(&self, row: u64) -> Option<(u64, u64)> {
        let weights = self.weights.as_slice();
        let row = usize::try_from(row).ok().filter(|row| *row < weights.len())?;
        let (threshold, alias) = self.pairing.cell(weights, row);
        Some((threshold, alias as u64))
    }

    /// As [`AliasTable::rows_for`].
    pub(in crate::sampling) fn rows_for(&self, words: &mut [u64]) {
        if let Some(table) = self.filled.get() {
            table.rows_for(words);
            return;
        }
        let many = words.len() >= MANY_DRAWS;
        let (weights, capacity) = (self.weights.as_slice(), self.pairing.capacity());
        for word in words {
            let (row, level) = cell_and_level(*word, weights.len());
            let (threshold, alias) = self.pairing.cell(weights, row);
            let (_, level) = wide_product(level, capacity);
            *word = if level < threshold { row } else { alias } as u64;
        }
        if many {
            // Somebody draws faster than others fill, if they do at all.
            self.fill_block();
        }
    }
}

impl Cells {
    fn new(zeros: Vec<u64>) -> Self {
        let mut zeros = ManuallyDrop::new(zeros);
        // SAFETY: the vector is not used or dropped any more, and an atomic number has the size, the alignment and the values
        // of a plain one.
        Self(unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), zeros.len(), zeros.capacity()) })
    }
}

/// Cells that nobody writes to any more.
struct Filled(Arc<Cells>);

impl AsRef<[u64]> for Filled {
    fn as_ref(&self) -> &[u64] {
        let cells = self.0.0.as_slice();
        // SAFETY: both kinds of numbers have the same layout. The only writer of a block has finished it before it counted
        // it as done, this was made by whoever counted the last one, and blocks are handed out once.
        unsafe { &*(ptr::from_ref(cells) as *const [u64]) }
    }
}
