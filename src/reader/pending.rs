//! Reads samples on the pool into buffers of the caller, who goes on meanwhile.
#![expect(unsafe_code, reason = "fills memory that another thread owns")]

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::{Task, WorkerPool};
use crate::prefetch::waits_for_disk;
use crate::reader::buffer::PayloadBuffer;
use crate::reader::cache_set::{CacheSet, Place};
use crate::reader::fetch::{Fetched, fill, no_memory};
use crate::reader::plan::{FoundPayload, PlannedSample};

/// Samples that are being read on the pool into buffers that stay with the caller.
#[derive(Debug)]
pub struct PendingFetch<B> {
    /// `None` once the samples were taken; an error when there never was a task.
    task: Option<Result<CopyTask>>,
    samples: Vec<PendingSample<B>>,
}

/// Gives the failures: which sample, and why.
type CopyTask = Task<Vec<(usize, Error)>>;

#[derive(Debug)]
struct PendingSample<B> {
    place: Place,
    payload: std::result::Result<(B, usize), Box<Error>>,
}

/// One payload to be written by the pool.
struct Copy {
    place: Place,
    found: FoundPayload,
    target: *mut u8,
    /// Position in [`PendingFetch::samples`].
    sample: usize,
}

// SAFETY: `target` points into a buffer of a `PendingFetch`, which leaves that memory alone, and does not free it, until
// its task has ended or was taken back before it began. Everything else in here is `Send`.
unsafe impl Send for Copy {}

impl<B: PayloadBuffer> PendingFetch<B> {
    /// Allocates the buffers here and has them filled by `pool`. If the pool takes no tasks, all samples fail.
    pub fn start(set: &Arc<CacheSet>, pool: &WorkerPool, planned: impl IntoIterator<Item = PlannedSample>) -> Self {
        let mut copies = Vec::new();
        let mut samples = Vec::new();
        for (sample, PlannedSample { place, found }) in planned.into_iter().enumerate() {
            let payload = found.and_then(|found| {
                let mut buffer = B::allocate(found.len).ok_or_else(|| Box::new(no_memory(found.len)))?;
                copies.push(Copy { place, found, target: buffer.as_mut_ptr(), sample });
                Ok((buffer, found.len))
            });
            samples.push(PendingSample { place, payload });
        }
        let task_set = Arc::clone(set);
        let task = Task::spawn(pool, move || Ok(copy_all(&task_set, &copies)));
        Self { task: Some(task), samples }
    }

    /// Reads the samples on this thread if no worker has begun to. Returns whether it did.
    pub fn try_run(&self) -> bool {
        self.running().is_some_and(Task::try_run)
    }

    /// Whether the samples can be taken without waiting.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.running().is_none_or(Task::is_done)
    }

    /// Waits for the worker, at most this long. Returns [`is_done`](Self::is_done).
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.running().is_none_or(|task| task.wait(timeout))
    }

    /// The samples, in order. Waits for them.
    #[must_use]
    pub fn take(mut self, set: &CacheSet) -> Vec<Fetched<B>> {
        let outcome = match self.task.take() {
            Some(task) => task.and_then(Task::take),
            None => Ok(Vec::new()),
        };
        let samples = std::mem::take(&mut self.samples);
        let mut failures = match outcome {
            Ok(failures) => failures.into_iter().peekable(),
            Err(error) => return fail_all(set, samples, &error),
        };
        let fetched = samples.into_iter().enumerate().map(|(sample, PendingSample { place, payload })| {
            let failure = failures.next_if(|(failed, _)| *failed == sample);
            let payload = match (payload, failure) {
                (Ok((mut buffer, len)), None) => {
                    // SAFETY: the task ran to its end and reported no failure here, so it wrote all `len` bytes.
                    unsafe { buffer.assume_filled(len) };
                    Ok(buffer)
                }
                (Ok(_), Some((_, error))) => Err(Box::new(set.sample_error(place, error))),
                (Err(error), _) => Err(Box::new(set.sample_error(place, *error))),
            };
            Fetched { place, payload }
        });
        fetched.collect()
    }

    fn running(&self) -> Option<&CopyTask> {
        self.task.as_ref().and_then(|task| task.as_ref().ok())
    }
}

impl<B> Drop for PendingFetch<B> {
    fn drop(&mut self) {
        if let Some(Ok(task)) = self.task.take() {
            // The buffers may go only when nobody writes to them any more. A worker never waits for anything but the
            // disk here. In a forked child, which has no workers, this does not wait.
            while !task.cancel() && !task.wait(Duration::MAX) {}
        }
    }
}

/// Fills the buffers; returns which samples failed, in order.
fn copy_all(set: &CacheSet, copies: &[Copy]) -> Vec<(usize, Error)> {
    let mut failures = Vec::new();
    let before = waits_for_disk();
    for Copy { place, found, target, sample } in copies {
        // SAFETY: `target` has `found.len` bytes, which are this task's until it ends, see `Copy`.
        if let Err(error) = unsafe { fill(set, *place, found, *target) } {
            failures.push((*sample, *error));
        }
    }
    if waits_for_disk() != before {
        set.temperature().waited();
    }
    failures
}

#[cold]
fn fail_all<B>(set: &CacheSet, samples: Vec<PendingSample<B>>, error: &Error) -> Vec<Fetched<B>> {
    let fetched = samples.into_iter().map(|PendingSample { place, .. }| {
        let copy = match error {
            Error::Panicked(text) => Error::Panicked(text.clone()),
            other => Error::Unusable(other.to_string()),
        };
        Fetched { place, payload: Err(Box::new(set.sample_error(place, copy))) }
    });
    fetched.collect()
}
