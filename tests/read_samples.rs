//! What iterators give: cyclic and shuffled windows, whole and bit-exact samples, whatever their size and storage.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;

use std::path::PathBuf;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Dataset, Sample};
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use dataset_rt::sampling::DrawStream;
use dataset_rt::value::MetadataValue;

fn open(paths: &[PathBuf], config: ReaderConfig) -> Dataset {
    Runtime::new(2).unwrap().open(paths, config, &mut PlainWaiter::default()).unwrap()
}

fn in_order() -> ReaderConfig {
    ReaderConfig { shuffle: false, ..ReaderConfig::new(7) }
}

fn pass(dataset: &Dataset) -> Vec<Sample> {
    dataset.samples::<Vec<u8>>().unwrap().into_iter().map(Result::unwrap).collect()
}

/// The sample that `files` was made with, as the dataset should give it.
fn expected(files: &CacheFiles, row: usize) -> (Vec<u8>, Vec<(String, MetadataValue)>) {
    let (payload, metadata) = &files.samples[row];
    let mut metadata = metadata.clone();
    metadata.sort_by(|(left, _), (right, _)| left.cmp(right));
    (payload.clone(), metadata)
}

/// Equal also where a value is NaN.
fn same_bits(left: &[(String, MetadataValue)], right: &[(String, MetadataValue)]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|((left_name, left), (right_name, right))| {
            left_name == right_name
                && match (left, right) {
                    (MetadataValue::Float(left), MetadataValue::Float(right)) => left.to_bits() == right.to_bits(),
                    (left, right) => left == right,
                }
        })
}

#[test]
fn d05_d07_samples_come_back_in_order_whatever_their_size_and_storage() {
    let sizes: [fn(u64) -> usize; 4] =
        [|_| 0, |row| usize::try_from(row % 70).unwrap(), |row| usize::try_from(row % 7).unwrap() * 9_000, |_| 60_000];
    for (case, size) in sizes.into_iter().enumerate() {
        for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
            let base = temp_dir();
            let mut one = CacheFiles::new("one", 50, size);
            let mut two = CacheFiles::new("two", 21, size);
            for files in [&mut one, &mut two] {
                files.algo = algo;
                files.max_shard_bytes = 100_000;
            }
            let paths = [one.write(base.path()), two.write(base.path())];
            for prefetch_size in [1, 3, 64, 1_000] {
                let dataset = open(&paths, ReaderConfig { prefetch_size, ..in_order() });
                let samples = pass(&dataset);
                assert_eq!(samples.len(), 71);
                for (row, sample) in samples.iter().enumerate() {
                    let (files, row) = if row < 50 { (&one, row) } else { (&two, row - 50) };
                    let (data, metadata) = expected(files, row);
                    let context = format!("case {case}, {algo:?}, prefetch_size {prefetch_size}, row {row}");
                    assert!(sample.data == data, "{context}: other bytes");
                    assert!(same_bits(&sample.metadata, &metadata), "{context}: {:?}", sample.metadata);
                    assert_eq!(sample.sample_id.0, row as u64, "{context}");
                    assert_eq!(sample.cache_id, dataset_rt::ids::CacheId::of_source_name(&files.name), "{context}");
                }
            }
        }
    }
}

#[test]
fn d05_shuffled_windows_are_consecutive_draws_of_one_stream() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 37, |_| 10).write(base.path());
    let dataset = open(&[path], ReaderConfig::new(99));
    dataset.set_epoch_len(1).unwrap();
    let stream = DrawStream::uniform(37, 99).unwrap();
    let mut position = 0;
    for len in [1, 5, 64, 17, 200, 1] {
        dataset.set_epoch_len(len).unwrap();
        let rows: Vec<u64> = pass(&dataset).iter().map(|sample| sample.sample_id.0).collect();
        let draws: Vec<u64> = (position..position + u128::from(len)).map(|at| stream.draw(at)).collect();
        assert_eq!(rows, draws);
        position += u128::from(len);
    }
}
