//! How a dataset reads.

use crate::error::{Error, Result};

/// Configuration of a dataset, fixed when it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderConfig {
    /// Selects the stream of shuffled draws. All 64 bits count.
    pub seed: u64,
    /// The most samples an iterator prepares ahead of its consumer.
    pub prefetch_size: u64,
    /// Whether iterators draw by weight, or go through the table in order.
    pub shuffle: bool,
    /// Whether opening verifies every checksum.
    pub validate_cache: bool,
}

impl ReaderConfig {
    /// Shuffled reading with this seed, everything else at its default.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, prefetch_size: 64, shuffle: true, validate_cache: false }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when `prefetch_size` is not 1 ... 2^63-1.
    pub fn check(&self) -> Result<()> {
        Error::check_positive("prefetch_size", self.prefetch_size)
    }
}
