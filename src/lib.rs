//! Caches of preprocessed samples: written once, read back fast, filtered, reweighted and reproducibly.

pub mod cancel;
pub mod error;
pub mod ids;
pub mod progress;
pub mod value;
