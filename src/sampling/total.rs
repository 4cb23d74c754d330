//! The binary order of magnitude of a sum of weights, exactly and independent of the order of addition.

use std::ops::RangeInclusive;

use super::vectors::{Loop, vectorized};

/// Bits of the largest finite double: the bits of all positive finite doubles are 1 to this, in order of value.
pub(super) const LARGEST_BITS: u64 = f64::MAX.to_bits();

/// Below this a sum could have lost weights to a processor set to treat subnormal numbers as zero.
const SMALLEST_TRUSTED: f64 = 1e-290;

/// What one pass over some weights finds out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Survey {
    first_bits: u64,
    /// Bits in which any weight differs from the first.
    differences: u64,
    /// The sign bit is set if any weight is not positive and finite.
    faults: u64,
    rows: usize,
    /// Rounded, in an order that depends on how the rows were split: an estimate.
    sum: f64,
}

impl Survey {
    pub(super) const EMPTY: Self = Self { first_bits: 0, differences: 0, faults: 0, rows: 0, sum: 0.0 };

    pub(super) fn of(weights: &[f64]) -> Self {
        vectorized(Weights(weights))
    }

    pub(super) fn joined(self, other: Self) -> Self {
        if self.rows == 0 {
            return other;
        }
        if other.rows == 0 {
            return self;
        }
        Self {
            first_bits: self.first_bits,
            differences: self.differences | other.differences | (self.first_bits ^ other.first_bits),
            faults: self.faults | other.faults,
            rows: self.rows + other.rows,
            sum: self.sum + other.sum,
        }
    }

    /// Whether all weights are positive and finite.
    pub(super) fn is_valid(&self) -> bool {
        self.faults >> 63 == 0
    }

    /// Whether all weights have the same bits.
    pub(super) fn is_equal(&self) -> bool {
        self.differences == 0
    }

    /// floor(log2(exact sum)), if the estimate leaves no doubt.
    pub(super) fn magnitude(&self) -> Option<i32> {
        // Adding n positive numbers in any order and any rounding mode is off by less than a share of n * 2^-52;
        // doubled for the arithmetic here.
        #[expect(clippy::cast_precision_loss, reason = "a bound, and far below 2^52")]
        let doubt = (self.rows + 8) as f64 * f64::EPSILON * 2.0;
        let trusted: RangeInclusive<f64> = SMALLEST_TRUSTED..=f64::MAX / 4.0;
        let (low, high) = (self.sum * (1.0 - doubt), self.sum * (1.0 + doubt));
        (trusted.contains(&self.sum) && exponent_of(low) == exponent_of(high)).then(|| exponent_of(low))
    }
}

struct Weights<'a>(&'a [f64]);

impl Loop for Weights<'_> {
    type Output = Survey;

    #[inline(always)]
    fn run(self) -> Survey {
        // Independent chains, because one would be limited by the latency of the additions.
        const LANES: usize = 16;
        let first_bits = self.0.first().map_or(0, |weight| weight.to_bits());
        let (mut sums, mut differences, mut faults) = ([0.0; LANES], [0; LANES], [0; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for (((weight, sum), differences), faults) in
                chunk.iter().zip(&mut sums).zip(&mut differences).zip(&mut faults)
            {
                *sum += weight;
                *differences |= weight.to_bits() ^ first_bits;
                *faults |= fault(weight.to_bits());
            }
        }
        let (mut sum, mut all_differences, mut all_faults) = (0.0, 0, 0);
        for weight in rest {
            sum += weight;
            all_differences |= weight.to_bits() ^ first_bits;
            all_faults |= fault(weight.to_bits());
        }
        for ((lane_sum, differences), faults) in sums.into_iter().zip(differences).zip(faults) {
            sum += lane_sum;
            all_differences |= differences;
            all_faults |= faults;
        }
        Survey { first_bits, differences: all_differences, faults: all_faults, rows: self.0.len(), sum }
    }
}

/// Has the sign bit unless the bits are those of a positive finite number, which are 1 to [`LARGEST_BITS`]: zero and negative
/// numbers have it after subtracting one, except -0, which has it like infinity and everything above after the other.
#[expect(clippy::inline_always, reason = "see `Loop`")]
#[inline(always)]
fn fault(bits: u64) -> u64 {
    bits.wrapping_sub(1) | LARGEST_BITS.wrapping_sub(bits)
}

/// floor(log2(number)) of a normal number.
pub(super) fn exponent_of(number: f64) -> i32 {
    let (exponent, _) = parts(number.to_bits());
    exponent - 1023
}

/// Biased exponent and 53-bit significand of a positive finite double: it is significand * 2^(exponent - 1075).
/// Done with integers, so that no floating-point mode of the thread matters.
#[inline]
pub(super) fn parts(bits: u64) -> (i32, u64) {
    const IMPLICIT: u64 = 1 << 52;
    let field = bits >> 52;
    let fraction = bits & (IMPLICIT - 1);
    let exponent = field.max(1) as i32;
    (exponent, if field == 0 { fraction } else { fraction | IMPLICIT })
}

/// An exact sum of doubles: one long integer in units of 2^-1074.
#[derive(Debug, Clone)]
pub(super) struct ExactSum([u64; Self::LIMBS]);

impl ExactSum {
    /// 2046 possible exponents, 53 bits of significand and a count below 2^64.
    const LIMBS: usize = 35;

    pub(super) const ZERO: Self = Self([0; Self::LIMBS]);

    pub(super) fn add_all(&mut self, weights: &[f64]) {
        for weight in weights {
            let (exponent, significand) = parts(weight.to_bits());
            let position = exponent.unsigned_abs() - 1;
            let shifted = u128::from(significand) << (position % 64);
            self.add_at(position as usize / 64, shifted);
        }
    }

    pub(super) fn add_sum(&mut self, other: &Self) {
        for (limb, value) in other.0.iter().enumerate() {
            self.add_at(limb, u128::from(*value));
        }
    }

    fn add_at(&mut self, first_limb: usize, value: u128) {
        let mut carry = value;
        for limb in self.0.iter_mut().skip(first_limb) {
            if carry == 0 {
                return;
            }
            #[expect(clippy::cast_possible_truncation, reason = "the lower limb; the rest follows")]
            let (sum, overflow) = limb.overflowing_add(carry as u64);
            *limb = sum;
            carry = (carry >> 64) + u128::from(overflow);
        }
    }

    /// floor(log2(sum)); the sum must not be zero.
    pub(super) fn magnitude(&self) -> i32 {
        let mut position = -1074;
        let mut magnitude = position;
        for limb in self.0 {
            if limb != 0 {
                magnitude = position + limb.ilog2().cast_signed();
            }
            position += 64;
        }
        magnitude
    }
}
