//! The envelope of a record: the length of its metadata, then the metadata as one JSON object.
//!
//! The stored payload follows the envelope directly. The JSON is there for inspection and recovery; readers
//! take metadata from `metadata.arrow` and only skip it.

use super::schema::Schema;
use crate::error::Result;
use crate::memory::reserve;
use crate::value::ValueRef;

/// Bytes of the length in front of the JSON.
pub const LENGTH_BYTES: usize = 8;

/// Texts from this size on are worth asking for memory.
const LARGE_TEXT: usize = 64 * 1024;

/// Writes envelopes for one schema.
#[derive(Debug, Clone)]
pub struct RecordEncoder {
    /// For each column what stands before its value: `{` or `,`, then the key and `:`.
    prefixes: Vec<Box<[u8]>>,
}

impl RecordEncoder {
    /// An encoder for samples with this schema.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let prefixes = schema.fields().iter().enumerate().map(|(position, field)| {
            let mut prefix = vec![if position == 0 { b'{' } else { b',' }];
            append_json(&mut prefix, field.name.as_str());
            prefix.push(b':');
            prefix.into_boxed_slice()
        });
        Self { prefixes: prefixes.collect() }
    }

    /// Appends the envelope of one sample. `values` are its metadata in schema order, exactly one a column.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::error::Error::OutOfMemory) when there is none for a large text.
    #[inline]
    pub fn encode<'a>(&self, values: impl IntoIterator<Item = ValueRef<'a>>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        if self.prefixes.is_empty() {
            out.push(b'{');
        }
        let mut values = values.into_iter();
        for (prefix, value) in self.prefixes.iter().zip(values.by_ref()) {
            out.extend_from_slice(prefix);
            match value {
                ValueRef::Bool(true) => out.extend_from_slice(b"true"),
                ValueRef::Bool(false) => out.extend_from_slice(b"false"),
                ValueRef::Int(value) => append_json(out, &value),
                ValueRef::Float(value) => append_json(out, &value),
                ValueRef::String(value) => {
                    if value.len() >= LARGE_TEXT {
                        reserve(out, json_bound(value), "a record")?;
                    }
                    append_json(out, value);
                }
            }
        }
        out.push(b'}');
        let json_bytes = (out.len() - start - LENGTH_BYTES) as u64;
        if let Some(length) = out.get_mut(start..start + LENGTH_BYTES) {
            length.copy_from_slice(&json_bytes.to_le_bytes());
        }
        Ok(())
    }
}

/// Bytes that a text takes at most: `\u0000` is the longest escape.
fn json_bound(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')).count();
    text.len().saturating_add(escaped.saturating_mul(5)).saturating_add(2)
}

/// `serde_json` is the reference for how numbers and escapes look; NaN and infinities become `null`.
#[inline]
fn append_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "numbers and text always serialise, and a vector accepts every byte");
}

/// Where the stored payload starts within `record`; `None` when the record is shorter than its envelope claims.
#[must_use]
#[inline]
pub fn payload_offset(record: &[u8]) -> Option<usize> {
    let length = u64::from_le_bytes(*record.first_chunk::<LENGTH_BYTES>()?);
    let offset = usize::try_from(length).ok()?.checked_add(LENGTH_BYTES)?;
    (offset <= record.len()).then_some(offset)
}
