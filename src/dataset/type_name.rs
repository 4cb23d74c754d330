//! What messages call a column type: plain words, and the name that Arrow has for it only where there are none.

use arrow_schema::DataType;

/// The type as people say it, who may have made it with any library.
pub(super) fn type_name(data_type: &DataType) -> String {
    use DataType as T;

    let inner = |words: &str, inner: &DataType| format!("{words} {}", type_name(inner));
    let word = match data_type {
        T::Null => "null",
        T::Boolean => "bool",
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "string",
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => "binary",
        T::Date32 | T::Date64 => "date",
        T::Time32(_) | T::Time64(_) => "time",
        T::Timestamp(..) => "datetime",
        T::Duration(_) => "duration",
        T::Interval(_) => "interval",
        T::Struct(_) => "struct",
        T::Map(..) => "map",
        T::Union(..) => "union",
        T::Dictionary(_, values) if is_text(values) => "categorical",
        T::Dictionary(_, values) => return inner("dictionary of", values),
        T::List(item) | T::LargeList(item) => return inner("list of", item.data_type()),
        T::ListView(item) | T::LargeListView(item) => return inner("list view of", item.data_type()),
        T::FixedSizeList(item, len) => return inner(&format!("array of {len}"), item.data_type()),
        T::RunEndEncoded(_, values) => return inner("run-end encoded", values.data_type()),
        T::Decimal32(digits, scale) => return format!("decimal({digits}, {scale}) of 32 bits"),
        T::Decimal64(digits, scale) => return format!("decimal({digits}, {scale}) of 64 bits"),
        T::Decimal128(digits, scale) => return format!("decimal({digits}, {scale})"),
        T::Decimal256(digits, scale) => return format!("decimal({digits}, {scale}) of 256 bits"),
        // Numbers, whose names are words: int64, float32.
        other => return other.to_string().to_lowercase(),
    };
    word.to_owned()
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
