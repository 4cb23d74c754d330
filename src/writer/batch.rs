//! Runs of consecutive samples on their way in, with the memory that their payloads and metadata take.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::format::columns::ColumnBuffer;
use crate::format::schema::Schema;
use crate::memory::reserve;

/// Most samples of one job.
const MAX_ROWS: usize = 256;

/// Most payload bytes of one job, unless it is a single sample; the same bound holds for its metadata.
const MAX_BYTES: usize = 1 << 20;

/// Payloads from this size on are better shared than copied, when their bytes cannot change.
pub const SHARE_FROM: usize = 16 * 1024;

/// Immutable bytes that somebody else owns. The owner is dropped on the thread that pulls.
pub trait SharedBytes: Send + Sync {
    /// The bytes: the same ones at every call.
    fn as_slice(&self) -> &[u8];
}

impl SharedBytes for Vec<u8> {
    fn as_slice(&self) -> &[u8] {
        self
    }
}

impl<T: SharedBytes> SharedBytes for Arc<T> {
    fn as_slice(&self) -> &[u8] {
        (**self).as_slice()
    }
}

/// The payload of a sample on its way in.
pub enum PayloadRef<'a> {
    /// Bytes that are copied now.
    Copied(&'a [u8]),
    /// Bytes that stay where they are; worth it from [`SHARE_FROM`] on.
    Shared(Box<dyn SharedBytes>),
}

impl PayloadRef<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Shared(owner) => owner.as_slice().len(),
        }
    }
}

impl fmt::Debug for PayloadRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PayloadRef({} bytes)", self.len())
    }
}

enum Payload {
    Arena { start: usize, end: usize },
    Shared(Box<dyn SharedBytes>),
}

/// A run of consecutive samples: what one job works on.
#[derive(Default)]
pub(crate) struct Batch {
    pub(super) first_row: u64,
    arena: Vec<u8>,
    payloads: Vec<Payload>,
    /// While a sample is being added, one value shorter than the payloads or as long.
    pub(super) columns: Vec<ColumnBuffer>,
    payload_bytes: usize,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.payloads.len()
    }

    pub(crate) fn first_row(&self) -> u64 {
        self.first_row
    }

    pub(crate) fn columns(&self) -> &[ColumnBuffer] {
        &self.columns
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.payload_bytes as u64
    }

    /// Memory that counts against the window.
    pub(crate) fn byte_len(&self) -> u64 {
        (self.payload_bytes + self.metadata_bytes()) as u64
    }

    pub(crate) fn payload(&self, row: usize) -> &[u8] {
        match self.payloads.get(row) {
            Some(Payload::Arena { start, end }) => self.arena.get(*start..*end).unwrap_or_default(),
            Some(Payload::Shared(owner)) => owner.as_slice(),
            None => &[],
        }
    }

    fn metadata_bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuffer::byte_len).sum()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= MAX_ROWS || self.payload_bytes >= MAX_BYTES || self.metadata_bytes() >= MAX_BYTES
    }

    /// Whether a payload of this length belongs to the next run.
    pub(super) fn is_too_full_for(&self, length: usize) -> bool {
        self.len() > 0 && self.payload_bytes + length > MAX_BYTES
    }

    /// Adds the payload of the next sample.
    pub(super) fn push(&mut self, payload: PayloadRef<'_>) -> Result<()> {
        let length = payload.len();
        self.payloads.push(match payload {
            PayloadRef::Shared(owner) => Payload::Shared(owner),
            PayloadRef::Copied(bytes) => {
                reserve(&mut self.arena, length, "a copy of a payload")?;
                let start = self.arena.len();
                self.arena.extend_from_slice(bytes);
                Payload::Arena { start, end: self.arena.len() }
            }
        });
        self.payload_bytes += length;
        Ok(())
    }

    /// Has the columns of a schema: memory may come from another source.
    pub(super) fn fit(&mut self, schema: &Schema) {
        let fields = schema.fields();
        let fits = self.columns.len() == fields.len()
            && self.columns.iter().zip(fields).all(|(column, field)| column.kind() == field.kind);
        if !fits {
            self.columns = fields.iter().map(|field| ColumnBuffer::new(field.kind)).collect();
        }
    }

    /// Forgets the samples, drops their owners and keeps the memory if it is of ordinary size.
    pub(crate) fn recycle(&mut self) {
        self.payloads.clear();
        self.payload_bytes = 0;
        self.arena.clear();
        self.arena.shrink_to(2 * MAX_BYTES);
        if self.metadata_bytes() > MAX_BYTES {
            self.columns.clear();
        }
        for column in &mut self.columns {
            column.clear();
        }
    }
}
