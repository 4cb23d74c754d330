//! Opens the caches of a dataset on all threads of the pool.

use std::path::PathBuf;

use crate::cancel::Waiter;
use crate::error::Result;
use crate::pool::{WorkerPool, map_blocks, run_all};
use crate::reader::cache::{Cache, OpenedCache};
use crate::reader::cache_set::CacheSet;
use crate::reader::verify::{Checked, verify};

/// Shards that one task looks at.
const SHARDS_PER_BLOCK: usize = 256;

/// Opens the caches in `paths`, in this order, and checks that they fit together. With `validate` all checksums are verified.
///
/// # Errors
/// As [`OpenedCache::open`], [`CacheSet::new`] and [`verify`]; of several errors the first one in the order of `paths`.
pub fn open_caches(paths: &[PathBuf], validate: bool, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<CacheSet> {
    let opened = map_blocks(pool, waiter, paths.len(), &|position, cancel| {
        cancel.check()?;
        paths.get(position).map(|path| OpenedCache::open(path, position as u64)).transpose()
    })?;
    let opened = opened.into_iter().flatten();
    let (caches, manifests): (Vec<Cache>, Vec<_>) = opened.map(|opened| (opened.cache, opened.manifest)).unzip();
    let set = CacheSet::new(caches)?;
    let shards = set.shard_count();
    run_all(pool, waiter, shards.div_ceil(SHARDS_PER_BLOCK), &|block, cancel| {
        cancel.check()?;
        let first = block * SHARDS_PER_BLOCK;
        set.check_shards(first..shards.min(first + SHARDS_PER_BLOCK))
    })?;
    if validate {
        for (cache, manifest) in set.caches().iter().zip(&manifests) {
            verify(cache, manifest, pool, waiter, &Checked::default())?;
        }
    }
    Ok(set)
}
