//! `metadata.arrow` as it is written: the same bytes however the rows arrive, batches only where text forces them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dataset_rt::cancel::CancelToken;
use dataset_rt::error::{Error, Result};
use dataset_rt::format::columns::ColumnBuffer;
use dataset_rt::format::metadata::MetadataFile;
use dataset_rt::format::metadata_write::MetadataWriter;
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::mapped::MappedFile;
use dataset_rt::value::{Kind, ValueRef};

fn schema(kinds: &[Kind]) -> Schema {
    let field = |(number, kind): (usize, &Kind)| Field { name: format!("c{number}"), kind: *kind };
    Schema::new(kinds.iter().enumerate().map(field).collect()).unwrap()
}

fn texts(texts: &[&str]) -> Vec<ColumnBuffer> {
    let mut column = ColumnBuffer::new(Kind::String);
    for text in texts {
        column.push(ValueRef::String(text)).unwrap();
    }
    vec![column]
}

fn batches(path: &Path, schema: &Schema, rows: u64) -> Vec<usize> {
    let file = MetadataFile::open(&Arc::new(MappedFile::open(path).unwrap()), schema.fields(), rows).unwrap();
    file.to_record_batches().unwrap().iter().map(arrow_array::RecordBatch::num_rows).collect()
}

#[test]
fn c14_bytes_do_not_depend_on_how_rows_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let schema = schema(&[Kind::Bool, Kind::Int, Kind::Float, Kind::String]);
    let file = |piece: usize, max_text: usize| {
        let path = directory.path().join(format!("{piece}-{max_text}"));
        let mut writer = MetadataWriter::with_batch_text(&schema, path.with_extension("spool"), max_text);
        let rows: Vec<i64> = (0..1000).collect();
        for rows in rows.chunks(piece) {
            let mut columns: Vec<_> = schema.fields().iter().map(|field| ColumnBuffer::new(field.kind)).collect();
            for row in rows {
                let text = "x".repeat(usize::try_from(row % 11).unwrap());
                columns[0].push(ValueRef::Bool(row % 3 == 0)).unwrap();
                columns[1].push(ValueRef::Int(*row)).unwrap();
                columns[2].push(ValueRef::Float(0.25)).unwrap();
                columns[3].push(ValueRef::String(&text)).unwrap();
            }
            writer.append(rows.len(), &columns).unwrap();
        }
        writer.finish(&path, &CancelToken::new()).unwrap();
        fs::read(path).unwrap()
    };
    for max_text in [100, usize::MAX] {
        let whole = file(1000, max_text);
        for piece in [1, 7, 256] {
            assert!(file(piece, max_text) == whole, "pieces of {piece}, {max_text} bytes of text");
        }
    }
}

#[test]
fn c17_batches_end_where_text_would_pass_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let schema = schema(&[Kind::String]);
    let mut writer = MetadataWriter::with_batch_text(&schema, path.with_extension("spool"), 4);
    for piece in [&["ab", "cd", "", "e"][..], &[], &["abcd"], &["", "", "xyz", "ab", ""]] {
        writer.append(piece.len(), &texts(piece)).unwrap();
    }
    let error = writer.append(2, &texts(&["", "abcde"])).unwrap_err();
    assert!(error.to_string().contains("texts of at most 4 bytes"), "{error}");

    let mut writer = MetadataWriter::with_batch_text(&schema, path.with_extension("spool"), 4);
    for piece in [&["ab", "cd", "", "e"][..], &[], &["abcd"], &["", "", "xyz", "ab", ""]] {
        writer.append(piece.len(), &texts(piece)).unwrap();
    }
    writer.finish(&path, &CancelToken::new()).unwrap();
    assert_eq!(batches(&path, &schema, 10), [3, 1, 3, 1, 2]);
}

#[test]
fn c17_columns_larger_than_memory_are_joined_from_the_spool() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let schema = schema(&[Kind::Int, Kind::String]);
    let mut writer = MetadataWriter::new(&schema, path.with_extension("spool"));
    let rows = 300_000_u64;
    let mut columns = vec![ColumnBuffer::new(Kind::Int), ColumnBuffer::new(Kind::String)];
    for row in 0..rows {
        columns[0].push(ValueRef::Int(i64::try_from(row).unwrap())).unwrap();
        columns[1].push(ValueRef::String(&format!("row {row}"))).unwrap();
        if row % 250 == 249 {
            writer.append(250, &columns).unwrap();
            columns.iter_mut().for_each(ColumnBuffer::clear);
        }
    }
    assert!(!path.with_extension("spool").exists());
    let digest = writer.finish(&path, &CancelToken::new()).unwrap();
    assert_eq!(digest, dataset_rt::checksum::hash_file(&path, &CancelToken::new()).unwrap());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let file = MetadataFile::open(&Arc::new(MappedFile::open(&path).unwrap()), schema.fields(), rows).unwrap();
    for row in (0..rows).step_by(997).chain([rows - 1]) {
        assert_eq!(file.value(0, row).unwrap(), ValueRef::Int(i64::try_from(row).unwrap()));
        assert_eq!(file.value(1, row).unwrap(), ValueRef::String(&format!("row {row}")));
    }
    assert_eq!(file.to_record_batches().unwrap().len(), 1);
}

#[test]
fn bodies_and_buffers_are_aligned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.arrow");
    let schema = schema(&[Kind::String, Kind::Bool, Kind::Int]);
    let mut writer = MetadataWriter::with_batch_text(&schema, path.with_extension("spool"), 3);
    let mut columns = texts(&["a", "bc", "def"]);
    columns.push(ColumnBuffer::Bool(vec![true, false, true]));
    columns.push(ColumnBuffer::Int(vec![1, 2, 3]));
    writer.append(3, &columns).unwrap();
    writer.finish(&path, &CancelToken::new()).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[..8], *b"ARROW1\0\0");
    let end = bytes.len() - 10;
    let length = usize::try_from(i32::from_le_bytes(*bytes[end..].first_chunk().unwrap())).unwrap();
    let footer = arrow_ipc::root_as_footer(&bytes[end - length..end]).unwrap();
    assert_eq!(footer.version(), arrow_ipc::MetadataVersion::V5);
    assert!(footer.schema().unwrap().fields().unwrap().iter().all(|field| !field.nullable()));
    let blocks = footer.recordBatches().unwrap();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let start = usize::try_from(block.offset()).unwrap();
        let body = start + usize::try_from(block.metaDataLength()).unwrap();
        assert_eq!((start % 64, body % 64, block.bodyLength() % 64), (0, 0, 0));
        let message = arrow_ipc::root_as_message(&bytes[start + 8..body]).unwrap();
        let batch = message.header_as_record_batch().unwrap();
        assert!(batch.buffers().unwrap().iter().all(|buffer| buffer.offset() % 64 == 0));
    }
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = MetadataWriter::new(&schema(&[Kind::String]), directory.path().join("spool"));
    for (rows, columns) in [(2, texts(&["a"])), (1, vec![]), (1, vec![ColumnBuffer::Int(vec![1])])] {
        assert!(matches!(writer.append(rows, &columns), Err(Error::InvalidValue(_))));
    }
}

#[test]
fn b03_finishing_stops_when_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = MetadataWriter::new(&schema(&[Kind::String]), directory.path().join("spool"));
    writer.append(1, &texts(&["a"])).unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    let finished: Result<String> = writer.finish(&directory.path().join("metadata.arrow"), &cancel);
    assert!(matches!(finished, Err(Error::Interrupted)));
}
