//! `metadata.arrow`: what is written reads back bit for bit, in any number of batches, here and in arrow's own reader.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use dataset_rt::cancel::CancelToken;
use dataset_rt::format::columns::ColumnBuffer;
use dataset_rt::format::metadata::MetadataFile;
use dataset_rt::format::metadata_write::MetadataWriter;
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::mapped::MappedFile;
use dataset_rt::value::{Kind, MetadataValue, ValueRef};
use proptest::prelude::*;

fn schema(kinds: &[Kind]) -> Schema {
    let field = |(number, kind): (usize, &Kind)| Field { name: format!("column {number:03}"), kind: *kind };
    Schema::new(kinds.iter().enumerate().map(field).collect()).unwrap()
}

/// Writes `rows` in pieces of `piece` rows; a small `max_text` makes several batches.
fn write(path: &Path, schema: &Schema, rows: &[Vec<MetadataValue>], piece: usize, max_text: usize) -> String {
    let mut writer = MetadataWriter::with_batch_text(schema, path.with_extension("spool"), max_text);
    for rows in rows.chunks(piece) {
        let mut columns: Vec<_> = schema.fields().iter().map(|field| ColumnBuffer::new(field.kind)).collect();
        for row in rows {
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(value.as_ref()).unwrap();
            }
        }
        writer.append(rows.len(), &columns).unwrap();
    }
    writer.finish(path, &CancelToken::new()).unwrap()
}

fn open(path: &Path, schema: &Schema, rows: usize) -> dataset_rt::error::Result<MetadataFile> {
    MetadataFile::open(&Arc::new(MappedFile::open(path).unwrap()), schema.fields(), rows as u64)
}

fn same(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Float(left), ValueRef::Float(right)) => left.to_bits() == right.to_bits(),
        (left, right) => left == right,
    }
}

fn arrow_value(batch: &RecordBatch, column: usize, row: usize) -> MetadataValue {
    let column = batch.column(column);
    match column.data_type() {
        arrow_schema::DataType::Boolean => MetadataValue::Bool(column.as_boolean().value(row)),
        arrow_schema::DataType::Int64 => MetadataValue::Int(column.as_primitive::<Int64Type>().value(row)),
        arrow_schema::DataType::Float64 => MetadataValue::Float(column.as_primitive::<Float64Type>().value(row)),
        _ => MetadataValue::String(column.as_string::<i32>().value(row).to_owned()),
    }
}

fn check_batches(batches: &[RecordBatch], rows: &[Vec<MetadataValue>]) {
    let mut expected = rows.iter();
    for batch in batches {
        for row in 0..batch.num_rows() {
            for (column, value) in expected.next().unwrap().iter().enumerate() {
                assert!(same(arrow_value(batch, column, row).as_ref(), value.as_ref()));
            }
        }
    }
    assert!(expected.next().is_none());
}

fn value_of(kind: Kind) -> BoxedStrategy<MetadataValue> {
    match kind {
        Kind::Bool => any::<bool>().prop_map(MetadataValue::Bool).boxed(),
        Kind::Int => any::<i64>().prop_map(MetadataValue::Int).boxed(),
        Kind::Float => any::<u64>().prop_map(|bits| MetadataValue::Float(f64::from_bits(bits))).boxed(),
        Kind::String => prop_oneof![Just(String::new()), ".{0,12}"].prop_map(MetadataValue::String).boxed(),
    }
}

fn tables() -> impl Strategy<Value = (Vec<Kind>, Vec<Vec<MetadataValue>>)> {
    let kind = prop_oneof![Just(Kind::Bool), Just(Kind::Int), Just(Kind::Float), Just(Kind::String)];
    prop::collection::vec(kind, 0..6).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().map(|kind| value_of(*kind)).collect();
        (Just(kinds), prop::collection::vec(row, 1..80))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn c05_values_read_back_bit_for_bit((kinds, rows) in tables(), piece in 1_usize..30, max_text in 48_usize..400) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metadata.arrow");
        let schema = schema(&kinds);
        let digest = write(&path, &schema, &rows, piece, max_text);
        let bytes = std::fs::read(&path).unwrap();
        prop_assert_eq!(digest, dataset_rt::checksum::sha256_hex(&bytes));

        let file = open(&path, &schema, rows.len()).unwrap();
        for (number, row) in rows.iter().enumerate() {
            for (column, value) in row.iter().enumerate() {
                prop_assert!(same(file.value(column, number as u64).unwrap(), value.as_ref()));
            }
        }
        prop_assert!(file.locate(rows.len() as u64).is_none());
        check_batches(&file.to_record_batches().unwrap(), &rows);
        let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None).unwrap();
        prop_assert_eq!(reader.schema(), file.arrow_schema());
        check_batches(&reader.map(Result::unwrap).collect::<Vec<_>>(), &rows);
    }
}
