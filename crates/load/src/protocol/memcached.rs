//! The client side of memcached's text protocol.

use wire::memcached::{
    Event, Expected, Limits, Outcome, ResponseReader, StreamError, compose_delete, compose_get, compose_set,
};

use super::cache::{Asked, Codec, Read, Reply, Response, Verb, keep_error};
use crate::recorder::Fault;

/// Explains why keys from [`crate::operation_stream::Texts`] are always valid.
const KEYS_FIT: &str = "keys are 1 to 250 bytes of 64 plain characters";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memcached {
    limits: Limits,
}

impl Memcached {
    pub(crate) fn new(value_bytes: u64) -> Self {
        let most = usize::try_from(value_bytes).unwrap_or(usize::MAX).max(Limits::DEFAULT.value_bytes);
        Self { limits: Limits { value_bytes: most, ..Limits::DEFAULT } }
    }
}

impl Codec for Memcached {
    type Reader = ResponseReader;
    const NAMES_KEY: bool = true;
    const HAS_FLAGS: bool = true;

    fn reader(&self) -> ResponseReader {
        ResponseReader::new(self.limits)
    }

    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_get(out, key).expect(KEYS_FIT);
    }

    fn set(&mut self, key: &[u8], value: &[u8], flags: u32, ttl_s: u32, out: &mut Vec<u8>) {
        compose_set(out, key, flags, i32::try_from(ttl_s).unwrap_or(i32::MAX), value).expect(KEYS_FIT);
    }

    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>) {
        compose_delete(out, key).expect(KEYS_FIT);
    }

    fn read(&mut self, asked: Asked<'_, ResponseReader>, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Read {
        let Asked { reader, verb, key, error } = asked;
        let expected = match verb {
            Verb::Get => Expected::Get(key),
            Verb::Set => Expected::Set,
            Verb::Delete => Expected::Delete,
        };
        let read = reader.read(expected, bytes, |event| match event {
            Event::Text(text) => keep_error(error, text),
            event => sink(event),
        });
        let read = read.map_err(|error| {
            let fault = if error == StreamError::WrongKey { Fault::Value } else { Fault::Framing };
            (fault, error.to_string())
        })?;
        let Some((used, outcome)) = read else { return Ok(None) };
        let reply = match (verb, outcome) {
            (_, Outcome::Hit) => Reply::Value,
            (_, Outcome::Miss | Outcome::NotFound) => Reply::Nothing,
            (_, Outcome::Stored | Outcome::Deleted) => Reply::Done,
            (Verb::Set, Outcome::ServerError) if refuses(error) => Reply::Refused,
            (_, Outcome::Error | Outcome::ServerError) => Reply::Error,
            (_, Outcome::NotStored) => Reply::Wrong,
        };
        Ok(Some(Response { used, reply, status: 0, last: false }))
    }

    fn is_between(&self, reader: &mut ResponseReader) -> bool {
        reader.is_between()
    }
}

/// Whether memory was lacking for a SET. The prefix `SERVER_ERROR ` is optional (memcached 1.6: items.c, proto_text.c).
fn refuses(said: &[u8]) -> bool {
    let has = |words: &[u8]| said.windows(words.len()).any(|window| window == words);
    has(b"out of memory") || has(b"too large")
}
