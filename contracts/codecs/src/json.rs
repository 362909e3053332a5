//! Reads and writes JSON, within limits. Source: RFC 8259.
//! ```
//! use codecs::json;
//! let user = json::parse(br#"{"id_str": "11"}"#).unwrap();
//! assert_eq!(user.get("id_str"), Some(&"11".into()));
//! ```
//! Duplicate names in an object are rejected, because readers disagree on which one counts (RFC 8259, section 4). So
//! are numbers outside the range of doubles, because some readers read them as infinite and others reject them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::value::Value;

/// Maximum size of a JSON text, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum nesting of arrays and objects.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of values in a JSON text.
pub const VALUES_MAX: usize = 1 << 20;

/// Parses JSON. Numbers outside `i64` become doubles. Fails for invalid JSON, duplicate names or exceeded limits.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Error::custom(format_args!("{} bytes, over the limit of {TEXT_BYTES_MAX}", bytes.len())));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Read { depth: 0, left: &mut VALUES_MAX.clone() }.deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

struct Read<'l> {
    depth: usize,
    left: &'l mut usize,
}

impl Read<'_> {
    fn inner<E: Error>(&mut self) -> Result<Read<'_>, E> {
        match self.depth {
            DEPTH_MAX => Err(E::custom(format!("values nested deeper than {DEPTH_MAX} levels"))),
            depth => Ok(Read { depth: depth + 1, left: self.left }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.checked_sub(1) {
            None => return Err(D::Error::custom(format!("more than {VALUES_MAX} values"))),
            Some(left) => *self.left = left,
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Double(value as f64), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = elements.next_element_seed(self.inner()?)? {
            all.push(element);
        }
        Ok(Value::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut pairs: A) -> Result<Value, A::Error> {
        let (mut fields, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = pairs.next_key::<String>()? {
            if !names.insert(name.clone()) {
                let shown = name.chars().take(60).flat_map(char::escape_default).collect::<String>();
                return Err(A::Error::custom(format!("duplicate name `{shown}`")));
            }
            fields.push((name, pairs.next_value_seed(self.inner()?)?));
        }
        Ok(Value::Record(fields))
    }
}

/// Writes a value as JSON. Bytes become an array of numbers; infinite numbers and NaN become `null`. Maps become
/// objects, and a key other than a string becomes its JSON as a string.
pub fn compose(value: &Value) -> String {
    serde_json::to_string(value).expect("keys are texts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let said = parse(text.as_bytes()).map_or_else(|error| error.to_string(), |value| format!("{value:?}"));
        assert_eq!(said, expect, "of {text}");
    }

    #[test]
    fn values_of_all_kinds() {
        check(" null ", "Null");
        check("true", "Bool(true)");
        check("-7", "Integer(-7)");
        check("9223372036854775808", "Double(9.223372036854776e18)");
        check("1.50", "Double(1.5)");
        check(r#""a\"\u0142\ud83d\ude00""#, "Text(\"a\\\"ł😀\")");
        check("[1,[2]]", "List([Integer(1), List([Integer(2)])])");
        check(r#"{"a":{"b":null}}"#, r#"Record([("a", Record([("b", Null)]))])"#);
    }

    #[test]
    fn rejects_invalid_json_and_excessive_values() {
        check("", "EOF while parsing a value at line 1 column 0");
        check("nul", "EOF while parsing a value at line 1 column 3");
        check("01", "invalid number at line 1 column 2");
        check("[1,]", "trailing comma at line 1 column 4");
        check("1 2", "trailing characters at line 1 column 3");
        check("\"\\ud800\"", "unexpected end of hex escape at line 1 column 8");
        check("\"\n\"", "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0");
        check("[[[1]]]", "List([List([List([Integer(1)])])])");
        check("1e999", "number out of range at line 1 column 5");
        check(&"[".repeat(70), "values nested deeper than 64 levels at line 1 column 65");
        let many = parse(format!("[{}0]", "0,".repeat(VALUES_MAX)).as_bytes()).unwrap_err();
        assert!(many.to_string().starts_with("more than 1048576 values"), "{many}");
        check(r#"{"a":1,"\u0061":2}"#, "duplicate name `a` at line 1 column 15");
        let bad = parse(b"\n\"\xff\"").unwrap_err();
        assert_eq!(bad.to_string(), "invalid unicode code point at line 2 column 2");
    }

    #[test]
    fn composed_values_are_read_back() {
        let list = vec![Value::Null, Value::Bool(true), Value::Integer(-5), Value::Double(0.1), "ł\n\u{1}".into()];
        let value = Value::record([("a\"b", Value::List(list)), ("r", Value::Record(Vec::new()))]);
        let text = compose(&value);
        assert_eq!(parse(text.as_bytes()).unwrap(), value, "{text}");
        let text = compose(&Value::Map(vec![
            (Value::Integer(1), Value::Bytes(vec![0, 255])),
            ("k".into(), Value::Double(f64::NAN)),
        ]));
        assert_eq!(text, r#"{"1":[0,255],"k":null}"#);
    }
}
