//! The client side of RESP2, for Redis and Valkey.

use wire::decimal;
use wire::resp::{Event, Limits, Reply as Resp, ReplyReader, compose_request};

use super::cache::{Asked, Codec, Read, Reply, Response, Verb, keep_error};
use crate::recorder::Fault;

#[derive(Clone, Debug)]
pub(crate) struct Redis {
    limits: Limits,
    ttl: Vec<u8>,
}

impl Redis {
    pub(crate) fn new(value_bytes: u64) -> Self {
        let most = usize::try_from(value_bytes).unwrap_or(usize::MAX).max(Limits::DEFAULT.bulk_bytes);
        Self { limits: Limits { bulk_bytes: most, ..Limits::DEFAULT }, ttl: Vec::with_capacity(10) }
    }
}

impl Codec for Redis {
    type Reader = ReplyReader;
    const NAMES_KEY: bool = false;

    fn reader(&self) -> ReplyReader {
        ReplyReader::new(self.limits)
    }

    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_request(out, &[b"GET", key]);
    }

    fn set(&mut self, key: &[u8], value: &[u8], _: u32, ttl_s: u32, out: &mut Vec<u8>) {
        if ttl_s == 0 {
            compose_request(out, &[b"SET", key, value]);
        } else {
            self.ttl.clear();
            decimal::push(&mut self.ttl, u64::from(ttl_s));
            compose_request(out, &[b"SET", key, value, b"EX", &self.ttl]);
        }
    }

    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_request(out, &[b"DEL", key]);
    }

    fn read(&mut self, asked: Asked<'_, ReplyReader>, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Read {
        let Asked { reader, verb, error, .. } = asked;
        let read = reader.read(bytes, |event| match event {
            Event::Text(text) => keep_error(error, text),
            event => sink(event),
        });
        let read = read.map_err(|error| (Fault::Framing, error.to_string()))?;
        let Some((used, resp)) = read else { return Ok(None) };
        let reply = match (verb, resp) {
            (Verb::Get, Resp::Bulk(_)) => Reply::Value,
            (Verb::Get, Resp::Null) => Reply::Nothing,
            (Verb::Set, Resp::Simple) => Reply::Done,
            (Verb::Delete, Resp::Integer(0)) => Reply::Nothing,
            (Verb::Delete, Resp::Integer(_)) => Reply::Done,
            // `maxmemory` is reached, and the policy cannot evict anything.
            (Verb::Set, Resp::Error) if error.starts_with(b"OOM ") => Reply::Refused,
            // The value is too long. `quintain serve cache` also sends this error.
            (Verb::Set, Resp::Error) if error.starts_with(b"ERR an argument over the limit") => Reply::Refused,
            (_, Resp::Error) => Reply::Error,
            _ => Reply::Wrong,
        };
        Ok(Some(Response { used, reply, status: 0, last: false }))
    }

    fn is_between(&self, reader: &mut ReplyReader) -> bool {
        reader.is_between()
    }
}
