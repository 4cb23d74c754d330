//! One cache while it is being written: what its tasks share, and what happens when the last of them is done.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::{Error, Result};
use crate::format::record::RecordEncoder;
use crate::format::schema::Schema;
use crate::ids::SourceName;

use super::call::Call;
use super::finish;
use super::hashed_file::HashedFile;
use super::job::Job;
use super::layout::{Layout, Placed};
use super::lock;
use super::profile::{SourceProfile, Stage};

/// Complete shards that may wait for being synced; more are synced by whoever completes them.
const MAX_WAITING_SYNCS: usize = 8;

/// Shared by the pulling thread and the tasks of one cache.
pub(crate) struct CacheWrite {
    pub(crate) call: Arc<Call>,
    pub(crate) name: SourceName,
    pub(crate) target: PathBuf,
    pub(crate) fingerprint: Option<String>,
    pub(crate) profile: Arc<SourceProfile>,
    pub(crate) placement: Mutex<Placement>,
    position: usize,
    columns: OnceLock<(Arc<Schema>, RecordEncoder)>,
    samples: AtomicU64,
    payload_bytes: AtomicU64,
    waiting_syncs: AtomicUsize,
    /// Set before the first error is recorded; looked at between steps.
    failed: AtomicBool,
    life: Mutex<Life>,
}

/// What is done in input order.
#[derive(Default)]
pub(crate) struct Placement {
    next: u64,
    /// Encoded jobs that came before their turn.
    parked: BTreeMap<u64, Arc<Job>>,
    pub(crate) layout: Option<Layout>,
}

struct Life {
    tokens: usize,
    phase: Phase,
    dispatched: u64,
    /// Whether the source was pulled to its end.
    exhausted: bool,
    error: Option<Error>,
}

/// A phase ends when nobody holds a token any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Samples come in.
    Filling,
    /// The files are completed and synced.
    Closing,
    /// The manifest is written and the cache made visible, or everything is removed.
    Ending,
}

/// The right to work on a cache. The cache enters its next phase when the last one goes.
pub(crate) struct Token(Arc<CacheWrite>);

impl Token {
    pub(crate) fn cache(&self) -> &Arc<CacheWrite> {
        &self.0
    }
}

impl Clone for Token {
    fn clone(&self) -> Self {
        lock(&self.0.life).tokens += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.token_gone();
    }
}

impl CacheWrite {
    /// A cache of which nothing exists yet. It is over when the token and all its clones are gone.
    pub(crate) fn begin(
        call: &Arc<Call>,
        position: usize,
        name: SourceName,
        fingerprint: Option<String>,
        profile: Arc<SourceProfile>,
    ) -> Token {
        call.cache_begun();
        let life = Life { tokens: 1, phase: Phase::Filling, dispatched: 0, exhausted: false, error: None };
        Token(Arc::new(Self {
            target: call.base().join(name.as_str()),
            call: Arc::clone(call),
            name,
            fingerprint,
            profile,
            placement: Mutex::default(),
            position,
            columns: OnceLock::new(),
            samples: AtomicU64::new(0),
            payload_bytes: AtomicU64::new(0),
            waiting_syncs: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            life: Mutex::new(life),
        }))
    }

    /// Whether nothing that is still done for this cache will be of use.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.call.cancel().is_cancelled()
    }

    /// Records why the cache will not come to be. The first reason stays.
    pub(crate) fn fail(&self, error: Error) {
        self.failed.store(true, Ordering::Release);
        lock(&self.life).error.get_or_insert(error);
        // Jobs that wait for others would wait for ever, and take room in the window.
        let mut placement = lock(&self.placement);
        let parked = std::mem::take(&mut placement.parked);
        if let Some(layout) = &placement.layout {
            layout.files().for_each(|file| file.abandon());
        }
        drop(placement);
        drop(parked);
    }

    /// Tells that every sample of the source was dispatched.
    pub(crate) fn exhausted(&self) {
        lock(&self.life).exhausted = true;
    }

    /// Samples and payload bytes written so far.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.samples.load(Ordering::Relaxed), self.payload_bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        self.columns.get().map(|(schema, _)| schema)
    }

    /// Lets go of everything that grew with the samples, the staging directory included.
    fn clear(&self) {
        let placement = std::mem::take(&mut *lock(&self.placement));
        drop(placement);
    }

    /// Sends the next job to the pool. Called by the pulling thread only.
    pub(crate) fn dispatch(token: &Token, schema: &Arc<Schema>, job: Job) -> Result<()> {
        let cache = token.cache();
        cache.columns.get_or_init(|| (Arc::clone(schema), RecordEncoder::new(schema)));
        let number = {
            let mut life = lock(&cache.life);
            life.dispatched += 1;
            life.dispatched - 1
        };
        Self::spawn(token, move |token| Self::encode_and_place(token, number, job))
    }

    /// Runs `work` on the pool with a token of its own; an error or a panic fails the cache.
    pub(crate) fn spawn(token: &Token, work: impl FnOnce(&Token) -> Result<()> + Send + 'static) -> Result<()> {
        let token = token.clone();
        let call = Arc::clone(&token.cache().call);
        call.submit(move || run(&token, work))
    }

    fn encode_and_place(token: &Token, number: u64, mut job: Job) -> Result<()> {
        let cache = token.cache();
        if cache.has_failed() {
            return Ok(());
        }
        let Some((schema, encoder)) = cache.columns.get() else { return Ok(()) };
        let mut times = cache.profile.local();
        job.encode(encoder, cache.call.config().compression.algo, &mut times)?;
        cache.profile.merge(&mut times);
        let mut placed = cache.place(schema, number, Arc::new(job))?.into_iter();
        let Some(own) = placed.next() else { return Ok(()) };
        // Jobs that waited for this one go to other workers, this one's bytes are at hand here.
        for other in placed {
            Self::spawn(token, move |token| Self::write(token, other))?;
        }
        Self::write(token, own)
    }

    /// Places a job and all that waited for it, in input order.
    fn place(&self, schema: &Schema, number: u64, job: Arc<Job>) -> Result<Vec<(Arc<Job>, Placed)>> {
        let mut guard = lock(&self.placement);
        if self.has_failed() {
            drop(guard);
            // The job goes only here, not under the lock.
            drop(job);
            return Ok(Vec::new());
        }
        let placement = &mut *guard;
        placement.parked.insert(number, job);
        let mut ready = Vec::new();
        while let Some(job) = placement.parked.remove(&placement.next) {
            placement.next += 1;
            let layout = match &mut placement.layout {
                Some(layout) => layout,
                none => {
                    let call = &self.call;
                    none.insert(Layout::create(call.base(), schema, call.config().max_shard_bytes, call.heart())?)
                }
            };
            let placed = layout.place(&job)?;
            ready.push((job, placed));
        }
        Ok(ready)
    }

    fn write(token: &Token, (job, placed): (Arc<Job>, Placed)) -> Result<()> {
        let cache = token.cache();
        let bytes = job.batch.payload_bytes();
        let samples = job.batch.len() as u64;
        drop(job);
        let complete = cache.profile.time(Stage::DiskWrite, bytes, || {
            let mut files = Vec::new();
            for write in placed.writes {
                if cache.has_failed() {
                    return Ok(Vec::new());
                }
                write.file.write(write.offset, write.chunk)?;
                files.push(write.file);
            }
            for (file, len) in placed.sealed {
                file.seal(len);
                files.push(file);
            }
            // Only now: the hash of one file may have much to do, and the others can run on without this worker.
            let mut complete = Vec::new();
            for file in files {
                if file.run_hash()? {
                    complete.push(file);
                }
            }
            Ok::<_, Error>(complete)
        })?;
        cache.samples.fetch_add(samples, Ordering::Relaxed);
        cache.payload_bytes.fetch_add(bytes, Ordering::Relaxed);
        complete.into_iter().try_for_each(|shard| Self::sync_shard(token, shard))
    }

    /// Syncs a complete shard: in the background, unless that would keep too many files open.
    pub(crate) fn sync_shard(token: &Token, shard: Arc<HashedFile>) -> Result<()> {
        let sync = |cache: &Self, shard: &HashedFile| cache.profile.time(Stage::ShardFlush, 0, || shard.sync());
        let cache = token.cache();
        if cache.waiting_syncs.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING_SYNCS {
            cache.waiting_syncs.fetch_sub(1, Ordering::Relaxed);
            return sync(cache, &shard);
        }
        Self::spawn(token, move |token| {
            let cache = token.cache();
            let synced = sync(cache, &shard);
            cache.waiting_syncs.fetch_sub(1, Ordering::Relaxed);
            synced
        })
    }

    /// Whether every job that was sent to the pool has its place.
    pub(crate) fn all_placed(&self) -> bool {
        let dispatched = lock(&self.life).dispatched;
        lock(&self.placement).next == dispatched
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    fn token_gone(self: &Arc<Self>) {
        let next = {
            let mut life = lock(&self.life);
            life.tokens -= 1;
            if life.tokens > 0 || life.phase == Phase::Ending {
                return;
            }
            if self.call.cancel().is_cancelled() {
                life.error.get_or_insert(Error::Interrupted);
            }
            if !life.exhausted {
                // Only a panic on the pulling thread gets here: half a cache must not look like a whole one.
                life.error.get_or_insert_with(|| Error::Panicked("the source was left half pulled".to_owned()));
            } else if life.dispatched == 0 {
                life.error.get_or_insert_with(|| Error::InvalidValue("cache source yielded no samples".to_owned()));
            }
            life.phase = match life.phase {
                Phase::Filling if life.error.is_none() => Phase::Closing,
                _ => Phase::Ending,
            };
            life.tokens = 1;
            life.phase
        };
        // This token stands for the one counted above.
        let token = Token(Arc::clone(self));
        // Never on the pulling thread, whose token may have been the last one.
        let spawned = if next == Phase::Closing {
            Self::spawn(&token, finish::close)
        } else {
            Self::spawn(&token, |token| {
                token.cache().end();
                Ok(())
            })
        };
        if let Err(error) = spawned {
            self.fail(error);
            if next == Phase::Ending {
                self.end();
            }
        }
    }

    /// Publishes or removes the cache, and tells what became of it.
    fn end(&self) {
        let error = lock(&self.life).error.take();
        let published = match error {
            Some(error) => Err(error),
            None => catch(|| finish::publish(self)),
        };
        self.clear();
        self.call.cache_over(self.position, published.map(|()| self.target.clone()));
    }
}

fn run(token: &Token, work: impl FnOnce(&Token) -> Result<()>) {
    if let Err(error) = catch(|| work(token)) {
        token.cache().fail(error);
    }
}

fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(Error::Panicked(text.unwrap_or_else(|| "a panic without a message".to_owned())))
    })
}
