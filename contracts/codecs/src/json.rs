//! Reads and writes JSON, within limits. Source: RFC 8259.
//! ```
//! use codecs::json;
//! let user = json::parse(br#"{"id_str": "11"}"#).unwrap();
//! assert_eq!(user.get("id_str"), Some(&"11".into()));
//! ```
//! Duplicate names in an object are rejected, because readers disagree on which one counts (RFC 8259, section 4). So
//! are numbers outside the range of doubles, because some readers read them as infinite and others reject them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::value::Value;

/// Maximum size of a JSON text, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum nesting of arrays and objects in [`parse`].
pub const DEPTH_MAX: usize = 64;
/// Maximum number of values in a JSON text.
pub const VALUES_MAX: usize = 1 << 20;

/// The reason why bytes are not JSON, or a limit that they exceed.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct JsonError {
    error: serde_json::Error,
    /// Whether a limit was exceeded. The text may then be JSON.
    pub is_limit: bool,
}

/// Parses JSON. Numbers outside `i64` become doubles. Fails for invalid JSON, duplicate names or exceeded limits.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    if bytes.len() > TEXT_BYTES_MAX {
        let error = Error::custom(format_args!("{} bytes, over the limit of {TEXT_BYTES_MAX}", bytes.len()));
        return Err(JsonError { error, is_limit: true });
    }
    parse_with(bytes, DEPTH_MAX, |value| match value {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(value) => Value::Bool(value),
        JsonValue::Integer(value) => Value::Integer(value),
        JsonValue::Double(value) => Value::Double(value),
        JsonValue::Text(text) => Value::Text(text.into_owned()),
        JsonValue::Array(items) => Value::List(items),
        JsonValue::Object(fields) => {
            Value::Record(fields.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
        }
    })
}

/// A value of a JSON text, whose items or fields have been converted to `T`.
pub enum JsonValue<'j, T> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction that fits in an `i64`.
    Integer(i64),
    /// Any other number.
    Double(f64),
    /// A string, borrowed if it has no escapes.
    Text(Cow<'j, str>),
    /// An array.
    Array(Vec<T>),
    /// An object, whose names are distinct.
    Object(Vec<(Cow<'j, str>, T)>),
}

/// Parses JSON that nests at most `depth_max` levels, and converts each value with `convert`, inner values first. Fails
/// for invalid JSON, duplicate names, or exceeded limits.
pub fn parse_with<'j, T>(
    bytes: &'j [u8],
    depth_max: usize,
    convert: impl FnMut(JsonValue<'j, T>) -> T,
) -> Result<T, JsonError> {
    let mut reader =
        Reader { convert, depth_left: depth_max, depth_max, values_left: VALUES_MAX, is_over: false, of: PhantomData };
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let read = reader.deserialize(&mut text).and_then(|value| text.end().map(|()| value));
    read.map_err(|error| JsonError { error, is_limit: reader.is_over })
}

struct Reader<T, F> {
    convert: F,
    depth_max: usize,
    depth_left: usize,
    values_left: usize,
    is_over: bool,
    of: PhantomData<T>,
}

impl<T, F> Reader<T, F> {
    /// Takes one from a limit that has this many left. Fails if none is left.
    fn take<E: Error>(&mut self, left: usize, what: impl FnOnce() -> String) -> Result<usize, E> {
        self.is_over = left == 0;
        if self.is_over { Err(E::custom(what())) } else { Ok(left - 1) }
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        let depth_max = self.depth_max;
        let what = || format!("values nested deeper than {depth_max} levels");
        self.depth_left = self.take(self.depth_left, what)?;
        Ok(())
    }
}

impl<'j, T, F: FnMut(JsonValue<'j, T>) -> T> DeserializeSeed<'j> for &mut Reader<T, F> {
    type Value = T;

    fn deserialize<D: Deserializer<'j>>(self, text: D) -> Result<T, D::Error> {
        self.values_left = self.take(self.values_left, || format!("more than {VALUES_MAX} values"))?;
        text.deserialize_any(self)
    }
}

impl<'j, T, F: FnMut(JsonValue<'j, T>) -> T> Visitor<'j> for &mut Reader<T, F> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Integer(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok((self.convert)(i64::try_from(value).map_or(JsonValue::Double(value as f64), JsonValue::Integer)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Double(value)))
    }

    fn visit_borrowed_str<E>(self, value: &'j str) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Text(value.into())))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Text(value.to_owned().into())))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok((self.convert)(JsonValue::Null))
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut items: A) -> Result<T, A::Error> {
        self.enter()?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(&mut *self)? {
            all.push(item);
        }
        self.depth_left += 1;
        Ok((self.convert)(JsonValue::Array(all)))
    }

    fn visit_map<A: MapAccess<'j>>(self, mut fields: A) -> Result<T, A::Error> {
        self.enter()?;
        let (mut all, mut names) = (Vec::new(), HashSet::new());
        while let Some(Name(name)) = fields.next_key()? {
            if !names.insert(name.clone()) {
                let shown = name.chars().take(60).flat_map(char::escape_default).collect::<String>();
                return Err(A::Error::custom(format_args!("duplicate name `{shown}`")));
            }
            all.push((name, fields.next_value_seed(&mut *self)?));
        }
        self.depth_left += 1;
        Ok((self.convert)(JsonValue::Object(all)))
    }
}

#[derive(serde::Deserialize)]
struct Name<'j>(#[serde(borrow)] Cow<'j, str>);

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
