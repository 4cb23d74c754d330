//! A write that is killed, wherever that happens, leaves no cache or a whole one, and the same call then does its work.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/killing.rs"]
mod killing;
mod support;

use std::path::Path;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::fs::fault::{Fault, When};
use dataset_rt::progress::NoProgress;
use dataset_rt::runtime::Runtime;
use dataset_rt::writer::{IterSource, WriteOutcome, WriterConfig};
use killing::is_killed;
use support::{config, files, samples, staging, temp_dir};

/// Two caches of several shards each, by a runtime of their own.
fn write(workers: usize, base: &Path, reuse: bool) -> Vec<WriteOutcome> {
    let config = WriterConfig { max_shard_bytes: 1_500, ..config() };
    let mut sources = ["a", "b"].map(|name| IterSource::new(name, samples(60, 400)));
    let [a, b] = &mut sources;
    let runtime = Runtime::new(workers).unwrap();
    let write = if reuse { Runtime::write_missing } else { Runtime::write };
    write(&runtime, &mut [a, b], base, &config, &mut PlainWaiter::default(), &mut NoProgress).unwrap()
}

/// Writes in a process that is killed at the operation with this number, half way through if it is a write of which the
/// next operation is the rest. Tells whether it got that far.
fn write_and_die(workers: usize, base: &Path, number: usize) -> bool {
    let faults = [(When::At(number.wrapping_sub(1)), Fault::Short), (When::At(number), Fault::Kill)];
    is_killed(base, &faults, || drop(write(workers, base, false)))
}

#[test]
fn c09_after_a_kill_at_any_operation_the_same_call_does_its_work() {
    let mut kills = 0;
    for workers in [1, 2] {
        let whole = temp_dir();
        write(workers, whole.path(), false);
        let expected = files(whole.path());
        for number in 0.. {
            let base = temp_dir();
            let base = base.path();
            if !write_and_die(workers, base, number) {
                break;
            }
            kills += 1;
            // Whatever has its place is whole.
            let published = ["a", "b"].map(|name| base.join(name).exists());
            let found = files(base);
            for name in ["a", "b"].iter().zip(published).filter(|(_, published)| *published).map(|(name, _)| name) {
                let of_name = |(file, _): &(&String, &Vec<u8>)| file.starts_with(&format!("{name}/"));
                assert!(found.iter().filter(of_name).eq(expected.iter().filter(of_name)), "operation {number}: {name}");
            }
            let reuse = number % 2 == 0;
            let outcomes = write(workers, base, reuse);
            for (WriteOutcome { result, .. }, published) in outcomes.iter().zip(published) {
                match result {
                    Ok(_) => assert!(reuse || !published, "operation {number}: {outcomes:?}"),
                    Err(message) => assert!(!reuse && published && message.contains("already exists"), "{message}"),
                }
            }
            assert!(files(base) == expected, "operation {number}: other files than after an undisturbed write");
            assert_eq!(staging(base), [""; 0], "operation {number}");
        }
    }
    assert!(kills >= 200, "{kills}");
}
