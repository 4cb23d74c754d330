//! How a payload is stored within its record: verbatim, or as one LZ4 block behind its original length.

use super::{Damage, lz4_block};
use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::memory::reserve;

/// Bytes of the original length in front of an LZ4 block.
const LENGTH_BYTES: usize = 4;

/// The most bytes that one byte of an LZ4 block can stand for.
const LZ4_MAX_RATIO: usize = 255;

/// What is done to a payload before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionAlgo {
    /// Nothing.
    None,
    /// One LZ4 block for each record.
    Lz4,
}

/// The compression of a cache: `ratio` is what its writer was told to expect, kept for the record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compression {
    /// What is done to each payload.
    pub algo: CompressionAlgo,
    /// Finite and positive; exactly 1.0 without compression.
    pub ratio: f64,
}

impl Compression {
    /// Payloads stored verbatim.
    pub const NONE: Self = Self { algo: CompressionAlgo::None, ratio: 1.0 };
}

impl CompressionAlgo {
    /// The name used in manifests and configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
        }
    }

    /// The algorithm with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Lz4].into_iter().find(|algo| algo.as_str() == name)
    }

    /// Appends `payload` to `out` in its stored form.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when an LZ4 payload has 4 GiB or more, [`Error::OutOfMemory`], [`Error::Interrupted`] soon after
    /// `cancel` was cancelled; `out` is unchanged then.
    pub fn compress(self, payload: &[u8], out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
        match self {
            Self::None => {
                reserve(out, payload.len(), "a record")?;
                out.extend_from_slice(payload);
                Ok(())
            }
            Self::Lz4 => {
                self.check_payload_len(payload.len())?;
                let start = out.len();
                reserve(out, LENGTH_BYTES, "a compressed payload")?;
                // The check above is what makes this conversion whole.
                out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
                let appended = lz4_block::append(payload, lz4_block::PIECE_BYTES, out, cancel);
                if appended.is_err() {
                    out.truncate(start);
                }
                appended
            }
        }
    }

    /// Refuses early what [`compress`](Self::compress) would refuse.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when an LZ4 payload has 4 GiB or more.
    pub fn check_payload_len(self, len: usize) -> Result<()> {
        if self == Self::Lz4 && u32::try_from(len).is_err() {
            return Err(Error::InvalidValue(format!(
                "expected payloads below 4 GiB with lz4 compression, found one of {len} bytes; \
                 split it or use algo \"none\""
            )));
        }
        Ok(())
    }

    /// Length of the payload that `stored` stands for: what a caller has to allocate. Never more than the stored
    /// bytes could hold.
    ///
    /// # Errors
    /// [`Damage`] when the claimed length is impossible.
    #[inline]
    pub fn original_len(self, stored: &[u8]) -> std::result::Result<usize, Damage> {
        match self {
            Self::None => Ok(stored.len()),
            Self::Lz4 => {
                let (length, block) = split_length(stored)?;
                if block.is_empty() || length > block.len().saturating_mul(LZ4_MAX_RATIO) {
                    return Err(Damage(format!(
                        "the payload claims {length} bytes, which a compressed block of {} bytes cannot hold",
                        block.len()
                    )));
                }
                Ok(length)
            }
        }
    }

    /// Writes the payload that `stored` stands for over all of `payload`, whose length
    /// is what [`original_len`](Self::original_len) said.
    ///
    /// # Errors
    /// [`Damage`] when the stored bytes are not exactly one payload of that length; `payload` holds anything then.
    #[inline]
    pub fn decompress_into(self, stored: &[u8], payload: &mut [u8]) -> std::result::Result<(), Damage> {
        let found = match self {
            Self::None => {
                if stored.len() == payload.len() {
                    payload.copy_from_slice(stored);
                    return Ok(());
                }
                stored.len()
            }
            Self::Lz4 => {
                let (length, block) = split_length(stored)?;
                let written = lz4_flex::block::decompress_into(block, payload)
                    .map_err(|error| Damage(format!("the compressed payload is damaged: {error}")))?;
                if written == payload.len() && written == length {
                    return Ok(());
                }
                written
            }
        };
        Err(Damage(format!("expected a payload of {} bytes, found {found}", payload.len())))
    }
}

#[inline]
fn split_length(stored: &[u8]) -> std::result::Result<(usize, &[u8]), Damage> {
    let Some((length, block)) = stored.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(Damage(format!(
            "expected at least {LENGTH_BYTES} bytes before a compressed payload, found {}",
            stored.len()
        )));
    };
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|error| Damage(error.to_string()))?;
    Ok((length, block))
}
