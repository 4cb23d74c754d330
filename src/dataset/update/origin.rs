//! Where a table comes from, and so what is said of one that cannot be used: users mend theirs, exports are made again.

use std::path::Path;

use crate::error::Error;
use crate::format::dataset_config::DATASET_CONFIG_FILE;

/// Where a table comes from.
#[derive(Debug, Clone, Copy)]
pub(in crate::dataset) enum Origin<'a> {
    /// A user gave it.
    User,
    /// This file of an export holds it.
    Export(&'a Path),
}

impl Origin<'_> {
    /// The error for a table that breaks a rule whatever the caches are; `advice` is for users.
    pub(super) fn broken(&self, finding: &str, advice: &str) -> Error {
        match self {
            Self::User => Error::InvalidValue(format!("{finding}; {advice}")),
            Self::Export(path) => {
                Error::invalid_cache(path, format!("the exported table is damaged: {finding}; export again"))
            }
        }
    }

    /// The error for a table that may be one of other caches; `advice` is for users.
    pub(super) fn unfit(&self, finding: &str, advice: &str) -> Error {
        match self {
            Self::User => Error::InvalidValue(format!("{finding}; {advice}")),
            Self::Export(_) => self.unknown(finding),
        }
    }

    /// The error for an id that no sample of the caches has.
    pub(super) fn unknown(&self, finding: &str) -> Error {
        match self {
            Self::User => Error::InvalidValue(finding.to_owned()),
            Self::Export(path) => Error::invalid_cache(
                path,
                format!(
                    "the exported table does not fit the caches, which are others than those it was made for: {finding}; \
                     correct cache_paths in {DATASET_CONFIG_FILE}, or export again"
                ),
            ),
        }
    }
}
