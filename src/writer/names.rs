//! The names of the sources of one call: each is checked by itself, then all of them together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::ids::SourceName;

use super::outcome::WriteOutcome;
use super::source::Source;

/// A source's name, checked, and what it is called in outcomes.
pub(super) struct Named {
    pub(super) label: String,
    pub(super) name: std::result::Result<SourceName, String>,
}

impl Named {
    pub(super) fn new(position: usize, source: &dyn Source) -> Self {
        match source.name() {
            Ok(text) => {
                let name = SourceName::new(&text).map_err(|error| error.to_string());
                Self { label: text, name }
            }
            Err(reason) => Self { label: format!("source[{position}]"), name: Err(reason) },
        }
    }

    pub(super) fn outcome(self, result: Option<std::result::Result<PathBuf, String>>) -> WriteOutcome {
        let result = result.unwrap_or_else(|| Err("internal error: the source has no result".to_owned()));
        WriteOutcome { source_name: self.label, result }
    }
}

/// Refuses names that some file system takes for the same.
pub(super) fn check_collisions(base: &Path, names: &[Named]) -> Result<()> {
    let mut seen: HashMap<String, (usize, &SourceName)> = HashMap::new();
    for (position, named) in names.iter().enumerate() {
        let Ok(name) = &named.name else { continue };
        if let Some((first, other)) = seen.insert(name.collision_key(), (position, name)) {
            return Err(Error::InvalidValue(format!(
                "duplicate generated cache path {}: source {first} is called {:?} and source {position} {:?}, \
                 which some file systems take for the same name; rename one of them",
                base.join(name.as_str()).display(),
                other.as_str(),
                name.as_str(),
            )));
        }
    }
    Ok(())
}
