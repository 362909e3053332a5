//! memcached's text protocol and its meta commands, the client's side of a cache.

use wire::memcached::{
    Asked, Event, Limits, Outcome, Progress, ResponseError, ResponseReader, Verb as StoreVerb, compose_delete,
    compose_get, compose_meta, compose_meta_set, compose_store,
};

use super::cache::{Codec, ErrorText, Piece, Reply, Step, Verb};
use crate::recorder::Fault;

/// What the engine's keys are: no byte of them ends a key, and none is too long. See [`crate::workload::Texts`].
const KEYS_FIT: &str = "keys are 1 to 250 bytes of 64 plain characters";

/// Which commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memcached<const META: bool> {
    limits: Limits,
}

impl<const META: bool> Memcached<META> {
    /// Values may have so many bytes.
    pub(crate) fn new(value_bytes: u64) -> Self {
        let most = usize::try_from(value_bytes).unwrap_or(usize::MAX).max(Limits::DEFAULT.value_bytes);
        Self { limits: Limits { value_bytes: most, ..Limits::DEFAULT } }
    }
}

impl<const META: bool> Codec for Memcached<META> {
    type Reader = ResponseReader;
    const NAMES_KEY: bool = !META;
    const HAS_FLAGS: bool = true;

    fn reader(&self) -> ResponseReader {
        ResponseReader::new(self.limits)
    }

    #[inline]
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) {
        if META {
            compose_meta(out, b'g', key, &[(b'v', b""), (b'f', b"")]).expect(KEYS_FIT);
        } else {
            compose_get(out, &[key], false).expect(KEYS_FIT);
        }
    }

    #[inline]
    fn set(&mut self, key: &[u8], value: &[u8], flags: u32, ttl_s: u32, out: &mut Vec<u8>) {
        if !META {
            let exptime = i32::try_from(ttl_s).unwrap_or(i32::MAX);
            return compose_store(out, StoreVerb::Set, key, flags, exptime, None, value, false).expect(KEYS_FIT);
        }
        let (mut flag_digits, mut ttl_digits) = ([0; 10], [0; 10]);
        let meta = [(b'F', decimal(flags, &mut flag_digits)), (b'T', decimal(ttl_s, &mut ttl_digits))];
        let meta = if ttl_s == 0 { &meta[..1] } else { &meta };
        compose_meta_set(out, key, value, meta).expect(KEYS_FIT);
    }

    #[inline]
    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>) {
        if META {
            compose_meta(out, b'd', key, &[]).expect(KEYS_FIT);
        } else {
            compose_delete(out, key, false).expect(KEYS_FIT);
        }
    }

    #[inline]
    fn read(
        &mut self,
        reader: &mut ResponseReader,
        verb: Verb,
        key: &[u8],
        bytes: &[u8],
        said: &mut ErrorText,
        mut sink: impl FnMut(Piece<'_>),
    ) -> Result<Step, (Fault, String)> {
        let keys = [key];
        let asked = match verb {
            _ if META => Asked::Meta { quiet: false, opaque: b"" },
            Verb::Get => Asked::Get { keys: &keys },
            Verb::Set => Asked::Store,
            Verb::Delete => Asked::Delete,
        };
        let read = reader.read(asked, bytes, |event| match event {
            Event::Value { bytes, client_flags, .. } => {
                if !META {
                    sink(Piece::Flags(client_flags));
                }
                sink(Piece::Length(bytes));
            }
            Event::Data(data) => sink(Piece::Data(data)),
            Event::Text(text) => {
                said.clear();
                said.add(text);
            }
            Event::Flag { letter: b'f', argument } => {
                if let Some(flags) = str::from_utf8(argument).ok().and_then(|digits| digits.parse().ok()) {
                    sink(Piece::Flags(flags));
                }
            }
            Event::Miss { .. } | Event::Flag { .. } => {}
        });
        let (used, answer) = match read {
            Ok(Progress::More) => return Ok(Step::More),
            Ok(Progress::Done { used, answer }) => (used, answer),
            Err(error) => return Err(broken(error)),
        };
        let reply = match (verb, answer.outcome) {
            (Verb::Get, Outcome::End) if answer.hits > 0 => Reply::Value,
            (Verb::Get, Outcome::Value) => Reply::Value,
            (Verb::Get, Outcome::End | Outcome::Miss) | (Verb::Delete, Outcome::NotFound) => Reply::Nothing,
            (Verb::Set, Outcome::Stored | Outcome::Head) | (Verb::Delete, Outcome::Deleted | Outcome::Head) => {
                Reply::Done
            }
            (Verb::Set, Outcome::ServerError) if refuses(said.bytes()) => Reply::Refused,
            (_, outcome) if outcome.is_error() => Reply::Error,
            _ => Reply::Wrong,
        };
        Ok(Step::Done { used, reply, status: 0, last: false })
    }

    fn is_between(&self, reader: &mut ResponseReader) -> bool {
        reader.is_between()
    }
}

fn broken(error: ResponseError) -> (Fault, String) {
    let fault = match error {
        ResponseError::WrongKey | ResponseError::WrongOpaque => Fault::Value,
        ResponseError::Truncated => Fault::Truncated,
        _ => Fault::Framing,
    };
    (fault, error.to_string())
}

/// What memcached says to a SET that it has no room for, with or without `SERVER_ERROR ` before it. Source: memcached 1.6 items.c, proto_text.c
/// ("out of memory storing object", "object too large for cache").
fn refuses(said: &[u8]) -> bool {
    let has = |words: &[u8]| said.windows(words.len()).any(|window| window == words);
    has(b"out of memory") || has(b"too large")
}

/// `number` in decimal digits.
pub(super) fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_digits() {
        for number in [0, 9, 10, 86_400, u32::MAX] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
