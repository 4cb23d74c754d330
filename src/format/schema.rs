//! Which metadata columns a cache has.

use crate::error::{Error, Result, excerpt};
use crate::value::Kind;

/// One metadata column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Key of the column in a sample's metadata.
    pub name: String,
    /// Kind of all its values.
    pub kind: Kind,
}

/// The metadata columns of a cache, sorted by name in code point order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Schema {
    fields: Vec<Field>,
}

impl Schema {
    /// The schema with these columns, given in any order.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when two columns have the same name.
    pub fn new(mut fields: Vec<Field>) -> Result<Self> {
        // UTF-8 compares bytewise in code point order.
        fields.sort_by(|left, right| left.name.cmp(&right.name));
        for pair in fields.windows(2) {
            if let [left, right] = pair
                && left.name == right.name
            {
                return Err(Error::InvalidValue(format!(
                    "metadata column {:?} occurs twice, expected unique names",
                    excerpt(&left.name)
                )));
            }
        }
        Ok(Self { fields })
    }

    /// The columns in schema order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether samples have no metadata.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Place of the column called `name`.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()
    }

    /// Whether both have the same names and kinds, in whatever order they were given.
    #[must_use]
    pub fn same_columns(&self, other: &Self) -> bool {
        self == other
    }
}
