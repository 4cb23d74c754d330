//! Finds the columns that a table must have, and turns ids and weights into the one type they are kept in.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_cast::CastOptions;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, FieldRef, SchemaRef};

use super::{Block, Origin, Work};
use crate::cancel::Waiter;
use crate::dataset::metadata::{CACHE_ID, SAMPLE_ID, WEIGHT, stored_type};
use crate::dataset::type_name::type_name;
use crate::error::{Error, Result};
use crate::format::schema::Schema;
use crate::memory::filled;
use crate::pool::run_all;
use crate::prefetch::advise_huge_pages;

/// Where the columns of a given table are.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) cache_id: usize,
    pub(super) sample_id: usize,
    pub(super) weight: usize,
    /// In schema order.
    stored: Vec<usize>,
    /// All others, as they were given.
    extra: Vec<usize>,
}

/// A column of numbers.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) place: usize,
}

impl Places {
    /// Checks names and types.
    pub(super) fn find(given: &SchemaRef, stored: &Schema, origin: &Origin<'_>) -> Result<Self> {
        let mut places = HashMap::with_capacity(given.fields().len());
        for (place, field) in given.fields().iter().enumerate() {
            if places.insert(field.name().as_str(), place).is_some() {
                return Err(origin.broken(&format!("column {:?} occurs twice", field.name()), "drop or rename one"));
            }
        }
        let mut used = Vec::with_capacity(stored.len() + 3);
        let mut take = |name: &str, expected: &str, fits: &dyn Fn(&DataType) -> bool, refuse: Refuse<'_>| {
            let place = *places.get(name).ok_or_else(|| missing(name, stored, refuse))?;
            let found = given.field(place).data_type();
            if !fits(found) {
                let finding = format!("column {name:?}: expected {expected}, found {}", type_name(found));
                return Err(refuse(&finding, "cast the column"));
            }
            used.push(place);
            Ok(place)
        };
        let broken = |finding: &str, advice: &str| origin.broken(finding, advice);
        let unfit = |finding: &str, advice: &str| origin.unfit(finding, advice);
        let cache_id = take(CACHE_ID, "an integer type", &DataType::is_integer, &broken)?;
        let sample_id = take(SAMPLE_ID, "an integer type", &DataType::is_integer, &broken)?;
        let mut stored_places = Vec::with_capacity(stored.len());
        for field in stored.fields() {
            let expected = stored_type(field);
            let described = format!("the type it is stored with ({})", type_name(&expected));
            stored_places.push(take(&field.name, &described, &|found| is_same_type(&expected, found), &unfit)?);
        }
        let weight = take(WEIGHT, "a numeric type", &is_number, &broken)?;
        let extra: Vec<usize> = (0..given.fields().len()).filter(|place| !used.contains(place)).collect();
        for field in extra.iter().filter_map(|place| given.fields().get(*place)) {
            if let Some(foreign) = foreign_type(field.data_type()) {
                let foreign = type_name(foreign);
                let finding =
                    format!("column {:?} has a type that no Polars column can have ({foreign})", field.name());
                return Err(origin.broken(&finding, "drop or cast it before the update"));
            }
        }
        Ok(Self { cache_id, sample_id, weight, stored: stored_places, extra })
    }

    /// The fields in the order in which tables are handed out; `numbers` are those of cache id, sample id and weight.
    pub(super) fn arrange(&self, given: &SchemaRef, numbers: [FieldRef; 3]) -> Vec<FieldRef> {
        self.in_order(|place| given.fields().get(place).cloned(), numbers)
    }

    /// The columns of a batch in the same order.
    pub(super) fn arrange_columns(&self, batch: &RecordBatch, numbers: [ArrayRef; 3]) -> Vec<ArrayRef> {
        self.in_order(|place| batch.columns().get(place).cloned(), numbers)
    }

    fn in_order<T>(&self, at: impl Fn(usize) -> Option<T>, [cache_id, sample_id, weight]: [T; 3]) -> Vec<T> {
        let mut all = vec![cache_id, sample_id];
        all.extend(self.stored.iter().filter_map(|place| at(*place)));
        all.push(weight);
        all.extend(self.extra.iter().filter_map(|place| at(*place)));
        all
    }
}

/// Makes an error of what was found and what to do about it.
type Refuse<'a> = &'a dyn Fn(&str, &str) -> Error;

fn missing(name: &str, stored: &Schema, refuse: Refuse<'_>) -> Error {
    let names: Vec<&str> = [CACHE_ID, SAMPLE_ID]
        .into_iter()
        .chain(stored.fields().iter().map(|field| field.name.as_str()))
        .chain([WEIGHT])
        .collect();
    refuse(
        &format!("column {name:?} is missing"),
        &format!("expected {}, as get_metadata() returns them", names.join(", ")),
    )
}

/// All ways to store text are one type.
fn is_same_type(stored: &DataType, found: &DataType) -> bool {
    match stored {
        DataType::Utf8 => matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        other => other == found,
    }
}

/// The type, or one inside it, that Polars refuses or misreads when it is handed out again.
fn foreign_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Union(..)
        | DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Interval(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal256(..)
        | DataType::FixedSizeList(_, 0) => Some(data_type),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => foreign_type(item.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| foreign_type(field.data_type())),
        DataType::Dictionary(_, values) => foreign_type(values),
        _ => None,
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || data_type.is_decimal()
}

/// A column of numbers as one type, without nulls.
#[derive(Debug)]
pub(super) struct Numbers<T: ArrowPrimitiveType> {
    /// One array for each batch.
    pub(super) parts: Vec<PrimitiveArray<T>>,
    /// All of them in one piece, if they are.
    pub(super) whole: Option<ScalarBuffer<T::Native>>,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn of_parts(parts: Vec<PrimitiveArray<T>>) -> Self {
        let whole = if let [only] = parts.as_slice() { Some(only.values().clone()) } else { None };
        Self { parts, whole }
    }
}

impl Work<'_> {
    /// A column of numbers as the type `T`. Shares memory only with a file: what a user gives may be the memory of an array
    /// that is changed later, and was perhaps changed since it was last given.
    pub(super) fn numbers<T: ArrowPrimitiveType>(
        &self,
        column: &Column,
        waiter: &mut dyn Waiter,
    ) -> Result<Numbers<T>> {
        let arrays: Vec<&ArrayRef> =
            self.batches.iter().filter_map(|batch| batch.columns().get(column.place)).collect();
        let plain: Option<Vec<&PrimitiveArray<T>>> = arrays
            .iter()
            .map(|array| array.as_primitive_opt::<T>().filter(|numbers| numbers.null_count() == 0))
            .collect();
        if let (Some(plain), Origin::Export(_)) = (&plain, self.origin) {
            let parts = plain.iter().map(|numbers| PrimitiveArray::new(numbers.values().clone(), None));
            return Ok(Numbers::of_parts(parts.collect()));
        }
        let rows = self.blocks.iter().map(|block| block.rows.len()).sum();
        let mut whole = filled(T::Native::default(), rows, "a column of the table")?;
        advise_huge_pages(&mut whole);
        fill_blocks(self, &mut whole, waiter, &|block, part| {
            let Some(array) = arrays.get(block.batch) else { return Ok(()) };
            let shared = plain.as_ref().and_then(|plain| plain.get(block.batch)?.values().get(block.rows.clone()));
            if let Some(numbers) = shared {
                part.copy_from_slice(numbers);
            } else {
                let given = array.slice(block.rows.start, block.rows.len());
                part.copy_from_slice(convert::<T>(&given, column, block, self.origin)?.values());
            }
            Ok(())
        })?;
        let whole = ScalarBuffer::from(whole);
        let mut first = 0;
        let parts = self.batches.iter().map(|batch| {
            let numbers = whole.slice(first, batch.num_rows());
            first += batch.num_rows();
            PrimitiveArray::new(numbers, None)
        });
        Ok(Numbers { parts: parts.collect(), whole: Some(whole.clone()) })
    }
}

/// Has the pool fill `whole`, which has a place for each row of the table: `fill` does so for a block.
pub(super) fn fill_blocks<T: Send>(
    work: &Work<'_>,
    whole: &mut [T],
    waiter: &mut dyn Waiter,
    fill: &(dyn Fn(&Block, &mut [T]) -> Result<()> + Sync),
) -> Result<()> {
    let mut rest = whole;
    let mut parts = Vec::with_capacity(work.blocks.len());
    for block in &work.blocks {
        let (part, later) = rest.split_at_mut(block.rows.len());
        parts.push(Mutex::new(part));
        rest = later;
    }
    run_all(work.pool, waiter, parts.len(), &|number, cancel| {
        cancel.check()?;
        let (Some(block), Some(part)) = (work.blocks.get(number), parts.get(number)) else { return Ok(()) };
        fill(block, &mut part.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

fn convert<T: ArrowPrimitiveType>(
    part: &ArrayRef,
    column: &Column,
    block: &Block,
    origin: &Origin<'_>,
) -> Result<PrimitiveArray<T>> {
    // What does not fit becomes null, like what is null already.
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let numbers = arrow_cast::cast_with_options(part, &T::DATA_TYPE, &options).map_err(|error| {
        let as_type = type_name(&T::DATA_TYPE);
        origin.broken(&format!("column {:?} cannot be read as {as_type}: {error}", column.name), "cast the column")
    })?;
    if let Some(row) = (0..numbers.len()).find(|row| numbers.null_count() > 0 && numbers.is_null(*row)) {
        let (expected, advice) = if T::DATA_TYPE == DataType::UInt64 {
            ("the id of a sample of this dataset", "keep the ids that get_metadata() returns")
        } else {
            ("a number", "fill it, or leave the row out with a filter")
        };
        let (name, row, found) = (column.name, block.first + row, shown(part, row));
        return Err(origin.broken(&format!("column {name:?}, row {row}: expected {expected}, found {found}"), advice));
    }
    let numbers = numbers.as_primitive::<T>();
    Ok(PrimitiveArray::new(numbers.values().clone(), None))
}

/// A value as a person would write it.
fn shown(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    array_value_to_string(array, row).unwrap_or_else(|_| "something else".to_owned())
}
