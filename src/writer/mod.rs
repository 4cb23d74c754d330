//! Writing caches: samples are pulled on the calling thread and become durable files on the pool.
//!
//! ```text
//! Source::pull -> Rows -> Batch      calling thread, nothing but taking over and checking
//!   -> Job: Encoded                  pool, any order: envelopes, compression, record checksums
//!   -> CacheWrite: placement         pool, in input order under a short lock: offsets, index rows, metadata
//!   -> HashedFile                    pool, any order: writes at known offsets; SHA-256 in file order
//!   -> finish                        pool: sync, manifest, publish, while the next source is pulled
//! ```
//!
//! The bytes of a cache depend on its samples and configuration only, never on how samples were grouped into jobs.

mod batch;
mod cache;
mod call;
mod config;
mod encode;
mod existing;
mod finish;
mod hashed_file;
mod ingest;
mod job;
mod layout;
mod names;
mod outcome;
mod pipeline;
mod profile;
mod reuse;
mod shards;
mod source;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use batch::{PayloadRef, SHARE_FROM, SharedBytes};
pub use config::WriterConfig;
pub(crate) use existing::Refuse;
pub use ingest::Rows;
pub use outcome::WriteOutcome;
pub(crate) use pipeline::write_sources;
pub use profile::Stage;
pub(crate) use reuse::Reuse;
pub use source::{IterSource, OwnedSample, Source};

/// Locks; a panic elsewhere has its own way of being reported.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
