//! Memory in amounts that users decide about: asked for in a way that can be refused.

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

#[cold]
fn refused<T>(count: usize, purpose: &'static str) -> Error {
    Error::OutOfMemory { bytes: count.saturating_mul(size_of::<T>()), purpose }
}
