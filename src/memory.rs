//! Memory in amounts that users decide about: asked for in a way that can be refused.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Makes room for `count` more elements.
///
/// # Errors
/// [`Error::OutOfMemory`], which says what they are for.
#[inline]
pub fn reserve<T>(elements: &mut Vec<T>, count: usize, purpose: &'static str) -> Result<()> {
    elements.try_reserve(count).map_err(|_| refused::<T>(count, purpose))
}

/// A vector of `count` elements of the same value.
///
/// # Errors
/// [`Error::OutOfMemory`], which says what they are for.
pub fn filled<T: Clone>(value: T, count: usize, purpose: &'static str) -> Result<Vec<T>> {
    // Only the macro gets zeros from the system without touching them, and it cannot be refused: asked for just before.
    drop(with_room::<T>(count, purpose)?);
    Ok(vec![value; count])
}

/// An empty vector with room for `count` elements.
///
/// # Errors
/// [`Error::OutOfMemory`], which says what they are for.
pub fn with_room<T>(count: usize, purpose: &'static str) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(count).map_err(|_| refused::<T>(count, purpose))?;
    Ok(elements)
}

/// Blocks up to this size that are freed stay with the process for its next ones. The C library of GNU allows no more than 32 MiB.
const KEPT_BYTES: usize = 31 << 20;

/// Blocks from this size on are otherwise given back to the system one by one.
const LARGE_BYTES: u64 = 128 << 10;

/// If blocks of so many bytes are large, has the allocator keep those that are freed, once for the process: for whoever
/// makes such blocks over and over again.
///
/// The C library of GNU gives memory back to the system whenever much of it is free, and takes it again page by page. What
/// it calls much follows the largest block that was mapped by itself and freed: at most twice as much stays. Other
/// allocators take no notice.
pub fn keep_freed_blocks(bytes: u64) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if bytes >= LARGE_BYTES && !DONE.swap(true, Ordering::Relaxed) {
        drop(black_box(with_room::<u8>(KEPT_BYTES, "a block that is freed at once")));
    }
}

#[cold]
fn refused<T>(count: usize, purpose: &'static str) -> Error {
    Error::OutOfMemory { bytes: count.saturating_mul(size_of::<T>()), purpose }
}
