//! Every change that this library makes to a disk: one function for each kind, each of them a point where a test can let
//! it fail or kill the process.
#![expect(
    unsafe_code,
    reason = "the standard library lacks a rename that refuses to replace, and a touch of directories"
)]

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, fchown};
use std::path::Path;

use super::fault;

/// What an operation does, for those who choose where it is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A directory comes to be.
    CreateDir,
    /// A file comes to be.
    CreateFile,
    /// Bytes go to a file.
    Write,
    /// A file becomes durable.
    Sync,
    /// The entries of a directory become durable.
    SyncDir,
    /// A file or directory gets another name.
    Rename,
    /// A file loses its name.
    RemoveFile,
    /// A directory goes with all that is in it.
    RemoveDir,
    /// A directory is marked as in use.
    Touch,
    /// A file gets another mode.
    SetMode,
    /// A file gets another owner or group.
    SetOwner,
}

pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    fault::point(Operation::CreateDir, path)?;
    fs::create_dir(path)
}

/// Creates a file that must not exist yet, for writing and reading.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    fault::point(Operation::CreateFile, path)?;
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Writes at the position of the file; may take fewer bytes than given.
pub(super) fn write(file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
    let room = fault::write_point(path, bytes.len())?;
    io::Write::write(&mut &*file, bytes.get(..room).unwrap_or(bytes))
}

/// Writes all bytes at `offset`, whatever the position of the file is.
pub(super) fn write_all_at(file: &File, path: &Path, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let room = fault::write_point(path, bytes.len())?;
        match file.write_at(bytes.get(..room).unwrap_or(bytes), offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = bytes.get(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn sync(file: &File, path: &Path) -> io::Result<()> {
    fault::point(Operation::Sync, path)?;
    file.sync_all()
}

/// Makes the entries of a directory durable, where the file system knows such a thing.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    fault::point(Operation::SyncDir, path)?;
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Some network and user-space file systems have no such call for directories: nothing more can be done there.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// Renames a file over whatever has the new name.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fault::point(Operation::Rename, to)?;
    fs::rename(from, to)
}

/// Renames a directory and fails when `to` exists, in one step where the system can do that.
pub(super) fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    rename_or(rename_checked, from, to)
}

/// Renames a file and fails when `to` exists, in one step where the system can do that.
pub(super) fn rename_file_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    rename_or(link_and_unlink, from, to)
}

fn rename_or(fallback: fn(&Path, &Path) -> io::Result<()>, from: &Path, to: &Path) -> io::Result<()> {
    fault::point(Operation::Rename, to)?;
    match rename_in_one_step(from, to) {
        // Old kernels, some sandboxes, and file systems without the flag (NFS among them).
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM)) => {
            fallback(from, to)
        }
        other => other,
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn rename_in_one_step(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (c_path(from)?, c_path(to)?);
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
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn rename_in_one_step(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// The fallback for directories: looks, then renames. Between the two somebody else may create `to`. That is harmless for everything
/// but an empty directory: renaming a directory over a file or over a directory with entries fails by itself,
/// and a complete cache has entries.
fn rename_checked(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// The fallback for files: a link replaces nothing. Where there are no links either, it looks and then renames.
fn link_and_unlink(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        // The file is in place; a second name for it does no harm.
        Ok(()) => fs::remove_file(from).or(Ok(())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => rename_checked(from, to),
    }
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    fault::point(Operation::RemoveFile, path)?;
    fs::remove_file(path)
}

pub(super) fn remove_dir_all(path: &Path) -> io::Result<()> {
    fault::point(Operation::RemoveDir, path)?;
    fs::remove_dir_all(path)
}

/// Sets the time of the last change to now, by the clock of the file system.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    fault::point(Operation::Touch, path)?;
    let path = c_path(path)?;
    // SAFETY: the path is NUL-terminated and outlives the call, which only reads it; without times it takes the present.
    let code = unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), std::ptr::null(), 0) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn set_permissions(file: &File, path: &Path, permissions: fs::Permissions) -> io::Result<()> {
    fault::point(Operation::SetMode, path)?;
    file.set_permissions(permissions)
}

/// Changes the owner, unless that is `None`, and the group.
pub(super) fn set_owner(file: &File, path: &Path, owner: Option<u32>, group: u32) -> io::Result<()> {
    fault::point(Operation::SetOwner, path)?;
    fchown(file, owner, Some(group))
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
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
        for taken in ["file", "empty", "complete"] {
            let error = link_and_unlink(&place("staging/manifest.json"), &place(taken)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{taken}");
        }
        link_and_unlink(&place("file"), &place("moved")).unwrap();
        assert_eq!((place("file").exists(), fs::read_to_string(place("moved")).unwrap()), (false, "file".to_owned()));
        rename_checked(&place("staging"), &place("new")).unwrap();
        assert_eq!(fs::read_to_string(place("new/manifest.json")).unwrap(), "staging/manifest.json");
    }
}
