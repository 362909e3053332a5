//! JSON where it lies: checked once with limits, then read field by field without copying. Numbers keep their text. Source: RFC 8259.
//!
//! ```
//! use codecs::json::{Json, Limits};
//!
//! let json = Json::parse(br#"{"users": [{"id_str": "11", "count": 12345678901234567890}]}"#, &Limits::DEFAULT).unwrap();
//! let user = json.view().get("users").unwrap().element(0).unwrap();
//! assert_eq!(user.get("id_str").unwrap().as_str().as_deref(), Some("11"));
//! assert_eq!(user.get("count").unwrap().number(), Some("12345678901234567890"));
//! ```
//!
//! Names that an object has twice are refused: which of them counts differs from reader to reader (RFC 8259, section 4). So are numbers beyond every
//! double, which are infinite to some readers and mistakes to others.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::value::Value;

/// How much of a text is read before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub text_bytes: usize,
    /// Arrays and objects within one another; at most [`Limits::DEPTH_MAX`], whatever is said here.
    pub depth: usize,
    /// Values of the whole text.
    pub values: usize,
    /// Whether an object may have a name twice; the last one counts then.
    pub allows_duplicates: bool,
}

impl Limits {
    /// 16 MiB with a million values, 64 deep, no name twice.
    pub const DEFAULT: Limits = Limits { text_bytes: 16 << 20, depth: 64, values: 1 << 20, allows_duplicates: false };

    /// Levels that the reader has room for.
    pub const DEPTH_MAX: usize = 100;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Why a text is not valid JSON that is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct JsonError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1; 0 at the beginning of a line.
    pub column: usize,
    /// What is wrong: the thing, the value, the limit.
    pub what: String,
}

/// A text that is JSON within its limits.
#[derive(Debug, Clone, Copy)]
pub struct Json<'j> {
    text: &'j str,
}

impl<'j> Json<'j> {
    /// Reads a whole text.
    ///
    /// # Errors
    ///
    /// What is not valid JSON, what is over a limit, and a name that an object has twice, unless that is allowed.
    pub fn parse(bytes: &'j [u8], limits: &Limits) -> Result<Json<'j>, JsonError> {
        let begin = |what: String| JsonError { line: 1, column: 1, what };
        if bytes.len() > limits.text_bytes {
            return Err(begin(format!("{} bytes, over the limit of {}", bytes.len(), limits.text_bytes)));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
            JsonError { line, column, what: "the text is not valid UTF-8".to_owned() }
        })?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let mut left = limits.values;
        let check = Check { limits, depth: 0, left: &mut left };
        check.deserialize(&mut reader).and_then(|()| reader.end()).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            // serde_json puts the place behind its words.
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            JsonError { line, column, what }
        })?;
        Ok(Json { text: text.trim_matches([' ', '\t', '\n', '\r']) })
    }

    /// The value that the text is.
    pub fn view(&self) -> View<'j> {
        View { text: self.text }
    }
}

/// Goes through a value for what serde_json does not look at: depth, number of values, names twice.
struct Check<'c> {
    limits: &'c Limits,
    depth: usize,
    left: &'c mut usize,
}

impl Check<'_> {
    /// An array or object begins.
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let limit = self.limits.depth.min(Limits::DEPTH_MAX);
        if self.depth == limit {
            return Err(E::custom(format!("values nested deeper than {limit} levels")));
        }
        self.depth += 1;
        Ok(())
    }

    /// For a value in it.
    fn inner(&mut self) -> Check<'_> {
        Check { limits: self.limits, depth: self.depth, left: self.left }
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if *self.left == 0 {
            return Err(serde::de::Error::custom(format!("more than {} values", self.limits.values)));
        }
        *self.left -= 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.enter()?;
        while elements.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut pairs: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut names = HashSet::new();
        while let Some(name) = pairs.next_key_seed(Name)? {
            if !self.limits.allows_duplicates && !names.insert(name.clone()) {
                let shown = name.chars().take(60).flat_map(char::escape_default).collect::<String>();
                return Err(serde::de::Error::custom(format!("duplicate name `{shown}`")));
            }
            pairs.next_value_seed(self.inner())?;
        }
        Ok(())
    }
}

/// A name, borrowed where it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool,
    /// A number.
    Number,
    /// A text.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A value in a text that has been checked. Getting a field or an element reads over what lies before it; iterating reads once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'j> {
    text: &'j str,
}

impl<'j> View<'j> {
    /// The value as it is written.
    pub fn raw(&self) -> &'j str {
        self.text
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// True or false.
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then_some(self.text == "true")
    }

    /// A number as it is written.
    pub fn number(&self) -> Option<&'j str> {
        (self.kind() == Kind::Number).then_some(self.text)
    }

    /// An integer of 64 bits; `None` for `1.0` and `1e3`, whose text says more than a number.
    pub fn as_i64(&self) -> Option<i64> {
        self.number()?.parse().ok()
    }

    /// A number, rounded to the nearest that a double can be.
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.parse().ok()
    }

    /// A text, its escapes resolved; borrowed where it has none.
    pub fn as_str(&self) -> Option<Cow<'j, str>> {
        if self.kind() != Kind::Text {
            return None;
        }
        Name.deserialize(&mut serde_json::Deserializer::from_str(self.text)).ok()
    }

    /// A field of an object by its name.
    pub fn get(&self, name: &str) -> Option<View<'j>> {
        // The last one counts, where there may be two.
        let mut found = None;
        self.pairs(|key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found
    }

    fn pairs(&self, each: impl FnMut(Cow<'j, str>, View<'j>)) {
        struct Pairs<F>(F);
        impl<'de, F: FnMut(Cow<'de, str>, View<'de>)> Visitor<'de> for Pairs<F> {
            type Value = ();

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut pairs: A) -> Result<(), A::Error> {
                while let Some(name) = pairs.next_key_seed(Name)? {
                    let value = pairs.next_value::<&'de RawValue>()?;
                    self.0(name, View { text: value.get() });
                }
                Ok(())
            }
        }
        if self.kind() == Kind::Object {
            let mut reader = serde_json::Deserializer::from_str(self.text);
            let read = reader.deserialize_map(Pairs(each));
            debug_assert!(read.is_ok(), "it was checked");
        }
    }

    /// The fields of an object, in their order. Empty for other values.
    pub fn fields(&self) -> Vec<(Cow<'j, str>, View<'j>)> {
        let mut fields = Vec::new();
        self.pairs(|name, value| fields.push((name, value)));
        fields
    }

    /// The elements of an array, in their order. Empty for other values.
    pub fn elements(&self) -> Vec<View<'j>> {
        let mut elements = Vec::new();
        self.each(|element| elements.push(element));
        elements
    }

    fn each(&self, each: impl FnMut(View<'j>)) {
        struct Elements<F>(F);
        impl<'de, F: FnMut(View<'de>)> Visitor<'de> for Elements<F> {
            type Value = ();

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
                while let Some(element) = elements.next_element::<&'de RawValue>()? {
                    self.0(View { text: element.get() });
                }
                Ok(())
            }
        }
        if self.kind() == Kind::Array {
            let mut reader = serde_json::Deserializer::from_str(self.text);
            let read = reader.deserialize_seq(Elements(each));
            debug_assert!(read.is_ok(), "it was checked");
        }
    }

    /// An element of an array by its place.
    pub fn element(&self, index: usize) -> Option<View<'j>> {
        let (mut found, mut at) = (None, 0);
        self.each(|element| {
            if at == index {
                found = Some(element);
            }
            at += 1;
        });
        found
    }

    /// How many elements an array has, how many fields an object; `None` for other values.
    pub fn count(&self) -> Option<usize> {
        let mut count = 0;
        match self.kind() {
            Kind::Array => self.each(|_| count += 1),
            Kind::Object => self.pairs(|_, _| count += 1),
            _ => return None,
        }
        Some(count)
    }

    /// A copy with all that is in it. Numbers that no `i64` is are doubles.
    pub fn to_value(&self) -> Value {
        match self.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(self.text == "true"),
            Kind::Number => match (self.as_i64(), self.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, double) => double.map_or(Value::Null, Value::Double),
            },
            Kind::Text => Value::Text(self.as_str().unwrap_or_default().into_owned()),
            Kind::Array => Value::List(self.elements().iter().map(View::to_value).collect()),
            Kind::Object => {
                let fields = self.fields();
                Value::Record(fields.into_iter().map(|(name, view)| (name.into_owned(), view.to_value())).collect())
            }
        }
    }
}

/// Appends a value as JSON. Bytes become an array of numbers, maps objects whose keys are texts; a number that is none, and a key that is no text, is `null`
/// or its JSON.
pub fn compose(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Integer(integer) => out.push_str(&integer.to_string()),
        Value::Double(double) => match serde_json::Number::from_f64(*double) {
            Some(number) => out.push_str(&number.to_string()),
            None => out.push_str("null"),
        },
        Value::Text(text) => compose_text(out, text),
        Value::Bytes(bytes) => compose_all(out, bytes.iter(), ('[', ']'), |out, byte| out.push_str(&byte.to_string())),
        Value::List(elements) => compose_all(out, elements.iter(), ('[', ']'), compose),
        Value::Map(pairs) => compose_all(out, pairs.iter(), ('{', '}'), |out, (key, value)| {
            match key {
                Value::Text(text) => compose_text(out, text),
                other => {
                    let mut text = String::new();
                    compose(&mut text, other);
                    compose_text(out, &text);
                }
            }
            out.push(':');
            compose(out, value);
        }),
        Value::Record(fields) => compose_all(out, fields.iter(), ('{', '}'), |out, (name, value)| {
            compose_text(out, name);
            out.push(':');
            compose(out, value);
        }),
    }
}

fn compose_text(out: &mut String, text: &str) {
    let quoted = serde_json::to_string(text);
    out.push_str(&quoted.expect("a string is always JSON"));
}

fn compose_all<T>(
    out: &mut String,
    all: impl Iterator<Item = T>,
    around: (char, char),
    mut each: impl FnMut(&mut String, T),
) {
    out.push(around.0);
    for (index, one) in all.enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(out, one);
    }
    out.push(around.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let limits = Limits { text_bytes: 60, depth: 3, values: 8, allows_duplicates: false };
        let said = match Json::parse(text.as_bytes(), &limits) {
            Ok(json) => format!("{:?}", json.view().to_value()),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expect, "of {text}");
    }

    #[test]
    fn values_of_all_kinds() {
        check(" null ", "Null");
        check("true", "Bool(true)");
        check("-0", "Integer(0)");
        check("9223372036854775808", "Double(9.223372036854776e18)");
        check("1.50", "Double(1.5)");
        check(r#""a\"\u0142\ud83d\ude00""#, "Text(\"a\\\"ł😀\")");
        check("[1,[2]]", "List([Integer(1), List([Integer(2)])])");
        check(r#"{"a":{"b":null}}"#, r#"Record([("a", Record([("b", Null)]))])"#);
    }

    #[test]
    fn what_is_refused() {
        check("", "line 1, column 0: EOF while parsing a value");
        check("nul", "line 1, column 3: EOF while parsing a value");
        check("01", "line 1, column 2: invalid number");
        check("[1,]", "line 1, column 4: trailing comma");
        check("1 2", "line 1, column 3: trailing characters");
        check("\"\\ud800\"", "line 1, column 8: unexpected end of hex escape");
        check("\"\n\"", "line 2, column 0: control character (\\u0000-\\u001F) found while parsing a string");
        check("[[[1]]]", "List([List([List([Integer(1)])])])");
        check("1e999", "line 1, column 5: number out of range");
        check("[[[[]]]]", "line 1, column 5: values nested deeper than 3 levels");
        check("[1,2,3,4,5,6,7,8]", "line 1, column 15: more than 8 values");
        check(r#"{"a":1,"\u0061":2}"#, "line 1, column 15: duplicate name `a`");
        check(&" ".repeat(61), "line 1, column 1: 61 bytes, over the limit of 60");
        let bad = Json::parse(b"\n\xff", &Limits::DEFAULT).unwrap_err();
        assert_eq!(bad.to_string(), "line 2, column 1: the text is not valid UTF-8");
        let deep = "[".repeat(100_000);
        let limits = Limits { depth: usize::MAX, ..Limits::DEFAULT };
        assert!(Json::parse(deep.as_bytes(), &limits).unwrap_err().what.contains("deeper than 100 levels"));
    }

    #[test]
    fn views_borrow_and_keep_the_text_of_numbers() {
        let text = r#"{"n": 1.0e+02, "big": 123456789012345678901234567890, "s": "plain", "e": "a\nb", "l": [1, {"x": [ ]}] }"#;
        let json = Json::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
        let view = json.view();
        assert_eq!(view.get("n").unwrap().number(), Some("1.0e+02"));
        assert_eq!((view.get("n").unwrap().as_i64(), view.get("n").unwrap().as_f64()), (None, Some(100.0)));
        assert_eq!(view.get("big").unwrap().raw(), "123456789012345678901234567890");
        assert!(matches!(view.get("s").unwrap().as_str(), Some(Cow::Borrowed("plain"))));
        assert!(matches!(view.get("e").unwrap().as_str(), Some(Cow::Owned(text)) if text == "a\nb"));
        let list = view.get("l").unwrap();
        assert_eq!((list.count(), list.element(0).unwrap().as_i64()), (Some(2), Some(1)));
        assert_eq!(list.element(1).unwrap().get("x").unwrap().count(), Some(0));
        assert!(list.element(2).is_none() && list.get("x").is_none() && view.get("none").is_none());
        assert_eq!(view.fields().iter().map(|field| field.0.as_ref()).collect::<Vec<_>>(), ["n", "big", "s", "e", "l"]);
        assert!(view.get("s").unwrap().as_bool().is_none() && view.as_str().is_none() && view.number().is_none());
        assert_eq!(list.elements().len(), 2);
    }

    #[test]
    fn names_twice_are_allowed_on_request() {
        let limits = Limits { allows_duplicates: true, ..Limits::DEFAULT };
        let json = Json::parse(br#"{"a":1,"a":2}"#, &limits).unwrap();
        assert_eq!(json.view().get("a").unwrap().as_i64(), Some(2), "the last one counts");
    }

    #[test]
    fn what_is_composed_is_read_again() {
        let value = Value::record([
            ("a\"b", vec![Value::Null, true.into(), (-5).into(), Value::Double(0.1), "ł\n\u{1}".into()].into()),
            ("r", Value::Record(Vec::new())),
        ]);
        let mut text = String::new();
        compose(&mut text, &value);
        assert_eq!(Json::parse(text.as_bytes(), &Limits::DEFAULT).unwrap().view().to_value(), value, "{text}");
        let mut text = String::new();
        compose(
            &mut text,
            &Value::Map(vec![(1.into(), Value::Bytes(vec![0, 255])), ("k".into(), Value::Double(f64::NAN))]),
        );
        assert_eq!(text, r#"{"1":[0,255],"k":null}"#);
    }
}
