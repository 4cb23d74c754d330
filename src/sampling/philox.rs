//! Random words by position: the counter-based generator Philox4x64-10, and unbiased integers below a bound.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11).

/// Version of the draw stream. It is part of the key, so that another version shares no words with this one.
pub const DRAW_STREAM_VERSION: u8 = 1;

/// Second word of every key: says what the words are for and by which rules they are used.
const DOMAIN: u64 = u64::from_be_bytes([b'd', b'r', b't', b' ', b'd', b'r', b'w', DRAW_STREAM_VERSION]);

const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
const KEY_STEPS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];
const ROUNDS: usize = 10;

/// Four random words for one counter and key.
#[must_use]
#[inline]
pub fn philox4x64(counter: [u64; 4], key: [u64; 2]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut key_0, mut key_1] = key;
    for _ in 0..ROUNDS {
        let (low_a, high_a) = wide_product(a, MULTIPLIERS[0]);
        let (low_c, high_c) = wide_product(c, MULTIPLIERS[1]);
        (a, b, c, d) = (high_c ^ b ^ key_0, low_c, high_a ^ d ^ key_1, low_a);
        key_0 = key_0.wrapping_add(KEY_STEPS[0]);
        key_1 = key_1.wrapping_add(KEY_STEPS[1]);
    }
    [a, b, c, d]
}

/// What the words of a counter are used for: its last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Purpose {
    Uniform = 0,
    Weighted = 1,
}

/// The random words of one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    seed: u64,
    purpose: Purpose,
}

impl Words {
    pub(super) const fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose }
    }

    /// The four words of `block`. Refused words are replaced by those of the next attempt, so that
    /// replacing one never moves another.
    #[inline]
    pub(super) fn block(self, block: u128, attempt: u64) -> [u64; 4] {
        let (low, high) = halves(block);
        philox4x64([low, high, attempt, self.purpose as u64], [self.seed, DOMAIN])
    }
}

/// A number below `bound` from one random word, every number with the same probability; `None` if the word must be
/// refused (D. Lemire: Fast random integer generation in an interval, 2019).
#[inline]
pub(super) fn below(word: u64, bound: u64) -> Option<u64> {
    let (low, high) = wide_product(word, bound);
    // The remainder costs a division and is only needed for a word in 2^64 / bound.
    if low < bound && low < bound.wrapping_neg() % bound { None } else { Some(high) }
}

/// The product as (low, high).
#[inline]
pub(super) fn wide_product(left: u64, right: u64) -> (u64, u64) {
    halves(u128::from(left) * u128::from(right))
}

/// (low, high).
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cutting in two is the point")]
const fn halves(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}
