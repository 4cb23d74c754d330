//! Populations: what a reader of an exported table draws, wherever it maps the file and whichever rows it takes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Dataset, Metadata, PopulationOrder, Sample};
use dataset_rt::error::Error;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;

type Identity = (u64, u64);

fn config(shuffle: bool, seed: u64) -> ReaderConfig {
    ReaderConfig { shuffle, ..ReaderConfig::new(seed) }
}

/// Two caches of 40 and 25 samples.
fn caches(base: &Path) -> Vec<PathBuf> {
    [("one", 40), ("two", 25)].map(|(name, count)| CacheFiles::new(name, count, |_| 3).write(base)).to_vec()
}

fn open(paths: &[PathBuf], config: ReaderConfig) -> Dataset {
    Runtime::new(2).unwrap().open(paths, config, &mut PlainWaiter::default()).unwrap()
}

fn open_population(paths: &[PathBuf], config: ReaderConfig, file: &Path, rows: Range<u64>) -> Result<Dataset, Error> {
    Runtime::new(1).unwrap().open_population(paths, config, file, rows, &mut PlainWaiter::default())
}

fn export(dataset: &Dataset, file: &Path, order: PopulationOrder) {
    let all = 0..dataset.row_count().unwrap();
    export_parts(dataset, file, order, std::slice::from_ref(&all));
}

fn export_parts(dataset: &Dataset, file: &Path, order: PopulationOrder, parts: &[Range<u64>]) {
    let rows = dataset.export_population(file, order, parts, &mut PlainWaiter::default()).unwrap();
    assert_eq!(rows, dataset.row_count().unwrap());
}

/// A weight that differs from row to row.
fn number(row: usize) -> f64 {
    f64::from(u32::try_from(row + 1).unwrap())
}

/// Keeps these rows of the active table, in this order, with these weights.
fn keep(dataset: &Dataset, rows: &[u64], weight: impl Fn(usize) -> f64) {
    let mut waiter = PlainWaiter::default();
    let table = dataset.metadata(&mut waiter).unwrap();
    let whole = arrow_select::concat::concat_batches(&table.schema, &table.batches).unwrap();
    let kept = arrow_select::take::take_record_batch(&whole, &UInt64Array::from(rows.to_vec())).unwrap();
    let weights: ArrayRef = Arc::new(Float64Array::from((0..rows.len()).map(weight).collect::<Vec<_>>()));
    let mut columns = kept.columns().to_vec();
    *columns.last_mut().unwrap() = weights;
    let batch = RecordBatch::try_new(Arc::clone(&table.schema), columns).unwrap();
    dataset.update_metadata(Metadata { schema: batch.schema(), batches: vec![batch] }, &mut waiter).unwrap();
}

fn pass(dataset: &Dataset, len: u64) -> Vec<Identity> {
    dataset.set_epoch_len(len).unwrap();
    let identity = |sample: Sample| (sample.cache_id.0, sample.sample_id.0);
    dataset.samples::<Vec<u8>>().unwrap().into_iter().map(|sample| identity(sample.unwrap())).collect()
}

#[test]
fn f07_a_population_draws_like_the_dataset_that_exported_it() {
    let base = temp_dir();
    let paths = caches(base.path());
    let rows: Vec<u64> = (0..65).rev().chain([3, 3, 50]).collect();
    let weights: [fn(usize) -> f64; 2] = [|_| 2.5, |row| if row % 5 == 0 { 1e-3 } else { number(row) }];
    for (number, weight) in weights.into_iter().enumerate() {
        for shuffle in [false, true] {
            for fresh in [false, true] {
                let dataset = open(&paths, config(shuffle, 3));
                if !fresh {
                    keep(&dataset, &rows, weight);
                }
                let file = base.path().join(format!("{number}-{shuffle}-{fresh}"));
                let order = if shuffle { PopulationOrder::WeightedTable } else { PopulationOrder::Table };
                export(&dataset, &file, order);
                let rows = dataset.epoch_len().unwrap();
                let reader = open_population(&paths, config(shuffle, 3), &file, 0..rows).unwrap();
                assert_eq!(reader.epoch_len().unwrap(), rows);
                for _ in 0..2 {
                    assert_eq!(pass(&reader, 100), pass(&dataset, 100), "{number} {shuffle} {fresh}");
                }
            }
        }
    }
}

#[test]
fn f07_an_ordered_reader_of_a_part_goes_round_in_it() {
    let base = temp_dir();
    let paths = caches(base.path());
    let dataset = open(&paths, config(false, 0));
    let all = pass(&dataset, 65);
    let fresh = base.path().join("fresh");
    export(&dataset, &fresh, PopulationOrder::Table);
    let rows: Vec<u64> = (0..65).map(|row| (row * 7) % 65).collect();
    keep(&dataset, &rows, |_| 1.0);
    let listed = base.path().join("listed");
    export(&dataset, &listed, PopulationOrder::Table);
    let reordered: Vec<Identity> = rows.iter().map(|row| all[usize::try_from(*row).unwrap()]).collect();
    for (file, table) in [(fresh, all), (listed, reordered)] {
        let reader = open_population(&paths, config(false, 0), &file, 38..43).unwrap();
        let expected: Vec<Identity> = table[38..43].iter().chain(&table[38..40]).copied().collect();
        assert_eq!(pass(&reader, 7), expected);
        assert_eq!(pass(&reader, 1), [table[40]]);
    }
}

#[test]
fn f07_a_shuffled_reader_of_a_part_draws_like_a_dataset_of_its_rows() {
    let base = temp_dir();
    let paths = caches(base.path());
    let weights: [fn(usize) -> f64; 3] = [|_| 2.5, number, |row| if row < 52 { 0.5 } else { 3.0 }];
    for (table, weight) in weights.into_iter().enumerate() {
        for parts in [vec![], vec![0..10, 10..52, 5..52, 52..65]] {
            let dataset = open(&paths, config(true, 5));
            keep(&dataset, &(0..65).collect::<Vec<_>>(), weight);
            let file = base.path().join(format!("{table}-{}", parts.len()));
            export_parts(&dataset, &file, PopulationOrder::WeightedTable, &parts);
            for part in [0..10, 10..52, 5..52, 52..65] {
                let first = usize::try_from(part.start).unwrap();
                let alone = open(&paths, config(true, 5));
                keep(&alone, &part.clone().collect::<Vec<_>>(), |row| weight(first + row));
                let reader = open_population(&paths, config(true, 5), &file, part.clone()).unwrap();
                assert_eq!(pass(&reader, 500), pass(&alone, 500), "table {table}, {part:?} of {parts:?}");
            }
        }
    }
}

#[test]
fn f03_parts_of_a_shuffled_order_are_a_partition_by_weight() {
    let base = temp_dir();
    let paths = caches(base.path());
    let dataset = open(&paths, config(true, 5));
    keep(&dataset, &(0..65).collect::<Vec<_>>(), |row| if row == 7 { 40.0 } else { 1.0 });
    let file = base.path().join("population");
    export(&dataset, &file, PopulationOrder::WeightedShuffled(99));
    let again = base.path().join("again");
    export(&dataset, &again, PopulationOrder::WeightedShuffled(99));
    assert!(fs::read(&file).unwrap() == fs::read(&again).unwrap());

    let (mut union, mut heavy_parts) = (BTreeSet::new(), 0);
    for part in [0..13, 13..14, 14..40, 40..65] {
        let len = part.end - part.start;
        let drawn = pass(&open_population(&paths, config(true, 1), &file, part.clone()).unwrap(), 8000);
        let own: BTreeSet<Identity> = drawn.iter().copied().collect();
        assert_eq!(own.len() as u64, len, "{part:?}");
        let heavy = open(&paths, config(false, 0)).caches().unwrap().cache(0).unwrap().id().0;
        let count = drawn.iter().filter(|identity| **identity == (heavy, 7)).count();
        if own.contains(&(heavy, 7)) {
            heavy_parts += 1;
            let expected = 8000 * 40 / (40 + usize::try_from(len).unwrap() - 1);
            assert!(count.abs_diff(expected) < 250, "{part:?}: {count} of {expected}");
        }
        union.extend(own);
    }
    assert_eq!((union.len(), heavy_parts), (65, 1));
    let in_table_order = pass(&open_population(&paths, config(false, 1), &file, 0..65).unwrap(), 65);
    assert_ne!(in_table_order, pass(&open(&paths, config(false, 0)), 65));
}

#[test]
fn f07_foreign_and_damaged_files_are_refused_or_fail_sample_by_sample() {
    let base = temp_dir();
    let paths = caches(base.path());
    let dataset = open(&paths, config(true, 5));
    keep(&dataset, &(0..60).collect::<Vec<_>>(), number);
    let file = base.path().join("population");
    export(&dataset, &file, PopulationOrder::WeightedTable);
    let good = fs::read(&file).unwrap();
    let impossible = Range { start: 59_u64, end: 61 };
    let refused = dataset
        .export_population(
            &base.path().join("other"),
            PopulationOrder::Table,
            &[impossible],
            &mut PlainWaiter::default(),
        )
        .unwrap_err();
    assert!(refused.to_string().contains("expected rows among the 60"), "{refused}");

    let message = |paths: &[PathBuf], rows: Range<u64>| {
        open_population(paths, config(true, 5), &file, rows).map(|_| ()).unwrap_err().to_string()
    };
    assert!(message(&paths, 0..61).contains("expected rows among the 60"));
    assert!(message(&paths, Range { start: 4, end: 4 }).contains("expected rows among the 60"));
    assert!(message(&paths[..1], 0..60).contains("one over 65"));
    for (bytes, reason) in [
        (&good[..good.len() - 1], "another length"),
        (&good[..100], "another kind of file"),
        (b"".as_slice(), "another kind of file"),
    ] {
        fs::write(&file, bytes).unwrap();
        assert!(message(&paths, 0..60).contains(reason), "{reason}");
    }
    let exists =
        dataset.export_population(&file, PopulationOrder::Table, &[], &mut PlainWaiter::default()).unwrap_err();
    assert!(matches!(exists, Error::File { .. }), "{exists}");

    // Any byte may be wrong: samples may be wrong or fail then, but nothing else may happen.
    let mut opened = 0;
    for place in (0..good.len()).step_by(3) {
        let mut bytes = good.clone();
        bytes[place] ^= 0x95;
        fs::write(&file, &bytes).unwrap();
        if let Ok(reader) = open_population(&paths, config(true, 5), &file, 7..60) {
            opened += 1;
            assert_eq!(reader.samples::<Vec<u8>>().unwrap().into_iter().count(), 53);
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn a_reader_of_a_population_has_no_table() {
    let base = temp_dir();
    let paths = caches(base.path());
    let file = base.path().join("population");
    export(&open(&paths, config(true, 5)), &file, PopulationOrder::WeightedTable);
    let reader = open_population(&paths, config(true, 5), &file, 0..65).unwrap();
    let refused = reader.metadata(&mut PlainWaiter::default()).unwrap_err();
    assert!(matches!(refused, Error::Unusable(_)), "{refused}");
}

#[test]
fn f04_the_digest_of_a_table_knows_identities_order_and_weights_only() {
    let base = temp_dir();
    let paths = caches(base.path());
    let elsewhere = temp_dir();
    let copies = caches(elsewhere.path());
    let digest = |dataset: &Dataset| dataset.table_digest(&mut PlainWaiter::default()).unwrap();
    let table = |rows: &[u64], weight: fn(usize) -> f64| {
        let dataset = open(&paths, config(true, 5));
        keep(&dataset, rows, weight);
        digest(&dataset)
    };
    let all: Vec<u64> = (0..65).collect();
    let fresh = digest(&open(&paths, config(true, 5)));
    assert_eq!(fresh, digest(&open(&copies, config(false, 6))));
    assert_eq!(fresh, table(&all, |_| 1.0));
    let others = [
        table(&all, |row| if row == 64 { 1.5 } else { 1.0 }),
        table(&all[..64], |_| 1.0),
        table(&all.iter().rev().copied().collect::<Vec<_>>(), |_| 1.0),
        table(&[&all[..], &[64]].concat(), |_| 1.0),
        digest(&open(&paths[..1], config(true, 5))),
    ];
    let distinct: BTreeSet<&String> = others.iter().chain([&fresh]).collect();
    assert_eq!(distinct.len(), 6);

    // Beyond one block of rows.
    let many: Vec<u64> = (0..70_000).map(|row| row % 65).collect();
    assert_ne!(table(&many, |_| 1.0), table(&many, |row| if row == 69_999 { 2.0 } else { 1.0 }));
}
