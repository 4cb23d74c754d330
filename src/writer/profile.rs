//! Where the time of a write goes: counters by stage, and the JSON file that reports them.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::fs::{self, TemporaryFile};

/// A stage of writing one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The source makes its next sample.
    SourceNext,
    /// The sample is taken over from the source.
    Extract,
    /// The calling thread waits for room in the window.
    IngressWait,
    /// Keys and kinds are compared with the schema.
    MetadataValidate,
    /// Envelopes are made and records are checksummed.
    RecordEncode,
    /// Payloads are compressed.
    Compression,
    /// Bytes are written and hashed.
    DiskWrite,
    /// Shards are brought to disk.
    ShardFlush,
    /// The index and the record checksums are brought to disk.
    FinishIndex,
    /// The metadata file is assembled and brought to disk.
    FinishMetadata,
    /// The manifest is made and brought to disk.
    FinishManifest,
    /// The cache is made visible.
    Publish,
}

impl Stage {
    const ALL: [(Self, &'static str); 12] = [
        (Self::SourceNext, "python_next"),
        (Self::Extract, "python_extract"),
        (Self::IngressWait, "ingress_wait"),
        (Self::MetadataValidate, "metadata_validate"),
        (Self::RecordEncode, "record_encode"),
        (Self::Compression, "compression"),
        (Self::DiskWrite, "disk_write"),
        (Self::ShardFlush, "shard_flush"),
        (Self::FinishIndex, "finish_index"),
        (Self::FinishMetadata, "finish_metadata"),
        (Self::FinishManifest, "finish_manifest"),
        (Self::Publish, "publish"),
    ];
}

#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    calls: u64,
    nanos: u128,
    bytes: u64,
}

/// Counters of one thread for one source: no lock on the way.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageTimes {
    enabled: bool,
    counters: [Counter; Stage::ALL.len()],
}

impl StageTimes {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, counters: [Counter::default(); Stage::ALL.len()] }
    }

    /// The clock when profiling, nothing otherwise.
    #[inline]
    pub(crate) fn started(&self) -> Option<Instant> {
        self.enabled.then(Instant::now)
    }

    /// Counts one call of a stage that began at `started`.
    #[inline]
    pub(crate) fn ended(&mut self, stage: Stage, started: Option<Instant>, bytes: u64) {
        if let Some(started) = started {
            self.add(stage, started.elapsed(), bytes);
        }
    }

    pub(crate) fn add(&mut self, stage: Stage, spent: Duration, bytes: u64) {
        if let Some(counter) = self.counters.get_mut(stage as usize) {
            counter.calls += 1;
            counter.nanos += spent.as_nanos();
            counter.bytes += bytes;
        }
    }
}

/// Counters of one source from all threads.
#[derive(Debug)]
pub(crate) struct SourceProfile {
    times: Mutex<StageTimes>,
    enabled: bool,
}

impl SourceProfile {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { times: Mutex::new(StageTimes::new(enabled)), enabled }
    }

    /// Empty counters for one thread, to be given to [`merge`](Self::merge) later.
    pub(crate) fn local(&self) -> StageTimes {
        StageTimes::new(self.enabled)
    }

    /// Adds the counters of a thread and empties them.
    pub(crate) fn merge(&self, local: &mut StageTimes) {
        if !self.enabled {
            return;
        }
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        for (sum, part) in times.counters.iter_mut().zip(&mut local.counters) {
            sum.calls += part.calls;
            sum.nanos += part.nanos;
            sum.bytes += part.bytes;
            *part = Counter::default();
        }
    }

    /// Runs `work` as one call of `stage`.
    pub(crate) fn time<T>(&self, stage: Stage, bytes: u64, work: impl FnOnce() -> T) -> T {
        let mut local = self.local();
        let started = local.started();
        let value = work();
        local.ended(stage, started, bytes);
        self.merge(&mut local);
        value
    }

    /// The stages that ran.
    fn to_json(&self, source_name: &str) -> Value {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let stages: Vec<Value> = Stage::ALL
            .iter()
            .zip(&times.counters)
            .filter(|(_, counter)| counter.calls > 0)
            .map(|((_, name), counter)| {
                let total_ns = u64::try_from(counter.nanos).unwrap_or(u64::MAX);
                json!({"name": name, "calls": counter.calls, "total_ns": total_ns, "bytes": counter.bytes})
            })
            .collect();
        json!({"source_name": source_name, "stages": stages})
    }
}

/// Creates the directory of the report and a file in it for a moment, so that a wrong path shows before hours of work.
pub(crate) fn prepare_report(path: &Path) -> Result<()> {
    if path.is_dir() {
        let path = path.display();
        return Err(Error::InvalidValue(format!(
            "profiler path must be a file, found the directory {path}; add a name"
        )));
    }
    if path.exists() && !path.is_file() {
        let path = path.display();
        return Err(Error::InvalidValue(format!(
            "profiler path must be a regular file or a new one, found a device or pipe at {path}; choose another path"
        )));
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    TemporaryFile::replacing(path).map(drop)
}

/// Writes the report of a call.
pub(crate) fn write_report<'a>(
    path: &Path,
    elapsed: Duration,
    sources: impl Iterator<Item = (&'a str, &'a SourceProfile)>,
) -> Result<()> {
    let sources: Vec<Value> = sources.map(|(name, profile)| profile.to_json(name)).collect();
    let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let report = json!({"format_version": 1, "elapsed_ns": elapsed_ns, "sources": sources});
    fs::write_atomic(path, format!("{report:#}\n").as_bytes())
}
