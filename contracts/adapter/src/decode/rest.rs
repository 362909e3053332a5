//! Decodes REST requests and replies into the values of a contract.

use std::borrow::Cow;
use std::collections::HashSet;

use codecs::json::{self, JsonValue};
use codecs::rest_path_and_query::parameters;
use contract::{MessageValue, Value};
use hyper::HeaderMap;
use hyper::header::HeaderName;
use hyper::http::response;

use super::{Content, Reply, Request, RequestHead, Unread};
use crate::contract_services::Op;

const PARAMETERS_MAX: usize = 1024;
/// Maximum nesting of values, below the limit of serde_json, which reports excessive nesting as invalid JSON.
const DEPTH_MAX: usize = 120;

pub(super) fn request<'m>(
    op: &Op,
    path: &[(&str, Cow<'m, str>)],
    head: &'m RequestHead,
    content: &'m Content<'m>,
) -> Request<'m> {
    let args = op.params.iter().map(|param| match param.as_str() {
        "args" => match parameters(&head.query, PARAMETERS_MAX) {
            Some(mut pairs) => {
                let mut seen = HashSet::new();
                pairs.retain(|(name, _)| seen.insert(name.clone()));
                MessageValue::record(pairs.into_iter().map(|(name, value)| (name, MessageValue::Text(value))))
            }
            None => Value::Opaque.into(),
        },
        "headers" => headers(&head.headers),
        "body" => body(content),
        name => match path.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => MessageValue::Text(value.clone()),
            None => Value::Missing.into(),
        },
    });
    Request(args.collect())
}

pub(super) fn reply<'m>(head: &'m response::Parts, content: &'m Content<'m>) -> Reply<'m> {
    let code = Value::Int(i64::from(head.status.as_u16())).into();
    let fields = [("code", code), ("headers", headers(&head.headers)), ("body", body(content))];
    Reply { value: MessageValue::record(fields), is_error: false, may_be_undecided: false }
}

fn headers(headers: &HeaderMap) -> MessageValue<'_> {
    let mut fields = headers.keys().map(|name| (name.as_str(), joined(headers, name))).collect::<Vec<_>>();
    fields.sort_unstable_by_key(|(name, _)| *name);
    MessageValue::record(fields)
}

/// Joins the values of all fields named `name` with commas. Source: RFC 9110, section 5.3.
fn joined<'m>(headers: &'m HeaderMap, name: &HeaderName) -> MessageValue<'m> {
    let mut all = Cow::Borrowed("");
    for value in headers.get_all(name) {
        let Ok(value) = value.to_str() else { return Value::Opaque.into() };
        all = if all.is_empty() { Cow::Borrowed(value) } else { Cow::Owned(format!("{all}, {value}")) };
    }
    MessageValue::Text(all)
}

fn body<'m>(content: &'m Content<'m>) -> MessageValue<'m> {
    match content {
        Ok(bytes) if bytes.is_empty() => Value::Missing.into(),
        Ok(bytes) => value(bytes).unwrap_or_else(MessageValue::from),
        Err(why) => why.clone().into(),
    }
}

fn value(bytes: &[u8]) -> Result<MessageValue<'_>, Unread> {
    let beyond = Beyond::find(bytes);
    let mut numbers = 0;
    let mut number = |value: Value<'static>| {
        let is_wide = beyond.wide_integers.binary_search(&numbers).is_ok();
        numbers += 1;
        // A number wider than a clause's integers is opaque, because a float would change its value.
        MessageValue::Plain(if is_wide { Value::Opaque } else { value })
    };
    let read = json::parse_with(bytes, DEPTH_MAX, |value| match value {
        JsonValue::Null => Value::Missing.into(),
        JsonValue::Bool(value) => Value::Bool(value).into(),
        JsonValue::Integer(value) => number(Value::Int(value)),
        JsonValue::Double(value) => number(Value::Float(value)),
        JsonValue::Text(text) => MessageValue::Text(text),
        JsonValue::Array(items) => MessageValue::List(items),
        JsonValue::Object(fields) => MessageValue::record(fields),
    });
    read.map_err(|error| match error.is_limit || beyond.is_the_only_fault() {
        true => Unread::Over,
        false => Unread::Malformed(format!("not valid JSON: {error}")),
    })
}

/// Parts of valid JSON that 64 bits or UTF-8 cannot represent: wide numbers and unpaired surrogates.
#[derive(Debug, Default, PartialEq)]
struct Beyond {
    wide_integers: Vec<usize>,
    /// The text with `0` for each wide number and U+FFFD for each unpaired surrogate. `None` if it has neither.
    patched: Option<Vec<u8>>,
}

impl Beyond {
    fn find(text: &[u8]) -> Self {
        let mut found = Self::default();
        let (mut at, mut numbers) = (0, 0);
        let mut in_text = false;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => (in_text, at) = (!in_text, at + 1),
                b'\\' if in_text => at = found.escape(text, at),
                b'-' | b'0'..=b'9' if !in_text => {
                    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let length = text[at..].iter().take_while(|byte| is_part(byte)).count();
                    found.number(text, at..at + length, numbers);
                    (at, numbers) = (at + length, numbers + 1);
                }
                _ => at += 1,
            }
        }
        found
    }

    /// Returns the end of the escape or surrogate pair that starts at `at`.
    fn escape(&mut self, text: &[u8], at: usize) -> usize {
        let unit = |at: usize| {
            let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
            u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let Some(first) = unit(at) else { return at + 2 };
        match (first, unit(at + 6)) {
            (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => return at + 12,
            (0xd800..=0xdfff, _) => self.patched(text)[at + 2..at + 6].copy_from_slice(b"fffd"),
            _ => {}
        }
        at + 6
    }

    fn number(&mut self, text: &[u8], range: std::ops::Range<usize>, position: usize) {
        if range.len() < 5 {
            return;
        }
        let Ok(number) = std::str::from_utf8(&text[range.clone()]) else { return };
        let is_integer = number.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if is_integer && range.len() > 18 && number.parse::<i64>().is_err() {
            self.wide_integers.push(position);
        } else if is_integer || number.parse::<f64>().is_ok_and(f64::is_finite) {
            return;
        }
        let patched = &mut self.patched(text)[range];
        if number.parse::<f64>().is_ok() {
            patched.fill(b' ');
            patched[0] = b'0';
        }
    }

    fn patched(&mut self, text: &[u8]) -> &mut [u8] {
        self.patched.get_or_insert_with(|| text.to_vec())
    }

    /// Whether the JSON is valid except for wide numbers and unpaired surrogates.
    fn is_the_only_fault(&self) -> bool {
        let patched = self.patched.as_deref();
        patched.is_some_and(|text| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(text: &str) -> (Vec<usize>, Option<String>, bool) {
        let found = Beyond::find(text.as_bytes());
        let is_the_only_fault = found.is_the_only_fault();
        (found.wide_integers, found.patched.map(|text| String::from_utf8(text).unwrap()), is_the_only_fault)
    }

    #[test]
    fn finds_numbers_and_escapes_beyond_64_bits_and_utf8() {
        for plain in [
            "9223372036854775807",
            "-9223372036854775808",
            "1e300",
            "0.1234567890123456789012",
            r#""9999999999999999999""#,
        ] {
            assert_eq!(beyond(plain), (Vec::new(), None, false), "{plain}");
        }
        assert_eq!(beyond("[1, 9223372036854775808]"), (vec![1], Some("[1, 0                  ]".into()), true));
        assert_eq!(beyond("[-99999999999999999999, 1.5]").0, [0]);
        assert_eq!(beyond("[1e999, 2]"), (vec![], Some("[0    , 2]".into()), true));
        assert_eq!(beyond(r#""\ud83d\ude00 \u00e9""#), (vec![], None, false));
        assert_eq!(beyond(r#"["\ud800", "\udc00x", "\\ud800"]"#).1, Some(r#"["\ufffd", "\ufffdx", "\\ud800"]"#.into()));
        assert!(beyond(r#"{"\ud800\ud800": 1}"#).2);
        assert!(!beyond(r#"["\ud800", ]"#).2 && !beyond("[1e999, 1e9e9]").2 && !beyond("1-23456789012345678901234").2);
    }

    proptest::proptest! {
        #[test]
        fn patched_text_is_json_exactly_if_the_text_has_no_other_fault(
            text in "(\\[|\\]|,|\"|\\\\|ud800|\\\\ude00|1e999|-|9{20}|[0-9.eE+ ]|a){0,12}",
        ) {
            let found = Beyond::find(text.as_bytes());
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            // IgnoredAny accepts numbers beyond 64 bits and validates only the grammar.
            if let Some(patched) = &found.patched {
                proptest::prop_assert_eq!(patched.len(), text.len());
                proptest::prop_assert_eq!(found.is_the_only_fault(), is_json, "{}", text);
            }
        }
    }
}
