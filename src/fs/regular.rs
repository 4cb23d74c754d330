//! Files that somebody else made, opened for reading: what only looks like one is refused and never waited for.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::error::{Error, Result};

/// Opens a regular file and looks at it.
///
/// # Errors
/// [`Error::File`] when it cannot be opened or is a directory, [`Error::InvalidCache`] when it is neither.
pub fn open_regular(path: impl AsRef<Path>) -> Result<(File, Metadata)> {
    let path = path.as_ref();
    // Opening a named pipe would wait for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| Error::file("open", path, error))?;
    let found = file.metadata().map_err(|error| Error::file("inspect", path, error))?;
    check_regular("open", path, &found)?;
    Ok((file, found))
}

/// Refuses what is at `path` unless it is a regular file. `action` reads after "cannot".
///
/// # Errors
/// As [`open_regular`].
pub fn check_regular(action: &'static str, path: &Path, found: &Metadata) -> Result<()> {
    if found.is_dir() {
        return Err(Error::file(action, path, io::Error::from_raw_os_error(libc::EISDIR)));
    }
    if !found.is_file() {
        let kind = kind(found.file_type());
        return Err(Error::invalid_cache(
            path,
            format!("expected a regular file, found {kind}; restore the file from a copy"),
        ));
    }
    Ok(())
}

fn kind(found: FileType) -> &'static str {
    match found {
        found if found.is_fifo() => "a named pipe",
        found if found.is_char_device() || found.is_block_device() => "a device",
        _ => "something else",
    }
}
