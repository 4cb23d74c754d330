//! The draw stream looks random. Seeds are fixed, so every run sees the same numbers; limits are five to six standard
//! deviations, so a stream that is random fails none of them for another seed either.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

use dataset_rt::sampling::{DrawStream, one_by_one, philox4x64};

const DRAWS: usize = 1_000_000;

fn draws(stream: &DrawStream, start: u128, len: usize) -> Vec<u64> {
    let mut rows = vec![0; len];
    stream.draws(start, &mut rows);
    rows
}

fn weighted(weights: &[f64], seed: u64) -> DrawStream {
    DrawStream::weighted(weights, seed, &mut one_by_one).unwrap()
}

/// How many standard deviations chi-square of the counts of rows lies from its mean.
fn chi_square_deviation(drawn: &[u64], weights: &[f64]) -> f64 {
    let mut seen = vec![0.0; weights.len()];
    for row in drawn {
        seen[usize::try_from(*row).unwrap()] += 1.0;
    }
    let sum: f64 = weights.iter().sum();
    let expected = weights.iter().map(|weight| weight / sum * drawn.len() as f64);
    let chi_square: f64 = seen.iter().zip(expected).map(|(seen, expected)| (seen - expected).powi(2) / expected).sum();
    let freedom = weights.len() as f64 - 1.0;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn d06_frequencies_follow_the_weights() {
    let random = |row: u64| (philox4x64([row, 0, 0, 0], [5, 6])[0] >> 11) as f64 / 2_f64.powi(53) + 0.01;
    let cases: [(&str, Vec<f64>); 5] = [
        ("uniform", vec![1.0; 1000]),
        ("two equal rows", vec![1.0; 2]),
        ("random", (0..1000).map(random).collect()),
        ("halving", (0..12).map(|row| 2_f64.powi(-row)).collect()),
        ("many rows", (0..50_000).map(|row| random(row) + 1.0).collect()),
    ];
    for (name, weights) in cases {
        let deviation = chi_square_deviation(&draws(&weighted(&weights, 1), 0, DRAWS), &weights);
        assert!(deviation.abs() < 5.5, "{name}: {deviation} standard deviations");
    }
}

#[test]
fn d06_a_row_a_million_times_as_heavy_leaves_the_others_their_share() {
    // One light row: drawn about once in 10^6, so four times by four seeds together (Poisson).
    let light: usize =
        (0..4).map(|seed| draws(&weighted(&[1.0, 1e6], seed), 0, DRAWS).iter().filter(|row| **row == 0).count()).sum();
    assert!((1..=14).contains(&light), "{light}");
    // 10^4 light rows beside it: together one draw in a hundred, each of them alike.
    let mut weights = vec![1.0; 10_001];
    weights[5000] = 1e6 - 10_000.0;
    let light: Vec<u64> =
        draws(&weighted(&weights, 3), 0, DRAWS).into_iter().filter(|row| *row != 5000).map(|row| row / 501).collect();
    let expected = DRAWS as f64 / 100.0;
    assert!((light.len() as f64 - expected).abs() < 5.0 * expected.sqrt(), "{}", light.len());
    let mut groups = vec![501.0; 20];
    groups[9] = 500.0;
    groups[19] = 10_001.0 - 19.0 * 501.0;
    let deviation = chi_square_deviation(&light, &groups);
    assert!(deviation.abs() < 5.5, "{deviation} standard deviations");
}

/// Correlation of two sequences, in standard deviations of that of independent ones.
fn correlation_deviation(left: &[u64], right: &[u64]) -> f64 {
    let count = left.len() as f64;
    let mean = |rows: &[u64]| rows.iter().map(|row| *row as f64).sum::<f64>() / count;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let (mut both, mut left_square, mut right_square) = (0.0, 0.0, 0.0);
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (*left as f64 - left_mean, *right as f64 - right_mean);
        both += left * right;
        left_square += left * left;
        right_square += right * right;
    }
    both / (left_square * right_square).sqrt() * count.sqrt()
}

fn streams(seed: u64) -> [(&'static str, DrawStream); 2] {
    let weights: Vec<f64> = (0..1000_u32).map(|row| f64::from(row % 10 + 1)).collect();
    [("uniform", DrawStream::uniform(1000, seed).unwrap()), ("weighted", weighted(&weights, seed))]
}

#[test]
fn d06_draws_do_not_depend_on_earlier_ones() {
    const COUNT: usize = 300_000;
    for (name, stream) in streams(7) {
        let drawn = draws(&stream, 0, COUNT);
        for lag in 1..=8 {
            let deviation = correlation_deviation(&drawn[..COUNT - lag], &drawn[lag..]);
            assert!(deviation.abs() < 5.5, "{name}, lag {lag}: {deviation} standard deviations");
        }
        // Pairs of neighbours, each row in one of ten classes: all hundred pairs by the product of their shares.
        let class = |row: u64| usize::try_from(row % 10).unwrap();
        let pairs: Vec<u64> = drawn.chunks_exact(2).map(|pair| (class(pair[0]) * 10 + class(pair[1])) as u64).collect();
        let share = |class: usize| if name == "uniform" { 1.0 } else { class as f64 + 1.0 };
        let shares: Vec<f64> = (0..100).map(|pair| share(pair / 10) * share(pair % 10)).collect();
        let deviation = chi_square_deviation(&pairs, &shares);
        assert!(deviation.abs() < 5.5, "{name}, pairs: {deviation} standard deviations");
    }
}

/// Draws out of `count` in which two streams agree, and how many standard deviations that is more than by chance.
fn agreement_deviation(left: &[u64], right: &[u64], chance: f64) -> f64 {
    let same = left.iter().zip(right).filter(|(left, right)| left == right).count() as f64;
    let expected = left.len() as f64 * chance;
    (same - expected) / expected.sqrt()
}

#[test]
fn d06_every_bit_of_the_seed_makes_another_stream() {
    const COUNT: usize = 10_000;
    // Rows of weight w out of 5500 agree with a probability of (w / 5500)^2: a hundred rows of each w of 1 to 10.
    let chances = [1e-3, 100.0 * 385.0 / 5500.0_f64.powi(2)];
    let seed = 0x0123_4567_89AB_CDEF;
    let originals = streams(seed).map(|(_, stream)| draws(&stream, 0, COUNT));
    for bit in 0..64 {
        for (((name, stream), original), chance) in streams(seed ^ (1 << bit)).iter().zip(&originals).zip(chances) {
            let flipped = draws(stream, 0, COUNT);
            let agreement = agreement_deviation(original, &flipped, chance);
            let correlation = correlation_deviation(original, &flipped);
            assert!(agreement.abs() < 6.0, "{name}, seed {seed}, bit {bit}: {agreement} standard deviations");
            assert!(correlation.abs() < 5.5, "{name}, seed {seed}, bit {bit}: {correlation} standard deviations");
        }
    }
}

#[test]
fn d06_neighbour_seeds_have_nothing_in_common() {
    const COUNT: usize = 40_000;
    for seed in [0, 41, u64::MAX - 1] {
        for ((name, left), (_, right)) in streams(seed).iter().zip(&streams(seed + 1)) {
            let left = draws(left, 0, COUNT);
            for shift in 0..5 {
                let right = draws(right, shift, COUNT);
                let deviation = correlation_deviation(&left, &right);
                assert!(deviation.abs() < 5.5, "{name}, seed {seed}, shift {shift}: {deviation} standard deviations");
            }
        }
    }
}

#[test]
fn d06_uniform_and_weighted_streams_of_a_seed_have_nothing_in_common() {
    const COUNT: usize = 300_000;
    let [(_, uniform), (_, weighted)] = streams(7);
    let (left, right) = (draws(&uniform, 0, COUNT), draws(&weighted, 0, COUNT));
    let deviation = correlation_deviation(&left, &right);
    assert!(deviation.abs() < 5.5, "{deviation} standard deviations");
}

#[test]
fn d06_uniform_rows_are_unbiased_where_rounding_would_show() {
    // Of 3 * 2^62 rows a fourth would come twice as often if words were only scaled or cut down.
    let rows = 3_u64 << 62;
    let thirds: Vec<u64> =
        draws(&DrawStream::uniform(rows, 3).unwrap(), 0, DRAWS).iter().map(|row| row >> 62).collect();
    let low_bits: Vec<u64> =
        draws(&DrawStream::uniform(rows, 4).unwrap(), 0, DRAWS).iter().map(|row| row % 3).collect();
    for (name, drawn) in [("thirds", thirds), ("remainders", low_bits)] {
        let deviation = chi_square_deviation(&drawn, &[1.0; 3]);
        assert!(deviation.abs() < 5.5, "{name}: {deviation} standard deviations");
    }
}
