//! Windows: any stretch of a stream can be drawn alone, and windows that follow each other are the stream.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dataset_rt::sampling::{Cursor, DrawStream, one_by_one};
use proptest::prelude::*;

fn streams(rows: u64, seed: u64) -> Vec<DrawStream> {
    let count = u32::try_from(rows.min(300)).unwrap().max(2);
    let weights: Vec<f64> = (0..count).map(|row| f64::from(row * row % 17) + 0.5).collect();
    vec![
        DrawStream::cyclic(rows).unwrap(),
        DrawStream::uniform(rows, seed).unwrap(),
        DrawStream::weighted(&weights, seed, &mut one_by_one).unwrap(),
    ]
}

/// Where windows begin: anywhere, also where counters carry into their upper half.
fn starts() -> impl Strategy<Value = u128> {
    prop_oneof![
        0..100_u128,
        any::<u64>().prop_map(u128::from),
        (0..40_u128).prop_map(|back| (1 << 66) - back),
        Just(1 << 120)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d05_windows_of_any_sizes_are_the_stream(
        rows in prop_oneof![1..100_u64, any::<u64>().prop_map(|rows| rows.max(1))],
        seed: u64,
        start in starts(),
        sizes in prop::collection::vec(prop_oneof![0..6_usize, 0..400_usize], 1..8),
    ) {
        for stream in streams(rows, seed) {
            let mut whole = vec![0; sizes.iter().sum()];
            stream.draws(start, &mut whole);
            let (mut position, mut rest) = (start, whole.as_slice());
            for size in &sizes {
                let mut window = vec![0; *size];
                stream.draws(position, &mut window);
                let (expected, later) = rest.split_at(*size);
                prop_assert_eq!(window, expected);
                position += *size as u128;
                rest = later;
            }
            for (position, expected) in (start..).zip(&whole).take(20) {
                prop_assert_eq!(stream.draw(position), *expected);
            }
            prop_assert!(whole.iter().all(|row| *row < stream.rows()));
        }
    }
}

#[test]
fn d05_ordered_reading_goes_round() {
    let stream = DrawStream::cyclic(5).unwrap();
    let mut rows = [0; 7];
    stream.draws(3, &mut rows);
    assert_eq!(rows, [3, 4, 0, 1, 2, 3, 4]);
    stream.draws(u128::MAX - 6, &mut rows);
    assert_eq!(u128::MAX % 5, 0);
    assert_eq!(rows, [4, 0, 1, 2, 3, 4, 0]);
}

#[test]
fn d05_a_cursor_hands_out_consecutive_windows_and_stops_at_the_end() {
    let mut cursor = Cursor::new();
    assert_eq!(cursor.reserve(3).unwrap(), 0);
    assert_eq!(cursor.reserve(u64::MAX).unwrap(), 3);
    assert_eq!(cursor.reserve(1).unwrap(), 3 + u128::from(u64::MAX));
    let mut last = Cursor::at(u128::MAX - 10);
    assert!(last.reserve(11).is_err(), "a window ends where the next would begin");
    assert_eq!(last.reserve(10).unwrap(), u128::MAX - 10, "a refused window takes nothing");
    assert!(last.reserve(1).is_err());
}

#[test]
fn streams_without_rows_are_refused() {
    assert!(DrawStream::cyclic(0).is_err());
    assert!(DrawStream::uniform(0, 1).is_err());
    assert!(DrawStream::weighted(&[], 1, &mut one_by_one).is_err());
}
