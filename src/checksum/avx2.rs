//! The compression function of BLAKE3 on eight blocks at once, one in each 32-bit lane of 256-bit vectors.
//!
//! With intrinsics, because what the compiler makes of plain loops is slower than hashing the blocks one by one.
#![expect(unsafe_code, reason = "vector loads and stores take pointers, and the processor has to be asked first")]
#![expect(clippy::indexing_slicing, reason = "constant places in arrays of constant sizes, checked when compiled")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32,
    _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set_epi8, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
    _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};
use std::hint::black_box;

use super::lanes::{BLOCK, Node, Value};

/// Nodes that are hashed side by side.
pub(super) const LANES: usize = 8;

const IV: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Proof that the processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Vectors(());

impl Vectors {
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// The value of each node.
    #[expect(clippy::unused_self, reason = "a proof is shown, not looked at")]
    pub(super) fn hash(self, nodes: &[Node<'_>; LANES]) -> [Value; LANES] {
        let words = Words {
            numbers: nodes.map(|node| node.number),
            first_flags: nodes.map(|node| node.first_flags),
            last_flags: nodes.map(|node| node.last_flags),
            last_blocks: nodes.map(|node| count(node.bytes.len().div_ceil(BLOCK)).saturating_sub(1)),
        };
        // SAFETY: there is no value of this type unless the processor has AVX2.
        unsafe { hash(&nodes.map(|node| node.bytes), &words) }
    }
}

/// What the lanes differ in.
struct Words {
    numbers: [u32; LANES],
    first_flags: [u32; LANES],
    last_flags: [u32; LANES],
    last_blocks: [u32; LANES],
}

/// A number of bytes or blocks of a node: there are at most 1024.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[target_feature(enable = "avx2")]
fn hash(messages: &[&[u8]; LANES], words: &Words) -> [Value; LANES] {
    let counters = load_words(&words.numbers);
    let (first_flags, last_flags) = (load_words(&words.first_flags), load_words(&words.last_flags));
    let last_blocks = load_words(&words.last_blocks);
    let (mut whole_blocks, mut blocks) = (u32::MAX, 0);
    for (message, last) in messages.iter().zip(&words.last_blocks) {
        whole_blocks = whole_blocks.min(count(message.len() / BLOCK));
        blocks = blocks.max(last + 1);
    }
    let mut values = splat_all(IV);
    let mut padded = [[0; BLOCK]; LANES];
    for block in 0..blocks {
        let number = splat(block);
        let mut flags = and(last_flags, _mm256_cmpeq_epi32(last_blocks, number));
        if block == 0 {
            flags = _mm256_or_si256(flags, first_flags);
        }
        let mut bytes = [&[0; BLOCK]; LANES];
        let mut lengths = [count(BLOCK); LANES];
        let from = block as usize * BLOCK;
        if block < whole_blocks {
            for (bytes, message) in bytes.iter_mut().zip(messages) {
                *bytes = message.get(from..).and_then(<[u8]>::first_chunk).unwrap_or(bytes);
            }
        } else {
            for (((bytes, message), length), padded) in
                bytes.iter_mut().zip(messages).zip(&mut lengths).zip(&mut padded)
            {
                let rest = message.get(from..).unwrap_or_default();
                *bytes = if let Some(whole) = rest.first_chunk() {
                    whole
                } else {
                    *length = count(rest.len());
                    *padded = [0; BLOCK];
                    padded[..rest.len()].copy_from_slice(rest);
                    padded
                };
            }
        }
        let next = compress(&values, bytes, counters, load_words(&lengths), flags);
        let ended = _mm256_cmpgt_epi32(number, last_blocks);
        for (value, next) in values.iter_mut().zip(next) {
            // Nodes that have ended keep their value.
            *value = _mm256_blendv_epi8(next, *value, ended);
        }
    }
    let mut hashes = [[0; 32]; LANES];
    for (hash, words) in hashes.iter_mut().zip(transpose(values)) {
        // SAFETY: the destination has exactly the 32 bytes of a vector, and no alignment is needed.
        unsafe { _mm256_storeu_si256(hash.as_mut_ptr().cast(), words) };
    }
    hashes
}

/// One step of four columns or diagonals, written out four times so that the processor has independent work.
macro_rules! mix {
    ($m:ident, $turns:ident, [$($first:literal)*], [$($second:literal)*], $(($a:ident $b:ident $c:ident $d:ident))*) => {
        $($a = add(add($a, $b), $m[$first]);)*
        $($d = $turns.by_16(xor($d, $a));)*
        $($c = add($c, $d);)*
        $($b = turn_12(xor($b, $c));)*
        $($a = add(add($a, $b), $m[$second]);)*
        $($d = $turns.by_8(xor($d, $a));)*
        $($c = add($c, $d);)*
        $($b = turn_7(xor($b, $c));)*
    };
}

#[target_feature(enable = "avx2")]
fn compress(
    values: &[__m256i; 8],
    blocks: [&[u8; BLOCK]; LANES],
    counters: __m256i,
    lengths: __m256i,
    flags: __m256i,
) -> [__m256i; 8] {
    let turns = ByteTurns::new();
    let [m0, m1, m2, m3, m4, m5, m6, m7] = transpose(load_halves(blocks, 0));
    let [m8, m9, m10, m11, m12, m13, m14, m15] = transpose(load_halves(blocks, 1));
    let m = [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15];
    let [mut v0, mut v1, mut v2, mut v3, mut v4, mut v5, mut v6, mut v7] = *values;
    let [mut v8, mut v9, mut v10, mut v11, ..] = splat_all(IV);
    // The counter's upper half is zero: no message here has 2^32 chunks.
    let (mut v12, mut v13, mut v14, mut v15) = (counters, _mm256_setzero_si256(), lengths, flags);
    mix!(m, turns, [0 2 4 6], [1 3 5 7], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [8 10 12 14], [9 11 13 15], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [2 3 7 4], [6 10 0 13], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [1 12 9 15], [11 5 14 8], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [3 10 13 7], [4 12 2 14], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [6 9 11 8], [5 0 15 1], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [10 12 14 13], [7 9 3 15], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [4 11 5 1], [0 2 8 6], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [12 9 15 14], [13 11 10 8], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [7 5 0 6], [2 3 1 4], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [9 11 8 15], [14 5 12 1], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [13 0 2 4], [3 10 6 7], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    mix!(m, turns, [11 5 1 8], [15 0 9 6], (v0 v4 v8 v12) (v1 v5 v9 v13) (v2 v6 v10 v14) (v3 v7 v11 v15));
    mix!(m, turns, [14 2 3 7], [10 12 4 13], (v0 v5 v10 v15) (v1 v6 v11 v12) (v2 v7 v8 v13) (v3 v4 v9 v14));
    [xor(v0, v8), xor(v1, v9), xor(v2, v10), xor(v3, v11), xor(v4, v12), xor(v5, v13), xor(v6, v14), xor(v7, v15)]
}

/// The first or second half of each block.
#[target_feature(enable = "avx2")]
#[inline]
fn load_halves(blocks: [&[u8; BLOCK]; LANES], half: usize) -> [__m256i; LANES] {
    let mut halves = [_mm256_setzero_si256(); LANES];
    for (vector, block) in halves.iter_mut().zip(blocks) {
        let (bytes, _) = block.as_chunks::<{ BLOCK / 2 }>();
        // SAFETY: the source has exactly the 32 bytes of a vector, and no alignment is needed.
        *vector = unsafe { _mm256_loadu_si256(bytes[half].as_ptr().cast()) };
    }
    halves
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_words(words: &[u32; LANES]) -> __m256i {
    // SAFETY: the source has exactly the 32 bytes of a vector, and no alignment is needed.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[target_feature(enable = "avx2")]
#[inline]
fn splat_all(words: [u32; 8]) -> [__m256i; 8] {
    let mut vectors = [_mm256_setzero_si256(); 8];
    for (vector, word) in vectors.iter_mut().zip(words) {
        *vector = splat(word);
    }
    vectors
}

/// Rows of eight words become columns. The words are little endian, as the processor is.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose([r0, r1, r2, r3, r4, r5, r6, r7]: [__m256i; 8]) -> [__m256i; 8] {
    let (ab_low, ab_high) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpackhi_epi32(r0, r1));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi32(r2, r3), _mm256_unpackhi_epi32(r2, r3));
    let (ef_low, ef_high) = (_mm256_unpacklo_epi32(r4, r5), _mm256_unpackhi_epi32(r4, r5));
    let (gh_low, gh_high) = (_mm256_unpacklo_epi32(r6, r7), _mm256_unpackhi_epi32(r6, r7));
    let (a0, a1) = (_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low));
    let (a2, a3) = (_mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high));
    let (e0, e1) = (_mm256_unpacklo_epi64(ef_low, gh_low), _mm256_unpackhi_epi64(ef_low, gh_low));
    let (e2, e3) = (_mm256_unpacklo_epi64(ef_high, gh_high), _mm256_unpackhi_epi64(ef_high, gh_high));
    [
        _mm256_permute2x128_si256::<0x20>(a0, e0),
        _mm256_permute2x128_si256::<0x20>(a1, e1),
        _mm256_permute2x128_si256::<0x20>(a2, e2),
        _mm256_permute2x128_si256::<0x20>(a3, e3),
        _mm256_permute2x128_si256::<0x31>(a0, e0),
        _mm256_permute2x128_si256::<0x31>(a1, e1),
        _mm256_permute2x128_si256::<0x31>(a2, e2),
        _mm256_permute2x128_si256::<0x31>(a3, e3),
    ]
}

#[target_feature(enable = "avx2")]
#[inline]
fn add(left: __m256i, right: __m256i) -> __m256i {
    _mm256_add_epi32(left, right)
}

#[target_feature(enable = "avx2")]
#[inline]
fn xor(left: __m256i, right: __m256i) -> __m256i {
    _mm256_xor_si256(left, right)
}

#[target_feature(enable = "avx2")]
#[inline]
fn and(left: __m256i, right: __m256i) -> __m256i {
    _mm256_and_si256(left, right)
}

/// Rotations of each word to the right by whole bytes: one shuffle each.
#[derive(Clone, Copy)]
struct ByteTurns {
    order_16: __m256i,
    order_8: __m256i,
}

impl ByteTurns {
    #[target_feature(enable = "avx2")]
    #[inline]
    fn new() -> Self {
        let order_16 = _mm256_set_epi8(
            13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2,
        );
        let order_8 = _mm256_set_epi8(
            12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1, 12, 15, 14, 13, 8, 11, 10, 9, 4, 7, 6, 5, 0, 3, 2, 1,
        );
        // A compiler that knows the orders makes two shuffles of each, which takes longer.
        black_box(Self { order_16, order_8 })
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn by_16(self, words: __m256i) -> __m256i {
        _mm256_shuffle_epi8(words, self.order_16)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn by_8(self, words: __m256i) -> __m256i {
        _mm256_shuffle_epi8(words, self.order_8)
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn turn_12(words: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi32::<12>(words), _mm256_slli_epi32::<20>(words))
}

#[target_feature(enable = "avx2")]
#[inline]
fn turn_7(words: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi32::<7>(words), _mm256_slli_epi32::<25>(words))
}
