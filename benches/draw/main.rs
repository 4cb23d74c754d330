//! Draw streams: what a table costs to set up and a draw to make, beside the alternatives of
//! docs/decisions/0003-draw-stream.md. `cargo bench --bench draw`
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking and knows its own sizes"
)]

mod alternatives;

use std::hint::black_box;
use std::time::Duration;

use alternatives::{Alias, Cumulative};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Result;
use dataset_rt::pool::{WorkerPool, run_all};
use dataset_rt::sampling::{DrawStream, philox4x64};

const SIZES: [usize; 3] = [1_000, 1_000_000, 10_000_000];
const DRAWS: usize = 4096;

/// Skewed weights over three orders of magnitude.
fn weights(rows: usize) -> Vec<f64> {
    (0..rows as u64)
        .map(|row| (10.0 * (philox4x64([row, 0, 0, 0], [1, 2])[0] as f64 / 2.0_f64.powi(64))).exp2())
        .collect()
}

fn weighted(weights: &[f64], pool: &WorkerPool) -> DrawStream {
    let mut waiter = PlainWaiter::default();
    let mut run = |blocks: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)| {
        run_all(pool, &mut waiter, blocks, &|block, _| work(block))
    };
    DrawStream::weighted(weights, 1, &mut run).unwrap()
}

fn set_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("set up");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for rows in SIZES {
        let weights = weights(rows);
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(BenchmarkId::new("one pass over the weights", rows), |bench| {
            bench.iter(|| {
                black_box(weights.as_slice()).chunks_exact(8).fold([0.0; 8], |mut sums, eight| {
                    for (sum, weight) in sums.iter_mut().zip(eight) {
                        *sum += weight;
                    }
                    sums
                })
            });
        });
        for threads in [1, 2] {
            let pool = WorkerPool::new(threads).unwrap();
            group.bench_function(BenchmarkId::new(format!("table, {threads} threads"), rows), |bench| {
                bench.iter(|| weighted(&weights, &pool).draw(0));
            });
        }
        group.bench_function(BenchmarkId::new("alias", rows), |bench| bench.iter(|| Alias::build(&weights)));
        group.bench_function(BenchmarkId::new("cumulative", rows), |bench| bench.iter(|| Cumulative::build(&weights)));
    }
}

fn draw(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("draw");
    group.sample_size(30).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    let pool = WorkerPool::new(1).unwrap();
    let mut out = vec![0; DRAWS];
    for rows in SIZES {
        let weights = weights(rows);
        let uniform = DrawStream::uniform(rows as u64, 1).unwrap();
        let table = weighted(&weights, &pool);
        for (name, stream) in [("uniform", &uniform), ("table", &table)] {
            let mut start = 0;
            group.throughput(Throughput::Elements(DRAWS as u64));
            group.bench_function(BenchmarkId::new(format!("{name}, in bulk"), rows), |bench| {
                bench.iter(|| {
                    stream.draws(start, &mut out);
                    start += DRAWS as u128;
                });
            });
            group.throughput(Throughput::Elements(1));
            group.bench_function(BenchmarkId::new(format!("{name}, single"), rows), |bench| {
                bench.iter(|| {
                    start += 1;
                    stream.draw(start)
                });
            });
        }
        // The alternatives draw from the same kind of words, so their times hold the generator too.
        let mut words = vec![[0; 2]; DRAWS];
        let mut start = 0;
        let mut refill = |words: &mut [[u64; 2]]| {
            for pair in words.chunks_exact_mut(2) {
                let [a, b, c, d] = philox4x64([start, 0, 0, 0], [1, 2]);
                (pair[0], pair[1], start) = ([a, b], [c, d], start + 1);
            }
        };
        let alias = Alias::build(&weights);
        let cumulative = Cumulative::build(&weights);
        group.throughput(Throughput::Elements(DRAWS as u64));
        group.bench_function(BenchmarkId::new("alias, in bulk", rows), |bench| {
            bench.iter(|| {
                refill(&mut words);
                alias.rows(&words, &mut out);
            });
        });
        group.bench_function(BenchmarkId::new("cumulative, in bulk", rows), |bench| {
            bench.iter(|| {
                refill(&mut words);
                cumulative.rows(&words, &mut out);
            });
        });
    }
}

criterion_group!(benches, set_up, draw);
criterion_main!(benches);
