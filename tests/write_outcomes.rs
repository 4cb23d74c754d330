//! One outcome for each source, whatever happens to the others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dataset_rt::cancel::{CancelToken, PlainWaiter};
use dataset_rt::error::{Error, Result};
use dataset_rt::progress::{NoProgress, ProgressSink, WriteProgress};
use dataset_rt::runtime::Runtime;
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{IterSource, OwnedSample, Rows, Source, WriteOutcome, WriterConfig};
use support::{config, files, sample, samples, staging, temp_dir, write};

/// Fails in the way it is told to, behind some samples.
struct Faulty<F> {
    name: &'static str,
    inner: IterSource<Box<dyn Iterator<Item = OwnedSample>>>,
    good: usize,
    fault: F,
}

fn faulty<F>(name: &'static str, good: usize, fault: F) -> Faulty<F> {
    let samples: Box<dyn Iterator<Item = OwnedSample>> = Box::new(samples(u64::MAX, 400));
    Faulty { name, inner: IterSource::new(name, samples), good, fault }
}

impl<F: FnMut() -> Error> Source for Faulty<F> {
    fn name(&self) -> std::result::Result<String, String> {
        Ok(self.name.to_owned())
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        if self.good == 0 {
            return Err((self.fault)());
        }
        self.good -= 1;
        self.inner.pull(rows)
    }

    fn stop(&mut self) {}
}

fn boom() -> Error {
    Error::InvalidValue("the source is on fire".to_owned())
}

fn error(outcome: &WriteOutcome) -> &str {
    outcome.result.as_ref().unwrap_err()
}

/// Asserts that a cache is complete by opening it and checking every checksum.
fn assert_whole(path: &Path) {
    let config = dataset_rt::reader::ReaderConfig { validate_cache: true, ..dataset_rt::reader::ReaderConfig::new(0) };
    Runtime::new(2).unwrap().open(&[path.to_path_buf()], config, &mut PlainWaiter::default()).unwrap();
}

#[test]
fn c01_no_sources_give_no_outcomes() {
    assert_eq!(write(1, &mut [], temp_dir().path(), &config()), []);
}

#[test]
fn c06_a_failing_source_disturbs_no_other() {
    for workers in [1, 3] {
        for good in [0, 1, 300, 1_500] {
            let base = temp_dir();
            let outcomes = write(
                workers,
                &mut [
                    &mut IterSource::new("before", samples(900, 400)),
                    &mut faulty("bad", good, boom),
                    &mut IterSource::new("empty", []),
                    &mut IterSource::new("behind", samples(900, 400)),
                ],
                base.path(),
                &config(),
            );
            let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.source_name.as_str()).collect();
            assert_eq!(names, ["before", "bad", "empty", "behind"]);
            assert_eq!(error(&outcomes[1]), "the source is on fire");
            assert_eq!(error(&outcomes[2]), "cache source yielded no samples");
            for name in ["before", "behind"] {
                assert_whole(&base.path().join(name));
            }
            assert!(!base.path().join("bad").exists() && !base.path().join("empty").exists());
            assert_eq!(staging(base.path()), [""; 0]);
        }
    }
}

#[test]
fn c06_a_source_that_ends_the_call_leaves_the_caches_of_earlier_sources() {
    let base = temp_dir();
    let runtime = Runtime::new(1).unwrap();
    let behind = AtomicUsize::new(0);
    let never = std::iter::from_fn(|| {
        behind.fetch_add(1, Ordering::Relaxed);
        None
    });
    // Nothing waits for the first cache: when the second source ends the call, it is still being finished.
    let result = runtime.write(
        &mut [
            &mut IterSource::new("first", samples(2_000, 4_000)),
            &mut faulty("second", 0, || Error::Interrupted),
            &mut IterSource::new("third", never),
        ],
        base.path(),
        &config(),
        &mut PlainWaiter::default(),
        &mut NoProgress,
    );
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_whole(&base.path().join("first"));
    assert!(!base.path().join("second").exists());
    assert_eq!(behind.load(Ordering::Relaxed), 0, "a source behind the interrupted one was pulled");
    assert_eq!(staging(base.path()), [""; 0]);
}

#[test]
fn b03_a_cancelled_waiter_ends_the_write() {
    let base = temp_dir();
    let token = CancelToken::new();
    let mut waiter = PlainWaiter { token: token.clone() };
    let mut pulled = 0;
    let endless = samples(u64::MAX, 50).inspect(move |_| {
        pulled += 1;
        if pulled == 2_000 {
            token.cancel();
        }
        assert!(pulled < 3_000, "pulled on after the wish to stop");
    });
    let runtime = Runtime::new(2).unwrap();
    let mut source = IterSource::new("endless", endless);
    let result = runtime.write(&mut [&mut source], base.path(), &config(), &mut waiter, &mut NoProgress);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_eq!(staging(base.path()), [""; 0]);
}

#[test]
fn c06_a_panicking_source_publishes_nothing() {
    let base = temp_dir();
    // One thread works in the order of the queue: whatever the panic left under way is done before the next cache.
    let runtime = Runtime::new(1).unwrap();
    let write = |source: &mut dyn Source| {
        runtime.write(&mut [source], base.path(), &config(), &mut PlainWaiter::default(), &mut NoProgress)
    };
    let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        write(&mut faulty("bad", 700, || panic!("a panic on purpose")))
    }));
    assert!(written.is_err());
    for name in ["one", "two"] {
        assert!(write(&mut IterSource::new(name, samples(700, 400))).unwrap()[0].result.is_ok());
    }
    assert!(!base.path().join("bad").exists());
    assert_eq!(staging(base.path()), [""; 0]);
}

#[test]
fn c02_bad_names_are_errors_of_their_sources() {
    let base = temp_dir();
    let bad = ["", ".", "..", "tmp", "TMP", "a/b", "a\\b", "a\0b", "a/", &"x".repeat(256)];
    let mut sources: Vec<_> = bad.iter().map(|name| IterSource::new(*name, samples(2, 9))).collect();
    let mut good = IterSource::new("x".repeat(255), samples(2, 9));
    let mut all: Vec<&mut dyn Source> = sources.iter_mut().map(|source| source as _).collect();
    all.push(&mut good);
    let outcomes = write(1, &mut all, base.path(), &config());
    for (outcome, name) in outcomes.iter().zip(bad) {
        assert_eq!(outcome.source_name, name);
        assert!(error(outcome).contains("source name"), "{outcome:?}");
    }
    assert!(outcomes.last().unwrap().result.is_ok(), "{outcomes:?}");
}

#[test]
fn c02_names_that_collide_are_refused_before_anything_is_created() {
    for (one, other) in [("a", "a"), ("Straße", "STRASSE"), ("é", "e\u{301}"), ("É", "e\u{301}")] {
        let base = temp_dir();
        let mut sources = [one, "b", other].map(|name| IterSource::new(name, samples(2, 9)));
        let mut all: Vec<&mut dyn Source> = sources.iter_mut().map(|source| source as _).collect();
        let runtime = Runtime::new(1).unwrap();
        let result = runtime.write(&mut all, base.path(), &config(), &mut PlainWaiter::default(), &mut NoProgress);
        let Err(Error::InvalidValue(message)) = result else { panic!("{one} and {other}: {result:?}") };
        assert!(message.contains("duplicate generated cache path"), "{message}");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}

#[test]
fn c07_what_exists_is_refused_and_untouched() {
    let base = temp_dir();
    let path = base.path();
    write(1, &mut [&mut IterSource::new("whole", samples(5, 9))], path, &config());
    fs::write(path.join("file"), "mine").unwrap();
    fs::create_dir(path.join("half")).unwrap();
    fs::write(path.join("half").join("index.bin"), "mine").unwrap();
    let before = files(path);
    let never = || std::iter::from_fn(|| -> Option<OwnedSample> { panic!("pulled a source that has no place") });
    let outcomes = write(
        2,
        &mut [
            &mut IterSource::new("whole", never()),
            &mut IterSource::new("file", never()),
            &mut IterSource::new("half", never()),
            &mut IterSource::new("new", samples(5, 9)),
        ],
        path,
        &config(),
    );
    for (outcome, found) in outcomes.iter().zip(["complete cache", "a file", "without manifest"]) {
        assert!(error(outcome).contains("already exists") && error(outcome).contains(found), "{outcome:?}");
    }
    assert!(outcomes[3].result.is_ok());
    fs::remove_dir_all(path.join("new")).unwrap();
    assert_eq!(files(path), before);
}

#[test]
fn c08_of_writers_racing_for_a_name_one_wins() {
    let base = temp_dir();
    let racers = 4;
    let start = std::sync::Barrier::new(racers);
    let race = || {
        start.wait();
        write(2, &mut [&mut IterSource::new("one", samples(300, 400))], base.path(), &config()).remove(0)
    };
    let outcomes: Vec<WriteOutcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..racers).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.result.is_ok());
    assert_eq!((won.len(), lost.len()), (1, racers - 1), "{outcomes:?}");
    assert!(lost.iter().all(|outcome| error(outcome).contains("already exists")), "{lost:?}");
    assert_whole(&base.path().join("one"));
    assert_eq!(staging(base.path()), [""; 0]);
}

#[test]
fn c10_a_file_where_the_base_should_be_is_named() {
    let base = temp_dir();
    let file = base.path().join("file");
    fs::write(&file, "mine").unwrap();
    let outcomes = write(1, &mut [&mut IterSource::new("a", samples(5, 9))], &file, &config());
    let message = error(&outcomes[0]);
    assert!(message.contains(file.to_str().unwrap()) && message.contains("os error 20"), "{message}");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn c05_an_error_names_source_row_key_expected_and_found() {
    let int = |value| ("n", MetadataValue::Int(value));
    let rows =
        |bad: OwnedSample| (0..400).map(move |row| if row == 300 { bad.clone() } else { sample("x", &[int(row)]) });
    let cases = [
        (sample("x", &[("n", MetadataValue::Float(1.0))]), "key \"n\": expected int as in row 0, found float"),
        (sample("x", &[]), "key \"n\": expected int, found no such key"),
        (sample("x", &[int(1), ("m", MetadataValue::Bool(true))]), "key \"m\": expected no such key, found bool"),
        (sample("x", &[int(1), int(2)]), "key \"n\": expected one int, found the key twice"),
    ];
    for (bad, expected) in cases {
        let base = temp_dir();
        let outcomes = write(2, &mut [&mut IterSource::new("src", rows(bad))], base.path(), &config());
        let message = error(&outcomes[0]);
        assert!(message.contains("source \"src\", row 300: ") && message.contains(expected), "{message}");
    }
}

#[test]
fn c05_reserved_keys_are_refused_at_row_0() {
    for key in ["cache_id", "sample_id", "weight"] {
        let bad = sample("x", &[("fine", MetadataValue::Int(1)), (key, MetadataValue::Int(1))]);
        let outcomes = write(1, &mut [&mut IterSource::new("src", [bad])], temp_dir().path(), &config());
        let message = error(&outcomes[0]);
        assert!(message.contains("row 0") && message.contains(key) && message.contains("reserved"), "{message}");
    }
}

#[test]
fn g_a_bad_configuration_is_refused_before_anything_is_created() {
    use dataset_rt::format::compression::{Compression, CompressionAlgo};
    let compression = |algo, ratio| WriterConfig { compression: Compression { algo, ratio }, ..config() };
    let bad = [
        WriterConfig { prefetch_size: 0, ..config() },
        WriterConfig { prefetch_size: 1 << 63, ..config() },
        WriterConfig { max_shard_bytes: 0, ..config() },
        compression(CompressionAlgo::None, 2.0),
        compression(CompressionAlgo::Lz4, 0.0),
        compression(CompressionAlgo::Lz4, f64::NAN),
        compression(CompressionAlgo::Lz4, f64::INFINITY),
    ];
    let base = temp_dir();
    let runtime = Runtime::new(1).unwrap();
    for config in bad {
        let mut source = IterSource::new("a", samples(2, 9));
        let mut waiter = PlainWaiter::default();
        let result = runtime.write(&mut [&mut source], base.path(), &config, &mut waiter, &mut NoProgress);
        assert!(matches!(result, Err(Error::InvalidValue(_))), "{config:?}: {result:?}");
    }
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a03_a_closed_runtime_refuses_to_write() {
    let runtime = Runtime::new(1).unwrap();
    runtime.close();
    runtime.close();
    let mut source = IterSource::new("a", samples(2, 9));
    let mut waiter = PlainWaiter::default();
    let result = runtime.write(&mut [&mut source], temp_dir().path(), &config(), &mut waiter, &mut NoProgress);
    assert!(matches!(&result, Err(Error::Unusable(message)) if message.contains("closed")), "{result:?}");
}

/// How many sources are done, as it was told last.
struct Told(Rc<Cell<usize>>);

impl ProgressSink for Told {
    fn update(&mut self, progress: &WriteProgress) {
        self.0.set(progress.sources_done);
    }

    fn finish(&mut self) {}
}

#[test]
fn c12_finished_sources_are_counted_while_another_one_is_pulled() {
    let base = temp_dir();
    let told = Rc::new(Cell::new(0));
    let seen = Rc::new(Cell::new(0));
    let limit = Instant::now() + Duration::from_secs(60);
    let until_counted = (0_u64..).map_while({
        let (told, seen) = (Rc::clone(&told), Rc::clone(&seen));
        move |row| {
            // Slow enough to be handed over row by row.
            let slow = Instant::now() + Duration::from_millis(1);
            while Instant::now() < slow {}
            seen.set(told.get());
            (row == 0 || (seen.get() == 0 && Instant::now() < limit)).then(|| sample([0], &[]))
        }
    });
    let mut first = IterSource::new("first", samples(20_000, 400));
    let mut second = IterSource::new("second", until_counted);
    let outcomes = Runtime::new(2).unwrap().write(
        &mut [&mut first, &mut second],
        base.path(),
        &config(),
        &mut PlainWaiter::default(),
        &mut Told(Rc::clone(&told)),
    );
    assert!(outcomes.unwrap().iter().all(|outcome| outcome.result.is_ok()));
    assert_eq!((seen.get(), told.get()), (1, 2));
}
