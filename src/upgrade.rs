//! Manifests of version 2 become version 3: each cache keeps the identity that it has in a dataset.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::cancel::Waiter;
use crate::error::{Error, Result};
use crate::format::manifest::{FormatVersion, Manifest};
use crate::fs::{MANIFEST_FILE, TemporaryFile, directory_of, open_regular, sweep_temporary_files, sync_dir};
use crate::ids::CacheId;
use crate::pool::{WorkerPool, map_blocks};
use crate::reader::{Cache, CacheSet};

/// What became of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestStatus {
    /// It was replaced, durably.
    Updated,
    /// It was of version 3 already.
    Unchanged,
    /// It was replaced, but whether that outlasts a power cut the system cannot tell.
    DurabilityUnknown,
}

/// One manifest that is of version 3 now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The file.
    pub path: PathBuf,
    /// The identity that it holds.
    pub cache_id: CacheId,
    /// How it came to be so.
    pub status: ManifestStatus,
}

/// An update that ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedUpdate {
    /// The manifest that stopped it, which is as it was.
    pub path: PathBuf,
    /// Why.
    pub message: String,
    /// Those that are done. None if any manifest was found unfit before the first was replaced.
    pub entries: Vec<ManifestEntry>,
}

/// How an update went: one entry for each cache in the order of the dataset, unless it stopped.
pub type ManifestUpdate = std::result::Result<Vec<ManifestEntry>, StoppedUpdate>;

/// Stores the identities of `caches` in their manifests. All replacements are written and synced beside the manifests before
/// the first takes its place; a reader finds each manifest as it was or as it will be. Repeating a call that stopped, with
/// the same caches in the same order, completes it.
///
/// # Errors
/// [`Error::Interrupted`] from `waiter`: what was replaced by then stays so. [`Error::Unusable`] in a forked child.
pub fn upgrade_manifests(caches: &CacheSet, pool: &WorkerPool, waiter: &mut dyn Waiter) -> Result<ManifestUpdate> {
    let caches = caches.caches();
    if let Some((cache, error)) = shared_manifest(caches) {
        return Ok(Err(stopped(cache, &error, Vec::new())));
    }
    let mut prepared = Vec::with_capacity(caches.len());
    let found = map_blocks(pool, waiter, caches.len(), &|number, cancel| {
        cancel.check()?;
        // One unfit manifest must not keep the others from being looked at: the first in order is told.
        Ok(caches.get(number).map(prepare))
    })?;
    for (cache, found) in caches.iter().zip(found.into_iter().flatten()) {
        match found {
            Ok(found) => prepared.push(found),
            Err(error) => return Ok(Err(stopped(cache, &error, Vec::new()))),
        }
    }
    let mut entries = Vec::with_capacity(caches.len());
    for (cache, Prepared { path, replacement }) in caches.iter().zip(prepared) {
        let status = match replacement {
            None => ManifestStatus::Unchanged,
            Some(replacement) => {
                waiter.check()?;
                match replacement.replace().map(sync_dir) {
                    Ok(Ok(())) => ManifestStatus::Updated,
                    Ok(Err(_)) => ManifestStatus::DurabilityUnknown,
                    Err(error) => return Ok(Err(stopped(cache, &error, entries))),
                }
            }
        };
        entries.push(ManifestEntry { path, cache_id: cache.id(), status });
    }
    Ok(Ok(entries))
}

/// A manifest that fits.
struct Prepared {
    path: PathBuf,
    /// What takes its place; `None` if it can stay.
    replacement: Option<TemporaryFile>,
}

/// The first cache whose manifest is the file of an earlier one, which can hold only one identity. Files with several names
/// (hard links) are no longer one once each name is replaced, so that a directory and a name in it tell a file.
fn shared_manifest(caches: &[Cache]) -> Option<(&Cache, Error)> {
    let mut owners: HashMap<_, &Cache> = HashMap::with_capacity(caches.len());
    caches.iter().find_map(|cache| {
        // What cannot be found is told by what comes next.
        let path = fs::canonicalize(manifest_path(cache)).ok()?;
        let directory = fs::metadata(directory_of(&path)).ok()?;
        let place = (directory.dev(), directory.ino(), path.file_name()?.to_os_string());
        let owner = owners.insert(place, cache)?;
        let detail = format!(
            "expected a manifest of its own for each cache, found one for both {} and {}; open each cache once",
            owner.path().display(),
            cache.path().display()
        );
        Some((cache, Error::invalid_cache(path, detail)))
    })
}

fn prepare(cache: &Cache) -> Result<Prepared> {
    let path = manifest_path(cache);
    // A link stays a link.
    let path = fs::canonicalize(&path).map_err(|error| Error::file("open", &path, error))?;
    sweep_temporary_files(directory_of(&path));
    let bytes = read(&path)?;
    let loaded = cache.manifest();
    let manifest = Manifest::parse(&path, &bytes)?;
    // White space and order do not matter, and somebody else may have done the same meanwhile.
    let same = blake3::hash(&bytes) == loaded.file
        || (loaded.content.is_some() && manifest.content_digest(cache.id()) == loaded.content);
    if !same || manifest.cache_id.is_some_and(|id| id != cache.id()) {
        return Err(Error::invalid_cache(
            &path,
            "expected the manifest that was there when the dataset was opened, found a changed one; \
             open the dataset again",
        ));
    }
    if manifest.version == FormatVersion::V3 {
        return Ok(Prepared { path, replacement: None });
    }
    let upgraded = Manifest::upgrade(&path, &bytes, cache.id())?;
    let mut replacement = TemporaryFile::replacing(&path)?;
    replacement.fill(&upgraded)?;
    Ok(Prepared { path, replacement: Some(replacement) })
}

/// The file as it is, not as it was mapped: whoever replaces it may also shorten it.
fn read(path: &Path) -> Result<Vec<u8>> {
    let (mut file, found) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(|error| Error::file("read", path, error))?;
    Ok(bytes)
}

fn stopped(cache: &Cache, error: &Error, entries: Vec<ManifestEntry>) -> StoppedUpdate {
    let path = manifest_path(cache);
    let path = fs::canonicalize(&path).unwrap_or(path);
    StoppedUpdate { path, message: error.to_string(), entries }
}

fn manifest_path(cache: &Cache) -> PathBuf {
    cache.path().join(MANIFEST_FILE)
}
