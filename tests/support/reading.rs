//! Opening and reading datasets in one line.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::path::PathBuf;
use std::sync::LazyLock;

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Dataset, Sample};
use dataset_rt::error::{Error, Result};
use dataset_rt::ids::{CacheId, SampleId};
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;

/// Two threads for all tests of a file.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new(2).unwrap());

/// Opens with two threads.
pub fn try_open(paths: &[PathBuf], config: ReaderConfig) -> Result<Dataset> {
    RUNTIME.open(paths, config, &mut PlainWaiter::default())
}

/// Opens what must open.
pub fn open(paths: &[PathBuf], config: ReaderConfig) -> Dataset {
    try_open(paths, config).unwrap()
}

/// Table order.
pub fn in_order() -> ReaderConfig {
    ReaderConfig { shuffle: false, ..ReaderConfig::new(7) }
}

/// Verifies all checksums while opening.
pub fn validated() -> ReaderConfig {
    ReaderConfig { validate_cache: true, ..in_order() }
}

/// The samples of the next window.
pub fn pass(dataset: &Dataset) -> Vec<Sample> {
    dataset.samples::<Vec<u8>>().unwrap().into_iter().map(Result::unwrap).collect()
}

/// Which samples the next window has.
pub fn pass_ids(dataset: &Dataset) -> Vec<(u64, u64)> {
    pass(dataset).iter().map(|sample| (sample.cache_id.0, sample.sample_id.0)).collect()
}

/// One sample by its ids.
pub fn get_item(dataset: &Dataset, cache_id: u64, sample_id: u64) -> Result<Sample> {
    let (caches, fetched) =
        dataset.get_item::<Vec<u8>>(CacheId(cache_id), SampleId(sample_id), &mut PlainWaiter::default())?;
    Sample::new(&caches, fetched)
}

/// What an operation that must fail says.
pub fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

/// Whether the error is about the content of a cache.
pub fn is_damage(error: &Error) -> bool {
    match error {
        Error::InvalidCache { .. } => true,
        Error::Sample { source, .. } => is_damage(source),
        _ => false,
    }
}
