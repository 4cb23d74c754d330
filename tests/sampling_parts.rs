//! Tables of weights taken apart and put together, and draws from a part of their rows.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::ops::Range;
use std::sync::Arc;

use dataset_rt::sampling::{DrawStream, SharedSlice, WeightParts, WeightTable, one_by_one};

fn table(weights: &[f64]) -> WeightTable {
    WeightTable::build(weights.to_vec().into(), &mut one_by_one).unwrap().unwrap()
}

fn draws(stream: &DrawStream, count: usize) -> Vec<u64> {
    let mut rows = vec![0; count];
    stream.draws(0, &mut rows);
    rows
}

fn uneven(rows: u32) -> Vec<f64> {
    (0..rows).map(|row| f64::from(row % 7 + 1) * if row % 100 == 3 { 50.0 } else { 1.0 }).collect()
}

#[test]
fn a_table_from_its_parts_draws_the_same_rows() {
    for rows in [2, 7, 8, 9, 1000, 70_000] {
        let weights = uneven(rows);
        let whole = DrawStream::weighted(weights.clone().into(), 5, &mut one_by_one).unwrap();
        let copy = WeightTable::from_parts(table(&weights).parts()).unwrap();
        let again = DrawStream::weighted_part(Arc::new(copy), 0..u64::from(rows), 5).unwrap();
        assert_eq!(draws(&whole, 5000), draws(&again, 5000), "{rows} rows");
    }
}

#[test]
fn a_part_draws_its_own_rows_by_weight() {
    let weights = uneven(1000);
    let table = Arc::new(table(&weights));
    for part in [0..1000_u64, 0..1, 999..1000, 3..4, 5..13, 8..16, 300..317, 17..903] {
        let stream = DrawStream::weighted_part(Arc::clone(&table), part.clone(), 11).unwrap();
        let len = usize::try_from(part.end - part.start).unwrap();
        assert_eq!(stream.rows(), part.end - part.start);
        let count = 200_000;
        let mut seen = vec![0_u32; len];
        for row in draws(&stream, count) {
            *seen.get_mut(usize::try_from(row).unwrap()).unwrap_or_else(|| panic!("row {row} of {part:?}")) += 1;
        }
        let start = usize::try_from(part.start).unwrap();
        let own: Vec<f64> = weights.iter().skip(start).take(len).copied().collect();
        let sum: f64 = own.iter().sum();
        let expected = own.iter().map(|weight| weight / sum * f64::from(u32::try_from(count).unwrap()));
        let chi_square: f64 =
            seen.iter().zip(expected).map(|(seen, expected)| (f64::from(*seen) - expected).powi(2) / expected).sum();
        // Mean n - 1, standard deviation sqrt(2 (n - 1)): six of them.
        let freedom = f64::from(u32::try_from(len).unwrap()) - 1.0;
        assert!(chi_square <= freedom + 6.0 * (2.0 * freedom).sqrt() + 1e-9, "{part:?}: {chi_square}");
    }
}

#[test]
fn stretches_follow_each_other() {
    let table = table(&uneven(45));
    let mut end = 0;
    for row in 0..45 {
        let (start, length) = table.stretch(row..row + 1);
        assert_eq!(start, end);
        assert!(length > 0);
        end = start + length;
    }
    assert_eq!(end, table.total());
    assert_eq!(table.stretch(0..45), (0, table.total()));
}

#[test]
fn impossible_parts_and_rows_are_refused() {
    let weights = uneven(20);
    let table = Arc::new(table(&weights));
    for rows in [Range { start: 3_u64, end: 3 }, 0..21, 20..21, Range { start: 5, end: 2 }] {
        let refused = DrawStream::weighted_part(Arc::clone(&table), rows.clone(), 0).unwrap_err();
        assert!(refused.to_string().contains("expected rows among the 20"), "{rows:?}: {refused}");
    }
    let good = table.parts();
    let bad = [
        WeightParts { starts: SharedSlice::from(vec![0_u64; 2]), ..good.clone() },
        WeightParts { guide: SharedSlice::from(vec![0_u32]), ..good.clone() },
        WeightParts { bucket_shift: 64, ..good.clone() },
        WeightParts { total: 0, ..good.clone() },
        WeightParts { scale: i32::MAX, ..good.clone() },
        WeightParts { weights: SharedSlice::from(Vec::new()), ..good.clone() },
    ];
    for (number, parts) in bad.into_iter().enumerate() {
        let refused = WeightTable::from_parts(parts).unwrap_err();
        assert!(refused.to_string().contains("expected a table of weights"), "{number}: {refused}");
    }
}

#[test]
fn made_up_parts_never_end_the_program() {
    let weights = uneven(64);
    let good = table(&weights).parts();
    let words = |seed: u64| (0..64_u64).map(move |n| (n + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    for seed in 0..200 {
        let scales = [12, 1086, 2047];
        let parts = WeightParts {
            weights: words(seed).map(f64::from_bits).collect::<Vec<_>>().into(),
            starts: words(seed + 1).take(8).collect::<Vec<_>>().into(),
            guide: words(seed + 2).map(|word| u32::try_from(word >> 58).unwrap()).collect::<Vec<_>>().into(),
            bucket_shift: u32::try_from(seed % 64).unwrap(),
            total: (seed * seed + 1) << (seed % 40),
            scale: *scales.get(usize::try_from(seed % 3).unwrap()).unwrap(),
        };
        for table in [parts.clone(), WeightParts { weights: good.weights.clone(), ..parts }] {
            let Ok(table) = WeightTable::from_parts(table) else { continue };
            let table = Arc::new(table);
            for rows in [0..64, 9..23] {
                if let Ok(stream) = DrawStream::weighted_part(Arc::clone(&table), rows, seed) {
                    assert_eq!(draws(&stream, 100).len(), 100);
                }
            }
        }
    }
}
