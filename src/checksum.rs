//! Checksums: SHA-256 of whole files, the first eight bytes of BLAKE3 for single records.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod lanes;

use std::fmt::Write as _;
use std::io::{self, Read as _, Write};
use std::ops::Range;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::cancel::CancelToken;
use crate::error::{Error, Result};
use crate::fs::open_regular;

/// Bytes read between two looks at the cancel token.
const READ_BYTES: usize = 1 << 20;

/// SHA-256 of bytes that arrive piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Sha256Hasher(Sha256);

impl Sha256Hasher {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `bytes` to what was hashed so far.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest as 64 lower-case hexadecimal characters.
    #[must_use]
    pub fn finish(self) -> String {
        lower_hex(&self.0.finalize())
    }
}

/// SHA-256 of `bytes` as 64 lower-case hexadecimal characters.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    lower_hex(&Sha256::digest(bytes))
}

/// The checksum of one record: the first eight bytes of BLAKE3 over all `parts` together, little endian.
#[must_use]
pub fn blake3_64(parts: &[&[u8]]) -> u64 {
    let hash = if let [only] = parts {
        blake3::hash(only)
    } else {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    };
    hash.as_bytes().first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
}

/// [`blake3_64`] of parts that may be long.
///
/// # Errors
/// [`Error::Interrupted`] soon after `cancel` was cancelled.
pub fn blake3_64_until(parts: &[&[u8]], cancel: &CancelToken) -> Result<u64> {
    let mut hasher = blake3::Hasher::new();
    for piece in parts.iter().flat_map(|part| part.chunks(UNTIL_BYTES)) {
        cancel.check()?;
        hasher.update(piece);
    }
    Ok(hasher.finalize().as_bytes().first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first)))
}

/// Bytes hashed between two looks at whether the hash is still wanted.
const UNTIL_BYTES: usize = 4 << 20;

/// Sets `sums` to [`blake3_64`] of each of the `records`, which are ranges of `buffer`: much faster than one by one
/// where they are short.
pub fn blake3_64_each(buffer: &[u8], records: &[Range<usize>], sums: &mut Vec<u64>) {
    #[cfg(target_arch = "x86_64")]
    lanes::fill(buffer, records, sums);
    #[cfg(not(target_arch = "x86_64"))]
    {
        sums.clear();
        sums.extend(records.iter().map(|record| blake3_64(&[buffer.get(record.clone()).unwrap_or_default()])));
    }
}

/// Passes everything on to a writer and hashes what that writer accepted.
#[derive(Debug)]
pub struct HashingWriter<W> {
    inner: W,
    hasher: Sha256Hasher,
}

impl<W: Write> HashingWriter<W> {
    /// Starts hashing in front of `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256Hasher::new() }
    }

    /// The writer, and the digest of all bytes that went through.
    pub fn finish(self) -> (W, String) {
        (self.inner, self.hasher.finish())
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let accepted = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..accepted).unwrap_or(bytes));
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// SHA-256 of a whole file in bounded memory.
///
/// # Errors
/// As [`open_regular`]; [`Error::File`] when it cannot be read, [`Error::Interrupted`] soon after `cancel` was cancelled.
pub fn hash_file(path: &Path, cancel: &CancelToken) -> Result<String> {
    let (mut file, _) = open_regular(path)?;
    let mut hasher = Sha256Hasher::new();
    let mut buffer = vec![0_u8; READ_BYTES];
    loop {
        cancel.check()?;
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::file("read", path, error)),
        };
        hasher.update(buffer.get(..count).unwrap_or(&buffer));
    }
}

fn lower_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
