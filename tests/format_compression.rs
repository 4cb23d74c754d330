//! Stored payloads: exact bytes, round trips, and no trust in what an LZ4 payload claims.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use dataset_rt::cancel::CancelToken;
use dataset_rt::error::Error;
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::format::compression::CompressionAlgo::{Lz4, None};
use proptest::prelude::*;

fn stored(algo: CompressionAlgo, payload: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    algo.compress(payload, &mut out, &CancelToken::new()).unwrap();
    assert_eq!(out[..6], *b"before");
    out.split_off(6)
}

/// What a reader does: allocate what is claimed, then fill it.
fn read(algo: CompressionAlgo, stored: &[u8]) -> Result<Vec<u8>, dataset_rt::format::Damage> {
    let mut payload = vec![0; algo.original_len(stored)?];
    algo.decompress_into(stored, &mut payload)?;
    Ok(payload)
}

#[test]
fn stored_bytes_are_exact() {
    assert_eq!(stored(Lz4, b"hello"), *b"\x05\0\0\0\x50hello");
    assert_eq!(stored(Lz4, b""), *b"\0\0\0\0\0");
    assert_eq!(stored(None, b"hello"), *b"hello");
    assert_eq!(stored(None, b""), *b"");
    let zeros = vec![0; 1 << 20];
    assert!(stored(Lz4, &zeros).len() < 5000);
    assert_eq!(read(Lz4, &stored(Lz4, &zeros)).unwrap(), zeros);
}

#[test]
fn c17_long_payloads_are_one_block_too() {
    let words = b"some words which come again and again, ".iter().copied().cycle();
    let noise = (0_u64..).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).to_le_bytes()[0]);
    let payload: Vec<u8> = noise.take(9 << 20).chain(words.take(17 << 20)).collect();
    let bytes = stored(Lz4, &payload);
    assert!(bytes.len() < 10 << 20, "{} bytes", bytes.len());
    assert!(read(Lz4, &bytes).unwrap() == payload);
}

#[test]
fn c17_lz4_payloads_of_4_gib_are_refused() {
    let limit = u32::MAX as usize;
    assert!(Lz4.check_payload_len(limit).is_ok() && None.check_payload_len(limit + 1).is_ok());
    let error = Lz4.check_payload_len(limit + 1).unwrap_err();
    assert!(matches!(error, Error::InvalidValue(_)) && error.to_string().contains("below 4 GiB"), "{error}");
}

#[test]
fn d03_no_claim_exceeds_what_the_bytes_could_hold() {
    let claim = |length: u32, block: &[u8]| [&length.to_le_bytes()[..], block].concat();
    assert_eq!(Lz4.original_len(&claim(255, b"x")).unwrap(), 255);
    for (bytes, message) in [
        (claim(256, b"x"), "claims 256 bytes"),
        (claim(u32::MAX, b"\x50hello"), "claims 4294967295 bytes"),
        (claim(0, b""), "a compressed block of 0 bytes"),
        (b"\0\0\0".to_vec(), "at least 4 bytes"),
    ] {
        let damage = Lz4.original_len(&bytes).unwrap_err().to_string();
        assert!(damage.contains(message), "{damage}");
    }
    // Neither more nor less than was claimed, nor another buffer than was asked for.
    for length in [0, 4, 6] {
        assert!(read(Lz4, &claim(length, b"\x50hello")).is_err(), "{length}");
    }
    for (algo, bytes) in [(Lz4, claim(5, b"\x50hello")), (None, b"hello".to_vec())] {
        for length in [0, 4, 6] {
            assert!(algo.decompress_into(&bytes, &mut vec![0; length]).is_err(), "{length}");
        }
    }
}

#[test]
fn d03_damaged_blocks_are_errors_or_other_bytes() {
    let payload: Vec<u8> = (0..400_u32).flat_map(|number| (number / 7 * 13).to_le_bytes()).collect();
    let good = stored(Lz4, &payload);
    assert!(good.len() < payload.len());
    let mut refused = 0;
    for position in 0..good.len() {
        for pattern in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = good.clone();
            damaged[position] ^= pattern;
            refused += usize::from(read(Lz4, &damaged).is_err());
        }
        assert!(read(Lz4, &good[..position]).is_err(), "{position} bytes");
    }
    assert!(refused > 0);
}

proptest! {
    #[test]
    fn payloads_read_back(
        piece in prop::collection::vec(any::<u8>(), 0..300),
        times in 0_usize..20,
        lz4 in any::<bool>(),
    ) {
        let payload = piece.repeat(times);
        let algo = if lz4 { Lz4 } else { None };
        prop_assert_eq!(read(algo, &stored(algo, &payload)).unwrap(), payload);
    }

    #[test]
    fn any_bytes_are_refused_or_read_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..64), claim in 0_u32..20_000) {
        let stored = [&claim.to_le_bytes()[..], &bytes].concat();
        if let Ok(payload) = read(Lz4, &stored) {
            prop_assert_eq!(payload.len(), claim as usize);
            prop_assert!(payload.len() <= bytes.len() * 255);
        }
    }
}
