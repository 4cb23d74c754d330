//! Directories for unfinished caches, stamped with their owner in the name so that no unstamped moment exists.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::leftovers::remove_unused;
use super::{STAGING_DIR, StagingStamp, create_dir_all, operation, publish};
use crate::error::{Error, Result};

/// An unfinished cache. Dropping it removes the directory unless it was published.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    /// The process that may remove it: a forked child inherits this value but not the directory.
    owner: u32,
    finished: bool,
}

impl Staging {
    /// Makes a new directory below `<base>/tmp`, and those two where they are missing.
    ///
    /// # Errors
    /// [`Error::File`] when a directory cannot be made.
    pub fn create(base: impl AsRef<Path>) -> Result<Self> {
        let parent = base.as_ref().join(STAGING_DIR);
        create_dir_all(&parent)?;
        let stamp = StagingStamp::current();
        loop {
            let path = parent.join(unique_name(&stamp));
            match operation::create_dir(&path) {
                Ok(()) => return Ok(Self { path, owner: stamp.process, finished: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::file("create directory", &path, error)),
            }
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the directory to `target`: see [`publish`](super::publish). It is removed when that fails.
    ///
    /// # Errors
    /// Those of [`publish`](super::publish).
    pub fn publish(mut self, target: impl AsRef<Path>) -> Result<()> {
        publish(&self.path, target)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.finished && self.owner == std::process::id() {
            // An error that led here is the one to report, not this one.
            let _ = remove_unused(&self.path);
        }
    }
}

/// A name for a directory of this owner that no other has.
pub(super) fn unique_name(stamp: &StagingStamp) -> String {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    // The counter makes names unique within this process, the time between copies of the library in it.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    stamp.directory_name(&format!("{nanos:x}-{attempt:x}"))
}
