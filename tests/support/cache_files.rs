//! Caches put together from the pieces of the format, without the writer: also such as it would never write.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use dataset_rt::cancel::CancelToken;
use dataset_rt::checksum::{blake3_64, sha256_hex};
use dataset_rt::format::columns::ColumnBuffer;
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::format::index::IndexRow;
use dataset_rt::format::manifest::{FormatVersion, Manifest, RecordChecksums, ShardEntry};
use dataset_rt::format::metadata_write::MetadataWriter;
use dataset_rt::format::record::RecordEncoder;
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::ids::CacheId;
use dataset_rt::value::MetadataValue;

/// What a cache is made of.
pub struct CacheFiles {
    pub name: String,
    pub samples: Vec<TestSample>,
    pub max_shard_bytes: usize,
    pub algo: CompressionAlgo,
    /// Whether there is a `checksums.bin`.
    pub checksums: bool,
    /// Whether it is written as version 3.
    pub version_3: bool,
}

/// Payload and metadata.
pub type TestSample = (Vec<u8>, Vec<(String, MetadataValue)>);

impl CacheFiles {
    /// A cache of `count` samples as [`sample`] makes them.
    pub fn new(name: &str, count: u64, payload_len: impl Fn(u64) -> usize) -> Self {
        Self {
            name: name.to_owned(),
            samples: (0..count).map(|row| sample(name, row, payload_len(row))).collect(),
            max_shard_bytes: 64 << 20,
            algo: CompressionAlgo::None,
            checksums: true,
            version_3: true,
        }
    }

    /// Writes it below `base` and returns its directory.
    pub fn write(&self, base: &Path) -> PathBuf {
        let path = base.join(&self.name);
        fs::create_dir_all(path.join("shards")).unwrap();
        let (_, first) = &self.samples[0];
        let fields = first.iter().map(|(name, value)| Field { name: name.clone(), kind: value.as_ref().kind() });
        let schema = Schema::new(fields.collect()).unwrap();

        let encoder = RecordEncoder::new(&schema);
        let mut columns: Vec<ColumnBuffer> =
            schema.fields().iter().map(|field| ColumnBuffer::new(field.kind)).collect();
        let (mut shards, mut index, mut sums) = (vec![(Vec::new(), 0)], Vec::new(), Vec::new());
        for (payload, metadata) in &self.samples {
            let value = |name: &str| metadata.iter().find(|(key, _)| key == name).unwrap().1.as_ref();
            let mut record = Vec::new();
            encoder.encode(schema.fields().iter().map(|field| value(&field.name)), &mut record).unwrap();
            self.algo.compress(payload, &mut record, &CancelToken::new()).unwrap();
            for (column, field) in columns.iter_mut().zip(schema.fields()) {
                column.push(value(&field.name)).unwrap();
            }
            let (bytes, _) = shards.last().unwrap();
            if !bytes.is_empty() && bytes.len() + record.len() > self.max_shard_bytes {
                shards.push((Vec::new(), 0));
            }
            let shard = shards.len() as u64 - 1;
            let (bytes, original): &mut (Vec<u8>, u64) = shards.last_mut().unwrap();
            let row = IndexRow { shard, offset: bytes.len() as u64, length: record.len() as u64 };
            index.extend_from_slice(&row.to_bytes());
            sums.extend_from_slice(&blake3_64(&[&record]).to_le_bytes());
            bytes.extend_from_slice(&record);
            *original += payload.len() as u64;
        }

        let mut writer = MetadataWriter::new(&schema, base.join("spool"));
        writer.append(self.samples.len(), &columns).unwrap();
        let metadata_sha256 = writer.finish(&path.join("metadata.arrow"), &CancelToken::new()).unwrap();
        fs::write(path.join("index.bin"), &index).unwrap();
        if self.checksums {
            fs::write(path.join("checksums.bin"), &sums).unwrap();
        }
        let entries = shards.iter().enumerate().map(|(number, (bytes, original))| {
            let name = format!("{number:06}.bin");
            fs::write(path.join("shards").join(&name), bytes).unwrap();
            ShardEntry {
                name,
                uncompressed_byte_len: *original,
                byte_len: bytes.len() as u64,
                compression: Compression { algo: self.algo, ratio: 1.0 },
                sha256: sha256_hex(bytes),
            }
        });
        let manifest = Manifest {
            version: FormatVersion::V3,
            cache_id: Some(CacheId::of_source_name(&self.name)),
            source_name: self.name.clone(),
            sample_count: self.samples.len() as u64,
            metadata_schema: schema.fields().to_vec(),
            metadata_sha256,
            index_sha256: sha256_hex(&index),
            shards: entries.collect(),
            record_checksums: self
                .checksums
                .then(|| RecordChecksums { file: "checksums.bin".to_owned(), sha256: sha256_hex(&sums) }),
            source_fingerprint: None,
            manifest_checksum: None,
        };
        let mut bytes = manifest.to_bytes().unwrap();
        if !self.version_3 {
            let text = String::from_utf8(bytes).unwrap();
            bytes = text.replacen("\"format_version\": 3", "\"format_version\": 2", 1).into_bytes();
        }
        fs::write(path.join("manifest.json"), bytes).unwrap();
        path
    }
}

/// Sample `row` of a cache: everything in it says where it belongs.
pub fn sample(name: &str, row: u64, payload_len: usize) -> TestSample {
    let seed = name.bytes().fold(row + 1, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let payload = (0..payload_len as u64).map(|at| (seed.wrapping_mul(at + 1) >> 5).to_le_bytes()[0]);
    let metadata = vec![
        ("text".to_owned(), MetadataValue::String(format!("{name} {row} ü"))),
        ("number".to_owned(), MetadataValue::Int(i64::try_from(row).unwrap() - 5)),
        ("real".to_owned(), MetadataValue::Float(f64::from_bits(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2))),
        ("flag".to_owned(), MetadataValue::Bool(row.is_multiple_of(3))),
    ];
    (payload.collect(), metadata)
}

/// A directory that goes with the test: in memory where the system has such a place.
pub fn temp_dir() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}
