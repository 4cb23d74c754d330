//! Where samples come from: the trait that the writer pulls, and an adapter for plain iterators.

use crate::error::Result;
use crate::value::{MetadataValue, ValueRef};

use super::batch::PayloadRef;
use super::ingest::Rows;
use super::profile::Stage;

/// One source of samples, pulled on the thread that called the write.
///
/// For each source the writer calls `name`, then `fingerprint`, then `start`, then `pull` until it is exhausted or
/// fails, then `stop`. [`Error::Interrupted`](crate::error::Error::Interrupted) from any of them ends the whole
/// write; every other error is the result of this source only.
pub trait Source {
    /// The name of the cache to write.
    ///
    /// # Errors
    /// The reason why there is no name that is valid text.
    fn name(&self) -> std::result::Result<String, String>;

    /// Text that changes when the content of the source changes, if the source has one.
    ///
    /// # Errors
    /// When the source cannot tell.
    fn fingerprint(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Creates the iterator. Nothing of this source is on disk before.
    ///
    /// # Errors
    /// When the source cannot be iterated.
    fn start(&mut self) -> Result<()>;

    /// Appends the next sample to `rows`; `false` when there is none left.
    ///
    /// # Errors
    /// When the source fails or yields something that is no sample.
    fn pull(&mut self, rows: &mut Rows) -> Result<bool>;

    /// Drops the iterator. Called once for each `start`, whatever happened in between.
    fn stop(&mut self);
}

/// A sample as Rust callers make it: payload and metadata.
pub type OwnedSample = (Vec<u8>, Vec<(String, MetadataValue)>);

/// A named iterator of samples as a [`Source`].
#[derive(Debug)]
pub struct IterSource<I> {
    name: String,
    fingerprint: Option<String>,
    samples: Option<I>,
}

impl<I: Iterator<Item = OwnedSample>> IterSource<I> {
    /// A source called `name` that yields what `samples` yields, once.
    pub fn new(name: impl Into<String>, samples: impl IntoIterator<IntoIter = I>) -> Self {
        Self { name: name.into(), fingerprint: None, samples: Some(samples.into_iter()) }
    }

    /// The same source with a fingerprint.
    #[must_use]
    pub fn with_fingerprint(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }
}

impl<I: Iterator<Item = OwnedSample>> Source for IterSource<I> {
    fn name(&self) -> std::result::Result<String, String> {
        Ok(self.name.clone())
    }

    fn fingerprint(&mut self) -> Result<Option<String>> {
        Ok(self.fingerprint.clone())
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn pull(&mut self, rows: &mut Rows) -> Result<bool> {
        let started = rows.stage_started();
        let next = self.samples.as_mut().and_then(Iterator::next);
        rows.stage_ended(Stage::SourceNext, started, 0);
        let Some((payload, metadata)) = next else { return Ok(false) };
        let metadata: Vec<(&str, ValueRef<'_>)> =
            metadata.iter().map(|(key, value)| (key.as_str(), value.as_ref())).collect();
        rows.push(PayloadRef::Copied(&payload), &metadata)?;
        Ok(true)
    }

    fn stop(&mut self) {
        self.samples = None;
    }
}
