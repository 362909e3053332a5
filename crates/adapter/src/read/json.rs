//! REST: heads, queries and JSON bodies on a tape.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use contract::{Tape, TapeId};
use hyper::HeaderMap;
use hyper::header::HeaderName;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use wire::rest::Parameters;

use super::{HttpReply, HttpRequest, Op, Reply, Request, Unread};
use crate::encoding::Content;

/// Most parameters of a query.
const PARAMETERS_MAX: usize = 1024;
/// Most values of a body.
const VALUES_MAX: usize = 1 << 20;
/// Most values within one another: fewer than what serde_json stops at, whose stop looks like one of what is not valid JSON.
const DEPTH_MAX: usize = 120;

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
        "body" => body(&mut tape, request.body),
        name => match path.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => tape.text(value.clone()),
            None => tape.missing(),
        },
    });
    let args = args.collect();
    Request { tape, args }
}

pub(super) fn reply<'m>(reply: &HttpReply<'m>) -> Reply<'m> {
    let mut tape = Tape::new();
    let code = tape.int(i64::from(reply.code));
    let headers = headers(&mut tape, reply.headers);
    let body = body(&mut tape, reply.body);
    let value = tape.map([("code", code), ("headers", headers), ("body", body)]);
    Reply { tape, value, is_error: false }
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

fn body<'m>(tape: &mut Tape<'m>, content: &'m Content<'m>) -> TapeId {
    let bytes = match content {
        Content::Plain(bytes) if bytes.is_empty() => return tape.missing(),
        Content::Plain(bytes) => bytes,
        Content::Unread(_) | Content::Over => return tape.opaque(),
        Content::Broken(what) => return tape.malformed(what.as_str()),
    };
    match value(tape, bytes) {
        Ok(id) => id,
        Err(Unread::Over) => tape.opaque(),
        Err(Unread::Malformed(what)) => tape.malformed(what),
    }
}

fn value<'m>(tape: &mut Tape<'m>, bytes: &'m [u8]) -> Result<TapeId, Unread> {
    let mut room = Room { values: VALUES_MAX, depth: DEPTH_MAX, is_over: false };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Put { tape, room: &mut room }.deserialize(&mut reader).and_then(|id| reader.end().map(|()| id));
    read.map_err(
        |error| if room.is_over { Unread::Over } else { Unread::Malformed(format!("not valid JSON: {error}")) },
    )
}

/// How much more is read.
struct Room {
    values: usize,
    depth: usize,
    is_over: bool,
}

impl Room {
    fn over<E: Error>(&mut self) -> E {
        self.is_over = true;
        E::custom("over the limit")
    }
}

/// Puts the next value on the tape.
struct Put<'t, 'm> {
    tape: &'t mut Tape<'m>,
    room: &'t mut Room,
}

impl<'m> DeserializeSeed<'m> for Put<'_, 'm> {
    type Value = TapeId;

    fn deserialize<D: Deserializer<'m>>(self, reader: D) -> Result<TapeId, D::Error> {
        match (self.room.values, self.room.depth) {
            (0, _) | (_, 0) => return Err(self.room.over()),
            (values, depth) => (self.room.values, self.room.depth) = (values - 1, depth - 1),
        }
        let room = &mut *self.room;
        let read = reader.deserialize_any(Put { tape: self.tape, room: &mut *room });
        room.depth += 1;
        read
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
        while let Some(id) = items.next_element_seed(Put { tape: self.tape, room: self.room })? {
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
                return Err(A::Error::custom(format_args!("duplicate name `{}`", key.escape_debug())));
            }
            let id = fields.next_value_seed(Put { tape: self.tape, room: self.room })?;
            all.push((key, id));
        }
        Ok(self.tape.map(all))
    }
}

/// A name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'m>(#[serde(borrow)] Cow<'m, str>);
