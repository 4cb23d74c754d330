//! Files of a cache: their names, and the few ways in which files come to exist.

mod publish;
mod spool;
mod staging;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub use publish::{already_exists, publish};
pub use spool::Spools;
pub use staging::{Staging, StagingStamp, remove_staging_of};

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

/// Creates a file for writing that must not exist yet.
///
/// # Errors
/// [`Error::File`] when it exists or cannot be created.
pub fn create_new(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| Error::file("create", path, error))
}

/// Creates a directory that must not exist yet, in one that does.
///
/// # Errors
/// [`Error::File`] when it exists or cannot be created.
pub fn create_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    fs::create_dir(path).map_err(|error| Error::file("create directory", path, error))
}

/// Writes all `bytes` at `offset`, whatever the file's position is; `path` is for messages only.
///
/// # Errors
/// [`Error::File`] when not all bytes could be written.
pub fn write_at(file: &File, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    file.write_all_at(bytes, offset).map_err(|error| Error::file("write", path, error))
}

/// Makes the content of a file durable; `path` is for messages only.
///
/// # Errors
/// [`Error::File`] when the system cannot tell that it is.
pub fn sync_file(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|error| Error::file("sync", path, error))
}

/// Writes a durable file that must not exist yet.
///
/// # Errors
/// [`Error::File`] when it exists or cannot be written or synced.
pub fn write_new(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    write_synced(create_new(path)?, bytes).map_err(|error| Error::file("write", path, error))
}

/// Makes the entries of a directory durable.
///
/// # Errors
/// [`Error::File`] when the directory cannot be opened or synced.
pub fn sync_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    match synced {
        // Some network and user-space file systems have no such call for directories: nothing more can be done there.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(|error| Error::file("sync directory", path, error)),
    }
}

/// Replaces `path` by a file with these bytes: a reader finds the old file or the whole new one, also after
/// a power cut.
///
/// # Errors
/// [`Error::File`] for any failed step; the old file is untouched unless only the last directory sync failed.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let path = path.as_ref();
    let directory = directory_of(path);
    let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".drt-{}-{attempt}.tmp", std::process::id()));
    let replaced = create_new(&temporary).and_then(|file| {
        write_synced(file, bytes)
            .map_err(|error| Error::file("write", &temporary, error))
            .and_then(|()| fs::rename(&temporary, path).map_err(|error| Error::file("replace", path, error)))
            .inspect_err(|_| {
                // The first error is the one that matters.
                let _ = fs::remove_file(&temporary);
            })
    });
    replaced.and_then(|()| sync_dir(directory))
}

fn write_synced(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// The directory that holds `path`, in a form that can be opened.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}
