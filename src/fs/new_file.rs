//! A file that this process creates and fills.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::operation;
use crate::error::{Error, Result};

/// A file that did not exist before, open for writing and reading. As a [`Write`] it appends.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
}

impl NewFile {
    /// Creates the file.
    ///
    /// # Errors
    /// [`Error::File`] when it exists or cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = operation::create_file(path).map_err(|error| Error::file("create", path, error))?;
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Creates a file that loses its name at once: nothing of it can be left behind.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be created.
    pub fn create_unlinked(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = operation::create_file(path).map_err(|error| Error::file("create temporary file", path, error))?;
        operation::remove_file(path).map_err(|error| Error::file("unlink temporary file", path, error))?;
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Where it was created.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all `bytes` at `offset`, whatever was appended so far.
    ///
    /// # Errors
    /// [`Error::File`] when not all bytes could be written.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        operation::write_all_at(&self.file, &self.path, bytes, offset)
            .map_err(|error| Error::file("write", &self.path, error))
    }

    /// Reads as many bytes as `buffer` has, from `offset` on.
    ///
    /// # Errors
    /// [`Error::File`] when there are fewer, or they cannot be read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| Error::file("read", &self.path, error))
    }

    /// Gives it mode, owner and group of another file. Only the superuser may give files away, and others only to groups
    /// that they are in: what this process may not change stays.
    ///
    /// # Errors
    /// [`Error::File`] when something else is in the way.
    pub fn adopt(&self, other: &Metadata) -> Result<()> {
        operation::set_permissions(&self.file, &self.path, other.permissions())
            .map_err(|error| Error::file("set the mode of", &self.path, error))?;
        for owner in [Some(other.uid()), None] {
            match operation::set_owner(&self.file, &self.path, owner, other.gid()) {
                Err(error) if is_not_allowed(&error) => {}
                Err(error) => return Err(Error::file("set the owner of", &self.path, error)),
                Ok(()) => break,
            }
        }
        Ok(())
    }

    /// Makes the content durable.
    ///
    /// # Errors
    /// [`Error::File`] when the system cannot tell that it is.
    pub fn sync(&self) -> Result<()> {
        operation::sync(&self.file, &self.path).map_err(|error| Error::file("sync", &self.path, error))
    }
}

/// Whether there is no way for this process: missing rights, an owner that its user namespace does not know, or a file
/// system without owners.
fn is_not_allowed(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::EINVAL | libc::EOVERFLOW | libc::ENOSYS | libc::EOPNOTSUPP)
    )
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        operation::write(&self.file, &self.path, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
