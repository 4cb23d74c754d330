//! Who owns a staging directory, as its name tells, and whether the owner still lives.
#![expect(unsafe_code, reason = "the standard library cannot ask whether a process exists")]

use std::fs;
use std::io;

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

/// What can be said about the owner of a staging directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// It runs.
    Alive,
    /// It is gone.
    Dead,
    /// It is, or was, out of sight: on another machine or in another container.
    Elsewhere,
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
            started: ProcessStat::parse(&read("/proc/self/stat")).map_or(0, |stat| stat.started),
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

    /// The name of a staging directory; `attempt` tells those of one owner apart.
    pub(super) fn directory_name(&self, attempt: &str) -> String {
        let Self { host, boot, process_space, process, started } = self;
        format!("{host}~{boot}~{process_space}~{process}~{started}~{attempt}")
    }

    /// Looks for another owner from here, where `self` is the stamp of this process.
    pub(super) fn look_for(&self, owner: &Self) -> Owner {
        if self.host.is_empty() || self.host != owner.host {
            Owner::Elsewhere
        } else if self.boot != owner.boot {
            Owner::Dead
        } else if self.boot.is_empty() || self.process_space.is_empty() || self.process_space != owner.process_space {
            Owner::Elsewhere
        } else if process_lives(owner.process, owner.started) {
            Owner::Alive
        } else {
            Owner::Dead
        }
    }
}

/// Whether this process number belongs to a process that began at this time. When in doubt it does.
pub(super) fn process_lives(process: u32, started: u64) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => ProcessStat::parse(&stat)
            .is_none_or(|stat| !stat.is_over() && (started == 0 || stat.started == 0 || stat.started == started)),
        // Hidden from this user, or not there.
        Err(_) => libc::pid_t::try_from(process).is_ok_and(|process| {
            // SAFETY: signal 0 is none; the call only asks.
            let code = unsafe { libc::kill(process, 0) };
            code == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
        }),
    }
}

/// What a process's `stat` file tells.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    state: char,
    threads: u64,
    started: u64,
}

impl ProcessStat {
    /// Fields 3, 20 and 22. The command in field 2 may contain anything, also spaces and parentheses.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether the process has ended and only its parent has not asked how. Its first thread may end before the others.
    fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_stat_is_read_behind_odd_command_names() {
        let numbers: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        let stat = format!("17 (a) R (b) S {}", numbers.join(" "));
        assert_eq!(ProcessStat::parse(&stat), Some(ProcessStat { state: 'S', threads: 20, started: 22 }));
        assert_eq!(ProcessStat::parse("17 (a"), None);
    }

    #[test]
    fn c09_a_process_is_over_when_none_of_its_threads_runs() {
        let is_over = |state, threads| ProcessStat { state, threads, started: 1 }.is_over();
        assert_eq!([is_over('S', 1), is_over('R', 1), is_over('Z', 2)], [false; 3]);
        assert_eq!([is_over('Z', 1), is_over('X', 0)], [true; 2]);
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
