//! Directories for unfinished caches, stamped with their owner in the name so that no unstamped moment exists.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{STAGING_DIR, publish};
use crate::error::{Error, Result};

/// Between the parts of a stamp; in none of them.
const SEPARATOR: char = '~';

/// Longest host part as it is; longer ones are cut and told apart by a digest.
const MAX_HOST_CHARS: usize = 64;

/// Who owns a staging directory: enough to tell whether the owner still lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StagingStamp {
    /// Name of the machine in letters, digits, `.`, `-` and `_`; empty when unknown.
    pub host: String,
    /// Identity of the machine's current run: another one on the same host means that the owner is gone.
    pub boot: String,
    /// Identity of the process number space: numbers of other spaces (containers) mean nothing here.
    pub process_space: String,
    /// Process number of the owner.
    pub process: u32,
    /// Start of the owner in clock ticks since boot, so that a reused number is recognised; 0 when unknown.
    pub started: u64,
}

impl StagingStamp {
    /// The stamp of this process.
    #[must_use]
    pub fn current() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            host: plain_host(read("/proc/sys/kernel/hostname").trim()),
            boot: plain(read("/proc/sys/kernel/random/boot_id").trim()),
            process_space: space.to_string_lossy().chars().filter(char::is_ascii_digit).collect(),
            process: std::process::id(),
            started: start_ticks(&read("/proc/self/stat")).unwrap_or(0),
        }
    }

    /// The owner of a staging directory with this name; `None` for names that nobody stamped.
    #[must_use]
    pub fn parse(directory_name: &str) -> Option<Self> {
        let parts: Vec<&str> = directory_name.split(SEPARATOR).collect();
        let [host, boot, process_space, process, started, _attempt] = parts.as_slice() else { return None };
        Some(Self {
            host: (*host).to_owned(),
            boot: (*boot).to_owned(),
            process_space: (*process_space).to_owned(),
            process: process.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    fn directory_name(&self, attempt: &str) -> String {
        let Self { host, boot, process_space, process, started } = self;
        format!("{host}~{boot}~{process_space}~{process}~{started}~{attempt}")
    }
}

/// An unfinished cache. Dropping it removes the directory unless it was published.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    /// The process that may remove it: a forked child inherits this value but not the directory.
    owner: u32,
    finished: bool,
}

impl Staging {
    /// Makes a new directory below `<base>/tmp`, and those two where they are missing.
    ///
    /// # Errors
    /// [`Error::File`] when a directory cannot be made.
    pub fn create(base: impl AsRef<Path>) -> Result<Self> {
        static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
        let parent = base.as_ref().join(STAGING_DIR);
        fs::create_dir_all(&parent).map_err(|error| Error::file("create directory", &parent, error))?;
        let stamp = StagingStamp::current();
        loop {
            // The counter makes names unique within this process, the time between copies of the library in it.
            let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
            let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(stamp.directory_name(&format!("{nanos:x}-{attempt:x}")));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, owner: stamp.process, finished: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::file("create directory", &path, error)),
            }
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the directory to `target`: see [`publish`](super::publish). It is removed when that fails.
    ///
    /// # Errors
    /// Those of [`publish`](super::publish).
    pub fn publish(mut self, target: impl AsRef<Path>) -> Result<()> {
        publish(&self.path, target)?;
        self.finished = true;
        Ok(())
    }

    /// Removes the directory and everything in it.
    ///
    /// # Errors
    /// [`Error::File`] when something cannot be removed.
    pub fn discard(mut self) -> Result<()> {
        self.finished = true;
        fs::remove_dir_all(&self.path).map_err(|error| Error::file("remove directory", &self.path, error))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.finished && self.owner == std::process::id() {
            // An error that led here is the one to report, not this one.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes what another process of this machine left unfinished below `<base>/tmp`. The process must have ended.
///
/// # Errors
/// [`Error::File`] for the first thing that cannot be removed; the rest is removed all the same.
pub fn remove_staging_of(base: impl AsRef<Path>, process: u32) -> Result<()> {
    let parent = base.as_ref().join(STAGING_DIR);
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::file("read directory", &parent, error)),
    };
    let here = StagingStamp::current();
    let mut removed = Ok(());
    for entry in entries {
        let entry = entry.map_err(|error| Error::file("read directory", &parent, error))?;
        let owner = entry.file_name().to_str().and_then(StagingStamp::parse);
        let is_its_own = owner.is_some_and(|owner| {
            let StagingStamp { host, boot, process_space, process: number, started: _ } = owner;
            number == process && (&host, &boot, &process_space) == (&here.host, &here.boot, &here.process_space)
        });
        if is_its_own && let Err(error) = fs::remove_dir_all(entry.path()) {
            removed = removed.and(Err(Error::file("remove directory", entry.path(), error)));
        }
    }
    removed
}

/// Host names that become equal by cutting and replacing are told apart by a digest of the whole name: two machines that
/// share a file system must never pass for one.
fn plain_host(host: &str) -> String {
    let cut: String = plain(host).chars().take(MAX_HOST_CHARS).collect();
    if cut == host { cut } else { format!("{cut}_{}", blake3::hash(host.as_bytes()).to_hex().split_at(16).0) }
}

fn plain(text: &str) -> String {
    let keep = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
    text.chars().map(|char| if keep(char) { char } else { '_' }).collect()
}

/// Field 22 of a process's `stat` file. The command in field 2 may contain anything, also spaces and parentheses.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_ticks_survive_odd_command_names() {
        let numbers: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        let stat = format!("17 (a) R (b) S {}", numbers.join(" "));
        assert_eq!(start_ticks(&stat), Some(22));
        assert_eq!(start_ticks("17 (a"), None);
    }

    #[test]
    fn host_names_are_plain_and_stay_distinct() {
        assert_eq!(plain_host("node-1.example"), "node-1.example");
        let (left, right) = (plain_host("node~1/../x"), plain_host("node_1/../x"));
        assert_ne!(left, right);
        let long = "h".repeat(300);
        assert_ne!(plain_host(&long), plain_host(&format!("{long}h")));
        for host in [left, right, plain_host(&long), plain_host("données")] {
            assert!(host.len() <= 90 && !host.contains(['~', '/']), "{host}");
        }
    }
}
