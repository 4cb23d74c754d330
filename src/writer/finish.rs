//! The end of a cache: its files are completed and synced, then the manifest makes it whole and a rename makes it visible.

use crate::error::Result;
use crate::format::manifest::{FormatVersion, Manifest, RecordChecksums};
use crate::fs::{self, CHECKSUMS_FILE, MANIFEST_FILE, METADATA_FILE};
use crate::ids::CacheId;

use super::cache::{CacheWrite, Token};
use super::layout::{Layout, Write};
use super::lock;
use super::profile::Stage;
use super::shards::incomplete;

/// Completes and syncs the files whose content is placed. Each is a task of its own, so that none waits for another.
pub(crate) fn close(token: &Token) -> Result<()> {
    let cache = token.cache();
    if !cache.all_placed() {
        return Err(incomplete(cache.target()));
    }
    let (last_shard, rows, metadata) = {
        let mut placement = lock(&cache.placement);
        let layout = placement.layout.as_mut().ok_or_else(|| incomplete(cache.target()))?;
        let last_shard = layout.shards.last().map(|(file, len)| (file.clone(), len));
        let rows = [&mut layout.index, &mut layout.checksums].map(|rows| {
            let rest = rows.take(1);
            (rows.file.clone(), rest, rows.len())
        });
        (last_shard, rows, layout.metadata.take().map(|writer| (writer, layout.staging.path().join(METADATA_FILE))))
    };
    if let Some((shard, len)) = last_shard {
        shard.seal(len);
        if shard.run_hash()? {
            CacheWrite::sync_shard(token, shard)?;
        }
    }
    for (file, rest, len) in rows {
        CacheWrite::spawn(token, move |token| {
            token.cache().profile.time(Stage::FinishIndex, len, || {
                rest.map(|Write { file, offset, chunk }| file.write(offset, chunk)).transpose()?;
                file.seal(len);
                if file.run_hash()? { file.sync() } else { Err(incomplete(file.path())) }
            })
        })?;
    }
    let (metadata, path) = metadata.ok_or_else(|| incomplete(cache.target()))?;
    let digest = cache.profile.time(Stage::FinishMetadata, 0, || metadata.finish(&path, cache.call.cancel()))?;
    if let Some(layout) = &mut lock(&cache.placement).layout {
        layout.metadata_sha256 = Some(digest);
    }
    Ok(())
}

/// Writes the manifest of a cache whose other files are complete and durable, and renames it to its target.
pub(crate) fn publish(cache: &CacheWrite) -> Result<()> {
    let layout = lock(&cache.placement).layout.take().ok_or_else(|| incomplete(cache.target()))?;
    let path = layout.staging.path().join(MANIFEST_FILE);
    cache.profile.time(Stage::FinishManifest, 0, || {
        let bytes = manifest(cache, &layout)?.to_bytes()?;
        fs::write_new(&path, &bytes)
    })?;
    cache.profile.time(Stage::Publish, 0, || layout.staging.publish(cache.target()))
}

fn manifest(cache: &CacheWrite, layout: &Layout) -> Result<Manifest> {
    let schema = cache.schema().ok_or_else(|| incomplete(cache.target()))?;
    let index = &layout.index.file;
    let checksums = &layout.checksums.file;
    Ok(Manifest {
        version: FormatVersion::V3,
        cache_id: Some(CacheId::of_source_name(cache.name.as_str())),
        source_name: cache.name.as_str().to_owned(),
        sample_count: layout.samples,
        metadata_schema: schema.fields().to_vec(),
        metadata_sha256: layout.metadata_sha256.clone().ok_or_else(|| incomplete(cache.target()))?,
        index_sha256: index.digest().ok_or_else(|| incomplete(index.path()))?,
        shards: layout.shards.entries(cache.call.config().compression)?,
        record_checksums: Some(RecordChecksums {
            file: CHECKSUMS_FILE.to_owned(),
            sha256: checksums.digest().ok_or_else(|| incomplete(checksums.path()))?,
        }),
        source_fingerprint: cache.fingerprint.clone(),
        manifest_checksum: None,
    })
}
