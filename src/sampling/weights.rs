//! Rows by weight: from a random position on the line on which every row owns a stretch as long as its weight.

mod build;
mod parts;

use super::SharedSlice;
use super::total::parts;
use crate::prefetch::prefetch;

pub use build::{RunBlocks, one_by_one};
pub use parts::WeightParts;

/// Rows whose weights are read together: one cache line of them.
const LINE: usize = 8;

/// Draws that are looked up together, so that their cache misses overlap.
const BATCH: usize = 128;

/// Where on the line the rows lie, at one entry for `LINE` rows; the weights themselves say the rest.
///
/// Lengths are whole numbers: floor(weight * 2^scale), at least 1, where `scale` makes the sum of all weights fill
/// 63 bits. So neither the order of addition nor the processor has a say in what is drawn.
#[derive(Debug, Clone)]
pub struct WeightTable {
    weights: SharedSlice<f64>,
    /// Where each line of rows starts; strictly increasing from 0.
    starts: SharedSlice<u64>,
    /// For each bucket of 2^`bucket_shift` positions the line that holds its first; at the end once more the last line.
    guide: SharedSlice<u32>,
    bucket_shift: u32,
    total: u64,
    scale: Scale,
}

/// Turns weights into lengths.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Biased exponent at which the 64-bit left-aligned significand is the length.
    top: i32,
}

impl Scale {
    /// At this scale every double is a whole number.
    const FINEST: i32 = 1074;

    /// What `top` may be: from the finest scale to that for sums just below infinity.
    const TOPS: std::ops::RangeInclusive<i32> = 1086 - Self::FINEST..=1086 - 62 + 1023;

    /// For weights whose sum is at least 2^magnitude and less than twice that.
    fn for_sum(magnitude: i32) -> Self {
        let scale = (62 - magnitude).min(Self::FINEST);
        Self { top: 1086 - scale }
    }

    #[inline]
    fn length(self, weight: f64) -> u64 {
        let (exponent, significand) = parts(weight.to_bits());
        // Never negative: a weight is at most the sum, which fills 63 bits.
        let shift = (self.top - exponent).cast_unsigned();
        (significand << 11).checked_shr(shift).unwrap_or(0).max(1)
    }
}

impl WeightTable {
    /// How many rows can be drawn.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.weights.as_slice().len() as u64
    }

    /// Length of the line: positions are below it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of the table beside the weights.
    #[must_use]
    pub fn extra_bytes(&self) -> usize {
        size_of_val(self.starts.as_slice()) + size_of_val(self.guide.as_slice())
    }

    /// Replaces positions by the rows that own them.
    pub(super) fn rows_at(&self, positions: &mut [u64]) {
        let view = View {
            weights: self.weights.as_slice(),
            starts: self.starts.as_slice(),
            guide: self.guide.as_slice(),
            table: self,
        };
        for batch in positions.chunks_mut(BATCH) {
            view.rows_at(batch);
        }
    }
}

/// The table with its slices at hand. All look-ups are checked: a table may come from a file.
struct View<'a> {
    weights: &'a [f64],
    starts: &'a [u64],
    guide: &'a [u32],
    table: &'a WeightTable,
}

impl View<'_> {
    fn rows_at(&self, positions: &mut [u64]) {
        let mut lines = [(0_usize, 0_usize); BATCH];
        if positions.len() > 1 {
            for position in &*positions {
                prefetch_at(self.guide, self.bucket(*position));
            }
        }
        for (line, position) in lines.iter_mut().zip(&*positions) {
            *line = self.guide_lines(*position);
            prefetch_at(self.starts, line.0);
        }
        for (line, position) in lines.iter_mut().zip(&*positions) {
            line.0 = self.line_of(*position, *line);
            prefetch_at(self.weights, line.0 * LINE);
        }
        for (line, position) in lines.iter().zip(positions) {
            *position = self.row_in_line(line.0, *position);
        }
    }

    fn bucket(&self, position: u64) -> usize {
        usize::try_from(position >> self.table.bucket_shift).unwrap_or(usize::MAX)
    }

    /// First and last line that a position may lie in.
    fn guide_lines(&self, position: u64) -> (usize, usize) {
        let bucket = self.bucket(position);
        match self.guide.get(bucket..).unwrap_or_default() {
            [first, last, ..] => (*first as usize, *last as usize),
            _ => (0, 0),
        }
    }

    /// The last of these lines that starts at or before `position`.
    fn line_of(&self, position: u64, (first, last): (usize, usize)) -> usize {
        // One step is expected, whatever the weights; a bucket with many lines is entered rarely, but then halved.
        let after_first = self.starts.get(first + 1..=last).unwrap_or_default();
        let steps = if after_first.len() <= 8 {
            after_first.iter().take_while(|start| **start <= position).count()
        } else {
            after_first.partition_point(|start| *start <= position)
        };
        first + steps
    }

    fn row_in_line(&self, line: usize, position: u64) -> u64 {
        let rest = position.saturating_sub(self.starts.get(line).copied().unwrap_or(position));
        let first = line * LINE;
        let weights = self.weights.get(first..).unwrap_or_default();
        let mut end = 0_u64;
        let mut before = 0;
        for weight in weights.iter().take(LINE) {
            end = end.saturating_add(self.table.scale.length(*weight));
            before += u64::from(end <= rest);
        }
        first as u64 + before
    }
}

#[inline]
fn prefetch_at<T>(slice: &[T], index: usize) {
    if let Some(place) = slice.get(index) {
        prefetch(place);
    }
}
