//! The structure of an Arrow IPC file: which bytes are which column. Nothing here looks at values.

use std::ops::Range;

use arrow_ipc::{Block, Field as IpcField, MessageHeader, MetadataVersion, Precision, RecordBatch, Type};
use arrow_schema::DataType;
use flatbuffers::VerifierOptions;

use super::Damage;
use super::schema::{Field, Schema};
use crate::value::Kind;

/// First and last bytes of the file.
pub(super) const MAGIC: &[u8] = b"ARROW1";
/// First bytes of a message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
/// What begins at a multiple of this many bytes: message bodies and the buffers in them.
pub(super) const ALIGNMENT: u64 = 64;

/// Where the bytes of a column lie in the file. The ranges are inside the file and, but for text,
/// exactly as long as the rows need.
#[derive(Debug, Clone)]
pub(super) enum RawColumn {
    Bool(Range<usize>),
    Int(Range<usize>),
    Float(Range<usize>),
    String { offsets: Range<usize>, text: Range<usize> },
}

/// One batch with at least one row.
#[derive(Debug)]
pub(super) struct RawBatch {
    pub(super) rows: usize,
    pub(super) columns: Vec<RawColumn>,
}

/// Zeros needed behind `length` bytes.
pub(super) fn padding(length: u64, alignment: u64) -> u64 {
    length.next_multiple_of(alignment) - length
}

/// Arrow type of a kind.
pub(super) fn arrow_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::String => DataType::Utf8,
    }
}

/// Arrow schema of metadata: nothing is null.
pub(super) fn arrow_schema(schema: &Schema) -> arrow_schema::Schema {
    let field = |field: &Field| arrow_schema::Field::new(&field.name, arrow_type(field.kind), false);
    arrow_schema::Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
}

/// The columns of the file in its own order, and its batches.
pub(super) fn parse(file: &[u8]) -> Result<(Vec<Field>, Vec<RawBatch>), Damage> {
    let footer = footer_bytes(file).ok_or_else(|| damage("it does not begin and end like an Arrow IPC file"))?;
    let footer = arrow_ipc::root_as_footer_with_opts(&limits(footer), footer).map_err(unreadable)?;
    let schema = footer.schema().ok_or_else(|| damage("its footer has no schema"))?;
    if !matches!(footer.version(), MetadataVersion::V4 | MetadataVersion::V5) {
        return Err(damage("its metadata version is none of V4 and V5"));
    }
    if schema.endianness() != arrow_ipc::Endianness::Little {
        return Err(damage("its numbers are big endian"));
    }
    let fields = schema.fields().into_iter().flatten().map(field).collect::<Result<Vec<_>, _>>()?;
    let mut batches = Vec::new();
    // Messages that lie one behind the other cannot describe more than the file could hold.
    let mut free = MAGIC.len();
    for block in footer.recordBatches().into_iter().flatten() {
        let batch = batch(file, &mut free, block, &fields)?;
        if batch.rows > 0 {
            batches.push(batch);
        }
    }
    Ok((fields, batches))
}

pub(super) fn damage(detail: &str) -> Damage {
    Damage(format!("expected an Arrow IPC file with metadata, but {detail}"))
}

pub(super) fn unreadable(error: impl std::fmt::Display) -> Damage {
    // The verifier appends a trace over many lines.
    damage(error.to_string().lines().next().unwrap_or_default())
}

/// Keeps the verifier from following the same bytes again and again.
pub(super) fn limits(bytes: &[u8]) -> VerifierOptions {
    VerifierOptions {
        max_tables: bytes.len() / 4 + 16,
        max_apparent_size: bytes.len().saturating_mul(4).saturating_add(1 << 16),
        ..VerifierOptions::default()
    }
}

pub(super) fn footer_bytes(file: &[u8]) -> Option<&[u8]> {
    let rest = file.strip_prefix(MAGIC)?.strip_suffix(MAGIC)?;
    let (rest, length) = rest.split_last_chunk::<4>()?;
    let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
    rest.get(rest.len().checked_sub(length)?..)
}

fn field(field: IpcField<'_>) -> Result<Field, Damage> {
    let name = field.name().ok_or_else(|| damage("it has a column without a name"))?;
    let kind = match field.type_type() {
        Type::Bool => Some(Kind::Bool),
        Type::Utf8 => Some(Kind::String),
        Type::Int => field.type_as_int().filter(|int| int.bitWidth() == 64 && int.is_signed()).map(|_| Kind::Int),
        Type::FloatingPoint => {
            field.type_as_floating_point().filter(|float| float.precision() == Precision::DOUBLE).map(|_| Kind::Float)
        }
        _ => None,
    };
    let plain = field.dictionary().is_none() && field.children().is_none_or(|children| children.is_empty());
    match kind {
        Some(kind) if plain => Ok(Field { name: name.to_owned(), kind }),
        _ => Err(damage(&format!("its column {name:?} has a type other than Boolean, Int64, Float64 and Utf8"))),
    }
}

fn batch(file: &[u8], free: &mut usize, block: &Block, fields: &[Field]) -> Result<RawBatch, Damage> {
    let outside = || damage("a batch lies outside the file or over another one");
    let start = usize::try_from(block.offset()).ok().filter(|start| start >= free).ok_or_else(outside)?;
    let message_len = usize::try_from(block.metaDataLength()).map_err(|_| outside())?;
    let body_len = usize::try_from(block.bodyLength()).map_err(|_| outside())?;
    let body_start = start.checked_add(message_len).ok_or_else(outside)?;
    let body_end = body_start.checked_add(body_len).filter(|end| *end <= file.len()).ok_or_else(outside)?;
    *free = body_end;
    let message = file.get(start..body_start).and_then(message_bytes).ok_or_else(outside)?;
    let message = arrow_ipc::root_as_message_with_opts(&limits(message), message).map_err(unreadable)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        _ => None,
    };
    let batch = batch.ok_or_else(|| damage("it has a message other than a batch where a batch is promised"))?;
    if batch.compression().is_some() {
        return Err(damage("its buffers are compressed"));
    }
    let rows = usize::try_from(batch.length()).map_err(|_| damage("a batch has a negative length"))?;
    Ok(RawBatch { rows, columns: columns(&batch, rows, body_start..body_end, fields)? })
}

pub(super) fn message_bytes(block: &[u8]) -> Option<&[u8]> {
    // Files from before Arrow 0.15 have no continuation mark.
    let block = block.strip_prefix(&CONTINUATION).unwrap_or(block);
    let (length, message) = block.split_first_chunk::<4>()?;
    message.get(..usize::try_from(i32::from_le_bytes(*length)).ok()?)
}

fn columns(
    batch: &RecordBatch<'_>,
    rows: usize,
    body: Range<usize>,
    fields: &[Field],
) -> Result<Vec<RawColumn>, Damage> {
    let mut nodes = batch.nodes().into_iter().flatten();
    let mut buffers = batch.buffers().into_iter().flatten();
    let mut columns = Vec::with_capacity(fields.len().min(batch.nodes().map_or(0, |nodes| nodes.len())));
    for Field { name, kind } in fields {
        let fault = |detail: &str| damage(&format!("its column {name:?} {detail}"));
        let node = nodes.next().ok_or_else(|| fault("is missing in a batch"))?;
        if usize::try_from(node.length()).ok() != Some(rows) {
            return Err(fault("has another number of rows than its batch"));
        }
        if node.null_count() != 0 {
            return Err(fault("has nulls"));
        }
        let mut buffer = || {
            let buffer = buffers.next()?;
            let start = body.start.checked_add(usize::try_from(buffer.offset()).ok()?)?;
            let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
            (end <= body.end).then_some(start..end)
        };
        // Without rows the first offset may be missing too.
        let ends = if rows == 0 { Some(0) } else { rows.checked_add(1) };
        let column = buffer().and_then(|_validity| {
            Some(match kind {
                Kind::Bool => RawColumn::Bool(shortened(buffer()?, Some(rows.div_ceil(8)))?),
                Kind::Int => RawColumn::Int(shortened(buffer()?, rows.checked_mul(8))?),
                Kind::Float => RawColumn::Float(shortened(buffer()?, rows.checked_mul(8))?),
                Kind::String => RawColumn::String {
                    offsets: shortened(buffer()?, ends.and_then(|ends| ends.checked_mul(4)))?,
                    text: buffer()?,
                },
            })
        });
        columns.push(column.ok_or_else(|| fault("has a buffer that is missing, outside its batch or too short"))?);
    }
    Ok(columns)
}

/// The part of a buffer that its rows need, where it is long enough: readers of Arrow arrays insist on whole numbers.
fn shortened(buffer: Range<usize>, needed: Option<usize>) -> Option<Range<usize>> {
    let end = buffer.start.checked_add(needed?)?;
    (end <= buffer.end).then_some(buffer.start..end)
}
