//! One run of samples on its way through the pool.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::compression::CompressionAlgo;
use crate::format::record::RecordEncoder;

use super::batch::Batch;
use super::call::Call;
use super::encode::Encoded;
use super::profile::StageTimes;

/// A batch and its records. While it lives it takes room in the window; when it goes, in whatever way, its memory and the
/// owners of its payloads travel back to the thread that pulls.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) encoded: Encoded,
    bytes: u64,
    call: Arc<Call>,
}

impl Job {
    /// A job for which the caller has made sure of room in the window.
    pub(crate) fn enter(call: &Arc<Call>, batch: Batch) -> Self {
        let bytes = batch.byte_len();
        let encoded = call.enter(bytes);
        Self { batch, encoded, bytes, call: Arc::clone(call) }
    }

    /// Makes the records of the batch.
    pub(crate) fn encode(
        &mut self,
        encoder: &RecordEncoder,
        algo: CompressionAlgo,
        times: &mut StageTimes,
    ) -> Result<()> {
        self.encoded.fill(&self.batch, encoder, algo, times, self.call.cancel())
    }

    /// The bytes of some of its records in order.
    pub(crate) fn pieces<E>(
        &self,
        records: Range<usize>,
        take: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.encoded.pieces(&self.batch, records, take)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.call.leave(self.bytes, std::mem::take(&mut self.batch), std::mem::take(&mut self.encoded));
    }
}
