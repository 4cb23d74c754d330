//! A new file that several workers fill at known offsets while its SHA-256 runs over the bytes in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::checksum::Sha256Hasher;
use crate::error::{Error, Result};
use crate::fs::NewFile;
use crate::memory::filled;

use super::job::Job;
use super::lock;

/// Bytes written or hashed between two looks at whether it is still wanted.
const PIECE_BYTES: usize = 4 << 20;

/// Bytes read back at once: few enough to be still in the processor's cache when they are hashed.
const READ_BYTES: usize = 256 << 10;

/// Consecutive bytes of a file.
pub(crate) enum Chunk {
    /// Records of a job; keeps the job's memory.
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

/// Written bytes that the hash has not reached.
enum Waiting {
    /// They are in memory as well.
    AtHand(Chunk),
    /// So many, which only the file has.
    InFile(u64),
}

/// The file. Whoever has written a chunk lets the hash run on, unless another worker is at it.
///
/// Hashing is slower than everything else and cannot be shared out within a file. So only one chunk waits for it in memory;
/// further ones are read back when their turn comes. That lets the writing run ahead, into the next files, which other
/// workers hash.
pub(crate) struct HashedFile {
    path: PathBuf,
    file: Mutex<Option<Arc<NewFile>>>,
    hashing: Mutex<Hashing>,
}

#[derive(Default)]
struct Hashing {
    hasher: Sha256Hasher,
    hashed: u64,
    /// By offset.
    waiting: BTreeMap<u64, Waiting>,
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

    /// Writes a chunk. The caller lets the hash run on afterwards.
    pub(crate) fn write(&self, offset: u64, chunk: Chunk) -> Result<()> {
        let file = self.file()?;
        let mut end = offset;
        chunk.pieces(|bytes| {
            self.check_wanted()?;
            file.write_at(end, bytes)?;
            end += bytes.len() as u64;
            Ok::<(), Error>(())
        })?;
        let mut hashing = lock(&self.hashing);
        if !hashing.abandoned {
            let waits_alone = hashing.waiting.is_empty();
            let (waiting, rest) = match chunk {
                chunk if waits_alone => (Waiting::AtHand(chunk), None),
                chunk => (Waiting::InFile(end - offset), Some(chunk)),
            };
            hashing.waiting.insert(offset, waiting);
            drop(hashing);
            // This may end its job, which must not happen under the lock.
            drop(rest);
        }
        Ok(())
    }

    /// Tells the final length.
    pub(crate) fn seal(&self, length: u64) {
        lock(&self.hashing).sealed = Some(length);
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

    /// Hashes what can be hashed, unless another worker is at it. True when that completed the file: the caller syncs it then.
    pub(crate) fn run_hash(&self) -> Result<bool> {
        let mut buffer = Vec::new();
        let mut hashing = lock(&self.hashing);
        if hashing.busy {
            return Ok(false);
        }
        while !hashing.abandoned {
            let start = hashing.hashed;
            let Some(waiting) = hashing.waiting.remove(&start) else { break };
            hashing.busy = true;
            let mut hasher = std::mem::take(&mut hashing.hasher);
            drop(hashing);
            let length = match waiting {
                Waiting::AtHand(chunk) => self.hash(&mut hasher, &chunk),
                Waiting::InFile(length) => self.hash_again(&mut hasher, start, length, &mut buffer),
            };
            hashing = lock(&self.hashing);
            hashing.busy = false;
            hashing.hasher = hasher;
            hashing.hashed = start + length?;
        }
        let complete = hashing.sealed == Some(hashing.hashed) && hashing.digest.is_none() && !hashing.abandoned;
        if complete {
            hashing.digest = Some(std::mem::take(&mut hashing.hasher).finish());
        }
        Ok(complete)
    }

    fn hash(&self, hasher: &mut Sha256Hasher, chunk: &Chunk) -> Result<u64> {
        let mut length = 0;
        chunk.pieces(|bytes| {
            self.check_wanted()?;
            hasher.update(bytes);
            length += bytes.len() as u64;
            Ok::<(), Error>(())
        })?;
        Ok(length)
    }

    fn hash_again(&self, hasher: &mut Sha256Hasher, start: u64, length: u64, buffer: &mut Vec<u8>) -> Result<u64> {
        if buffer.is_empty() {
            *buffer = filled(0, READ_BYTES, "bytes to hash")?;
        }
        let file = self.file()?;
        let end = start + length;
        let mut place = start;
        while place < end {
            self.check_wanted()?;
            let count = usize::try_from(end - place).map_or(READ_BYTES, |left| left.min(READ_BYTES));
            let bytes = buffer.get_mut(..count).unwrap_or_default();
            file.read_at(place, bytes)?;
            hasher.update(bytes);
            place += count as u64;
        }
        Ok(length)
    }

    /// Nobody wants the rest of a file whose cache has failed.
    fn check_wanted(&self) -> Result<()> {
        if lock(&self.hashing).abandoned { Err(Error::Interrupted) } else { Ok(()) }
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
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::checksum::sha256_hex;

    /// Consecutive chunks with their offsets; some are longer than what is read back at once.
    fn chunks() -> Vec<(u64, Vec<u8>)> {
        let mut offset = 0;
        let mut next = |length: usize, seed: u8| {
            let bytes: Vec<u8> = (0..=250).cycle().skip(usize::from(seed)).take(length).collect();
            offset += length as u64;
            (offset - length as u64, bytes)
        };
        vec![next(5, 1), next(600_000, 2), next(READ_BYTES, 3), next(1, 4), next(300_001, 5)]
    }

    fn write(file: &HashedFile, (offset, bytes): &(u64, Vec<u8>)) {
        file.write(*offset, Chunk::Bytes(bytes.clone())).unwrap();
    }

    #[test]
    fn c14_the_hash_is_that_of_the_file_in_whatever_order_its_chunks_come() {
        let chunks = chunks();
        let whole: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let directory = tempfile::tempdir().unwrap();
        for order in 0..120 {
            for hashes_between in [false, true] {
                let file = HashedFile::new(directory.path().join(format!("{order} {hashes_between}")));
                let mut left = chunks.clone();
                let mut number = order;
                if order % 2 == 0 {
                    file.seal(whole.len() as u64);
                }
                for radix in (1..=chunks.len()).rev() {
                    write(&file, &left.remove(number % radix));
                    number /= radix;
                    assert!(!hashes_between || radix == 1 || !file.run_hash().unwrap());
                }
                assert_eq!(file.digest(), None);
                file.seal(whole.len() as u64);
                assert!(file.run_hash().unwrap());
                assert!(!file.run_hash().unwrap(), "a file is completed once");
                assert_eq!(file.digest(), Some(sha256_hex(&whole)));
                assert!(std::fs::read(file.path()).unwrap() == whole);
            }
        }
    }

    #[test]
    fn c03_one_chunk_waits_for_the_hash_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let file = HashedFile::new(directory.path().join("file"));
        chunks().iter().skip(1).rev().for_each(|chunk| write(&file, chunk));
        let at_hand = |file: &HashedFile| {
            let hashing = lock(&file.hashing);
            hashing.waiting.values().filter(|waiting| matches!(waiting, Waiting::AtHand(_))).count()
        };
        assert_eq!((at_hand(&file), lock(&file.hashing).waiting.len()), (1, 4));
        assert!(!file.run_hash().unwrap());
        write(&file, &chunks()[0]);
        assert!(!file.run_hash().unwrap());
        assert_eq!(lock(&file.hashing).waiting.len(), 0);
    }

    #[test]
    fn c10_bytes_that_cannot_be_read_back_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = HashedFile::new(directory.path().join("file"));
        chunks().iter().skip(1).for_each(|chunk| write(&file, chunk));
        OpenOptions::new().write(true).open(file.path()).unwrap().set_len(700_000).unwrap();
        write(&file, &chunks()[0]);
        file.seal(1 << 20);
        let Err(Error::File { path, .. }) = file.run_hash() else { panic!("expected an error of the file") };
        assert_eq!(path, file.path());
        assert_eq!(file.digest(), None);
    }
}
