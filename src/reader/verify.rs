//! Verifies every checksum of a cache, on all threads of the pool and in bounded memory.
//!
//! Where a cache has checksums of its records, and its manifest one of its own, the records stand for the shards they
//! fill: they name the damaged sample, and any number of threads can check one shard. Otherwise whole shards are hashed.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::cancel::{CancelToken, Waiter};
use crate::checksum::hash_file;
use crate::error::{Error, Result};
use crate::format::index::IndexRow;
use crate::format::manifest::{FormatVersion, Manifest};
use crate::fs::{INDEX_FILE, MANIFEST_FILE, METADATA_FILE, open_regular};
use crate::mapped::MappedFile;
use crate::pool::{WorkerPool, map_blocks, run_all};
use crate::reader::cache::Cache;

/// Bytes of records that one task checks, about.
const BLOCK_BYTES: u64 = 16 << 20;

/// Bytes of a shard in memory at once, for each thread. They stay in its cache between being read and being hashed.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes of one record checksum.
const CHECKSUM_BYTES: usize = 8;

/// Records checked between two looks at the cancel token.
const RECORDS_PER_LOOK: usize = 1024;

/// Compares everything in `cache` with the checksums of its manifest.
///
/// # Errors
/// [`Error::InvalidCache`] for a damaged file, [`Error::Sample`] for a damaged record, [`Error::File`] when something cannot
/// be read, [`Error::Interrupted`] from `waiter`.
pub fn verify(cache: &Cache, manifest: &Manifest, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<()> {
    let manifest_path = cache.path().join(MANIFEST_FILE);
    let sealed = manifest.version == FormatVersion::V3 && manifest.manifest_checksum.is_some();
    if sealed {
        Manifest::verify_checksum(&manifest_path, MappedFile::open(&manifest_path)?.as_slice())?;
    }
    let mut files = vec![
        (cache.path().join(METADATA_FILE), manifest.metadata_sha256.as_str()),
        (cache.path().join(INDEX_FILE), manifest.index_sha256.as_str()),
    ];
    let mut records = None;
    if let Some(stated) = &manifest.record_checksums {
        let checksums = RecordChecks::open(cache, cache.path().join(&stated.file))?;
        files.push((cache.path().join(&stated.file), stated.sha256.as_str()));
        records = Some(checksums);
    }
    let record_blocks = records.as_ref().map_or(0, RecordChecks::blocks);
    let small = files.len();
    let in_order =
        map_blocks(pool, waiter, small + record_blocks, &|block, cancel| match (files.get(block), &records) {
            (Some((path, expected)), _) => check_file(path, expected, cancel).map(|()| true),
            (None, Some(records)) => records.check_block(block - small, cancel),
            (None, None) => Ok(true),
        })?;
    if sealed && records.is_some() && in_order.into_iter().all(|in_order| in_order) {
        return Ok(());
    }
    run_all(pool, waiter, manifest.shards.len(), &|shard, cancel| match (
        cache.shard_file(shard),
        manifest.shards.get(shard),
    ) {
        (Some(file), Some(entry)) => check_file(&file.path, &entry.sha256, cancel),
        _ => Ok(()),
    })
}

fn check_file(path: &Path, expected: &str, cancel: &CancelToken) -> Result<()> {
    let found = hash_file(path, cancel)?;
    if found == expected {
        return Ok(());
    }
    Err(Error::invalid_cache(
        path,
        format!("the file is damaged: expected sha256 {expected}, found {found}; write the cache again"),
    ))
}

/// The checksums of all records of a cache.
struct RecordChecks<'a> {
    cache: &'a Cache,
    sums: MappedFile,
    rows_per_block: usize,
}

impl<'a> RecordChecks<'a> {
    fn open(cache: &'a Cache, path: PathBuf) -> Result<Self> {
        let sums = MappedFile::open(&path)?;
        let rows = cache.index().len();
        if sums.len() != rows.saturating_mul(CHECKSUM_BYTES) {
            return Err(Error::invalid_cache(
                path,
                format!(
                    "expected {CHECKSUM_BYTES} bytes for each of {rows} samples, found a file of {} bytes; \
                     write the cache again",
                    sums.len()
                ),
            ));
        }
        let blocks = usize::try_from(cache.shard_bytes() / BLOCK_BYTES).unwrap_or(usize::MAX).clamp(1, rows.max(1));
        Ok(Self { cache, sums, rows_per_block: rows.div_ceil(blocks).max(1) })
    }

    fn blocks(&self) -> usize {
        self.cache.index().len().div_ceil(self.rows_per_block)
    }

    /// Checks the records of one block. Returns whether they lie behind each other without gaps, as they should.
    fn check_block(&self, block: usize, cancel: &CancelToken) -> Result<bool> {
        let first = block * self.rows_per_block;
        let rows = first..self.cache.index().len().min(first + self.rows_per_block);
        let mut reader = RecordReader::new();
        let mut in_order = true;
        let mut before = first.checked_sub(1).map(|row| self.index_row(row)).transpose()?;
        for row in rows {
            if row % RECORDS_PER_LOOK == 0 {
                cancel.check()?;
            }
            let found = self.index_row(row)?;
            in_order &= self.follows(before, found);
            before = Some(found);
            self.check_record(row, found, &mut reader, cancel).map_err(|error| match error {
                Error::Interrupted => error,
                other => self.cache.sample_error(row as u64, other),
            })?;
        }
        let ends = before.is_none_or(|last| {
            block + 1 < self.blocks() || (last.shard + 1 == self.cache.shard_count() as u64 && self.fills_shard(last))
        });
        Ok(in_order && ends)
    }

    fn check_record(&self, row: usize, found: IndexRow, reader: &mut RecordReader, cancel: &CancelToken) -> Result<()> {
        let expected = self.sums.as_chunks::<CHECKSUM_BYTES>().0.get(row).map(|sum| u64::from_le_bytes(*sum));
        let bytes = found.offset..found.offset + found.length;
        if Some(reader.hash(self.cache, found.shard, bytes.clone(), cancel)?) == expected {
            return Ok(());
        }
        Err(Error::invalid_cache(
            shard_path(self.cache, found.shard),
            format!(
                "the record at bytes {} to {} is damaged: it does not match its checksum; write the cache again",
                bytes.start, bytes.end
            ),
        ))
    }

    /// An index row that lies within its shard.
    fn index_row(&self, row: usize) -> Result<IndexRow> {
        let found = self.cache.index_row(row as u64).ok_or_else(|| self.cache.index_fault(row as u64));
        found.map(|(found, _)| found).map_err(|error| self.cache.sample_error(row as u64, error))
    }

    fn follows(&self, before: Option<IndexRow>, row: IndexRow) -> bool {
        match before {
            None => row.shard == 0 && row.offset == 0,
            Some(before) if before.shard == row.shard => row.offset == before.offset + before.length,
            Some(before) => row.shard == before.shard + 1 && row.offset == 0 && self.fills_shard(before),
        }
    }

    fn fills_shard(&self, last: IndexRow) -> bool {
        let shard = usize::try_from(last.shard).ok().and_then(|shard| self.cache.shard(shard));
        shard.is_some_and(|(byte_len, _)| last.offset + last.length == byte_len)
    }
}

fn shard_path(cache: &Cache, shard: u64) -> PathBuf {
    let file = usize::try_from(shard).ok().and_then(|shard| cache.shard_file(shard));
    file.map(|file| file.path).unwrap_or_default()
}

/// Reads records one after the other, from as few files and with as few reads as their order allows.
struct RecordReader {
    /// Number and file of the shard that was read last.
    open: Option<(u64, File)>,
    buffer: Vec<u8>,
    /// Which bytes of that shard are in the buffer.
    held: Range<u64>,
    hasher: blake3::Hasher,
}

impl RecordReader {
    fn new() -> Self {
        Self { open: None, buffer: vec![0; BUFFER_BYTES], held: 0..0, hasher: blake3::Hasher::new() }
    }

    /// The checksum of some bytes of a shard.
    fn hash(&mut self, cache: &Cache, shard: u64, bytes: Range<u64>, cancel: &CancelToken) -> Result<u64> {
        self.hasher.reset();
        let mut at = bytes.start;
        while at < bytes.end {
            let is_open = self.open.as_ref().is_some_and(|(open, _)| *open == shard);
            if !is_open || !self.held.contains(&at) {
                cancel.check()?;
                self.fill(cache, shard, at)?;
            }
            let start = usize::try_from(at - self.held.start).unwrap_or(usize::MAX);
            let len = usize::try_from(self.held.end.min(bytes.end) - at).unwrap_or(usize::MAX);
            let part = self.buffer.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default();
            self.hasher.update(part);
            at += len as u64;
        }
        let mut first = [0; CHECKSUM_BYTES];
        self.hasher.finalize_xof().fill(&mut first);
        Ok(u64::from_le_bytes(first))
    }

    /// Reads the bytes of a shard from `at` on, as many as there are and as fit.
    fn fill(&mut self, cache: &Cache, shard: u64, at: u64) -> Result<()> {
        self.held = 0..0;
        let mut file = match self.open.take() {
            Some((open, file)) if open == shard => file,
            _ => open_regular(shard_path(cache, shard))?.0,
        };
        let read = read_at(&mut file, at, &mut self.buffer);
        let count = read.map_err(|error| Error::file("read", shard_path(cache, shard), error))?;
        if count == 0 {
            return Err(Error::invalid_cache(
                shard_path(cache, shard),
                format!("expected more than {at} bytes; write the cache again"),
            ));
        }
        self.held = at..at + count as u64;
        self.open = Some((shard, file));
        Ok(())
    }
}

fn read_at(file: &mut File, at: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
    file.seek(SeekFrom::Start(at))?;
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
