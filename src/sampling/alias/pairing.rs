//! Which cell gets which alias: a sweep along two lines that can begin anywhere.
//!
//! Light rows are shorter than a cell and leave a deficit; heavy rows are longer and have an excess. Laid end to end
//! in row order, deficits and excesses make two lines of the same length. A light row's alias is the heavy row whose
//! excess lies over the start of its deficit. A heavy row gives until a deficit reaches past the end of its excess;
//! what it gave too much, its own cell lacks, and the next heavy row is its alias. (The sweep of L. Hübschle-Schneider
//! and P. Sanders: Parallel weighted random sampling, 2019, in whole numbers.)

use std::cmp::Ordering;

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

    /// Rows of a block with their lengths.
    pub(super) fn of_block(&self, block: usize) -> impl Iterator<Item = (usize, u64)> {
        let first = block * BLOCK_ROWS;
        let weights = self.weights.get(first..).unwrap_or_default();
        weights.iter().take(BLOCK_ROWS).zip(first..).map(|(weight, row)| (row, self.length(row, *weight)))
    }

    pub(super) fn summary(&self, block: usize) -> Summary {
        let mut summary = Summary::default();
        let mut first_heavy = usize::MAX;
        for (row, length) in self.of_block(block) {
            summary.deficit += self.capacity.saturating_sub(length);
            summary.excess += length.saturating_sub(self.capacity);
            // Without branches, which nobody could predict.
            first_heavy = first_heavy.min(if length > self.capacity { row } else { usize::MAX });
        }
        summary.first_heavy = (first_heavy < usize::MAX).then_some(first_heavy);
        summary
    }
}

/// What one block of rows adds to the two lines.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Summary {
    deficit: u64,
    excess: u64,
    first_heavy: Option<usize>,
}

/// The two lines, known at the ends of blocks.
#[derive(Debug)]
pub(super) struct Pairing<'a> {
    lengths: Lengths<'a>,
    deficit_ends: Vec<u64>,
    excess_ends: Vec<u64>,
    /// For each block the first heavy row behind it.
    next_heavy: Vec<Option<usize>>,
}

impl<'a> Pairing<'a> {
    pub(super) fn new(lengths: Lengths<'a>, blocks: &[Summary]) -> Self {
        let ends = |size: fn(&Summary) -> u64| {
            let mut end = 0;
            blocks.iter().map(|block| (end += size(block), end).1).collect()
        };
        let mut heavy = None;
        let mut next_heavy = Vec::with_capacity(blocks.len());
        for block in blocks.iter().rev() {
            next_heavy.push(heavy);
            heavy = block.first_heavy.or(heavy);
        }
        next_heavy.reverse();
        Self { lengths, deficit_ends: ends(|block| block.deficit), excess_ends: ends(|block| block.excess), next_heavy }
    }

    /// Fills the cells of one block; `pack` makes a cell from its threshold and its alias.
    pub(super) fn fill(&self, block: usize, cells: &mut [u64], pack: impl Fn(u64, usize) -> u64) {
        let capacity = self.lengths.capacity;
        let mut deficit = start_of(block, &self.deficit_ends);
        let mut excess = start_of(block, &self.excess_ends);
        let mut heavies = Walk::new(&self.excess_ends);
        let mut lights = Walk::new(&self.deficit_ends);
        // Heavy row with a lack of its own, whose cell waits for the next heavy row.
        let mut waiting: Option<(usize, u64)> = None;
        let first = block * BLOCK_ROWS;
        for (place, (row, length)) in self.lengths.of_block(block).enumerate() {
            let cell = match length.cmp(&capacity) {
                Ordering::Equal => pack(capacity, row),
                Ordering::Less => {
                    heavies.to(|end| end > deficit, |row| Some(self.lengths.at(row)?.saturating_sub(capacity)));
                    deficit += capacity - length;
                    pack(length, heavies.row)
                }
                Ordering::Greater => {
                    if let Some((heavy, threshold)) = waiting.take() {
                        set(cells, heavy - first, pack(threshold, row));
                    }
                    excess += length - capacity;
                    lights.to(|end| end >= excess, |row| Some(capacity.saturating_sub(self.lengths.at(row)?)));
                    let lack = lights.end - excess;
                    if lack > 0 {
                        waiting = Some((row, capacity - lack));
                    }
                    pack(capacity, row)
                }
            };
            set(cells, place, cell);
        }
        if let (Some((heavy, threshold)), Some(Some(next))) = (waiting, self.next_heavy.get(block)) {
            set(cells, heavy - first, pack(threshold, *next));
        }
    }
}

fn start_of(block: usize, ends: &[u64]) -> u64 {
    block.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0)
}

fn set(cells: &mut [u64], place: usize, cell: u64) {
    if let Some(slot) = cells.get_mut(place) {
        *slot = cell;
    }
}

/// A place on one of the two lines, which only moves forward.
struct Walk<'a> {
    block_ends: &'a [u64],
    /// Row reached, and where its piece of the line ends.
    row: usize,
    end: u64,
    next_row: usize,
}

impl<'a> Walk<'a> {
    fn new(block_ends: &'a [u64]) -> Self {
        Self { block_ends, row: 0, end: 0, next_row: 0 }
    }

    /// Moves to the first row whose piece ends where `reached` says; `size` gives a row's share of the line.
    #[inline]
    fn to(&mut self, reached: impl Fn(u64) -> bool, size: impl Fn(usize) -> Option<u64>) {
        while !reached(self.end) {
            if self.next_row.is_multiple_of(BLOCK_ROWS) {
                let block = self.block_ends.partition_point(|end| !reached(*end));
                (self.next_row, self.end) = (block * BLOCK_ROWS, start_of(block, self.block_ends));
            }
            // There always is one: both lines have the same length.
            let Some(size) = size(self.next_row) else { return };
            if size > 0 {
                (self.row, self.end) = (self.next_row, self.end + size);
            }
            self.next_row += 1;
        }
    }
}
