//! The one error type of the crate. Variants say what the caller can do about it; every file error names its path.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::ids::{CacheId, SampleId};

/// Result of every fallible operation of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Range of numbers of things: what every language's signed 64-bit integer can hold.
pub const POSITIVE: &str = "1 ... 2^63-1";

/// Most characters of a text that somebody else made within one message.
const MAX_EXCERPT_CHARS: usize = 2000;

/// A text of any length as a message may show it: from a certain length on, its beginning and how long it is.
#[must_use]
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let start = text.get(..end).unwrap_or_default();
            Cow::Owned(format!("{start}... ({} characters)", text.chars().count()))
        }
    }
}

/// What went wrong. Messages are lower case and name the file or argument, what was expected,
/// what was found and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument, a table or a source has a value that is not acceptable: change the value.
    #[error("{0}")]
    InvalidValue(String),

    /// An argument or a sample has the wrong type: pass another type.
    #[error("{0}")]
    WrongType(String),

    /// The operating system refused a file operation.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was attempted, as a verb phrase that reads after "cannot": `create`, `rename to`.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The reason, with its `errno` where the system gave one.
        #[source]
        source: io::Error,
    },

    /// A file of a cache is damaged, incomplete or of an unknown version.
    #[error("{}: {detail}", path.display())]
    InvalidCache {
        /// The file or directory concerned.
        path: PathBuf,
        /// What was expected and what was found.
        detail: String,
    },

    /// The place where a cache should be written is taken.
    #[error("{}: {detail}", path.display())]
    AlreadyExists {
        /// The place that is taken.
        path: PathBuf,
        /// What is there, and what to do.
        detail: String,
    },

    /// No sample has these ids.
    #[error("{0}")]
    UnknownSample(String),

    /// One sample could not be read; the others are not concerned.
    #[error("sample {sample_id} of cache {cache_id} in {}: {source}", cache_path.display())]
    Sample {
        /// Directory of the cache.
        cache_path: PathBuf,
        /// Identity of the cache.
        cache_id: CacheId,
        /// Physical row within the cache.
        sample_id: SampleId,
        /// Why it could not be read.
        #[source]
        source: Box<Error>,
    },

    /// The system gives no more memory.
    #[error("cannot allocate {bytes} bytes for {purpose}; free memory or work on less at once")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
        /// What for, as a noun phrase.
        purpose: &'static str,
    },

    /// The object was closed, or was inherited through `fork`: make a new one.
    #[error("{0}")]
    Unusable(String),

    /// A task panicked: a bug of this library, confined to the operation that ran it.
    #[error("internal error in a worker thread: {0}; please report it")]
    Panicked(String),

    /// The caller asked to stop, or something that only the caller can explain happened while it was called back.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Wraps an operating-system error for `path`; `action` reads after "cannot".
    pub fn file(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::File { action, path: path.as_ref().to_path_buf(), source }
    }

    /// An argument outside its range, which is given as users read it.
    pub fn out_of_range(argument: &str, range: &str, found: impl std::fmt::Display) -> Self {
        Self::InvalidValue(format!("{argument} must be {range}, found {found}"))
    }

    /// Checks that `found` is within [`POSITIVE`].
    ///
    /// # Errors
    /// [`Error::InvalidValue`] that names the argument.
    pub fn check_positive(argument: &str, found: u64) -> Result<()> {
        if found == 0 || i64::try_from(found).is_err() {
            return Err(Self::out_of_range(argument, POSITIVE, found));
        }
        Ok(())
    }

    /// Damage found in `path`.
    pub fn invalid_cache(path: impl AsRef<Path>, detail: impl Into<String>) -> Self {
        Self::InvalidCache { path: path.as_ref().to_path_buf(), detail: detail.into() }
    }

    /// What went wrong with many samples at once, once more for each of them.
    #[must_use]
    pub fn for_each(&self) -> Self {
        match self {
            Self::Panicked(text) => Self::Panicked(text.clone()),
            other => Self::Unusable(other.to_string()),
        }
    }

    /// The operating-system error at the bottom of this one, if there is one.
    #[must_use]
    pub fn io_source(&self) -> Option<&io::Error> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Sample { source, .. } => source.io_source(),
            _ => None,
        }
    }
}
