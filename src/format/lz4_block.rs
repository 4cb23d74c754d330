//! Makes one LZ4 block in pieces, so that a long payload can be given up half way.
//!
//! A block is a run of sequences: some literal bytes, then a match that repeats earlier bytes. Its last sequence has no
//! match. Pieces of a payload are compressed alone, and their sequences follow each other; only where two pieces meet,
//! the literals that end one and those that begin the next become one sequence.

use std::ops::Range;

use lz4_flex::block::{compress_into, get_maximum_output_size};

use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::memory::{filled, reserve};

/// Bytes compressed between two looks at the token; shorter payloads are one piece.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// A length from this one on takes more bytes than its half of the token.
const LONG: usize = 15;

/// Bytes of the distance to what a match repeats.
const DISTANCE_BYTES: usize = 2;

/// Appends the block of `payload` to `out`.
///
/// # Errors
/// [`Error::OutOfMemory`]; [`Error::Interrupted`] soon after `cancel` was cancelled. `out` has a part of the block then.
pub(super) fn append(payload: &[u8], piece_bytes: usize, out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
    reserve(out, get_maximum_output_size(payload.len()), "a compressed payload")?;
    if payload.len() <= piece_bytes {
        let start = out.len();
        out.resize(start + get_maximum_output_size(payload.len()), 0);
        let length = compress(payload, out.get_mut(start..).unwrap_or_default())?;
        out.truncate(start + length);
        return Ok(());
    }
    let mut block = filled(0, get_maximum_output_size(piece_bytes), "a compressed payload")?;
    let mut joined = Joined { payload, out, literals_start: 0 };
    let mut end = 0;
    for piece in payload.chunks(piece_bytes) {
        cancel.check()?;
        let length = compress(piece, &mut block)?;
        let start = end;
        end += piece.len();
        let block = block.get(..length).unwrap_or_default();
        joined
            .add(start..end, block)
            .ok_or_else(|| Error::Panicked("a compressed piece cannot be parsed".to_owned()))?;
    }
    joined.finish(cancel)
}

fn compress(piece: &[u8], block: &mut [u8]) -> Result<usize> {
    compress_into(piece, block).map_err(|error| {
        Error::InvalidValue(format!("a payload with {} bytes in a row cannot be compressed: {error}", piece.len()))
    })
}

/// The block as far as it is made.
struct Joined<'a> {
    payload: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Where the bytes of the payload begin that are in no sequence yet.
    literals_start: usize,
}

impl Joined<'_> {
    /// Adds the block of the next piece, which lies at `place` in the payload. None if it is no block.
    fn add(&mut self, place: Range<usize>, block: &[u8]) -> Option<()> {
        let first = Sequence::parse(block, 0)?;
        let Some(mut start) = first.end else { return Some(()) };
        let last = loop {
            let next = Sequence::parse(block, start)?;
            match next.end {
                Some(end) => start = end,
                None => break next,
            }
        };
        self.sequence(place.start + first.literals.len(), first.match_code);
        self.out.extend_from_slice(block.get(first.literals.end..start)?);
        self.literals_start = place.end.checked_sub(last.literals.len())?;
        Some(())
    }

    /// Appends the last sequence.
    fn finish(&mut self, cancel: &CancelToken) -> Result<()> {
        let rest = self.payload.get(self.literals_start..).unwrap_or_default();
        self.head(rest.len(), 0);
        // These may be all bytes of the payload.
        for piece in rest.chunks(PIECE_BYTES) {
            cancel.check()?;
            self.out.extend_from_slice(piece);
        }
        Ok(())
    }

    /// Appends a sequence with all literals up to `end`, and what the token says of its match, which is to follow.
    fn sequence(&mut self, end: usize, match_code: u8) {
        let literals = self.payload.get(self.literals_start..end).unwrap_or_default();
        self.head(literals.len(), match_code);
        self.out.extend_from_slice(literals);
    }

    fn head(&mut self, literals: usize, match_code: u8) {
        let short = literals.min(LONG);
        self.out.push(u8::try_from(short).unwrap_or(0) << 4 | match_code);
        if short == LONG {
            let more = literals - LONG;
            self.out.resize(self.out.len() + more / 255, 255);
            self.out.push(u8::try_from(more % 255).unwrap_or(0));
        }
    }
}

/// One sequence within a block.
struct Sequence {
    /// Where its literals are.
    literals: Range<usize>,
    /// What its token says of the length of the match.
    match_code: u8,
    /// Where the next one begins; there is none behind a sequence without a match.
    end: Option<usize>,
}

impl Sequence {
    fn parse(block: &[u8], start: usize) -> Option<Self> {
        let token = *block.get(start)?;
        let (length, literals_start) = length(block, start + 1, token >> 4)?;
        let literals = literals_start..literals_start + length;
        let match_code = token & 15;
        let end = if literals.end == block.len() {
            None
        } else {
            Some(self::length(block, literals.end + DISTANCE_BYTES, match_code)?.1)
        };
        Some(Self { literals, match_code, end })
    }
}

/// A length of which the token has the code, and where its further bytes end.
fn length(block: &[u8], mut at: usize, code: u8) -> Option<(usize, usize)> {
    let mut length = usize::from(code);
    if length == LONG {
        loop {
            let byte = *block.get(at)?;
            at += 1;
            length += usize::from(byte);
            if byte != u8::MAX {
                break;
            }
        }
    }
    Some((length, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(payload: &[u8], piece_bytes: usize) -> Vec<u8> {
        let mut out = b"before".to_vec();
        append(payload, piece_bytes, &mut out, &CancelToken::new()).unwrap();
        assert_eq!(out[..6], *b"before");
        out.split_off(6)
    }

    fn assert_block(block: &[u8], payload: &[u8]) {
        assert!(lz4_flex::block::decompress(block, payload.len()).unwrap() == payload, "{} bytes", payload.len());
    }

    /// Bytes without any repetition worth a match.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn c17_pieces_make_one_block_wherever_they_meet() {
        let zeros = |length: usize| vec![0; length];
        // Literals only, matches only, and literals of every length of a token around the place where pieces meet.
        let mut payloads = vec![noise(5000), zeros(5000), noise(1000), [noise(1000), zeros(1000)].concat()];
        payloads.extend((990..1010).map(|start| [noise(start), zeros(700), noise(600)].concat()));
        payloads
            .extend([1, 14, 15, 16, 269, 270, 271, 525].map(|end| [zeros(2000 - end), noise(700), zeros(50)].concat()));
        for payload in &payloads {
            for piece_bytes in [64, 500, 1000] {
                assert_block(&block(payload, piece_bytes), payload);
            }
        }
    }

    #[test]
    fn c17_one_piece_is_what_the_compression_makes_of_it() {
        for payload in [&b""[..], b"hello", &[7; 1000], &noise(1000)] {
            assert_eq!(block(payload, 1000), lz4_flex::block::compress(payload));
        }
    }

    #[test]
    fn b03_a_long_block_can_be_given_up() {
        let cancel = CancelToken::new();
        cancel.cancel();
        let mut out = Vec::new();
        assert!(matches!(append(&[7; 3000], 1000, &mut out, &cancel), Err(Error::Interrupted)));
        assert!(out.is_empty(), "no piece after the wish to stop");
    }

    proptest! {
        #[test]
        fn c17_any_payload_in_pieces(
            parts in prop::collection::vec((0..4_u8, 0..700_usize), 0..12),
            piece_bytes in 1..900_usize,
        ) {
            let noise = noise(10_000);
            let mut payload = Vec::new();
            for (kind, length) in parts {
                match kind {
                    0 => payload.extend(&noise[payload.len()..][..length]),
                    1 => payload.resize(payload.len() + length, 9),
                    _ => payload.extend(b"some words which come again ".iter().cycle().take(length)),
                }
            }
            assert_block(&block(&payload, piece_bytes), &payload);
        }
    }
}
