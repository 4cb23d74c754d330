//! What opens as a dataset, and what is said about everything else.

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::error::Error;
use dataset_rt::ids::CacheId;
use dataset_rt::value::{Kind, MetadataValue};
use reading::{get_item, in_order, message, open, pass, pass_ids, try_open};

fn cache(base: &Path, name: &str) -> PathBuf {
    CacheFiles::new(name, 5, |_| 100).write(base)
}

#[test]
fn d02_a_missing_directory_is_an_error_of_the_file_system() {
    let base = temp_dir();
    let path = base.path().join("nothing");
    let error = try_open(std::slice::from_ref(&path), in_order()).unwrap_err();
    assert_eq!(error.io_source().unwrap().kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn d02_a_place_without_manifest_says_so() {
    let base = temp_dir();
    let unfinished = cache(base.path(), "unfinished");
    fs::remove_file(unfinished.join("manifest.json")).unwrap();
    for path in [base.path().to_path_buf(), unfinished] {
        let error = try_open(std::slice::from_ref(&path), in_order()).unwrap_err();
        assert!(matches!(error, Error::InvalidCache { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("missing manifest") && text.contains(path.to_str().unwrap()), "{text}");
    }
}

#[test]
fn d02_a_file_is_no_cache() {
    let base = temp_dir();
    let file = base.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = try_open(std::slice::from_ref(&file), in_order()).unwrap_err();
    assert!(matches!(&error, Error::File { path, .. } if *path == file.canonicalize().unwrap()), "{error:?}");
    assert_eq!(error.io_source().unwrap().kind(), ErrorKind::NotADirectory);
    assert!(error.to_string().contains("pass the directory of one cache"), "{error}");
}

#[test]
fn d02_paths_are_resolved_when_opened() {
    let base = temp_dir();
    let path = cache(base.path(), "one");
    let link = base.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let dataset = open(&[base.path().join("./link/../one")], in_order());
    assert_eq!(dataset.paths(), [path.canonicalize().unwrap()]);
    drop(dataset);
    let dataset = open(std::slice::from_ref(&link), in_order());
    fs::remove_file(link).unwrap();
    assert_eq!(dataset.paths(), [path.canonicalize().unwrap()]);
    assert_eq!(pass(&dataset).len(), 5);
}

#[test]
fn d02_duplicate_ids_name_both_places() {
    let base = temp_dir();
    let (one, copy) = (cache(base.path(), "one"), base.path().join("copy"));
    let status = std::process::Command::new("cp").arg("-r").args([&one, &copy]).status().unwrap();
    assert!(status.success());
    let other = cache(base.path(), "other");
    let text = message(try_open(&[one.clone(), other, copy.clone()], in_order()));
    assert!(text.contains(one.to_str().unwrap()) && text.contains(copy.to_str().unwrap()), "{text}");
    assert!(text.contains("cache_id"), "{text}");
    let error = try_open(&[one.clone(), one], in_order()).unwrap_err();
    assert!(matches!(error, Error::InvalidValue(_)), "{error:?}");
}

#[test]
fn d02_schemas_must_agree_in_names_and_kinds_but_not_in_order() {
    let base = temp_dir();
    let one = cache(base.path(), "one");
    let mut reordered = CacheFiles::new("reordered", 5, |_| 1);
    reordered.samples.iter_mut().for_each(|(_, metadata)| metadata.reverse());
    assert_eq!(pass(&open(&[one.clone(), reordered.write(base.path())], in_order())).len(), 10);

    let mut renamed = CacheFiles::new("renamed", 5, |_| 1);
    renamed.samples.iter_mut().for_each(|(_, metadata)| metadata[0].0.push('x'));
    let mut retyped = CacheFiles::new("retyped", 5, |_| 1);
    retyped.samples.iter_mut().for_each(|(_, metadata)| metadata[1].1 = MetadataValue::Float(1.0));
    for other in [renamed, retyped] {
        let other = other.write(base.path());
        let error = try_open(&[one.clone(), other.clone()], in_order()).unwrap_err();
        assert!(matches!(error, Error::InvalidValue(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(one.to_str().unwrap()) && text.contains(other.to_str().unwrap()), "{text}");
        assert!(text.contains("number: int"), "{text}");
    }
}

#[test]
fn d02_there_must_be_a_path() {
    let text = message(try_open(&[], in_order()));
    assert!(text.contains("paths"), "{text}");
}

#[test]
fn version_2_caches_are_called_after_their_position() {
    let base = temp_dir();
    let old = |name: &str| {
        let mut files = CacheFiles::new(name, 2, |_| 3);
        files.version_3 = false;
        files.checksums = false;
        files.write(base.path())
    };
    let (a, b) = (old("a"), old("b"));
    let new = cache(base.path(), "new");
    let dataset = open(&[b, new, a], in_order());
    let id = CacheId::of_source_name("new").0;
    let all = [(0, 0), (0, 1), (id, 0), (id, 1), (id, 2), (id, 3), (id, 4), (2, 0), (2, 1)];
    assert_eq!(pass_ids(&dataset), all);
    let sample = get_item(&dataset, 2, 1).unwrap();
    assert_eq!(sample.metadata[3].1, MetadataValue::String("a 1 ü".to_owned()));
}

/// A file of a cache, and what happens to it.
type Damage = (&'static str, fn(&Path));

#[test]
fn d01_files_of_the_wrong_length_are_found_at_once() {
    let base = temp_dir();
    let damages: [Damage; 5] = [
        ("shards/000001.bin", |file| fs::OpenOptions::new().write(true).open(file).unwrap().set_len(99).unwrap()),
        ("shards/000000.bin", |file| fs::write(file, [fs::read(file).unwrap(), vec![0]].concat()).unwrap()),
        ("index.bin", |file| fs::OpenOptions::new().write(true).open(file).unwrap().set_len(119).unwrap()),
        ("metadata.arrow", |file| fs::write(file, b"ARROW1").unwrap()),
        ("manifest.json", |file| {
            let text = fs::read_to_string(file).unwrap().replace("\"sample_count\": 5", "\"sample_count\": 4");
            fs::write(file, text).unwrap();
        }),
    ];
    for (number, (file, damage)) in damages.into_iter().enumerate() {
        let mut files = CacheFiles::new(&format!("cache-{number}"), 5, |_| 100);
        files.max_shard_bytes = 500;
        let path = files.write(base.path());
        assert_eq!(pass(&open(std::slice::from_ref(&path), in_order())).len(), 5);
        damage(&path.join(file));
        let error = try_open(std::slice::from_ref(&path), in_order()).unwrap_err();
        assert!(matches!(error, Error::InvalidCache { .. }), "{file}: {error:?}");
        // A wrong count shows first where it is compared: in the index.
        let named = path.join(if file == "manifest.json" { "index.bin" } else { file });
        assert!(error.to_string().contains(named.to_str().unwrap()), "{error}");
    }
}

#[test]
fn d01_a_missing_shard_is_an_error_of_the_file_system() {
    let base = temp_dir();
    let path = cache(base.path(), "one");
    let shard = path.join("shards/000000.bin");
    fs::remove_file(&shard).unwrap();
    let error = try_open(&[path], in_order()).unwrap_err();
    assert_eq!(error.io_source().unwrap().kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(shard.to_str().unwrap()), "{error}");
}

#[test]
fn d12_shards_of_an_open_dataset_may_be_deleted() {
    let base = temp_dir();
    let path = cache(base.path(), "one");
    let dataset = open(std::slice::from_ref(&path), in_order());
    fs::remove_dir_all(path).unwrap();
    assert_eq!(pass(&dataset).len(), 5);
}

#[test]
fn the_reader_configuration_is_checked_again() {
    let base = temp_dir();
    let path = cache(base.path(), "one");
    for prefetch_size in [0, 1 << 63] {
        let config = dataset_rt::reader::ReaderConfig { prefetch_size, ..in_order() };
        let text = message(try_open(std::slice::from_ref(&path), config));
        assert!(text.contains("prefetch_size"), "{text}");
    }
}

#[test]
fn kinds_of_the_schema_are_those_of_the_cache() {
    let base = temp_dir();
    let dataset = open(&[cache(base.path(), "one")], in_order());
    let fields: Vec<_> = dataset.schema().fields().iter().map(|field| (field.name.as_str(), field.kind)).collect();
    assert_eq!(fields, [("flag", Kind::Bool), ("number", Kind::Int), ("real", Kind::Float), ("text", Kind::String)]);
}
