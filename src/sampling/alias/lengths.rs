//! Weights as whole numbers: how long the rows of a table are.

use crate::sampling::total::parts;
use crate::sampling::vectors::{Loop, vectorized};

/// How weights become whole numbers that add up to the capacity of all cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    /// Biased exponent at which the left-aligned 64-bit significand is the length.
    top: i32,
    /// So many of the first rows are longer by one, because cells of equal capacity hold so much more than the sum.
    lengthened: usize,
    capacity: u64,
}

impl Lengths {
    /// For weights whose sum is at least 2^`magnitude` and less than twice that. A length is floor(weight * 2^scale),
    /// at least 1, where the scale makes the sum of all weights fill 62 bits.
    pub(super) fn new(magnitude: i32) -> Self {
        let scale = 61 - magnitude;
        Self { top: 1086 - scale, lengthened: 0, capacity: 0 }
    }

    /// Chooses the capacity for so many rows and this sum of all lengths.
    pub(super) fn filled_up(self, rows: usize, sum: u64) -> Self {
        let rows = rows as u64;
        let capacity = sum.div_ceil(rows);
        Self { capacity, lengthened: usize::try_from(capacity * rows - sum).unwrap_or(0), ..self }
    }

    /// Units in each cell.
    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How long a row of this weight is.
    #[inline]
    pub(super) fn length(&self, row: usize, weight: f64) -> u64 {
        self.unfilled(weight) + u64::from(row < self.lengthened)
    }

    #[inline]
    fn unfilled(&self, weight: f64) -> u64 {
        if let Some(top) = self.plain_top() {
            return plain_length(top, weight);
        }
        let (exponent, significand) = parts(weight.to_bits());
        let aligned = significand << 11;
        let shift = self.top - exponent;
        // Lengths stay below 2^62, as their sum does; only subnormal numbers are ever shifted to the left.
        let length = if shift >= 0 {
            aligned.checked_shr(shift.cast_unsigned()).unwrap_or(0)
        } else {
            aligned.checked_shl(shift.unsigned_abs()).unwrap_or(0)
        };
        length.max(1)
    }

    /// `top` if it is so high that subnormal numbers are too short to count.
    #[inline]
    fn plain_top(&self) -> Option<u64> {
        u64::try_from(self.top).ok().filter(|top| *top > u64::from(u64::BITS))
    }

    /// Sum of the lengths of some weights before [`filled_up`](Self::filled_up). Means nothing if the magnitude was a wrong
    /// one.
    pub(super) fn sum(&self, weights: &[f64]) -> u64 {
        match self.plain_top() {
            Some(top) => vectorized(SumAndExcess { top, weights, longer_by: 0, capacity: 0 }).0,
            None => weights.iter().fold(0, |sum, weight| sum.wrapping_add(self.unfilled(*weight))),
        }
    }

    /// Sum of the lengths of some weights from `first_row` on, and of what is above the capacity.
    pub(super) fn sum_and_excess(&self, weights: &[f64], first_row: usize) -> (u64, u64) {
        let lengthened = self.lengthened.saturating_sub(first_row).min(weights.len());
        let Some(top) = self.plain_top() else {
            return weights.iter().zip(first_row..).fold((0, 0), |(sum, excess), (weight, row)| {
                let length = self.length(row, *weight);
                (sum + length, excess + length.saturating_sub(self.capacity))
            });
        };
        let (longer, rest) = weights.split_at(lengthened);
        let of = |weights, longer_by| vectorized(SumAndExcess { top, weights, longer_by, capacity: self.capacity });
        let (sum, excess) = of(rest, 0);
        if longer.is_empty() {
            return (sum, excess);
        }
        let (longer_sum, longer_excess) = of(longer, 1);
        (sum + longer_sum, excess + longer_excess)
    }
}

/// Length of a weight without branches. Subnormal numbers have the shortest one.
#[expect(clippy::inline_always, reason = "see `Loop`")]
#[inline(always)]
fn plain_length(top: u64, weight: f64) -> u64 {
    let bits = weight.to_bits();
    // Significand and its implicit bit, aligned to the left; positive numbers have their exponent in the highest bits.
    let aligned = bits << 11 | 1 << 63;
    let shift = top.wrapping_sub(bits >> 52);
    let length = if shift < u64::from(u64::BITS) { aligned >> shift } else { 0 };
    length.wrapping_add(u64::from(length == 0))
}

/// Adds up the lengths of some weights, and what they have above the capacity. Lengths and capacity are below 2^62.
struct SumAndExcess<'a> {
    top: u64,
    weights: &'a [f64],
    longer_by: u64,
    capacity: u64,
}

impl Loop for SumAndExcess<'_> {
    type Output = (u64, u64);

    #[expect(clippy::inline_always, reason = "see `Loop`")]
    #[inline(always)]
    fn run(self) -> (u64, u64) {
        self.weights.iter().fold((0, 0), |(sum, excess): (u64, u64), weight| {
            let length = plain_length(self.top, *weight).wrapping_add(self.longer_by);
            // As signed numbers, which processors compare sooner.
            let most = length.cast_signed().max(self.capacity.cast_signed()).cast_unsigned();
            (sum.wrapping_add(length), excess.wrapping_add(most.wrapping_sub(self.capacity)))
        })
    }
}
