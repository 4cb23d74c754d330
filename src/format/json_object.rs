//! A JSON object as its file spells it: keys and values are text, whatever they mean and however deep they are.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::excerpt;

/// Key and value of one entry, as they are spelled.
pub(super) type Entry<'a> = (&'a str, &'a str);

/// The entries in the order of the file.
pub(super) fn entries(text: &str) -> serde_json::Result<Vec<Entry<'_>>> {
    serde_json::from_str::<Entries<'_>>(text).map(|Entries(entries)| entries)
}

/// The value of the first entry with this name; `None` if there is no such entry, or no object.
pub(super) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    entries(text).ok()?.into_iter().find(|(key, _)| is_named(key, name)).map(|(_, value)| value)
}

/// Whether a key says `name`, with escapes or without.
pub(super) fn is_named(key: &str, name: &str) -> bool {
    serde_json::from_str::<String>(key).is_ok_and(|key| key == name)
}

/// A value as a message may show it: on one line, and not too long.
pub(super) fn shown(value: &str) -> String {
    let line = serde_json::from_str::<Value>(value).map_or_else(|_| value.to_owned(), |value| value.to_string());
    excerpt(&line).into_owned()
}

struct Entries<'a>(Vec<Entry<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor).map(Self)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<Entry<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Entry<'de>>, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            entries.push((key.get(), value.get()));
        }
        Ok(entries)
    }
}
