//! Metadata values: what one cell of a sample's metadata may hold.

use std::fmt;

/// Kind of a metadata column. One kind holds for every row of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// Signed 64-bit integer.
    Int,
    /// IEEE 754 double, NaN and infinities included.
    Float,
    /// Valid Unicode text.
    String,
}

impl Kind {
    /// The name used in manifests and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::String => "string",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Bool, Self::Int, Self::Float, Self::String].into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One metadata value, owning its text.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataValue {
    /// See [`Kind::Bool`].
    Bool(bool),
    /// See [`Kind::Int`].
    Int(i64),
    /// See [`Kind::Float`].
    Float(f64),
    /// See [`Kind::String`].
    String(String),
}

/// One metadata value, borrowing its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    /// See [`Kind::Bool`].
    Bool(bool),
    /// See [`Kind::Int`].
    Int(i64),
    /// See [`Kind::Float`].
    Float(f64),
    /// See [`Kind::String`].
    String(&'a str),
}

impl ValueRef<'_> {
    /// Kind of this value.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::String(_) => Kind::String,
        }
    }

    /// The same value, owning its text.
    #[must_use]
    pub fn to_owned(self) -> MetadataValue {
        match self {
            Self::Bool(value) => MetadataValue::Bool(value),
            Self::Int(value) => MetadataValue::Int(value),
            Self::Float(value) => MetadataValue::Float(value),
            Self::String(value) => MetadataValue::String(value.to_owned()),
        }
    }
}

impl MetadataValue {
    /// The same value, borrowing its text.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Bool(value) => ValueRef::Bool(*value),
            Self::Int(value) => ValueRef::Int(*value),
            Self::Float(value) => ValueRef::Float(*value),
            Self::String(value) => ValueRef::String(value),
        }
    }
}
