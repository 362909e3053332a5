//! RESP2 as Redis and Valkey speak it, the client's side of a cache.

use wire::resp::{Event, Kind, Limits, Progress, ReplyReader, compose_request};

use super::cache::{Codec, Piece, Reply, Said, Step, Verb};
use super::memcached::decimal;
use crate::recorder::Fault;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Redis {
    limits: Limits,
}

impl Redis {
    /// Values may have so many bytes.
    pub(crate) fn new(value_bytes: u64) -> Self {
        let most = usize::try_from(value_bytes).unwrap_or(usize::MAX).max(Limits::DEFAULT.bulk_bytes);
        Self { limits: Limits { bulk_bytes: most, ..Limits::DEFAULT } }
    }
}

impl Codec for Redis {
    type Reader = ReplyReader;
    const NAMES_KEY: bool = false;

    fn reader(&self) -> ReplyReader {
        ReplyReader::new(self.limits)
    }

    #[inline]
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_request(out, &[b"GET", key]);
    }

    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8], ttl_s: u32, out: &mut Vec<u8>) {
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
        reader: &mut ReplyReader,
        verb: Verb,
        _: &[u8],
        bytes: &[u8],
        said: &mut Said,
        mut sink: impl FnMut(Piece<'_>),
    ) -> Result<Step, (Fault, String)> {
        let mut before = 0;
        let (used, answer) = loop {
            let mut in_value = false;
            let read = reader.read(&bytes[before..], |event| match event {
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
                Ok(Progress::Done { used, answer }) => break (before + used, answer),
                // Out of band: it answers nothing.
                Ok(Progress::Push { used, .. }) => before += used,
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

    fn is_between(&self, reader: &mut ReplyReader) -> bool {
        reader.is_between()
    }
}
