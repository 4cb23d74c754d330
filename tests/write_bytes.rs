//! The bytes of a cache depend on its samples and configuration, not on how the work was split.

mod support;

use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::writer::{IterSource, WriterConfig};
use support::{config, files, samples, staging, temp_dir, write, write_cache};

#[test]
fn c14_same_bytes_for_every_number_of_workers_and_window() {
    for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
        let config =
            WriterConfig { max_shard_bytes: 30_000, compression: Compression { algo, ratio: 1.0 }, ..config() };
        let base = temp_dir();
        let make = || samples(600, 1_500);
        let expected = files(&write_cache(base.path(), "a", make(), &config));
        assert!(expected.len() > 14, "the test needs many shards, found {}", expected.len());
        for workers in 1..=4 {
            for prefetch_size in [1, 2, 64] {
                let base = temp_dir();
                let config = WriterConfig { prefetch_size, ..config.clone() };
                let outcomes = write(workers, &mut [&mut IterSource::new("a", make())], base.path(), &config);
                let path = outcomes[0].result.as_ref().unwrap();
                assert!(files(path) == expected, "{workers} workers, window {prefetch_size}, {algo:?}");
                assert_eq!(staging(base.path()), [""; 0]);
            }
        }
    }
}
