//! One pass over a window of the draw stream: samples come out in draw order, prepared in chunks ahead of the consumer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancel::Waiter;
use crate::dataset::ahead::{Ahead, Draws, NextRows};
use crate::dataset::policy::{self, FIRST_PLAN, LARGEST_PLAN, LookAhead, WINDOW_BYTES};
use crate::dataset::table::ActiveTable;
use crate::error::Result;
use crate::memory::keep_freed_blocks;
use crate::pool::WorkerPool;
use crate::prefetch::waits_for_disk;
use crate::reader::{CacheSet, Chunk, Manner, PayloadBuffer, PendingFetch, PlannedSample, Stretch, fetch_all, plan};

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
    /// Draws of the window that were made, or that the pool is to make.
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
    look_ahead: LookAhead,
    /// Chunks that were asked for: not each of them is watched.
    chunks: u32,
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
    /// Draws that are brought into memory together next, if there is as much.
    next_run: u64,
    /// Samples of one chunk on the pool: few enough to keep all its threads busy.
    pool_chunk: usize,
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
        keep_freed_blocks(set.mean_record_bytes());
        let largest_plan = prefetch_size.clamp(1, LARGEST_PLAN);
        // One chunk for every thread, and one for the consumer.
        let pool_chunk = largest_plan / (pool.threads() as u64 + 1);
        let limits = Limits {
            queue: prefetch_size,
            next_plan: FIRST_PLAN.min(largest_plan),
            largest_plan,
            next_run: FIRST_PLAN,
            pool_chunk: usize::try_from(pool_chunk).unwrap_or(usize::MAX),
        };
        let manner = if table.is_in_order() { Manner::Bring } else { Manner::Ask };
        let look_ahead = LookAhead { mean_bytes: set.mean_record_bytes().max(1), manner };
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
            look_ahead,
            chunks: 0,
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
        self.chunks = self.chunks.wrapping_add(1);
        let waits = self.is_watched().then(waits_for_disk);
        self.prepare()?;
        while self.queue.is_empty() && !self.ahead.is_empty() {
            waiter.wait(&mut |timeout| self.ahead.wait(timeout))?;
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
                // The threads go on while the consumer is busy with this chunk. What fails fails again when it is prepared next.
                let _ = self.prepare();
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
        if cold || !self.ahead.is_empty() {
            return self.plan_ahead(cold);
        }
        let draws = self.next_draws(u64::MAX);
        self.rows.clear();
        self.rows.resize(draws, 0);
        self.table.physical_rows(self.position(), &mut self.rows);
        if self.queue.is_empty()
            && self.chunks % DISTRUSTED != 1
            && let Some(stretch) = Stretch::find(&self.set, &self.rows, policy::STRETCH_BYTES)
        {
            if stretch.is_in_memory(&self.set) {
                self.planned += draws as u64;
                return Ok(Some(stretch));
            }
            self.announce(draws, Manner::Bring)?;
            return self.plan_ahead(true);
        }
        self.plan = plan(&self.set, &self.rows).into_iter();
        self.planned += draws as u64;
        Ok(None)
    }

    /// [`plan_more`](Self::plan_more) by the pool, with the kernel asked for what comes later.
    fn plan_ahead(&mut self, cold: bool) -> Result<Option<Stretch>> {
        if let Some(plan) = self.ahead.take_plan(&self.set) {
            self.plan = plan.into_iter();
        }
        // Once all is known to be in memory nothing is added: what comes behind this needs no looking for.
        if self.ahead.is_empty() && (cold || self.plan.as_slice().is_empty()) {
            self.announce_more()?;
        }
        // Before anything else is asked for: somebody waits for these.
        let stretch = self.next_stretch()?;
        while cold && self.planned < self.window.len && self.ahead.load() < self.look_ahead.limit(self.delivered) {
            self.announce_more()?;
        }
        Ok(stretch)
    }

    /// The next draws if they are in memory and need no looking for. Has the pool plan them if not.
    fn next_stretch(&mut self) -> Result<Option<Stretch>> {
        let most = usize::try_from(self.limits.largest_plan).unwrap_or(usize::MAX);
        if let Some(NextRows { rows, in_runs, manner }) = self.ahead.next_rows(most) {
            let count = rows.len();
            self.look_ahead.manner = if in_runs { Manner::Bring } else { Manner::Ask };
            if manner == Manner::Bring
                && self.chunks % DISTRUSTED != 1
                && !self.set.temperature().is_distrustful()
                && let Some(stretch) = Stretch::find(&self.set, rows, policy::STRETCH_BYTES)
            {
                if !self.queue.is_empty() || !self.plan.as_slice().is_empty() {
                    // They need no plan if they are still in memory when their turn comes.
                    return Ok(None);
                }
                if stretch.is_in_memory(&self.set) {
                    self.ahead.take(count);
                    return Ok(Some(stretch));
                }
            }
        }
        self.ahead.begin_to_plan(&self.set, &self.pool, most)?;
        Ok(None)
    }

    /// Has the pool make the next draws and bring their records into memory.
    fn announce_more(&mut self) -> Result<()> {
        let most = self.look_ahead.draws();
        let draws = match self.look_ahead.manner {
            Manner::Ask => self.next_draws(most),
            Manner::Bring => {
                let draws = self.limits.next_run.min(most);
                self.limits.next_run = draws.saturating_mul(8);
                usize::try_from(draws.min(self.left())).unwrap_or(usize::MAX)
            }
        };
        if draws > 0 { self.announce(draws, self.look_ahead.manner) } else { Ok(()) }
    }

    /// The same with so many draws.
    fn announce(&mut self, count: usize, manner: Manner) -> Result<()> {
        let load = self.look_ahead.load(count as u64);
        let draws = Draws { table: Arc::clone(&self.table), start: self.position(), count };
        self.ahead.announce(&self.set, &self.pool, (manner, load), draws)?;
        self.planned += count as u64;
        Ok(())
    }

    /// Draws to be made next, at most so many.
    fn next_draws(&mut self, most: u64) -> usize {
        let draws = self.limits.next_plan.min(most).min(self.left());
        self.limits.next_plan = (self.limits.next_plan * 2).min(self.limits.largest_plan);
        usize::try_from(draws).unwrap_or(usize::MAX)
    }

    /// Where the next draws are.
    fn position(&self) -> u128 {
        self.window.start + u128::from(self.planned)
    }

    /// How many are to be made.
    fn left(&self) -> u64 {
        self.window.len - self.planned
    }
}

impl<B: PayloadBuffer> Prepared<B> {
    fn size(&self) -> Size {
        match self {
            Self::Here(_, size) | Self::Stretch(_, size) | Self::OnPool(_, size) => *size,
        }
    }
}

/// Reads chunks that nobody has begun to read, the first one first, and waits for `front` when there are none left; for this
/// long, about. Returns whether `front` is done.
fn help_or_wait<B: PayloadBuffer>(queue: &VecDeque<Prepared<B>>, front: &PendingFetch<B>, timeout: Duration) -> bool {
    let started = Instant::now();
    while !front.is_done() {
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return false;
        }
        if !queue.iter().any(|chunk| matches!(chunk, Prepared::OnPool(pending, _) if pending.try_run())) {
            return front.wait(left);
        }
    }
    true
}
