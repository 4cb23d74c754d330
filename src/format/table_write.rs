//! Writing any Arrow table as an IPC file, in pieces: what an export holds beside its configuration.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::metadata_parse::ALIGNMENT;
use crate::cancel::CancelToken;
use crate::error::{Error, Result};

/// Rows that are encoded together.
const PIECE_ROWS: usize = 1 << 18;
/// Bytes that are written between two looks at the cancel token.
const MOST_WRITTEN: usize = 4 << 20;

/// Writes `batches`, which have `schema`, to `out`; `path` is for messages only. Text comes out as Utf8 or `LargeUtf8`, which
/// every reader of Arrow files knows.
///
/// # Errors
/// [`Error::InvalidValue`] for types that such a file cannot hold, which tables do not have; [`Error::File`] when `out` fails;
/// [`Error::Interrupted`] soon after `cancel` was cancelled.
pub fn write_table(
    out: impl Write,
    path: &Path,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    cancel: &CancelToken,
) -> Result<()> {
    let fields = schema.fields();
    // The dictionary of a column is written once, so that all batches must share it.
    let joined = match batches {
        [_, _, ..] if fields.iter().any(|field| any_type(field.data_type(), &|found| is_dictionary(found))) => {
            vec![arrow_select::concat::concat_batches(schema, batches).map_err(unwritable)?]
        }
        batches => batches.to_vec(),
    };
    // A slice of views in lists would write all their text again.
    let views = fields.iter().any(|field| has_inner_views(field.data_type()));
    let piece_rows = if views { usize::MAX } else { PIECE_ROWS };

    let portable: Vec<Field> = fields.iter().map(|field| portable(field)).collect();
    let portable = Arc::new(Schema::new_with_metadata(portable, schema.metadata().clone()));
    let options = usize::try_from(ALIGNMENT)
        .map_err(|error| Error::InvalidValue(error.to_string()))
        .and_then(|alignment| IpcWriteOptions::try_new(alignment, false, MetadataVersion::V5).map_err(unwritable))?;
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(..) if cancel.is_cancelled() => Error::Interrupted,
        ArrowError::IoError(_, source) => Error::file("write", path, source),
        other => unwritable(other),
    };
    let out = Stoppable { out, cancel };
    let mut writer = FileWriter::try_new_with_options(out, &portable, options).map_err(failed)?;
    for batch in &joined {
        let mut start = 0;
        while start < batch.num_rows() {
            cancel.check()?;
            let rows = piece_rows.min(batch.num_rows() - start);
            let piece = batch.slice(start, rows);
            let columns = piece.columns().iter().zip(portable.fields());
            let columns: Vec<ArrayRef> = columns
                .map(|(column, field)| arrow_cast::cast(column, field.data_type()))
                .collect::<std::result::Result<_, _>>()
                .map_err(unwritable)?;
            let piece = RecordBatch::try_new(Arc::clone(&portable), columns).map_err(unwritable)?;
            writer.write(&piece).map_err(failed)?;
            start += rows;
        }
    }
    writer.finish().map_err(failed)
}

/// Passes on a little at a time, so that a wish to stop is seen within large columns too.
struct Stoppable<'a, W> {
    out: W,
    cancel: &'a CancelToken,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::ErrorKind::Other.into());
        }
        self.out.write(bytes.get(..MOST_WRITTEN).unwrap_or(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn unwritable(error: impl std::fmt::Display) -> Error {
    Error::InvalidValue(format!("the table cannot be exported: {error}"))
}

/// The field in a type that other readers of files know. Views are young.
fn portable(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn has_inner_views(found: &DataType) -> bool {
    inner_types(found).into_iter().any(|inner| any_type(inner, &|inner| is_view(inner)))
}

fn any_type(found: &DataType, wanted: &dyn Fn(&DataType) -> bool) -> bool {
    wanted(found) || inner_types(found).into_iter().any(|inner| any_type(inner, wanted))
}

fn is_view(found: &DataType) -> bool {
    matches!(found, DataType::Utf8View | DataType::BinaryView)
}

fn is_dictionary(found: &DataType) -> bool {
    matches!(found, DataType::Dictionary(..))
}

/// The types that a type is made of. The values of a dictionary count: they are written whole.
fn inner_types(found: &DataType) -> Vec<&DataType> {
    match found {
        DataType::List(inner)
        | DataType::LargeList(inner)
        | DataType::FixedSizeList(inner, _)
        | DataType::Map(inner, _) => vec![inner.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Dictionary(_, values) => vec![values],
        _ => Vec::new(),
    }
}
