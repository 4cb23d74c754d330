//! Turning a run of samples into stored records: pure work on memory, done on the pool.

use std::ops::Range;

use crate::cancel::CancelToken;
use crate::checksum::{blake3_64_each, blake3_64_until};
use crate::error::{Error, Result};
use crate::format::columns::ColumnBuffer;
use crate::format::compression::CompressionAlgo;
use crate::format::record::RecordEncoder;

use super::batch::Batch;
use super::profile::{Stage, StageTimes};

/// Payloads from this size on are written from where they are instead of being copied behind their envelope.
const WRITE_IN_PLACE_FROM: usize = 32 * 1024;

/// What is copied all the same, the envelope and the first bytes of such a payload, has a multiple of this length. BLAKE3 cuts
/// a record into chunks and hashes many side by side; from the middle of a chunk on it would take them in smaller groups.
const HEAD_BYTES: usize = 16 * 1024;

/// The records of a batch. Their bytes are those of `own`, in order, with the ends of payloads that stay in the batch in
/// between.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    own: Vec<u8>,
    records: Vec<Record>,
    checksums: Vec<u64>,
    /// Scratch memory.
    ranges: Vec<Range<usize>>,
}

/// One record of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    own_start: usize,
    own_end: usize,
    /// Bytes at the end of the payload that follow the own bytes from the batch; 0 when all bytes are own.
    in_place: usize,
    /// Bytes of the payload before compression.
    pub(crate) payload_len: u64,
}

impl Record {
    /// Bytes in the shard.
    pub(crate) fn stored_len(self) -> u64 {
        (self.own_end - self.own_start + self.in_place) as u64
    }

    fn is_long(self) -> bool {
        self.stored_len() > WRITE_IN_PLACE_FROM as u64
    }

    /// The bytes of its payload that are not own.
    fn rest(self, payload: &[u8]) -> &[u8] {
        payload.get(payload.len().saturating_sub(self.in_place)..).unwrap_or_default()
    }
}

impl Encoded {
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Encodes all samples of `batch`.
    pub(crate) fn fill(
        &mut self,
        batch: &Batch,
        encoder: &RecordEncoder,
        algo: CompressionAlgo,
        times: &mut StageTimes,
        cancel: &CancelToken,
    ) -> Result<()> {
        let started = times.started();
        let mut compressing = std::time::Duration::ZERO;
        self.records.reserve(batch.len());
        for row in 0..batch.len() {
            cancel.check()?;
            let own_start = self.own.len();
            let refuse = |error| match error {
                Error::Interrupted => error,
                error => Error::InvalidValue(format!("row {}: {error}", batch.first_row() + row as u64)),
            };
            let values = batch.columns().iter().filter_map(|column| ColumnBuffer::get(column, row));
            encoder.encode(values, &mut self.own).map_err(refuse)?;
            let payload = batch.payload(row);
            let mut in_place = 0;
            if algo == CompressionAlgo::None {
                let mut copied = payload;
                if payload.len() >= WRITE_IN_PLACE_FROM {
                    let envelope = self.own.len() - own_start;
                    let head = envelope.next_multiple_of(HEAD_BYTES) - envelope;
                    copied = payload.get(..head).unwrap_or(payload);
                    in_place = payload.len() - copied.len();
                }
                self.own.extend_from_slice(copied);
            } else {
                let started = times.started();
                algo.compress(payload, &mut self.own, cancel).map_err(refuse)?;
                if let Some(started) = started {
                    let spent = started.elapsed();
                    compressing += spent;
                    times.add(Stage::Compression, spent, payload.len() as u64);
                }
            }
            let own_end = self.own.len();
            self.records.push(Record { own_start, own_end, in_place, payload_len: payload.len() as u64 });
        }
        self.checksum(batch, cancel)?;
        if let Some(started) = started {
            let spent = started.elapsed().saturating_sub(compressing);
            times.add(Stage::RecordEncode, spent, batch.payload_bytes());
        }
        Ok(())
    }

    /// Checksums of all records in order.
    pub(crate) fn checksums(&self) -> &[u64] {
        &self.checksums
    }

    fn checksum(&mut self, batch: &Batch, cancel: &CancelToken) -> Result<()> {
        self.ranges.clear();
        // Long ones are done below, together with what is not own.
        let range = |record: &Record| if record.is_long() { 0..0 } else { record.own_start..record.own_end };
        self.ranges.extend(self.records.iter().map(range));
        blake3_64_each(&self.own, &self.ranges, &mut self.checksums);
        for (row, (record, checksum)) in self.records.iter().zip(&mut self.checksums).enumerate() {
            if record.is_long() {
                let own = self.own.get(record.own_start..record.own_end).unwrap_or_default();
                *checksum = blake3_64_until(&[own, record.rest(batch.payload(row))], cancel)?;
            }
        }
        Ok(())
    }

    /// Hands the bytes of consecutive records to `take` in order, in as few pieces as they lie in memory.
    pub(crate) fn pieces<E>(
        &self,
        batch: &Batch,
        records: Range<usize>,
        mut take: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let first = records.start;
        let Some(range) = self.records.get(records) else { return Ok(()) };
        let mut start = range.first().map_or(0, |record| record.own_start);
        let mut end = start;
        for (row, record) in (first..).zip(range) {
            end = record.own_end;
            if record.in_place > 0 {
                take(self.own.get(start..end).unwrap_or_default())?;
                take(record.rest(batch.payload(row)))?;
                start = end;
            }
        }
        if start < end { take(self.own.get(start..end).unwrap_or_default()) } else { Ok(()) }
    }

    /// Forgets the records and keeps the memory if it is of ordinary size.
    pub(crate) fn recycle(&mut self) {
        const KEPT_BYTES: usize = 4 << 20;
        self.records.clear();
        self.own.clear();
        self.own.shrink_to(KEPT_BYTES);
    }
}
