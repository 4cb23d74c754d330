//! Sweeping removes what dead writers left, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use dataset_rt::cancel::CancelToken;
use dataset_rt::fs::{STAGING_DIR, Staging, StagingStamp, find_staging, sweep};
use dataset_rt::writer::IterSource;
use support::{config, files, samples, staging, temp_dir, write};

const HOUR: Duration = Duration::from_secs(3600);

fn name(stamp: &StagingStamp) -> String {
    let StagingStamp { host, boot, process_space, process, started } = stamp;
    format!("{host}~{boot}~{process_space}~{process}~{started}~0-0")
}

/// A staging directory as a writer leaves it that last touched it some time ago.
fn leave(base: &Path, name: &str, ago: Duration) -> String {
    let directory = base.join(STAGING_DIR).join(name);
    fs::create_dir_all(directory.join("shards")).unwrap();
    fs::write(directory.join("shards/000000.bin"), "bytes").unwrap();
    File::open(&directory).unwrap().set_modified(SystemTime::now() - ago).unwrap();
    name.to_owned()
}

/// The number of a process that has ended.
fn dead_process() -> u32 {
    let mut process = Command::new("true").spawn().unwrap();
    process.wait().unwrap();
    process.id()
}

#[test]
fn c09_dead_writers_are_swept_and_living_ones_are_not() {
    let base = temp_dir();
    let base = base.path();
    let mine = Staging::create(base).unwrap();
    let own_name = mine.path().file_name().unwrap().to_str().unwrap().to_owned();
    let here = StagingStamp::parse(&own_name).unwrap();
    assert_eq!(here, StagingStamp::current());
    let gone = dead_process();
    let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", other.id())).unwrap();
    let started: u64 = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap();
    let living = StagingStamp { process: other.id(), started, ..here.clone() };
    let elsewhere = StagingStamp { host: "elsewhere".to_owned(), ..here.clone() };
    let container = StagingStamp { process_space: "1".to_owned(), ..here.clone() };

    let dead = [
        leave(base, &name(&StagingStamp { process: gone, ..here.clone() }), Duration::ZERO),
        // The number was given to another process since.
        leave(base, &name(&StagingStamp { started: started + 1, ..living.clone() }), Duration::ZERO),
        leave(base, &name(&StagingStamp { boot: "earlier".to_owned(), ..living.clone() }), Duration::ZERO),
        leave(base, &name(&StagingStamp { process: 1, ..elsewhere.clone() }), 25 * HOUR),
        leave(base, &name(&StagingStamp { process: 1, ..container.clone() }), 25 * HOUR),
    ];
    let alive = [
        own_name,
        leave(base, &name(&living), 48 * HOUR),
        leave(base, &name(&StagingStamp { started: 0, ..living.clone() }), 48 * HOUR),
        leave(base, &name(&elsewhere), 23 * HOUR),
        leave(base, &name(&container), 23 * HOUR),
        // The clock of another machine may be ahead.
        leave(base, &name(&StagingStamp { process: 2, ..elsewhere }), Duration::ZERO),
        // Nobody stamped these: version 0.4 calls them like the source.
        leave(base, "digits", 48 * HOUR),
        leave(base, "a~b", 48 * HOUR),
    ];

    let found = find_staging(base, &CancelToken::new()).unwrap();
    assert!(found.is_sorted_by(|left, right| left.path < right.path));
    let name_of = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let told: BTreeSet<(String, bool)> = found.iter().map(|found| (name_of(&found.path), found.is_dead)).collect();
    let stamped = alive.iter().filter(|name| StagingStamp::parse(name).is_some()).map(|name| (name.clone(), false));
    assert_eq!(told, dead.iter().map(|name| (name.clone(), true)).chain(stamped).collect());

    sweep(base, &CancelToken::new()).unwrap();
    let left: BTreeSet<String> = staging(base).into_iter().collect();
    assert_eq!(left, alive.iter().cloned().collect(), "swept {dead:?}");

    drop(other.stdin.take());
    other.wait().unwrap();
    sweep(base, &CancelToken::new()).unwrap();
    assert!(!staging(base).contains(&alive[1]), "its writer has ended meanwhile");
}

#[test]
fn c09_a_killed_writer_that_nobody_has_asked_after_is_dead() {
    let base = temp_dir();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let left = leave(
        base.path(),
        &name(&StagingStamp { process: child.id(), started: 0, ..StagingStamp::current() }),
        Duration::ZERO,
    );
    assert_eq!(staging(base.path()), [left]);
    child.kill().unwrap();
    // Not waited for, so it stays as a zombie: the end of its output tells that it is over.
    let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    while !state().rsplit_once(')').unwrap().1.trim_start().starts_with('Z') {
        std::thread::yield_now();
    }
    sweep(base.path(), &CancelToken::new()).unwrap();
    assert_eq!(staging(base.path()), [""; 0]);
    child.wait().unwrap();
}

#[test]
fn c09_the_next_write_sweeps_and_is_hindered_by_nothing() {
    let base = temp_dir();
    let gone = StagingStamp { process: dead_process(), ..StagingStamp::current() };
    leave(base.path(), &name(&gone), Duration::ZERO);
    let mut expected = [leave(base.path(), "digits", Duration::ZERO), leave(base.path(), "tmp", Duration::ZERO)];
    fs::write(base.path().join("tmp/file"), "mine").unwrap();
    let before = files(&base.path().join("tmp/digits"));
    let outcomes = write(1, &mut [&mut IterSource::new("digits", samples(9, 9))], base.path(), &config());
    assert_eq!(outcomes[0].result, Ok(base.path().join("digits")));
    let mut left: Vec<String> = staging(base.path()).into_iter().filter(|name| name != "file").collect();
    left.sort();
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(files(&base.path().join("tmp/digits")), before);
}

#[test]
fn c09_nothing_to_sweep_is_no_error() {
    let base = temp_dir();
    sweep(base.path(), &CancelToken::new()).unwrap();
    sweep(base.path().join("absent"), &CancelToken::new()).unwrap();
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}
