//! Tables of weights hold what their definition says, to the unit: docs/decisions/0003-draw-stream.md.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Result;
use dataset_rt::pool::{WorkerPool, run_all};
use dataset_rt::sampling::{AliasTable, DrawStream, LazyTable, SharedSlice, one_by_one, philox4x64};
use proptest::prelude::*;

fn table(weights: &[f64]) -> AliasTable {
    AliasTable::build(weights, &mut one_by_one).unwrap().unwrap()
}

fn lazy_table(weights: &[f64]) -> LazyTable {
    LazyTable::new(weights.to_vec().into(), &mut one_by_one).unwrap().unwrap()
}

/// Units that each row has in all cells together.
fn held(table: &AliasTable) -> Vec<u128> {
    let rows = usize::try_from(table.rows()).unwrap();
    let mut held = vec![0; rows];
    for row in 0..rows {
        let (threshold, alias) = table.cell(row as u64).unwrap();
        assert!((1..=table.capacity()).contains(&threshold), "row {row}: threshold {threshold}");
        held[row] += u128::from(threshold);
        held[usize::try_from(alias).unwrap()] += u128::from(table.capacity() - threshold);
    }
    held
}

/// floor(log2(sum)) of weights whose sum needs no more than 128 bits in units of 2^-`fraction_bits`.
fn magnitude(weights: &[f64], fraction_bits: i32) -> i32 {
    let unit = 2_f64.powi(fraction_bits);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers by choice of the weights"
    )]
    let sum: u128 = weights.iter().map(|weight| (weight * unit) as u128).sum();
    sum.ilog2().cast_signed() - fraction_bits
}

/// Lengths by definition, for weights that `magnitude` can add.
fn lengths(weights: &[f64], fraction_bits: i32, capacity: u64) -> Vec<u128> {
    let scale = 2_f64.powi(61 - magnitude(weights, fraction_bits));
    // The product is exact, or below one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^62")]
    let mut lengths: Vec<u128> = weights.iter().map(|weight| ((weight * scale) as u128).max(1)).collect();
    let all = u128::from(capacity) * weights.len() as u128;
    let missing = usize::try_from(all - lengths.iter().sum::<u128>()).unwrap();
    assert!(missing < weights.len(), "the capacity is the smallest that suffices");
    for length in &mut lengths[..missing] {
        *length += 1;
    }
    lengths
}

/// Whole multiples of 2^-60 between 2^-60 and 2^30.
fn weight() -> impl Strategy<Value = f64> {
    (-60..30, 0..1_u32 << 20).prop_map(|(exponent, digits)| {
        let low = 2_f64.powi(exponent);
        (low + low * f64::from(digits) / f64::from(1_u32 << 20) * f64::from(u8::from(exponent > -40))).max(low)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d06_every_row_holds_its_length(weights in prop::collection::vec(weight(), 2..200)) {
        prop_assume!(weights.iter().any(|weight| weight.to_bits() != weights[0].to_bits()));
        let table = table(&weights);
        prop_assert_eq!(held(&table), lengths(&weights, 80, table.capacity()));
        let lazy = lazy_table(&weights);
        for row in 0..table.rows() {
            prop_assert_eq!(lazy.cell(row), table.cell(row), "row {}", row);
        }
        prop_assert_eq!(lazy.cell(table.rows()), None);
    }
}

#[test]
fn d06_sums_next_to_a_power_of_two_are_not_rounded() {
    let below_one = 1.0 - f64::EPSILON / 2.0;
    // In floating point the first sum rounds up to 4, however it is added; the others are powers of two, and the last
    // of them needs a carry from one word of the exact sum to the next.
    for weights in [[1.0, 1.0, 1.0, below_one], [0.5, 1.5, 1.0, 1.0], [8192.0, 4096.0, 2048.0, 2048.0]] {
        let table = table(&weights);
        assert_eq!(held(&table), lengths(&weights, 60, table.capacity()), "{weights:?}");
    }
}

const LONG: u32 = 100_000;

type Shape = (&'static str, Box<dyn Fn(u32) -> f64>);

/// Weights of long tables.
fn shapes() -> impl Iterator<Item = (&'static str, Vec<f64>)> {
    let random = |row: u32| philox4x64([u64::from(row), 0, 0, 0], [1, 2])[0] >> 44;
    let shapes: [Shape; 7] = [
        ("random", Box::new(move |row| f64::from(u32::try_from(random(row)).unwrap() + 1))),
        ("skewed", Box::new(move |row| 2_f64.powi(i32::try_from(random(row) % 60).unwrap()))),
        ("rising", Box::new(|row| f64::from(row + 1))),
        ("falling", Box::new(|row| f64::from(LONG + 1 - row))),
        ("one heavy", Box::new(|row| if row == 70_000 { 1e9 } else { 1.0 })),
        ("one light", Box::new(|row| if row == 40_000 { 0.5 } else { 1.0 })),
        ("in runs", Box::new(|row| if row / 20_000 % 2 == 0 { 5.0 } else { 0.25 })),
    ];
    shapes.into_iter().map(|(name, weight)| (name, (0..LONG).map(weight).collect()))
}

#[test]
fn d06_every_row_of_a_long_table_holds_its_length() {
    for (name, weights) in shapes() {
        let table = table(&weights);
        assert!(held(&table) == lengths(&weights, 8, table.capacity()), "{name}");
    }
}

#[test]
fn d06_cells_that_are_worked_out_are_those_of_the_table() {
    for (name, weights) in shapes() {
        let (table, lazy) = (table(&weights), lazy_table(&weights));
        for row in (0..u64::from(LONG)).step_by(7) {
            assert_eq!(lazy.cell(row), table.cell(row), "{name}, row {row}");
        }
    }
}

#[test]
fn d06_draws_are_the_same_before_and_after_a_table_is_filled() {
    let (_, weights) = shapes().next().unwrap();
    let drawn = |stream: &DrawStream| {
        let mut rows = vec![0; 5000];
        stream.draws(3, &mut rows);
        rows
    };
    let expected = drawn(&DrawStream::weighted(&weights, 5, &mut one_by_one).unwrap());
    let soon = DrawStream::weighted_soon(weights.clone().into(), 5, &mut one_by_one).unwrap();
    let lazy = soon.lazy_table().unwrap();
    assert!(drawn(&soon) == expected, "before anything is filled");
    assert!(lazy.fill_block() && lazy.fill_block());
    assert!(lazy.filled().is_none() && drawn(&soon) == expected, "while it is filled");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while lazy.fill_block() {});
        }
    });
    assert!(lazy.filled().unwrap().cells().as_slice() == table(&weights).cells().as_slice());
    assert!(drawn(&soon) == expected, "when it is filled");
    assert!(!lazy.fill_block());
}

#[test]
fn d06_shares_hold_over_the_whole_range_of_doubles() {
    // Shares as decimal fractions; a row too light to count holds one unit, so that it can be drawn.
    let cases: [(&[f64], &[f64]); 6] = [
        (&[1.0, 1e6], &[1.0 / 1_000_001.0, 1e6 / 1_000_001.0]),
        (&[1e-308, 3e-308], &[0.25, 0.75]),
        (&[4e307, 1.2e308], &[0.25, 0.75]),
        (&[5e-324, 1e-323, 2e-323], &[1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0]),
        (&[1e-308, 1e308], &[0.0, 1.0]),
        (&[1.0, 1e-12, 1.0], &[0.5, 5e-13, 0.5]),
    ];
    for (weights, shares) in cases {
        let table = table(weights);
        let units = f64::from(u32::try_from(weights.len()).unwrap()) * approximate(table.capacity());
        for (held, share) in held(&table).into_iter().zip(shares) {
            assert!(held >= 1, "{weights:?}");
            let share_held = approximate(u64::try_from(held).unwrap()) / units;
            assert!(
                (share_held - share).abs() <= share * 1e-5 + 2_f64.powi(-60),
                "{weights:?}: {share_held} of {share}"
            );
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "for comparisons with a tolerance")]
fn approximate(number: u64) -> f64 {
    number as f64
}

#[test]
fn d06_multiplying_all_weights_by_a_power_of_two_changes_nothing() {
    let weights: Vec<f64> = (1..500_u32).map(|row| f64::from(row * row % 97 + 1)).collect();
    let expected = held(&table(&weights));
    for exponent in [-1000, -1, 3, 1000] {
        let scaled: Vec<f64> = weights.iter().map(|weight| weight * 2_f64.powi(exponent)).collect();
        assert!(held(&table(&scaled)) == expected, "2^{exponent}");
    }
}

#[test]
fn d06_the_order_in_which_blocks_run_changes_nothing() {
    let weights: Vec<f64> = (0..200_000_u32).map(|row| f64::from(row * 7919 % 1009) + 0.25).collect();
    let cells = |table: Option<AliasTable>| table.unwrap().cells().as_slice().to_vec();
    let expected = cells(AliasTable::build(&weights, &mut one_by_one).unwrap());
    let mut backwards =
        |blocks: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)| (0..blocks).rev().try_for_each(work);
    assert!(cells(AliasTable::build(&weights, &mut backwards).unwrap()) == expected, "backwards");
    for threads in [1, 2, 5] {
        let pool = WorkerPool::new(threads).unwrap();
        let mut waiter = PlainWaiter::default();
        let mut run = |blocks: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)| {
            run_all(&pool, &mut waiter, blocks, &|block, _| work(block))
        };
        assert!(cells(AliasTable::build(&weights, &mut run).unwrap()) == expected, "{threads} threads");
    }
}

#[test]
fn d06_equal_weights_need_no_table() {
    for weight in [0.3, 5e-324, 1e300] {
        assert!(AliasTable::build(&[weight; 10], &mut one_by_one).unwrap().is_none());
        let stream = DrawStream::weighted(&[weight; 10], 9, &mut one_by_one).unwrap();
        assert!(stream.is_uniform());
        assert!(DrawStream::weighted_soon(vec![weight; 10].into(), 9, &mut one_by_one).unwrap().is_uniform());
        let uniform = DrawStream::uniform(10, 9).unwrap();
        assert!((17..117).all(|position| stream.draw(position) == uniform.draw(position)));
    }
}

#[test]
fn weights_that_cannot_be_drawn_by_are_refused() {
    let refused = |weights: &[f64]| AliasTable::build(weights, &mut one_by_one).unwrap_err().to_string();
    assert!(refused(&[]).contains("no rows"));
    let mut weights = vec![1.0; 40_000];
    weights[30_000] = -5.0;
    weights[35_000] = 0.0;
    assert!(refused(&weights).contains("row 30000"), "the first of several");
    weights[30_000..].fill(1.0);
    for (row, weight) in [(39_999, f64::INFINITY), (20_000, f64::NAN), (16_384, -1.0), (300, -0.0), (20, 0.0)] {
        weights[row] = weight;
        let message = refused(&weights);
        weights[row] = 1.0;
        assert!(message.contains(&format!("row {row}")) && message.contains(&format!("found {weight}")), "{message}");
        assert_eq!(message.contains("filter it"), weight == 0.0, "{message}");
    }
    for weights in [&[1e308, 1e308][..], &[f64::MAX, 1e300, 5e-324]] {
        assert!(refused(weights).contains("not finite"));
    }
    assert!(AliasTable::build(&[f64::MAX, 1.0], &mut one_by_one).is_ok(), "the exact sum is below 2^1024");
}

#[test]
fn tables_can_be_put_together_from_their_parts() {
    let weights: Vec<f64> = (1..1000_u32).map(f64::from).collect();
    let built = table(&weights);
    let copy = AliasTable::from_parts(SharedSlice::from(built.cells().as_slice().to_vec()), built.capacity()).unwrap();
    let expected = DrawStream::weighted(&weights, 4, &mut one_by_one).unwrap();
    let stream = DrawStream::from_table(copy.into(), 4);
    assert!((0..1000).all(|position| stream.draw(position) == expected.draw(position)));

    for (cells, capacity) in [(0, 1), (1, 1), (1000, 1 << 54)] {
        assert!(AliasTable::from_parts(vec![0; cells].into(), capacity).is_err(), "{cells} {capacity}");
    }
    // In units: row 0 holds one of the four of its cell, row 1 the rest and its own cell.
    let small = AliasTable::from_parts(vec![1 << 1 | 1, 4 << 1 | 1].into(), 4).unwrap();
    let stream = DrawStream::from_table(small.into(), 4);
    let mut rows = vec![0; 80_000];
    stream.draws(0, &mut rows);
    let zeros = rows.iter().filter(|row| **row == 0).count();
    assert!(zeros.abs_diff(10_000) < 500, "{zeros}");

    let made_up: Vec<u64> = (0..64_u64).map(|cell| cell.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let stream = DrawStream::from_table(AliasTable::from_parts(made_up.into(), (1 << 58) - 1).unwrap().into(), 4);
    let mut rows = [0; 1000];
    stream.draws(0, &mut rows);
    assert!(rows.iter().all(|row| *row < 64), "an alias has as many bits as the rows need");
}
