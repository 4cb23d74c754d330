//! What is done about something that is already where a cache should go.

use std::path::Path;

use crate::cancel::Waiter;
use crate::error::{Error, Result};
use crate::fs;

/// Decides about something that is already where a cache should go.
pub(crate) trait Existing {
    /// `Ok` makes `target` the result of its source.
    fn decide(&mut self, target: &Path, fingerprint: Option<&str>, waiter: &mut dyn Waiter) -> Result<()>;
}

/// A write never touches what is there.
pub(crate) struct Refuse;

impl Existing for Refuse {
    fn decide(&mut self, target: &Path, _fingerprint: Option<&str>, _waiter: &mut dyn Waiter) -> Result<()> {
        Err(taken(target))
    }
}

/// The error that something is in the way.
pub(super) fn taken(target: &Path) -> Error {
    // It was there a moment ago.
    fs::already_exists(target)
        .unwrap_or_else(|| Error::AlreadyExists { path: target.to_path_buf(), detail: "already exists".to_owned() })
}
