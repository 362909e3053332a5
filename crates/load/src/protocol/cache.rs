//! The cache client, independent of the wire format. It sends a workload's operations, classifies responses and queues
//! the requests they cause; a [`Codec`] supplies the bytes. A GET that misses causes a SET of its key (the fill), as
//! does the read of a read-modify-write. The SET is sent on the connection of the response, before other requests.

use std::collections::VecDeque;
use std::sync::Arc;

use net::Nanos;
use stats::Rng;
use study::Workload;
use wire::memcached::Event;

use super::miss_causes::{Keys, Shared};
use super::{Answer, CacheOutcome, Class, Difference, Parsed, Protocol};
use crate::operation_stream::{Expectation, KEY_MAX_BYTES, Kind, Operation, Stream as Operations};
use crate::recorder::{Fault, OrFault};
use crate::trace_distributor::Tape;

const SUSPECTS: &str = "was the cache empty, or filled by another seed or workload?";
const ERROR_BYTES: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Set,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Value,
    Nothing,
    Done,
    /// The value was not stored, because the cache is full or the value is too long.
    Refused,
    Error,
    /// A well-formed response to a different kind of request.
    Wrong,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) used: usize,
    pub(crate) reply: Reply,
    pub(crate) status: u16,
    pub(crate) last: bool,
}

pub(crate) fn keep_error(error: &mut Vec<u8>, text: &[u8]) {
    error.clear();
    error.extend_from_slice(&text[..text.len().min(ERROR_BYTES)]);
}

/// The oldest request in flight of a connection, with the reader of its response.
pub(crate) struct Asked<'a, R> {
    pub(crate) reader: &'a mut R,
    pub(crate) verb: Verb,
    /// The key, if [`Codec::NAMES_KEY`].
    pub(crate) key: &'a [u8],
    /// Takes the text of an error.
    pub(crate) error: &'a mut Vec<u8>,
}

pub(crate) type Read = OrFault<Option<Response>>;

pub(crate) trait Codec {
    type Reader;
    /// Whether a response to GET contains the key, so that [`Codec::read`] needs the key.
    const NAMES_KEY: bool;
    const HAS_TTL: bool = true;
    const HAS_FLAGS: bool = false;

    fn reader(&self) -> Self::Reader;
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>);
    /// Appends a SET; a `ttl_s` of 0 means no expiry. Protocols without flags ignore `flags`.
    fn set(&mut self, key: &[u8], value: &[u8], flags: u32, ttl_s: u32, out: &mut Vec<u8>);
    fn delete(&mut self, key: &[u8], out: &mut Vec<u8>);

    /// Reads the response to `asked`; `None` if it is incomplete and all bytes were used. Fails if the stream is broken.
    fn read(&mut self, asked: Asked<'_, Self::Reader>, bytes: &[u8], sink: impl FnMut(Event<'_>)) -> Read;

    fn is_between(&self, reader: &mut Self::Reader) -> bool;
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    operation: Operation,
    /// Whether this is the SET that the response to a read has caused: a fill, or the end of a read-modify-write.
    is_caused: bool,
    /// Recorded key length, bytes; 0 if the distribution of key lengths determines it.
    key_bytes: u8,
    /// State of the key when the request was sent; see [`super::miss_causes`].
    word_when_sent: u16,
    sent_s: u32,
}

impl Expected {
    fn verb(&self) -> Verb {
        match self.operation.kind {
            Kind::Delete => Verb::Delete,
            Kind::Set => Verb::Set,
            Kind::Get | Kind::ReadModifyWrite if self.is_caused => Verb::Set,
            Kind::Get | Kind::ReadModifyWrite => Verb::Get,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Stream<R> {
    reader: R,
    value: Value,
    caused: VecDeque<Expected>,
}

#[derive(Clone, Debug, Default)]
struct Value {
    expectation: Option<Expectation>,
    /// First bytes of the value, for protocols that give the length at the end.
    start: [u8; 8],
    bytes: u64,
    flags: Option<u32>,
    difference: Option<Box<Difference>>,
}

#[derive(Clone, Debug)]
enum Problem {
    Value { key: u64, bytes: u64, expected: Option<u32>, difference: Difference },
    Flags { found: Option<u32>, expected: u32 },
    Error,
    Unexpected(Verb),
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct Cache<C> {
    codec: C,
    operations: Operations,
    /// Operations of a trace, which replace the drawn ones.
    tape: Option<Tape>,
    shared: Arc<Shared>,
    keys: Keys,
    fill: bool,
    value: Vec<u8>,
    error: Vec<u8>,
    problem: Option<Problem>,
}

impl<C: Codec> Cache<C> {
    /// Prepares the operations of a workload, or of a trace if `tape` is given.
    pub(crate) fn new(
        codec: C,
        workload: &Workload,
        shared: Arc<Shared>,
        (seed, index, workers): (u64, u32, u32),
        tape: Option<Tape>,
    ) -> Result<Self, String> {
        Ok(Self {
            codec,
            operations: Operations::new(workload, seed, index, workers)?,
            tape,
            keys: Keys::new(workload, index, workers),
            shared,
            fill: workload.fill,
            value: Vec::new(),
            error: Vec::new(),
            problem: None,
        })
    }

    /// Length of the key's value, bytes; `None` if it may differ between SETs.
    fn value_bytes(&self, key: u64) -> Option<u32> {
        if self.tape.is_some() { None } else { self.operations.value_bytes(key) }
    }

    fn send(&mut self, mut expected: Expected, now: Nanos, out: &mut Vec<u8>) -> Expected {
        let key_bytes = self.compose(&mut expected, now, out);
        let Operation { key, value_bytes, .. } = expected.operation;
        expected.word_when_sent = self.keys.request_sent(&self.shared, key, key_bytes + value_bytes);
        if expected.verb() == Verb::Delete {
            expected.word_when_sent = self.keys.delete_sent(&self.shared, key);
        }
        expected
    }

    /// Appends a request and returns the length of its key, bytes.
    fn compose(&mut self, expected: &mut Expected, now: Nanos, out: &mut Vec<u8>) -> u32 {
        let mut buffer = [0; KEY_MAX_BYTES];
        let texts = &self.shared.texts;
        let Operation { key: number, value_bytes, ttl_s, .. } = expected.operation;
        let key = texts.key_of_bytes(number, expected.key_bytes, &mut buffer);
        expected.sent_s = self.shared.seconds_at(now);
        match expected.verb() {
            Verb::Get => self.codec.get(key, out),
            Verb::Set => {
                self.value.resize(value_bytes as usize, 0);
                texts.value(number, &mut self.value);
                self.codec.set(key, &self.value, texts.flags(number), ttl_s, out);
            }
            Verb::Delete => self.codec.delete(key, out),
        }
        key.len() as u32
    }

    fn judge(
        &mut self,
        mut value: Value,
        caused: &mut VecDeque<Expected>,
        expected: Expected,
        reply: Reply,
        now: Nanos,
    ) -> Result<CacheOutcome, Fault> {
        let Expected { operation, word_when_sent, sent_s, .. } = expected;
        let Operation { kind, key, value_bytes, ttl_s, .. } = operation;
        let verb = expected.verb();
        match (verb, reply) {
            (Verb::Get, Reply::Value) => {
                let known = self.value_bytes(key);
                if let Some(difference) = value.wrong(&self.shared, key, known) {
                    self.problem = Some(Problem::Value { key, bytes: value.bytes, expected: known, difference });
                    return Err(Fault::Value);
                }
                if C::HAS_FLAGS {
                    let flags = self.shared.texts.flags(key);
                    if value.flags != Some(flags) {
                        self.problem = Some(Problem::Flags { found: value.flags, expected: flags });
                        return Err(Fault::Value);
                    }
                }
                if kind == Kind::ReadModifyWrite {
                    caused.push_back(Expected { is_caused: true, ..expected });
                }
                Ok(CacheOutcome { class: Class::GetHit, bytes: value.bytes as u32, ..CacheOutcome::default() })
            }
            (Verb::Get, Reply::Nothing) => {
                if self.fill || kind == Kind::ReadModifyWrite {
                    caused.push_back(Expected { is_caused: true, ..expected });
                }
                let cause = self.keys.cause(&self.shared, key, word_when_sent, self.shared.seconds_at(now));
                Ok(CacheOutcome { class: Class::GetMiss, bytes: value_bytes, cause, refused: false })
            }
            (Verb::Set, Reply::Done | Reply::Refused) => {
                let class = match kind {
                    Kind::Get => Class::Fill,
                    Kind::ReadModifyWrite => Class::Rewrite,
                    _ => Class::Set,
                };
                let refused = reply == Reply::Refused;
                self.keys.set_answered(&self.shared, key, word_when_sent, refused, sent_s, ttl_s);
                Ok(CacheOutcome { class, bytes: value_bytes, refused, ..CacheOutcome::default() })
            }
            (Verb::Delete, Reply::Done | Reply::Nothing) => {
                self.keys.delete_answered(&self.shared, key);
                Ok(CacheOutcome { class: Class::Delete, ..CacheOutcome::default() })
            }
            (_, Reply::Error) => {
                self.problem = Some(Problem::Error);
                Err(Fault::ErrorAnswer)
            }
            _ => {
                self.problem = Some(Problem::Unexpected(verb));
                Err(Fault::WrongAnswer)
            }
        }
    }
}

impl Value {
    fn take(&mut self, shared: &Shared, key: u64, known: Option<u32>, event: Event<'_>) {
        match event {
            Event::Value { client_flags, bytes } => {
                self.flags = Some(client_flags);
                let bytes = known.map_or(bytes, u64::from);
                self.expectation = usize::try_from(bytes).ok().map(|bytes| shared.texts.expectation(key, bytes));
            }
            Event::Text(_) => {}
            Event::Data(data) => {
                // With HTTP, the length is reported only with the last byte, but the key may determine it earlier.
                if self.bytes == 0 && self.expectation.is_none() {
                    self.expectation = known.map(|bytes| shared.texts.expectation(key, bytes as usize));
                }
                if let Some(expectation) = self.expectation {
                    if self.difference.is_some() || !shared.texts.matches(&expectation, self.bytes, data) {
                        let is_same = |at, byte| shared.texts.matches(&expectation, at, &[byte]);
                        Difference::track(&mut self.difference, self.bytes, data, is_same);
                    }
                } else if let Some(room) = self.start.get_mut(self.bytes.min(8) as usize..) {
                    let kept = room.len().min(data.len());
                    room[..kept].copy_from_slice(&data[..kept]);
                }
                self.bytes += data.len() as u64;
            }
        }
    }

    /// The first difference from the expected value in the bytes compared so far; `None` if all are equal.
    fn wrong(&mut self, shared: &Shared, key: u64, known: Option<u32>) -> Option<Difference> {
        if let Some(difference) = self.difference.take() {
            return Some(*difference);
        }
        let start = match &self.expectation {
            Some(expectation) if expectation.bytes as u64 == self.bytes => return None,
            // The length is known, but no byte has arrived, so there is no expectation yet.
            None if known.is_none_or(|known| u64::from(known) == self.bytes) => {
                &self.start[..self.bytes.min(8) as usize]
            }
            _ => return Some(Difference::end(self.bytes)),
        };
        let expectation = shared.texts.expectation(key, usize::try_from(self.bytes).ok()?);
        Difference::find(0, start, |at, byte| shared.texts.matches(&expectation, at, &[byte]))
    }
}

impl<C: Codec> Protocol for Cache<C> {
    type Stream = Stream<C::Reader>;
    type Expected = Expected;
    type Exchange = ();

    fn stream(&self) -> Self::Stream {
        Stream { reader: self.codec.reader(), value: Value::default(), caused: VecDeque::new() }
    }

    fn renew(&self, stream: &mut Self::Stream, _: &mut Vec<u8>) {
        let caused = std::mem::take(&mut stream.caused);
        *stream = Stream { caused, ..self.stream() };
    }

    fn caused(&self, stream: &Self::Stream) -> u32 {
        stream.caused.len() as u32
    }

    fn available(&mut self, wanted: u32) -> u32 {
        self.tape.as_mut().map_or(wanted, |tape| tape.available(wanted))
    }

    fn next_at(&mut self) -> Option<Nanos> {
        self.tape.as_mut()?.next_at()
    }

    fn is_caused(&self, expected: Expected) -> bool {
        expected.is_caused
    }

    fn skip(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.next();
        }
    }

    fn request(&mut self, stream: &mut Self::Stream, now: Nanos, _: &mut Rng, out: &mut Vec<u8>) -> Expected {
        if let Some(caused) = stream.caused.pop_front() {
            return self.send(caused, now, out);
        }
        let mut expected = Expected::default();
        if let Some(tape) = &mut self.tape {
            let traced = tape.next().expect("no more are requested than are available");
            self.shared.sent(&traced);
            let ttl_s = if C::HAS_TTL { traced.operation.ttl_s } else { 0 };
            expected.operation = Operation { ttl_s, ..traced.operation };
            expected.key_bytes = traced.key_bytes;
        } else {
            expected.operation = self.operations.next_operation();
        }
        self.send(expected, now, out)
    }

    fn again(&mut self, _: &mut Self::Stream, mut expected: Expected, now: Nanos, out: &mut Vec<u8>) -> Expected {
        // The first send of the key was already recorded, and the key's state at that time still explains a miss.
        self.compose(&mut expected, now, out);
        expected
    }

    fn read(&mut self, stream: &mut Self::Stream, expected: Expected, bytes: &[u8], now: Nanos) -> Parsed {
        let (verb, number) = (expected.verb(), expected.operation.key);
        let mut buffer = [0; KEY_MAX_BYTES];
        let named = C::NAMES_KEY && verb == Verb::Get;
        let key = if named { self.shared.texts.key_of_bytes(number, expected.key_bytes, &mut buffer) } else { &[] };
        let Stream { reader, value, caused } = stream;
        let known = self.value_bytes(number);
        let shared = &*self.shared;
        let sink = |event: Event<'_>| value.take(shared, number, known, event);
        match self.codec.read(Asked { reader, verb, key, error: &mut self.error }, bytes, sink) {
            Ok(None) => Parsed::More,
            Ok(Some(Response { used, reply, status, last: is_last })) => {
                let value = std::mem::take(value);
                let seen = self.judge(value, caused, expected, reply, now);
                let (fault, seen) = (seen.err(), seen.unwrap_or_default());
                Parsed::Answer(Answer { used, fault, status, is_last, seen, ..Answer::default() })
            }
            Err((fault, words)) => {
                self.problem = Some(Problem::Broken(words));
                Parsed::Broken(fault)
            }
        }
    }

    fn end(&mut self, stream: &mut Self::Stream, _: Expected) -> Result<Answer, Fault> {
        self.problem = None;
        Err(if self.codec.is_between(&mut stream.reader) { Fault::Closed } else { Fault::Truncated })
    }

    fn explain(&self) -> Option<String> {
        Some(match self.problem.as_ref()? {
            Problem::Value { key, bytes, expected, difference } => {
                let mut set = vec![0; expected.map_or(*bytes as usize, |expected| expected as usize)];
                self.shared.texts.value(*key, &mut set);
                let what = match expected {
                    Some(expected) if u64::from(*expected) != *bytes => format!("where {expected} were set"),
                    _ => "that differs from the value set under its key".to_owned(),
                };
                let words = difference.describe(&set);
                format!("a value of {bytes} bytes {what}: {words}; {SUSPECTS}")
            }
            Problem::Flags { found, expected } => {
                let found = found.map_or("no flags".to_owned(), |found| format!("flags {found}"));
                format!("a value with {found}, but {expected} were set; {SUSPECTS}")
            }
            Problem::Error => format!("the server replied `{}`", self.error.escape_ascii()),
            Problem::Unexpected(verb) => {
                format!("a response that is not valid for a {}", format!("{verb:?}").to_uppercase())
            }
            Problem::Broken(words) => words.clone(),
        })
    }
}
