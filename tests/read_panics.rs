//! A task that panics while a pass prepares its samples: every draw still has exactly one outcome, in its place.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::path::PathBuf;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Dataset, Sample};
use dataset_rt::error::{Error, Result};
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use reading::{in_order, pass};

/// Most samples that one task reads.
const TASK_SAMPLES: usize = 128;

/// The samples of a pass in which the task behind so many others panics, and whether there were that many. The pass is one
/// that does not know whether anything is in memory.
fn pass_with_panic(runtime: &Runtime, dataset: &Dataset, tasks: u64) -> (Vec<Result<Sample>>, bool) {
    dataset.caches().unwrap().temperature().waited();
    let pool = runtime.pool().unwrap();
    pool.panic_behind(tasks);
    let samples = dataset.samples::<Vec<u8>>().unwrap().into_iter().collect();
    let panicked = !pool.is_to_panic();
    pool.panic_behind(u64::MAX - 1);
    (samples, panicked)
}

/// Lets each task of a pass panic, one a pass.
fn check(paths: &[PathBuf], config: &ReaderConfig) {
    let runtime = Runtime::new(2).unwrap();
    let open = || runtime.open(paths, config.clone(), &mut PlainWaiter::default()).unwrap();
    let expected = pass(&open());
    let mut errors = 0;
    for tasks in 0.. {
        let (samples, panicked) = pass_with_panic(&runtime, &open(), tasks);
        assert_eq!(samples.len(), expected.len(), "task {tasks}");
        let mut failed = 0;
        for (sample, expected) in samples.into_iter().zip(&expected) {
            match sample {
                Ok(sample) => assert!(sample == *expected, "task {tasks} gave another sample"),
                Err(Error::Sample { cache_id, sample_id, source, .. }) => {
                    assert_eq!((cache_id, sample_id), (expected.cache_id, expected.sample_id), "task {tasks}");
                    assert!(matches!(*source, Error::Panicked(_)), "task {tasks}: {source}");
                    failed += 1;
                }
                Err(other) => panic!("task {tasks}: {other}"),
            }
        }
        assert!(failed <= TASK_SAMPLES, "task {tasks} let {failed} samples fail");
        errors += failed;
        if !panicked {
            assert!(failed == 0 && errors > 0 && tasks > 3, "{errors} errors of {tasks} tasks");
            return;
        }
    }
}

#[test]
fn d08_a_panic_in_a_task_costs_no_draw() {
    let base = temp_dir();
    let small = CacheFiles::new("small", 900, |row| if row % 3 == 0 { 0 } else { 50 }).write(base.path());
    let mut large = CacheFiles::new("large", 90, |_| 60_000);
    large.max_shard_bytes = 400_000;
    let large = large.write(base.path());
    for paths in [vec![small.clone()], vec![large.clone()], vec![small, large]] {
        for shuffle in [false, true] {
            check(&paths, &ReaderConfig { shuffle, ..in_order() });
        }
    }
}
