//! The steps that turn a sample into a record, one by one.

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::CancelToken;
use dataset_rt::checksum::{Sha256Hasher, blake3_64, blake3_64_each};
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::format::record::RecordEncoder;
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::value::{Kind, ValueRef};

fn encode(criterion: &mut Criterion) {
    let fields = [("label", Kind::Int), ("score", Kind::Float), ("split", Kind::String)];
    let fields = fields.map(|(name, kind)| Field { name: name.to_owned(), kind });
    let encoder = RecordEncoder::new(&Schema::new(fields.to_vec()).unwrap_or_default());
    let values = [ValueRef::Int(123_456), ValueRef::Float(0.123_456_789), ValueRef::String("validation")];
    criterion.bench_function("envelope of 3 columns", |bencher| {
        let mut out = Vec::with_capacity(1 << 16);
        bencher.iter(|| {
            out.clear();
            encoder.encode(black_box(values), &mut out).is_ok_and(|()| !out.is_empty())
        });
    });

    let mut group = criterion.benchmark_group("bytes");
    for len in [128_usize, 1 << 10, 20 << 10, 100 << 10] {
        let bytes: Vec<u8> = b"etaoin shrdlu and all the others".iter().copied().cycle().take(len).collect();
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_with_input(BenchmarkId::new("blake3-64", len), &bytes, |bencher, bytes| {
            bencher.iter(|| blake3_64(&[black_box(bytes)]));
        });
        group.bench_with_input(BenchmarkId::new("blake3-64, one of many", len), &bytes, |bencher, bytes| {
            let many = bytes.repeat(64);
            let records: Vec<_> = (0..64).map(|record| record * len..(record + 1) * len).collect();
            let mut sums = Vec::new();
            bencher.iter_custom(|rounds| {
                let started = Instant::now();
                for _ in 0..rounds.div_ceil(64) {
                    blake3_64_each(black_box(&many), &records, &mut sums);
                }
                started.elapsed()
            });
        });
        group.bench_with_input(BenchmarkId::new("sha256", len), &bytes, |bencher, bytes| {
            let mut hasher = Sha256Hasher::new();
            bencher.iter(|| hasher.update(black_box(bytes)));
        });
        group.bench_with_input(BenchmarkId::new("lz4", len), &bytes, |bencher, bytes| {
            let mut out = Vec::with_capacity(2 * len + 64);
            let cancel = CancelToken::new();
            bencher.iter(|| {
                out.clear();
                CompressionAlgo::Lz4.compress(black_box(bytes), &mut out, &cancel).is_ok()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
