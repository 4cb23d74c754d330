//! Version 3 of the manifest: the layout that is written, and the checksum over the whole file.

use serde::Serialize;

use super::json_object;
use super::manifest::{Manifest, digest_start, digest_without};
use crate::error::{Error, Result};
use crate::ids::CacheId;

/// Name of the algorithm behind the checksums of single records.
pub(super) const RECORD_CHECKSUM_ALGO: &str = "blake3-64";

/// What stands for the checksum while it is computed.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Key order in the file is field order here.
#[derive(Serialize)]
struct Written<'a> {
    format_version: u64,
    cache_id: u64,
    source_name: &'a str,
    sample_count: u64,
    metadata_schema: Vec<WrittenField<'a>>,
    metadata_sha256: &'a str,
    index_sha256: &'a str,
    shards: Vec<WrittenShard<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_checksums: Option<WrittenChecksums<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_fingerprint: Option<&'a str>,
    manifest_checksum: &'a str,
}

#[derive(Serialize)]
struct WrittenField<'a> {
    name: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct WrittenShard<'a> {
    name: &'a str,
    uncompressed_byte_len: u64,
    byte_len: u64,
    compression: WrittenCompression<'a>,
    sha256: &'a str,
}

#[derive(Serialize)]
struct WrittenCompression<'a> {
    algo: &'a str,
    ratio: f64,
}

#[derive(Serialize)]
struct WrittenChecksums<'a> {
    file: &'a str,
    algo: &'a str,
    sha256: &'a str,
}

pub(super) fn to_bytes(manifest: &Manifest) -> Result<Vec<u8>> {
    let Some(cache_id) = manifest.cache_id else {
        return Err(Error::InvalidValue("a manifest of version 3 needs a cache id".to_owned()));
    };
    if let Some(shard) = manifest.shards.iter().find(|shard| !shard.compression.ratio.is_finite()) {
        return Err(Error::InvalidValue(format!(
            "expected a finite compression ratio, found {}",
            shard.compression.ratio
        )));
    }
    let written = Written {
        format_version: 3,
        cache_id: cache_id.0,
        source_name: &manifest.source_name,
        sample_count: manifest.sample_count,
        metadata_schema: manifest
            .metadata_schema
            .iter()
            .map(|field| WrittenField { name: &field.name, kind: field.kind.as_str() })
            .collect(),
        metadata_sha256: &manifest.metadata_sha256,
        index_sha256: &manifest.index_sha256,
        shards: manifest
            .shards
            .iter()
            .map(|shard| WrittenShard {
                name: &shard.name,
                uncompressed_byte_len: shard.uncompressed_byte_len,
                byte_len: shard.byte_len,
                compression: WrittenCompression {
                    algo: shard.compression.algo.as_str(),
                    ratio: shard.compression.ratio,
                },
                sha256: &shard.sha256,
            })
            .collect(),
        record_checksums: manifest.record_checksums.as_ref().map(|checksums| WrittenChecksums {
            file: &checksums.file,
            algo: RECORD_CHECKSUM_ALGO,
            sha256: &checksums.sha256,
        }),
        source_fingerprint: manifest.source_fingerprint.as_deref(),
        manifest_checksum: NO_DIGEST,
    };
    let mut bytes = serde_json::to_vec_pretty(&written).map_err(|error| unwritable(&error))?;
    fill_digest(&mut bytes)?;
    Ok(bytes)
}

/// The manifest `text` of version 2 as one of version 3: what changes is the version, the cache id behind it and the
/// checksum at the end. Everything else stays as it is spelled, also what nobody here knows.
pub(super) fn upgraded(text: &str, cache_id: CacheId) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (key, value) in json_object::entries(text).map_err(|error| unwritable(&error))? {
        if json_object::is_named(key, "format_version") {
            lines.push(format!("{key}: 3"));
            lines.push(format!("\"cache_id\": {cache_id}"));
        // Version 2 gives these no meaning.
        } else if !["cache_id", "manifest_checksum"].iter().any(|name| json_object::is_named(key, name)) {
            lines.push(format!("{key}: {value}"));
        }
    }
    lines.push(format!("\"manifest_checksum\": \"{NO_DIGEST}\""));
    let mut bytes = format!("{{\n  {}\n}}", lines.join(",\n  ")).into_bytes();
    fill_digest(&mut bytes)?;
    Ok(bytes)
}

fn unwritable(detail: &dyn std::fmt::Display) -> Error {
    Error::InvalidValue(format!("the manifest cannot be written: {detail}"))
}

/// Computes the checksum whose place is at the end of `bytes`.
fn fill_digest(bytes: &mut [u8]) -> Result<()> {
    let filled = digest_start(bytes.len()).and_then(|start| {
        let digest = digest_without(bytes, start)?;
        bytes.get_mut(start..start + digest.len())?.copy_from_slice(digest.as_bytes());
        Some(())
    });
    filled.ok_or_else(|| unwritable(&"there is no place for its checksum"))
}

/// Whether `bytes` has a `manifest_checksum` equal to `expected` that is the digest of everything else.
///
/// The parser gave `expected` but not its place, so every place that looks like it is tried. Keys spelled with
/// escapes are not found; no writer makes them.
pub(super) fn checksum_holds(bytes: &[u8], expected: &str) -> bool {
    const KEY: &[u8] = b"\"manifest_checksum\"";
    let digest_at = |key_start: usize| -> Option<usize> {
        let mut position = key_start + KEY.len();
        for wanted in [b':', b'"'] {
            while bytes.get(position)?.is_ascii_whitespace() {
                position += 1;
            }
            (*bytes.get(position)? == wanted).then_some(())?;
            position += 1;
        }
        let digest = bytes.get(position..position.checked_add(NO_DIGEST.len())?)?;
        (digest == expected.as_bytes()).then_some(position)
    };
    bytes
        .windows(KEY.len())
        .enumerate()
        .filter(|(_, window)| *window == KEY)
        .filter_map(|(start, _)| digest_at(start))
        .any(|start| digest_without(bytes, start).as_deref() == Some(expected))
}
