//! Making a finished cache visible, all at once and never over something that exists.

use std::fs;
use std::io;
use std::path::Path;

use super::{MANIFEST_FILE, SHARDS_DIR, directory_of, operation, sync_dir};
use crate::error::{Error, Result};

/// Renames the finished directory `staging` to `target`, which must not exist.
///
/// The files in it are expected to be synced already; this syncs the directories before and after. Of any number
/// of callers with the same target, on any number of machines, one succeeds.
///
/// # Errors
/// [`Error::AlreadyExists`] when something is at `target`, [`Error::File`] when a step fails. Then `staging` is still, or
/// again, where it was.
pub fn publish(staging: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<()> {
    let (staging, target) = (staging.as_ref(), target.as_ref());
    let shards = staging.join(SHARDS_DIR);
    if shards.is_dir() {
        sync_dir(&shards)?;
    }
    sync_dir(staging)?;
    match operation::rename_no_replace(staging, target) {
        Ok(()) => sync_dir(directory_of(target)).inspect_err(|_| {
            // A cache that a power cut may take away must not pass for written. If not even this works, it stays: whole.
            let _ = operation::rename_no_replace(target, staging);
        }),
        // A plain file in the way is ENOTDIR for the fallback, a directory with entries ENOTEMPTY or EEXIST.
        Err(error) => {
            Err(already_exists(target).unwrap_or_else(|| Error::file("publish the finished cache as", target, error)))
        }
    }
}

/// The error that `target` is taken, if something is there.
#[must_use]
pub fn already_exists(target: &Path) -> Option<Error> {
    what_is_there(target).map(|detail| Error::AlreadyExists { path: target.to_path_buf(), detail: detail.to_owned() })
}

/// What a person needs to know about the thing in the way, and `None` when nothing is.
fn what_is_there(target: &Path) -> Option<&'static str> {
    let found = fs::symlink_metadata(target).ok()?;
    let manifest = fs::symlink_metadata(target.join(MANIFEST_FILE));
    Some(if manifest.is_ok() {
        "already exists: a complete cache; read it, or remove it to write it again"
    } else if manifest.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        "already exists: cannot read what is in it, permission denied; ask its owner for access or write elsewhere"
    } else if found.is_dir() {
        "already exists: a directory without manifest.json, which is no complete cache; \
         move it away or write elsewhere"
    } else if found.is_file() {
        "already exists: a file, where a directory is to be made; move it away or write elsewhere"
    } else {
        "already exists: neither a file nor a directory; move it away or write elsewhere"
    })
}
