//! Making a finished cache visible, all at once and never over something that exists.
#![expect(unsafe_code, reason = "the standard library has no rename that refuses to replace")]

use std::fs;
use std::io;
use std::path::Path;

use super::{MANIFEST_FILE, SHARDS_DIR, directory_of, sync_dir};
use crate::error::{Error, Result};

/// Renames the finished directory `staging` to `target`, which must not exist.
///
/// The files in it are expected to be synced already; this syncs the directories before and after. Of any number
/// of callers with the same target, on any number of machines, one succeeds.
///
/// # Errors
/// [`Error::AlreadyExists`] when something is at `target`, [`Error::File`] when a step fails. `staging` is still
/// there after an error, except when only the last sync failed.
pub fn publish(staging: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<()> {
    let (staging, target) = (staging.as_ref(), target.as_ref());
    let shards = staging.join(SHARDS_DIR);
    if shards.is_dir() {
        sync_dir(&shards)?;
    }
    sync_dir(staging)?;
    match rename_no_replace(staging, target) {
        Ok(()) => sync_dir(directory_of(target)),
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
    Some(if fs::symlink_metadata(target.join(MANIFEST_FILE)).is_ok() {
        "already exists: a complete cache; read it, or remove it to write it again"
    } else if found.is_dir() {
        "already exists: a directory without manifest.json, which is no complete cache; \
         move it away or write elsewhere"
    } else if found.is_file() {
        "already exists: a file, where a directory is to be made; move it away or write elsewhere"
    } else {
        "already exists: neither a file nor a directory; move it away or write elsewhere"
    })
}

/// Renames and fails when `target` exists, in one step where the system can do that.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn rename_no_replace(staging: &Path, target: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    let from = CString::new(staging.as_os_str().as_bytes())?;
    let to = CString::new(target.as_os_str().as_bytes())?;
    // Called by number: the wrapper is missing in C libraries that are still in use.
    // SAFETY: both paths are NUL-terminated and outlive the call, which only reads them.
    let code = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Old kernels, some sandboxes, and file systems without the flag (NFS among them).
        Some(libc::ENOSYS | libc::EINVAL | libc::EPERM) => rename_checked(staging, target),
        _ => Err(error),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn rename_no_replace(staging: &Path, target: &Path) -> io::Result<()> {
    rename_checked(staging, target)
}

/// The fallback: looks, then renames. Between the two somebody else may create `target`. That is harmless for everything
/// but an empty directory: renaming a directory over a file or over a directory with entries fails by itself,
/// and a complete cache has entries.
fn rename_checked(staging: &Path, target: &Path) -> io::Result<()> {
    if fs::symlink_metadata(target).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(staging, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c07_the_fallback_replaces_nothing_either() {
        let base = tempfile::tempdir().unwrap();
        let place = |name: &str| base.path().join(name);
        for directory in ["staging", "empty", "complete"] {
            fs::create_dir(place(directory)).unwrap();
        }
        for file in ["staging/manifest.json", "complete/manifest.json", "file"] {
            fs::write(place(file), file).unwrap();
        }
        for taken in ["file", "empty", "complete"] {
            let error = rename_checked(&place("staging"), &place(taken)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{taken}");
        }
        assert_eq!(fs::read_to_string(place("complete/manifest.json")).unwrap(), "complete/manifest.json");
        assert_eq!(fs::read_dir(place("empty")).unwrap().count(), 0);
        rename_checked(&place("staging"), &place("new")).unwrap();
        assert_eq!(fs::read_to_string(place("new/manifest.json")).unwrap(), "staging/manifest.json");
    }
}
