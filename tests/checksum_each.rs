//! The checksums of many records at once are those of the records one by one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dataset_rt::cancel::CancelToken;
use dataset_rt::checksum::{blake3_64, blake3_64_each, blake3_64_until};
use dataset_rt::error::Error;
use proptest::prelude::*;

fn buffer(len: usize) -> Vec<u8> {
    (0..=250_u8).cycle().take(len).collect()
}

fn reference(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*blake3::hash(bytes).as_bytes().first_chunk().unwrap())
}

#[test]
fn every_length_up_to_some_chunks() {
    let buffer = buffer(40_000);
    let records: Vec<_> = (0..300).chain((300..35_000).step_by(31)).map(|len| len % 97..len % 97 + len).collect();
    let mut sums = vec![1, 2, 3];
    blake3_64_each(&buffer, &records, &mut sums);
    assert_eq!(sums.len(), records.len());
    for (record, sum) in records.iter().zip(&sums) {
        assert_eq!(*sum, reference(&buffer[record.clone()]), "{} bytes", record.len());
    }
}

#[test]
fn parts_are_one_record() {
    let bytes = buffer(5_000);
    for split in [0, 1, 64, 1_024, 2_000, 5_000] {
        let (left, right) = bytes.split_at(split);
        assert_eq!(blake3_64(&[left, right]), reference(&bytes));
    }
    assert_eq!(blake3_64(&[&bytes]), reference(&bytes));
}

proptest! {
    #[test]
    fn any_mixture_of_lengths(
        lens in prop::collection::vec(prop_oneof![0..200_usize, 900..1_200_usize, 0..20_000_usize, Just(1_024), Just(2_048)], 0..40)
    ) {
        let buffer = buffer(lens.iter().sum());
        let mut start = 0;
        let records: Vec<_> = lens.iter().map(|len| { start += len; start - len..start }).collect();
        let mut sums = Vec::new();
        blake3_64_each(&buffer, &records, &mut sums);
        let expected: Vec<u64> = records.iter().map(|record| reference(&buffer[record.clone()])).collect();
        prop_assert_eq!(sums, expected);
    }
}

#[test]
fn b03_a_long_hash_is_the_same_in_pieces_and_ends_when_it_is_cancelled() {
    let long: Vec<u8> = (0..9_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let cancel = CancelToken::new();
    for parts in [[&long[..], &b"end"[..]], [&b"start"[..], &long[..]], [&b""[..], &b""[..]]] {
        assert_eq!(blake3_64_until(&parts, &cancel).unwrap(), blake3_64(&parts));
    }
    cancel.cancel();
    assert!(matches!(blake3_64_until(&[&long], &cancel), Err(Error::Interrupted)));
}
