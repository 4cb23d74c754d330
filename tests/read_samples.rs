//! What iterators give: cyclic and shuffled windows, whole and bit-exact samples, whatever their size and storage.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::error::Error;
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::ids::CacheId;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::sampling::DrawStream;
use dataset_rt::value::MetadataValue;
use reading::{get_item, in_order, message, open, pass, pass_ids};

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
                    assert_eq!(sample.cache_id, CacheId::of_source_name(&files.name), "{context}");
                }
            }
        }
    }
}

#[test]
fn d05_ordered_windows_go_round_the_table() {
    let base = temp_dir();
    let paths = [CacheFiles::new("a", 3, |_| 5).write(base.path()), CacheFiles::new("b", 2, |_| 5).write(base.path())];
    let dataset = open(&paths, in_order());
    let (a, b) = (CacheId::of_source_name("a").0, CacheId::of_source_name("b").0);
    let all = [(a, 0), (a, 1), (a, 2), (b, 0), (b, 1)];
    let mut position = 0;
    for len in [2, 2, 2, 7, 1, 23] {
        dataset.set_epoch_len(len).unwrap();
        let expected: Vec<_> = (position..position + len).map(|at| all[usize::try_from(at % 5).unwrap()]).collect();
        assert_eq!(pass_ids(&dataset), expected);
        position += len;
    }
}

#[test]
fn d05_shuffled_windows_are_consecutive_draws_of_one_stream() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 37, |_| 10).write(base.path());
    let dataset = open(&[path], ReaderConfig::new(99));
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

#[test]
fn d04_an_iterator_keeps_its_window_and_one_that_is_dropped_has_used_it() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 10, |_| 5).write(base.path());
    let dataset = open(&[path], in_order());
    dataset.set_epoch_len(4).unwrap();
    let first = dataset.samples::<Vec<u8>>().unwrap();
    drop(dataset.samples::<Vec<u8>>().unwrap());
    let mut third = dataset.samples::<Vec<u8>>().unwrap().into_iter();
    assert_eq!(third.next().unwrap().unwrap().sample_id.0, 8);
    drop(third);
    dataset.set_epoch_len(2).unwrap();
    assert_eq!(pass(&dataset)[0].sample_id.0, 2, "windows of 4, 4, 4, then 2 of 10 rows");
    let rows: Vec<u64> = first.into_iter().map(|sample| sample.unwrap().sample_id.0).collect();
    assert_eq!(rows, [0, 1, 2, 3], "a later epoch length does not reach it");
}

#[test]
fn d07_get_item_reads_any_sample_and_moves_no_cursor() {
    for algo in [CompressionAlgo::None, CompressionAlgo::Lz4] {
        let base = temp_dir();
        let mut files = CacheFiles::new("one", 9, |row| usize::try_from(row).unwrap() * 1000);
        files.algo = algo;
        let paths = [files.write(base.path()), CacheFiles::new("two", 2, |_| 1).write(base.path())];
        let dataset = open(&paths, in_order());
        let id = CacheId::of_source_name("one").0;
        for row in [8, 0, 3, 3] {
            let sample = get_item(&dataset, id, row).unwrap();
            let (data, metadata) = expected(&files, usize::try_from(row).unwrap());
            assert_eq!((sample.cache_id.0, sample.sample_id.0), (id, row));
            assert_eq!(sample.data, data);
            assert!(same_bits(&sample.metadata, &metadata));
        }
        assert_eq!(pass(&dataset)[0].sample_id.0, 0);
    }
}

#[test]
fn d07_unknown_ids_say_what_there_is() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 9, |_| 1).write(base.path());
    let dataset = open(&[path], in_order());
    let id = CacheId::of_source_name("one").0;
    for (cache_id, sample_id, says) in [(id, 9, "0 to 8"), (id, u64::MAX, "0 to 8"), (id + 1, 0, &id.to_string())] {
        let result = get_item(&dataset, cache_id, sample_id);
        assert!(matches!(result, Err(Error::UnknownSample(_))), "{result:?}");
        let text = message(result);
        assert!(text.contains(says) && text.contains(&cache_id.to_string()), "{text}");
    }
}

#[test]
fn d11_epoch_length_is_checked_and_followed() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 9, |_| 1).write(base.path());
    let dataset = open(&[path], in_order());
    assert_eq!(dataset.epoch_len().unwrap(), 9);
    for len in [0, 1 << 63, u64::MAX] {
        let text = message(dataset.set_epoch_len(len));
        assert!(text.contains("epoch_len") && text.contains(&len.to_string()), "{text}");
    }
    assert_eq!(dataset.epoch_len().unwrap(), 9);
    dataset.set_epoch_len((1 << 63) - 1).unwrap();
    assert_eq!(dataset.epoch_len().unwrap(), (1 << 63) - 1);
    // Windows of this size do not run out.
    for _ in 0..5 {
        assert!(dataset.samples::<Vec<u8>>().unwrap().into_iter().next().unwrap().is_ok());
    }
}

#[test]
fn a03_a_closed_dataset_says_so_and_its_iterators_go_on() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 200, |_| 1).write(base.path());
    let dataset = open(&[path], in_order());
    let mut samples = dataset.samples::<Vec<u8>>().unwrap().into_iter();
    assert!(samples.next().unwrap().is_ok());
    dataset.close();
    dataset.close();
    assert_eq!(samples.map(Result::unwrap).count(), 199);
    let closed = [
        dataset.samples::<Vec<u8>>().map(drop),
        dataset.set_epoch_len(1),
        dataset.epoch_len().map(drop),
        dataset.metadata(&mut dataset_rt::cancel::PlainWaiter::default()).map(drop),
        get_item(&dataset, 0, 0).map(drop),
    ];
    for result in closed {
        assert!(matches!(result, Err(Error::Unusable(_))), "{result:?}");
    }
    assert_eq!(dataset.paths().len(), 1);
}
