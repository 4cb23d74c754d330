//! Random sequences of calls against a model of a dataset that fits on a page.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};
use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::{Metadata, Samples};
use dataset_rt::ids::CacheId;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::sampling::{DrawStream, one_by_one};
use proptest::prelude::*;
use reading::{get_item, open};

/// Rows of the three caches.
const COUNTS: [u64; 3] = [7, 1, 30];

fn caches(base: &Path) -> Vec<PathBuf> {
    let paths = COUNTS.iter().zip(["a", "b", "c"]).map(|(count, name)| {
        // Some chunks go to the pool, some do not.
        CacheFiles::new(name, *count, |row| if row % 4 == 0 { 70_000 } else { 3 }).write(base)
    });
    paths.collect()
}

/// What the library promises, in its simplest form.
struct Model {
    seed: u64,
    shuffle: bool,
    rows: Vec<(u64, u64)>,
    weights: Vec<f64>,
    epoch_len: u64,
    position: u128,
}

impl Model {
    fn new(seed: u64, shuffle: bool) -> Self {
        let mut model = Self { seed, shuffle, rows: Vec::new(), weights: Vec::new(), epoch_len: 0, position: 0 };
        model.update(all_rows(), vec![1.0; all_rows().len()]);
        model
    }

    fn update(&mut self, rows: Vec<(u64, u64)>, weights: Vec<f64>) {
        (self.epoch_len, self.position) = (rows.len() as u64, 0);
        (self.rows, self.weights) = (rows, weights);
    }

    /// The samples of the next window.
    fn iter(&mut self) -> std::vec::IntoIter<(u64, u64)> {
        let window = self.position..self.position + u128::from(self.epoch_len);
        self.position = window.end;
        let draws = if self.shuffle {
            DrawStream::weighted(&self.weights, self.seed, &mut one_by_one).unwrap()
        } else {
            DrawStream::cyclic(self.rows.len() as u64).unwrap()
        };
        window.map(|at| self.rows[usize::try_from(draws.draw(at)).unwrap()]).collect::<Vec<_>>().into_iter()
    }
}

fn all_rows() -> Vec<(u64, u64)> {
    let caches = COUNTS.iter().zip(["a", "b", "c"]);
    caches.flat_map(|(count, name)| (0..*count).map(|row| (CacheId::of_source_name(name).0, row))).collect()
}

fn table(rows: &[(u64, u64)], weights: &[f64]) -> Metadata {
    let count = rows.len();
    let columns: [(&str, ArrayRef); 7] = [
        ("weight", Arc::new(Float64Array::from(weights.to_vec()))),
        ("sample_id", Arc::new(rows.iter().map(|(_, sample_id)| *sample_id).collect::<UInt64Array>())),
        ("cache_id", Arc::new(rows.iter().map(|(cache_id, _)| *cache_id).collect::<UInt64Array>())),
        ("flag", Arc::new(BooleanArray::from(vec![true; count]))),
        ("number", Arc::new(Int64Array::from(vec![1; count]))),
        ("real", Arc::new(Float64Array::from(vec![0.5; count]))),
        ("text", Arc::new(StringArray::from(vec!["x"; count]))),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Metadata { batches: vec![RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()], schema }
}

#[derive(Debug, Clone)]
enum Step {
    SetEpochLen(u64),
    Update(Vec<(prop::sample::Index, u8)>),
    Iter,
    /// Takes some samples from one of the iterators there are.
    Next(prop::sample::Index, usize),
    Drop(prop::sample::Index),
    GetItem(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        (1..100_u64).prop_map(Step::SetEpochLen),
        prop::collection::vec((index(), 1..=3_u8), 1..60).prop_map(Step::Update),
        Just(Step::Iter),
        Just(Step::Iter),
        (index(), 1..80_usize).prop_map(|(iterator, count)| Step::Next(iterator, count)),
        (index(), 1..80_usize).prop_map(|(iterator, count)| Step::Next(iterator, count)),
        index().prop_map(Step::Drop),
        index().prop_map(Step::GetItem),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn d04_d05_any_sequence_of_calls_does_what_the_model_does(
        steps in steps(),
        seed in any::<u64>(),
        shuffle in any::<bool>(),
        prefetch_size in prop_oneof![Just(1_u64), Just(5), Just(64), Just(1 << 40)],
    ) {
        let base = temp_dir();
        let dataset = open(&caches(base.path()), ReaderConfig { seed, shuffle, prefetch_size, validate_cache: false });
        let mut model = Model::new(seed, shuffle);
        let mut iterators: Vec<(Samples, std::vec::IntoIter<(u64, u64)>)> = Vec::new();
        for step in steps {
            match step {
                Step::SetEpochLen(len) => {
                    dataset.set_epoch_len(len).unwrap();
                    model.epoch_len = len;
                }
                Step::Update(choice) => {
                    let rows: Vec<_> = choice.iter().map(|(row, _)| *row.get(&all_rows())).collect();
                    let weights: Vec<f64> = choice.iter().map(|(_, weight)| f64::from(*weight) / 3.0).collect();
                    dataset.update_metadata(table(&rows, &weights), &mut PlainWaiter::default()).unwrap();
                    model.update(rows, weights);
                }
                Step::Iter => iterators.push((dataset.samples().unwrap().into_iter(), model.iter())),
                Step::Next(which, count) if !iterators.is_empty() => {
                    let (real, expected) = which.get_mut(&mut iterators);
                    for _ in 0..count {
                        let sample = real.next().map(Result::unwrap);
                        let ids = sample.as_ref().map(|sample| (sample.cache_id.0, sample.sample_id.0));
                        prop_assert_eq!(ids, expected.next());
                        if let Some((_, row)) = ids {
                            prop_assert_eq!(sample.unwrap().data.len(), if row % 4 == 0 { 70_000 } else { 3 });
                        }
                    }
                }
                Step::Drop(which) if !iterators.is_empty() => drop(iterators.swap_remove(which.index(iterators.len()))),
                Step::GetItem(which) => {
                    let (cache_id, sample_id) = *which.get(&all_rows());
                    let sample = get_item(&dataset, cache_id, sample_id).unwrap();
                    prop_assert_eq!((sample.cache_id.0, sample.sample_id.0), (cache_id, sample_id));
                }
                Step::Next(..) | Step::Drop(_) => {}
            }
            prop_assert_eq!(dataset.epoch_len().unwrap(), model.epoch_len);
        }
    }
}
