//! What all sources of one call share: the window that bounds what is in flight, and the results.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::fs::Heart;
use crate::pool::{Chore, WorkerPool};

use super::batch::Batch;
use super::config::WriterConfig;
use super::encode::Encoded;
use super::lock;

/// Bytes in flight beyond which no second job starts.
const WINDOW_BYTES: u64 = 256 << 20;

/// One call of the writer.
pub(crate) struct Call {
    /// Weak, because tasks own the call and must not own the pool they run on. The thread that called keeps it alive.
    pool: Weak<WorkerPool>,
    base: PathBuf,
    config: WriterConfig,
    cancel: CancelToken,
    /// Beats before every task, while the caller waits for tasks, and while there are none.
    heart: Arc<Heart>,
    _beats_when_idle: Arc<Chore>,
    max_jobs: u64,
    max_caches: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: u64,
    bytes: u64,
    /// Batches whose owners the pulling thread drops, and whose memory it uses again.
    retired: Vec<Batch>,
    spare: Vec<Encoded>,
    /// Caches that were begun and are neither published nor given up.
    open_caches: usize,
    finished: Vec<(usize, Result<PathBuf>)>,
}

impl Call {
    pub(crate) fn new(pool: &Arc<WorkerPool>, base: &Path, config: &WriterConfig) -> Self {
        let threads = pool.threads();
        let heart = Heart::new(pool.chore_interval());
        let beating = Arc::clone(&heart);
        let beats_when_idle: Arc<Chore> = Arc::new(move || beating.beat());
        pool.add_chore(&beats_when_idle);
        Self {
            pool: Arc::downgrade(pool),
            base: base.to_path_buf(),
            config: config.clone(),
            cancel: CancelToken::new(),
            heart,
            _beats_when_idle: beats_when_idle,
            max_jobs: config.prefetch_size.min(threads as u64),
            max_caches: threads + 1,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn config(&self) -> &WriterConfig {
        &self.config
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    pub(crate) fn heart(&self) -> &Arc<Heart> {
        &self.heart
    }

    /// Queues `work` on the pool.
    pub(crate) fn submit(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let heart = Arc::clone(&self.heart);
        match self.pool.upgrade() {
            Some(pool) => pool.submit(move || {
                heart.beat();
                work();
            }),
            None => Err(Error::Unusable("the worker pool is gone; create a new DatasetRuntime".to_owned())),
        }
    }

    /// Waits until a job of this size may start, or for `timeout`.
    pub(crate) fn wait_for_room(&self, bytes: u64, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| {
            state.jobs == 0 || (state.jobs < self.max_jobs && state.bytes + bytes <= WINDOW_BYTES)
        })
    }

    /// Waits until another cache may be begun, or for `timeout`.
    pub(crate) fn wait_for_cache(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| state.open_caches < self.max_caches)
    }

    /// Waits until nothing is under way any more, or for `timeout`.
    pub(crate) fn wait_for_all(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| state.open_caches == 0 && state.jobs == 0)
    }

    /// Takes room for a job.
    pub(crate) fn enter(&self, bytes: u64) -> Encoded {
        let mut state = lock(&self.state);
        state.jobs += 1;
        state.bytes += bytes;
        state.spare.pop().unwrap_or_default()
    }

    /// Gives the room of a job back.
    pub(crate) fn leave(&self, bytes: u64, batch: Batch, mut encoded: Encoded) {
        encoded.recycle();
        let mut state = lock(&self.state);
        state.jobs -= 1;
        state.bytes -= bytes;
        state.retired.push(batch);
        state.spare.push(encoded);
        self.changed.notify_all();
    }

    /// Batches that have left: only the pulling thread may drop them.
    pub(crate) fn take_retired(&self) -> Vec<Batch> {
        std::mem::take(&mut lock(&self.state).retired)
    }

    pub(crate) fn cache_begun(&self) {
        lock(&self.state).open_caches += 1;
    }

    pub(crate) fn cache_over(&self, position: usize, result: Result<PathBuf>) {
        let mut state = lock(&self.state);
        state.open_caches -= 1;
        state.finished.push((position, result));
        self.changed.notify_all();
    }

    /// Results that nobody has taken yet, with the positions of their sources.
    pub(crate) fn take_finished(&self) -> Vec<(usize, Result<PathBuf>)> {
        std::mem::take(&mut lock(&self.state).finished)
    }

    fn wait_until(&self, timeout: Duration, mut ready: impl FnMut(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        if !timeout.is_zero() {
            self.heart.beat();
        }
        let mut state = lock(&self.state);
        while !ready(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;
    use crate::cancel::PlainWaiter;
    use crate::progress::NoProgress;
    use crate::writer::{IterSource, Refuse, write_sources};

    #[test]
    fn c09_staging_is_kept_alive_while_a_source_says_nothing() {
        let base = tempfile::tempdir().unwrap();
        let tmp = base.path().join("tmp");
        let limit = Instant::now() + Duration::from_secs(60);
        let until = |done: &mut dyn FnMut() -> bool| {
            while !done() {
                assert!(Instant::now() < limit, "no heartbeat");
                std::thread::yield_now();
            }
        };
        let staging = || fs::read_dir(&tmp).ok()?.next().map(|entry| entry.unwrap().path());
        let samples = (0..2).map(|row| {
            if row == 0 {
                // Slow enough to be handed over at once.
                let slow = Instant::now() + Duration::from_millis(2);
                until(&mut || Instant::now() > slow);
            } else {
                until(&mut || staging().is_some());
                let staging = staging().unwrap();
                File::open(&staging).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
                until(&mut || fs::metadata(&staging).unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
            }
            (vec![row], Vec::new())
        });
        // One thread, which has nothing to do: nobody else could touch the directory.
        let pool = WorkerPool::with_chore_interval(1, Duration::from_millis(1)).unwrap();
        let written = write_sources(
            &pool,
            &mut [&mut IterSource::new("slow", samples)],
            base.path(),
            &WriterConfig::default(),
            &mut Refuse,
            &mut PlainWaiter::default(),
            &mut NoProgress,
        );
        assert_eq!(written.unwrap()[0].result, Ok(base.path().join("slow")));
    }
}
