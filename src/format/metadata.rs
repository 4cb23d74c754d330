//! `metadata.arrow`, mapped: opening costs by batches and columns, never by rows.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, SchemaRef};

pub use super::metadata_view::{BatchView, ColumnView, RawValue, RowView, TextView};

use super::metadata_parse::{RawBatch, RawColumn, arrow_schema, arrow_type, parse};
use super::schema::{Field, Schema};
use super::{Damage, RESTORE};
use crate::error::{Error, Result};
use crate::mapped::MappedFile;
use crate::prefetch::ask_for;
use crate::value::ValueRef;

/// Bytes at both ends of a file that hold its structure, if it has only a few batches and columns.
const STRUCTURE: usize = 16 << 10;

/// The metadata of a cache. Columns are in schema order, whatever their order in the file.
#[derive(Debug)]
pub struct MetadataFile {
    map: Arc<MappedFile>,
    schema: Schema,
    /// Their columns are in schema order.
    batches: Vec<RawBatch>,
    /// First row of each batch.
    starts: Vec<u64>,
}

impl MetadataFile {
    /// Reads the structure of the file and compares it with the columns and the number of rows that
    /// the manifest promises.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when it is no Arrow IPC file, or has other columns or rows.
    pub fn open(map: &Arc<MappedFile>, fields: &[Field], rows: u64) -> Result<Self> {
        // Where the structure is. The kernel would read a lot around what is touched.
        ask_for(map.get(..STRUCTURE).unwrap_or(map));
        ask_for(map.get(map.len().saturating_sub(STRUCTURE)..).unwrap_or_default());
        Self::checked(map, fields, rows).map_err(|damage| damage.advised(RESTORE).within(map.path()))
    }

    fn checked(map: &Arc<MappedFile>, fields: &[Field], rows: u64) -> std::result::Result<Self, Damage> {
        let (found, mut batches) = parse(map)?;
        let sorted = |fields: Vec<Field>| Schema::new(fields).map_err(|error| Damage(error.to_string()));
        let schema = sorted(found.clone())?;
        let expected = sorted(fields.to_vec())?;
        if !schema.same_columns(&expected) {
            return Err(Damage(format!(
                "expected the metadata columns of the manifest ({}), found {}",
                listed(&expected),
                listed(&schema)
            )));
        }
        let mut starts = Vec::with_capacity(batches.len());
        let mut total = 0_u64;
        for batch in &batches {
            starts.push(total);
            total = total.saturating_add(batch.rows as u64);
        }
        if total != rows {
            return Err(Damage(format!("expected metadata for {rows} samples, found {total} rows")));
        }
        let places: Vec<Option<usize>> =
            schema.fields().iter().map(|field| found.iter().position(|other| other.name == field.name)).collect();
        for batch in &mut batches {
            let sorted = places.iter().filter_map(|place| batch.columns.get((*place)?).cloned());
            batch.columns = sorted.collect();
        }
        Ok(Self { map: Arc::clone(map), schema, batches, starts })
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns as Arrow calls them; nothing is null.
    #[must_use]
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(arrow_schema(&self.schema))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Its bytes.
    #[must_use]
    pub fn file(&self) -> &[u8] {
        self.map.as_slice()
    }

    /// The batch that holds `row`, and the row's place in it.
    #[must_use]
    #[inline]
    pub fn locate(&self, row: u64) -> Option<(BatchView<'_>, usize)> {
        let (batch, place) = self.locate_raw(row)?;
        Some((BatchView { file: self.map.as_slice(), batch }, place))
    }

    #[inline]
    fn locate_raw(&self, row: u64) -> Option<(&RawBatch, usize)> {
        let number = match self.batches.as_slice() {
            [_] => 0,
            _ => self.starts.partition_point(|start| *start <= row).checked_sub(1)?,
        };
        let batch = self.batches.get(number)?;
        let place = usize::try_from(row - self.starts.get(number)?).ok()?;
        (place < batch.rows).then_some((batch, place))
    }

    /// The stored values of one row; `None` when there is no such row.
    #[must_use]
    #[inline]
    pub fn row(&self, row: u64) -> Option<RowView<'_>> {
        let (batch, place) = self.locate_raw(row)?;
        Some(RowView { file: self.map.as_slice(), columns: &batch.columns, place })
    }

    /// One value.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when there is no such column or row, or the value is damaged.
    pub fn value(&self, column: usize, row: u64) -> Result<ValueRef<'_>> {
        let found = self.locate(row).and_then(|(batch, place)| Some((batch.column(column)?, place)));
        found
            .ok_or_else(|| Damage(format!("expected metadata in column {column} of row {row}, found none")))
            .and_then(|(view, place)| view.value(place))
            .map_err(|damage| damage.advised(RESTORE).within(self.path()))
    }

    /// Asks for the memory of all slots of one row ahead of time.
    #[inline]
    pub fn prefetch(&self, row: u64) {
        if let Some((batch, place)) = self.locate_raw(row) {
            batch.columns.iter().for_each(|column| column.prefetch(&self.map, place));
        }
    }

    /// Asks for the texts of one row ahead of time; reads the slots that [`prefetch`](Self::prefetch) asked for.
    #[inline]
    pub fn prefetch_texts(&self, row: u64) {
        if let Some((batch, place)) = self.locate_raw(row) {
            batch.columns.iter().for_each(|column| column.prefetch_text(&self.map, place));
        }
    }

    /// All rows as Arrow batches on the mapped bytes, without copying them. Every value is checked.
    ///
    /// # Errors
    /// [`Error::InvalidCache`] when offsets or text are damaged.
    pub fn to_record_batches(&self) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        let file = Buffer::from(bytes::Bytes::from_owner(MapOwner(Arc::clone(&self.map))));
        let converted = self.batches.iter().map(|batch| self.to_record_batch(batch, &schema, &file));
        converted
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::invalid_cache(self.path(), format!("expected valid metadata, found: {error}")))
    }

    fn to_record_batch(
        &self,
        batch: &RawBatch,
        schema: &SchemaRef,
        file: &Buffer,
    ) -> std::result::Result<RecordBatch, ArrowError> {
        let mut arrays = Vec::with_capacity(batch.columns.len());
        for (field, column) in self.schema.fields().iter().zip(&batch.columns) {
            let slice = |range: &std::ops::Range<usize>| file.slice_with_length(range.start, range.len());
            let buffers = match column {
                RawColumn::Bool(range) | RawColumn::Int(range) | RawColumn::Float(range) => vec![slice(range)],
                RawColumn::String { offsets, text } => vec![slice(offsets), slice(text)],
            };
            let data = ArrayData::builder(arrow_type(field.kind))
                .len(batch.rows)
                .buffers(buffers)
                // Files of other writers may be aligned to less than their numbers; those columns are copied.
                .align_buffers(true)
                .build()?;
            arrays.push(make_array(data));
        }
        // Without columns only this says how many rows there are.
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
    }
}

/// Lets Arrow buffers keep the map alive.
struct MapOwner(Arc<MappedFile>);

impl AsRef<[u8]> for MapOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn listed(schema: &Schema) -> String {
    let columns: Vec<String> =
        schema.fields().iter().map(|field| format!("{:?}: {}", field.name, field.kind)).collect();
    if columns.is_empty() { "none".to_owned() } else { columns.join(", ") }
}
