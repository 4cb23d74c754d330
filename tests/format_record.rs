//! Records: the envelope is exact, and a payload is found behind any envelope or not at all.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dataset_rt::format::record::{RecordEncoder, payload_offset};
use dataset_rt::format::schema::{Field, Schema};
use dataset_rt::value::{MetadataValue, ValueRef};
use proptest::prelude::*;

fn envelope(columns: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    let field = |(name, value): &(&str, ValueRef<'_>)| Field { name: (*name).to_owned(), kind: value.kind() };
    let schema = Schema::new(columns.iter().map(field).collect()).unwrap();
    let value = |field: &Field| columns.iter().find(|(name, _)| *name == field.name).unwrap().1;
    let mut out = b"before".to_vec();
    RecordEncoder::new(&schema).encode(schema.fields().iter().map(value), &mut out).unwrap();
    out.split_off(6)
}

fn json(columns: &[(&str, ValueRef<'_>)]) -> String {
    let envelope = envelope(columns);
    let (length, json) = envelope.split_first_chunk::<8>().unwrap();
    assert_eq!(u64::from_le_bytes(*length), json.len() as u64);
    String::from_utf8(json.to_vec()).unwrap()
}

#[test]
fn envelopes_are_exact() {
    assert_eq!(envelope(&[]), *b"\x02\0\0\0\0\0\0\0{}");
    assert_eq!(
        json(&[
            ("é", ValueRef::Bool(false)),
            ("b", ValueRef::String("a\"\\/\n\u{1}\u{7f}é😀")),
            ("a\"", ValueRef::Int(i64::MIN)),
            ("Z", ValueRef::Bool(true)),
        ]),
        r#"{"Z":true,"a\"":-9223372036854775808,"b":"a\"\\/\n\u0001"#.to_owned() + "\u{7f}é😀\",\"é\":false}"
    );
}

#[test]
fn floats_are_shortest_and_look_like_floats() {
    for (value, expected) in [
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e300, "1e+300"),
        (1e-300, "1e-300"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1e-5, "0.00001"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (1.0 / 3.0, "0.3333333333333333"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
        (f64::NEG_INFINITY, "null"),
    ] {
        assert_eq!(json(&[("x", ValueRef::Float(value))]), format!("{{\"x\":{expected}}}"));
    }
}

#[test]
fn payloads_are_found_only_behind_a_whole_envelope() {
    assert_eq!(payload_offset(b""), None);
    assert_eq!(payload_offset(b"\0\0\0\0\0\0\0"), None);
    assert_eq!(payload_offset(b"\0\0\0\0\0\0\0\0"), Some(8));
    assert_eq!(payload_offset(b"\x02\0\0\0\0\0\0\0{}"), Some(10));
    assert_eq!(payload_offset(b"\x02\0\0\0\0\0\0\0{}payload"), Some(10));
    assert_eq!(payload_offset(b"\x03\0\0\0\0\0\0\0{}"), None);
    assert_eq!(payload_offset(b"\xff\xff\xff\xff\xff\xff\xff\xff{}"), None);
    assert_eq!(payload_offset(b"\xf8\xff\xff\xff\xff\xff\xff\xff{}"), None);
}

fn values() -> impl Strategy<Value = MetadataValue> {
    prop_oneof![
        any::<bool>().prop_map(MetadataValue::Bool),
        any::<i64>().prop_map(MetadataValue::Int),
        any::<u64>().prop_map(|bits| MetadataValue::Float(f64::from_bits(bits))),
        ".{0,20}".prop_map(MetadataValue::String),
    ]
}

proptest! {
    #[test]
    fn envelopes_hold_the_metadata(
        columns in prop::collection::btree_map(".{0,5}", values(), 0..6),
        payload in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let given: Vec<_> = columns.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
        let mut record = envelope(&given);
        record.extend_from_slice(&payload);
        let offset = payload_offset(&record).unwrap();
        prop_assert_eq!(&record[offset..], payload.as_slice());
        let read: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&record[8..offset]).unwrap();
        prop_assert_eq!(read.keys().collect::<Vec<_>>(), columns.keys().collect::<Vec<_>>());
        for (read, value) in read.values().zip(columns.values()) {
            let expected = match value {
                MetadataValue::Bool(value) => serde_json::json!(value),
                MetadataValue::Int(value) => serde_json::json!(value),
                MetadataValue::Float(value) => serde_json::json!(value),
                MetadataValue::String(value) => serde_json::json!(value),
            };
            prop_assert_eq!(read, &expected);
        }
    }
}
