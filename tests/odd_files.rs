//! Directories, named pipes and devices in the places of files: told as what they are, never waited for, never replaced.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::{CancelToken, PlainWaiter};
use dataset_rt::checksum::hash_file;
use dataset_rt::dataset::Dataset;
use dataset_rt::error::{Error, Result};
use dataset_rt::fs::{TemporaryFile, write_atomic};
use dataset_rt::mapped::MappedFile;
use dataset_rt::reader::Cache;
use reading::{in_order, open, pass_ids, try_open, validated};

const ODD: [&str; 3] = ["directory", "pipe", "device"];

/// Puts something else in the place of a file.
fn replace(file: &Path, odd: &str) {
    fs::remove_file(file).unwrap();
    put(file, odd);
}

fn put(place: &Path, odd: &str) {
    match odd {
        "directory" => fs::create_dir(place).unwrap(),
        "pipe" => assert!(Command::new("mkfifo").arg(place).status().unwrap().success()),
        _ => std::os::unix::fs::symlink("/dev/null", place).unwrap(),
    }
}

fn assert_told<T: std::fmt::Debug>(result: Result<T>, file: &Path, odd: &str) {
    let error = result.unwrap_err();
    match (&error, odd) {
        (Error::File { path, source, .. }, "directory") => {
            assert_eq!((path.as_path(), source.raw_os_error()), (file, Some(libc::EISDIR)));
        }
        (Error::InvalidCache { path, detail }, _) => {
            assert_eq!(path, file);
            let expected = if odd == "pipe" { "found a named pipe; " } else { "found a device; " };
            assert!(detail.contains(expected), "{detail}");
        }
        _ => panic!("{odd}: {error:?}"),
    }
}

#[test]
fn g_what_is_no_file_in_a_cache_is_told() {
    let base = temp_dir();
    for odd in ODD {
        for (number, file) in
            ["manifest.json", "metadata.arrow", "index.bin", "checksums.bin", "shards/000000.bin"].iter().enumerate()
        {
            let path = CacheFiles::new(&format!("{odd} {number}"), 3, |_| 3).write(base.path());
            let file = path.join(file);
            replace(&file, odd);
            assert_told(try_open(std::slice::from_ref(&path), validated()), &file, odd);
            // Reuse looks at every shard, without mapping it.
            if !file.ends_with("checksums.bin") {
                assert_told(Cache::open(&path, 0), &file, odd);
            }
        }
    }
}

#[test]
fn g_what_is_no_file_in_an_export_is_told() {
    let base = temp_dir();
    let dataset = open(&[CacheFiles::new("a", 3, |_| 3).write(base.path())], in_order());
    for odd in ODD {
        for name in ["dataset.json", "metadata.arrow"] {
            let out = base.path().join(format!("{odd} {name}"));
            fs::create_dir(&out).unwrap();
            let config = dataset.dump_config(&out, None, &mut PlainWaiter::default()).unwrap();
            replace(&out.join(name), odd);
            let loaded = Dataset::from_config(&config, &mut PlainWaiter::default());
            if (odd, name) == ("directory", "dataset.json") {
                let error = loaded.unwrap_err();
                assert_eq!(error.io_source().unwrap().kind(), ErrorKind::IsADirectory);
                assert!(error.to_string().contains("pass the file dataset.json in it"), "{error}");
            } else {
                // What a link leads to is what there is.
                let file = if (odd, name) == ("device", "dataset.json") { "/dev/null".into() } else { out.join(name) };
                assert_told(loaded, &file, odd);
            }
            // A second export does not take their places.
            let again = dataset.dump_config(&out, None, &mut PlainWaiter::default());
            assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        }
    }
}

#[test]
fn g_a_manifest_that_became_something_else_stops_its_update() {
    let base = temp_dir();
    for odd in ODD {
        let path = CacheFiles { version_3: false, ..CacheFiles::new(odd, 3, |_| 3) }.write(base.path());
        let dataset = open(std::slice::from_ref(&path), in_order());
        let file = path.join("manifest.json");
        replace(&file, odd);
        let stopped = dataset.update_manifests(&mut PlainWaiter::default()).unwrap().unwrap_err();
        let expected = if odd == "device" { PathBuf::from("/dev/null") } else { file };
        assert_eq!((&stopped.path, stopped.entries.len()), (&expected, 0));
        let told = ["cannot open", "found a named pipe", "found a device"];
        assert!(told.iter().any(|told| stopped.message.contains(told)), "{}", stopped.message);
        assert_eq!(pass_ids(&dataset).len(), 3);
    }
}

#[test]
fn g_nothing_odd_is_read_hashed_or_replaced() {
    let base = temp_dir();
    for odd in ODD {
        let place = base.path().join(odd);
        put(&place, odd);
        assert_told(MappedFile::open(&place), &place, odd);
        assert_told(hash_file(&place, &CancelToken::new()), &place, odd);
        // Not tried with a device: what failed this test would take it from the system.
        if odd != "device" {
            assert_told(write_atomic(&place, b"text"), &place, odd);
            assert_told(TemporaryFile::replacing(&place), &place, odd);
        }
    }
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), ODD.len());
}

#[test]
fn g_a_replaced_file_keeps_its_mode_and_links_to_it_stay_links() {
    use std::os::unix::fs::PermissionsExt as _;
    let base = temp_dir();
    let [file, link] = ["file", "link"].map(|name| base.path().join(name));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    write_atomic(&link, b"new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o604);
    write_atomic(base.path().join("third"), b"new").unwrap();
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 3);
}
