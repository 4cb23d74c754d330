//! Populations in files: what a reader in another process needs in order to draw from a table, ready to be mapped.
//!
//! A file holds the sample of every row and, for weighted draws, the weights and the finished alias tables of the parts
//! that readers will draw from. Readers map it, so that any number of them keep one copy in memory, and start without
//! looking at a row. A reader may take a stretch of the rows only.

mod digest;
mod export;
mod file;
mod order;

pub(super) use digest::digest;
pub use export::PopulationOrder;
pub(super) use export::export;
pub(super) use file::MappedPopulation;
