//! Which cell gets which alias: a sweep along two lines that can begin anywhere.
//!
//! Light rows are shorter than a cell and leave a deficit; heavy rows are longer and have an excess. Laid end to end
//! in row order, deficits and excesses make two lines of the same length. A light row's alias is the heavy row whose
//! excess lies over the start of its deficit. A heavy row gives until a deficit reaches past the end of its excess;
//! what it gave too much, its own cell lacks, and the next heavy row is its alias. (The sweep of L. Hübschle-Schneider
//! and P. Sanders: Parallel weighted random sampling, 2019, in whole numbers.)

use std::cmp::Ordering;
use std::ops::Range;

use super::build::BLOCK_ROWS;
use crate::sampling::total::parts;

/// Weights as whole numbers that add up to the capacity of all cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths<'a> {
    weights: &'a [f64],
    /// Biased exponent at which the left-aligned 64-bit significand is the length.
    top: i32,
    /// So many of the first rows are longer by one, because cells of equal capacity hold so much more than the sum.
    lengthened: usize,
    capacity: u64,
}

impl<'a> Lengths<'a> {
    /// For weights whose sum is at least 2^`magnitude` and less than twice that. A length is floor(weight * 2^scale),
    /// at least 1, where the scale makes the sum of all weights fill 62 bits.
    pub(super) fn new(weights: &'a [f64], magnitude: i32) -> Self {
        let scale = 61 - magnitude;
        Self { weights, top: 1086 - scale, lengthened: 0, capacity: 0 }
    }

    /// Chooses the capacity for this sum of all lengths.
    pub(super) fn fill_up(&mut self, sum: u64) {
        let rows = self.weights.len() as u64;
        self.capacity = sum.div_ceil(rows);
        self.lengthened = usize::try_from(self.capacity * rows - sum).unwrap_or(0);
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn length(&self, row: usize, weight: f64) -> u64 {
        let (exponent, significand) = parts(weight.to_bits());
        let aligned = significand << 11;
        let shift = self.top - exponent;
        // Lengths stay below 2^62, as their sum does; only subnormal numbers are ever shifted to the left.
        let length = if shift >= 0 {
            aligned.checked_shr(shift.cast_unsigned()).unwrap_or(0)
        } else {
            aligned << shift.unsigned_abs()
        };
        length.max(1) + u64::from(row < self.lengthened)
    }

    fn at(&self, row: usize) -> Option<u64> {
        self.weights.get(row).map(|weight| self.length(row, *weight))
    }

    /// The rows among `rows` that exist, with their lengths.
    fn of(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let first = rows.start;
        let weights = self.weights.get(first..rows.end.min(self.weights.len())).unwrap_or_default();
        weights.iter().zip(first..).map(|(weight, row)| (row, self.length(row, *weight)))
    }

    /// Sum of the lengths of a block.
    pub(super) fn sum(&self, block: usize) -> u64 {
        self.of(rows_of(block)).map(|(_, length)| length).sum()
    }

    /// What the tiles of a block add to the two lines.
    pub(super) fn tiles(&self, block: usize) -> Vec<Tile> {
        let tile = |first: usize| {
            let (mut rows, mut sum, mut excess) = (0, 0, 0);
            for (_, length) in self.of(first..first + TILE_ROWS) {
                rows += 1;
                sum += length;
                excess += length.saturating_sub(self.capacity);
            }
            Tile { deficit: self.capacity * rows + excess - sum, excess }
        };
        rows_of(block).step_by(TILE_ROWS).map(tile).collect()
    }
}

/// Rows of a block; the last block has fewer.
fn rows_of(block: usize) -> Range<usize> {
    block * BLOCK_ROWS..(block + 1) * BLOCK_ROWS
}

/// Rows at whose ends the two lines are known.
const TILE_ROWS: usize = 1 << 10;

/// What the rows of one tile add to the two lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    deficit: u64,
    excess: u64,
}

/// The two lines, known at the ends of tiles.
#[derive(Debug)]
pub(super) struct Pairing<'a> {
    lengths: Lengths<'a>,
    deficit_ends: Vec<u64>,
    excess_ends: Vec<u64>,
}

impl<'a> Pairing<'a> {
    pub(super) fn new(lengths: Lengths<'a>, tiles: &[Tile]) -> Self {
        let ends = |size: fn(&Tile) -> u64| {
            let mut end = 0;
            tiles.iter().map(|tile| (end += size(tile), end).1).collect()
        };
        Self { lengths, deficit_ends: ends(|tile| tile.deficit), excess_ends: ends(|tile| tile.excess) }
    }

    /// Fills the cells of one block; `pack` makes a cell from its threshold and its alias.
    pub(super) fn fill(&self, block: usize, cells: &mut [u64], pack: impl Fn(u64, usize) -> u64) {
        let capacity = self.lengths.capacity;
        let rows = rows_of(block);
        let mut deficit = end_before(rows.start, &self.deficit_ends);
        let mut excess = end_before(rows.start, &self.excess_ends);
        let mut heavies = Walk::new(&self.excess_ends);
        let mut lights = Walk::new(&self.deficit_ends);
        let excess_of = |row| Some(self.lengths.at(row)?.saturating_sub(capacity));
        let deficit_of = |row| Some(capacity.saturating_sub(self.lengths.at(row)?));
        // Place and threshold of a heavy row with a lack of its own: its cell waits for the next heavy row.
        let mut waiting: Option<(usize, u64)> = None;
        for (place, (row, length)) in self.lengths.of(rows).enumerate() {
            let cell = match length.cmp(&capacity) {
                Ordering::Equal => pack(capacity, row),
                Ordering::Less => {
                    heavies.to(|end| end > deficit, excess_of);
                    deficit += capacity - length;
                    pack(length, heavies.row)
                }
                Ordering::Greater => {
                    if let Some((place, threshold)) = waiting.take() {
                        set(cells, place, pack(threshold, row));
                    }
                    excess += length - capacity;
                    lights.to(|end| end >= excess, deficit_of);
                    let lack = lights.end - excess;
                    if lack > 0 {
                        waiting = Some((place, capacity - lack));
                    }
                    pack(capacity, row)
                }
            };
            set(cells, place, cell);
        }
        if let Some((place, threshold)) = waiting {
            let mut heavies = Walk::new(&self.excess_ends);
            heavies.to(|end| end > excess, excess_of);
            set(cells, place, pack(threshold, heavies.row));
        }
    }
}

/// Where a line is at the start of a tile.
fn end_before(first_row: usize, tile_ends: &[u64]) -> u64 {
    (first_row / TILE_ROWS).checked_sub(1).and_then(|tile| tile_ends.get(tile)).copied().unwrap_or(0)
}

fn set(cells: &mut [u64], place: usize, cell: u64) {
    if let Some(slot) = cells.get_mut(place) {
        *slot = cell;
    }
}

/// A place on one of the two lines, which only moves forward.
struct Walk<'a> {
    tile_ends: &'a [u64],
    /// Row reached, and where its piece of the line ends.
    row: usize,
    end: u64,
    next_row: usize,
}

impl<'a> Walk<'a> {
    fn new(tile_ends: &'a [u64]) -> Self {
        Self { tile_ends, row: 0, end: 0, next_row: 0 }
    }

    /// Moves to the first row whose piece ends where `reached` says; `size` gives a row's share of the line.
    #[inline]
    fn to(&mut self, reached: impl Fn(u64) -> bool, size: impl Fn(usize) -> Option<u64>) {
        while !reached(self.end) {
            if self.next_row.is_multiple_of(TILE_ROWS) {
                self.next_row = self.tile_ends.partition_point(|end| !reached(*end)) * TILE_ROWS;
                self.end = end_before(self.next_row, self.tile_ends);
            }
            // There always is one: both lines have the same length.
            let Some(size) = size(self.next_row) else { return };
            // Without a branch, which nobody could predict.
            self.row = if size > 0 { self.next_row } else { self.row };
            self.end += size;
            self.next_row += 1;
        }
    }
}
