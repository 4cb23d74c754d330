//! Whatever file operation fails, and however: the source has an error that says so, and nothing is left of it.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::Error;
use dataset_rt::fs::Operation;
use dataset_rt::fs::fault::{Fault, When, arm};
use dataset_rt::progress::NoProgress;
use dataset_rt::runtime::Runtime;
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{IterSource, WriteOutcome, WriterConfig};
use support::{config, files, sample, samples, staging, temp_dir};

const ERRNOS: [i32; 3] = [libc::ENOSPC, libc::EIO, libc::EDQUOT];

/// What the system says about an error number.
fn text(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}

/// Two caches of several shards each.
fn write(runtime: &Runtime, base: &Path) -> Vec<WriteOutcome> {
    let config = WriterConfig { max_shard_bytes: 1_000, ..config() };
    let mut sources = ["a", "b"].map(|name| IterSource::new(name, samples(50, 400)));
    let [a, b] = &mut sources;
    runtime.write(&mut [a, b], base, &config, &mut PlainWaiter::default(), &mut NoProgress).unwrap()
}

/// Texts so long that metadata does not fit into memory.
fn write_spilling(runtime: &Runtime, base: &Path) -> Vec<WriteOutcome> {
    let row = |letter: char| sample("x", &[("text", MetadataValue::String(letter.to_string().repeat(150_000)))]);
    let mut source = IterSource::new("a", ('a'..'q').map(row));
    runtime.write(&mut [&mut source], base, &config(), &mut PlainWaiter::default(), &mut NoProgress).unwrap()
}

type Write = fn(&Runtime, &Path) -> Vec<WriteOutcome>;

/// The files of an undisturbed write, and the operations that it takes.
fn undisturbed(runtime: &Runtime, write: Write) -> (BTreeMap<String, Vec<u8>>, Vec<Operation>) {
    let base = temp_dir();
    let armed = arm(base.path(), &[]);
    let outcomes = write(runtime, base.path());
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
    (files(base.path()), armed.seen().into_iter().map(|(operation, _)| operation).collect())
}

/// Lets the operation with the number `number` fail and looks at what comes of it. False if there was none.
fn fail_once(
    runtime: &Runtime,
    write: Write,
    number: usize,
    first: &[(When, Fault)],
    expected: &BTreeMap<String, Vec<u8>>,
) -> bool {
    let base = temp_dir();
    let errno = ERRNOS[number % ERRNOS.len()];
    let faults: Vec<_> = first.iter().copied().chain([(When::At(number), Fault::Fail(errno))]).collect();
    let armed = arm(base.path(), &faults);
    let outcomes = write(runtime, base.path());
    let seen = armed.seen();
    drop(armed);
    let Some((operation, path)) = seen.get(number) else { return false };
    let failed: Vec<&WriteOutcome> = outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
    let [failed] = failed.as_slice() else { panic!("{operation:?} of {}: {outcomes:?}", path.display()) };
    let message = failed.result.as_ref().unwrap_err();
    assert!(message.contains(&text(errno)), "{operation:?}: {message}");
    assert!(message.contains(path.to_str().unwrap()), "{operation:?} of {}: {message}", path.display());
    assert!(!base.path().join(&failed.source_name).exists(), "{operation:?} of {}: it was published", path.display());
    assert_eq!(staging(base.path()), [""; 0], "{operation:?} of {}", path.display());
    // What is left to do succeeds, as if nothing had happened.
    let again = write(runtime, base.path());
    assert!(again.iter().any(|outcome| outcome.result.is_ok()), "{again:?}");
    assert!(files(base.path()) == *expected, "{operation:?} of {}: other bytes than undisturbed", path.display());
    true
}

#[test]
fn c09_what_a_power_cut_may_reorder_is_synced_in_between() {
    let parent = temp_dir();
    let base = parent.path().join("new").join("base");
    let armed = arm(parent.path(), &[]);
    let outcomes = write(&Runtime::new(1).unwrap(), &base);
    assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
    let seen = armed.seen();
    let all = |operation: Operation, path: &Path| -> Vec<usize> {
        (0..seen.len()).filter(|at| seen[*at].0 == operation && seen[*at].1 == path).collect()
    };
    let last = |operation, path: &Path| *all(operation, path).last().unwrap();
    let is_synced_between = |directory: &Path, from: usize, to: usize| {
        let synced = all(Operation::SyncDir, directory);
        assert!(synced.iter().any(|at| (from..to).contains(at)), "{} in {seen:?}", directory.display());
    };
    for name in ["a", "b"] {
        let published = last(Operation::Rename, &base.join(name));
        // One thread publishes without doing anything else in between.
        let (operation, staging) = &seen[published - 1];
        assert_eq!(*operation, Operation::SyncDir);
        let manifest = &staging.join("manifest.json");
        for (at, (operation, path)) in seen.iter().enumerate().filter(|(_, (_, path))| path.starts_with(staging)) {
            match operation {
                Operation::CreateFile => {
                    let synced = last(Operation::Sync, path);
                    assert!(synced > last(Operation::Write, path), "{}", path.display());
                    assert!(path == manifest || synced < all(Operation::CreateFile, manifest)[0], "{}", path.display());
                    is_synced_between(path.parent().unwrap(), synced, published);
                }
                Operation::CreateDir if path != staging => is_synced_between(staging, at, published),
                _ => {}
            }
        }
        is_synced_between(&base, published, seen.len());
    }
    for made in [&base, base.parent().unwrap()] {
        let created = last(Operation::CreateDir, made);
        is_synced_between(made.parent().unwrap(), created, last(Operation::Rename, &base.join("a")));
    }
}

#[test]
fn c10_every_operation_that_fails_is_the_error_of_its_source() {
    for workers in [1, 2] {
        let runtime = Runtime::new(workers).unwrap();
        let (expected, operations) = undisturbed(&runtime, write);
        let kinds = [
            Operation::CreateDir,
            Operation::CreateFile,
            Operation::Write,
            Operation::Sync,
            Operation::SyncDir,
            Operation::Rename,
        ];
        assert!(kinds.iter().all(|kind| operations.contains(kind)), "{operations:?}");
        let failed = (0..operations.len()).filter(|number| fail_once(&runtime, write, *number, &[], &expected)).count();
        // How many writes there are depends on how slow the source is.
        assert!(failed > 100, "{failed} of {}", operations.len());
    }
}

#[test]
fn c10_what_metadata_spills_may_fail_as_well() {
    let runtime = Runtime::new(1).unwrap();
    let (expected, operations) = undisturbed(&runtime, write_spilling);
    let unlinked = operations.iter().position(|operation| *operation == Operation::RemoveFile).unwrap();
    // The temporary file is created, loses its name, and is written twice.
    for number in unlinked - 1..unlinked + 3 {
        assert!(fail_once(&runtime, write_spilling, number, &[], &expected));
    }
}

#[test]
fn c10_a_write_that_falls_short_is_continued() {
    for write in [write, write_spilling] {
        let runtime = Runtime::new(2).unwrap();
        let (expected, _) = undisturbed(&runtime, write);
        let base = temp_dir();
        let armed = arm(base.path(), &[(When::Every(Operation::Write), Fault::Short)]);
        let outcomes = write(&runtime, base.path());
        drop(armed);
        assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()), "{outcomes:?}");
        assert!(files(base.path()) == expected);
    }
}

#[test]
fn c10_a_write_that_falls_short_before_it_fails_leaves_nothing() {
    let runtime = Runtime::new(1).unwrap();
    let (expected, operations) = undisturbed(&runtime, write);
    let writes = (0..operations.len()).filter(|number| operations[*number] == Operation::Write);
    let torn =
        writes.filter(|number| fail_once(&runtime, write, number + 1, &[(When::At(*number), Fault::Short)], &expected));
    assert!(torn.count() > 20);
}

#[test]
fn c10_a_clean_up_that_fails_hides_nothing() {
    let runtime = Runtime::new(2).unwrap();
    let base = temp_dir();
    let faults = [
        (When::Every(Operation::Sync), Fault::Fail(libc::ENOSPC)),
        (When::Every(Operation::RemoveDir), Fault::Fail(libc::EIO)),
    ];
    let armed = arm(base.path(), &faults);
    let outcomes = write(&runtime, base.path());
    assert!(armed.seen().iter().any(|(operation, _)| *operation == Operation::RemoveDir));
    drop(armed);
    for WriteOutcome { source_name, result } in outcomes {
        let message = result.unwrap_err();
        assert!(message.contains(&text(libc::ENOSPC)) && !message.contains(&text(libc::EIO)), "{message}");
        assert!(!base.path().join(source_name).exists());
    }
    assert_eq!(staging(base.path()).len(), 2);
}

#[test]
fn c10_a_report_that_fails_is_not_left_half_written() {
    let base = temp_dir();
    let path = base.path().join("profile.json");
    let runtime = Runtime::new(1).unwrap();
    let config = WriterConfig { profiler: Some(path.clone()), ..config() };
    let write = |name: &str| {
        let mut source = IterSource::new(name, samples(5, 9));
        runtime.write(&mut [&mut source], base.path(), &config, &mut PlainWaiter::default(), &mut NoProgress)
    };
    write("first").unwrap();
    let before = std::fs::read(&path).unwrap();
    for kind in [Operation::CreateFile, Operation::Write, Operation::Sync, Operation::Rename] {
        let armed = arm(base.path(), &[(When::Every(kind), Fault::Fail(libc::ENOSPC))]);
        let written = write("second");
        drop(armed);
        assert!(matches!(&written, Err(Error::File { .. })), "{kind:?}: {written:?}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{kind:?}");
        let mut left: Vec<_> =
            std::fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["first", "profile.json", "tmp"], "{kind:?}");
    }
}

#[test]
fn c10_staging_that_could_not_be_removed_is_removed_at_the_end_of_the_call_or_by_the_next_write() {
    let runtime = Runtime::new(1).unwrap();
    let full = (When::Every(Operation::Write), Fault::Fail(libc::ENOSPC));

    // One removal fails, whichever operation that is: the end of the call tries again.
    let mut failed = 0;
    for number in 0..30 {
        let base = temp_dir();
        let armed = arm(base.path(), &[(When::At(number), Fault::Fail(libc::EMFILE)), full]);
        write(&runtime, base.path());
        let seen = armed.seen();
        drop(armed);
        if seen.get(number).is_some_and(|(operation, _)| *operation == Operation::RemoveDir) {
            failed += 1;
            assert_eq!(staging(base.path()).len(), 0, "{seen:?}");
        }
    }
    assert!(failed > 0);

    // No removal succeeds: the next write tries again, although the owner of the directory lives.
    let base = temp_dir();
    let armed = arm(base.path(), &[(When::Every(Operation::RemoveDir), Fault::Fail(libc::EMFILE)), full]);
    write(&runtime, base.path());
    drop(armed);
    assert_ne!(staging(base.path()).len(), 0);
    write(&runtime, base.path());
    assert_eq!(staging(base.path()).len(), 0);
}
