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
use super::lengths::Lengths;

/// The rows of a table with their weights and lengths.
#[derive(Debug, Clone, Copy)]
struct Rows<'a> {
    weights: &'a [f64],
    lengths: Lengths,
}

impl Rows<'_> {
    #[inline]
    fn at(&self, row: usize) -> Option<u64> {
        self.weights.get(row).map(|weight| self.lengths.length(row, *weight))
    }

    /// The rows among `rows` that exist, with their lengths.
    fn of(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let first = rows.start;
        let weights = self.weights.get(first..rows.end.min(self.weights.len())).unwrap_or_default();
        weights.iter().zip(first..).map(|(weight, row)| (row, self.lengths.length(row, *weight)))
    }

    #[inline]
    fn deficit(&self, length: u64) -> u64 {
        self.lengths.capacity().saturating_sub(length)
    }

    #[inline]
    fn excess(&self, length: u64) -> u64 {
        length.saturating_sub(self.lengths.capacity())
    }

    /// The first row whose piece of a line ends where `reached` says, and that end. `size` gives what rows add to the line.
    fn find(&self, tile_ends: &[u64], size: impl Fn(Tile) -> u64, reached: impl Fn(u64) -> bool) -> (usize, u64) {
        let mut first = tile_ends.partition_point(|end| !reached(*end)) * TILE_ROWS;
        let mut end = end_before(first, tile_ends);
        while first < self.weights.len() {
            let next = end + size(self.add_up(first..first + STEP_ROWS));
            if reached(next) {
                break;
            }
            (first, end) = (first + STEP_ROWS, next);
        }
        for (row, length) in self.of(first..first + STEP_ROWS) {
            end += size(Tile { deficit: self.deficit(length), excess: self.excess(length) });
            if reached(end) {
                return (row, end);
            }
        }
        // Never: both lines have the same length.
        (0, end)
    }

    /// What some rows add to the two lines.
    fn add_up(&self, rows: Range<usize>) -> Tile {
        let weights = self.weights.get(rows.start..rows.end.min(self.weights.len())).unwrap_or_default();
        let (sum, excess) = self.lengths.sum_and_excess(weights, rows.start);
        Tile { deficit: self.lengths.capacity() * weights.len() as u64 + excess - sum, excess }
    }
}

/// Rows of a block; the last block has fewer.
fn rows_of(block: usize) -> Range<usize> {
    block * BLOCK_ROWS..(block + 1) * BLOCK_ROWS
}

/// Rows at whose ends the two lines are known.
const TILE_ROWS: usize = 1 << 9;

/// Rows that are added up together on the way to a row.
const STEP_ROWS: usize = 32;

/// What some rows add to the two lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile {
    deficit: u64,
    excess: u64,
}

/// What the tiles of one block add to the two lines.
pub(super) fn tiles(lengths: Lengths, weights: &[f64], block: usize) -> Vec<Tile> {
    let rows = Rows { weights, lengths };
    rows_of(block).step_by(TILE_ROWS).map(|first| rows.add_up(first..first + TILE_ROWS)).collect()
}

/// The two lines, known at the ends of tiles. Asks for the same weights each time.
#[derive(Debug)]
pub(super) struct Pairing {
    lengths: Lengths,
    deficit_ends: Vec<u64>,
    excess_ends: Vec<u64>,
}

impl Pairing {
    pub(super) fn new(lengths: Lengths, tiles: &[Tile]) -> Self {
        let ends = |size: fn(&Tile) -> u64| {
            let mut end = 0;
            tiles.iter().map(|tile| (end += size(tile), end).1).collect()
        };
        Self { lengths, deficit_ends: ends(|tile| tile.deficit), excess_ends: ends(|tile| tile.excess) }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.lengths.capacity()
    }

    /// Threshold and alias of the cell of one row.
    pub(super) fn cell(&self, weights: &[f64], row: usize) -> (u64, usize) {
        let (rows, capacity) = (Rows { weights, lengths: self.lengths }, self.capacity());
        let Some(length) = rows.at(row) else { return (capacity, row) };
        let tile = row / TILE_ROWS * TILE_ROWS;
        let before = rows.add_up(tile..row);
        match length.cmp(&capacity) {
            Ordering::Equal => (capacity, row),
            Ordering::Less => {
                let deficit = end_before(tile, &self.deficit_ends) + before.deficit;
                (length, self.heavy_behind(&rows, deficit))
            }
            Ordering::Greater => {
                let excess = end_before(tile, &self.excess_ends) + before.excess + rows.excess(length);
                let (_, light_end) = rows.find(&self.deficit_ends, |sizes| sizes.deficit, |end| end >= excess);
                let lack = light_end - excess;
                (capacity - lack, if lack > 0 { self.heavy_behind(&rows, excess) } else { row })
            }
        }
    }

    /// The first row whose excess ends behind this place.
    fn heavy_behind(&self, rows: &Rows<'_>, place: u64) -> usize {
        rows.find(&self.excess_ends, |sizes| sizes.excess, |end| end > place).0
    }

    /// Gives places within the block, thresholds and aliases of its cells to `set`; for each cell once, in no order.
    pub(super) fn fill(&self, weights: &[f64], block: usize, mut set: impl FnMut(usize, u64, usize)) {
        let (all, capacity) = (Rows { weights, lengths: self.lengths }, self.capacity());
        let rows = rows_of(block);
        let mut deficit = end_before(rows.start, &self.deficit_ends);
        let mut excess = end_before(rows.start, &self.excess_ends);
        let mut heavies = Walk::new(&self.excess_ends);
        let mut lights = Walk::new(&self.deficit_ends);
        // Place and threshold of a heavy row with a lack of its own: its cell waits for the next heavy row.
        let mut waiting: Option<(usize, u64)> = None;
        for (place, (row, length)) in all.of(rows).enumerate() {
            match length.cmp(&capacity) {
                Ordering::Equal => set(place, capacity, row),
                Ordering::Less => {
                    heavies.to(|end| end > deficit, |row| Some(all.excess(all.at(row)?)));
                    deficit += capacity - length;
                    set(place, length, heavies.row);
                }
                Ordering::Greater => {
                    if let Some((place, threshold)) = waiting.take() {
                        set(place, threshold, row);
                    }
                    excess += length - capacity;
                    lights.to(|end| end >= excess, |row| Some(all.deficit(all.at(row)?)));
                    let lack = lights.end - excess;
                    if lack > 0 {
                        waiting = Some((place, capacity - lack));
                    } else {
                        set(place, capacity, row);
                    }
                }
            }
        }
        if let Some((place, threshold)) = waiting {
            set(place, threshold, self.heavy_behind(&all, excess));
        }
    }
}

/// Where a line is at the start of a tile.
fn end_before(first_row: usize, tile_ends: &[u64]) -> u64 {
    (first_row / TILE_ROWS).checked_sub(1).and_then(|tile| tile_ends.get(tile)).copied().unwrap_or(0)
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
                self.skip_tiles(&reached);
            }
            // There always is one: both lines have the same length.
            let Some(size) = size(self.next_row) else { return };
            // Without a branch, which nobody could predict.
            self.row = if size > 0 { self.next_row } else { self.row };
            self.end += size;
            self.next_row += 1;
        }
    }

    /// Goes to the tile with the first row whose piece ends where `reached` says. Often that is the next one.
    fn skip_tiles(&mut self, reached: &impl Fn(u64) -> bool) {
        let next = self.next_row / TILE_ROWS;
        let ends = self.tile_ends.get(next..).unwrap_or_default();
        let skipped =
            if ends.first().is_none_or(|end| reached(*end)) { 0 } else { ends.partition_point(|end| !reached(*end)) };
        self.next_row = (next + skipped) * TILE_ROWS;
        self.end = end_before(self.next_row, self.tile_ends);
    }
}
