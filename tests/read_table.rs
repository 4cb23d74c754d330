//! The active table: what is handed out, what may be given back, and what then is drawn.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, StringViewArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Dataset, Metadata};
use dataset_rt::error::{Error, Result};
use dataset_rt::ids::CacheId;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use dataset_rt::sampling::{DrawStream, one_by_one};
use dataset_rt::value::MetadataValue;
use reading::{in_order, open, pass, pass_ids};

/// Two caches, `a` with 6 samples and `b` with 4.
fn two_caches(config: ReaderConfig) -> (tempfile::TempDir, Dataset) {
    let base = temp_dir();
    let paths = [CacheFiles::new("a", 6, |_| 5).write(base.path()), CacheFiles::new("b", 4, |_| 5).write(base.path())];
    let dataset = open(&paths, config);
    (base, dataset)
}

fn id(name: &str) -> u64 {
    CacheId::of_source_name(name).0
}

fn metadata(dataset: &Dataset) -> Arc<Metadata> {
    dataset.metadata(&mut PlainWaiter::default()).unwrap()
}

fn update(dataset: &Dataset, table: Metadata) -> Result<()> {
    dataset.update_metadata(table, &mut PlainWaiter::default())
}

/// A table of one batch; columns may be null.
fn table(columns: Vec<(&str, ArrayRef)>) -> Metadata {
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Metadata { batches: vec![RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()], schema }
}

/// The columns of a valid table with these rows, to be changed by a test.
fn columns(rows: &[(u64, u64)], weights: &[f64]) -> Vec<(&'static str, ArrayRef)> {
    let count = rows.len();
    vec![
        ("cache_id", Arc::new(rows.iter().map(|(cache_id, _)| *cache_id).collect::<UInt64Array>())),
        ("sample_id", Arc::new(rows.iter().map(|(_, sample_id)| *sample_id).collect::<UInt64Array>())),
        ("flag", Arc::new(BooleanArray::from(vec![true; count]))),
        ("number", Arc::new(Int64Array::from(vec![1; count]))),
        ("real", Arc::new(Float64Array::from(vec![0.5; count]))),
        ("text", Arc::new(StringArray::from(vec!["x"; count]))),
        ("weight", Arc::new(Float64Array::from(weights.to_vec()))),
    ]
}

fn replace(columns: &mut [(&'static str, ArrayRef)], name: &str, column: ArrayRef) {
    columns.iter_mut().find(|(other, _)| *other == name).unwrap().1 = column;
}

fn names(table: &Metadata) -> Vec<&str> {
    table.schema.fields().iter().map(|field| field.name().as_str()).collect()
}

#[test]
fn d09_a_fresh_table_has_all_samples_with_weight_one() {
    let (_base, dataset) = two_caches(in_order());
    let table = metadata(&dataset);
    assert_eq!(names(&table), ["cache_id", "sample_id", "flag", "number", "real", "text", "weight"]);
    let types: Vec<_> =
        table.schema.fields().iter().map(|field| (field.data_type().clone(), field.is_nullable())).collect();
    let expected = [
        DataType::UInt64,
        DataType::UInt64,
        DataType::Boolean,
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Float64,
    ];
    assert_eq!(types, expected.map(|data_type| (data_type, false)));
    let mut ids = Vec::new();
    for batch in &table.batches {
        let column = |number: usize| batch.column(number).as_primitive::<UInt64Type>().values().to_vec();
        ids.extend(column(0).into_iter().zip(column(1)));
        assert!(
            batch
                .column(6)
                .as_primitive::<Float64Type>()
                .values()
                .iter()
                .all(|weight| weight.to_bits() == 1.0_f64.to_bits())
        );
    }
    assert_eq!(ids, pass_ids(&dataset));
    let text = table.batches[1].column(5).as_string::<i32>();
    assert_eq!(text.value(3), "b 3 ü");
}

#[test]
fn d09_asking_again_copies_nothing() {
    let (_base, dataset) = two_caches(in_order());
    assert!(Arc::ptr_eq(&metadata(&dataset), &metadata(&dataset)));
    let buffer = |table: &Metadata, column: usize| table.batches[0].column(column).to_data().buffers()[0].as_ptr();
    let given = table(columns(&[(id("a"), 0), (id("a"), 1)], &[1.0, 2.0]));
    update(&dataset, given.clone()).unwrap();
    let handed_out = metadata(&dataset);
    for column in 0..7 {
        // Ids and weights are the dataset's own from then on: others may write to the memory that they came in.
        let is_own = [0, 1, 6].contains(&column);
        assert_eq!(buffer(&handed_out, column) != buffer(&given, column), is_own, "column {column}");
    }
    update(&dataset, Metadata::clone(&handed_out)).unwrap();
    for column in 0..6 {
        assert_eq!(buffer(&metadata(&dataset), column), buffer(&handed_out, column), "column {column} was copied");
    }
}

#[test]
fn d10_rows_may_be_left_out_repeated_and_reordered() {
    let (_base, dataset) = two_caches(in_order());
    dataset.set_epoch_len(3).unwrap();
    pass(&dataset);
    let rows = [(id("b"), 3), (id("a"), 5), (id("b"), 3), (id("a"), 0)];
    update(&dataset, table(columns(&rows, &[1.0; 4]))).unwrap();
    assert_eq!(dataset.epoch_len().unwrap(), 4);
    assert_eq!(dataset.table_version().unwrap(), 1);
    assert_eq!(pass_ids(&dataset), rows);
    let sample = &pass(&dataset)[1];
    assert_eq!(sample.metadata[3].1, MetadataValue::String("a 5 ü".to_owned()), "edits never reach samples");
}

#[test]
fn d10_weights_select_the_draws_of_the_weighted_stream() {
    let (_base, dataset) = two_caches(ReaderConfig::new(5));
    pass(&dataset);
    let rows = [(id("b"), 3), (id("a"), 5), (id("b"), 1), (id("a"), 0)];
    let weights = [0.25, 3.0, 1e-3, 7.0];
    update(&dataset, table(columns(&rows, &weights))).unwrap();
    dataset.set_epoch_len(500).unwrap();
    let stream = DrawStream::weighted(&weights, 5, &mut one_by_one).unwrap();
    let drawn = |start: u128| (start..start + 500).map(|at| rows[usize::try_from(stream.draw(at)).unwrap()]);
    assert_eq!(pass_ids(&dataset), drawn(0).collect::<Vec<_>>(), "the stream starts afresh");
    assert_eq!(pass_ids(&dataset), drawn(500).collect::<Vec<_>>());
}

#[test]
fn d06_equal_weights_give_the_same_draws_however_the_table_came_to_be() {
    let (_base, fresh) = two_caches(ReaderConfig::new(5));
    let expected = pass_ids(&fresh);
    let all: Vec<(u64, u64)> = (0..6).map(|row| (id("a"), row)).chain((0..4).map(|row| (id("b"), row))).collect();
    for weight in [1.0, 0.1, 1e300] {
        update(&fresh, table(columns(&all, &[weight; 10]))).unwrap();
        assert_eq!(pass_ids(&fresh), expected, "weight {weight}");
    }
    update(&fresh, metadata(&fresh).as_ref().clone()).unwrap();
    assert_eq!(pass_ids(&fresh), expected);
}

#[test]
fn d04_running_iterators_keep_the_table_they_began_with() {
    let (_base, dataset) = two_caches(in_order());
    let mut running = dataset.samples::<Vec<u8>>().unwrap().into_iter();
    let first = running.next().unwrap().unwrap();
    update(&dataset, table(columns(&[(id("b"), 3)], &[1.0]))).unwrap();
    assert_eq!((first.cache_id.0, first.sample_id.0), (id("a"), 0));
    assert_eq!(running.map(|sample| sample.unwrap().sample_id.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 0, 1, 2, 3]);
    assert_eq!(pass_ids(&dataset), [(id("b"), 3)]);
}

#[test]
fn d10_ids_and_weights_of_any_numeric_type_are_taken() {
    let base = temp_dir();
    let mut old = CacheFiles::new("old", 6, |_| 5);
    old.version_3 = false;
    let dataset = open(&[old.write(base.path())], in_order());
    let rows = [(0, 4), (0, 2)];
    let ids: [[ArrayRef; 2]; 4] = [
        [Arc::new(Int8Array::from(vec![0, 0])), Arc::new(Int8Array::from(vec![4, 2]))],
        [Arc::new(UInt8Array::from(vec![0, 0])), Arc::new(Int64Array::from(vec![4, 2]))],
        [Arc::new(UInt32Array::from(vec![0, 0])), Arc::new(UInt32Array::from(vec![4, 2]))],
        [Arc::new(Int64Array::from(vec![0, 0])), Arc::new(UInt64Array::from(vec![4, 2]))],
    ];
    let decimals = Decimal128Array::from(vec![150, 25]).with_precision_and_scale(10, 2).unwrap();
    let weights: [ArrayRef; 4] = [
        Arc::new(Float32Array::from(vec![1.5, 0.25])),
        Arc::new(decimals),
        Arc::new(Float64Array::from(vec![1.5, 0.25])),
        Arc::new(Float64Array::from(vec![1.5, 0.25])),
    ];
    for ([cache_ids, sample_ids], weight) in ids.into_iter().zip(weights) {
        let mut columns = columns(&rows, &[1.0; 2]);
        replace(&mut columns, "cache_id", cache_ids);
        replace(&mut columns, "sample_id", sample_ids);
        replace(&mut columns, "weight", weight);
        update(&dataset, table(columns)).unwrap();
        assert_eq!(pass_ids(&dataset), rows);
        let handed_out = metadata(&dataset);
        let batch = &handed_out.batches[0];
        assert_eq!(batch.column(0).as_primitive::<UInt64Type>().values(), &[0, 0]);
        assert_eq!(batch.column(1).as_primitive::<UInt64Type>().values(), &[4, 2]);
        assert_eq!(batch.column(6).as_primitive::<Float64Type>().values(), &[1.5, 0.25]);
    }
}

#[test]
fn d10_text_is_one_type_however_it_is_kept() {
    let (_base, dataset) = two_caches(in_order());
    let texts: [ArrayRef; 3] = [
        Arc::new(StringArray::from(vec!["x"])),
        Arc::new(LargeStringArray::from(vec!["x"])),
        Arc::new(StringViewArray::from(vec!["x"])),
    ];
    for text in texts {
        let mut columns = columns(&[(id("a"), 1)], &[1.0]);
        replace(&mut columns, "text", Arc::clone(&text));
        update(&dataset, table(columns)).unwrap();
        assert_eq!(metadata(&dataset).batches[0].column(5), &text);
    }
}

#[test]
fn d10_further_columns_survive_and_columns_may_come_in_any_order() {
    let (_base, dataset) = two_caches(in_order());
    let mut extra = StringDictionaryBuilder::<Int32Type>::new();
    extra.append_value("hard");
    extra.append_null();
    let extra: ArrayRef = Arc::new(extra.finish());
    let mut columns = columns(&[(id("a"), 1), (id("b"), 0)], &[1.0, 2.0]);
    columns.insert(0, ("loss", Arc::clone(&extra)));
    columns.push(("note", Arc::new(StringViewArray::from(vec![None, Some("y")]))));
    columns.reverse();
    update(&dataset, table(columns)).unwrap();
    let handed_out = metadata(&dataset);
    assert_eq!(
        names(&handed_out),
        ["cache_id", "sample_id", "flag", "number", "real", "text", "weight", "note", "loss"]
    );
    assert_eq!(handed_out.batches[0].column(8), &extra);
    assert_eq!(pass_ids(&dataset), [(id("a"), 1), (id("b"), 0)]);
    // And once more.
    update(&dataset, handed_out.as_ref().clone()).unwrap();
    assert_eq!(metadata(&dataset).batches[0].column(8), &extra);
}

#[test]
fn d10_many_batches_are_one_table() {
    let (_base, dataset) = two_caches(ReaderConfig::new(3));
    let rows: Vec<(u64, u64)> = (0..150_000_u64).map(|row| (id("a"), row % 6)).collect();
    let weights: Vec<f64> = (0..150_000_u32).map(|row| f64::from(row % 11) + 0.5).collect();
    let whole = table(columns(&rows, &weights));
    let batch = &whole.batches[0];
    let cuts = [0, 0, 1, 70_000, 70_000, 150_000];
    let parts = cuts.windows(2).map(|cut| batch.slice(cut[0], cut[1] - cut[0])).collect();
    update(&dataset, Metadata { schema: Arc::clone(&whole.schema), batches: parts }).unwrap();
    assert_eq!(dataset.epoch_len().unwrap(), 150_000);
    dataset.set_epoch_len(2_000).unwrap();
    let in_parts = (pass_ids(&dataset), metadata(&dataset));
    update(&dataset, whole.clone()).unwrap();
    dataset.set_epoch_len(2_000).unwrap();
    assert_eq!(in_parts.0, pass_ids(&dataset));
    assert_eq!(in_parts.1.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 150_000);
    assert_eq!(in_parts.1.batches[1].column(6), &batch.column(6).slice(1, 69_999));
    // The row number in a message counts through all batches.
    let mut wrong = weights;
    wrong[140_001] = -2.0;
    let whole = table(columns(&rows, &wrong));
    let parts = cuts.windows(2).map(|cut| whole.batches[0].slice(cut[0], cut[1] - cut[0])).collect();
    let text =
        update(&dataset, Metadata { schema: Arc::clone(&whole.schema), batches: parts }).unwrap_err().to_string();
    assert!(text.contains("row 140001") && text.contains("-2"), "{text}");
}

/// What must be refused: a change of a valid table, and what the message must say.
type Refusal = (fn(&mut Vec<(&'static str, ArrayRef)>), &'static [&'static str]);

#[test]
fn d10_rules_are_checked_before_anything_changes() {
    let refusals: [Refusal; 20] = [
        (
            |columns| drop(columns.remove(0)),
            &["\"cache_id\"", "missing", "sample_id, flag, number, real, text, weight"],
        ),
        (|columns| drop(columns.remove(5)), &["\"text\"", "missing"]),
        (|columns| drop(columns.remove(6)), &["\"weight\"", "missing"]),
        (|columns| columns.push(("flag", Arc::clone(&columns[2].1))), &["\"flag\"", "twice"]),
        (
            |columns| replace(columns, "cache_id", Arc::new(Float64Array::from(vec![0.0; 3]))),
            &["\"cache_id\"", "integer", "float64"],
        ),
        (
            |columns| replace(columns, "number", Arc::new(Float64Array::from(vec![0.0; 3]))),
            &["\"number\"", "int64", "float64"],
        ),
        (|columns| replace(columns, "flag", Arc::new(Int64Array::from(vec![0; 3]))), &["\"flag\"", "bool", "int64"]),
        (
            |columns| replace(columns, "weight", Arc::new(StringArray::from(vec!["1"; 3]))),
            &["\"weight\"", "numeric", "string"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(BooleanArray::from(vec![true; 3]))),
            &["\"weight\"", "numeric", "bool"],
        ),
        (
            |columns| replace(columns, "sample_id", Arc::new(UInt64Array::from(vec![Some(0), None, Some(1)]))),
            &["\"sample_id\", row 1", "null"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![Some(0.5), Some(1.0), None]))),
            &["\"weight\", row 2", "null"],
        ),
        (
            |columns| replace(columns, "sample_id", Arc::new(Int64Array::from(vec![0, 1, -1]))),
            &["\"sample_id\", row 2", "-1"],
        ),
        (
            |columns| replace(columns, "sample_id", Arc::new(UInt64Array::from(vec![0, 6, 1]))),
            &["\"sample_id\", row 1", "6", "0 to 5"],
        ),
        (
            |columns| replace(columns, "cache_id", Arc::new(UInt64Array::from(vec![id("a"), id("b"), 77]))),
            &["\"cache_id\", row 2", "77"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![1.0, 0.0, 1.0]))),
            &["\"weight\", row 1", "0", "filter(pl.col(\"weight\") > 0)"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![1.0, 1.0, -0.5]))),
            &["\"weight\", row 2", "-0.5"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 1.0]))),
            &["\"weight\", row 0", "NaN"],
        ),
        (
            |columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![1.0, f64::INFINITY, 1.0]))),
            &["\"weight\", row 1", "inf"],
        ),
        (|columns| replace(columns, "weight", Arc::new(Float64Array::from(vec![f64::MAX; 3]))), &["\"weight\"", "sum"]),
        (|columns| columns.iter_mut().for_each(|(_, column)| *column = column.slice(0, 0)), &["at least one row"]),
    ];
    for shuffle in [false, true] {
        let (_base, dataset) = two_caches(ReaderConfig { shuffle, ..in_order() });
        let before = metadata(&dataset);
        for (change, says) in &refusals {
            let mut columns = columns(&[(id("a"), 0), (id("a"), 3), (id("a"), 1)], &[1.0; 3]);
            change(&mut columns);
            let error = update(&dataset, table(columns)).unwrap_err();
            assert!(matches!(error, Error::InvalidValue(_)), "{error:?}");
            let text = error.to_string();
            for part in *says {
                assert!(text.contains(part), "{text:?} does not say {part:?}");
            }
        }
        assert!(Arc::ptr_eq(&before, &metadata(&dataset)));
        assert_eq!((dataset.epoch_len().unwrap(), dataset.table_version().unwrap()), (10, 0));
    }
}

#[test]
fn d10_an_interrupted_update_changes_nothing() {
    let base = temp_dir();
    let path = CacheFiles::new("a", 6, |_| 5).write(base.path());
    let mut waiter = PlainWaiter::default();
    let runtime = Runtime::new(1).unwrap();
    let dataset = runtime.open(&[path], in_order(), &mut waiter).unwrap();
    let before = metadata(&dataset);
    waiter.token.cancel();
    // Keeps the only thread busy until the waiter has looked.
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.pool().unwrap().submit(move || held.recv().unwrap_or_default()).unwrap();
    let outcome = dataset.update_metadata(table(columns(&[(id("a"), 1)], &[1.0])), &mut waiter);
    drop(release);
    assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    assert!(Arc::ptr_eq(&before, &metadata(&dataset)));
    assert_eq!((dataset.epoch_len().unwrap(), dataset.table_version().unwrap()), (6, 0));
}
