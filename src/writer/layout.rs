//! The place of everything within a cache being written, in input order. Only memory is touched here, apart from the
//! staging directory and what metadata spills.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::index::{IndexRow, ROW_BYTES};
use crate::format::metadata_write::MetadataWriter;
use crate::format::schema::Schema;
use crate::fs::{self, CHECKSUMS_FILE, Heart, INDEX_FILE, KeptAlive, SHARDS_DIR, Staging};

use super::hashed_file::{Chunk, HashedFile};
use super::job::Job;
use super::shards::Shards;

/// Index and checksum rows are written in pieces of at least this many bytes.
const ROWS_BYTES: usize = 64 * 1024;

/// Metadata that does not fit into memory; has no name soon after it was created.
const SPOOL_FILE: &str = "metadata.spool";

/// Bytes that have their place and wait for being written.
pub(crate) struct Write {
    pub(crate) file: Arc<HashedFile>,
    pub(crate) offset: u64,
    pub(crate) chunk: Chunk,
}

/// What is to be done for a job that has its place.
#[derive(Default)]
pub(crate) struct Placed {
    pub(crate) writes: Vec<Write>,
    /// Shards that end here, with their lengths.
    pub(crate) sealed: Vec<(Arc<HashedFile>, u64)>,
}

/// Everything that grows with the samples of a cache.
pub(crate) struct Layout {
    pub(crate) staging: Staging,
    _kept_alive: KeptAlive,
    pub(crate) shards: Shards,
    pub(crate) index: RowsFile,
    pub(crate) checksums: RowsFile,
    /// Taken when the metadata file is assembled.
    pub(crate) metadata: Option<MetadataWriter>,
    pub(crate) metadata_sha256: Option<String>,
    pub(crate) samples: u64,
}

impl Layout {
    /// Creates the staging directory.
    pub(crate) fn create(base: &Path, schema: &Schema, max_shard_bytes: u64, heart: &Arc<Heart>) -> Result<Self> {
        let staging = Staging::create(base)?;
        let directory = staging.path();
        let shards = directory.join(SHARDS_DIR);
        fs::create_dir(&shards)?;
        Ok(Self {
            shards: Shards::new(&shards, max_shard_bytes),
            index: RowsFile::new(directory, INDEX_FILE),
            checksums: RowsFile::new(directory, CHECKSUMS_FILE),
            metadata: Some(MetadataWriter::new(schema, directory.join(SPOOL_FILE))),
            metadata_sha256: None,
            samples: 0,
            _kept_alive: heart.keep_alive(&staging),
            staging,
        })
    }

    /// Gives the records of the next job their places.
    pub(crate) fn place(&mut self, job: &Arc<Job>) -> Result<Placed> {
        let mut placed = Placed::default();
        // The run of records that go to one shard, and where it starts.
        let mut run = None;
        for (row, record) in job.encoded.records().iter().enumerate() {
            let stored_len = record.stored_len();
            let place = self.shards.place(stored_len, record.payload_len);
            self.index.push(&IndexRow { shard: place.shard, offset: place.offset, length: stored_len }.to_bytes());
            match run {
                Some((_, start)) if place.offset == 0 => {
                    self.end_run(&mut placed, job, run, row)?;
                    run = Some((row, place));
                    debug_assert!(start != place, "a run never moves within its shard");
                }
                Some(_) => {}
                None => run = Some((row, place)),
            }
            if place.offset == 0 && place.shard > 0 {
                let full = place.shard - 1;
                placed.sealed.push((self.shard_file(full)?, self.shards.byte_len(full)));
            }
        }
        self.end_run(&mut placed, job, run, job.encoded.records().len())?;
        for checksum in job.encoded.checksums() {
            self.checksums.push(&checksum.to_le_bytes());
        }
        if let Some(metadata) = &mut self.metadata {
            metadata.append(job.batch.len(), job.batch.columns())?;
        }
        self.samples += job.batch.len() as u64;
        placed.writes.extend(self.index.take(ROWS_BYTES));
        placed.writes.extend(self.checksums.take(ROWS_BYTES));
        Ok(placed)
    }

    /// All files whose hashes run along.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<HashedFile>> {
        self.shards.files().chain([&self.index.file, &self.checksums.file])
    }

    fn end_run(
        &self,
        placed: &mut Placed,
        job: &Arc<Job>,
        run: Option<(usize, super::shards::Place)>,
        end: usize,
    ) -> Result<()> {
        if let Some((start, place)) = run {
            placed.writes.push(Write {
                file: self.shard_file(place.shard)?,
                offset: place.offset,
                chunk: Chunk::Records(Arc::clone(job), start..end),
            });
        }
        Ok(())
    }

    fn shard_file(&self, shard: u64) -> Result<Arc<HashedFile>> {
        let missing = || Error::Panicked(format!("shard {shard} has no file"));
        self.shards.file(shard).map(Arc::clone).ok_or_else(missing)
    }
}

/// A file of rows of equal length that grows in memory and is written in larger pieces.
pub(crate) struct RowsFile {
    pub(crate) file: Arc<HashedFile>,
    buffer: Vec<u8>,
    written: u64,
}

impl RowsFile {
    fn new(directory: &Path, name: &str) -> Self {
        Self {
            file: Arc::new(HashedFile::new(directory.join(name))),
            buffer: Vec::with_capacity(ROWS_BYTES + ROW_BYTES * 256),
            written: 0,
        }
    }

    fn push(&mut self, row: &[u8]) {
        self.buffer.extend_from_slice(row);
    }

    /// The rows that are not written yet, if there are at least this many bytes of them.
    pub(crate) fn take(&mut self, at_least: usize) -> Option<Write> {
        if self.buffer.len() < at_least {
            return None;
        }
        let fresh = Vec::with_capacity(self.buffer.capacity());
        let bytes = std::mem::replace(&mut self.buffer, fresh);
        let offset = self.written;
        self.written += bytes.len() as u64;
        Some(Write { file: Arc::clone(&self.file), offset, chunk: Chunk::Bytes(bytes) })
    }

    /// Bytes taken so far.
    pub(crate) fn len(&self) -> u64 {
        self.written
    }
}
