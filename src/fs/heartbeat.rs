//! Heartbeats: touching the staging directories of a write, so that other machines see that it goes on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Staging, operation};

/// Touches directories once in a while, for as long as somebody calls [`beat`](Self::beat).
#[derive(Debug)]
pub struct Heart {
    period: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: Instant,
    directories: Vec<PathBuf>,
}

/// A directory that is being touched. It is left alone once this is dropped.
#[derive(Debug)]
pub struct KeptAlive {
    heart: Arc<Heart>,
    directory: PathBuf,
}

impl Heart {
    /// A heart that beats at most once in each period.
    #[must_use]
    pub fn new(period: Duration) -> Arc<Self> {
        Arc::new(Self { period, state: Mutex::new(State { last: Instant::now(), directories: Vec::new() }) })
    }

    /// Touches the directories if it is time to.
    pub fn beat(&self) {
        self.beat_at(Instant::now());
    }

    fn beat_at(&self, now: Instant) {
        // Whoever holds it may be touching: nobody should wait for a slow file server twice.
        let Ok(mut state) = self.state.try_lock() else { return };
        if now.saturating_duration_since(state.last) >= self.period {
            state.last = now;
            for directory in &state.directories {
                // It may have been published a moment ago, and nobody waits for this one beat.
                let _ = operation::touch(directory);
            }
        }
    }

    /// Touches a directory from now on. It is new, so the first beat has time.
    #[must_use]
    pub fn keep_alive(self: &Arc<Self>, staging: &Staging) -> KeptAlive {
        let directory = staging.path().to_path_buf();
        self.state().directories.push(directory.clone());
        KeptAlive { heart: Arc::clone(self), directory }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeptAlive {
    fn drop(&mut self) {
        self.heart.state().directories.retain(|directory| *directory != self.directory);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::SystemTime;

    use super::*;

    fn age(directory: &Path) {
        File::open(directory).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    fn is_fresh(directory: &Path) -> bool {
        fs::metadata(directory).unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH + Duration::from_secs(1)
    }

    #[test]
    fn c09_a_heart_touches_what_it_keeps_alive_once_in_a_period() {
        let base = tempfile::tempdir().unwrap();
        let heart = Heart::new(Duration::from_secs(20));
        let stagings = [Staging::create(base.path()).unwrap(), Staging::create(base.path()).unwrap()];
        let kept = heart.keep_alive(&stagings[0]);
        let start = heart.state().last;
        let beats = |seconds| {
            for staging in &stagings {
                age(staging.path());
            }
            heart.beat_at(start + Duration::from_secs(seconds));
            [0, 1].map(|number: usize| is_fresh(stagings[number].path()))
        };
        assert_eq!(beats(19), [false, false]);
        assert_eq!(beats(20), [true, false]);
        assert_eq!(beats(39), [false, false]);
        assert_eq!(beats(41), [true, false]);
        drop(kept);
        assert_eq!(beats(90), [false, false]);
    }
}
