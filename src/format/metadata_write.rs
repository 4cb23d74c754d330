//! Writing `metadata.arrow` in bounded memory: columns are spooled while rows arrive and joined at the end.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Block, Buffer, FieldNode, FooterBuilder, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use super::columns::{ColumnBuffer, TextBuffer};
use super::metadata_parse::{ALIGNMENT, CONTINUATION, MAGIC, arrow_schema, padding};
use super::schema::Schema;
use crate::cancel::CancelToken;
use crate::checksum::HashingWriter;
use crate::error::{Error, Result};
use crate::fs::{NewFile, Spools};
use crate::value::Kind;

/// Text of one column in one batch: offsets are signed 32-bit integers.
pub const MAX_BATCH_TEXT: usize = i32::MAX as usize;

/// What all columns together may keep in memory before they go to the temporary file, and the bounds for one stream.
const MEMORY_BYTES: usize = 8 << 20;
const STREAM_MEMORY: (usize, usize) = (64 << 10, 1 << 20);

/// Bytes written between two looks at the cancel token.
const COPY_STEP: u64 = 4 << 20;

/// Collects the metadata of a cache row by row and writes it as one Arrow IPC file.
#[derive(Debug)]
pub struct MetadataWriter {
    schema: Schema,
    columns: Vec<ColumnState>,
    spools: Spools,
    max_batch_text: usize,
    /// Finished batches: their rows and the lengths of all streams behind them.
    finished: Vec<(u64, Vec<u64>)>,
    /// Rows of the batch being filled.
    batch_rows: u64,
    scratch: Vec<u8>,
}

/// What a column of the batch being filled needs beside its streams.
#[derive(Debug)]
struct ColumnState {
    kind: Kind,
    /// The column's only stream, or for text the offsets; the text itself is the next stream.
    stream: usize,
    /// Bits of a boolean column that do not fill a byte yet, and their number.
    bits: (u8, u32),
    /// Bytes of text so far.
    text_len: usize,
}

impl MetadataWriter {
    /// A writer without rows. What does not fit into memory goes to a temporary file at `spool`, which
    /// is unlinked as soon as it exists.
    #[must_use]
    pub fn new(schema: &Schema, spool: PathBuf) -> Self {
        Self::with_batch_text(schema, spool, MAX_BATCH_TEXT)
    }

    /// The same with another limit for the text of one column in one batch.
    #[must_use]
    pub fn with_batch_text(schema: &Schema, spool: PathBuf, max_batch_text: usize) -> Self {
        let mut streams = 0;
        let columns = schema.fields().iter().map(|field| {
            let stream = streams;
            streams += if field.kind == Kind::String { 2 } else { 1 };
            ColumnState { kind: field.kind, stream, bits: (0, 0), text_len: 0 }
        });
        let columns: Vec<ColumnState> = columns.collect();
        let memory_limit = (MEMORY_BYTES / streams.max(1)).clamp(STREAM_MEMORY.0, STREAM_MEMORY.1);
        Self {
            schema: schema.clone(),
            columns,
            spools: Spools::new(spool, streams, memory_limit),
            max_batch_text: max_batch_text.min(MAX_BATCH_TEXT),
            finished: Vec::new(),
            batch_rows: 0,
            scratch: Vec::new(),
        }
    }

    /// Adds `rows` rows, given as one column after the other in schema order.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] when the columns do not fit the schema or a single text is too long for the format,
    /// [`Error::File`] when the temporary file fails. The writer is of no further use then.
    pub fn append(&mut self, rows: usize, columns: &[ColumnBuffer]) -> Result<()> {
        let fits = columns.len() == self.columns.len()
            && columns.iter().zip(&self.columns).all(|(given, own)| given.kind() == own.kind && given.len() == rows);
        if !fits {
            return Err(Error::InvalidValue(format!(
                "expected {} metadata columns of {rows} rows in the kinds of the schema",
                self.columns.len()
            )));
        }
        let mut start = 0;
        while start < rows {
            let end = self.last_fitting(start, rows, columns);
            if end > start {
                self.append_rows(start, end, columns)?;
                self.batch_rows += (end - start) as u64;
            } else if self.batch_rows == 0 {
                return Err(Error::InvalidValue(format!(
                    "expected metadata texts of at most {} bytes, found a longer one",
                    self.max_batch_text
                )));
            }
            if end < rows {
                self.finish_batch()?;
            }
            start = end;
        }
        Ok(())
    }

    /// The end of the longest run of rows from `start` on that the current batch has room for.
    fn last_fitting(&self, start: usize, rows: usize, columns: &[ColumnBuffer]) -> usize {
        let mut last = rows;
        for (state, column) in self.columns.iter().zip(columns) {
            if let ColumnBuffer::String(texts) = column {
                let room = text_start(texts, start).saturating_add(self.max_batch_text - state.text_len);
                let ends = texts.ends().get(start..last).unwrap_or_default();
                last = start + ends.partition_point(|end| *end <= room);
            }
        }
        last
    }

    fn append_rows(&mut self, start: usize, end: usize, columns: &[ColumnBuffer]) -> Result<()> {
        for (state, column) in self.columns.iter_mut().zip(columns) {
            self.scratch.clear();
            match column {
                ColumnBuffer::Bool(values) => {
                    for value in values.get(start..end).unwrap_or_default() {
                        state.bits.0 |= u8::from(*value) << state.bits.1;
                        state.bits.1 += 1;
                        if state.bits.1 == u8::BITS {
                            self.scratch.push(state.bits.0);
                            state.bits = (0, 0);
                        }
                    }
                }
                ColumnBuffer::Int(values) => {
                    let values = values.get(start..end).unwrap_or_default();
                    self.scratch.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                }
                ColumnBuffer::Float(values) => {
                    let values = values.get(start..end).unwrap_or_default();
                    self.scratch.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                }
                ColumnBuffer::String(texts) => {
                    if self.batch_rows == 0 {
                        self.scratch.extend_from_slice(&0_i32.to_le_bytes());
                    }
                    let before = text_start(texts, start);
                    let mut text_end = before;
                    for row_end in texts.ends().get(start..end).unwrap_or_default() {
                        text_end = *row_end;
                        // The batch ends before this could overflow.
                        let offset = i32::try_from(state.text_len + (text_end - before)).unwrap_or(i32::MAX);
                        self.scratch.extend_from_slice(&offset.to_le_bytes());
                    }
                    let text = texts.as_str().get(before..text_end).unwrap_or_default();
                    self.spools.append(state.stream + 1, text.as_bytes())?;
                    state.text_len += text.len();
                }
            }
            self.spools.append(state.stream, &self.scratch)?;
        }
        Ok(())
    }

    /// Ends the batch being filled; the next row begins another one.
    fn finish_batch(&mut self) -> Result<()> {
        for state in &mut self.columns {
            if state.bits.1 > 0 {
                self.spools.append(state.stream, &[state.bits.0])?;
            }
            (state.bits, state.text_len) = ((0, 0), 0);
        }
        let lengths = (0..self.spools.streams()).map(|stream| self.spools.len(stream)).collect();
        self.finished.push((self.batch_rows, lengths));
        self.batch_rows = 0;
        Ok(())
    }

    /// Writes everything to a new file at `path`, syncs it, and returns its SHA-256.
    ///
    /// # Errors
    /// [`Error::File`] when a file cannot be written, [`Error::Interrupted`] after `cancel` was cancelled.
    pub fn finish(mut self, path: &Path, cancel: &CancelToken) -> Result<String> {
        if self.batch_rows > 0 {
            self.finish_batch()?;
        }
        let file = NewFile::create(path)?;
        let mut out = IpcWriter { out: BufWriter::new(HashingWriter::new(file)), position: 0, path };
        out.write(MAGIC)?;
        out.pad(MAGIC.len() as u64, 8)?;
        out.schema_message(&self.schema)?;
        let mut blocks = Vec::with_capacity(self.finished.len());
        let mut before = vec![0; self.spools.streams()];
        for (rows, behind) in std::mem::take(&mut self.finished) {
            let lengths: Vec<u64> = before.iter().zip(&behind).map(|(before, behind)| behind - before).collect();
            let block = out.batch_message(rows, &self.columns, &lengths)?;
            for (stream, (start, end)) in before.iter().zip(&behind).enumerate() {
                let mut place = *start;
                while place < *end {
                    cancel.check()?;
                    let step = place..(place + COPY_STEP).min(*end);
                    place = step.end;
                    self.spools.copy_to(stream, step, &mut out.out, path)?;
                }
                out.position += end - start;
                out.pad(end - start, ALIGNMENT)?;
            }
            blocks.push(block);
            before = behind;
        }
        out.footer(&self.schema, &blocks)?;
        out.finish()
    }
}

fn text_start(texts: &TextBuffer, row: usize) -> usize {
    row.checked_sub(1).and_then(|previous| texts.ends().get(previous)).copied().unwrap_or(0)
}

/// The frame around the column data.
struct IpcWriter<'a> {
    out: BufWriter<HashingWriter<NewFile>>,
    position: u64,
    path: &'a Path,
}

impl IpcWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::file("write", self.path, error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Fills up with zeros behind `length` bytes that began at a multiple of `alignment`.
    fn pad(&mut self, length: u64, alignment: u64) -> Result<()> {
        const ZEROS: [u8; 64] = [0; 64];
        let count = usize::try_from(padding(length, alignment)).unwrap_or(0);
        self.write(ZEROS.get(..count).unwrap_or_default())
    }

    fn too_large(&self) -> Error {
        Error::file("write", self.path, std::io::ErrorKind::FileTooLarge.into())
    }

    /// Writes a message so that what follows it is aligned. Returns the bytes it takes.
    fn message(
        &mut self,
        mut builder: FlatBufferBuilder<'_>,
        header_type: MessageHeader,
        header: WIPOffset<UnionWIPOffset>,
        body_len: u64,
    ) -> Result<i32> {
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(header_type);
        message.add_header(header);
        message.add_bodyLength(i64::try_from(body_len).map_err(|_| self.too_large())?);
        let message = message.finish();
        builder.finish(message, None);
        let bytes = builder.finished_data();
        let fill = padding(self.position + 8 + bytes.len() as u64, ALIGNMENT);
        let length = i32::try_from(bytes.len() as u64 + fill).map_err(|_| self.too_large())?;
        self.write(&CONTINUATION)?;
        self.write(&length.to_le_bytes())?;
        self.write(bytes)?;
        self.pad(self.position, ALIGNMENT)?;
        Ok(length + 8)
    }

    fn schema_message(&mut self, schema: &Schema) -> Result<()> {
        let mut builder = FlatBufferBuilder::new();
        let header = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &arrow_schema(schema));
        self.message(builder, MessageHeader::Schema, header.as_union_value(), 0)?;
        Ok(())
    }

    fn batch_message(&mut self, rows: u64, columns: &[ColumnState], lengths: &[u64]) -> Result<Block> {
        let signed = |value: u64| i64::try_from(value).map_err(|_| self.too_large());
        let rows = signed(rows)?;
        let mut body_len = 0;
        let mut buffers = Vec::new();
        for column in columns {
            // Nothing is null, so there is no validity buffer.
            buffers.push(Buffer::new(signed(body_len)?, 0));
            let streams = if column.kind == Kind::String { 2 } else { 1 };
            for length in lengths.iter().skip(column.stream).take(streams) {
                buffers.push(Buffer::new(signed(body_len)?, signed(*length)?));
                body_len += length + padding(*length, ALIGNMENT);
            }
        }
        let body_length = signed(body_len)?;
        let mut builder = FlatBufferBuilder::new();
        let buffers = builder.create_vector(&buffers);
        let nodes = builder.create_vector(&vec![FieldNode::new(rows, 0); columns.len()]);
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        let header = batch.finish();
        let offset = signed(self.position)?;
        let length = self.message(builder, MessageHeader::RecordBatch, header.as_union_value(), body_len)?;
        Ok(Block::new(offset, length, body_length))
    }

    fn footer(&mut self, schema: &Schema, blocks: &[Block]) -> Result<()> {
        self.write(&CONTINUATION)?;
        self.write(&0_i32.to_le_bytes())?;
        let mut builder = FlatBufferBuilder::new();
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &arrow_schema(schema));
        let batches = builder.create_vector(blocks);
        let dictionaries = builder.create_vector::<Block>(&[]);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(batches);
        let footer = footer.finish();
        builder.finish(footer, None);
        let bytes = builder.finished_data();
        self.write(bytes)?;
        self.write(&i32::try_from(bytes.len()).map_err(|_| self.too_large())?.to_le_bytes())?;
        self.write(MAGIC)
    }

    fn finish(self) -> Result<String> {
        let failed = |error| Error::file("write", self.path, error);
        let hashing = self.out.into_inner().map_err(|error| failed(error.into_error()))?;
        let (file, digest) = hashing.finish();
        file.sync()?;
        Ok(digest)
    }
}
