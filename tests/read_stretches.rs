//! Reading in order once the data are known to be in memory: many samples at a time, found as they are taken.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::path::Path;
use std::time::Duration;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::{PlainWaiter, Waiter};
use dataset_rt::error::Result;
use dataset_rt::format::index::{IndexRow, ROW_BYTES};
use dataset_rt::reader::ReaderConfig;
use reading::{in_order, open, pass};

/// Rows before those that a test looks at: as many as a dataset reads before it believes that all is in memory.
const BEFORE: usize = 1_500;

/// Changes the index row of one sample.
fn change_index(cache: &Path, row: usize, change: impl Fn(IndexRow) -> IndexRow) {
    let path = cache.join("index.bin");
    let mut bytes = fs::read(&path).unwrap();
    let place = &mut bytes[row * ROW_BYTES..][..ROW_BYTES];
    let changed = change(IndexRow::from_bytes(place.first_chunk().unwrap()));
    place.copy_from_slice(&changed.to_bytes());
    fs::write(&path, bytes).unwrap();
}

#[test]
fn d05_samples_of_any_sizes_come_in_order_pass_after_pass() {
    let base = temp_dir();
    let sizes = [0, 1, 70, 700, 5_000, 40, 3, 300_000, 90_000, 16];
    let size = |row: u64| if row % 97 < 60 { 20 } else { sizes[usize::try_from(row % 10).unwrap()] };
    let (mut one, mut two) =
        (CacheFiles::new("one", 700, size), CacheFiles::new("two", 301, |row| 10 + usize::try_from(row % 5).unwrap()));
    one.max_shard_bytes = 400_000;
    two.max_shard_bytes = 3_000;
    let dataset = open(&[one.write(base.path()), two.write(base.path())], in_order());
    let samples: Vec<_> = one.samples.iter().chain(&two.samples).collect();
    let mut row = 0;
    for len in [1_001, 1_001, 333, 1_001, 70, 2_500] {
        dataset.set_epoch_len(len).unwrap();
        for sample in pass(&dataset) {
            let (data, metadata) = samples[row % samples.len()];
            assert!(sample.data == *data, "row {row} has other bytes");
            assert!(sample.metadata.iter().all(|value| metadata.contains(value)), "row {row} has other metadata");
            row += 1;
        }
    }
}

/// A caller that counts how often it has to wait.
#[derive(Default)]
struct Counting(usize);

impl Waiter for Counting {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        self.0 += 1;
        PlainWaiter::default().wait(done)
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn d05_a_pass_that_finds_everything_in_memory_goes_on_without_waiting_for_the_pool() {
    let base = temp_dir();
    let path = CacheFiles::new("one", 2_000, |_| 16).write(base.path());
    for config in [in_order(), ReaderConfig { shuffle: true, ..in_order() }] {
        let dataset = open(std::slice::from_ref(&path), config);
        dataset.set_epoch_len(200_000).unwrap();
        let mut stream = dataset.samples::<Vec<u8>>().unwrap();
        let (mut taken, mut waits) = (0, Counting::default());
        while let Some(chunk) = stream.next_chunk(&mut waits).unwrap() {
            if taken < 100_000 {
                waits.0 = 0;
            }
            for sample in chunk {
                sample.read(stream.caches()).payload.unwrap();
                taken += 1;
            }
        }
        assert_eq!((taken, waits.0), (200_000, 0));
    }
}

#[test]
fn d08_damaged_samples_are_errors_of_their_own_and_the_others_come() {
    let base = temp_dir();
    let files = CacheFiles::new("one", 2_000, |_| 16);
    let path = files.write(base.path());
    let (long, outside, swapped) = (BEFORE + 100, BEFORE + 200, BEFORE + 300);
    let rows = fs::read(path.join("index.bin")).unwrap();
    let row = |row: usize| IndexRow::from_bytes(rows[row * ROW_BYTES..].first_chunk().unwrap());
    change_index(&path, outside, |found| IndexRow { length: found.length + (1 << 40), ..found });
    change_index(&path, swapped, |_| row(swapped + 1));
    change_index(&path, swapped + 1, |_| row(swapped));
    let shard = path.join("shards").join("000000.bin");
    let mut bytes = fs::read(&shard).unwrap();
    let envelope = usize::try_from(row(long).offset).unwrap();
    bytes[envelope..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(&shard, bytes).unwrap();

    let dataset = open(&[path], in_order());
    for _ in 0..3 {
        let samples: Vec<_> = dataset.samples::<Vec<u8>>().unwrap().into_iter().collect();
        assert_eq!(samples.len(), 2_000);
        for (number, sample) in samples.into_iter().enumerate() {
            if number == long || number == outside {
                let message = sample.unwrap_err().to_string();
                assert!(message.contains(&format!("sample {number} of cache")), "{message}");
                continue;
            }
            let stored = match number {
                _ if number == swapped => swapped + 1,
                _ if number == swapped + 1 => swapped,
                _ => number,
            };
            assert_eq!(sample.unwrap().data, files.samples[stored].0, "row {number}");
        }
    }
}
