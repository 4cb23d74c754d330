//! Reading caches: opening them, locating records, copying payloads into buffers of the caller's choice.

mod ahead;
mod buffer;
mod cache;
mod cache_set;
mod config;
mod fetch;
mod open;
mod pending;
mod plan;
mod record;
mod record_sums;
mod shards;
mod summary;
mod temperature;
mod verify;

pub use ahead::{Announced, Drawn, Manner, SMALL_MEAN_BYTES, announce, plan_cold, plan_failed};
pub use buffer::PayloadBuffer;
pub use cache::{Cache, ManifestStamp, OpenedCache};
pub use cache_set::{CacheSet, Place};
pub use config::ReaderConfig;
pub use fetch::{Chunk, Fetched, Taken, fetch_all, fetch_one};
pub use open::open_caches;
pub use pending::PendingFetch;
pub use plan::{PlannedSample, Stretch, plan};
pub use summary::CacheSummary;
pub use temperature::Temperature;
pub use verify::{Checked, verify, verify_directory};
