//! What the JSON parser has to say, without its words for types.

use serde_json::error::Category;

use crate::error::excerpt;

/// What was found in place of the JSON that was expected, to be read after "found".
pub(super) fn found(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let told = match error.classify() {
        Category::Data => told(text),
        Category::Syntax if text.ends_with("hex escape") => {
            "a text with half of a character, a lone surrogate".to_owned()
        }
        Category::Eof => "text that is no JSON, it ends too early".to_owned(),
        Category::Syntax | Category::Io => format!("text that is no JSON, {text}"),
    };
    format!("{} (line {line}, column {column})", excerpt(&told))
}

fn told(text: &str) -> String {
    let quoted = |prefix: &str| text.strip_prefix(prefix)?.strip_prefix('`')?.split_once('`').map(|(key, _)| key);
    if let Some(key) = quoted("unknown field ") {
        return format!("the unknown key {key:?}");
    }
    if let Some(key) = quoted("missing field ") {
        return format!("no key {key:?}");
    }
    if let Some(key) = quoted("duplicate field ") {
        return format!("the key {key:?} twice");
    }
    let mismatch = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    match mismatch.and_then(|mismatch| mismatch.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("{} where {} is expected", value(found), kind(expected)),
        None => text.to_owned(),
    }
}

fn value(found: &str) -> String {
    match found.split_once(' ') {
        Some(("floating", rest)) => rest.trim_start_matches("point ").replace('`', ""),
        Some(("integer" | "boolean" | "number", rest)) => rest.replace('`', ""),
        Some(("string", rest)) => format!("the text {rest}"),
        _ if found == "sequence" => "a list".to_owned(),
        _ if found == "map" => "an object".to_owned(),
        _ => found.to_owned(),
    }
}

fn kind(expected: &str) -> &str {
    match expected {
        "u64" => "a whole number in 0 ... 2^64-1",
        "f64" => "a number",
        "a sequence" => "a list",
        "a string" => "a text",
        "a boolean" => "true or false",
        other => other,
    }
}
