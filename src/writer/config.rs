//! What a caller may choose about a write.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::format::compression::{Compression, CompressionAlgo};

/// Settings of one write. The defaults are those of the Python configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct WriterConfig {
    /// Upper bound of the jobs in flight; the number of native threads is the other one.
    pub prefetch_size: u64,
    /// A shard is rotated before it would grow beyond this, unless it is empty.
    pub max_shard_bytes: u64,
    /// What is done to each payload.
    pub compression: Compression,
    /// Whether the caller wants its progress drawn; the core only passes this on.
    pub show_progress: bool,
    /// Whether checksums are verified before an existing cache is reused.
    pub validate_cache: bool,
    /// Where to write the timing of the stages as JSON.
    pub profiler: Option<PathBuf>,
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self {
            prefetch_size: 64,
            max_shard_bytes: 64 * 1024 * 1024,
            compression: Compression::NONE,
            show_progress: true,
            validate_cache: false,
            profiler: None,
        }
    }
}

impl WriterConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a size outside 1 ... 2^63-1 or an impossible compression ratio.
    pub fn check(&self) -> Result<()> {
        Error::check_positive("prefetch_size", self.prefetch_size)?;
        Error::check_positive("max_shard_bytes", self.max_shard_bytes)?;
        let Compression { algo, ratio } = self.compression;
        if !(ratio.is_finite() && ratio > 0.0) {
            return Err(Error::InvalidValue(format!("compression ratio must be finite and positive, found {ratio}")));
        }
        // Stored in the manifest, where readers expect exactly this number.
        #[expect(clippy::float_cmp, reason = "exactly 1.0 is the rule")]
        if algo == CompressionAlgo::None && ratio != 1.0 {
            return Err(Error::InvalidValue(format!(
                "compression ratio must be 1.0 with algo \"none\", found {ratio}; use algo \"lz4\" or ratio 1.0"
            )));
        }
        Ok(())
    }
}
