//! Read-only memory maps of whole files: the one place that maps files.
#![expect(unsafe_code, reason = "mapping a file is unsafe because others may change the file")]

use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, Result};
use crate::fs::open_regular;

/// The bytes of a file, mapped read-only. The file descriptor is closed once the map exists.
///
/// Contract: files of a published cache are immutable. Truncating one under a live map ends the process with
/// `SIGBUS` on access, overwriting one changes bytes under readers; deleting it is harmless where the
/// file system keeps the data of open files.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which some systems refuse to map.
    map: Option<Mmap>,
    path: Box<Path>,
}

impl MappedFile {
    /// Maps `path` as it is now.
    ///
    /// # Errors
    /// As [`open_regular`]; [`Error::File`] when it cannot be mapped.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, metadata) = open_regular(path)?;
        let map = if metadata.len() == 0 {
            None
        } else {
            // SAFETY: the map is only read, as plain bytes for which every value is valid, and every structure
            // parsed from it is checked. That nobody truncates the file meanwhile is the contract above.
            Some(unsafe { Mmap::map(&file) }.map_err(|error| Error::file("map", path, error))?)
        };
        Ok(Self { map, path: path.into() })
    }

    /// The whole file.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// The path it was opened under.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}
