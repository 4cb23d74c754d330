//! One pass over a window of the draw stream: samples come out in draw order, prepared in chunks ahead of the consumer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::Waiter;
use crate::dataset::ahead::Ahead;
use crate::dataset::policy::{self, FIRST_PLAN, LARGEST_PLAN, WINDOW_BYTES};
use crate::dataset::table::ActiveTable;
use crate::error::{Error, Result};
use crate::memory::keep_freed_blocks;
use crate::pool::WorkerPool;
use crate::prefetch::waits_for_disk;
use crate::reader::{CacheSet, Chunk, PayloadBuffer, PendingFetch, PlannedSample, Stretch, fetch_all, plan};

/// Of so many chunks one is watched for waits.
const WATCHED: u32 = 4;

/// Of so many chunks one is read at once and so watched, although the kernel says that it is in memory.
const DISTRUSTED: u32 = 64;

/// The samples of one window, as of the moment it was reserved.
///
/// What comes next depends on nothing but the snapshot, the start of the window, its length and how many
/// samples were given out; how they are prepared has no say in it.
#[derive(Debug)]
pub struct SampleStream<B: PayloadBuffer> {
    set: Arc<CacheSet>,
    table: Arc<ActiveTable>,
    pool: Arc<WorkerPool>,
    window: Window,
    /// Draws of the window that were planned.
    planned: u64,
    /// Samples that were given out.
    delivered: u64,
    limits: Limits,
    /// Planned samples that belong to no chunk yet.
    plan: std::vec::IntoIter<PlannedSample>,
    queue: VecDeque<Prepared<B>>,
    queued: Size,
    /// Where draws are written to; kept for its memory.
    rows: Vec<u64>,
    ahead: Ahead,
    /// Chunks that were asked for: not each of them is watched.
    chunks: u32,
    /// What went wrong behind the chunk that was given out last.
    trouble: Option<Error>,
}

/// A stretch of the draw stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// First draw position.
    pub(super) start: u128,
    /// Number of draws.
    pub(super) len: u64,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Samples in the queue.
    queue: u64,
    /// Draws of the next plan, and of the largest one.
    next_plan: u64,
    largest_plan: u64,
    /// Samples of one chunk on the pool: few enough to keep all its threads busy.
    pool_chunk: usize,
    /// Records that the kernel is asked for ahead of what is planned, while they may be on disk.
    ahead: u64,
}

/// One chunk in the queue.
#[derive(Debug)]
enum Prepared<B: PayloadBuffer> {
    /// The consumer reads it when its turn comes.
    Here(Vec<PlannedSample>, Size),
    /// The consumer reads it sample by sample.
    Stretch(Stretch, Size),
    /// The pool reads it.
    OnPool(PendingFetch<B>, Size),
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    samples: u64,
    bytes: usize,
}

impl<B: PayloadBuffer> SampleStream<B> {
    pub(super) fn new(
        set: Arc<CacheSet>,
        table: Arc<ActiveTable>,
        pool: Arc<WorkerPool>,
        window: Window,
        prefetch_size: u64,
    ) -> Self {
        if set.mean_record_bytes() >= policy::LARGE_MEAN_BYTES {
            keep_freed_blocks();
        }
        let largest_plan = prefetch_size.clamp(1, LARGEST_PLAN);
        // One chunk for every thread, and one for the consumer.
        let pool_chunk = largest_plan / (pool.threads() as u64 + 1);
        let limits = Limits {
            queue: prefetch_size,
            next_plan: FIRST_PLAN.min(largest_plan),
            largest_plan,
            pool_chunk: usize::try_from(pool_chunk).unwrap_or(usize::MAX),
            ahead: policy::records_ahead(set.mean_record_bytes()),
        };
        Self {
            set,
            table,
            pool,
            window,
            planned: 0,
            delivered: 0,
            limits,
            plan: Vec::new().into_iter(),
            queue: VecDeque::new(),
            queued: Size::default(),
            rows: Vec::new(),
            ahead: Ahead::default(),
            chunks: 0,
            trouble: None,
        }
    }

    /// The caches that samples come from.
    #[must_use]
    pub fn caches(&self) -> &Arc<CacheSet> {
        &self.set
    }

    /// Samples of the whole window.
    #[must_use]
    pub fn window_len(&self) -> u64 {
        self.window.len
    }

    /// Samples in the chunks that were given out.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The next samples in draw order, at least one; `None` behind the last one. A sample that cannot be read is an error of its own
    /// within the chunk and does not end the stream.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::error::Error) from `waiter`, after which no sample is lost;
    /// [`Error::Unusable`](crate::error::Error) in a forked child.
    pub fn next_chunk(&mut self, waiter: &mut dyn Waiter) -> Result<Option<Chunk<B>>> {
        self.pool.check()?;
        waiter.check()?;
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        self.chunks = self.chunks.wrapping_add(1);
        let waits = self.is_watched().then(waits_for_disk);
        self.prepare()?;
        while self.queue.is_empty()
            && let Some(planning) = self.ahead.pending()
        {
            waiter.wait(&mut |timeout| planning.wait(timeout))?;
            self.prepare()?;
        }
        if let Some(Prepared::OnPool(front, _)) = self.queue.front()
            && !front.is_done()
        {
            let queue = &self.queue;
            waiter.wait(&mut |timeout| help_or_wait(queue, front, timeout))?;
        }
        let Some(next) = self.queue.pop_front() else { return Ok(None) };
        let size = next.size();
        self.queued.samples -= size.samples;
        self.queued.bytes -= size.bytes;
        self.delivered += size.samples;
        let chunk = match next {
            Prepared::Stretch(stretch, _) => Chunk::Stretch(stretch),
            Prepared::Here(planned, _) => Chunk::Fetched(fetch_all(&self.set, planned).into_iter()),
            Prepared::OnPool(pending, _) => {
                // The threads go on while the consumer is busy with this chunk.
                self.trouble = self.prepare().err();
                Chunk::Fetched(pending.take(&self.set).into_iter())
            }
        };
        if waits.is_some_and(|before| before != waits_for_disk()) {
            self.set.temperature().waited();
        }
        Ok(Some(chunk))
    }

    /// Whether to find out if this thread has to wait for the disk; that costs two system calls.
    fn is_watched(&self) -> bool {
        self.chunks % WATCHED == 1
    }

    /// Puts chunks into the queue until it is full, or until the pool has to plan more of them.
    fn prepare(&mut self) -> Result<()> {
        // What the consumer reads itself is not read early, and so nothing behind it is prepared either.
        while !matches!(self.queue.back(), Some(Prepared::Here(..) | Prepared::Stretch(..))) {
            if self.plan.as_slice().is_empty()
                && let Some(stretch) = self.plan_more()?
            {
                let size = Size { samples: stretch.len() as u64, bytes: stretch.byte_len() };
                self.queued = size;
                self.queue.push_back(Prepared::Stretch(stretch, size));
                return Ok(());
            }
            let cold = self.set.temperature().is_cold();
            let cut = policy::cut(self.plan.as_slice(), self.limits.pool_chunk, cold);
            let size = Size { samples: cut.samples as u64, bytes: cut.bytes };
            let queued = Size {
                samples: self.queued.samples + size.samples,
                bytes: self.queued.bytes.saturating_add(size.bytes),
            };
            let fits = queued.samples <= self.limits.queue && queued.bytes <= WINDOW_BYTES;
            if cut.samples == 0 || !(fits || self.queue.is_empty()) {
                return Ok(());
            }
            self.queued = queued;
            let planned = self.plan.by_ref().take(cut.samples);
            self.queue.push_back(if cut.on_pool {
                Prepared::OnPool(PendingFetch::start(&self.set, &self.pool, planned), size)
            } else {
                Prepared::Here(planned.collect(), size)
            });
        }
        Ok(())
    }

    /// Finds the records of the next draws, or has the pool look for them. Where they need no looking for, and the queue
    /// is empty, it gives them as they are.
    fn plan_more(&mut self) -> Result<Option<Stretch>> {
        let cold = self.set.temperature().is_cold();
        if !cold && self.ahead.is_empty() {
            self.draw(u64::MAX);
            if self.queue.is_empty()
                && self.chunks % DISTRUSTED != 1
                && let Some(stretch) = Stretch::find(&self.set, &self.rows, policy::STRETCH_BYTES)
            {
                if stretch.is_in_memory(&self.set) {
                    return Ok(Some(stretch));
                }
                self.ahead.announce(&self.set, &self.pool, self.rows.clone());
                self.ahead.begin_to_plan(&self.set, &self.pool)?;
                return Ok(None);
            }
            self.plan = plan(&self.set, &self.rows).into_iter();
            return Ok(None);
        }
        let planned = self.ahead.take_plan()?.unwrap_or_default();
        if self.ahead.is_empty() {
            self.announce_more();
        }
        // Before anything else is asked for: somebody waits for these.
        self.ahead.begin_to_plan(&self.set, &self.pool)?;
        while cold && self.ahead.announced() < self.limits.ahead && self.planned < self.window.len {
            self.announce_more();
        }
        self.plan = planned.into_iter();
        Ok(None)
    }

    /// Has the kernel asked for the records of the next draws.
    fn announce_more(&mut self) {
        // In several parts, so that some are on their way while others are read.
        self.draw((self.limits.ahead / 4).max(1));
        if !self.rows.is_empty() {
            self.ahead.announce(&self.set, &self.pool, self.rows.clone());
        }
    }

    /// Takes the next draws, at most so many.
    fn draw(&mut self, most: u64) {
        let count = self.limits.next_plan.min(most).min(self.window.len - self.planned);
        self.limits.next_plan = (self.limits.next_plan * 2).min(self.limits.largest_plan);
        self.rows.clear();
        self.rows.resize(usize::try_from(count).unwrap_or(usize::MAX), 0);
        self.table.physical_rows(self.window.start + u128::from(self.planned), &mut self.rows);
        self.planned += count;
    }
}

impl<B: PayloadBuffer> Prepared<B> {
    fn size(&self) -> Size {
        match self {
            Self::Here(_, size) | Self::Stretch(_, size) | Self::OnPool(_, size) => *size,
        }
    }
}

/// Reads chunks that nobody has begun to read, the first one first, and waits for `front` when there are none left.
/// Returns whether `front` is done.
fn help_or_wait<B: PayloadBuffer>(queue: &VecDeque<Prepared<B>>, front: &PendingFetch<B>, timeout: Duration) -> bool {
    while !front.is_done() {
        if !queue.iter().any(|chunk| matches!(chunk, Prepared::OnPool(pending, _) if pending.try_run())) {
            return front.wait(timeout);
        }
    }
    true
}
