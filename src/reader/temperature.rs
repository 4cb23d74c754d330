//! Whether what is read comes from memory or from disk: nobody says, so it is found out on the way.

use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks in a row that must be in memory before nobody looks any more.
const PROBED: u32 = 4;

/// The same after a read had to wait for the disk unexpectedly. More, because something was not seen: the kernel tells those
/// who may not write a file that all of it is in memory.
const DISTRUSTFUL: u32 = 64;

/// What is known of all files of a dataset, by all its readers. Begins cold.
#[derive(Debug)]
pub struct Temperature {
    /// Blocks that must still turn out to be in memory; none once it is warm.
    blocks: AtomicU32,
}

impl Temperature {
    pub(super) const fn unknown() -> Self {
        Self { blocks: AtomicU32::new(PROBED) }
    }

    /// Whether reads should be announced, and done by the pool.
    #[must_use]
    #[inline]
    pub fn is_cold(&self) -> bool {
        self.blocks.load(Ordering::Relaxed) > 0
    }

    /// Whether what the kernel says about files in memory is not to be believed.
    #[must_use]
    pub fn is_distrustful(&self) -> bool {
        self.blocks.load(Ordering::Relaxed) > PROBED
    }

    /// A read waited for the disk although nothing was said to be missing.
    pub fn waited(&self) {
        self.blocks.store(DISTRUSTFUL, Ordering::Relaxed);
    }

    /// The records of a block were looked at before they are read.
    pub(super) fn looked(&self, missing: bool) {
        // Two threads at once may count wrong: then it takes a block more or less.
        let left = self.blocks.load(Ordering::Relaxed);
        let left = if missing { left.max(PROBED) } else { left.saturating_sub(1) };
        self.blocks.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{DISTRUSTFUL, PROBED, Temperature};

    #[test]
    fn warms_up_after_some_blocks_in_memory_and_cools_down_at_once() {
        let temperature = Temperature::unknown();
        for _ in 0..PROBED {
            assert!(temperature.is_cold() && !temperature.is_distrustful());
            temperature.looked(false);
        }
        assert!(!temperature.is_cold());
        temperature.waited();
        for _ in 0..DISTRUSTFUL - PROBED {
            assert!(temperature.is_distrustful());
            temperature.looked(false);
        }
        assert!(temperature.is_cold() && !temperature.is_distrustful());
        temperature.looked(false);
        temperature.looked(true);
        for _ in 0..PROBED {
            assert!(temperature.is_cold());
            temperature.looked(false);
        }
        assert!(!temperature.is_cold());
    }
}
