//! Golden vectors, made by another implementation: `tests/python/draw_reference.py`. They never change within a version.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dataset_rt::sampling::{DRAW_STREAM_VERSION, DrawStream, one_by_one};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    version: u8,
    uniform: Vec<Uniform>,
    weighted: Vec<Weighted>,
    pattern: Vec<Pattern>,
}

#[derive(Deserialize)]
struct Uniform {
    rows: u64,
    seed: u64,
    start: String,
    draws: Vec<u64>,
}

#[derive(Deserialize)]
struct Weighted {
    weights: Vec<f64>,
    seed: u64,
    start: String,
    draws: Vec<u64>,
}

/// Row r has the weight r * multiplier % modulus + offset.
#[derive(Deserialize)]
struct Pattern {
    rows: u32,
    multiplier: u32,
    modulus: u32,
    offset: f64,
    seed: u64,
    start: String,
    draws: Vec<u64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("fixtures/draws.json")).unwrap()
}

/// Holds the stream against a vector: in one call, and position by position.
fn check(stream: &DrawStream, start: &str, expected: &[u64], case: &str) {
    let start: u128 = start.parse().unwrap();
    let mut drawn = vec![0; expected.len()];
    stream.draws(start, &mut drawn);
    assert_eq!(drawn, expected, "{case} from {start}");
    let single: Vec<u64> = (start..).zip(expected).map(|(position, _)| stream.draw(position)).collect();
    assert_eq!(single, expected, "{case} from {start}, one by one");
}

#[test]
fn d06_golden_vectors_are_of_this_version() {
    assert_eq!(golden().version, DRAW_STREAM_VERSION);
}

#[test]
fn d06_uniform_draws_are_the_golden_ones() {
    let cases = golden().uniform;
    assert_eq!(cases.len(), 45);
    for case in cases {
        let stream = DrawStream::uniform(case.rows, case.seed).unwrap();
        check(&stream, &case.start, &case.draws, &format!("{} rows, seed {}", case.rows, case.seed));
    }
}

#[test]
fn d06_weighted_draws_are_the_golden_ones() {
    let cases = golden().weighted;
    assert_eq!(cases.len(), 40);
    for case in cases {
        let stream = DrawStream::weighted(&case.weights, case.seed, &mut one_by_one).unwrap();
        check(&stream, &case.start, &case.draws, &format!("{:?}, seed {}", case.weights, case.seed));
    }
}

#[test]
fn d06_weighted_draws_of_long_tables_are_the_golden_ones() {
    let cases = golden().pattern;
    assert_eq!(cases.len(), 15);
    for case in cases {
        let weight = |row: u32| f64::from(row.wrapping_mul(case.multiplier) % case.modulus) + case.offset;
        let weights: Vec<f64> = (0..case.rows).map(weight).collect();
        let name = format!("{} rows, seed {}", case.rows, case.seed);
        let stream = DrawStream::weighted(&weights, case.seed, &mut one_by_one).unwrap();
        check(&stream, &case.start, &case.draws, &name);
        let stream = DrawStream::weighted_soon(weights.into(), case.seed, &mut one_by_one).unwrap();
        check(&stream, &case.start, &case.draws, &format!("{name}, before the table is filled"));
    }
}
