//! Samples for users of the crate: an iterator whose items own their data.

use std::sync::Arc;

use crate::cancel::PlainWaiter;
use crate::dataset::SampleStream;
use crate::error::Result;
use crate::ids::{CacheId, SampleId};
use crate::reader::{CacheSet, Chunk, Fetched};
use crate::value::MetadataValue;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its payload.
    pub data: Vec<u8>,
    /// Its metadata, by name.
    pub metadata: Vec<(String, MetadataValue)>,
    /// The cache it is stored in.
    pub cache_id: CacheId,
    /// Its row within that cache.
    pub sample_id: SampleId,
}

impl Sample {
    /// Adds to a payload everything else that belongs to the sample.
    ///
    /// # Errors
    /// [`crate::error::Error::Sample`] when the payload could not be read or a metadata value is damaged.
    pub fn new(caches: &CacheSet, fetched: Fetched<Vec<u8>>) -> Result<Self> {
        let Fetched { place, payload } = fetched;
        let data = payload.map_err(|error| *error)?;
        let cache = caches.cache(place.cache)?;
        let columns = caches.schema().fields().iter().enumerate().map(|(column, field)| {
            let value = cache.value(column, place.row)?;
            Ok((field.name.clone(), value.to_owned()))
        });
        Ok(Self {
            data,
            metadata: columns.collect::<Result<_>>()?,
            cache_id: cache.id(),
            sample_id: SampleId(place.row),
        })
    }
}

/// The samples of one window, waiting for them as long as it takes. See [`SampleStream`].
#[derive(Debug)]
pub struct Samples {
    stream: SampleStream<Vec<u8>>,
    chunk: Chunk<Vec<u8>>,
}

impl IntoIterator for SampleStream<Vec<u8>> {
    type Item = Result<Sample>;
    type IntoIter = Samples;

    fn into_iter(self) -> Samples {
        Samples { stream: self, chunk: Chunk::default() }
    }
}

impl Iterator for Samples {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Result<Sample>> {
        loop {
            if let Some(taken) = self.chunk.next() {
                let caches = Arc::clone(self.stream.caches());
                return Some(Sample::new(&caches, taken.read(&caches)));
            }
            match self.stream.next_chunk(&mut PlainWaiter::default()) {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
