//! `dataset.json`: how an exported dataset is opened again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::manifest_v2::{Object, plain_file_name};
use super::{json_error, json_object};
use crate::error::{Error, Result};

/// Name of the file.
pub const DATASET_CONFIG_FILE: &str = "dataset.json";
/// The only version of its layout there is.
const VERSION: u64 = 2;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetConfig {
    /// Absolute directories of the caches, in their order.
    pub cache_paths: Vec<PathBuf>,
    /// Seed of shuffled draws.
    pub seed: u64,
    /// The most samples that are prepared ahead.
    pub prefetch_size: u64,
    /// Whether iterators draw by weight.
    pub shuffle: bool,
    /// Whether opening verifies every checksum.
    pub validate_cache: bool,
    /// Native threads.
    pub num_workers: u64,
    /// Samples of an epoch.
    pub epoch_len: u64,
    /// Rows of the exported table.
    pub row_count: u64,
    /// Name of the file beside this one that holds the table.
    pub metadata_file: String,
}

/// Key order in the file is field order here.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: u64,
    cache_paths: Vec<String>,
    reader_config: Object<RawReader>,
    num_workers: u64,
    epoch_len: u64,
    row_count: u64,
    metadata_file: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReader {
    seed: u64,
    prefetch_size: u64,
    shuffle: bool,
    validate_cache: bool,
}

impl DatasetConfig {
    /// Reads the content of the file; `path` is for messages only.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when it is something else, or has a value that cannot be.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        Self::parse_checked(bytes).map_err(|found| {
            let advice = if found.contains("export again") { "" } else { "; correct it, or export again" };
            let detail = format!("expected the configuration of an exported dataset, found {found}{advice}");
            Error::invalid_cache(path, detail)
        })
    }

    fn parse_checked(bytes: &[u8]) -> std::result::Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| format!("invalid UTF-8: {error}"))?;
        let Object(raw) = serde_json::from_str::<Object<Raw>>(text).map_err(|error| match other_version(text) {
            Some(found) => found,
            None => json_error::found(&error),
        })?;
        let Object(reader) = raw.reader_config;
        if raw.version != VERSION {
            return Err(skew(&raw.version.to_string()));
        }
        if raw.cache_paths.is_empty() {
            return Err("no cache_paths; there must be at least one".to_owned());
        }
        let cache_paths: Vec<PathBuf> = raw.cache_paths.into_iter().map(PathBuf::from).collect();
        if let Some(relative) = cache_paths.iter().find(|path| !path.is_absolute()) {
            return Err(format!("the relative path {:?} in cache_paths, which must be absolute", relative.display()));
        }
        for (key, number) in [("epoch_len", raw.epoch_len), ("row_count", raw.row_count)] {
            if Error::check_positive(key, number).is_err() {
                return Err(format!("{key} {number}, which must be in 1 ... 2^63 - 1"));
            }
        }
        Ok(Self {
            cache_paths,
            seed: reader.seed,
            prefetch_size: reader.prefetch_size,
            shuffle: reader.shuffle,
            validate_cache: reader.validate_cache,
            num_workers: raw.num_workers,
            epoch_len: raw.epoch_len,
            row_count: raw.row_count,
            metadata_file: plain_file_name(raw.metadata_file)?,
        })
    }

    /// The content of the file.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when a path is no Unicode, which JSON cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let texts = self.cache_paths.iter().map(|path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                Error::InvalidValue(format!(
                    "the cache path {:?} is no valid Unicode and cannot be exported; rename the directory",
                    path.display()
                ))
            })
        });
        let raw = Raw {
            version: VERSION,
            cache_paths: texts.collect::<Result<_>>()?,
            reader_config: Object(RawReader {
                seed: self.seed,
                prefetch_size: self.prefetch_size,
                shuffle: self.shuffle,
                validate_cache: self.validate_cache,
            }),
            num_workers: self.num_workers,
            epoch_len: self.epoch_len,
            row_count: self.row_count,
            metadata_file: self.metadata_file.clone(),
        };
        serde_json::to_vec_pretty(&raw)
            .map_err(|error| Error::InvalidValue(format!("the configuration cannot be written: {error}")))
    }
}

/// What is found in a file of a version that this release does not know, whatever else the file holds.
fn other_version(text: &str) -> Option<String> {
    match json_object::value(text, "version") {
        None => json_object::entries(text)
            .is_ok()
            .then(|| format!("no key \"version\", of which this release reads {VERSION}; export again")),
        Some(version) => (version.parse() != Ok(VERSION)).then(|| skew(&json_object::shown(version))),
    }
}

fn skew(version: &str) -> String {
    format!(
        "\"version\" {version}, but this release reads {VERSION}; open it with the release that wrote it, or export again"
    )
}
