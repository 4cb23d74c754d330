//! Where records go: offsets in the current shard, and the next shard when it is full.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::compression::Compression;
use crate::format::manifest::ShardEntry;
use crate::fs::shard_name;

use super::hashed_file::HashedFile;

/// The shards of a cache. Nothing here touches the disk.
pub(crate) struct Shards {
    directory: PathBuf,
    max_bytes: u64,
    all: Vec<Shard>,
}

struct Shard {
    file: Arc<HashedFile>,
    byte_len: u64,
    payload_bytes: u64,
}

/// The place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shard: u64,
    pub(crate) offset: u64,
}

impl Shards {
    pub(crate) fn new(directory: &Path, max_bytes: u64) -> Self {
        Self { directory: directory.to_path_buf(), max_bytes, all: Vec::new() }
    }

    /// Takes the place for the next record. A shard that the record would take beyond the limit is left as it is, unless
    /// it is empty.
    pub(crate) fn place(&mut self, stored_len: u64, payload_len: u64) -> Place {
        let fits = self.all.last().is_some_and(|shard| shard.byte_len.saturating_add(stored_len) <= self.max_bytes);
        if !fits {
            let path = self.directory.join(shard_name(self.all.len() as u64));
            self.all.push(Shard { file: Arc::new(HashedFile::new(path)), byte_len: 0, payload_bytes: 0 });
        }
        let shard = self.all.len().saturating_sub(1) as u64;
        match self.all.last_mut() {
            Some(current) => {
                let offset = current.byte_len;
                current.byte_len += stored_len;
                current.payload_bytes += payload_len;
                Place { shard, offset }
            }
            None => Place { shard, offset: 0 },
        }
    }

    pub(crate) fn file(&self, shard: u64) -> Option<&Arc<HashedFile>> {
        self.all.get(usize::try_from(shard).ok()?).map(|shard| &shard.file)
    }

    /// The final length of a shard behind which another one was begun.
    pub(crate) fn byte_len(&self, shard: u64) -> u64 {
        usize::try_from(shard).ok().and_then(|shard| self.all.get(shard)).map_or(0, |shard| shard.byte_len)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<HashedFile>> {
        self.all.iter().map(|shard| &shard.file)
    }

    /// The current shard and its length.
    pub(crate) fn last(&self) -> Option<(&Arc<HashedFile>, u64)> {
        self.all.last().map(|shard| (&shard.file, shard.byte_len))
    }

    /// What the manifest says about complete shards.
    pub(crate) fn entries(&self, compression: Compression) -> Result<Vec<ShardEntry>> {
        let entry = |(number, shard): (u64, &Shard)| {
            let sha256 = shard.file.digest().ok_or_else(|| incomplete(shard.file.path()))?;
            Ok(ShardEntry {
                name: shard_name(number),
                uncompressed_byte_len: shard.payload_bytes,
                byte_len: shard.byte_len,
                compression,
                sha256,
            })
        };
        (0_u64..).zip(&self.all).map(entry).collect()
    }
}

/// A file that should be complete by now: a bug, but never a published one.
pub(crate) fn incomplete(path: &Path) -> Error {
    Error::Panicked(format!("{} is not complete", path.display()))
}
