//! The report of where a write spends its time.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::error::{Error, Result};
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::progress::NoProgress;
use dataset_rt::runtime::Runtime;
use dataset_rt::writer::{IterSource, Rows, Source, WriterConfig};
use serde_json::Value;
use support::{config, samples, temp_dir, write};

fn report(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Names and calls of the stages of one source.
fn stages(report: &Value, source: usize) -> Vec<(&str, u64)> {
    let stages = report["sources"][source]["stages"].as_array().unwrap();
    stages.iter().map(|stage| (stage["name"].as_str().unwrap(), stage["calls"].as_u64().unwrap())).collect()
}

fn profiled(path: &Path, algo: CompressionAlgo) -> WriterConfig {
    let compression = Compression { algo, ratio: 1.0 };
    WriterConfig { profiler: Some(path.to_path_buf()), compression, ..config() }
}

#[test]
fn c13_the_report_counts_every_stage_that_ran() {
    let base = temp_dir();
    let path = base.path().join("not").join("there").join("profile.json");
    let mut sources = (IterSource::new("one", samples(600, 900)), IterSource::new("empty", []));
    let config = profiled(&path, CompressionAlgo::Lz4);
    let outcomes = write(2, &mut [&mut sources.0, &mut sources.1], base.path(), &config);
    assert!(outcomes[0].result.is_ok(), "{outcomes:?}");
    let report = report(&path);
    assert_eq!(report["format_version"], 1);
    assert!(report["elapsed_ns"].as_u64().unwrap() > 0);
    assert_eq!(report["sources"][0]["source_name"], "one");
    // How many jobs there are depends on how slow the source is.
    let by_job = ["ingress_wait", "record_encode", "disk_write"];
    let found: Vec<(&str, u64)> = stages(&report, 0).into_iter().filter(|(name, _)| !by_job.contains(name)).collect();
    let expected = [
        ("python_next", 601),
        ("python_extract", 600),
        ("metadata_validate", 600),
        ("compression", 600),
        ("shard_flush", 1),
        ("finish_index", 2),
        ("finish_metadata", 1),
        ("finish_manifest", 1),
        ("publish", 1),
    ];
    assert_eq!(found, expected);
    let payload_bytes: usize = samples(600, 900).map(|(payload, _)| payload.len()).sum();
    for stage in report["sources"][0]["stages"].as_array().unwrap() {
        assert!(stage["total_ns"].as_u64().unwrap() > 0, "{stage}");
        if ["record_encode", "compression", "disk_write"].contains(&stage["name"].as_str().unwrap()) {
            assert_eq!(stage["bytes"], payload_bytes, "{stage}");
        }
    }
    assert_eq!(stages(&report, 1), [("python_next", 1)]);
}

/// Fails behind 300 samples.
struct Failing<I>(IterSource<I>, Error);

impl<I: Iterator<Item = dataset_rt::writer::OwnedSample>> Source for Failing<I> {
    fn name(&self) -> std::result::Result<String, String> {
        self.0.name()
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        if rows.row() == 300 {
            return Err(std::mem::replace(&mut self.1, Error::Interrupted));
        }
        self.0.pull(rows)
    }

    fn stop(&mut self) {}
}

#[test]
fn c13_the_report_is_written_after_failures_and_interrupts() {
    for (error, is_interrupt) in [(Error::InvalidValue("failed".to_owned()), false), (Error::Interrupted, true)] {
        let base = temp_dir();
        let path = base.path().join("profile.json");
        let mut source = Failing(IterSource::new("bad", samples(900, 900)), error);
        let config = profiled(&path, CompressionAlgo::None);
        let runtime = Runtime::new(2).unwrap();
        let mut waiter = PlainWaiter::default();
        let written = runtime.write(&mut [&mut source], base.path(), &config, &mut waiter, &mut NoProgress);
        assert_eq!(written.is_err(), is_interrupt, "{written:?}");
        let report = report(&path);
        let stages = stages(&report, 0);
        // Counters of the run that was being collected when the source failed are there too.
        assert!(stages.contains(&("python_next", 300)), "{stages:?}");
        assert!(!stages.iter().any(|(name, _)| *name == "publish"), "{stages:?}");
    }
}

#[test]
fn c13_a_report_that_cannot_be_written_is_an_error_before_anything_is_pulled() {
    let base = temp_dir();
    let file = base.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let mut source = IterSource::new("a", samples(9, 9));
    let config = profiled(&file.join("profile.json"), CompressionAlgo::None);
    let runtime = Runtime::new(1).unwrap();
    let mut waiter = PlainWaiter::default();
    let written = runtime.write(&mut [&mut source], base.path(), &config, &mut waiter, &mut NoProgress);
    assert!(matches!(written, Err(Error::File { .. })), "{written:?}");
    assert!(!base.path().join("a").exists());
}
