//! Whether a cache that exists can stand in for a source.

use std::path::Path;

use crate::cancel::Waiter;
use crate::error::{Error, Result};
use crate::fs::MANIFEST_FILE;
use crate::pool::{WorkerPool, map_blocks};
use crate::reader::{OpenedCache, verify};

use super::existing::{Existing, taken};

/// Takes a complete cache as it is, unless it was made from other data.
pub(crate) struct Reuse<'a> {
    pub(crate) pool: &'a WorkerPool,
    /// Whether all checksums have to hold as well.
    pub(crate) validate: bool,
}

impl Existing for Reuse<'_> {
    fn decide(&mut self, target: &Path, fingerprint: Option<&str>, waiter: &mut dyn Waiter) -> Result<()> {
        let opened = map_blocks(self.pool, waiter, 1, &|_, _| {
            if std::fs::symlink_metadata(target.join(MANIFEST_FILE)).is_err() {
                return Err(taken(target));
            }
            let opened = OpenedCache::open(target, 0)?;
            opened.cache.check_shards(0..opened.cache.shard_count())?;
            Ok(opened)
        })?;
        for OpenedCache { cache, manifest } in &opened {
            if let (Some(stored), Some(given)) = (cache.source_fingerprint(), fingerprint)
                && stored != given
            {
                return Err(Error::InvalidValue(format!(
                    "stale cache {}: it was written from a source with fingerprint {stored:?}, but the source has \
                     {given:?} now; remove the directory to write it again",
                    target.display()
                )));
            }
            if self.validate {
                verify(cache, manifest, self.pool, waiter)?;
            }
        }
        Ok(())
    }
}
