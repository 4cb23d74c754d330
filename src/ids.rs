//! Identities: caches, samples, and the source names that caches are called after.

use std::fmt;

use caseless::Caseless as _;
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, Result, excerpt};

/// Identity of a cache, stored in a version 3 manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheId(pub u64);

impl CacheId {
    /// The identity given to a new cache: the first eight bytes of SHA-256 over the name, as a big-endian
    /// integer with the highest bit cleared.
    #[must_use]
    pub fn of_source_name(name: &str) -> Self {
        let digest = Sha256::digest(name.as_bytes());
        let mut first = [0_u8; 8];
        for (byte, digest_byte) in first.iter_mut().zip(digest.iter()) {
            *byte = *digest_byte;
        }
        Self(u64::from_be_bytes(first) & (u64::MAX >> 1))
    }
}

impl fmt::Display for CacheId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Physical row of a sample within its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleId(pub u64);

impl fmt::Display for SampleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A source name that is a plain path segment, so that `<base>/<name>` is a directory of its own on every system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceName(String);

/// Longest source name, in UTF-8 bytes: what common file systems accept as one path segment.
const MAX_NAME_BYTES: usize = 255;

impl SourceName {
    /// Checks `name`.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when it is empty, `.`, `..`, `tmp` in any case, contains `/`, `\` or NUL,
    /// or is longer than 255 bytes.
    pub fn new(name: &str) -> Result<Self> {
        let fault = if name.is_empty() {
            "must not be empty"
        } else if name == "." || name == ".." {
            "must not be a relative directory"
        } else if name.eq_ignore_ascii_case("tmp") {
            "must not be \"tmp\" in any case, which holds unfinished caches"
        } else if name.contains(['/', '\\', '\0']) {
            "must be a plain path segment without \"/\", \"\\\" or NUL"
        } else if name.len() > MAX_NAME_BYTES {
            "must have at most 255 UTF-8 bytes"
        } else {
            return Ok(Self(name.to_owned()));
        };
        Err(Error::InvalidValue(format!("source name {:?} {fault}; rename the source", excerpt(name))))
    }

    /// The name as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key that is equal for names which some file system would treat as the same: NFC and full Unicode
    /// case folding together (canonical caseless matching, Unicode Standard section 3.13, D145).
    #[must_use]
    pub fn collision_key(&self) -> String {
        self.0.nfd().default_case_fold().nfc().collect()
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
