//! REST: heads, queries and JSON bodies on a tape.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use contract::{Tape, TapeId};
use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use wire::rest::Parameters;

use super::{HttpReply, HttpRequest, Op, Reply, Request};

/// Most parameters of a query.
const PARAMETERS_MAX: usize = 1024;
/// Most values of a body.
const VALUES_MAX: usize = 1 << 20;

pub(super) fn request<'m>(op: &Op, path: &[(&str, Cow<'m, str>)], request: &HttpRequest<'m>) -> Request<'m> {
    let mut tape = Tape::new();
    let args = op.params.iter().map(|param| match param.as_str() {
        "args" => match Parameters::parse(request.query, PARAMETERS_MAX) {
            Ok(parameters) => {
                // Of a parameter that is there twice the first one counts.
                let mut seen = HashSet::new();
                let pairs = parameters.iter().filter(|(name, _)| seen.insert((*name).to_owned()));
                let fields =
                    pairs.map(|(name, value)| (name.to_owned(), tape.text(value.to_owned()))).collect::<Vec<_>>();
                tape.map(fields)
            }
            Err(_) => tape.opaque(),
        },
        "headers" => headers(&mut tape, request.headers),
        "body" => body(&mut tape, request.body, is_encoded(request.headers)),
        name => match path.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => tape.text(value.clone()),
            None => tape.missing(),
        },
    });
    let args = args.collect();
    Request { tape, args }
}

pub(super) fn reply<'m>(reply: &HttpReply<'m>, is_encoded: bool) -> Reply<'m> {
    let mut tape = Tape::new();
    let code = tape.int(i64::from(reply.code));
    let headers = headers(&mut tape, reply.headers);
    let body = body(&mut tape, reply.body, is_encoded);
    let value = tape.map([("code", code), ("headers", headers), ("body", body)]);
    Reply { tape, value, is_error: false }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(hyper::header::CONTENT_ENCODING).is_some_and(|how| how != "identity")
}

/// Fields by name.
fn headers<'m>(tape: &mut Tape<'m>, headers: &'m HeaderMap) -> TapeId {
    let mut fields = headers.keys().map(|name| (name.as_str(), joined(tape, headers, name))).collect::<Vec<_>>();
    fields.sort_unstable_by_key(|(name, _)| *name);
    tape.map(fields)
}

/// All fields of one name, with a comma between them. Source: RFC 9110, section 5.3.
fn joined<'m>(tape: &mut Tape<'m>, headers: &'m HeaderMap, name: &HeaderName) -> TapeId {
    let mut all = Cow::Borrowed("");
    for value in headers.get_all(name) {
        let Ok(value) = value.to_str() else { return tape.opaque() };
        all = if all.is_empty() { Cow::Borrowed(value) } else { Cow::Owned(format!("{all}, {value}")) };
    }
    tape.text(all)
}

fn body<'m>(tape: &mut Tape<'m>, bytes: &'m [u8], is_encoded: bool) -> TapeId {
    if bytes.is_empty() {
        return tape.missing();
    }
    if is_encoded {
        return tape.opaque();
    }
    let mut left = VALUES_MAX;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Put { tape, left: &mut left }.deserialize(&mut reader).and_then(|id| reader.end().map(|()| id));
    read.unwrap_or_else(|_| tape.opaque())
}

/// Puts the next value on the tape. serde_json bounds the depth at 128.
struct Put<'t, 'm> {
    tape: &'t mut Tape<'m>,
    left: &'t mut usize,
}

impl<'m> DeserializeSeed<'m> for Put<'_, 'm> {
    type Value = TapeId;

    fn deserialize<D: Deserializer<'m>>(self, reader: D) -> Result<TapeId, D::Error> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        reader.deserialize_any(self)
    }
}

impl<'m> Visitor<'m> for Put<'_, 'm> {
    type Value = TapeId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<TapeId, E> {
        Ok(self.tape.missing())
    }

    fn visit_bool<E>(self, value: bool) -> Result<TapeId, E> {
        Ok(self.tape.bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TapeId, E> {
        Ok(self.tape.int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<TapeId, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => self.tape.int(value),
            // Wider than what clauses reckon with, and a float would be another number.
            Err(_) => self.tape.opaque(),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<TapeId, E> {
        Ok(self.tape.float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'m str) -> Result<TapeId, E> {
        Ok(self.tape.text(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<TapeId, E> {
        Ok(self.tape.text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'m>>(self, mut items: A) -> Result<TapeId, A::Error> {
        let mut all = Vec::new();
        while let Some(id) = items.next_element_seed(Put { tape: self.tape, left: self.left })? {
            all.push(id);
        }
        Ok(self.tape.list(all))
    }

    fn visit_map<A: MapAccess<'m>>(self, mut fields: A) -> Result<TapeId, A::Error> {
        let mut all = Vec::<(Cow<'m, str>, TapeId)>::new();
        let mut seen = HashSet::new();
        while let Some(Key(key)) = fields.next_key()? {
            // Which of two counts differs from reader to reader (RFC 8259, section 4), so neither is believed.
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom("a name that is there twice"));
            }
            let id = fields.next_value_seed(Put { tape: self.tape, left: self.left })?;
            all.push((key, id));
        }
        Ok(self.tape.map(all))
    }
}

/// A name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'m>(#[serde(borrow)] Cow<'m, str>);
