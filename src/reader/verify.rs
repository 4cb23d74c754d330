//! Verifies every checksum of a cache, on all threads of the pool and in bounded memory.
//!
//! Where a cache has checksums of its records, and its manifest one of its own, the records stand for the shards they
//! fill: they name the damaged sample, and any number of threads can check one shard. Otherwise whole shards are hashed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cancel::{CancelToken, Waiter, Watching, while_waiting};
use crate::checksum::hash_file;
use crate::error::{Error, Result};
use crate::format::index::IndexRow;
use crate::format::manifest::{FormatVersion, Manifest};
use crate::fs::{INDEX_FILE, MANIFEST_FILE, METADATA_FILE};
use crate::mapped::MappedFile;
use crate::pool::{WorkerPool, map_blocks, run_all};
use crate::reader::cache::{Cache, OpenedCache};
use crate::reader::record_sums::{RecordSums, Run, shard_path};

/// Bytes of records that one task checks, about.
const BLOCK_BYTES: u64 = 16 << 20;

/// Bytes of one record checksum.
const CHECKSUM_BYTES: usize = 8;

/// How much of the shards of a cache a verification has checked.
#[derive(Debug, Default)]
pub struct Checked(AtomicU64);

impl Checked {
    /// Bytes that were checked by now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Opens the cache in the directory `path` and verifies it. Meanwhile `progress` is told, again and again, how many bytes of
/// the shards were checked, and how many there are.
///
/// # Errors
/// As [`Cache::open`] and [`verify`].
pub fn verify_directory(
    path: &Path,
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<()> {
    let opened = map_blocks(pool, waiter, 1, &|_, _| {
        let opened = OpenedCache::open(path, 0)?;
        opened.cache.check_shards(0..opened.cache.shard_count())?;
        Ok(opened)
    })?;
    for OpenedCache { cache, manifest } in &opened {
        let (checked, total) = (Checked::default(), cache.shard_bytes());
        // A shard whose records leave gaps is read twice.
        let look = &mut || progress(checked.bytes().min(total), total);
        verify(cache, manifest, pool, &mut Watching { waiter, look }, &checked)?;
    }
    Ok(())
}

/// Compares everything in `cache` with the checksums of its manifest, and counts the bytes of shards in `checked`.
///
/// # Errors
/// [`Error::InvalidCache`] for a damaged file, [`Error::Sample`] for a damaged record, [`Error::File`] when something cannot
/// be read, [`Error::Interrupted`] from `waiter`.
pub fn verify(
    cache: &Cache,
    manifest: &Manifest,
    pool: &WorkerPool,
    waiter: &mut dyn Waiter,
    checked: &Checked,
) -> Result<()> {
    let manifest_path = cache.path().join(MANIFEST_FILE);
    let sealed = manifest.version == FormatVersion::V3 && manifest.manifest_checksum.is_some();
    if sealed {
        while_waiting(waiter, || {
            Manifest::verify_checksum(&manifest_path, MappedFile::open(&manifest_path)?.as_slice())
        })?;
    }
    let mut files = vec![
        (cache.path().join(METADATA_FILE), manifest.metadata_sha256.as_str()),
        (cache.path().join(INDEX_FILE), manifest.index_sha256.as_str()),
    ];
    let mut records = None;
    if let Some(stated) = &manifest.record_checksums {
        let checksums = RecordChecks::open(cache, cache.path().join(&stated.file), checked)?;
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
        (Some(file), Some(entry)) => {
            check_file(&file.path, &entry.sha256, cancel)?;
            checked.add(file.byte_len);
            Ok(())
        }
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
    checked: &'a Checked,
}

impl<'a> RecordChecks<'a> {
    fn open(cache: &'a Cache, path: PathBuf, checked: &'a Checked) -> Result<Self> {
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
        Ok(Self { cache, sums, rows_per_block: rows.div_ceil(blocks).max(1), checked })
    }

    fn blocks(&self) -> usize {
        self.cache.index().len().div_ceil(self.rows_per_block)
    }

    /// Checks the records of one block. Returns whether they lie behind each other without gaps, as they should.
    fn check_block(&self, block: usize, cancel: &CancelToken) -> Result<bool> {
        let first = block * self.rows_per_block;
        let end = self.cache.index().len().min(first + self.rows_per_block);
        let mut sums = RecordSums::new(self.cache);
        let mut in_order = true;
        let mut before = first.checked_sub(1).map(|row| self.index_row(row)).transpose()?;
        let mut row = first;
        while row < end {
            cancel.check()?;
            let mut run = Run::new(self.index_row(row)?);
            // A row that is damaged is told of when those before it were checked.
            while row + run.records().len() < end
                && let Ok(found) = self.index_row(row + run.records().len())
                && run.extend(found)
            {}
            for found in run.records() {
                in_order &= self.follows(before, *found);
                before = Some(*found);
            }
            self.check_run(row, &run, &mut sums, cancel)?;
            self.checked.add(run.bytes());
            row += run.records().len();
        }
        let ends = before.is_none_or(|last| {
            block + 1 < self.blocks() || (last.shard + 1 == self.cache.shard_count() as u64 && self.fills_shard(last))
        });
        Ok(in_order && ends)
    }

    /// Checks the records of `run`, the first of which is that of `row`.
    fn check_run(&self, row: usize, run: &Run, sums: &mut RecordSums<'_>, cancel: &CancelToken) -> Result<()> {
        let outcome = sums.read(run, cancel);
        let expected = self.sums.as_chunks::<CHECKSUM_BYTES>().0.get(row..).unwrap_or_default();
        for (number, (record, found)) in run.records().iter().zip(sums.get()).enumerate() {
            if Some(*found) != expected.get(number).map(|sum| u64::from_le_bytes(*sum)) {
                let damage = Error::invalid_cache(
                    shard_path(self.cache, record.shard),
                    format!(
                        "the record at bytes {} to {} is damaged: it does not match its checksum; write the cache again",
                        record.offset,
                        record.offset + record.length
                    ),
                );
                return Err(self.cache.sample_error((row + number) as u64, damage));
            }
        }
        // It could not read the record behind the last one that it has a sum of.
        outcome.map_err(|error| match error {
            Error::Interrupted => error,
            other => self.cache.sample_error((row + sums.get().len()) as u64, other),
        })
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
