//! More shards than a process may hold open or keep mapped.
#![expect(unsafe_code, reason = "limits are set through the C library")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;

use cache_files::{CacheFiles, temp_dir};
use reading::{in_order, open, pass, validated};

#[test]
fn d01_shards_take_neither_descriptors_nor_all_maps() {
    let limit = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
    // SAFETY: the call reads one structure and changes a limit of this process, whose only test this is.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let count = 9_500;
    let base = temp_dir();
    let mut files = CacheFiles::new("cache", count, |row| usize::try_from(row % 5).unwrap());
    files.max_shard_bytes = 1;
    let path = files.write(base.path());

    let maps =
        || fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains("shards/")).count();
    let dataset = open(std::slice::from_ref(&path), in_order());
    assert_eq!(maps(), 1_000, "the first thousand are mapped when opened, all others when read");
    for _ in 0..2 {
        for (row, sample) in pass(&dataset).into_iter().enumerate() {
            assert_eq!(sample.sample_id.0, row as u64);
            assert_eq!(sample.data, files.samples.get(row).unwrap().0);
        }
    }
    let mapped = maps();
    assert!((8_192..8_300).contains(&mapped), "{mapped} shards stay mapped");
    drop(dataset);
    assert_eq!(maps(), 0);
    open(&[path], validated());
}
