//! Staging directories of this process whose removal failed, for example because no more files could be opened. To others
//! they look like those of a living writer, so this process has to come back for them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{STAGING_DIR, operation};

/// With the process that may remove it: a forked child inherits the list but not the directories.
static LEFT: Mutex<Vec<(u32, PathBuf)>> = Mutex::new(Vec::new());

/// Removes a staging directory that nobody uses any more, now or when [`sweep_leftovers`] is called.
pub(super) fn remove_unused(staging: &Path) -> io::Result<()> {
    match operation::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            left().push((std::process::id(), staging.to_path_buf()));
            Err(error)
        }
        other => other,
    }
}

/// Whether this process left unused staging directories below `<base>/tmp`.
#[must_use]
pub fn has_leftovers(base: impl AsRef<Path>) -> bool {
    let parent = base.as_ref().join(STAGING_DIR);
    left().iter().any(|entry| is_below(entry, &parent))
}

/// Tries again to remove the unused staging directories below `<base>/tmp`. Those that still cannot be removed wait for
/// the next time.
pub fn sweep_leftovers(base: impl AsRef<Path>) {
    let parent = base.as_ref().join(STAGING_DIR);
    let again = {
        let mut left = left();
        let (again, others) =
            std::mem::take(&mut *left).into_iter().partition::<Vec<_>, _>(|entry| is_below(entry, &parent));
        *left = others;
        again
    };
    for (_, staging) in again {
        let _ = remove_unused(&staging);
    }
}

fn is_below((owner, staging): &(u32, PathBuf), parent: &Path) -> bool {
    *owner == std::process::id() && staging.parent() == Some(parent)
}

fn left() -> MutexGuard<'static, Vec<(u32, PathBuf)>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}
