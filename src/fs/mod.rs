//! Files of a cache: their names, and the few ways in which files come to exist. Whatever this library changes on a disk
//! it changes through here.

#[cfg(feature = "faults")]
pub mod fault;
#[cfg(not(feature = "faults"))]
#[path = "no_fault.rs"]
mod fault;
mod heartbeat;
mod leftovers;
mod new_file;
mod operation;
mod publish;
mod regular;
mod spool;
mod staging;
mod stamp;
mod sweep;
mod temporary;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use heartbeat::{Heart, KeptAlive};
pub use leftovers::{has_leftovers, sweep_leftovers};
pub use new_file::NewFile;
pub use operation::Operation;
pub use publish::{already_exists, publish};
pub use regular::{check_regular, open_regular};
pub use spool::Spools;
pub use staging::Staging;
pub use stamp::StagingStamp;
pub use sweep::{StampedStaging, find_staging, sweep};
pub use temporary::{TemporaryFile, sweep_temporary_files, write_atomic};

use crate::error::{Error, Result};

/// Describes a cache; its presence means that the cache is complete.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Metadata of all samples as an Arrow table.
pub const METADATA_FILE: &str = "metadata.arrow";
/// Where each record lies.
pub const INDEX_FILE: &str = "index.bin";
/// One checksum for each record.
pub const CHECKSUMS_FILE: &str = "checksums.bin";
/// Directory of the shards within a cache.
pub const SHARDS_DIR: &str = "shards";
/// Directory beside the caches that holds unfinished ones.
pub const STAGING_DIR: &str = "tmp";

/// File name of a shard: at least six digits.
#[must_use]
pub fn shard_name(shard: u64) -> String {
    format!("{shard:06}.bin")
}

/// A path that names the same place whatever the working directory is later. An empty one is the working directory.
///
/// # Errors
/// [`Error::File`] when the path is relative and there is no working directory.
pub fn absolute(path: impl AsRef<Path>) -> Result<PathBuf> {
    let path = path.as_ref();
    if path.is_absolute() {
        return Ok(path.to_path_buf());
    }
    let directory = std::env::current_dir().map_err(|error| Error::file("find the directory of", path, error))?;
    Ok(directory.join(path).components().collect())
}

/// Creates a directory that must not exist yet, in one that does.
///
/// # Errors
/// [`Error::File`] when it exists or cannot be created.
pub fn create_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    operation::create_dir(path).map_err(|error| Error::file("create directory", path, error))
}

/// Creates a directory unless it exists, and before it those that it lies in; durable ones.
///
/// # Errors
/// [`Error::File`] for the one that cannot be created or made durable.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    let parent = directory_of(path);
    if parent != path {
        create_dir_all(parent)?;
    }
    match operation::create_dir(path) {
        Ok(()) => sync_dir(parent),
        // Somebody else was faster, or the path ends in `..`.
        Err(_) if path.is_dir() => Ok(()),
        // A file, or a link that leads nowhere.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = "not a directory; move it away, or choose another directory";
            let why = path.metadata().err().unwrap_or_else(|| io::Error::new(io::ErrorKind::NotADirectory, text));
            Err(Error::file("use as a directory", path, why))
        }
        Err(error) => Err(Error::file("create directory", path, error)),
    }
}

/// Writes a durable file that must not exist yet.
///
/// # Errors
/// [`Error::File`] when it exists or cannot be written or synced.
pub fn write_new(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    fill(&mut NewFile::create(path)?, bytes)
}

/// Makes the entries of a directory durable.
///
/// # Errors
/// [`Error::File`] when the directory cannot be opened or synced.
pub fn sync_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    operation::sync_dir(path).map_err(|error| Error::file("sync directory", path, error))
}

/// Removes a file.
///
/// # Errors
/// [`Error::File`] when it is not there or the system refuses.
pub fn remove_file(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    operation::remove_file(path).map_err(|error| Error::file("remove", path, error))
}

fn fill(file: &mut NewFile, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|error| Error::file("write", file.path(), error))?;
    file.sync()
}

/// The directory that holds `path`, in a form that can be opened.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}
