//! `index.bin`: three numbers a row, and exactly as many rows as the manifest promises.

use std::fs;

use dataset_rt::error::Error;
use dataset_rt::format::index::{Index, IndexRow, ROW_BYTES};

#[test]
fn rows_are_exact() {
    let row = IndexRow { shard: 1, offset: 0x0102_0304_0506_0708, length: u64::MAX };
    let bytes = *b"\x01\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(row.to_bytes(), bytes);
    assert_eq!(IndexRow::from_bytes(&bytes), row);
}

#[test]
fn rows_are_found_by_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.bin");
    let row = |number: u64| IndexRow { shard: number, offset: number * 10, length: number * 100 };
    fs::write(&path, (0..3).flat_map(|number| row(number).to_bytes()).collect::<Vec<_>>()).unwrap();
    let index = Index::open(&path, 3).unwrap();
    assert_eq!((index.len(), index.is_empty()), (3, false));
    index.prefetch(2);
    index.prefetch(u64::MAX);
    assert_eq!(
        (0..5).map(|number| index.get(number)).collect::<Vec<_>>(),
        [Some(row(0)), Some(row(1)), Some(row(2)), None, None]
    );
    assert_eq!(index.get(u64::MAX), None);
}

#[test]
fn d03_another_length_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.bin");
    for (bytes, rows) in [(0, 1), (23, 1), (25, 1), (48, 1), (24, 2), (24, 0), (24, u64::MAX / 24 + 2), (24, u64::MAX)]
    {
        fs::write(&path, vec![0; bytes]).unwrap();
        let error = Index::open(&path, rows).unwrap_err();
        let found = format!("expected {ROW_BYTES} bytes for each of {rows} samples, found a file of {bytes} bytes");
        assert!(matches!(error, Error::InvalidCache { .. }) && error.to_string().contains(&found), "{error}");
    }
    fs::write(&path, b"").unwrap();
    assert!(Index::open(&path, 0).unwrap().is_empty());
}

#[test]
fn what_is_missing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = Index::open(&missing, 0).unwrap_err();
    assert_eq!(error.io_source().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("missing"), "{error}");
}
