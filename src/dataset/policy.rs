//! How many planned samples make one chunk, and who reads them: measured, see docs/performance.md.

use crate::format::compression::CompressionAlgo;
use crate::reader::{PlannedSample, SMALL_MEAN_BYTES};

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

/// Records of this mean size on are large for an allocator, too.
pub(super) const LARGE_MEAN_BYTES: u64 = 128 << 10;

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

/// Bytes of records that the kernel is asked to read ahead of what is planned.
const AHEAD_BYTES: u64 = 32 << 20;

/// Most records that it is asked for.
const AHEAD_RECORDS: u64 = 512;

/// Records to ask the kernel for ahead of what is planned, which have about so many bytes each.
pub(super) fn records_ahead(mean_bytes: u64) -> u64 {
    (AHEAD_BYTES / mean_bytes.max(1)).clamp(1, AHEAD_RECORDS)
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
