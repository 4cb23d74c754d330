//! A new file that several workers fill at known offsets while its SHA-256 runs over the bytes in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::checksum::Sha256Hasher;
use crate::error::{Error, Result};
use crate::fs::NewFile;

use super::job::Job;
use super::lock;

/// Bytes written or hashed between two looks at whether it is still wanted.
const PIECE_BYTES: usize = 4 << 20;

/// Consecutive bytes of a file.
pub(crate) enum Chunk {
    /// Records of a job; keeps the job's memory until they are hashed.
    Records(Arc<Job>, Range<usize>),
    /// Other bytes.
    Bytes(Vec<u8>),
}

impl Chunk {
    fn pieces<E>(&self, mut take: impl FnMut(&[u8]) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        let mut take = |bytes: &[u8]| bytes.chunks(PIECE_BYTES).try_for_each(&mut take);
        match self {
            Self::Records(job, records) => job.pieces(records.clone(), take),
            Self::Bytes(bytes) => take(bytes),
        }
    }
}

/// The file. Whoever adds a chunk writes it; whoever finds the hash idle drains what waits for it.
pub(crate) struct HashedFile {
    path: PathBuf,
    file: Mutex<Option<Arc<NewFile>>>,
    hashing: Mutex<Hashing>,
}

#[derive(Default)]
struct Hashing {
    hasher: Sha256Hasher,
    hashed: u64,
    /// Written chunks that the hash has not reached, by offset.
    waiting: BTreeMap<u64, Chunk>,
    busy: bool,
    /// Length of the file once it is known.
    sealed: Option<u64>,
    abandoned: bool,
    digest: Option<String>,
}

impl HashedFile {
    /// A file that is created when its first chunk is written.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: Mutex::new(None), hashing: Mutex::new(Hashing::default()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a chunk and hashes what can be hashed. True when this completed the file: the caller syncs it then.
    pub(crate) fn add(&self, offset: u64, chunk: Chunk) -> Result<bool> {
        let file = self.file()?;
        let mut place = offset;
        chunk.pieces(|bytes| {
            // Nobody wants the rest of a file whose cache has failed.
            if lock(&self.hashing).abandoned {
                return Err(Error::Interrupted);
            }
            file.write_at(place, bytes)?;
            place += bytes.len() as u64;
            Ok(())
        })?;
        let mut hashing = lock(&self.hashing);
        if !hashing.abandoned {
            hashing.waiting.insert(offset, chunk);
        }
        drop(hashing);
        Ok(self.drain())
    }

    /// Tells the final length. True when that completed the file: the caller syncs it then.
    pub(crate) fn seal(&self, length: u64) -> bool {
        lock(&self.hashing).sealed = Some(length);
        self.drain()
    }

    /// Makes a complete file durable and closes it.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file()?.sync()?;
        lock(&self.file).take();
        Ok(())
    }

    /// SHA-256 of a complete file.
    pub(crate) fn digest(&self) -> Option<String> {
        lock(&self.hashing).digest.clone()
    }

    /// Lets go of all memory and of the file: its cache has failed.
    pub(crate) fn abandon(&self) {
        let mut hashing = lock(&self.hashing);
        hashing.abandoned = true;
        let waiting = std::mem::take(&mut hashing.waiting);
        drop(hashing);
        // Dropping a chunk may end its job, which must not happen under the lock.
        drop(waiting);
        lock(&self.file).take();
    }

    fn file(&self) -> Result<Arc<NewFile>> {
        let mut file = lock(&self.file);
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let created = Arc::new(NewFile::create(&self.path)?);
        *file = Some(Arc::clone(&created));
        Ok(created)
    }

    fn drain(&self) -> bool {
        let mut hashing = lock(&self.hashing);
        if hashing.busy {
            return false;
        }
        while !hashing.abandoned {
            let next = hashing.hashed;
            let Some(chunk) = hashing.waiting.remove(&next) else { break };
            hashing.busy = true;
            let mut hasher = std::mem::take(&mut hashing.hasher);
            drop(hashing);
            let mut length = 0;
            // What stops early was abandoned, and its hash is of no use.
            let _ = chunk.pieces(|bytes| {
                if lock(&self.hashing).abandoned {
                    return Err(());
                }
                hasher.update(bytes);
                length += bytes.len() as u64;
                Ok(())
            });
            // Ends the job when these were its last bytes.
            drop(chunk);
            hashing = lock(&self.hashing);
            hashing.busy = false;
            hashing.hasher = hasher;
            hashing.hashed = next + length;
        }
        let complete = hashing.sealed == Some(hashing.hashed) && hashing.digest.is_none() && !hashing.abandoned;
        if complete {
            hashing.digest = Some(std::mem::take(&mut hashing.hasher).finish());
        }
        complete
    }
}
