//! How many planned samples make one chunk, and who reads them: measured, see docs/performance.md.

use crate::format::compression::CompressionAlgo;
use crate::reader::{Manner, PlannedSample, SMALL_MEAN_BYTES};

/// Draws of an iterator that are planned first, so that the first sample comes soon; later plans double.
pub(super) const FIRST_PLAN: u64 = 16;

/// Most draws of one plan, and so most samples of one chunk.
pub(super) const LARGEST_PLAN: u64 = 128;

/// Bytes of payload in one chunk, unless its first sample alone has more.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of payload in the queue, unless one chunk alone has more. What is copied should still be in the
/// processor's cache when the consumer reads it.
pub(super) const WINDOW_BYTES: usize = 8 << 20;

/// Verbatim payloads below this mean size are copied by the consumer: handing them over would cost more.
const POOL_MEAN_BYTES: usize = SMALL_MEAN_BYTES;

/// Verbatim payloads that sum up to no more than this are copied by the consumer, whatever their size.
const POOL_TOTAL_BYTES: usize = 256 << 10;

/// Records behind one another that the consumer reads without a plan have at most so many bytes together.
pub(super) const STRETCH_BYTES: usize = POOL_TOTAL_BYTES;

/// As `POOL_MEAN_BYTES`, for compressed payloads, which cost more a byte.
const POOL_COMPRESSED_MEAN_BYTES: usize = 1 << 10;

/// What to do with the first samples of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// How many of them make a chunk.
    pub(super) samples: usize,
    /// Bytes of their payloads.
    pub(super) bytes: usize,
    /// Whether the pool reads them, or the consumer.
    pub(super) on_pool: bool,
}

/// Bytes that the kernel is asked to read ahead of what is planned, while they may be on disk.
const AHEAD_BYTES: u64 = 32 << 20;

/// The same where the consumer has read nothing yet and may stop soon. It grows with what was read.
const FIRST_AHEAD_BYTES: u64 = 4 << 20;

/// A record that is asked for costs as much as so many bytes, if it is smaller.
const SEEK_BYTES: u64 = AHEAD_BYTES / 512;

/// Bytes of records behind one another that are brought into memory at once, and most of these records.
const RUN_BYTES: u64 = 2 << 20;
const RUN_DRAWS: u64 = 16 << 10;

/// How far ahead records are brought into memory. They have about `mean_bytes` each.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookAhead {
    pub(super) mean_bytes: u64,
    pub(super) manner: Manner,
}

impl LookAhead {
    /// Draws to bring into memory together.
    pub(super) fn draws(self) -> u64 {
        match self.manner {
            Manner::Bring => (RUN_BYTES / self.mean_bytes).clamp(1, RUN_DRAWS),
            // In several parts, so that some are on their way while others are read.
            Manner::Ask => (AHEAD_BYTES / self.load(1) / 4).max(1),
        }
    }

    /// Bytes that so many draws stand for.
    pub(super) fn load(self, draws: u64) -> u64 {
        let each = match self.manner {
            Manner::Bring => self.mean_bytes,
            Manner::Ask => self.mean_bytes.max(SEEK_BYTES),
        };
        draws.saturating_mul(each)
    }

    /// Most bytes to be brought into memory ahead of a consumer that was given so many samples.
    pub(super) fn limit(self, delivered: u64) -> u64 {
        match self.manner {
            Manner::Bring => FIRST_AHEAD_BYTES.saturating_add(self.load(delivered)).min(AHEAD_BYTES),
            Manner::Ask => AHEAD_BYTES,
        }
    }
}

/// Cuts the next chunk from `planned`. What the pool reads has at most `pool_limit` samples. While reads may wait for the
/// disk, which is `cold`, it reads all but the small ones, which were looked at when they were planned.
pub(super) fn cut(planned: &[PlannedSample], pool_limit: usize, cold: bool) -> Cut {
    let whole = take(planned, planned.len(), usize::MAX);
    let mean = whole.bytes / whole.samples.max(1);
    let compressed = planned
        .iter()
        .any(|sample| sample.found.as_ref().is_ok_and(|found| found.stored.algo != CompressionAlgo::None));
    let on_pool = if compressed {
        mean >= POOL_COMPRESSED_MEAN_BYTES
    } else {
        mean >= POOL_MEAN_BYTES && (cold || whole.bytes > POOL_TOTAL_BYTES)
    };
    if !on_pool {
        return take(planned, planned.len(), CHUNK_BYTES);
    }
    // Chunks of about the same size, so that no thread gets a much smaller rest.
    let chunks = whole.samples.div_ceil(pool_limit.max(1)).max(whole.bytes.div_ceil(CHUNK_BYTES)).max(1);
    Cut { on_pool, ..take(planned, whole.samples.div_ceil(chunks), CHUNK_BYTES) }
}

fn take(planned: &[PlannedSample], samples: usize, bytes: usize) -> Cut {
    let mut cut = Cut { samples: 0, bytes: 0, on_pool: false };
    for sample in planned.iter().take(samples) {
        let len = sample.found.as_ref().map_or(0, |found| found.len);
        if cut.samples > 0 && cut.bytes.saturating_add(len) > bytes {
            break;
        }
        cut.samples += 1;
        cut.bytes = cut.bytes.saturating_add(len);
    }
    cut
}
