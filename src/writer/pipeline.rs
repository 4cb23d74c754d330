//! The calling thread's part of a write: pulls the sources one after the other and collects their outcomes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancel::Waiter;
use crate::error::{Error, Result};
use crate::fs;
use crate::ids::SourceName;
use crate::pool::{Task, WorkerPool};
use crate::progress::{ProgressSink, WriteProgress};

use super::batch::Batch;
use super::cache::{CacheWrite, Token};
use super::call::Call;
use super::config::WriterConfig;
use super::existing::Existing;
use super::ingest::Rows;
use super::job::Job;
use super::names::{Named, check_collisions};
use super::outcome::WriteOutcome;
use super::profile::{self, SourceProfile, Stage};
use super::source::Source;

/// A source that takes longer than this for a sample does not wait for its job to fill.
const SLOW_PULL: Duration = Duration::from_micros(200);

/// While nothing but waiting is left, the progress is told this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Writes one cache for each source, in order.
pub(crate) fn write_sources(
    pool: &Arc<WorkerPool>,
    sources: &mut [&mut dyn Source],
    base: &Path,
    config: &WriterConfig,
    existing: &mut dyn Existing,
    waiter: &mut dyn Waiter,
    progress: &mut dyn ProgressSink,
) -> Result<Vec<WriteOutcome>> {
    config.check()?;
    pool.check()?;
    // Sources run code that may change the working directory.
    let base = &fs::absolute(base)?;
    let report = config.profiler.as_ref().map(fs::absolute).transpose()?;
    let names: Vec<_> = sources.iter().enumerate().map(|(position, source)| Named::new(position, *source)).collect();
    check_collisions(base, &names)?;
    if let Some(path) = &report {
        profile::prepare_report(path)?;
    }
    let started = Instant::now();
    let mut puller = Puller {
        call: Arc::new(Call::new(pool, base, config)),
        pool,
        existing,
        waiter,
        progress,
        shown: WriteProgress { sources_total: names.len(), ..WriteProgress::default() },
        watched: None,
        is_writing: false,
        fingerprints: vec![None; names.len()],
        results: names.iter().map(|named| named.name.as_ref().err().map(|error| Err(error.clone()))).collect(),
        profiles: names.iter().map(|_| Arc::new(SourceProfile::new(config.profiler.is_some()))).collect(),
    };
    let written = puller.sweep(base).and_then(|()| puller.write_all(sources, &names));
    puller.wind_up(written.is_err());
    let reported = match &report {
        // The report of a forked child would take the place of its parent's.
        Some(path) if pool.check().is_ok() => {
            let sources = names.iter().map(|named| named.label.as_str());
            profile::write_report(path, started.elapsed(), sources.zip(puller.profiles.iter().map(AsRef::as_ref)))
        }
        _ => Ok(()),
    };
    written.and(reported)?;
    let results = std::mem::take(&mut puller.results);
    Ok(names.into_iter().zip(results).map(|(named, result)| named.outcome(result)).collect())
}

/// Why pulling a source ended early.
enum Stop {
    /// This source failed; the others go on.
    Source(Error),
    /// The source ended the whole call; the caches of earlier sources are still published.
    Quit(Error),
    /// The whole call ends at once.
    Call(Error),
}

impl Stop {
    /// What a source said while it was called back.
    fn from_source(error: Error) -> Self {
        if matches!(error, Error::Interrupted) { Self::Quit(error) } else { Self::Source(error) }
    }

    /// What went wrong with the place of a source; an interruption is the caller's there.
    fn from_place(error: Error) -> Self {
        if matches!(error, Error::Interrupted) { Self::Call(error) } else { Self::Source(error) }
    }
}

struct Puller<'a> {
    call: Arc<Call>,
    pool: &'a Arc<WorkerPool>,
    existing: &'a mut dyn Existing,
    waiter: &'a mut dyn Waiter,
    progress: &'a mut dyn ProgressSink,
    shown: WriteProgress,
    /// The cache whose samples are shown: of the source that was begun last.
    watched: Option<Arc<CacheWrite>>,
    /// Whether any source had to be written so far.
    is_writing: bool,
    fingerprints: Vec<Option<String>>,
    results: Vec<Option<std::result::Result<PathBuf, String>>>,
    profiles: Vec<Arc<SourceProfile>>,
}

impl Puller<'_> {
    /// Removes what dead writers left, which may be what fills the disk.
    fn sweep(&mut self, base: &Path) -> Result<()> {
        let (base, cancel) = (base.to_path_buf(), self.call.cancel().clone());
        let sweeping = Task::spawn(self.pool, move || {
            // Whatever cannot be removed is not in the way.
            let _ = fs::sweep(&base, &cancel);
            Ok(())
        })?;
        self.waiter.wait(&mut |timeout| sweeping.wait(timeout))
    }

    fn write_all(&mut self, sources: &mut [&mut dyn Source], names: &[Named]) -> Result<()> {
        for (position, (source, named)) in sources.iter_mut().zip(names).enumerate() {
            let Ok(name) = &named.name else { continue };
            self.shown.source_name.clone_from(&named.label);
            self.watched = None;
            match self.write_one(position, *source, name) {
                Ok(()) => {}
                Err(Stop::Source(error)) => self.settle(position, Err(error)),
                Err(Stop::Quit(error)) => {
                    self.wait_for_pulled();
                    return Err(error);
                }
                Err(Stop::Call(error)) => return Err(error),
            }
            self.collect()?;
        }
        loop {
            self.collect()?;
            if self.results.iter().all(Option::is_some) {
                return Ok(());
            }
            self.wait(Call::wait_for_all)?;
        }
    }

    /// Pulls one source. An error after the cache was begun is among the call's results and not returned.
    fn write_one(
        &mut self,
        position: usize,
        source: &mut dyn Source,
        name: &SourceName,
    ) -> std::result::Result<(), Stop> {
        self.waiter.check().map_err(Stop::Call)?;
        let fingerprint = self.answer(source.fingerprint())?;
        if let Some(place) = self.fingerprints.get_mut(position) {
            place.clone_from(&fingerprint);
        }
        let target = self.call.base().join(name.as_str());
        if self.is_taken(&target).map_err(Stop::from_place)? {
            let decided = self.existing.decide(&target, fingerprint.as_deref(), self.waiter);
            decided.map_err(Stop::from_place)?;
            self.settle(position, Ok(target));
            return Ok(());
        }
        while !self.call.wait_for_cache(Duration::ZERO) {
            self.wait(Call::wait_for_cache).map_err(Stop::Call)?;
        }
        let profile = self.profiles.get(position).map_or_else(|| Arc::new(SourceProfile::new(false)), Arc::clone);
        let started = self.answer(source.start());
        if started.is_err() {
            source.stop();
            return started;
        }
        let token = CacheWrite::begin(&self.call, position, name.clone(), fingerprint, profile);
        self.watched = Some(Arc::clone(token.cache()));
        let pulled = self.pull_all(source, name, &token);
        source.stop();
        if let Err(inherited) = self.pool.check() {
            // It would lock what threads of the parent may have had locked.
            std::mem::forget(token);
            return Err(if let Err(Stop::Call(error)) = pulled { Stop::Call(error) } else { Stop::Call(inherited) });
        }
        match pulled {
            Ok(()) => Ok(()),
            Err(Stop::Source(error)) => {
                token.cache().fail(error);
                Ok(())
            }
            Err(stop) => {
                token.cache().fail(Error::Interrupted);
                Err(stop)
            }
        }
    }

    /// Whether this is a child that the source, or a handler of a signal, has forked: it has none of the threads, and locks
    /// that they had stay locked.
    fn is_left_behind(&self) -> bool {
        self.pool.check().is_err()
    }

    /// What a source said when it was called back. In a forked child that ends the call, whatever it is.
    fn answer<T>(&self, answer: Result<T>) -> std::result::Result<T, Stop> {
        match (self.pool.check(), answer) {
            (Ok(()), answer) => answer.map_err(Stop::from_source),
            (Err(_), Err(Error::Interrupted)) => Err(Stop::Call(Error::Interrupted)),
            (Err(inherited), _) => Err(Stop::Call(inherited)),
        }
    }

    fn pull_all(&mut self, source: &mut dyn Source, name: &SourceName, token: &Token) -> std::result::Result<(), Stop> {
        let cache = token.cache();
        let algo = self.call.config().compression.algo;
        let mut rows = Rows::new(name.as_str(), algo, cache.profile.local());
        let pulled = self.pull_into(&mut rows, source, token);
        if !self.is_left_behind() {
            cache.profile.merge(rows.times());
        }
        pulled
    }

    fn pull_into(&mut self, rows: &mut Rows, source: &mut dyn Source, token: &Token) -> std::result::Result<(), Stop> {
        let cache = token.cache();
        let mut pulled_at = Instant::now();
        loop {
            let more = self.answer(source.pull(rows))?;
            let now = Instant::now();
            if cache.has_failed() {
                // The reason is recorded already.
                return Ok(());
            }
            let was_slow = now.duration_since(pulled_at) >= SLOW_PULL;
            pulled_at = now;
            for batch in [rows.take_closed(), rows.take_full()].into_iter().flatten() {
                self.dispatch(token, rows, batch)?;
                pulled_at = Instant::now();
            }
            let goes_now = !more || (was_slow && self.call.wait_for_room(rows.byte_len(), Duration::ZERO));
            if goes_now && let Some(batch) = rows.take_rest() {
                self.dispatch(token, rows, batch)?;
                pulled_at = Instant::now();
            }
            if !more {
                cache.exhausted();
                return Ok(());
            }
        }
    }

    /// Sends a batch to the pool once there is room in the window.
    fn dispatch(&mut self, token: &Token, rows: &mut Rows, batch: Batch) -> std::result::Result<(), Stop> {
        let cache = token.cache();
        let bytes = batch.byte_len();
        self.waiter.check().map_err(Stop::Call)?;
        if !self.call.wait_for_room(bytes, Duration::ZERO) {
            let started = rows.stage_started();
            while !self.call.wait_for_room(bytes, Duration::ZERO) {
                self.wait(|call, timeout| call.wait_for_room(bytes, timeout)).map_err(Stop::Call)?;
            }
            rows.stage_ended(Stage::IngressWait, started, bytes);
        }
        for mut batch in self.call.take_retired() {
            batch.recycle();
            rows.give_spare(batch);
        }
        cache.profile.merge(rows.times());
        if let Some(schema) = rows.schema() {
            let job = Job::enter(&self.call, batch);
            CacheWrite::dispatch(token, schema, job).map_err(Stop::Call)?;
        }
        // Of sources before this one.
        self.take_results().map_err(Stop::Call)?;
        self.tell();
        Ok(())
    }

    /// Tells how far the write is, once there is one: caches that are only found again make no progress.
    fn tell(&mut self) {
        self.is_writing |= self.watched.is_some();
        if !self.is_writing {
            return;
        }
        (self.shown.samples, self.shown.payload_bytes) = self.watched.as_ref().map_or((0, 0), |cache| cache.progress());
        self.progress.update(&self.shown);
    }

    /// Waits for the call to get somewhere, but not for long: the progress is told in between.
    fn wait(&mut self, ready: impl Fn(&Call, Duration) -> bool + Sync) -> Result<()> {
        let call = &self.call;
        let until = Instant::now() + PROGRESS_INTERVAL;
        self.waiter.wait(&mut |timeout| ready(call, timeout) || Instant::now() >= until)?;
        self.pool.check()?;
        self.tell();
        Ok(())
    }

    fn is_taken(&mut self, target: &Path) -> Result<bool> {
        let path = target.to_path_buf();
        let look = Task::spawn(self.pool, move || match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::file("look at", &path, error)),
        })?;
        self.waiter.wait(&mut |timeout| look.wait(timeout))?;
        look.take()
    }

    /// Takes over the results of caches that are over.
    fn collect(&mut self) -> Result<()> {
        drop(self.call.take_retired());
        self.take_results()
    }

    fn take_results(&mut self) -> Result<()> {
        for (position, result) in self.call.take_finished() {
            let result = match result {
                // Somebody else was faster.
                Err(Error::AlreadyExists { path, .. }) => {
                    let fingerprint = self.fingerprints.get(position).cloned().flatten();
                    match self.existing.decide(&path, fingerprint.as_deref(), self.waiter) {
                        Err(Error::Interrupted) => return Err(Error::Interrupted),
                        decided => decided.map(|()| path),
                    }
                }
                other => other,
            };
            self.settle(position, result);
        }
        Ok(())
    }

    fn settle(&mut self, position: usize, result: Result<PathBuf>) {
        if let Some(place) = self.results.get_mut(position) {
            *place = Some(result.map_err(|error| error.to_string()));
        }
        self.shown.sources_done = self.results.iter().filter(|result| result.is_some()).count();
        self.tell();
    }

    /// Waits for caches that have all their samples, unless the caller wants to stop as well.
    fn wait_for_pulled(&mut self) {
        while !self.call.wait_for_all(Duration::ZERO) {
            if self.wait(Call::wait_for_all).is_err() {
                return;
            }
        }
    }

    /// Comes back for staging that could not be removed while the sources were at work, which may hold all files open.
    fn sweep_leftovers(&mut self) {
        let base = self.call.base().to_path_buf();
        if !fs::has_leftovers(&base) {
            return;
        }
        let removing = Task::spawn(self.pool, move || {
            fs::sweep_leftovers(&base);
            Ok(())
        });
        if let Ok(removing) = removing {
            while !removing.is_done() {
                let _ = self.waiter.wait(&mut |timeout| removing.wait(timeout));
            }
        }
    }

    /// Leaves nothing behind: no task of this call is running or queued afterwards.
    fn wind_up(&mut self, aborted: bool) {
        if aborted {
            self.call.cancel().cancel();
        }
        let call = &self.call;
        while !self.is_left_behind() && !call.wait_for_all(Duration::ZERO) {
            // A caller who is impatient again still has to wait: the staging must go.
            let _ = self.waiter.wait(&mut |timeout| call.wait_for_all(timeout));
        }
        if self.is_left_behind() {
            return;
        }
        drop(call.take_retired());
        self.sweep_leftovers();
        self.progress.finish();
    }
}
