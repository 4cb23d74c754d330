//! Samples from caches that are in memory already: whole windows in order and shuffled, and single samples.

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::Dataset;
use dataset_rt::error::{Error, Result};
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::ids::SampleId;
use dataset_rt::progress::NoProgress;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{IterSource, WriterConfig};

/// Payload bytes of each cache, about.
const CACHE_BYTES: usize = 128 << 20;

/// Payload lengths, and how they are stored.
const CASES: [(usize, CompressionAlgo); 7] = [
    (64, CompressionAlgo::None),
    (1 << 10, CompressionAlgo::None),
    (20 << 10, CompressionAlgo::None),
    (100 << 10, CompressionAlgo::None),
    (4 << 20, CompressionAlgo::None),
    (1 << 10, CompressionAlgo::Lz4),
    (20 << 10, CompressionAlgo::Lz4),
];

fn write(runtime: &Runtime, base: &std::path::Path, len: usize, algo: CompressionAlgo) -> Result<(String, PathBuf)> {
    let name = format!("{len} bytes, {}", algo.as_str());
    let text: Vec<u8> =
        b"etaoin shrdlu and all the others, one after another; ".iter().copied().cycle().take(len).collect();
    let count = (CACHE_BYTES / (len + 64)).min(500_000);
    let samples = (0..count).map(|row| {
        let mut payload = text.clone();
        payload.iter_mut().step_by(31).zip(row..).for_each(|(byte, salt)| *byte = salt.to_le_bytes()[0]);
        let metadata = [
            ("label", MetadataValue::Int(i64::try_from(row).unwrap_or(0))),
            ("score", MetadataValue::Float(0.5)),
            ("split", MetadataValue::String(format!("split {:04}", row % 1000))),
        ];
        (payload, metadata.map(|(name, value)| (name.to_owned(), value)).to_vec())
    });
    let mut source = IterSource::new(&name, samples);
    let config =
        WriterConfig { show_progress: false, compression: Compression { algo, ratio: 1.0 }, ..WriterConfig::default() };
    let waiter = &mut PlainWaiter::default();
    let outcomes = runtime.write(&mut [&mut source], base, &config, waiter, &mut NoProgress)?;
    let path = outcomes.into_iter().next().map(|outcome| outcome.result.map_err(Error::InvalidValue)).transpose()?;
    Ok((name, path.unwrap_or_default()))
}

/// Reads one window, looking at everything once.
fn drain(dataset: &Dataset) -> Result<usize> {
    let mut stream = dataset.samples::<Vec<u8>>()?;
    let mut waiter = PlainWaiter::default();
    let mut bytes = 0;
    while let Some(chunk) = stream.next_chunk(&mut waiter)? {
        for taken in chunk {
            let fetched = taken.read(stream.caches());
            let cache = stream.caches().cache(fetched.place.cache)?;
            for column in 0..3 {
                black_box(cache.value(column, fetched.place.row)?);
            }
            bytes += fetched.payload.map_err(|error| *error)?.len();
        }
    }
    Ok(bytes)
}

fn fetch(criterion: &mut Criterion) -> Result<()> {
    let memory = std::path::Path::new("/dev/shm");
    let base = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let base = base.map_err(|error| Error::file("create", "a temporary directory", error))?;
    let runtime = Runtime::new(2)?;
    let mut group = criterion.benchmark_group("fetch");
    for (len, algo) in CASES {
        let (name, path) = write(&runtime, base.path(), len, algo)?;
        let open = |shuffle| {
            let config = ReaderConfig { shuffle, ..ReaderConfig::new(1) };
            runtime.open(std::slice::from_ref(&path), config, &mut PlainWaiter::default())
        };
        let window = ((8 << 20) / (len as u64 + 200)).max(16);
        group.throughput(Throughput::Elements(window));
        for (order, dataset) in [("in order", open(false)?), ("shuffled", open(true)?)] {
            dataset.set_epoch_len(window)?;
            // Maps the pages, nearly all of them also when shuffled.
            (0..3 * dataset.row_count()?.div_ceil(window)).try_for_each(|_| drain(&dataset).map(drop))?;
            group.bench_function(BenchmarkId::new(order, &name), |bencher| bencher.iter(|| drain(&dataset)));
        }
        let dataset = open(false)?;
        let cache_id = dataset.caches()?.cache(0)?.id();
        let rows = dataset.row_count()?;
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("get_item", &name), |bencher| {
            let mut row = 0_u64;
            bencher.iter(|| {
                row = row.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                dataset.get_item::<Vec<u8>>(cache_id, SampleId(row % rows), &mut PlainWaiter::default())
            });
        });
    }
    group.finish();
    Ok(())
}

fn benches(criterion: &mut Criterion) {
    let outcome = fetch(criterion);
    assert!(outcome.is_ok(), "{outcome:?}");
}

criterion_group!(fetching, benches);
criterion_main!(fetching);
