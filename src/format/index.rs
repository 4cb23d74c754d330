//! `index.bin`: where each record lies. Nothing in a row is trusted before it was compared with its shard.

use std::path::Path;

use crate::error::{Error, Result};
use crate::mapped::MappedFile;
use crate::prefetch::prefetch;

/// Bytes of one row.
pub const ROW_BYTES: usize = 24;

/// Place of one record: three little-endian integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexRow {
    /// Position of the shard in the manifest.
    pub shard: u64,
    /// First byte of the record within the shard.
    pub offset: u64,
    /// Bytes of the whole record, envelope and stored payload.
    pub length: u64,
}

impl IndexRow {
    /// The row as it is stored.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (word, value) in words.iter_mut().zip([self.shard, self.offset, self.length]) {
            *word = value.to_le_bytes();
        }
        bytes
    }

    /// The row that is stored as these bytes.
    #[must_use]
    #[inline]
    pub fn from_bytes(bytes: &[u8; ROW_BYTES]) -> Self {
        let [s0, s1, s2, s3, s4, s5, s6, s7, o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3, l4, l5, l6, l7] = *bytes;
        Self {
            shard: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            offset: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length: u64::from_le_bytes([l0, l1, l2, l3, l4, l5, l6, l7]),
        }
    }
}

/// The mapped index of a cache.
#[derive(Debug)]
pub struct Index(MappedFile);

impl Index {
    /// Maps the index and compares its length with the number of rows that the manifest promises.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be mapped, [`Error::InvalidCache`] when it has another length.
    pub fn open(path: impl AsRef<Path>, rows: u64) -> Result<Self> {
        let map = MappedFile::open(&path)?;
        let expected = rows.checked_mul(ROW_BYTES as u64);
        if expected != u64::try_from(map.len()).ok() {
            return Err(Error::invalid_cache(
                path,
                format!(
                    "expected {ROW_BYTES} bytes for each of {rows} samples, found a file of {} bytes; \
                     write the cache again",
                    map.len()
                ),
            ));
        }
        Ok(Self(map))
    }

    /// All rows as stored.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[[u8; ROW_BYTES]] {
        self.0.as_chunks().0
    }

    /// Number of rows.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// The row of one sample.
    #[must_use]
    #[inline]
    pub fn get(&self, row: u64) -> Option<IndexRow> {
        self.rows().get(usize::try_from(row).ok()?).map(IndexRow::from_bytes)
    }

    /// Asks for the memory of one row ahead of time.
    #[inline]
    pub fn prefetch(&self, row: u64) {
        if let Some(row) = usize::try_from(row).ok().and_then(|row| self.rows().get(row)) {
            prefetch(row);
        }
    }
}
