//! Whether a cache that exists can stand in for a source.

use std::io::ErrorKind;
use std::path::Path;

use crate::cancel::Waiter;
use crate::error::{Error, Result, excerpt};
use crate::fs::MANIFEST_FILE;
use crate::pool::{WorkerPool, map_blocks};
use crate::reader::{Checked, OpenedCache, verify};

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
            let manifest = target.join(MANIFEST_FILE);
            match std::fs::symlink_metadata(&manifest).map_err(|error| (error.kind(), error)) {
                Ok(_) => {}
                Err((ErrorKind::NotFound | ErrorKind::NotADirectory, _)) => return Err(taken(target)),
                // There may well be a cache.
                Err((_, error)) => return Err(Error::file("read", manifest, error)),
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
                    "stale cache {}: it was written from a source with fingerprint {:?}, but the source has \
                     {:?} now; remove the directory to write it again",
                    target.display(),
                    excerpt(stored),
                    excerpt(given)
                )));
            }
            if self.validate {
                verify(cache, manifest, self.pool, waiter, &Checked::default())?;
            }
        }
        Ok(())
    }
}
