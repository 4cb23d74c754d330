//! `manifest.json`: written in one exact layout with a checksum of its own, read tolerantly, never trusted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use dataset_rt::error::{Error, Result};
use dataset_rt::format::compression::{Compression, CompressionAlgo};
use dataset_rt::format::manifest::{FormatVersion, Manifest, RecordChecksums, ShardEntry};
use dataset_rt::format::schema::Field;
use dataset_rt::ids::CacheId;
use dataset_rt::value::Kind;
use proptest::prelude::*;

const PATH: &str = "base/digits/manifest.json";

fn digest(character: char) -> String {
    character.to_string().repeat(64)
}

fn shard(name: &str, compression: Compression) -> ShardEntry {
    ShardEntry { name: name.to_owned(), uncompressed_byte_len: 30, byte_len: 99, compression, sha256: digest('c') }
}

fn sample() -> Manifest {
    let field = |name: &str, kind| Field { name: name.to_owned(), kind };
    Manifest {
        version: FormatVersion::V3,
        cache_id: Some(CacheId(2_342_741_951_822_945_573)),
        source_name: "données".to_owned(),
        sample_count: 3,
        metadata_schema: vec![field("label", Kind::Int), field("split", Kind::String)],
        metadata_sha256: digest('a'),
        index_sha256: digest('b'),
        shards: vec![
            shard("000000.bin", Compression { algo: CompressionAlgo::Lz4, ratio: 2.5 }),
            shard("000001.bin", Compression { algo: CompressionAlgo::Lz4, ratio: 2.5 }),
        ],
        record_checksums: Some(RecordChecksums { file: "checksums.bin".to_owned(), sha256: digest('d') }),
        source_fingerprint: Some("2024-05 \"β\"\n".to_owned()),
        manifest_checksum: None,
    }
}

fn parse(text: &str) -> Result<Manifest> {
    Manifest::parse(Path::new(PATH), text.as_bytes())
}

fn refusal(text: &str) -> String {
    let error = parse(text).unwrap_err();
    assert!(matches!(error, Error::InvalidCache { .. }), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("base/digits/manifest.json: expected a cache manifest, found "), "{message}");
    message
}

/// A version 2 manifest with one thing replaced.
fn version_2(replaced: &str, replacement: &str) -> String {
    let text = r#"{"format_version": 2, "source_name": "a", "sample_count": 1,
        "metadata_schema": [{"name": "x", "kind": "int"}], "metadata_sha256": "m", "index_sha256": "i",
        "shards": [{"name": "000000.bin", "uncompressed_byte_len": 1, "byte_len": 2,
                    "compression": {"algo": "none", "ratio": 1}, "sha256": "s"}]}"#;
    let changed = text.replace(replaced, replacement);
    assert!(replaced.is_empty() || changed != text, "{replaced:?} is not in the manifest");
    changed
}

#[test]
fn the_layout_is_exact() {
    let bytes = sample().to_bytes().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let shard = |name: &str| {
        format!(
            r#"    {{
      "name": "{name}",
      "uncompressed_byte_len": 30,
      "byte_len": 99,
      "compression": {{
        "algo": "lz4",
        "ratio": 2.5
      }},
      "sha256": "{}"
    }}"#,
            digest('c')
        )
    };
    let expected = |checksum: &str| {
        format!(
            r#"{{
  "format_version": 3,
  "cache_id": 2342741951822945573,
  "source_name": "données",
  "sample_count": 3,
  "metadata_schema": [
    {{
      "name": "label",
      "kind": "int"
    }},
    {{
      "name": "split",
      "kind": "string"
    }}
  ],
  "metadata_sha256": "{}",
  "index_sha256": "{}",
  "shards": [
{},
{}
  ],
  "record_checksums": {{
    "file": "checksums.bin",
    "algo": "blake3-64",
    "sha256": "{}"
  }},
  "source_fingerprint": "2024-05 \"β\"\n",
  "manifest_checksum": "{checksum}"
}}"#,
            digest('a'),
            digest('b'),
            shard("000000.bin"),
            shard("000001.bin"),
            digest('d')
        )
    };
    let checksum = blake3::hash(expected(&digest('0')).as_bytes()).to_hex();
    assert_eq!(text, expected(&checksum).replace("\"β\"\n", "\\\"β\\\"\\n"));
}

#[test]
fn what_a_cache_lacks_is_left_out() {
    let mut manifest = sample();
    (manifest.record_checksums, manifest.source_fingerprint) = (None, None);
    manifest.metadata_schema.clear();
    manifest.shards = vec![shard("000000.bin", Compression::NONE)];
    let text = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    assert!(text.contains("\"metadata_schema\": [],\n"), "{text}");
    assert!(text.contains("\"ratio\": 1.0\n"), "{text}");
    assert!(!text.contains("record_checksums") && !text.contains("source_fingerprint"), "{text}");
    assert!(text.ends_with("\"\n}"), "{text}");
}

#[test]
fn readers_take_any_order_space_and_unknown_keys() {
    let text = format!(
        "\n{{\"extra\": [1, {{\"a\": 1, \"a\": 2}}], \"manifest_checksum\" :\t\"{0}\",\"shards\":[{{\"sha256\":\"{0}\",\
         \"more\":null,\"compression\":{{\"ratio\":1,\"algo\":\"none\",\"level\":9}},\"byte_len\":18446744073709551615,\
         \"uncompressed_byte_len\":0,\"name\":\"a.bin\"}}],\"index_sha256\":\"{0}\",\"metadata_sha256\":\"{0}\",\
         \"metadata_schema\":[{{\"kind\":\"bool\",\"name\":\"z\"}},{{\"kind\":\"float\",\"name\":\"\"}}],\
         \"sample_count\":18446744073709551615,\"source_n\\u0061me\":\"s\",\"cache_id\":18446744073709551615,\
         \"record_checksums\":null,\"source_fingerprint\":null,\"format_version\":3}} \r\n",
        digest('e')
    );
    let manifest = parse(&text).unwrap();
    assert_eq!(manifest.cache_id, Some(CacheId(u64::MAX)));
    assert_eq!((manifest.sample_count, manifest.source_name.as_str()), (u64::MAX, "s"));
    assert_eq!(manifest.metadata_schema.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["z", ""]);
    assert_eq!(manifest.shards[0].byte_len, u64::MAX);
    assert_eq!(manifest.manifest_checksum, Some(digest('e')));
    assert_eq!((manifest.record_checksums, manifest.source_fingerprint), (None, None));
    // What may be absent may be null.
    let text = text.replace(&format!("\"manifest_checksum\" :\t\"{}\"", digest('e')), "\"manifest_checksum\": null");
    assert_eq!(parse(&text).unwrap().manifest_checksum, None);
    Manifest::verify_checksum(Path::new(PATH), text.as_bytes()).unwrap();
}

#[test]
fn version_2_has_no_id_of_its_own() {
    for text in [
        version_2("", ""),
        version_2("\"sample_count\"", "\"cache_id\": 7, \"sample_count\""),
        version_2("\"sample_count\"", "\"cache_id\": \"seven\", \"manifest_checksum\": 1, \"sample_count\""),
    ] {
        let manifest = parse(&text).unwrap();
        assert_eq!((manifest.version, manifest.cache_id), (FormatVersion::V2, None));
        assert_eq!(manifest.manifest_checksum, None);
        Manifest::verify_checksum(Path::new(PATH), text.as_bytes()).unwrap();
    }
}

#[test]
fn version_3_needs_an_id() {
    let version_3 = |id: &str| version_2("\"format_version\": 2", &format!("\"format_version\": 3{id}"));
    assert_eq!(parse(&version_3(", \"cache_id\": 0")).unwrap().cache_id, Some(CacheId(0)));
    assert!(refusal(&version_3("")).contains("no key \"cache_id\""));
    for id in ["-1", "1.0", "1e3", "18446744073709551616", "null", "\"1\"", "true"] {
        let message = refusal(&version_3(&format!(", \"cache_id\": {id}")));
        assert!(message.contains("no 64-bit unsigned integer"), "{message}");
    }
    assert!(refusal(&version_3(", \"cache_id\": 1, \"manifest_checksum\": 1")).contains("manifest_checksum 1"));
}

#[test]
fn what_is_no_manifest_is_refused() {
    let message = |replaced: &str, replacement: &str| refusal(&version_2(replaced, replacement));
    for version in ["1", "4", "18446744073709551615"] {
        assert!(message("_version\": 2", &format!("_version\": {version}")).contains(version));
    }
    for version in ["2.0", "\"2\"", "true", "null", "-2", "[2]"] {
        let told = message("_version\": 2", &format!("_version\": {version}"));
        let expected = format!("\"format_version\" {version}, but this release reads versions 2 and 3");
        assert!(told.contains(&expected), "{told}");
    }
    // Whatever else another version holds, its number is told.
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    for other in [r#""\ud800""#, "1e999", r#"{"a": "\udc00", "a": 1}"#, &deep] {
        let told = message("_version\": 2", &format!("_version\": 4, \"cache_id\": {other}, \"shards\": {other}"));
        assert!(told.contains("\"format_version\" 4, but this release reads versions 2 and 3"), "{told}");
        parse(&version_2("_version\": 2", &format!("_version\": 2, \"unknown\": {other}"))).unwrap();
    }
    // Half a character is no text, in names and in what has a meaning.
    for (from, to) in [("\"a\"", r#""\ud800""#), ("\"shards\"", r#""\udc00""#), ("\"x\"", r#""x\ud83dy""#)] {
        let told = message(from, to);
        assert!(
            told.contains("found a text with half of a character, a lone surrogate (line ")
                && told.ends_with("; write the cache again, or restore it from a copy"),
            "{told}"
        );
    }
    for key in [
        "format_version",
        "source_name",
        "sample_count",
        "metadata_schema",
        "metadata_sha256",
        "index_sha256",
        "shards",
    ] {
        assert!(message(&format!("\"{key}\""), "\"other\"").contains(&format!("no key \"{key}\"")));
    }
    for key in ["uncompressed_byte_len", "byte_len", "compression", "algo", "ratio", "kind"] {
        assert!(message(&format!("\"{key}\""), "\"other\"").contains(&format!("found no key \"{key}\"")));
    }
    assert!(message("\"kind\": \"int\"", "\"kind\": \"bytes\"").contains("unknown kind \"bytes\""));
    assert!(message("\"none\"", "\"zstd\"").contains("unknown compression \"zstd\""));
    assert!(
        message("{\"name\": \"x\", \"kind\": \"int\"}", "[\"x\", \"int\"]")
            .contains("found a list where a JSON object is expected")
    );
    assert!(message("\"ratio\": 1", "\"ratio\": \"1\"").contains("found the text \"1\" where a number is expected"));
    assert!(
        message("\"sample_count\": 1", "\"sample_count\": 1.0")
            .contains("found 1.0 where a whole number in 0 ... 2^64-1 is expected")
    );
    assert!(
        message("\"kind\": \"int\"}", "\"kind\": \"int\"}, {\"name\": \"x\", \"kind\": \"bool\"}").contains("twice")
    );
    for name in ["", ".", "..", "/etc/passwd", "../000000.bin", "a/b", "a\\\\b", "a\\u0000"] {
        assert!(message("000000.bin", name).contains("plain file name"), "{name}");
    }
    let checksums = |file: &str, algo: &str| {
        let text = format!(
            "\"record_checksums\": {{\"file\": \"{file}\", \"algo\": \"{algo}\", \"sha256\": \"\"}}, \"shards\""
        );
        version_2("\"shards\"", &text)
    };
    assert!(parse(&checksums("checksums.bin", "blake3-64")).unwrap().record_checksums.is_some());
    assert!(refusal(&checksums("checksums.bin", "crc32")).contains("unknown algorithm \"crc32\""));
    assert!(refusal(&checksums("../checksums.bin", "blake3-64")).contains("plain file name"));
}

#[test]
fn what_is_no_single_json_object_is_refused() {
    let good = version_2("", "");
    refusal("");
    refusal("[]");
    refusal("null");
    refusal(&format!("\u{feff}{good}"));
    assert!(refusal(&format!("{good}}}")).contains("trailing"));
    assert!(refusal(&format!("{good} {good}")).contains("trailing"));
    assert!(
        refusal(&version_2("{\"format", "{\"sample_count\": 1, \"format")).contains("\"sample_count\" occurs twice")
    );
    assert!(refusal(&version_2("{\"format", "{\"x\": 1, \"x\": 1, \"format")).contains("\"x\" occurs twice"));
    // Within an object the same holds for keys with a meaning.
    for (key, value) in [("algo", "\"none\""), ("byte_len", "2"), ("kind", "\"int\"")] {
        let entry = format!("\"{key}\": {value}");
        assert!(
            refusal(&version_2(&entry, &format!("{entry}, {entry}"))).contains(&format!("the key \"{key}\" twice"))
        );
    }
    parse(&version_2("\"algo\"", "\"x\": 1, \"x\": 2, \"algo\"")).unwrap();
    assert!(refusal(&"[".repeat(1_000_000)).contains("found a list where a JSON object is expected"));
    assert!(refusal("{").contains("found text that is no JSON"));
    // In the words of users, and with what to do.
    let odd = refusal(&version_2("\"sample_count\": 1", "\"sample_count\": \"x\""));
    assert!(odd.contains("where a whole number in 0 ... 2^64-1 is expected") && !odd.contains("u64"), "{odd}");
    assert!(odd.ends_with("; write the cache again, or restore it from a copy"), "{odd}");
    refusal(&version_2("{\"format", &format!("{{\"deep\": {}, \"format", "[".repeat(1_000_000))));
    let mut bytes = good.into_bytes();
    bytes[20] = 0xff;
    let error = Manifest::parse(Path::new(PATH), &bytes).unwrap_err();
    assert!(error.to_string().contains("invalid UTF-8"), "{error}");
}

#[test]
fn writing_needs_an_id_and_finite_ratios() {
    let mut manifest = sample();
    manifest.shards[0].compression.ratio = f64::INFINITY;
    assert!(matches!(manifest.to_bytes(), Err(Error::InvalidValue(_))));
    let mut manifest = sample();
    manifest.cache_id = None;
    assert!(matches!(manifest.to_bytes(), Err(Error::InvalidValue(_))));
}

#[test]
fn d03_the_checksum_is_found_in_any_layout() {
    let bytes = sample().to_bytes().unwrap();
    Manifest::verify_checksum(Path::new(PATH), &bytes).unwrap();
    // Another writer may put the key anywhere, with any space around it.
    let with = |checksum: &str| {
        let first = format!(
            "\"note\": \"manifest_checksum\", \"manifest_checksum\" \n:\t\"{checksum}\", \"format_version\": 3, \"cache_id\": 1"
        );
        version_2("\"format_version\": 2", &first)
    };
    let checksum = blake3::hash(with(&digest('0')).as_bytes()).to_hex().to_string();
    Manifest::verify_checksum(Path::new(PATH), with(&checksum).as_bytes()).unwrap();
    for wrong in [checksum.to_uppercase(), digest('0'), "short".to_owned()] {
        let error = Manifest::verify_checksum(Path::new(PATH), with(&wrong).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("manifest_checksum does not match"), "{error}");
    }
    let none = version_2("\"format_version\": 2", "\"format_version\": 3, \"cache_id\": 1");
    Manifest::verify_checksum(Path::new(PATH), none.as_bytes()).unwrap();
}

#[test]
fn d03_every_flipped_bit_is_refused_or_noticed() {
    let bytes = sample().to_bytes().unwrap();
    let place = |text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    // Version 2 and manifests without the key have no checksum: these flips turn this one into such a manifest.
    let version = place("3,");
    let key = place("manifest_checksum")..place("manifest_checksum") + "manifest_checksum".len();
    for position in 0..bytes.len() {
        for bit in [0x01, 0x04, 0x20, 0x80] {
            let mut flipped = bytes.clone();
            flipped[position] ^= bit;
            let verified = Manifest::verify_checksum(Path::new(PATH), &flipped);
            assert!(
                verified.is_err() || position == version || key.contains(&position),
                "bit {bit:#x} of byte {position}"
            );
        }
    }
    for length in 0..bytes.len() {
        assert!(Manifest::parse(Path::new(PATH), &bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn e01_whatever_opens_as_version_2_can_be_migrated() {
    let unknown = r#""n\u006fte": {"a": "\ud800 \u00e9", "a": [1e400, -0]}, "shards""#;
    let bytes = version_2("\"shards\"", unknown).into_bytes();
    let mut migrated = 0;
    for position in 0..bytes.len() {
        for flip in [0x01, 0x02, 0x08, 0x10, 0x20, 0x40] {
            let mut flipped = bytes.clone();
            flipped[position] ^= flip;
            let Ok(old) = Manifest::parse(Path::new(PATH), &flipped) else { continue };
            if old.version == FormatVersion::V2 {
                let upgraded = Manifest::upgrade(Path::new(PATH), &flipped, CacheId(5)).unwrap();
                Manifest::verify_checksum(Path::new(PATH), &upgraded).unwrap();
                let new = Manifest::parse(Path::new(PATH), &upgraded).unwrap();
                assert_eq!(
                    (new.cache_id, new.content_digest(CacheId(5))),
                    (Some(CacheId(5)), old.content_digest(CacheId(5)))
                );
                migrated += 1;
            }
        }
    }
    assert!(migrated > bytes.len() / 4, "{migrated} of {}", bytes.len());
}

fn manifests() -> impl Strategy<Value = Manifest> {
    let kind = prop_oneof![Just(Kind::Bool), Just(Kind::Int), Just(Kind::Float), Just(Kind::String)];
    let schema = prop::collection::btree_map("\\PC{0,6}", kind, 0..5)
        .prop_map(|map| map.into_iter().map(|(name, kind)| Field { name, kind }).collect::<Vec<_>>());
    let ratio = any::<f64>().prop_filter("finite", |ratio| ratio.is_finite());
    let algo = prop_oneof![Just(CompressionAlgo::None), Just(CompressionAlgo::Lz4)];
    let shard = ("[a-z0-9.]{3,9}", any::<[u64; 2]>(), algo, ratio, "[0-9a-f]{64}").prop_filter_map(
        "plain",
        |(name, [uncompressed_byte_len, byte_len], algo, ratio, sha256)| {
            let compression = Compression { algo, ratio };
            Some(ShardEntry { name, uncompressed_byte_len, byte_len, compression, sha256 })
        },
    );
    let checksums = "[0-9a-f]{64}".prop_map(|sha256| RecordChecksums { file: "checksums.bin".to_owned(), sha256 });
    (
        any::<[u64; 2]>(),
        ".{0,9}",
        schema,
        prop::collection::vec(shard, 0..4),
        prop::option::of(checksums),
        prop::option::of(".{0,9}"),
    )
        .prop_map(
            |([id, sample_count], source_name, metadata_schema, shards, record_checksums, source_fingerprint)| {
                Manifest {
                    cache_id: Some(CacheId(id)),
                    source_name,
                    sample_count,
                    metadata_schema,
                    shards,
                    record_checksums,
                    source_fingerprint,
                    ..sample()
                }
            },
        )
}

proptest! {
    #[test]
    fn manifests_read_back(manifest in manifests()) {
        let bytes = manifest.to_bytes().unwrap();
        let mut read = Manifest::parse(Path::new(PATH), &bytes).unwrap();
        Manifest::verify_checksum(Path::new(PATH), &bytes).unwrap();
        prop_assert_eq!(read.manifest_checksum.take().map(|checksum| checksum.len()), Some(64));
        prop_assert_eq!(read, manifest);
    }
}
