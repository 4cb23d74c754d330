//! What many tests need: caches made in one line.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::path::{Path, PathBuf};

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::progress::NoProgress;
use dataset_rt::runtime::Runtime;
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{IterSource, OwnedSample, Source, WriteOutcome, WriterConfig};

/// A directory that goes with the test: in memory where the system has such a place, since caches are synced.
pub fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A sample with these metadata columns.
pub fn sample(payload: impl Into<Vec<u8>>, metadata: &[(&str, MetadataValue)]) -> OwnedSample {
    (payload.into(), metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

/// `count` samples with a column of each kind. Payloads differ in content and have between 0 and `max_len` bytes.
pub fn samples(count: u64, max_len: usize) -> impl Iterator<Item = OwnedSample> + Clone {
    (0..count).map(move |row| {
        let length = usize::try_from(row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).unwrap() % (max_len + 1);
        let payload: Vec<u8> =
            (0..length).map(|at| ((at as u64).wrapping_mul(row + 7) >> 3).to_le_bytes()[0]).collect();
        let split = if row % 3 == 0 { "test" } else { "träin" };
        sample(
            payload,
            &[
                ("split", MetadataValue::String(split.to_owned())),
                ("label", MetadataValue::Int(i64::try_from(row % 10).unwrap())),
                ("score", MetadataValue::Float(f64::from(u32::try_from(row).unwrap()) / 3.0)),
                ("even", MetadataValue::Bool(row % 2 == 0)),
            ],
        )
    })
}

/// A configuration that draws nothing.
pub fn config() -> WriterConfig {
    WriterConfig { show_progress: false, ..WriterConfig::default() }
}

/// Writes the sources and returns their outcomes.
pub fn write(workers: usize, sources: &mut [&mut dyn Source], base: &Path, config: &WriterConfig) -> Vec<WriteOutcome> {
    let runtime = Runtime::new(workers).unwrap();
    runtime.write(sources, base, config, &mut PlainWaiter::default(), &mut NoProgress).unwrap()
}

/// Writes one cache with two workers and returns its directory.
pub fn write_cache(
    base: &Path,
    name: &str,
    samples: impl IntoIterator<Item = OwnedSample>,
    config: &WriterConfig,
) -> PathBuf {
    let mut source = IterSource::new(name, samples);
    let [outcome] = <[_; 1]>::try_from(write(2, &mut [&mut source], base, config)).unwrap();
    assert_eq!(outcome.source_name, name);
    outcome.result.unwrap()
}

/// All files below `directory` with their content, by relative path.
pub fn files(directory: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Names in the staging directory of `base`: none once a write is over.
pub fn staging(base: &Path) -> Vec<String> {
    match std::fs::read_dir(base.join("tmp")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect(),
        Err(_) => Vec::new(),
    }
}
