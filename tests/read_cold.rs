//! Records that are on disk and not in memory: asked for ahead, waited for by the pool.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "files are evicted through the C library")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cache_files::CacheFiles;
use dataset_rt::mapped::MappedFile;
use dataset_rt::prefetch::is_in_memory;
use dataset_rt::reader::{ReaderConfig, announce};
use reading::{in_order, open, pass};

const SAMPLES: u64 = 200;

fn cache(base: &Path) -> PathBuf {
    CacheFiles::new("cache", SAMPLES, |row| if row % 2 == 0 { 100_000 } else { 3 }).write(base)
}

/// Takes a file out of memory. Returns whether that worked: it does not where files live in memory only.
fn evict(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: the call takes an open file and numbers.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    !is_in_memory(MappedFile::open(path).unwrap().as_slice())
}

#[test]
fn d05_cold_reads_give_the_same_samples() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let expected = pass(&open(std::slice::from_ref(&path), in_order()));
    for prefetch_size in [1, 7, 64, 1 << 40] {
        for file in ["shards/000000.bin", "index.bin", "metadata.arrow"] {
            evict(&path.join(file));
        }
        let dataset = open(std::slice::from_ref(&path), ReaderConfig { prefetch_size, ..in_order() });
        // Also when it is found out in the middle.
        let mut samples = dataset.samples::<Vec<u8>>().unwrap().into_iter();
        for (row, expected) in expected.iter().enumerate() {
            if row % 50 == 49 {
                dataset.caches().unwrap().temperature().waited();
            }
            assert_eq!(&samples.next().unwrap().unwrap(), expected);
        }
        assert!(samples.next().is_none());
        drop(dataset);
    }
}

#[test]
fn d05_announced_records_come_into_memory_without_being_read() {
    let base = tempfile::tempdir().unwrap();
    let path = cache(base.path());
    let shard = path.join("shards/000000.bin");
    if !evict(&shard) {
        return;
    }
    let dataset = open(&[path], in_order());
    let caches = dataset.caches().unwrap();
    let rows: Vec<u64> = (0..SAMPLES).collect();
    announce(&caches, &rows);
    let map = MappedFile::open(&shard).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_in_memory(map.as_slice()) {
        assert!(Instant::now() < deadline, "the kernel was not asked for all records");
        std::thread::yield_now();
    }
    assert!(caches.temperature().is_cold(), "something was missing");
    // In memory now: some looks later nobody looks any more.
    for _ in 0..4 {
        announce(&caches, &rows);
    }
    assert!(!caches.temperature().is_cold());
}
