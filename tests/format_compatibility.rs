//! Caches written by the published package 0.4.8: they read back exactly, and writing the same samples makes the same bytes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use dataset_rt::cancel::CancelToken;
use dataset_rt::checksum::{hash_file, sha256_hex};
use dataset_rt::format::compression::CompressionAlgo;
use dataset_rt::format::index::{Index, IndexRow};
use dataset_rt::format::manifest::{FormatVersion, Manifest};
use dataset_rt::format::metadata::MetadataFile;
use dataset_rt::format::record::{RecordEncoder, payload_offset};
use dataset_rt::ids::CacheId;
use dataset_rt::mapped::MappedFile;
use dataset_rt::value::ValueRef;

const ROWS: usize = 30;
const FLOATS: [f64; 12] = [0.1, 1.0, 1e300, -0.0, 5e-324, 1e16, 1e15, 123_456_789.125, 1.0 / 3.0, 1e-7, 3e-5, f64::MAX];
const TEXTS: [&str; 4] = ["", "x\"\\\n\t\u{1}", "é😀", "/\u{7f}"];
const INTS: [i64; 5] = [0, -1, i64::MAX, i64::MIN, 42];

fn payload(row: usize, times: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..row).map(|place| u8::try_from(row * place % 7).unwrap()).collect();
    bytes.repeat(times)
}

/// Metadata in schema order.
fn metadata(row: usize) -> [ValueRef<'static>; 4] {
    [
        ValueRef::String(TEXTS[row % 4]),
        ValueRef::Bool(row.is_multiple_of(3)),
        ValueRef::Float(FLOATS[row % 12]),
        ValueRef::Int(INTS[row % 5]),
    ]
}

fn check(name: &str, source_name: &str, algo: CompressionAlgo, times: usize) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/written_by_0_4_8").join(name);
    let path = directory.join("manifest.json");
    let bytes = fs::read(&path).unwrap();
    let manifest = Manifest::parse(&path, &bytes).unwrap();
    Manifest::verify_checksum(&path, &bytes).unwrap();
    assert_eq!(manifest.version, FormatVersion::V3);
    assert_eq!(manifest.source_name, source_name);
    assert_eq!(manifest.cache_id, Some(CacheId::of_source_name(source_name)));
    assert_eq!(manifest.sample_count, ROWS as u64);
    assert_eq!((&manifest.record_checksums, &manifest.source_fingerprint), (&None, &None));

    // The same manifest from here differs by nothing but the checksum behind it.
    let written = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    let (ours, _) = written.split_once(",\n  \"manifest_checksum\"").unwrap();
    assert_eq!(format!("{ours}\n}}").as_bytes(), bytes);

    let metadata_path = directory.join("metadata.arrow");
    assert_eq!(hash_file(&metadata_path, &CancelToken::new()).unwrap(), manifest.metadata_sha256);
    let map = Arc::new(MappedFile::open(&metadata_path).unwrap());
    let stored = MetadataFile::open(&map, &manifest.metadata_schema, manifest.sample_count).unwrap();
    assert_eq!(stored.to_record_batches().unwrap()[0].num_rows(), ROWS);

    let encoder = RecordEncoder::new(stored.schema());
    let mut shards = vec![Vec::new(); manifest.shards.len()];
    let mut index = Vec::new();
    let opened = Index::open(directory.join("index.bin"), manifest.sample_count).unwrap();
    for row in 0..ROWS {
        for (column, expected) in metadata(row).into_iter().enumerate() {
            let value = stored.value(column, row as u64).unwrap();
            assert_eq!(value, expected, "column {column} of row {row}");
            if let (ValueRef::Float(value), ValueRef::Float(expected)) = (value, expected) {
                assert_eq!(value.to_bits(), expected.to_bits(), "row {row}");
            }
        }
        let place = opened.get(row as u64).unwrap();
        let number = usize::try_from(place.shard).unwrap();
        let shard = &mut shards[number];
        let offset = shard.len();
        encoder.encode(metadata(row), shard).unwrap();
        assert_eq!(payload_offset(&shard[offset..]), Some(shard.len() - offset));
        algo.compress(&payload(row, times), shard, &CancelToken::new()).unwrap();
        let length = (shard.len() - offset) as u64;
        index.extend_from_slice(&IndexRow { shard: place.shard, offset: offset as u64, length }.to_bytes());
    }
    assert_eq!(sha256_hex(&index), manifest.index_sha256);
    for (shard, entry) in shards.iter().zip(&manifest.shards) {
        assert_eq!(entry.compression.algo, algo);
        let found = fs::read(directory.join("shards").join(&entry.name)).unwrap();
        assert!(found == *shard, "{} differs", entry.name);
        assert_eq!((shard.len() as u64, sha256_hex(shard)), (entry.byte_len, entry.sha256.clone()));
    }
}

#[test]
fn plain_caches_agree_byte_by_byte() {
    check("plain", "données", CompressionAlgo::None, 1);
}

#[test]
fn lz4_caches_agree_byte_by_byte() {
    check("lz4", "compressed", CompressionAlgo::Lz4, 9);
}
