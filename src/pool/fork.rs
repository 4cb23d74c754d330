//! Tells whether an object was made in this process or inherited from a parent through `fork`.
//!
//! A forked child has none of its parent's other threads, and any lock one of them held stays locked for ever. So
//! whoever owns threads or shares locks with them looks at its stamp first, before it touches anything else.
#![expect(unsafe_code, reason = "the handler that counts forks is registered with the C library")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Forks between the first process that made a stamp and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Remembers the process in which it was made. Looking at it costs one load from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkStamp(u64);

impl ForkStamp {
    /// A stamp of this process.
    ///
    /// # Errors
    /// [`Error::Unusable`] when forks cannot be watched because memory is short.
    pub fn here() -> Result<Self> {
        // Not a `Once`: a fork in the middle of it would leave the child waiting for a thread it does not have.
        // Two threads that come here together register twice, and a fork then counts twice, which does no harm.
        if !REGISTERED.load(Ordering::Acquire) {
            register()?;
            REGISTERED.store(true, Ordering::Release);
        }
        Ok(Self(FORKS.load(Ordering::Relaxed)))
    }

    /// Whether the process that made the stamp was an ancestor of this one.
    #[must_use]
    pub fn is_inherited(self) -> bool {
        // Relaxed: the child's only thread counted the fork itself, and nobody else ever counts.
        self.0 != FORKS.load(Ordering::Relaxed)
    }

    /// An error for every use of an inherited object.
    ///
    /// # Errors
    /// [`Error::Unusable`] in a forked child, with what to do instead.
    pub fn check(self) -> Result<()> {
        if self.is_inherited() { Err(inherited()) } else { Ok(()) }
    }
}

fn inherited() -> Error {
    Error::Unusable(
        "the worker threads of this object stayed behind in the parent process when this process was forked; \
         create a new DatasetRuntime in this process, or start processes with \"spawn\" or \"forkserver\""
            .to_owned(),
    )
}

#[cfg(unix)]
fn register() -> Result<()> {
    extern "C" fn count_fork() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler lives as long as this library and does nothing but one atomic addition, which is allowed
    // between `fork` and the child's first step.
    let status = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    if status == 0 {
        Ok(())
    } else {
        let reason = std::io::Error::from_raw_os_error(status);
        Err(Error::Unusable(format!("cannot watch for forks of this process: {reason}")))
    }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as where processes fork")]
fn register() -> Result<()> {
    Ok(())
}
