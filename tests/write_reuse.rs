//! Sources as one dataset: complete caches are used, the others are written.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::progress::NoProgress;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::{Runtime, SourcesDataset};
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{IterSource, OwnedSample, Source, WriterConfig};
use support::{config, files, sample, samples, staging, temp_dir, write_cache};

fn from_sources(sources: &mut [&mut dyn Source], base: &Path, config: &WriterConfig) -> SourcesDataset {
    let runtime = Runtime::new(2).unwrap();
    let reader_config = ReaderConfig { shuffle: false, ..ReaderConfig::new(0) };
    let mut waiter = PlainWaiter::default();
    runtime.from_sources(sources, base, config, reader_config, &mut waiter, &mut NoProgress).unwrap()
}

/// Samples that must not be pulled.
fn never() -> impl Iterator<Item = OwnedSample> {
    std::iter::from_fn(|| -> Option<OwnedSample> { panic!("pulled a source whose cache exists") })
}

fn error(made: &SourcesDataset, position: usize) -> &str {
    made.outcomes[position].result.as_ref().unwrap_err()
}

#[test]
fn c16_complete_caches_are_used_and_missing_ones_written() {
    let base = temp_dir();
    write_cache(base.path(), "old", samples(30, 9), &config());
    let before = files(&base.path().join("old"));
    let mut sources = (IterSource::new("new", samples(20, 9)), IterSource::new("old", never()));
    let made = from_sources(&mut [&mut sources.0, &mut sources.1], base.path(), &config());
    let names: Vec<&str> = made.outcomes.iter().map(|outcome| outcome.source_name.as_str()).collect();
    assert_eq!(names, ["new", "old"]);
    let dataset = made.dataset.unwrap();
    assert_eq!(dataset.row_count().unwrap(), 50);
    assert!(dataset.paths()[0].ends_with("new") && dataset.paths()[1].ends_with("old"));
    assert_eq!(files(&base.path().join("old")), before);
}

#[test]
fn c16_what_is_no_complete_cache_is_the_error_of_its_source() {
    let base = temp_dir();
    let path = base.path();
    fs::create_dir(path.join("empty")).unwrap();
    fs::write(path.join("file"), "mine").unwrap();
    fs::create_dir(path.join("half")).unwrap();
    fs::write(path.join("half/index.bin"), "mine").unwrap();
    fs::remove_file(write_cache(path, "damaged", samples(9, 9), &config()).join("index.bin")).unwrap();
    let mut sources = ["empty", "file", "half", "damaged"].map(|name| IterSource::new(name, never()));
    let mut good = IterSource::new("good", samples(7, 9));
    let mut all: Vec<&mut dyn Source> = sources.iter_mut().map(|source| source as _).collect();
    all.push(&mut good);
    let made = from_sources(&mut all, path, &config());
    for (position, found) in ["without manifest", "a file", "without manifest", "index.bin"].iter().enumerate() {
        assert!(error(&made, position).contains(found), "{:?}", made.outcomes[position]);
    }
    assert_eq!(made.dataset.unwrap().row_count().unwrap(), 7);
}

#[test]
fn c16_validation_comes_before_reuse() {
    let base = temp_dir();
    let shard = write_cache(base.path(), "a", samples(50, 90), &config()).join("shards/000000.bin");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[200] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let trusting = from_sources(&mut [&mut IterSource::new("a", never())], base.path(), &config());
    assert!(trusting.dataset.is_ok(), "{:?}", trusting.outcomes);
    let careful = WriterConfig { validate_cache: true, ..config() };
    let made = from_sources(&mut [&mut IterSource::new("a", never())], base.path(), &careful);
    assert!(error(&made, 0).contains("damaged"), "{:?}", made.outcomes);
    assert!(made.dataset.is_err());
}

#[test]
fn c16_caches_with_different_columns_are_no_dataset() {
    let base = temp_dir();
    let mut one = IterSource::new("one", [sample("x", &[("n", MetadataValue::Int(1))])]);
    let mut other = IterSource::new("other", [sample("x", &[("n", MetadataValue::Bool(true))])]);
    let made = from_sources(&mut [&mut one, &mut other], base.path(), &config());
    assert!(made.outcomes.iter().all(|outcome| outcome.result.is_ok()), "{:?}", made.outcomes);
    let message = made.dataset.unwrap_err();
    assert!(message.contains("n: int") && message.contains("n: bool"), "{message}");
}

#[test]
fn c15_a_fingerprint_that_differs_makes_a_cache_stale() {
    let base = temp_dir();
    let made = |source: &mut dyn Source| from_sources(&mut [source], base.path(), &config());
    made(&mut IterSource::new("with", samples(5, 9)).with_fingerprint("v1")).dataset.unwrap();
    made(&mut IterSource::new("without", samples(5, 9))).dataset.unwrap();
    for name in ["with", "without"] {
        // Absent on either side means reuse by name.
        made(&mut IterSource::new(name, never())).dataset.unwrap();
        made(&mut IterSource::new("without", never()).with_fingerprint("v2")).dataset.unwrap();
    }
    made(&mut IterSource::new("with", never()).with_fingerprint("v1")).dataset.unwrap();
    let stale = made(&mut IterSource::new("with", never()).with_fingerprint("v2"));
    let message = error(&stale, 0);
    for part in ["stale cache", "\"v1\"", "\"v2\"", "remove the directory", base.path().to_str().unwrap()] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn c16_all_of_those_who_race_for_a_cache_get_the_same_dataset() {
    let base = temp_dir();
    let racers = 4;
    let start = std::sync::Barrier::new(racers);
    let pulled = AtomicUsize::new(0);
    let race = || {
        // Everybody is past the look at the target before anybody publishes.
        let first = std::iter::from_fn(|| {
            start.wait();
            pulled.fetch_add(1, Ordering::Relaxed);
            None
        });
        let mut source = IterSource::new("one", samples(300, 400).chain(first).fuse());
        let made = from_sources(&mut [&mut source], base.path(), &config());
        (made.dataset.unwrap().row_count().unwrap(), made.outcomes)
    };
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..racers).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(pulled.into_inner(), racers);
    for (rows, outcomes) in &made {
        assert_eq!((*rows, outcomes), (300, &made[0].1));
    }
    assert!(made[0].1[0].result.is_ok());
    assert_eq!(staging(base.path()), [""; 0]);
}

#[test]
fn c16_without_any_cache_there_is_no_dataset() {
    let base = temp_dir();
    let made = from_sources(&mut [&mut IterSource::new("empty", [])], base.path(), &config());
    assert_eq!(error(&made, 0), "cache source yielded no samples");
    let told = made.dataset.unwrap_err();
    assert_eq!(told, "no cache could be loaded: source \"empty\" failed: cache source yielded no samples");
    let made = from_sources(&mut [], base.path(), &config());
    assert!(made.outcomes.is_empty() && made.dataset.is_err());
}
