//! A whole cache through the front door, by payload size and number of native threads; in memory, so that the disk is
//! no part of the figure.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark that fails may panic")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Result;
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::progress::NoProgress;
use dataset_rt::runtime::Runtime;
use dataset_rt::value::ValueRef;
use dataset_rt::writer::{PayloadRef, Rows, SHARE_FROM, SharedBytes, Source, WriterConfig};

/// The same payload again and again, handed over as a binding would: shared from a certain size on.
struct Repeated {
    payload: Arc<Vec<u8>>,
    left: u64,
}

struct Lent(Arc<Vec<u8>>);

impl SharedBytes for Lent {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Source for Repeated {
    fn name(&self) -> std::result::Result<String, String> {
        Ok("bench".to_owned())
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let payload = if self.payload.len() < SHARE_FROM {
            PayloadRef::Copied(black_box(&self.payload))
        } else {
            PayloadRef::Shared(Box::new(Lent(Arc::clone(&self.payload))))
        };
        let number = i64::try_from(self.left).unwrap();
        let label = if number % 3 == 0 { "validation" } else { "train" };
        let score = 0.1 + f64::from(u32::try_from(number).unwrap());
        if rows.schema().is_none() {
            let metadata = [
                ("label", ValueRef::Int(number)),
                ("score", ValueRef::Float(score)),
                ("split", ValueRef::String(label)),
            ];
            rows.push(payload, &metadata)?;
        } else {
            rows.begin_row(payload)?;
            rows.push_value(0, ValueRef::Int(number))?;
            rows.push_value(1, ValueRef::Float(score))?;
            rows.push_value(2, ValueRef::String(label))?;
            rows.end_row()?;
        }
        Ok(true)
    }

    fn stop(&mut self) {}
}

/// Text-like bytes: random enough for hashing, compressible about twofold.
fn payload(len: usize) -> Arc<Vec<u8>> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    Arc::new((0..len).map(|_| b"etaoin shrdlu"[next() as usize % 13]).collect())
}

fn memory() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory } else { Path::new(".") }
}

fn append(criterion: &mut Criterion) {
    let raw = Compression::NONE;
    let lz4 = Compression { algo: CompressionAlgo::Lz4, ratio: 1.0 };
    let cases = [
        ("64 B", 64, 200_000, raw),
        ("1 KiB", 1 << 10, 60_000, raw),
        ("20 KiB", 20 << 10, 4_000, raw),
        ("20 KiB lz4", 20 << 10, 4_000, lz4),
        ("100 KiB", 100 << 10, 1_000, raw),
        ("4 MiB", 4 << 20, 32, raw),
    ];
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(3));
    for (name, len, samples, compression) in cases {
        let payload = payload(len);
        group.throughput(Throughput::Elements(samples));
        for threads in [1, 2] {
            let runtime = Runtime::new(threads).unwrap();
            let config = WriterConfig { compression, show_progress: false, ..WriterConfig::default() };
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        let base = tempfile::tempdir_in(memory()).unwrap();
                        let mut source = Repeated { payload: Arc::clone(&payload), left: samples };
                        let started = Instant::now();
                        let outcomes = runtime
                            .write(
                                &mut [&mut source],
                                base.path(),
                                &config,
                                &mut PlainWaiter::default(),
                                &mut NoProgress,
                            )
                            .unwrap();
                        spent += started.elapsed();
                        assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, append);
criterion_main!(benches);
