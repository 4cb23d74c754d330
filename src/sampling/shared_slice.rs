//! Numbers that several owners read: a vector, an Arrow buffer, a mapped file.

use std::fmt;
use std::sync::Arc;

/// An immutable slice together with whatever keeps it alive. Clones share it.
pub struct SharedSlice<T>(Arc<dyn AsRef<[T]> + Send + Sync>);

impl<T> SharedSlice<T> {
    /// Shares what `owner` holds. `owner` must give the same slice whenever it is asked.
    #[must_use]
    pub fn new(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }

    /// The numbers.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        (*self.0).as_ref()
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for SharedSlice<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self::new(numbers)
    }
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedSlice({})", self.as_slice().len())
    }
}
