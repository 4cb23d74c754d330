//! Verifying a cache, beside hashing its shards with BLAKE3 on as many threads: what `validate_cache` can reach at best.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
#[allow(unused, reason = "only part of it is used")]
mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::mapped::MappedFile;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;

const THREADS: usize = 2;
const TOTAL: usize = 512 << 20;

/// Hashes all shards as single streams, in equal parts.
fn hash_all(shards: &[MappedFile]) {
    std::thread::scope(|scope| {
        for part in 0..THREADS {
            scope.spawn(move || {
                for shard in shards {
                    let len = shard.len() / THREADS;
                    let bytes = shard.as_slice().get(part * len..).and_then(|rest| rest.get(..len)).unwrap();
                    std::hint::black_box(blake3::hash(bytes));
                }
            });
        }
    });
}

fn map_shards(path: &Path) -> Vec<MappedFile> {
    let shards = fs::read_dir(path.join("shards")).unwrap();
    shards.map(|entry| MappedFile::open(entry.unwrap().path()).unwrap()).collect()
}

fn bench(criterion: &mut Criterion) {
    let base = support::temp_dir();
    let runtime = Runtime::new(THREADS).unwrap();
    for size in [1 << 10, 20 << 10, 100 << 10, 4 << 20] {
        let name = format!("cache-{size}");
        let samples = (0..TOTAL / size).map(|row| support::sample(vec![u8::try_from(row % 251).unwrap(); size], &[]));
        let path = support::write_cache(base.path(), &name, samples, &support::config());
        let mut group = criterion.benchmark_group(format!("verify/{size} bytes"));
        group.throughput(Throughput::Bytes(TOTAL as u64)).sample_size(10).measurement_time(Duration::from_secs(3));
        let config = ReaderConfig { validate_cache: true, ..ReaderConfig::new(1) };
        group.bench_function("validate_cache", |bencher| {
            bencher.iter(|| {
                runtime.open(std::slice::from_ref(&path), config.clone(), &mut PlainWaiter::default()).unwrap()
            });
        });
        let shards = map_shards(&path);
        group.bench_function("blake3", |bencher| bencher.iter(|| hash_all(&shards)));
        group.finish();
        fs::remove_dir_all(&path).unwrap();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
