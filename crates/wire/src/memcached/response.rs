//! Reads the responses to a client's requests on one connection: `get` with one key, `set` and `delete`.

use super::Limits;
use crate::decimal;
use crate::line_and_block_reader::{BAD_LINE_END, BlockReader, Event, Next, StreamError};

/// The request to which a response belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// A `get` of this key.
    Get(&'a [u8]),
    /// A `set` of any key.
    Set,
    /// A `delete` of any key.
    Delete,
}

/// The meaning of a complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The key has a value: `VALUE`, then `END`.
    Hit,
    /// The key has no value: only `END`.
    Miss,
    /// The value was stored: `STORED`.
    Stored,
    /// The value was not stored: `NOT_STORED`.
    NotStored,
    /// The item was deleted: `DELETED`.
    Deleted,
    /// The key has no item: `NOT_FOUND`.
    NotFound,
    /// The request was rejected: `ERROR` or `CLIENT_ERROR`. The stream remains usable.
    Error,
    /// The server failed: `SERVER_ERROR`. The stream remains usable.
    ServerError,
}

/// Reads a connection's responses, which can arrive in pieces. Buffers at most [`Limits::line_bytes`] and no value.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    limits: Limits,
    blocks: BlockReader,
    has_value: bool,
}

impl ResponseReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader { limits, blocks: BlockReader::default(), has_value: false }
    }

    /// Whether the reader is between responses, so that the stream may end here.
    pub fn is_between(&self) -> bool {
        !self.has_value && self.blocks.is_at_line()
    }

    /// Reads the next `bytes` of the response to `expected`, which must not change within a response, and passes events
    /// to `sink`. Returns the response and the number of bytes used, or `None` if it is incomplete. Results do not
    /// depend on how the stream is split. Fails, also on all later calls, if the bytes do not fit the request.
    pub fn read(
        &mut self,
        expected: Expected<'_>,
        bytes: &[u8],
        mut sink: impl FnMut(Event<'_>),
    ) -> Result<Option<(usize, Outcome)>, StreamError> {
        let Self { limits, blocks, has_value } = self;
        let read = blocks.read(limits.line_bytes, bytes, &mut sink, |line, sink| {
            let Some(line) = line else { return Ok(Next::Line) };
            let next = parse_line(limits, *has_value, expected, line, sink)?;
            *has_value = matches!(next, Next::Block(_));
            Ok(next)
        });
        read.map_err(|error| blocks.fail(error))
    }
}

fn parse_line(
    limits: &Limits,
    has_value: bool,
    expected: Expected<'_>,
    line: &[u8],
    sink: &mut impl FnMut(Event<'_>),
) -> Result<Next<Outcome>, StreamError> {
    let Some(line) = line.strip_suffix(b"\r") else { return Err(BAD_LINE_END) };
    if let Expected::Get(key) = expected {
        if let Some(value) = line.strip_prefix(b"VALUE ") {
            let mut words = value.split(|&byte| byte == b' ');
            let found = words.next();
            let flags = words.next().and_then(decimal::unsigned).and_then(|flags| u32::try_from(flags).ok());
            let bytes = words.next().and_then(decimal::unsigned);
            let (Some(client_flags), Some(bytes), None) = (flags, bytes, words.next()) else {
                return Err(StreamError::Invalid("a value whose line is not a key and numbers"));
            };
            let limit = limits.value_bytes as u64;
            if bytes > limit {
                return Err(StreamError::TooLarge { bytes, limit });
            }
            if found != Some(key) || has_value {
                return Err(StreamError::WrongKey);
            }
            sink(Event::Value { client_flags, bytes });
            return Ok(Next::Block(bytes));
        }
        if line == b"END" {
            return Ok(Next::Done(if has_value { Outcome::Hit } else { Outcome::Miss }));
        }
    }
    if memchr::memchr(b'\r', line).is_some() {
        return Err(BAD_LINE_END);
    }
    if let Some(outcome) = parse_error(line, sink) {
        return Ok(Next::Done(outcome));
    }
    Ok(Next::Done(match (expected, line) {
        (Expected::Set, b"STORED") => Outcome::Stored,
        (Expected::Set, b"NOT_STORED") => Outcome::NotStored,
        (Expected::Delete, b"DELETED") => Outcome::Deleted,
        (Expected::Delete, b"NOT_FOUND") => Outcome::NotFound,
        _ => return Err(StreamError::Invalid("a line that is not a response to the request")),
    }))
}

fn parse_error(line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Option<Outcome> {
    let (text, outcome) = match line {
        b"ERROR" => (line, Outcome::Error),
        [b'C', ..] => (line.strip_prefix(b"CLIENT_ERROR ")?, Outcome::Error),
        [b'S', ..] => (line.strip_prefix(b"SERVER_ERROR ")?, Outcome::ServerError),
        [b'E', ..] => (line.strip_prefix(b"ERROR ")?, Outcome::Error),
        _ => return None,
    };
    sink(Event::Text(text));
    Some(outcome)
}
