//! Files that appear under their name only once they are whole: written beside it, synced, renamed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::stamp::process_lives;
use super::{NewFile, check_regular, directory_of, fill, operation, sync_dir};
use crate::error::{Error, Result};

/// Names that are tried before one that is taken is an error: ended processes may have left theirs.
const MOST_ATTEMPTS: u32 = 1000;

/// Around process number and attempt in the names of files in the making.
const PREFIX: &str = ".drt-";
const SUFFIX: &str = ".tmp";

/// A file in the making. Dropped before it is renamed, it leaves nothing.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NewFile,
    target: PathBuf,
    renamed: bool,
}

impl TemporaryFile {
    /// An empty file in the directory of `target`, which need not exist.
    ///
    /// # Errors
    /// [`Error::File`] for the directory when nothing can be created there.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
        let target = target.into();
        let mut left = MOST_ATTEMPTS;
        loop {
            let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
            let directory = directory_of(&target);
            let path = directory.join(format!("{PREFIX}{}-{attempt}{SUFFIX}", std::process::id()));
            left -= 1;
            match NewFile::create(&path) {
                Err(error) if left > 0 && is_taken(&error) => {}
                Err(Error::File { source, .. }) => return Err(Error::file("create a file in", directory, source)),
                created => return created.map(|file| Self { file, target, renamed: false }),
            }
        }
    }

    /// An empty file that is to take the place of what is at `path`, if anything is: with its mode, and with its owner and
    /// group as far as this process may give files away. A link stays a link.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`check_regular`]; [`Error::File`] when `path` cannot be looked at.
    pub fn replacing(path: &Path) -> Result<Self> {
        let found = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::create(path),
            found => found.map_err(|error| Error::file("inspect", path, error))?,
        };
        check_regular("replace", path, &found)?;
        let temporary = Self::create(fs::canonicalize(path).map_err(|error| Error::file("find", path, error))?)?;
        temporary.file.adopt(&found)?;
        Ok(temporary)
    }

    /// The file, to be filled.
    pub fn file(&mut self) -> &mut NewFile {
        &mut self.file
    }

    /// Writes all `bytes` and makes them durable.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn fill(&mut self, bytes: &[u8]) -> Result<()> {
        fill(&mut self.file, bytes)
    }

    /// Takes the place of what is at the target, if anything is. The rename itself is durable after a sync of the
    /// directory, which is returned.
    ///
    /// # Errors
    /// [`Error::File`]; the target is as it was.
    pub fn replace(mut self) -> Result<PathBuf> {
        operation::rename(self.file.path(), &self.target)
            .map_err(|error| Error::file("replace", &self.target, error))?;
        self.renamed = true;
        Ok(directory_of(&self.target).to_path_buf())
    }

    /// Appears at the target, which must be free, durably.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] when something is at the target, [`Error::File`] when a step fails. The file is not there
    /// then.
    pub fn publish(mut self) -> Result<()> {
        self.file.sync()?;
        operation::rename_file_no_replace(self.file.path(), &self.target).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::AlreadyExists {
                path: self.target.clone(),
                detail: "already exists and is never replaced; choose another directory".to_owned(),
            },
            _ => Error::file("publish", &self.target, error),
        })?;
        self.renamed = true;
        sync_dir(directory_of(&self.target)).inspect_err(|_| {
            let _ = operation::remove_file(&self.target);
        })
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.renamed {
            // Whatever kept the file from its place matters more.
            let _ = operation::remove_file(self.file.path());
        }
    }
}

/// Replaces `path` by a file with these bytes, as [`TemporaryFile::replacing`] says: a reader finds the old file or the whole
/// new one, also after a power cut.
///
/// # Errors
/// [`Error::File`] for any failed step; the old file is untouched unless only the last directory sync failed.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let mut temporary = TemporaryFile::replacing(path.as_ref())?;
    temporary.fill(bytes)?;
    sync_dir(temporary.replace()?)
}

/// Removes the files in the making that killed processes left in `directory`. Whatever cannot be removed stays.
///
/// Numbers of processes on other machines mean nothing here: nobody else may be at work in `directory`.
pub fn sweep_temporary_files(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_left = entry.file_name().to_str().and_then(owner).is_some_and(|process| !process_lives(process, 0));
        if is_left && entry.file_type().is_ok_and(|found| found.is_file()) {
            let _ = operation::remove_file(&entry.path());
        }
    }
}

/// The process that made a file of this name, if it is the name of one in the making.
fn owner(name: &str) -> Option<u32> {
    let (process, attempt) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(attempt)).then(|| process.parse().ok())?
}

fn is_taken(error: &Error) -> bool {
    error.io_source().is_some_and(|source| source.kind() == io::ErrorKind::AlreadyExists)
}
