//! Verifying a cache, beside hashing its shards with BLAKE3 on as many threads: read like here, or mapped since long before;
//! as long streams, or record by record.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
#[allow(unused, reason = "only part of it is used")]
mod support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::format::index::{IndexRow, ROW_BYTES};
use dataset_rt::mapped::MappedFile;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;

const THREADS: usize = 2;
const TOTAL: usize = 512 << 20;

/// Runs `work` for each thread, with its number.
fn on_threads(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}

/// Hashes all shards as single streams, in equal parts.
fn hash_mapped(shards: &[MappedFile]) {
    on_threads(|thread| {
        for shard in shards {
            let len = shard.len() / THREADS;
            let bytes = shard.as_slice().get(thread * len..).and_then(|rest| rest.get(..len)).unwrap();
            std::hint::black_box(blake3::hash(bytes));
        }
    });
}

/// The same, but reads them.
fn hash_read(shards: &[PathBuf]) {
    on_threads(|thread| {
        let mut buffer = vec![0; 256 << 10];
        for shard in shards {
            let file = File::open(shard).unwrap();
            let len = file.metadata().unwrap().len() / THREADS as u64;
            let (mut at, mut left) = (thread as u64 * len, len);
            let mut hasher = blake3::Hasher::new();
            while left > 0 {
                let most = usize::try_from(left.min(buffer.len() as u64)).unwrap();
                let count = file.read_at(&mut buffer[..most], at).unwrap();
                hasher.update(&buffer[..count]);
                at += count as u64;
                left -= count as u64;
            }
            std::hint::black_box(hasher.finalize());
        }
    });
}

/// Hashes all records, one by one.
fn hash_records(shards: &[MappedFile], rows: &[IndexRow]) {
    on_threads(|thread| {
        let from = |part: usize| part * rows.len() / THREADS;
        for row in &rows[from(thread)..from(thread + 1)] {
            let [shard, offset, length] =
                [row.shard, row.offset, row.length].map(|number| usize::try_from(number).unwrap());
            std::hint::black_box(blake3::hash(&shards[shard][offset..offset + length]));
        }
    });
}

fn shards(path: &Path) -> Vec<PathBuf> {
    let mut shards: Vec<_> = fs::read_dir(path.join("shards")).unwrap().map(|entry| entry.unwrap().path()).collect();
    shards.sort();
    shards
}

fn index(path: &Path) -> Vec<IndexRow> {
    let bytes = fs::read(path.join("index.bin")).unwrap();
    bytes.as_chunks::<ROW_BYTES>().0.iter().map(IndexRow::from_bytes).collect()
}

fn bench(criterion: &mut Criterion) {
    let base = support::temp_dir();
    let runtime = Runtime::new(THREADS).unwrap();
    for size in [64, 1 << 10, 20 << 10, 100 << 10, 4 << 20] {
        let name = format!("cache-{size}");
        let samples = (0..TOTAL.min(size << 20) / size)
            .map(|row| support::sample(vec![u8::try_from(row % 251).unwrap(); size], &[]));
        let path = support::write_cache(base.path(), &name, samples, &support::config());
        let files = shards(&path);
        let mapped: Vec<_> = files.iter().map(|shard| MappedFile::open(shard).unwrap()).collect();
        let bytes = mapped.iter().map(|shard| shard.len() as u64).sum();
        let rows = index(&path);
        let mut group = criterion.benchmark_group(format!("verify/{size} bytes"));
        group.throughput(Throughput::Bytes(bytes)).sample_size(10).measurement_time(Duration::from_secs(3));
        let config = ReaderConfig { validate_cache: true, ..ReaderConfig::new(1) };
        group.bench_function("validate_cache", |bencher| {
            bencher.iter(|| {
                runtime.open(std::slice::from_ref(&path), config.clone(), &mut PlainWaiter::default()).unwrap()
            });
        });
        group.bench_function("blake3, read", |bencher| bencher.iter(|| hash_read(&files)));
        group.bench_function("blake3, mapped", |bencher| bencher.iter(|| hash_mapped(&mapped)));
        group.bench_function("blake3, each record", |bencher| bencher.iter(|| hash_records(&mapped, &rows)));
        group.finish();
        fs::remove_dir_all(&path).unwrap();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
