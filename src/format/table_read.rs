//! Reading any Arrow table from an IPC file that is mapped, not copied. What its bytes promise is checked before the
//! decoder sees them: it takes for granted that a file is whole.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, MessageHeader};
use arrow_schema::{ArrowError, SchemaRef};

use super::Damage;
use super::metadata_parse::{damage, footer_bytes, limits, message_bytes, unreadable};
use super::table_check::{check_batch, check_field};
use crate::error::Result;
use crate::mapped::MappedFile;

/// An Arrow table in a mapped file.
#[derive(Debug)]
pub struct TableFile {
    path: Box<Path>,
    schema: SchemaRef,
    decoder: FileDecoder,
    /// Messages of batches, each with its place in it.
    batches: Vec<(Block, Buffer)>,
}

impl TableFile {
    /// Maps `path`. Nothing but the structure and dictionaries is looked at.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) when it cannot be mapped, [`Error::InvalidCache`](crate::Error::InvalidCache)
    /// when it is no such file or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let file = MappedFile::open(path)?;
        let file = Buffer::from(bytes::Bytes::from_owner(file));
        Self::parse(path, &file).map_err(|damage| {
            damage.advised("; export it again with dump_config, or restore it from a copy").within(path)
        })
    }

    /// Names and types of its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of batches.
    #[must_use]
    pub fn batch_count(&self) -> usize {
        self.batches.len()
    }

    /// One batch, whose values are checked; `None` when there is no such batch.
    ///
    /// # Errors
    /// [`Error::InvalidCache`](crate::Error::InvalidCache) when it is damaged.
    pub fn batch(&self, number: usize) -> Result<Option<RecordBatch>> {
        let Some((block, message)) = self.batches.get(number) else { return Ok(None) };
        let batch = self.decoder.read_record_batch(block, message);
        batch.map_err(|error| undecodable(&error).within(&self.path))
    }

    fn parse(path: &Path, file: &Buffer) -> std::result::Result<Self, Damage> {
        let footer = footer_bytes(file).ok_or_else(|| damage("it does not begin and end like an Arrow IPC file"))?;
        let footer = arrow_ipc::root_as_footer_with_opts(&limits(footer), footer).map_err(unreadable)?;
        let ipc_schema = footer.schema().ok_or_else(|| damage("its footer has no schema"))?;
        if ipc_schema.endianness() != arrow_ipc::Endianness::Little {
            return Err(damage("its numbers are big endian"));
        }
        let fields = ipc_schema.fields().ok_or_else(|| damage("its schema has no fields"))?;
        fields.iter().try_for_each(|field| check_field(&field, true))?;
        let schema = Arc::new(arrow_ipc::convert::fb_to_schema(ipc_schema));

        let mut free = 0;
        let mut decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
        for block in footer.dictionaries().into_iter().flatten() {
            let (place, body) = place(file, &mut free, block)?;
            let message = message(file, &place, &body)?;
            let dictionary = match message.header_type() {
                MessageHeader::DictionaryBatch => message.header_as_dictionary_batch(),
                _ => None,
            };
            let batch = dictionary.and_then(|dictionary| Some((dictionary.id(), dictionary.data()?)));
            let (id, batch) = batch.ok_or_else(|| damage("a dictionary is missing where one is promised"))?;
            #[expect(deprecated, reason = "the only way to learn which columns a dictionary is for")]
            let users = schema.fields_with_dict_id(id);
            let values = users.first().and_then(|field| match field.data_type() {
                arrow_schema::DataType::Dictionary(_, values) => Some(values.as_ref()),
                _ => None,
            });
            let values = values.ok_or_else(|| damage("it has a dictionary of no column"))?;
            check_batch(&batch, &[values], body.len())?;
            let message = file.slice_with_length(place.start, place.len());
            decoder.read_dictionary(block, &message).map_err(|error| undecodable(&error))?;
        }
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type()).collect();
        let mut batches = Vec::new();
        for block in footer.recordBatches().into_iter().flatten() {
            let (place, body) = place(file, &mut free, block)?;
            let message = message(file, &place, &body)?;
            let batch = match message.header_type() {
                MessageHeader::RecordBatch => message.header_as_record_batch(),
                _ => None,
            };
            let batch = batch.ok_or_else(|| damage("a batch is missing where one is promised"))?;
            check_batch(&batch, &types, body.len())?;
            batches.push((*block, file.slice_with_length(place.start, place.len())));
        }
        Ok(Self { path: path.into(), schema, decoder, batches })
    }
}

/// Where a message with its body lies in the file, and its body. Messages follow each other: together they cannot
/// promise more than the file holds.
fn place(file: &[u8], free: &mut usize, block: &Block) -> std::result::Result<(Range<usize>, Range<usize>), Damage> {
    let outside = || damage("a batch lies outside the file or over another one");
    let start = usize::try_from(block.offset()).ok().filter(|start| *start >= *free).ok_or_else(outside)?;
    let message_len = usize::try_from(block.metaDataLength()).map_err(|_| outside())?;
    let body_len = usize::try_from(block.bodyLength()).map_err(|_| outside())?;
    let body_start = start.checked_add(message_len).ok_or_else(outside)?;
    let end = body_start.checked_add(body_len).filter(|end| *end <= file.len()).ok_or_else(outside)?;
    *free = end;
    Ok((start..end, body_start..end))
}

fn message<'a>(
    file: &'a [u8],
    place: &Range<usize>,
    body: &Range<usize>,
) -> std::result::Result<arrow_ipc::Message<'a>, Damage> {
    let head = file.get(place.start..body.start).and_then(message_bytes);
    let head = head.ok_or_else(|| damage("a batch is shorter than its head says"))?;
    arrow_ipc::root_as_message_with_opts(&limits(head), head).map_err(unreadable)
}

fn undecodable(error: &ArrowError) -> Damage {
    damage(&format!("its values are damaged ({})", error.to_string().lines().next().unwrap_or_default()))
}
