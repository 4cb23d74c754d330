//! Reads samples on the pool into buffers of the caller, who goes on meanwhile.
#![expect(unsafe_code, reason = "fills memory that another thread owns")]

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::format::compression::CompressionAlgo;
use crate::pool::{Task, WorkerPool};
use crate::prefetch::waits_for_disk;
use crate::reader::buffer::PayloadBuffer;
use crate::reader::cache_set::{CacheSet, Place};
use crate::reader::fetch::{Fetched, PIECE_BYTES, fill, fill_part, no_memory};
use crate::reader::plan::{FoundPayload, PlannedSample};

/// Payloads that take longer are left to the pool: who helps cannot stop half way.
const MOST_HELPED_BYTES: usize = 32 << 20;

/// Samples that are being read on the pool into buffers that stay with the caller.
#[derive(Debug)]
pub struct PendingFetch<B> {
    /// One, or one for every piece of a long payload, so that it can be given up between two of them.
    tasks: Vec<CopyTask>,
    /// Why the pool did not take one of them.
    refused: Option<Error>,
    samples: Vec<PendingSample<B>>,
}

/// A part of the work.
#[derive(Debug)]
struct CopyTask {
    /// Gives the failures: which sample, and why.
    task: Task<Vec<(usize, Error)>>,
    bytes: usize,
}

#[derive(Debug)]
struct PendingSample<B> {
    place: Place,
    payload: std::result::Result<(B, usize), Box<Error>>,
}

/// One payload, or a part of it, to be written by the pool.
struct Copy {
    place: Place,
    found: FoundPayload,
    part: Range<usize>,
    /// Where the part goes.
    target: *mut u8,
    /// Position in [`PendingFetch::samples`].
    sample: usize,
}

// SAFETY: `target` points into a buffer of a `PendingFetch`, which leaves that memory alone, and does not free it, until
// its tasks have ended or were taken back before they began; no two of them have the same part. Everything else in here is
// `Send`.
unsafe impl Send for Copy {}

impl<B: PayloadBuffer> PendingFetch<B> {
    /// Allocates the buffers here and has them filled by `pool`. If the pool takes no tasks, all samples fail.
    pub fn start(set: &Arc<CacheSet>, pool: &WorkerPool, planned: impl IntoIterator<Item = PlannedSample>) -> Self {
        let mut pending = Self { tasks: Vec::new(), refused: None, samples: Vec::new() };
        let (mut copies, mut bytes) = (Vec::new(), 0);
        for (sample, PlannedSample { place, found }) in planned.into_iter().enumerate() {
            let allocated = found.and_then(|found| {
                let buffer = B::allocate(found.len).ok_or_else(|| Box::new(no_memory(found.len)))?;
                Ok((buffer, found))
            });
            let payload = allocated.map(|(mut buffer, found)| {
                let start = buffer.as_mut_ptr();
                for part in parts(&found) {
                    bytes += part.len();
                    copies.push(Copy { place, found, target: start.wrapping_add(part.start), part, sample });
                    if bytes >= PIECE_BYTES {
                        pending.spawn(set, pool, std::mem::take(&mut copies), std::mem::take(&mut bytes));
                    }
                }
                (buffer, found.len)
            });
            pending.samples.push(PendingSample { place, payload });
        }
        if !copies.is_empty() {
            pending.spawn(set, pool, copies, bytes);
        }
        pending
    }

    fn spawn(&mut self, set: &Arc<CacheSet>, pool: &WorkerPool, copies: Vec<Copy>, bytes: usize) {
        let set = Arc::clone(set);
        match Task::spawn(pool, move || Ok(copy_all(&set, &copies))) {
            Ok(task) => self.tasks.push(CopyTask { task, bytes }),
            Err(error) => self.refused = Some(error),
        }
    }

    /// Reads some of it on this thread if no worker has begun to, and if that does not take long. Returns whether it did.
    #[must_use]
    pub fn try_run(&self) -> bool {
        self.tasks.iter().any(|CopyTask { task, bytes }| *bytes <= MOST_HELPED_BYTES && task.try_run())
    }

    /// Whether the samples can be taken without waiting.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|part| part.task.is_done())
    }

    /// Waits for the workers, at most this long. Returns [`is_done`](Self::is_done).
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let started = Instant::now();
        self.tasks.iter().all(|part| part.task.wait(timeout.saturating_sub(started.elapsed())))
    }

    /// The samples, in order. Waits for them.
    #[must_use]
    pub fn take(mut self, set: &CacheSet) -> Vec<Fetched<B>> {
        // Each of them, because the buffers may go only when nobody writes to them any more.
        let outcomes: Vec<_> = self.tasks.drain(..).map(|part| part.task.take()).collect();
        let outcome = match self.refused.take() {
            Some(error) => Err(error),
            None => outcomes.into_iter().collect::<Result<Vec<_>>>(),
        };
        let samples = std::mem::take(&mut self.samples);
        let mut failures = match outcome {
            Ok(failures) => failures.into_iter().flatten().peekable(),
            Err(error) => return fail_all(set, samples, &error),
        };
        let fetched = samples.into_iter().enumerate().map(|(sample, PendingSample { place, payload })| {
            let failure = failures.next_if(|(failed, _)| *failed == sample);
            // Other parts of it.
            while failures.next_if(|(failed, _)| *failed == sample).is_some() {}
            let payload = match (payload, failure) {
                (Ok((mut buffer, len)), None) => {
                    // SAFETY: the tasks ran to their end and reported no failure here, so they wrote all `len` bytes.
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
}

impl<B> Drop for PendingFetch<B> {
    fn drop(&mut self) {
        // The buffers may go only when nobody writes to them any more. A worker never waits for anything but the
        // disk here. In a forked child, which has no workers, this does not wait.
        self.tasks.retain(|part| !part.task.cancel());
        for part in &self.tasks {
            while !part.task.wait(Duration::MAX) {}
        }
    }
}

/// The parts in which a payload is read: what is decompressed is one.
fn parts(found: &FoundPayload) -> impl Iterator<Item = Range<usize>> + use<> {
    let len = found.len;
    let most = if found.stored.algo == CompressionAlgo::None { PIECE_BYTES } else { usize::MAX };
    let count = len.div_ceil(most).max(1);
    (0..count).map(move |part| part * most..len.min((part + 1).saturating_mul(most)))
}

/// Fills the buffers; returns which samples failed, in order.
fn copy_all(set: &CacheSet, copies: &[Copy]) -> Vec<(usize, Error)> {
    let mut failures = Vec::new();
    let before = waits_for_disk();
    for Copy { place, found, part, target, sample } in copies {
        // SAFETY: `target` has as many bytes as the part, which are this task's until it ends, see `Copy`.
        let filled = unsafe {
            if part.len() == found.len {
                fill(set, *place, found, *target)
            } else {
                fill_part(set, *place, found, part, *target)
            }
        };
        if let Err(error) = filled {
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
    let fetched = samples.into_iter().map(|PendingSample { place, .. }| Fetched {
        place,
        payload: Err(Box::new(set.sample_error(place, error.for_each()))),
    });
    fetched.collect()
}
