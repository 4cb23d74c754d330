//! The files of a cache: bytes to structures and back, without threads and without policy.

pub mod columns;
pub mod compression;
pub mod dataset_config;
pub mod index;
mod json_error;
mod json_object;
mod lz4_block;
pub mod manifest;
mod manifest_v2;
mod manifest_v3;
pub mod metadata;
mod metadata_parse;
mod metadata_view;
pub mod metadata_write;
pub mod record;
pub mod schema;
mod table_check;
pub mod table_read;
pub mod table_write;

use std::path::Path;

use crate::error::Error;

/// What to do about a damaged file of a cache.
const RESTORE: &str = "; write the cache again, or restore it from a copy";

/// Damage in bytes whose file only the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub String);

impl Damage {
    /// With what to do about it, unless that is said.
    fn advised(self, advice: &str) -> Self {
        if self.0.contains("write the cache again") { self } else { Self(self.0 + advice) }
    }

    /// The error that names the file.
    #[must_use]
    pub fn within(self, path: impl AsRef<Path>) -> Error {
        Error::invalid_cache(path, self.0)
    }
}
