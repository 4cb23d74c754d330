//! Weighted draws against the definition: every row owns floor(weight * 2^scale) positions, at least one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::pool::{WorkerPool, run_all};
use dataset_rt::sampling::{AliasTable, DrawStream, one_by_one};

fn weighted(weights: &[f64], seed: u64) -> DrawStream {
    DrawStream::weighted(weights, seed, &mut one_by_one).unwrap()
}

fn draws(stream: &DrawStream, start: u128, len: usize) -> Vec<u64> {
    let mut rows = vec![0; len];
    stream.draws(start, &mut rows);
    rows
}

#[test]
fn d06_the_number_of_threads_changes_nothing() {
    let weights: Vec<f64> = (0..300_000_u32).map(|row| f64::from(row * 7919 % 1009) + 0.25).collect();
    let expected = draws(&weighted(&weights, 5), 1 << 70, 1000);
    for threads in [1, 2, 3, 8] {
        let pool = WorkerPool::new(threads).unwrap();
        let mut waiter = PlainWaiter::default();
        let mut run = |blocks: usize, work: &(dyn Fn(usize) -> dataset_rt::error::Result<()> + Sync)| {
            run_all(&pool, &mut waiter, blocks, &|block, _| work(block))
        };
        let stream = DrawStream::weighted(&weights, 5, &mut run).unwrap();
        assert_eq!(draws(&stream, 1 << 70, 1000), expected, "{threads} threads");
    }
}

#[test]
fn d06_equal_weights_need_no_table() {
    assert!(AliasTable::build(&[0.3; 10], &mut one_by_one).unwrap().is_none());
    let uniform = DrawStream::uniform(10, 9).unwrap();
    assert_eq!(draws(&weighted(&[0.3; 10], 9), 17, 100), draws(&uniform, 17, 100));
}
