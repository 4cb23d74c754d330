//! Checksums of records as they are on disk: many short ones with one read, and side by side.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use crate::cancel::CancelToken;
use crate::checksum::blake3_64_each;
use crate::error::{Error, Result};
use crate::format::index::IndexRow;
use crate::fs::open_regular;
use crate::reader::cache::Cache;

/// Bytes of a shard in memory at once, for each thread. They stay in its cache between being read and being hashed.
const BUFFER_BYTES: usize = 256 << 10;

/// Most records of one run.
const RUN_RECORDS: usize = 4096;

/// Records that are read together: all lie in one shard, close behind the start of the first one. A long record is alone.
pub(super) struct Run {
    records: Vec<IndexRow>,
    /// Bytes of all records: more than are read if they overlap.
    bytes: u64,
}

impl Run {
    pub(super) fn new(first: IndexRow) -> Self {
        Self { bytes: first.length, records: vec![first] }
    }

    /// Adds a record if it can be read together with the others. Returns whether it can.
    pub(super) fn extend(&mut self, record: IndexRow) -> bool {
        let most = BUFFER_BYTES as u64;
        let fits = self.records.len() < RUN_RECORDS
            && self.bytes + record.length <= most
            && self.records.first().is_some_and(|first| {
                first.shard == record.shard
                    && first.offset <= record.offset
                    && record.offset + record.length - first.offset <= most
            });
        if fits {
            self.records.push(record);
            self.bytes += record.length;
        }
        fits
    }

    /// Bytes of all its records.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The records, at least one.
    pub(super) fn records(&self) -> &[IndexRow] {
        &self.records
    }
}

/// Reads runs of records of a cache.
pub(super) struct RecordSums<'a> {
    cache: &'a Cache,
    /// Number and file of the shard that was read last.
    open: Option<(u64, File)>,
    buffer: Vec<u8>,
    ranges: Vec<Range<usize>>,
    sums: Vec<u64>,
}

impl<'a> RecordSums<'a> {
    pub(super) fn new(cache: &'a Cache) -> Self {
        Self { cache, open: None, buffer: vec![0; BUFFER_BYTES], ranges: Vec::new(), sums: Vec::new() }
    }

    /// Checksums of the records of the run that was read last, as far as they could be read.
    pub(super) fn get(&self) -> &[u64] {
        &self.sums
    }

    /// Reads and hashes the records of `run`, which lie within their shard.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::InvalidCache`] about the first record that could not be read; those before it have been
    /// hashed. [`Error::Interrupted`] soon after `cancel` was cancelled.
    pub(super) fn read(&mut self, run: &Run, cancel: &CancelToken) -> Result<()> {
        self.sums.clear();
        let records = run.records();
        let Some(IndexRow { shard, offset: start, length }) = records.first().copied() else { return Ok(()) };
        if length > BUFFER_BYTES as u64 {
            let sum = self.hash_long(shard, start..start + length, cancel)?;
            self.sums.push(sum);
            return Ok(());
        }
        let end = records.iter().map(|record| record.offset + record.length).max().unwrap_or(start);
        let (read, outcome) = self.fill(shard, start..end);
        let within = |record: &IndexRow| {
            let first = usize::try_from(record.offset - start).ok()?;
            let end = first.checked_add(usize::try_from(record.length).ok()?)?;
            (end <= read).then_some(first..end)
        };
        self.ranges.clear();
        self.ranges.extend(records.iter().map_while(within));
        blake3_64_each(&self.buffer, &self.ranges, &mut self.sums);
        if self.sums.len() < records.len() { outcome } else { Ok(()) }
    }

    /// The checksum of a record that does not fit into the buffer.
    fn hash_long(&mut self, shard: u64, mut bytes: Range<u64>, cancel: &CancelToken) -> Result<u64> {
        let mut hasher = blake3::Hasher::new();
        while !bytes.is_empty() {
            cancel.check()?;
            let (read, outcome) = self.fill(shard, bytes.start..bytes.end.min(bytes.start + BUFFER_BYTES as u64));
            outcome?;
            hasher.update(self.buffer.get(..read).unwrap_or_default());
            bytes.start += read as u64;
        }
        Ok(hasher.finalize().as_bytes().first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// Reads bytes of a shard, which the buffer has room for. Gives how many could be read, and why not all of them.
    fn fill(&mut self, shard: u64, bytes: Range<u64>) -> (usize, Result<()>) {
        let mut read = 0;
        let outcome = self.try_fill(shard, &bytes, &mut read);
        (read, outcome)
    }

    fn try_fill(&mut self, shard: u64, bytes: &Range<u64>, read: &mut usize) -> Result<()> {
        let path = || shard_path(self.cache, shard);
        let mut file = match self.open.take() {
            Some((open, file)) if open == shard => file,
            _ => open_regular(path())?.0,
        };
        let len = usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX);
        let target = self.buffer.get_mut(..len).unwrap_or_default();
        file.seek(SeekFrom::Start(bytes.start)).map_err(|error| Error::file("read", path(), error))?;
        while let Some(rest) = target.get_mut(*read..).filter(|rest| !rest.is_empty()) {
            match file.read(rest) {
                Ok(0) => {
                    let found = bytes.start + *read as u64;
                    return Err(Error::invalid_cache(
                        path(),
                        format!("expected more than {found} bytes; write the cache again"),
                    ));
                }
                Ok(count) => *read += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::file("read", path(), error)),
            }
        }
        self.open = Some((shard, file));
        Ok(())
    }
}

pub(super) fn shard_path(cache: &Cache, shard: u64) -> PathBuf {
    let file = usize::try_from(shard).ok().and_then(|shard| cache.shard_file(shard));
    file.map(|file| file.path).unwrap_or_default()
}
