//! RESP2 and RESP3 as Redis and Valkey speak them, the client's side of a cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wire::resp::{Event, Kind, Limits, Progress, ReplyReader, compose_request};

use super::cache::{Codec, ErrorText, Piece, Reply, Step, Verb};
use super::memcached::decimal;
use crate::recorder::Fault;

#[derive(Clone, Debug)]
pub(crate) struct Redis {
    limits: Limits,
    /// RESP3 is asked for: greetings accepted, refused.
    hello: Option<Arc<[AtomicU64; 2]>>,
}

/// The answers of one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    replies: ReplyReader,
    greeting: Greeting,
    /// What is being read was not asked for.
    in_push: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Unsent,
    Asked,
    Done,
}

impl Redis {
    /// Values may have so many bytes. With `hello` RESP3 is asked for, and the answers counted there.
    pub(crate) fn new(value_bytes: u64, hello: Option<Arc<[AtomicU64; 2]>>) -> Self {
        let most = usize::try_from(value_bytes).unwrap_or(usize::MAX).max(Limits::DEFAULT.bulk_bytes);
        Self { limits: Limits { bulk_bytes: most, ..Limits::DEFAULT }, hello }
    }
}

impl Codec for Redis {
    type Reader = Reader;
    const NAMES_KEY: bool = false;

    fn reader(&self) -> Reader {
        let greeting = if self.hello.is_some() { Greeting::Unsent } else { Greeting::Done };
        Reader { replies: ReplyReader::new(self.limits), greeting, in_push: false }
    }

    #[inline]
    fn greet(&mut self, reader: &mut Reader, out: &mut Vec<u8>) {
        if reader.greeting == Greeting::Unsent {
            reader.greeting = Greeting::Asked;
            compose_request(out, &[b"HELLO", b"3"]);
        }
    }

    fn unasked(&mut self, reader: &mut Reader, bytes: &[u8]) -> bool {
        if self.hello.is_none() || reader.greeting != Greeting::Done {
            return false;
        }
        let mut at = 0;
        while at < bytes.len() {
            if !reader.in_push && bytes[at] != b'>' {
                return false;
            }
            reader.in_push = true;
            match reader.replies.read(&bytes[at..], |_| {}) {
                Ok(Progress::More) => break,
                Ok(Progress::Push { used, .. }) => (reader.in_push, at) = (false, at + used),
                Ok(Progress::Done { .. }) | Err(_) => return false,
            }
        }
        true
    }

    #[inline]
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_request(out, &[b"GET", key]);
    }

    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8], _: u32, ttl_s: u32, out: &mut Vec<u8>) {
        if ttl_s == 0 {
            compose_request(out, &[b"SET", key, value]);
        } else {
            compose_request(out, &[b"SET", key, value, b"EX", decimal(ttl_s, &mut [0; 10])]);
        }
    }

    #[inline]
    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_request(out, &[b"DEL", key]);
    }

    #[inline]
    fn read(
        &mut self,
        reader: &mut Reader,
        verb: Verb,
        _: &[u8],
        bytes: &[u8],
        said: &mut ErrorText,
        mut sink: impl FnMut(Piece<'_>),
    ) -> Result<Step, (Fault, String)> {
        let mut before = 0;
        let Reader { replies, greeting, in_push } = reader;
        let (used, answer) = loop {
            let mut in_value = false;
            let greeted = *greeting == Greeting::Asked;
            let read = replies.read(&bytes[before..], |event| match event {
                Event::Value { kind: Kind::Push(_), depth: 0 } => *in_push = true,
                // Its words are nobody's answer.
                _ if *in_push || greeted => {}
                Event::Value { kind: Kind::Bulk(bytes), depth: 0 } => {
                    in_value = true;
                    sink(Piece::Length(bytes));
                }
                Event::Value { .. } => said.clear(),
                // A string is a value only for GET; what else has text are errors and `OK`, which are short.
                Event::Data(data) if verb == Verb::Get => {
                    if !in_value {
                        said.add(data);
                    }
                    sink(Piece::Data(data));
                }
                Event::Data(data) => said.add(data),
            });
            match read {
                Ok(Progress::More) => return Ok(Step::More),
                Ok(Progress::Done { used, answer }) if greeted => {
                    *greeting = Greeting::Done;
                    let refused = answer.kind == Kind::Error;
                    if let Some(hello) = &self.hello {
                        hello[usize::from(refused)].fetch_add(1, Relaxed);
                    }
                    before += used;
                }
                Ok(Progress::Done { used, answer }) => break (before + used, answer),
                // Out of band: it answers nothing.
                Ok(Progress::Push { used, .. }) => (*in_push, before) = (false, before + used),
                Err(error) => return Err((Fault::Framing, error.to_string())),
            }
            if before == bytes.len() {
                return Ok(Step::More);
            }
        };
        let reply = match (verb, answer.kind) {
            (Verb::Get, Kind::Bulk(_)) => Reply::Value,
            (Verb::Get, Kind::Null) => Reply::Nothing,
            (Verb::Set, Kind::Simple) => Reply::Done,
            (Verb::Delete, Kind::Integer(0)) => Reply::Nothing,
            (Verb::Delete, Kind::Integer(_)) => Reply::Done,
            // `maxmemory` is reached and the policy evicts nothing, or nothing more.
            (Verb::Set, Kind::Error) if said.bytes().starts_with(b"OOM ") => Reply::Refused,
            // The value is longer than the server takes: so `quintain serve cache` says it.
            (Verb::Set, Kind::Error) if said.bytes().starts_with(b"ERR an argument over the limit") => Reply::Refused,
            (_, Kind::Error) => Reply::Error,
            _ => Reply::Wrong,
        };
        Ok(Step::Done { used, reply, status: 0, last: false })
    }

    fn is_between(&self, reader: &mut Reader) -> bool {
        reader.replies.is_between()
    }
}
