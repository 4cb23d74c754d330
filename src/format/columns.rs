//! Metadata of a run of samples, column by column, on its way into a cache.

use crate::error::{Error, Result};
use crate::value::{Kind, ValueRef};

/// Values of one column for consecutive rows.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnBuffer {
    /// Values of a [`Kind::Bool`] column.
    Bool(Vec<bool>),
    /// Values of a [`Kind::Int`] column.
    Int(Vec<i64>),
    /// Values of a [`Kind::Float`] column.
    Float(Vec<f64>),
    /// Values of a [`Kind::String`] column.
    String(TextBuffer),
}

/// Texts, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextBuffer {
    text: String,
    /// End of each row's text within `text`, on a character boundary and never falling.
    ends: Vec<usize>,
}

impl TextBuffer {
    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    #[inline]
    pub fn push(&mut self, text: &str) -> Result<()> {
        if self.text.try_reserve(text.len()).is_err() {
            return Err(Error::OutOfMemory { bytes: text.len(), purpose: "a copy of a metadata text" });
        }
        self.text.push_str(text);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// The text of `row`.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> Option<&str> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
        self.text.get(start..end)
    }

    /// All texts without separators.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the text of each row ends in [`as_str`](Self::as_str).
    #[must_use]
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }
}

impl ColumnBuffer {
    /// An empty column of this kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(Vec::new()),
            Kind::Int => Self::Int(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
            Kind::String => Self::String(TextBuffer::default()),
        }
    }

    /// Kind of all values.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::String(_) => Kind::String,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::String(texts) => texts.ends.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the values take, roughly: for bounding what is in flight.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Int(values) => values.len() * 8,
            Self::Float(values) => values.len() * 8,
            Self::String(texts) => texts.text.len() + texts.ends.len() * 8,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::WrongType`] when the value is of another kind, [`Error::OutOfMemory`]; the column is unchanged then.
    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (self, value) {
            (Self::Bool(values), ValueRef::Bool(value)) => values.push(value),
            (Self::Int(values), ValueRef::Int(value)) => values.push(value),
            (Self::Float(values), ValueRef::Float(value)) => values.push(value),
            (Self::String(texts), ValueRef::String(value)) => return texts.push(value),
            (column, value) => {
                return Err(Error::WrongType(format!(
                    "expected a metadata value of kind {}, found {}",
                    column.kind(),
                    value.kind()
                )));
            }
        }
        Ok(())
    }

    /// The value at `row`.
    #[must_use]
    #[inline]
    pub fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        match self {
            Self::Bool(values) => values.get(row).map(|value| ValueRef::Bool(*value)),
            Self::Int(values) => values.get(row).map(|value| ValueRef::Int(*value)),
            Self::Float(values) => values.get(row).map(|value| ValueRef::Float(*value)),
            Self::String(texts) => texts.get(row).map(ValueRef::String),
        }
    }

    /// Forgets all rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Bool(values) => values.truncate(rows),
            Self::Int(values) => values.truncate(rows),
            Self::Float(values) => values.truncate(rows),
            Self::String(texts) => {
                texts.ends.truncate(rows);
                texts.text.truncate(texts.ends.last().copied().unwrap_or(0));
            }
        }
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}
