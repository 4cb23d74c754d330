//! What became of one source.

use std::path::PathBuf;

/// Result of one source of a write, in the place that the source had in the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Name of the source, or `source[i]` where it has none that is valid text.
    pub source_name: String,
    /// The published cache, or why there is none.
    pub result: Result<PathBuf, String>,
}
