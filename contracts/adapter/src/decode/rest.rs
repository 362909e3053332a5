//! Decodes REST requests and replies into the values of a contract.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use codecs::rest_path_and_query::parameters;
use contract::{Tape, TapeId, Value};
use hyper::HeaderMap;
use hyper::header::HeaderName;
use hyper::http::response;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Content, Reply, Request, RequestHead, Unread};
use crate::contract_services::Op;

const PARAMETERS_MAX: usize = 1024;
const VALUES_MAX: usize = 1 << 20;
/// Maximum nesting of values, below the limit of serde_json, which reports excessive nesting as invalid JSON.
const DEPTH_MAX: usize = 120;

pub(super) fn request<'m>(
    op: &Op,
    path: &[(&str, Cow<'m, str>)],
    head: &'m RequestHead,
    content: &'m Content<'m>,
) -> Request<'m> {
    let mut tape = Tape::new();
    let args = op.params.iter().map(|param| match param.as_str() {
        "args" => match parameters(&head.query, PARAMETERS_MAX) {
            Some(mut pairs) => {
                let mut seen = HashSet::new();
                pairs.retain(|(name, _)| seen.insert(name.clone()));
                let fields = pairs.into_iter().map(|(name, value)| (name, tape.text(value))).collect::<Vec<_>>();
                tape.map(fields)
            }
            None => tape.add(Value::Opaque),
        },
        "headers" => headers(&mut tape, &head.headers),
        "body" => body(&mut tape, content),
        name => match path.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => tape.text(value.clone()),
            None => tape.add(Value::Missing),
        },
    });
    let args = args.collect();
    Request { tape, args }
}

pub(super) fn reply<'m>(head: &'m response::Parts, content: &'m Content<'m>) -> Reply<'m> {
    let mut tape = Tape::new();
    let code = tape.add(Value::Int(i64::from(head.status.as_u16())));
    let headers = headers(&mut tape, &head.headers);
    let body = body(&mut tape, content);
    let value = tape.map([("code", code), ("headers", headers), ("body", body)]);
    Reply { tape, value, is_error: false, may_be_undecided: false }
}

fn headers<'m>(tape: &mut Tape<'m>, headers: &'m HeaderMap) -> TapeId {
    let mut fields = headers.keys().map(|name| (name.as_str(), joined(tape, headers, name))).collect::<Vec<_>>();
    fields.sort_unstable_by_key(|(name, _)| *name);
    tape.map(fields)
}

/// Joins the values of all fields named `name` with commas. Source: RFC 9110, section 5.3.
fn joined<'m>(tape: &mut Tape<'m>, headers: &'m HeaderMap, name: &HeaderName) -> TapeId {
    let mut all = Cow::Borrowed("");
    for value in headers.get_all(name) {
        let Ok(value) = value.to_str() else { return tape.add(Value::Opaque) };
        all = if all.is_empty() { Cow::Borrowed(value) } else { Cow::Owned(format!("{all}, {value}")) };
    }
    tape.text(all)
}

fn body<'m>(tape: &mut Tape<'m>, content: &'m Content<'m>) -> TapeId {
    match content {
        Ok(bytes) if bytes.is_empty() => tape.add(Value::Missing),
        Ok(bytes) => value(tape, bytes).unwrap_or_else(|why| why.put(tape)),
        Err(why) => why.clone().put(tape),
    }
}

fn value<'m>(tape: &mut Tape<'m>, bytes: &'m [u8]) -> Result<TapeId, Unread> {
    let beyond = Beyond::find(bytes);
    let mut room =
        Room { values: VALUES_MAX, depth: DEPTH_MAX, is_over: false, wide: &beyond.wide_integers, numbers: 0 };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Put { tape, room: &mut room }.deserialize(&mut reader).and_then(|id| reader.end().map(|()| id));
    read.map_err(|error| match room.is_over || beyond.is_the_only_fault() {
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

struct Room<'w> {
    values: usize,
    depth: usize,
    is_over: bool,
    wide: &'w [usize],
    numbers: usize,
}

struct Put<'t, 'w, 'm> {
    tape: &'t mut Tape<'m>,
    room: &'t mut Room<'w>,
}

impl<'m> DeserializeSeed<'m> for Put<'_, '_, 'm> {
    type Value = TapeId;

    fn deserialize<D: Deserializer<'m>>(self, reader: D) -> Result<TapeId, D::Error> {
        let room = &mut *self.room;
        room.is_over = room.values == 0 || room.depth == 0;
        if room.is_over {
            return Err(D::Error::custom("over the limit"));
        }
        (room.values, room.depth) = (room.values - 1, room.depth - 1);
        let read = reader.deserialize_any(Put { tape: self.tape, room: &mut *room });
        room.depth += 1;
        read
    }
}

impl<'m> Visitor<'m> for Put<'_, '_, 'm> {
    type Value = TapeId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<TapeId, E> {
        Ok(self.tape.add(Value::Missing))
    }

    fn visit_bool<E>(self, value: bool) -> Result<TapeId, E> {
        Ok(self.tape.add(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TapeId, E> {
        self.room.numbers += 1;
        Ok(self.tape.add(Value::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<TapeId, E> {
        self.room.numbers += 1;
        // A number wider than a clause's integers is opaque, because a float would change its value.
        Ok(self.tape.add(i64::try_from(value).map_or(Value::Opaque, Value::Int)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<TapeId, E> {
        let is_wide = self.room.wide.binary_search(&self.room.numbers).is_ok();
        self.room.numbers += 1;
        Ok(if is_wide { self.tape.add(Value::Opaque) } else { self.tape.add(Value::Float(value)) })
    }

    fn visit_borrowed_str<E>(self, value: &'m str) -> Result<TapeId, E> {
        Ok(self.tape.text(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<TapeId, E> {
        Ok(self.tape.text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'m>>(self, mut items: A) -> Result<TapeId, A::Error> {
        let mut all = Vec::new();
        while let Some(id) = items.next_element_seed(Put { tape: self.tape, room: self.room })? {
            all.push(id);
        }
        Ok(self.tape.list(all))
    }

    fn visit_map<A: MapAccess<'m>>(self, mut fields: A) -> Result<TapeId, A::Error> {
        let mut all = Vec::<(Cow<'m, str>, TapeId)>::new();
        let mut seen = HashSet::new();
        while let Some(Key(key)) = fields.next_key()? {
            // Readers disagree on which duplicate counts (RFC 8259, section 4), so none is trusted.
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("duplicate name `{}`", key.escape_debug())));
            }
            let id = fields.next_value_seed(Put { tape: self.tape, room: self.room })?;
            all.push((key, id));
        }
        Ok(self.tape.map(all))
    }
}

#[derive(serde::Deserialize)]
struct Key<'m>(#[serde(borrow)] Cow<'m, str>);

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
