//! What it costs to hand work to the pool and to get it back. `cargo bench --bench pool`
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::{PlainWaiter, WAIT_SLICE};
use dataset_rt::pool::{Task, WorkerPool, run_all};

fn hand_off(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pool");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for threads in [1, 2] {
        let pool = WorkerPool::new(threads).unwrap();
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("task, there and back", threads), |bench| {
            bench.iter(|| {
                let task = Task::spawn(&pool, || Ok(())).unwrap();
                while !task.wait(WAIT_SLICE) {}
                task.take().unwrap();
            });
        });
        group.bench_function(BenchmarkId::new("task, taken before it starts", threads), |bench| {
            bench.iter(|| Task::spawn(&pool, || Ok(())).unwrap().take().unwrap());
        });
        group.bench_function(BenchmarkId::new("eight blocks", threads), |bench| {
            bench.iter(|| run_all(&pool, &mut PlainWaiter::default(), 8, &|_, _| Ok(())).unwrap());
        });
        group.throughput(Throughput::Elements(1000));
        group.bench_function(BenchmarkId::new("a thousand tasks at once", threads), |bench| {
            bench.iter(|| {
                let tasks: Vec<_> = (0..1000).map(|_| Task::spawn(&pool, || Ok(())).unwrap()).collect();
                for task in tasks {
                    while !task.wait(WAIT_SLICE) {}
                }
            });
        });
    }
}

criterion_group!(benches, hand_off);
criterion_main!(benches);
