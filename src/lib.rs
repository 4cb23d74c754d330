//! Caches of preprocessed samples: written once, read back fast, filtered, reweighted and reproducibly.

pub mod cancel;
pub mod checksum;
pub mod dataset;
pub mod error;
pub mod format;
pub mod fs;
pub mod ids;
pub mod mapped;
pub mod pool;
pub mod prefetch;
pub mod progress;
pub mod reader;
pub mod runtime;
pub mod sampling;
pub mod value;
pub mod writer;
