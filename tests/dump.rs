//! Exports: the same dataset comes out again, nothing is overwritten or left behind, and no damage goes unnoticed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringViewArray, StructArray};
use arrow_schema::{DataType, Field, Schema};
use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::{PlainWaiter, Waiter};
use dataset_rt::dataset::{Dataset, Metadata};
use dataset_rt::error::{Error, Result};
use dataset_rt::format::dataset_config::DatasetConfig;
use dataset_rt::fs::Operation;
use dataset_rt::fs::fault::{Fault, When, arm};
use dataset_rt::reader::ReaderConfig;
use reading::{in_order, message, open, pass_ids};

fn caches(base: &Path) -> Vec<PathBuf> {
    [("one", 40), ("two", 25)].map(|(name, count)| CacheFiles::new(name, count, |_| 3).write(base)).to_vec()
}

fn metadata(dataset: &Dataset) -> Metadata {
    Metadata::clone(&dataset.metadata(&mut PlainWaiter::default()).unwrap())
}

fn update(dataset: &Dataset, table: Metadata) {
    dataset.update_metadata(table, &mut PlainWaiter::default()).unwrap();
}

fn dump(dataset: &Dataset, directory: &Path) -> Result<PathBuf> {
    dataset.dump_config(directory, None, &mut PlainWaiter::default())
}

fn load(config: &Path) -> Result<Dataset> {
    Dataset::from_config(config, &mut PlainWaiter::default())
}

fn new_dir(base: &Path, name: &str) -> PathBuf {
    let path = base.join(name);
    fs::create_dir(&path).unwrap();
    path
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The table with the rows of each batch in reverse, and a column more in each batch.
fn with_column(table: &Metadata, field: Field, column: impl Fn(usize, usize) -> ArrayRef) -> Metadata {
    let mut fields = table.schema.fields().to_vec();
    fields.push(Arc::new(field));
    let schema = Arc::new(Schema::new(fields));
    let batches = table.batches.iter().enumerate().map(|(number, batch)| {
        let mut columns = batch.columns().to_vec();
        columns.push(column(number, batch.num_rows()));
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    });
    let batches = batches.rev().collect();
    Metadata { schema, batches }
}

fn concatenated(table: &Metadata) -> RecordBatch {
    arrow_select::concat::concat_batches(&table.schema, &table.batches).unwrap()
}

#[test]
fn e01_dictionaries_that_differ_from_batch_to_batch_are_joined() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let words = [["yes", "no"], ["no", "perhaps"]];
    let table = with_column(&metadata(&dataset), Field::new("word", data_type, true), |batch, rows| {
        let values = (0..rows).map(|row| (row % 3 < 2).then(|| words[batch][row % 3]));
        Arc::new(values.collect::<DictionaryArray<Int8Type>>())
    });
    update(&dataset, table);
    let loaded = load(&dump(&dataset, &new_dir(base.path(), "out")).unwrap()).unwrap();
    let texts = |dataset: &Dataset| {
        let column = concatenated(&metadata(dataset)).column_by_name("word").unwrap().clone();
        arrow_cast::cast(&column, &DataType::Utf8).unwrap()
    };
    assert_eq!(&texts(&loaded), &texts(&dataset));
    assert_eq!(pass_ids(&loaded), pass_ids(&dataset));
}

#[test]
fn e01_an_export_does_not_depend_on_where_it_is_or_who_opens_it() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), ReaderConfig::new(3));
    dataset.set_epoch_len(200).unwrap();
    let config = dataset.dump_config(&new_dir(base.path(), "out"), Some(7), &mut PlainWaiter::default()).unwrap();
    let parsed = DatasetConfig::parse(&config, &fs::read(&config).unwrap()).unwrap();
    assert_eq!((parsed.num_workers, parsed.epoch_len, parsed.row_count, parsed.seed), (7, 200, 65, 3));
    fs::rename(base.path().join("out"), base.path().join("elsewhere")).unwrap();
    let loaded = load(&base.path().join("elsewhere/dataset.json")).unwrap();
    assert_eq!(pass_ids(&loaded), pass_ids(&dataset));
    let again = dump(&loaded, &new_dir(base.path(), "again")).unwrap();
    assert_eq!(fs::read(again).unwrap(), fs::read(base.path().join("elsewhere/dataset.json")).unwrap());
    assert_eq!(
        fs::read(base.path().join("again/metadata.arrow")).unwrap(),
        fs::read(base.path().join("elsewhere/metadata.arrow")).unwrap()
    );
}

/// Wants to stop whenever it is asked.
struct Stopping;

impl Waiter for Stopping {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        // What is to be stopped may be finished by then.
        while !done(Duration::from_secs(1)) {}
        Err(Error::Interrupted)
    }

    fn check(&mut self) -> Result<()> {
        Err(Error::Interrupted)
    }
}

#[test]
fn e02_an_interrupted_export_leaves_nothing() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    let out = new_dir(base.path(), "out");
    // Made before, so that only writing is interrupted.
    metadata(&dataset);
    let result = dataset.dump_config(&out, None, &mut Stopping);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_eq!(entries(&out), [""; 0]);
}

#[test]
fn e02_of_many_exports_into_one_directory_one_succeeds() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    for round in 0..20 {
        let out = new_dir(base.path(), &round.to_string());
        let start = Barrier::new(4);
        let results: Vec<Result<PathBuf>> = thread::scope(|scope| {
            let export = || {
                start.wait();
                dump(&dataset, &out)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(export)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = results.iter().filter(|result| matches!(result, Err(Error::AlreadyExists { .. }))).count();
        assert_eq!((refused, results.iter().filter(|result| result.is_ok()).count()), (3, 1), "{results:?}");
        assert_eq!(entries(&out), ["dataset.json", "metadata.arrow"]);
        assert_eq!(load(&out.join("dataset.json")).unwrap().row_count().unwrap(), 65);
    }
}

#[test]
fn e02_a_file_that_is_in_the_way_is_not_touched() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    for name in ["dataset.json", "metadata.arrow"] {
        let out = new_dir(base.path(), &format!("with {name}"));
        fs::write(out.join(name), "mine").unwrap();
        let error = dump(&dataset, &out).unwrap_err();
        assert!(matches!(&error, Error::AlreadyExists { path, .. } if path.ends_with(name)), "{error}");
        assert_eq!(
            (entries(&out), fs::read_to_string(out.join(name)).unwrap()),
            (vec![name.to_owned()], "mine".into())
        );
    }
    let dangling = new_dir(base.path(), "with a link");
    std::os::unix::fs::symlink("nowhere", dangling.join("dataset.json")).unwrap();
    assert!(matches!(dump(&dataset, &dangling), Err(Error::AlreadyExists { .. })));
}

/// An export with text, views, structures, lists, dictionaries and nulls.
fn rich_export(base: &Path) -> (PathBuf, Vec<u8>) {
    let dataset = open(&[CacheFiles::new("small", 4, |_| 2).write(base)], in_order());
    let inner = Field::new("inner", DataType::Utf8View, true);
    let structure = DataType::Struct(vec![inner.clone()].into());
    let table = with_column(&metadata(&dataset), Field::new("structure", structure, true), |_, rows| {
        let texts: StringViewArray =
            (0..rows).map(|row| (row != 1).then(|| "long enough for a buffer ".repeat(row))).collect();
        let nulls = arrow_buffer::NullBuffer::from((0..rows).map(|row| row != 2).collect::<Vec<_>>());
        Arc::new(StructArray::new(vec![inner.clone()].into(), vec![Arc::new(texts)], Some(nulls)))
    });
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let table = with_column(&table, Field::new("word", data_type, true), |_, rows| {
        Arc::new((0..rows).map(|row| (row != 3).then_some("word")).collect::<DictionaryArray<Int8Type>>())
    });
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
    let table = with_column(&table, Field::new("list", list, true), |_, rows| {
        let lists = (0..rows).map(|row| (row > 0).then(|| vec![Some(1), None]));
        Arc::new(arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(lists))
    });
    update(&dataset, table);
    let config = dump(&dataset, &new_dir(base, "out")).unwrap();
    let bytes = fs::read(config.with_file_name("metadata.arrow")).unwrap();
    assert_eq!(load(&config).unwrap().row_count().unwrap(), 4);
    (config, bytes)
}

#[test]
fn e01_no_damage_of_an_exported_table_is_more_than_an_error() {
    let base = temp_dir();
    let (config, bytes) = rich_export(base.path());
    let table = config.with_file_name("metadata.arrow");
    let mut refused = 0;
    let mut check = |content: &[u8], what: &str| {
        fs::write(&table, content).unwrap();
        match load(&config) {
            Ok(dataset) => drop(pass_ids(&dataset)),
            Err(Error::InvalidCache { path, .. }) => {
                assert_eq!(path, table, "{what}");
                refused += 1;
            }
            Err(error) => panic!("{what}: {error:?}"),
        }
    };
    for place in 0..bytes.len() {
        let flip = [0x01, 0x80, 0xff][place % 3];
        let mut content = bytes.clone();
        content[place] ^= flip;
        check(&content, &format!("byte {place} changed by {flip:#x}"));
    }
    for length in (0..bytes.len()).step_by(31) {
        check(&bytes[..length], &format!("cut to {length} bytes"));
    }
    assert!(refused > bytes.len() / 8, "{refused} of {}", bytes.len());
}

#[test]
fn e01_a_table_of_another_export_is_told() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    let one = dump(&dataset, &new_dir(base.path(), "one export")).unwrap();
    let table = metadata(&dataset);
    update(&dataset, Metadata { batches: table.batches[..1].to_vec(), ..table });
    let two = dump(&dataset, &new_dir(base.path(), "two export")).unwrap();
    fs::copy(two.with_file_name("metadata.arrow"), one.with_file_name("metadata.arrow")).unwrap();
    let text = message(load(&one));
    assert!(text.contains("expected 65 rows") && text.contains("found 40"), "{text}");

    // Caches of the same names and lengths, but not those that were exported.
    let elsewhere = new_dir(base.path(), "elsewhere");
    CacheFiles::new("three", 40, |_| 3).write(&elsewhere);
    let caches = fs::read_to_string(&two).unwrap();
    fs::rename(base.path().join("one"), base.path().join("gone")).unwrap();
    fs::rename(elsewhere.join("three"), base.path().join("one")).unwrap();
    assert!(caches.contains("/one\""));
    let error = load(&two).unwrap_err();
    assert!(matches!(&error, Error::InvalidCache { path, .. } if path.ends_with("metadata.arrow")), "{error:?}");
    assert!(error.to_string().contains("does not fit the caches"), "{error}");
}

#[test]
fn e01_a_configuration_is_read_strictly() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    let config = dump(&dataset, &new_dir(base.path(), "out")).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let path = |text: &str| text.find("/one\"").unwrap();
    assert!(path(&text) > 0);
    for (from, to, told) in [
        ("\"version\": 2", "\"version\": 3", "\"version\" 3, but this release reads 2"),
        ("\"version\": 2", "\"version\": 3, \"new\": []", "\"version\" 3, but this release reads 2"),
        ("\"version\": 2", "\"version\": 3, \"new\": \"\\ud800\"", "\"version\" 3, but this release reads 2"),
        ("\"version\": 2", "\"version\": 2, \"new\": 1", "found the unknown key \"new\""),
        ("\"version\": 2", "\"version\": 2, \"version\": 2", "found the key \"version\" twice"),
        ("\"version\": 2", "\"version\": \"2\"", "\"version\" \"2\", but this release reads 2"),
        ("\"version\": 2", "\"version\": null", "\"version\" null, but this release reads 2"),
        ("\"version\": 2,", "", "no key \"version\", of which this release reads 2"),
        ("\"seed\": 7", "\"seed\": 7.0", "found 7.0 where a whole number in 0 ... 2^64-1 is expected"),
        ("\"seed\": 7", "\"seed\": true", "found true where a whole number in 0 ... 2^64-1 is expected"),
        ("\"seed\": 7", "\"seed\": 7, \"workers\": 1", "found the unknown key \"workers\""),
        ("\"epoch_len\": 65", "\"epoch_len\": 0", "epoch_len 0"),
        ("\"row_count\": 65", "\"row_count\": 9223372036854775808", "row_count 9223372036854775808"),
        ("\"num_workers\": 2", "\"num_workers\": 1025", "1 ... 1024, found 1025; edit this number in dataset.json"),
        ("\"num_workers\": 2", "\"num_workers\": 0", "1 ... 1024, found 0; edit this number in dataset.json"),
        ("\"prefetch_size\": 64", "\"prefetch_size\": 9223372036854775808", "edit this number in dataset.json"),
        ("\"metadata.arrow\"", "\"../metadata.arrow\"", "plain file name"),
        ("\"metadata_file\": \"metadata.arrow\"", "\"metadata_file\": 1", "found 1 where a text is expected"),
        ("\"epoch_len\": 65,", "", "found no key \"epoch_len\""),
        ("}", "} x", "found text that is no JSON"),
        ("}", "", "found text that is no JSON, it ends too early (line "),
    ] {
        assert!(text.contains(from), "{from}");
        let at = if from == "}" { text.len() - 1 } else { text.find(from).unwrap() };
        let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        fs::write(&config, changed).unwrap();
        let error = load(&config).unwrap_err();
        assert!(matches!(&error, Error::InvalidCache { path, .. } if *path == config), "{to}: {error:?}");
        assert!(error.to_string().contains(told), "{to}: {error}");
        let advice = ["export again", "edit this number in dataset.json"];
        assert!(advice.iter().any(|advice| error.to_string().ends_with(advice)), "{to}: {error}");
    }
    let relative = text.replace(&format!("\"{}/one\"", base.path().display()), "\"one\"");
    assert_ne!(relative, text);
    fs::write(&config, relative).unwrap();
    assert!(message(load(&config)).contains("must be absolute"));
    let none = format!("{}[]{}", &text[..text.find('[').unwrap()], &text[text.find(']').unwrap() + 1..]);
    fs::write(&config, none).unwrap();
    assert!(message(load(&config)).contains("no cache_paths"));
}

#[test]
fn e02_whatever_operation_fails_nothing_is_left_and_the_next_export_succeeds() {
    let base = temp_dir();
    let dataset = open(&caches(base.path()), in_order());
    let out = new_dir(base.path(), "out");
    let mut kinds = Vec::new();
    for number in 0.. {
        let armed = arm(&out, &[(When::At(number), Fault::Fail(libc::ENOSPC))]);
        let result = dump(&dataset, &out);
        let Some((operation, _)) = armed.seen().get(number).cloned() else { break };
        drop(armed);
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::File { path, .. } if path.starts_with(&out)), "{operation:?}: {error:?}");
        assert!(error.to_string().contains("No space left on device"), "{operation:?}: {error}");
        assert_eq!(entries(&out), [""; 0], "{operation:?}");
        kinds.push(operation);
    }
    assert_eq!(entries(&out), ["dataset.json", "metadata.arrow"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == Operation::SyncDir).count(), 2, "{kinds:?}");
    assert_eq!(load(&out.join("dataset.json")).unwrap().row_count().unwrap(), 65);
}
