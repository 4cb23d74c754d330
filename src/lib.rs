//! Caches of preprocessed samples: written once, read back fast, filtered, reweighted and reproducibly.
//!
//! A [`Source`] becomes a cache: an immutable directory. A [`Dataset`] reads one or more caches through a table that says
//! which samples are drawn and how often. A [`Runtime`] owns the threads that do both.
//!
//! ```
//! use dataset_rt::cancel::PlainWaiter;
//! use dataset_rt::progress::NoProgress;
//! use dataset_rt::value::MetadataValue;
//! use dataset_rt::{IterSource, ReaderConfig, Runtime, WriterConfig};
//!
//! # fn main() -> dataset_rt::Result<()> {
//! # let base = tempfile::tempdir().unwrap();
//! # let base = base.path();
//! let runtime = Runtime::new(2)?;
//! let waiter = &mut PlainWaiter::default();
//!
//! let metadata = |number| vec![("number".to_owned(), MetadataValue::Int(number))];
//! let mut squares = IterSource::new("squares", (0..100).map(|n| ((n * n).to_string().into_bytes(), metadata(n))));
//! let outcomes = runtime.write(&mut [&mut squares], base, &WriterConfig::default(), waiter, &mut NoProgress)?;
//! assert_eq!(outcomes[0].result, Ok(base.join("squares")));
//!
//! let in_order = ReaderConfig { shuffle: false, ..ReaderConfig::new(42) };
//! let dataset = runtime.open(&[base.join("squares")], in_order, waiter)?;
//! let samples = dataset.samples()?.into_iter().collect::<dataset_rt::Result<Vec<_>>>()?;
//! assert_eq!(samples.len(), 100);
//! assert_eq!(samples[7].data, b"49");
//! assert_eq!(samples[7].metadata, metadata(7));
//! # Ok(())
//! # }
//! ```
//!
//! The Python package over this crate is built with the feature `python`.

pub mod cancel;
pub mod checksum;
pub mod dataset;
pub mod error;
pub mod format;
pub mod fs;
pub mod ids;
pub mod mapped;
pub mod memory;
pub mod pool;
pub mod prefetch;
pub mod progress;
pub mod reader;
pub mod runtime;
pub mod sampling;
pub mod terminal;
pub mod upgrade;
pub mod value;
pub mod writer;

pub use dataset::{Dataset, Sample};
pub use error::{Error, Result};
pub use reader::ReaderConfig;
pub use runtime::Runtime;
pub use writer::{IterSource, Source, WriteOutcome, WriterConfig};

#[cfg(feature = "python")]
mod python;
