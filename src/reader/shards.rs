//! The shards of a dataset as memory maps: few enough for the limits of the system, however many shards there are.

use std::collections::VecDeque;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};
use crate::mapped::MappedFile;

/// Shards of a dataset that are mapped when it opens; files deleted later stay readable through their maps.
pub(super) const MAPPED_AT_OPEN: usize = 1_000;

/// Shards that keep their map once they have one. Linux allows 65,530 maps for a whole process by default.
const PINNED_LIMIT: usize = 8_192;

/// Maps of further shards that are kept for the next read.
const RECENT_LIMIT: usize = 64;

/// Maps of all shards, numbered through all caches of a dataset. Holds no file descriptors.
#[derive(Debug)]
pub(super) struct ShardMaps {
    pinned: Vec<OnceLock<MappedFile>>,
    pinned_count: AtomicUsize,
    /// The most recently used maps of shards beyond the limit, latest first.
    recent: Mutex<VecDeque<(usize, Arc<MappedFile>)>>,
}

/// What a shard map needs to know of its file.
#[derive(Debug, Clone)]
pub struct ShardFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length when the dataset was opened, as its manifest says.
    pub byte_len: u64,
}

/// The bytes of one shard.
#[derive(Debug)]
pub(super) enum ShardBytes<'a> {
    /// Mapped for as long as the dataset lives.
    Pinned(&'a MappedFile),
    /// Mapped for as long as somebody uses it.
    Recent(Arc<MappedFile>),
}

impl Deref for ShardBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Pinned(map) => map.as_slice(),
            Self::Recent(map) => map.as_slice(),
        }
    }
}

impl ShardMaps {
    /// Room for this many shards, none of them mapped.
    #[must_use]
    pub(super) fn new(shards: usize) -> Self {
        Self {
            pinned: std::iter::repeat_with(OnceLock::new).take(shards).collect(),
            pinned_count: AtomicUsize::new(0),
            recent: Mutex::new(VecDeque::new()),
        }
    }

    /// Number of shards.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.pinned.len()
    }

    /// The bytes of a shard that keeps its map and has one.
    #[must_use]
    #[inline]
    pub(super) fn pinned(&self, shard: usize) -> Option<&[u8]> {
        Some(self.pinned.get(shard)?.get()?.as_slice())
    }

    /// The bytes of a shard; `file` says where they are in case they are not mapped yet.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be mapped, [`Error::InvalidCache`] when it changed its length since it was opened.
    pub(super) fn bytes(&self, shard: usize, file: impl FnOnce() -> Option<ShardFile>) -> Result<ShardBytes<'_>> {
        if let Some(map) = self.pinned.get(shard).and_then(OnceLock::get) {
            return Ok(ShardBytes::Pinned(map));
        }
        match file() {
            Some(file) => self.map(shard, &file),
            None => Err(Error::InvalidValue(format!("there is no shard {shard}"))),
        }
    }

    #[cold]
    fn map(&self, shard: usize, file: &ShardFile) -> Result<ShardBytes<'_>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = recent.iter().position(|(number, _)| *number == shard)
            && let Some(entry) = recent.remove(place)
        {
            let map = Arc::clone(&entry.1);
            recent.push_front(entry);
            return Ok(ShardBytes::Recent(map));
        }
        drop(recent);

        let map = MappedFile::open(&file.path)?;
        if u64::try_from(map.len()).ok() != Some(file.byte_len) {
            return Err(changed_length(file, map.len() as u64));
        }
        if let Some(place) = self.pinned.get(shard)
            && self.pinned_count.fetch_add(1, Ordering::Relaxed) < PINNED_LIMIT
        {
            let mut is_first = false;
            let pinned = place.get_or_init(|| {
                is_first = true;
                map
            });
            if !is_first {
                // Another thread mapped it meanwhile and counted it, too.
                self.pinned_count.fetch_sub(1, Ordering::Relaxed);
            }
            return Ok(ShardBytes::Pinned(pinned));
        }
        let map = Arc::new(map);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_front((shard, Arc::clone(&map)));
        recent.truncate(RECENT_LIMIT);
        Ok(ShardBytes::Recent(map))
    }
}

/// A shard is not as long as its manifest says.
pub(super) fn changed_length(file: &ShardFile, found: u64) -> Error {
    Error::invalid_cache(
        &file.path,
        format!("expected a shard of {} bytes, found {found}; write the cache again", file.byte_len),
    )
}
