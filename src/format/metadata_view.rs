//! Columns of one metadata batch as slices of the mapped file, checked value by value when they are read.

use super::Damage;
use super::metadata_parse::{RawBatch, RawColumn};
use crate::prefetch::prefetch;
use crate::value::ValueRef;

/// One value as it is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawValue<'a> {
    /// A value of a boolean column.
    Bool(bool),
    /// A value of an integer column.
    Int(i64),
    /// A value of a column of doubles.
    Float(f64),
    /// A value of a text column, which may be no valid UTF-8: for callers that check that themselves.
    Text(&'a [u8]),
}

/// The stored values of one row, for the hot path: its batch is looked up once for all columns.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    pub(super) file: &'a [u8],
    pub(super) columns: &'a [RawColumn],
    /// Row within the batch.
    pub(super) place: usize,
}

impl<'a> RowView<'a> {
    /// The value of a column by its position in the schema; `None` where there is no such column or a text lies
    /// outside the file. Nobody checked that text is valid.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the caller looks at the kind again: only together is that one step")]
    pub fn value(&self, column: usize) -> Option<RawValue<'a>> {
        self.columns.get(column)?.value(self.file, self.place)
    }
}

/// Consecutive rows of the metadata of a cache.
#[derive(Debug, Clone, Copy)]
pub struct BatchView<'a> {
    pub(super) file: &'a [u8],
    pub(super) batch: &'a RawBatch,
}

/// One column of a batch.
#[derive(Debug, Clone, Copy)]
pub enum ColumnView<'a> {
    /// Bits, lowest first.
    Bool(&'a [u8]),
    /// Little-endian integers.
    Int(&'a [[u8; 8]]),
    /// Little-endian doubles.
    Float(&'a [[u8; 8]]),
    /// Texts.
    String(TextView<'a>),
}

/// One column of texts: nothing about the offsets or the text is known to be valid.
#[derive(Debug, Clone, Copy)]
pub struct TextView<'a> {
    offsets: &'a [[u8; 4]],
    text: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Number of rows.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> usize {
        self.batch.rows
    }

    /// A column by its position in the schema.
    #[must_use]
    #[inline]
    pub fn column(&self, column: usize) -> Option<ColumnView<'a>> {
        let bytes = |range: &std::ops::Range<usize>| self.file.get(range.clone());
        Some(match self.batch.columns.get(column)? {
            RawColumn::Bool(range) => ColumnView::Bool(bytes(range)?),
            RawColumn::Int(range) => ColumnView::Int(bytes(range)?.as_chunks().0),
            RawColumn::Float(range) => ColumnView::Float(bytes(range)?.as_chunks().0),
            RawColumn::String { offsets, text } => {
                ColumnView::String(TextView { offsets: bytes(offsets)?.as_chunks().0, text: bytes(text)? })
            }
        })
    }
}

impl<'a> ColumnView<'a> {
    /// The value in a row of the batch.
    ///
    /// # Errors
    /// [`Damage`] when the row does not exist or holds no valid text.
    #[inline]
    pub fn value(&self, row: usize) -> Result<ValueRef<'a>, Damage> {
        let value = match self {
            Self::Bool(bits) => bits.get(row / 8).map(|byte| ValueRef::Bool(byte >> (row % 8) & 1 == 1)),
            Self::Int(values) => values.get(row).map(|bytes| ValueRef::Int(i64::from_le_bytes(*bytes))),
            Self::Float(values) => values.get(row).map(|bytes| ValueRef::Float(f64::from_le_bytes(*bytes))),
            Self::String(texts) => return texts.text(row).map(ValueRef::String),
        };
        value.ok_or_else(|| no_row(row))
    }
}

impl<'a> TextView<'a> {
    /// The bytes of one text, which may be no valid UTF-8: for callers that check that themselves.
    ///
    /// # Errors
    /// [`Damage`] when the row does not exist or its offsets are outside the text.
    #[inline]
    pub fn bytes(&self, row: usize) -> Result<&'a [u8], Damage> {
        let (Some(start), Some(end)) = (self.offsets.get(row), self.offsets.get(row.wrapping_add(1))) else {
            return Err(no_row(row));
        };
        let (start, end) = (i32::from_le_bytes(*start), i32::from_le_bytes(*end));
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        range.and_then(|(start, end)| self.text.get(start..end)).ok_or_else(|| {
            Damage(format!(
                "expected offsets within {} bytes of text in row {row}, found {start} to {end}",
                self.text.len()
            ))
        })
    }

    /// One text.
    ///
    /// # Errors
    /// [`Damage`] as for [`bytes`](Self::bytes), and when the text is no valid UTF-8.
    #[inline]
    pub fn text(&self, row: usize) -> Result<&'a str, Damage> {
        std::str::from_utf8(self.bytes(row)?)
            .map_err(|error| Damage(format!("expected UTF-8 text in row {row}, found an {error}")))
    }
}

impl RawColumn {
    /// The value of a row that is known to be in the batch; `None` when its text lies outside.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see `RowView::value`")]
    pub(super) fn value<'a>(&self, file: &'a [u8], row: usize) -> Option<RawValue<'a>> {
        Some(match self {
            Self::Bool(bits) => RawValue::Bool(file.get(bits.start + row / 8)? >> (row % 8) & 1 == 1),
            Self::Int(values) => RawValue::Int(i64::from_le_bytes(*word(file, values.start, row)?)),
            Self::Float(values) => RawValue::Float(f64::from_le_bytes(*word(file, values.start, row)?)),
            Self::String { offsets, text } => {
                let [s0, s1, s2, s3, e0, e1, e2, e3] = *file.get(offsets.start + row * 4..)?.first_chunk()?;
                let start = usize::try_from(i32::from_le_bytes([s0, s1, s2, s3])).ok()?;
                let end = usize::try_from(i32::from_le_bytes([e0, e1, e2, e3])).ok()?;
                RawValue::Text(file.get(text.clone())?.get(start..end)?)
            }
        })
    }

    /// Asks for the memory of one row's slot ahead of time.
    #[inline]
    pub(super) fn prefetch(&self, file: &[u8], row: usize) {
        let place = match self {
            Self::Bool(bits) => bits.start + row / 8,
            Self::Int(values) | Self::Float(values) => values.start + row * 8,
            Self::String { offsets, .. } => offsets.start + row * 4,
        };
        if let Some(slot) = file.get(place) {
            prefetch(slot);
        }
    }

    /// Asks for the text of one row ahead of time; reads its slot.
    #[inline]
    pub(super) fn prefetch_text(&self, file: &[u8], row: usize) {
        if let Self::String { offsets, text } = self
            && let Some(start) = file.get(offsets.start + row * 4..).and_then(|slot| slot.first_chunk())
            && let Ok(start) = usize::try_from(i32::from_le_bytes(*start))
            && let Some(first) = text.start.checked_add(start).and_then(|place| file.get(place))
        {
            prefetch(first);
        }
    }
}

#[inline]
fn word(file: &[u8], start: usize, row: usize) -> Option<&[u8; 8]> {
    file.get(start + row * 8..)?.first_chunk()
}

#[cold]
fn no_row(row: usize) -> Damage {
    Damage(format!("expected metadata for row {row}, found none"))
}
