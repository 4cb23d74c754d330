//! `metadata.arrow` from anywhere: other writers' files open, damaged ones are errors, nothing panics.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, UInt64Array,
};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use dataset_rt::cancel::CancelToken;
use dataset_rt::error::Result;
use dataset_rt::format::columns::ColumnBuffer;
use dataset_rt::format::metadata::{MetadataFile, RawValue};
use dataset_rt::format::metadata_write::MetadataWriter;
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::mapped::MappedFile;
use dataset_rt::value::{Kind, ValueRef};

fn field(name: &str, kind: Kind) -> Field {
    Field { name: name.to_owned(), kind }
}

fn open(path: &Path, fields: &[Field], rows: u64) -> Result<MetadataFile> {
    MetadataFile::open(&Arc::new(MappedFile::open(path)?), fields, rows)
}

/// Opens bytes and touches everything that can be reached through them. Any outcome is fine except a panic.
fn exercise(path: &Path, bytes: &[u8], fields: &[Field], rows: u64) -> bool {
    // A file of its own for each attempt: what is mapped must not change.
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
    let Ok(file) = open(path, fields, rows) else { return false };
    let mut whole = file.to_record_batches().is_ok();
    for row in 0..=rows {
        for column in 0..=fields.len() {
            let value = file.value(column, row);
            whole &= value.is_ok() || row == rows || column == fields.len();
            // The two ways to a value agree on everything but the check of text.
            let raw = file.row(row).and_then(|found| found.value(column));
            match value {
                Ok(value) => assert_eq!(raw.map(checked), Some(Some(format!("{value:?}")))),
                Err(_) => assert_eq!(raw.and_then(checked), None),
            }
        }
        file.prefetch(row);
        file.prefetch_texts(row);
    }
    whole
}

/// A raw value as it is shown after its check, in the words of a checked one.
fn checked(value: RawValue<'_>) -> Option<String> {
    let value = match value {
        RawValue::Bool(value) => ValueRef::Bool(value),
        RawValue::Int(value) => ValueRef::Int(value),
        RawValue::Float(value) => ValueRef::Float(value),
        RawValue::Text(bytes) => ValueRef::String(std::str::from_utf8(bytes).ok()?),
    };
    Some(format!("{value:?}"))
}

/// Two batches of all kinds as this library writes them.
fn own_file(path: &Path) -> (Vec<Field>, u64) {
    let fields = [("b", Kind::Bool), ("f", Kind::Float), ("i", Kind::Int), ("s", Kind::String)];
    let fields = fields.map(|(name, kind)| field(name, kind)).to_vec();
    let schema = Schema::new(fields.clone()).unwrap();
    let mut writer = MetadataWriter::with_batch_text(&schema, path.with_extension("spool"), 12);
    let mut columns: Vec<_> = fields.iter().map(|field| ColumnBuffer::new(field.kind)).collect();
    for text in ["one", "", "zwölf", "sechs"] {
        let values = [ValueRef::Bool(true), ValueRef::Float(0.5), ValueRef::Int(-1), ValueRef::String(text)];
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value).unwrap();
        }
    }
    writer.append(4, &columns).unwrap();
    writer.finish(path, &CancelToken::new()).unwrap();
    assert_eq!(open(path, &fields, 4).unwrap().to_record_batches().unwrap().len(), 2);
    (fields, 4)
}

#[test]
fn d03_every_flipped_byte_and_every_truncation_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let (fields, rows) = own_file(&path);
    let good = fs::read(&path).unwrap();
    assert!(exercise(&path, &good, &fields, rows));
    let mut refused = 0;
    for position in 0..good.len() {
        for pattern in [0x01, 0x80, 0xff] {
            let mut damaged = good.clone();
            damaged[position] ^= pattern;
            refused += usize::from(!exercise(&path, &damaged, &fields, rows));
        }
        assert!(!exercise(&path, &good[..position], &fields, rows), "{position} bytes");
    }
    assert!(refused > good.len() / 4, "{refused} of {} damaged files were refused", good.len() * 3);
}

#[test]
fn d03_footers_that_describe_more_than_the_file_holds_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let (fields, rows) = own_file(&path);
    let good = fs::read(&path).unwrap();
    // Point the second block of the footer at the first batch.
    let footer = arrow_ipc::root_as_footer(footer(&good)).unwrap();
    let blocks: Vec<_> = footer.recordBatches().unwrap().iter().map(|block| block.0).collect();
    let place = good.windows(24).rposition(|window| *window == blocks[1]).unwrap();
    let mut twice = good.clone();
    twice[place..place + 24].copy_from_slice(&blocks[0]);
    assert!(!exercise(&path, &twice, &fields, rows));
    let message = open(&path, &fields, rows).unwrap_err().to_string();
    assert!(message.contains("outside the file or over another one"), "{message}");
}

fn footer(file: &[u8]) -> &[u8] {
    let end = file.len() - 10;
    let length = i32::from_le_bytes(*file[end..].first_chunk().unwrap());
    &file[end - usize::try_from(length).unwrap()..end]
}

/// A file of arrow's own writer.
fn foreign(path: &Path, columns: Vec<(&str, ArrayRef, bool)>, options: IpcWriteOptions) {
    let arrow_field =
        |(name, array, nullable): &(&str, ArrayRef, bool)| ArrowField::new(*name, array.data_type().clone(), *nullable);
    let schema = Arc::new(ArrowSchema::new(columns.iter().map(arrow_field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = FileWriter::try_new_with_options(fs::File::create(path).unwrap(), &schema, options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn files_of_other_writers_open_in_any_column_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let fields = [field("z", Kind::Int), field("b", Kind::Bool), field("a", Kind::String), field("c", Kind::Float)];
    for (alignment, version) in [(64, MetadataVersion::V5), (8, MetadataVersion::V5), (8, MetadataVersion::V4)] {
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            // All valid, but with a validity buffer.
            ("z", Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3)])), true),
            ("b", Arc::new(BooleanArray::from(vec![true, false, true])), true),
            ("a", Arc::new(StringArray::from(vec!["x", "", "é"])), false),
            ("c", Arc::new(Float64Array::from(vec![0.5, f64::INFINITY, -0.0])), true),
        ];
        foreign(&path, columns, IpcWriteOptions::try_new(alignment, false, version).unwrap());
        let file = open(&path, &fields, 3).unwrap();
        assert_eq!(file.schema().fields().iter().map(|field| field.name.as_str()).collect::<String>(), "abcz");
        assert_eq!(file.value(0, 2).unwrap(), ValueRef::String("é"));
        assert_eq!(file.value(1, 1).unwrap(), ValueRef::Bool(false));
        assert_eq!(file.value(2, 1).unwrap(), ValueRef::Float(f64::INFINITY));
        assert_eq!(file.value(3, 0).unwrap(), ValueRef::Int(1));
        let batches = file.to_record_batches().unwrap();
        assert_eq!((batches.len(), batches[0].num_rows()), (1, 3));
        assert!(batches[0].columns().iter().all(|column| column.null_count() == 0));
        drop(file);
        // The batches keep the map alive.
        assert_eq!(batches[0].column(3).as_ref(), &Int64Array::from(vec![1, 2, 3]) as &dyn arrow_array::Array);
    }
}

#[test]
fn record_batches_share_the_mapped_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let (fields, rows) = own_file(&path);
    let map = Arc::new(MappedFile::open(&path).unwrap());
    let file = MetadataFile::open(&map, &fields, rows).unwrap();
    let mapped = map.as_slice().as_ptr_range();
    for batch in file.to_record_batches().unwrap() {
        for column in batch.columns() {
            for buffer in column.to_data().buffers() {
                assert!(mapped.contains(&buffer.as_ptr()), "a buffer of {} was copied", column.data_type());
            }
        }
    }
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let refusal = |array: ArrayRef, kind: Kind| {
        foreign(&path, vec![("x", array, true)], IpcWriteOptions::default());
        let message = open(&path, &[field("x", kind)], 1).unwrap_err().to_string();
        assert!(message.contains("metadata.arrow: expected"), "{message}");
        message
    };
    assert!(refusal(Arc::new(Int64Array::from(vec![None])), Kind::Int).contains("column \"x\" has nulls"));
    for (array, kind) in [
        (Arc::new(Int32Array::from(vec![1])) as ArrayRef, Kind::Int),
        (Arc::new(UInt64Array::from(vec![1])), Kind::Int),
        (Arc::new(Float32Array::from(vec![1.0])), Kind::Float),
        (Arc::new(LargeStringArray::from(vec!["x"])), Kind::String),
    ] {
        assert!(refusal(array, kind).contains("has a type other than"));
    }
    let labels = StringArray::from(vec!["x"]);
    let encoded = arrow_cast::cast(&labels, &DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()));
    assert!(refusal(encoded.unwrap(), Kind::String).contains("has a type other than"));
    assert!(refusal(Arc::new(labels), Kind::Int).contains("(\"x\": int), found \"x\": string"));
}

#[test]
fn d03_columns_and_rows_are_compared_at_every_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let (fields, rows) = own_file(&path);
    for (fields, rows, message) in [
        (&fields[..], rows + 1, "expected metadata for 5 samples, found 4 rows"),
        (&fields[..], 0, "expected metadata for 0 samples, found 4 rows"),
        (&fields[..3], rows, "(\"b\": bool, \"f\": float, \"i\": int), found \"b\": bool"),
        (&[], rows, "(none), found \"b\": bool"),
    ] {
        let error = open(&path, fields, rows).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn d03_a_damaged_text_concerns_its_own_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let (fields, rows) = own_file(&path);
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.windows(4).position(|window| window == "zwöl".as_bytes().first_chunk::<4>().unwrap()).unwrap();
    bytes[place] = 0xff;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let file = open(&path, &fields, rows).unwrap();
    let error = file.value(3, 2).unwrap_err().to_string();
    assert!(error.contains("metadata.arrow: expected UTF-8 text in row 2"), "{error}");
    assert_eq!(file.value(3, 3).unwrap(), ValueRef::String("sechs"));
    assert_eq!(file.value(2, 2).unwrap(), ValueRef::Int(-1));
    assert!(file.to_record_batches().unwrap_err().to_string().contains("expected valid metadata, found"));
}
