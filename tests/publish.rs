//! Publishing: a finished cache appears whole, exactly once, and never over something that exists.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use dataset_rt::error::Error;
use dataset_rt::fs::{Staging, StagingStamp, shard_name, write_atomic};

fn staged(base: &Path, content: &str) -> Staging {
    let staging = Staging::create(base).unwrap();
    fs::create_dir(staging.path().join("shards")).unwrap();
    fs::write(staging.path().join("manifest.json"), content).unwrap();
    staging
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn shards_are_named_by_number() {
    assert_eq!([0, 999_999, 1_000_000].map(shard_name), ["000000.bin", "999999.bin", "1000000.bin"]);
}

#[test]
fn c09_a_published_cache_is_whole_and_leaves_no_staging() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("new base/cache");
    let staging = staged(target.parent().unwrap(), "content");
    assert!(!target.exists());
    staging.publish(&target).unwrap();
    assert_eq!(entries(&target), ["manifest.json", "shards"]);
    assert_eq!(entries(target.parent().unwrap()), ["cache", "tmp"]);
    assert!(entries(&target.parent().unwrap().join("tmp")).is_empty());
}

#[test]
fn c07_nothing_that_exists_is_replaced() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path();
    fs::write(base.join("file"), "mine").unwrap();
    fs::create_dir(base.join("empty")).unwrap();
    fs::create_dir(base.join("complete")).unwrap();
    fs::write(base.join("complete/manifest.json"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", base.join("link")).unwrap();
    for (name, what) in [
        ("file", "already exists: a file"),
        ("empty", "already exists: a directory without manifest.json"),
        ("complete", "already exists: a complete cache"),
        ("link", "already exists: neither"),
    ] {
        let error = staged(base, "other").publish(base.join(name)).unwrap_err();
        assert!(matches!(&error, Error::AlreadyExists { path, .. } if *path == base.join(name)), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    assert!(entries(&base.join("tmp")).is_empty());
    assert!(entries(&base.join("empty")).is_empty());
    for mine in ["file", "complete/manifest.json"] {
        assert_eq!(fs::read_to_string(base.join(mine)).unwrap(), "mine");
    }
    assert_eq!(fs::read_link(base.join("link")).unwrap(), Path::new("nowhere"));
}

#[test]
fn c10_a_failed_publication_names_errno_and_path() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("missing/cache");
    let error = staged(base.path(), "content").publish(&target).unwrap_err();
    assert_eq!(error.io_source().unwrap().raw_os_error(), Some(libc::ENOENT));
    assert!(error.to_string().contains("missing/cache"), "{error}");
    assert!(entries(&base.path().join("tmp")).is_empty());
}

#[test]
fn c08_one_of_many_publishers_succeeds() {
    let base = tempfile::tempdir().unwrap();
    let target = base.path().join("cache");
    let barrier = Barrier::new(8);
    let winners: Vec<usize> = thread::scope(|scope| {
        let publish = |number: usize| {
            let (barrier, target, base) = (&barrier, &target, base.path());
            scope.spawn(move || {
                let staging = staged(base, &number.to_string());
                barrier.wait();
                match staging.publish(target) {
                    Ok(()) => Some(number),
                    Err(error) => {
                        assert!(error.to_string().contains("already exists: a complete cache"), "{error}");
                        None
                    }
                }
            })
        };
        let threads: Vec<_> = (0..8).map(publish).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(winners.len(), 1);
    assert_eq!(fs::read_to_string(target.join("manifest.json")).unwrap(), winners[0].to_string());
    assert_eq!(entries(base.path()), ["cache", "tmp"]);
    assert!(entries(&base.path().join("tmp")).is_empty());
}

#[test]
fn c09_staging_names_its_owner_and_is_unique() {
    let base = tempfile::tempdir().unwrap();
    let [first, second] = [staged(base.path(), ""), staged(base.path(), "")];
    assert_ne!(first.path(), second.path());
    for staging in [&first, &second] {
        assert_eq!(staging.path().parent().unwrap(), base.path().join("tmp"));
        let name = staging.path().file_name().unwrap().to_str().unwrap();
        let stamp = StagingStamp::parse(name).unwrap();
        assert_eq!(stamp, StagingStamp::current());
        assert_eq!(stamp.process, std::process::id());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(stamp.boot, boot.trim());
        assert!(stamp.started > 0 && !stamp.process_space.is_empty() && !stamp.host.is_empty());
        assert!(name.len() <= 255, "{name}");
    }
}

#[test]
fn c09_unstamped_names_have_no_owner() {
    for name in ["", "digits", "host~boot~1~2~3", "host~boot~1~x~3~0", "host~boot~1~2~-3~0", "h~b~1~2~3~0~0"] {
        assert_eq!(StagingStamp::parse(name), None, "{name}");
    }
    let stamp = StagingStamp::parse("h~b~1~2~3~0").unwrap();
    assert_eq!((stamp.host.as_str(), stamp.boot.as_str(), stamp.process_space.as_str()), ("h", "b", "1"));
    assert_eq!((stamp.process, stamp.started), (2, 3));
}

#[test]
fn c06_dropped_staging_is_gone() {
    let base = tempfile::tempdir().unwrap();
    drop(staged(base.path(), ""));
    assert!(entries(&base.path().join("tmp")).is_empty());
}

#[test]
fn b04_a_forked_child_leaves_staging_alone() {
    let base = tempfile::tempdir().unwrap();
    let staging = staged(base.path(), "");
    #[expect(unsafe_code, reason = "there is no safe fork")]
    let status = {
        // SAFETY: the child only drops a value that compares a process number, then leaves without running anything else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(staging);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = -1;
        // SAFETY: waits for the child made above; `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    };
    assert_eq!(status, 0);
    assert!(staging.path().join("manifest.json").exists());
}

#[test]
fn c10_a_file_in_the_way_of_staging_is_named() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("tmp"), "").unwrap();
    let error = Staging::create(base.path()).unwrap_err();
    assert!(error.io_source().is_some() && error.to_string().contains("tmp"), "{error}");
}

#[test]
fn files_are_replaced_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dataset.json");
    write_atomic(&path, b"first").unwrap();
    write_atomic(&path, b"second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(entries(directory.path()), ["dataset.json"]);

    let blocked = directory.path().join("directory");
    fs::create_dir_all(blocked.join("full")).unwrap();
    let error = write_atomic(&blocked, b"bytes").unwrap_err();
    assert!(error.to_string().contains("cannot replace"), "{error}");
    assert_eq!(entries(directory.path()), ["dataset.json", "directory"]);
    let error = write_atomic(directory.path().join("missing/file"), b"bytes").unwrap_err();
    assert!(error.io_source().is_some(), "{error}");
}
