//! Texts on their way out: short ones that come again and again are made once.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Longest text that is remembered, in bytes.
const LONGEST: usize = 16;

/// Texts of a column that are remembered at a time: a power of two.
const SLOTS: usize = 64;

/// How far a column may go on without being worth it, see [`TextColumn::credit`].
const CREDIT: u32 = 1024;

/// How many texts have to be found for one that was not.
const MISS: u32 = 4;

/// Recent texts of all columns of one iterator.
pub(super) struct TextCache(Vec<TextColumn>);

struct TextColumn {
    slots: Vec<Option<(Key, Py<PyString>)>>,
    /// What is left for texts that are not found; found ones earn it. Without credit the column is left alone.
    credit: u32,
}

impl TextCache {
    /// An empty cache for this many columns.
    pub(super) fn new(columns: usize) -> Self {
        Self(std::iter::repeat_with(|| TextColumn { slots: Vec::new(), credit: CREDIT }).take(columns).collect())
    }

    /// The string of these bytes, if it is remembered. Runs no Python code.
    #[inline]
    pub(super) fn find(&mut self, py: Python<'_>, column: usize, bytes: &[u8]) -> Option<Py<PyString>> {
        let column = self.0.get_mut(column)?;
        if column.slots.is_empty() || bytes.len() > LONGEST {
            return None;
        }
        let key = key(bytes);
        let (known, text) = column.slots.get(slot(key))?.as_ref()?;
        if *known != key {
            return None;
        }
        column.credit = (column.credit + 1).min(CREDIT);
        Some(text.clone_ref(py))
    }

    /// Remembers the string of these bytes, which was not found, in the place of another one. Runs no Python code.
    #[inline]
    pub(super) fn remember(&mut self, py: Python<'_>, column: usize, bytes: &[u8], text: &Py<PyString>) {
        let Some(column) = self.0.get_mut(column) else { return };
        if column.credit == 0 || bytes.len() > LONGEST {
            return;
        }
        column.credit = column.credit.saturating_sub(MISS);
        if column.credit == 0 {
            column.slots = Vec::new();
            return;
        }
        if column.slots.is_empty() {
            column.slots.resize_with(SLOTS, || None);
        }
        let key = key(bytes);
        if let Some(slot) = column.slots.get_mut(slot(key)) {
            *slot = Some((key, text.clone_ref(py)));
        }
    }
}

/// A short text as numbers. Together with its length they say what it is.
type Key = (u64, u64, usize);

/// The first bytes of a text and the last ones, which overlap where there are not as many.
#[inline]
fn key(bytes: &[u8]) -> Key {
    let (first, last) = if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else {
        let byte = |place: usize| bytes.get(place).copied().map_or(0, u64::from);
        (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
    };
    (first, last, bytes.len())
}

/// Where a text is looked for: the upper bits of a product mix all bits of the key (Fibonacci hashing, Knuth 6.4).
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a few bits are left")]
fn slot((first, last, length): Key) -> usize {
    let folded = first ^ last.rotate_left(29) ^ length as u64;
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
