//! Whether the types and buffers that an Arrow IPC file describes are such as its decoder can take.

use arrow_ipc::{DateUnit, Field, Int, IntervalUnit, Precision, RecordBatch, TimeUnit, Type};
use arrow_schema::DataType;

use super::Damage;
use super::metadata_parse::damage;

/// More rows than any table has: what is computed from fewer does not overflow.
const MOST_ROWS: i64 = 1 << 40;

/// Checks the type of a column. The type of a column with a dictionary is that of the dictionary's values.
pub(super) fn check_field(field: &Field<'_>, may_have_dictionary: bool) -> Result<(), Damage> {
    let dictionary_fits = field.dictionary().is_none_or(|dictionary| {
        may_have_dictionary
            && dictionary.indexType().is_some_and(|index| is_int(&index))
            && !is_nested(field.type_type())
    });
    if !dictionary_fits || !type_is_known(field) {
        return Err(damage(&format!("its column {:?} has an unknown type", field.name().unwrap_or_default())));
    }
    field.children().into_iter().flatten().try_for_each(|child| check_field(&child, true))
}

fn type_is_known(field: &Field<'_>) -> bool {
    let children = field.children().map_or(0, |children| children.len());
    match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8 => children == 0,
        Type::Int => field.type_as_int().is_some_and(|int| is_int(&int)),
        Type::FloatingPoint => field
            .type_as_floating_point()
            .is_some_and(|float| matches!(float.precision(), Precision::HALF | Precision::SINGLE | Precision::DOUBLE)),
        Type::FixedSizeBinary => field.type_as_fixed_size_binary().is_some_and(|binary| binary.byteWidth() >= 0),
        Type::Decimal => field.type_as_decimal().is_some_and(|decimal| {
            matches!(decimal.bitWidth(), 32 | 64 | 128 | 256)
                && u8::try_from(decimal.precision()).is_ok()
                && i8::try_from(decimal.scale()).is_ok()
        }),
        Type::Date => {
            field.type_as_date().is_some_and(|date| matches!(date.unit(), DateUnit::DAY | DateUnit::MILLISECOND))
        }
        Type::Time => field.type_as_time().is_some_and(|time| {
            matches!(
                (time.bitWidth(), time.unit()),
                (32, TimeUnit::SECOND | TimeUnit::MILLISECOND) | (64, TimeUnit::MICROSECOND | TimeUnit::NANOSECOND)
            )
        }),
        Type::Timestamp => field.type_as_timestamp().is_some_and(|timestamp| is_unit(timestamp.unit())),
        Type::Duration => field.type_as_duration().is_some_and(|duration| is_unit(duration.unit())),
        Type::Interval => field.type_as_interval().is_some_and(|interval| {
            matches!(interval.unit(), IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO)
        }),
        Type::List | Type::LargeList => children == 1,
        Type::FixedSizeList => {
            children == 1 && field.type_as_fixed_size_list().is_some_and(|list| list.listSize() >= 0)
        }
        Type::Map => children == 1 && field.type_as_map().is_some(),
        Type::Struct_ => true,
        _ => false,
    }
}

fn is_int(int: &Int<'_>) -> bool {
    matches!(int.bitWidth(), 8 | 16 | 32 | 64)
}

fn is_unit(unit: TimeUnit) -> bool {
    matches!(unit, TimeUnit::SECOND | TimeUnit::MILLISECOND | TimeUnit::MICROSECOND | TimeUnit::NANOSECOND)
}

fn is_nested(found: Type) -> bool {
    matches!(found, Type::List | Type::LargeList | Type::FixedSizeList | Type::Map | Type::Struct_)
}

/// Checks that a batch has a node and buffers inside its body for each of the columns, which have these types.
pub(super) fn check_batch(batch: &RecordBatch<'_>, types: &[&DataType], body_len: usize) -> Result<(), Damage> {
    if batch.compression().is_some() {
        return Err(damage("its buffers are compressed"));
    }
    if !(0..MOST_ROWS).contains(&batch.length()) {
        return Err(damage("a batch has an impossible number of rows"));
    }
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(damage("a batch has no columns"));
    };
    let mut parts = Parts {
        nodes: nodes.iter().map(|node| (node.length(), node.null_count())).collect(),
        buffers: buffers.iter().map(|buffer| (buffer.offset(), buffer.length())).collect(),
        view_buffers: batch.variadicBufferCounts().into_iter().flatten().collect(),
        body_len,
    };
    // They are taken from their ends.
    parts.nodes.reverse();
    parts.buffers.reverse();
    parts.view_buffers.reverse();
    for data_type in types {
        parts
            .column(data_type)
            .ok_or_else(|| damage("a batch has columns that are missing, too short or outside it"))?;
    }
    if parts.view_buffers.is_empty() { Ok(()) } else { Err(damage("a batch has more text than columns")) }
}

struct Parts {
    nodes: Vec<(i64, i64)>,
    buffers: Vec<(i64, i64)>,
    view_buffers: Vec<i64>,
    body_len: usize,
}

impl Parts {
    /// Takes what a column needs; `None` if it is not there.
    fn column(&mut self, data_type: &DataType) -> Option<()> {
        let (length, nulls) = self.nodes.pop()?;
        if !(0..MOST_ROWS).contains(&length) || !(0..=length).contains(&nulls) {
            return None;
        }
        if matches!(data_type, DataType::Null) {
            return (nulls == length).then_some(());
        }
        let validity = self.buffer()?;
        if nulls > 0 && validity < usize::try_from(length).ok()?.div_ceil(8) {
            return None;
        }
        match data_type {
            DataType::Utf8 | DataType::Binary => self.numbers(4).and_then(|()| self.buffers(1)),
            DataType::LargeUtf8 | DataType::LargeBinary => self.numbers(8).and_then(|()| self.buffers(1)),
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.view_buffers.pop()?;
                self.numbers(16)?;
                self.buffers(usize::try_from(count).ok()?)
            }
            DataType::List(inner) | DataType::Map(inner, _) => {
                self.numbers(4)?;
                self.column(inner.data_type())
            }
            DataType::LargeList(inner) => {
                self.numbers(8)?;
                self.column(inner.data_type())
            }
            DataType::FixedSizeList(inner, _) => self.column(inner.data_type()),
            DataType::Struct(fields) => fields.iter().try_for_each(|field| self.column(field.data_type())),
            DataType::Dictionary(keys, _) => self.numbers(keys.primitive_width()?),
            // Bits and binaries of fixed length are taken as bytes.
            other => self.numbers(other.primitive_width().unwrap_or(1)),
        }
    }

    /// Takes a buffer that is read as numbers of `width` bytes.
    fn numbers(&mut self, width: usize) -> Option<()> {
        self.buffer()?.is_multiple_of(width).then_some(())
    }

    fn buffers(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.buffer().map(drop))
    }

    /// The length of the next buffer, which lies inside the body.
    fn buffer(&mut self) -> Option<usize> {
        let (offset, length) = self.buffers.pop()?;
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        (offset.checked_add(length)? <= self.body_len).then_some(length)
    }
}
