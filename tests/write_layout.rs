//! What lands in the files of a cache, looked at byte by byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::cast_possible_truncation, reason = "offsets and lengths of files that are in memory")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use dataset_rt::checksum::sha256_hex;
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::value::MetadataValue;
use dataset_rt::writer::{OwnedSample, WriterConfig};
use serde_json::{Value, json};
use support::{config, files, sample, samples, temp_dir, write_cache};

/// Writes one cache and returns its files.
fn written(samples: impl IntoIterator<Item = OwnedSample>, config: &WriterConfig) -> BTreeMap<String, Vec<u8>> {
    let base = temp_dir();
    files(&write_cache(base.path(), "a", samples, config))
}

fn manifest(files: &BTreeMap<String, Vec<u8>>) -> Value {
    serde_json::from_slice(&files["manifest.json"]).unwrap()
}

/// Index rows as (shard, offset, length).
fn index(files: &BTreeMap<String, Vec<u8>>) -> Vec<[u64; 3]> {
    let words: Vec<u64> = files["index.bin"].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.as_chunks::<3>().0.to_vec()
}

/// A sample without metadata, whose record takes `length` bytes.
fn record_of(length: usize) -> OwnedSample {
    sample(vec![b'x'; length - 10], &[])
}

fn limit(max_shard_bytes: u64) -> WriterConfig {
    WriterConfig { max_shard_bytes, ..config() }
}

fn lz4() -> WriterConfig {
    WriterConfig { compression: Compression { algo: CompressionAlgo::Lz4, ratio: 2.5 }, ..config() }
}

#[test]
fn c05_records_hold_the_metadata_as_json_and_the_payload() {
    let row = |payload: &str, score| {
        let metadata = [("b", MetadataValue::Float(score)), ("a", MetadataValue::String("é\n".to_owned()))];
        sample(payload, &metadata)
    };
    let files = written([row("hello", 1.0), row("", f64::NAN)], &config());
    let mut expected = Vec::new();
    for (json, payload) in [("{\"a\":\"é\\n\",\"b\":1.0}", "hello"), ("{\"a\":\"é\\n\",\"b\":null}", "")] {
        expected.extend((json.len() as u64).to_le_bytes());
        expected.extend(json.bytes().chain(payload.bytes()));
    }
    assert_eq!(files["shards/000000.bin"], expected);
    assert_eq!(index(&files), [[0, 0, 33], [0, 33, 29]]);
    let columns = json!([{"name": "a", "kind": "string"}, {"name": "b", "kind": "float"}]);
    assert_eq!(manifest(&files)["metadata_schema"], columns);
}

#[test]
fn c17_metadata_may_be_empty_and_so_may_payloads() {
    let files = written([sample("", &[]), sample("", &[])], &config());
    assert_eq!(files["shards/000000.bin"], b"\x02\0\0\0\0\0\0\0{}\x02\0\0\0\0\0\0\0{}");
    assert_eq!(manifest(&files)["metadata_schema"], json!([]));
}

#[test]
fn c17_lz4_frames_every_payload() {
    let files = written([sample("hello", &[]), sample("", &[])], &lz4());
    assert_eq!(files["shards/000000.bin"], b"\x02\0\0\0\0\0\0\0{}\x05\0\0\0\x50hello\x02\0\0\0\0\0\0\0{}\0\0\0\0\0",);
    let shard = &manifest(&files)["shards"][0];
    assert_eq!(shard["compression"], json!({"algo": "lz4", "ratio": 2.5}));
    assert_eq!((&shard["uncompressed_byte_len"], &shard["byte_len"]), (&json!(5), &json!(35)));
}

#[test]
fn c17_a_shard_may_reach_the_limit_and_not_pass_it() {
    let files = written([record_of(40), record_of(60), record_of(11), record_of(89), record_of(10)], &limit(100));
    assert_eq!(index(&files), [[0, 0, 40], [0, 40, 60], [1, 0, 11], [1, 11, 89], [2, 0, 10]]);
    let lengths: Vec<usize> = (0..3).map(|shard| files[&format!("shards/{shard:06}.bin")].len()).collect();
    assert_eq!(lengths, [100, 100, 10]);
}

#[test]
fn c17_a_record_beyond_the_limit_is_alone_in_its_shard() {
    let large = 300_000;
    let files =
        written([record_of(large), record_of(10), record_of(large), record_of(large), record_of(10)], &limit(20));
    let large = large as u64;
    assert_eq!(index(&files), [[0, 0, large], [1, 0, 10], [2, 0, large], [3, 0, large], [4, 0, 10]]);
    assert_eq!(files["shards/000002.bin"].len() as u64, large);
}

#[test]
fn c17_more_shards_than_a_process_may_have_open_files() {
    let files = written((0..3_000).map(|_| record_of(10)), &limit(1));
    assert_eq!(files.len(), 3_000 + 4);
    assert_eq!(index(&files)[2_999], [2_999, 0, 10]);
}

#[test]
fn c17_payloads_of_all_sizes_come_back_between_each_other() {
    // Around every size at which the writer changes its way: copying, writing from where they are, being a job.
    let sizes = [0, 1, 16_384, 32_767, 32_768, 32_769, 49_152, 1 << 19, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20];
    // Also envelopes that are longer than what is copied with them.
    let texts = [0, 1_000, 16_365, 16_366, 16_367, 40_000, 5];
    let pattern: Vec<u8> = (0..=250).collect();
    let payload = |size: usize, seed: usize| {
        let mut bytes = pattern[seed..].repeat(size / 200 + 1);
        bytes.truncate(size);
        bytes
    };
    let make = || {
        let all = sizes.iter().cycle().zip(texts.iter().cycle()).take(sizes.len() * texts.len());
        all.enumerate().map(|(row, (size, text))| {
            sample(payload(*size, row % 50), &[("text", MetadataValue::String("x".repeat(*text)))])
        })
    };
    for config in [limit(3 << 20), WriterConfig { max_shard_bytes: 3 << 20, ..lz4() }] {
        let files = written(make(), &config);
        let algo = config.compression.algo;
        let sums = files["checksums.bin"].as_chunks::<8>().0;
        for (([shard, offset, length], sum), (expected, metadata)) in index(&files).into_iter().zip(sums).zip(make()) {
            let record = &files[&format!("shards/{shard:06}.bin")][offset as usize..][..length as usize];
            let MetadataValue::String(text) = &metadata[0].1 else { panic!("a text") };
            let json = format!("{{\"text\":\"{text}\"}}");
            let (envelope, stored) = record.split_at(8 + json.len());
            assert!(envelope == [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat());
            let mut payload = vec![0; algo.original_len(stored).unwrap()];
            algo.decompress_into(stored, &mut payload).unwrap();
            assert!(payload == expected, "payload of {} bytes in {algo:?}", expected.len());
            assert_eq!(&blake3::hash(record).as_bytes()[..8], sum, "payload of {} bytes in {algo:?}", expected.len());
        }
    }
}

#[test]
fn c14_the_manifest_describes_every_file() {
    let config = limit(20_000);
    let files = written(samples(700, 300), &config);
    let manifest = manifest(&files);
    assert_eq!(manifest["format_version"], 3);
    assert_eq!((&manifest["source_name"], &manifest["sample_count"]), (&json!("a"), &json!(700)));
    assert_eq!(manifest["cache_id"], 5_374_906_597_990_186_442_u64);
    for (key, file) in [("metadata_sha256", "metadata.arrow"), ("index_sha256", "index.bin")] {
        assert_eq!(manifest[key], sha256_hex(&files[file]), "{file}");
    }
    let checksums = &files["checksums.bin"];
    assert_eq!(
        manifest["record_checksums"],
        json!({"file": "checksums.bin", "algo": "blake3-64", "sha256": sha256_hex(checksums)})
    );
    assert_eq!(manifest.get("source_fingerprint"), None);
    let shards = manifest["shards"].as_array().unwrap();
    assert_eq!(shards.len() + 4, files.len());
    let mut payloads = vec![0; shards.len()];
    for (([shard, offset, length], sum), (payload, _)) in
        index(&files).into_iter().zip(checksums.as_chunks::<8>().0).zip(samples(700, 300))
    {
        let bytes = &files[&format!("shards/{shard:06}.bin")];
        let record = &bytes[offset as usize..][..length as usize];
        assert_eq!(&blake3::hash(record).as_bytes()[..8], sum);
        payloads[shard as usize] += payload.len();
    }
    for (number, shard) in shards.iter().enumerate() {
        let name = format!("{number:06}.bin");
        let bytes = &files[&format!("shards/{name}")];
        let expected = json!({
            "name": name, "uncompressed_byte_len": payloads[number], "byte_len": bytes.len(),
            "compression": {"algo": "none", "ratio": 1.0}, "sha256": sha256_hex(bytes),
        });
        assert_eq!(shard, &expected);
    }
}

#[test]
fn c01_caches_lie_below_their_base_under_their_names() {
    let base = temp_dir();
    let deep = base.path().join("not").join("there yet");
    let path = write_cache(&deep, "données 😀", samples(3, 10), &config());
    assert_eq!(path, deep.join("données 😀"));
    assert!(Path::new(&path).join("manifest.json").is_file());
}
