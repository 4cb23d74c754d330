//! Removing what dead writers left unfinished.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::leftovers::{remove_unused, sweep_leftovers};
use super::staging::unique_name;
use super::stamp::Owner;
use super::{STAGING_DIR, StagingStamp, operation};
use crate::cancel::CancelToken;
use crate::error::{Error, Result};

/// A writer that cannot be looked for is dead when it has not touched its staging directory for so long.
const SILENCE_OF_THE_DEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// A staging directory that somebody stamped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampedStaging {
    /// The directory.
    pub path: PathBuf,
    /// Whether its writer is dead.
    pub is_dead: bool,
}

/// Finds the stamped staging directories below `<base>/tmp`, in the order of their names. Those that nobody stamped are
/// nobody's business.
///
/// # Errors
/// [`Error::File`] when the directory cannot be read; [`Error::Interrupted`] after `cancel` was cancelled.
pub fn find_staging(base: impl AsRef<Path>, cancel: &CancelToken) -> Result<Vec<StampedStaging>> {
    find_staging_from(&StagingStamp::current(), base.as_ref(), cancel)
}

/// What [`find_staging`] finds, where `here` is the stamp of this process.
fn find_staging_from(here: &StagingStamp, base: &Path, cancel: &CancelToken) -> Result<Vec<StampedStaging>> {
    let parent = base.join(STAGING_DIR);
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("read directory", &parent, error)),
    };
    let mut clock = None;
    let mut found = Vec::new();
    for entry in entries {
        cancel.check()?;
        let entry = entry.map_err(|error| Error::file("read directory", &parent, error))?;
        let Some(owner) = entry.file_name().to_str().and_then(StagingStamp::parse) else { continue };
        let path = entry.path();
        let is_dead = match here.look_for(&owner) {
            Owner::Alive => false,
            Owner::Dead => true,
            Owner::Elsewhere => {
                let now = *clock.get_or_insert_with(|| file_system_time(&parent));
                silence(&path, now) > SILENCE_OF_THE_DEAD
            }
        };
        found.push(StampedStaging { path, is_dead });
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Removes the staging directories below `<base>/tmp` whose writers are dead, and no others.
///
/// # Errors
/// [`Error::File`] for the first thing that cannot be removed, the rest is removed all the same; [`Error::Interrupted`]
/// after `cancel` was cancelled.
pub fn sweep(base: impl AsRef<Path>, cancel: &CancelToken) -> Result<()> {
    sweep_leftovers(base.as_ref());
    let parent = base.as_ref().join(STAGING_DIR);
    let here = StagingStamp::current();
    let mut swept = Ok(());
    for staging in find_staging_from(&here, base.as_ref(), cancel)? {
        cancel.check()?;
        if staging.is_dead {
            swept = swept.and(remove(&parent, &staging.path, &here));
        }
    }
    swept
}

/// Takes the directory away under a name of this process before removing it: several writers may sweep at once, one may
/// be killed while it does, and an owner that lives in spite of everything must find nothing rather than half of it.
fn remove(parent: &Path, staging: &Path, here: &StagingStamp) -> Result<()> {
    let taken = parent.join(unique_name(here));
    match operation::rename_no_replace(staging, &taken) {
        Ok(()) => remove_unused(&taken).map_err(|error| Error::file("remove directory", &taken, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::file("take away", staging, error)),
    }
}

/// Time since the last heartbeat. A directory that cannot be looked at counts as fresh.
fn silence(staging: &Path, now: SystemTime) -> Duration {
    let changed = fs::symlink_metadata(staging).and_then(|found| found.modified());
    changed.ok().and_then(|changed| now.duration_since(changed).ok()).unwrap_or_default()
}

/// The present by the clock that heartbeats are stamped with: the file server's, where there is one.
fn file_system_time(parent: &Path) -> SystemTime {
    let touched = operation::touch(parent).and_then(|()| fs::metadata(parent)).and_then(|found| found.modified());
    touched.unwrap_or_else(|_| SystemTime::now())
}
