//! An export or an update of manifests that is killed, wherever that happens: every file is old or new as a whole, and the next
//! call does its work.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/killing.rs"]
mod killing;

use std::fs;
use std::path::{Path, PathBuf};

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::Dataset;
use dataset_rt::format::manifest::{FormatVersion, Manifest};
use dataset_rt::fs::fault::{Fault, When};
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use dataset_rt::upgrade::ManifestStatus;
use killing::is_killed;

fn open(paths: &[PathBuf]) -> Dataset {
    Runtime::new(1).unwrap().open(paths, ReaderConfig::new(1), &mut PlainWaiter::default()).unwrap()
}

/// Does `work` in a process that is killed at the file operation with this number. Tells whether it got that far.
fn die_at(number: usize, base: &Path, work: impl Fn()) -> bool {
    is_killed(base, &[(When::At(number), Fault::Kill)], work)
}

fn version(cache: &Path) -> FormatVersion {
    let path = cache.join("manifest.json");
    Manifest::parse(&path, &fs::read(&path).unwrap()).unwrap().version
}

fn kill_updates() -> usize {
    let mut between = 0;
    for number in 0.. {
        let base = temp_dir();
        let cache = |name| CacheFiles { version_3: false, ..CacheFiles::new(name, 3, |_| 3) }.write(base.path());
        let paths = ["a", "b", "c"].map(cache);
        let update = || drop(open(&paths).update_manifests(&mut PlainWaiter::default()).unwrap().unwrap());
        if !die_at(number, base.path(), update) {
            return between;
        }
        let before = paths.each_ref().map(|path| version(path));
        let done = before.iter().filter(|version| **version == FormatVersion::V3).count();
        between += usize::from((1..3).contains(&done));
        let entries = open(&paths).update_manifests(&mut PlainWaiter::default()).unwrap().unwrap();
        for (position, (entry, before)) in entries.iter().zip(before).enumerate() {
            let expected = match before {
                FormatVersion::V2 => ManifestStatus::Updated,
                FormatVersion::V3 => ManifestStatus::Unchanged,
            };
            assert_eq!((entry.cache_id.0, entry.status), (position as u64, expected), "operation {number}");
        }
    }
    between
}

fn kill_exports() -> usize {
    let base = temp_dir();
    let paths = [CacheFiles::new("a", 9, |_| 3).write(base.path())];
    for number in 0.. {
        let out = base.path().join(number.to_string());
        fs::create_dir(&out).unwrap();
        let export = |out: &Path| open(&paths).dump_config(out, None, &mut PlainWaiter::default());
        if !die_at(number, &out, || drop(export(&out).unwrap())) {
            return number;
        }
        let config = out.join("dataset.json");
        if config.exists() {
            assert_eq!(Dataset::from_config(&config, &mut PlainWaiter::default()).unwrap().row_count().unwrap(), 9);
        }
        // Only a whole table, or a whole export, is in the way of the next one.
        let taken = out.join("metadata.arrow").exists();
        assert_eq!(export(&out).is_err(), taken, "operation {number}");
    }
    0
}

#[test]
fn e01_after_a_kill_at_any_operation_every_file_is_whole_and_the_next_call_does_its_work() {
    assert!(kill_updates() >= 4);
    assert!(kill_exports() >= 9);
}
