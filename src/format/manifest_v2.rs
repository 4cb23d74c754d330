//! The keys that all versions of the manifest share, read tolerantly. Version 2 has nothing else.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::compression::{Compression, CompressionAlgo};
use super::manifest::{FormatVersion, Manifest, RecordChecksums, ShardEntry};
use super::manifest_v3::RECORD_CHECKSUM_ALGO;
use super::schema::{Field, Schema};
use super::{json_error, json_object};
use crate::ids::CacheId;
use crate::value::Kind;

/// A manifest as JSON states it. Which keys count depends on the version, which may come last.
#[derive(Debug, Default)]
pub(super) struct RawManifest {
    format_version: Option<u64>,
    cache_id: Option<Box<RawValue>>,
    source_name: Option<String>,
    sample_count: Option<u64>,
    metadata_schema: Option<Vec<Object<RawField>>>,
    metadata_sha256: Option<String>,
    index_sha256: Option<String>,
    shards: Option<Vec<Object<RawShard>>>,
    record_checksums: Option<Object<RawChecksums>>,
    source_fingerprint: Option<String>,
    manifest_checksum: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct RawField {
    name: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
struct RawShard {
    name: String,
    uncompressed_byte_len: u64,
    byte_len: u64,
    compression: Object<RawCompression>,
    sha256: String,
}

#[derive(Debug, Deserialize)]
struct RawCompression {
    algo: String,
    ratio: f64,
}

#[derive(Debug, Deserialize)]
struct RawChecksums {
    file: String,
    algo: String,
    sha256: String,
}

/// What is found in a manifest of a version that this release does not read, whatever else it holds; `None` in others.
pub(super) fn other_version(text: &str) -> Option<String> {
    match json_object::value(text, "format_version") {
        None => json_object::entries(text).is_ok().then(no_version),
        Some(version) => (!matches!(version.parse::<u64>(), Ok(2 | 3))).then(|| skew(json_object::shown(version))),
    }
}

fn skew(version: impl fmt::Display) -> String {
    format!(
        "\"format_version\" {version}, but this release reads versions 2 and 3; read it with a release that knows it, or \
         write the cache again"
    )
}

fn no_version() -> String {
    "no key \"format_version\", of which this release reads 2 and 3; write the cache again".to_owned()
}

impl RawManifest {
    /// One JSON object and nothing else. The error says what was found instead.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| json_error::found(&error))
    }

    /// Checks what the types did not say. The error says what was found instead.
    pub(super) fn into_manifest(self) -> Result<Manifest, String> {
        let version = match self.format_version.ok_or_else(no_version)? {
            2 => FormatVersion::V2,
            3 => FormatVersion::V3,
            other => return Err(skew(other)),
        };
        let (cache_id, manifest_checksum) = match version {
            FormatVersion::V2 => (None, None),
            FormatVersion::V3 => {
                let id = required(self.cache_id, "cache_id")?;
                let id = id.get().parse().map_err(|_| {
                    format!("cache_id {}, which is no 64-bit unsigned integer", json_object::shown(id.get()))
                })?;
                (Some(CacheId(id)), self.manifest_checksum.as_deref().map(text).transpose()?)
            }
        };
        let metadata_schema: Vec<Field> = required(self.metadata_schema, "metadata_schema")?
            .into_iter()
            .map(|Object(RawField { name, kind })| match Kind::from_name(&kind) {
                Some(kind) => Ok(Field { name, kind }),
                None => Err(format!("metadata column {name:?} of the unknown kind {kind:?}")),
            })
            .collect::<Result<_, _>>()?;
        Schema::new(metadata_schema.clone()).map_err(|error| error.to_string())?;
        Ok(Manifest {
            version,
            cache_id,
            source_name: required(self.source_name, "source_name")?,
            sample_count: required(self.sample_count, "sample_count")?,
            metadata_schema,
            metadata_sha256: required(self.metadata_sha256, "metadata_sha256")?,
            index_sha256: required(self.index_sha256, "index_sha256")?,
            shards: required(self.shards, "shards")?
                .into_iter()
                .map(|Object(shard)| shard.checked())
                .collect::<Result<_, _>>()?,
            record_checksums: self.record_checksums.map(|Object(checksums)| checksums.checked()).transpose()?,
            source_fingerprint: self.source_fingerprint,
            manifest_checksum,
        })
    }
}

impl RawShard {
    fn checked(self) -> Result<ShardEntry, String> {
        let Object(compression) = self.compression;
        let Some(algo) = CompressionAlgo::from_name(&compression.algo) else {
            return Err(format!("shard {:?} with the unknown compression {:?}", self.name, compression.algo));
        };
        Ok(ShardEntry {
            name: plain_file_name(self.name)?,
            uncompressed_byte_len: self.uncompressed_byte_len,
            byte_len: self.byte_len,
            compression: Compression { algo, ratio: compression.ratio },
            sha256: self.sha256,
        })
    }
}

impl RawChecksums {
    fn checked(self) -> Result<RecordChecksums, String> {
        if self.algo != RECORD_CHECKSUM_ALGO {
            return Err(format!("record checksums by the unknown algorithm {:?}", self.algo));
        }
        Ok(RecordChecksums { file: plain_file_name(self.file)?, sha256: self.sha256 })
    }
}

/// A name from a manifest is followed into the file system, so it must not lead out of the cache.
pub(super) fn plain_file_name(name: String) -> Result<String, String> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        return Err(format!("{name:?} where a plain file name is needed"));
    }
    Ok(name)
}

fn required<T>(value: Option<T>, key: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("no key {key:?}"))
}

fn text(value: &RawValue) -> Result<String, String> {
    serde_json::from_str(value.get())
        .map_err(|_| format!("manifest_checksum {}, which is no text", json_object::shown(value.get())))
}

impl<'de> Deserialize<'de> for RawManifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ManifestVisitor)
    }
}

struct ManifestVisitor;

impl<'de> Visitor<'de> for ManifestVisitor {
    type Value = RawManifest;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawManifest, A::Error> {
        let mut raw = RawManifest::default();
        // Unknown keys are ignored but must not occur twice either.
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format_version" => raw.format_version = Some(map.next_value()?),
                "cache_id" => raw.cache_id = Some(map.next_value()?),
                "source_name" => raw.source_name = Some(map.next_value()?),
                "sample_count" => raw.sample_count = Some(map.next_value()?),
                "metadata_schema" => raw.metadata_schema = Some(map.next_value()?),
                "metadata_sha256" => raw.metadata_sha256 = Some(map.next_value()?),
                "index_sha256" => raw.index_sha256 = Some(map.next_value()?),
                "shards" => raw.shards = Some(map.next_value()?),
                "record_checksums" => raw.record_checksums = map.next_value()?,
                "source_fingerprint" => raw.source_fingerprint = map.next_value()?,
                "manifest_checksum" => raw.manifest_checksum = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if let Some(twice) = seen.replace(key) {
                return Err(A::Error::custom(format_args!("key {twice:?} occurs twice")));
            }
        }
        Ok(raw)
    }
}

/// A structure that must be a JSON object. Derived structures alone accept an array of their values as well.
#[derive(Debug, Serialize)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
