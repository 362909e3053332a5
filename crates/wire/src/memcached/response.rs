//! Reads a client's responses to `get` with one key, `set` and `delete` from one connection.

use super::Limits;
use crate::number;

/// The request that a response belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// `get` of this key.
    Get(&'a [u8]),
    /// `set`.
    Set,
    /// `delete`.
    Delete,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `END` after a value.
    Hit,
    /// `END` without a value.
    Miss,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`.
    NotStored,
    /// `DELETED`.
    Deleted,
    /// `NOT_FOUND`.
    NotFound,
    /// `ERROR`, `CLIENT_ERROR`. The stream remains usable.
    Error,
    /// `SERVER_ERROR`. The stream remains usable.
    ServerError,
}

/// A part of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// The start of a value.
    Value {
        /// The client's 32 bits.
        client_flags: u32,
        /// Bytes of the value.
        bytes: u64,
    },
    /// A nonempty piece of the value, borrowed from the input.
    Data(&'e [u8]),
    /// The text of an error.
    Text(&'e [u8]),
}

/// The state of a response after a call to [`ResponseReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were used; the response is incomplete.
    More,
    /// The response is complete.
    Done {
        /// Bytes of the input that belong to this response.
        used: usize,
        /// The response.
        outcome: Outcome,
    },
}

/// An error in a stream of responses. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// A line that does not fit the request: another protocol, a wrong length, or a wrong order.
    #[error("a line that is not a response to the request")]
    Unexpected,
    /// A line without an end within the limit.
    #[error("a line of more than {limit} bytes")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// LF without CR, or CR without LF.
    #[error("a line that does not end in CRLF")]
    BadLineEnd,
    /// A `VALUE` line with invalid numbers.
    #[error("a value whose line is not a key and numbers")]
    BadValueLine,
    /// No CRLF after the value, which is longer or shorter than announced.
    #[error("a value not followed by CRLF")]
    BadValueEnd,
    /// A value over the limit.
    #[error("a value of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// The announced size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A value for another key, or a second value.
    #[error("a value of a key that was not requested, or out of order")]
    WrongKey,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Line,
    Data {
        left: u64,
    },
    /// CRLF after a value; `seen` bytes of it have arrived.
    DataEnd {
        seen: usize,
    },
    Failed(ResponseError),
}

enum Step {
    /// The size of a value in bytes.
    Value(u64),
    Done(Outcome),
}

/// Reads a connection's responses from pieces. Buffers at most [`Limits::line_bytes`] and no value.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    limits: Limits,
    state: State,
    partial: Vec<u8>,
    has_value: bool,
}

impl ResponseReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader { limits, state: State::Line, partial: Vec::new(), has_value: false }
    }

    /// Whether the reader is between responses.
    pub fn is_between(&self) -> bool {
        !self.has_value && self.partial.is_empty() && matches!(self.state, State::Line)
    }

    /// Reads the next `bytes` of the response to `expected` and passes events to `sink`. Stops
    /// after a complete response. Results do not depend on how the stream is split. `expected` must
    /// not change within a response.
    ///
    /// Fails if the bytes do not fit the request, and then on every call.
    #[inline]
    pub fn read(
        &mut self,
        expected: Expected<'_>,
        bytes: &[u8],
        mut sink: impl FnMut(Event<'_>),
    ) -> Result<Progress, ResponseError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.state {
                State::Line => {
                    let room = self.limits.line_bytes.saturating_sub(self.partial.len());
                    let shown = &rest[..rest.len().min(room)];
                    let Some(end) = memchr::memchr(b'\n', shown) else {
                        if shown.len() == room {
                            return Err(self.fail(ResponseError::LineTooLong { limit: self.limits.line_bytes }));
                        }
                        self.partial.extend_from_slice(rest);
                        return Ok(Progress::More);
                    };
                    let step = if self.partial.is_empty() {
                        self.parse_line(expected, &rest[..end], &mut sink)
                    } else {
                        let mut partial = std::mem::take(&mut self.partial);
                        partial.extend_from_slice(&rest[..end]);
                        let step = self.parse_line(expected, &partial, &mut sink);
                        partial.clear();
                        self.partial = partial;
                        step
                    };
                    used += end + 1;
                    match step {
                        Ok(Step::Value(left)) => {
                            self.has_value = true;
                            self.state = State::Data { left };
                        }
                        Ok(Step::Done(outcome)) => {
                            self.has_value = false;
                            return Ok(Progress::Done { used, outcome });
                        }
                        Err(error) => return Err(self.fail(error)),
                    }
                }
                State::Data { left } => {
                    let piece = &rest[..usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()))];
                    if !piece.is_empty() {
                        sink(Event::Data(piece));
                    }
                    used += piece.len();
                    let left = left - piece.len() as u64;
                    if left > 0 {
                        self.state = State::Data { left };
                        return Ok(Progress::More);
                    }
                    self.state = State::DataEnd { seen: 0 };
                }
                State::DataEnd { seen } => {
                    let wanted = &b"\r\n"[seen..];
                    let shown = &rest[..rest.len().min(wanted.len())];
                    if !wanted.starts_with(shown) {
                        return Err(self.fail(ResponseError::BadValueEnd));
                    }
                    used += shown.len();
                    if shown.len() < wanted.len() {
                        self.state = State::DataEnd { seen: seen + shown.len() };
                        return Ok(Progress::More);
                    }
                    self.state = State::Line;
                }
                State::Failed(error) => return Err(error),
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: ResponseError) -> ResponseError {
        self.state = State::Failed(error);
        error
    }

    /// Parses `line`, without its LF.
    #[inline]
    fn parse_line(
        &self,
        expected: Expected<'_>,
        line: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<Step, ResponseError> {
        let Some(line) = line.strip_suffix(b"\r") else { return Err(ResponseError::BadLineEnd) };
        if let Expected::Get(key) = expected {
            if let Some(value) = line.strip_prefix(b"VALUE ") {
                return self.parse_value(key, value, sink);
            }
            if line == b"END" {
                return Ok(Step::Done(if self.has_value { Outcome::Hit } else { Outcome::Miss }));
            }
        }
        if memchr::memchr(b'\r', line).is_some() {
            return Err(ResponseError::BadLineEnd);
        }
        if let Some(outcome) = parse_error(line, sink) {
            return Ok(Step::Done(outcome));
        }
        Ok(Step::Done(match (expected, line) {
            (Expected::Set, b"STORED") => Outcome::Stored,
            (Expected::Set, b"NOT_STORED") => Outcome::NotStored,
            (Expected::Delete, b"DELETED") => Outcome::Deleted,
            (Expected::Delete, b"NOT_FOUND") => Outcome::NotFound,
            _ => return Err(ResponseError::Unexpected),
        }))
    }

    /// Parses `VALUE key flags bytes` after `VALUE `.
    #[inline]
    fn parse_value(&self, key: &[u8], value: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Step, ResponseError> {
        let mut words = value.split(|&byte| byte == b' ');
        let (found, flags, bytes) = (words.next(), words.next(), words.next());
        let (Some(flags), Some(bytes), None) =
            (flags.and_then(number::unsigned), bytes.and_then(number::unsigned), words.next())
        else {
            return Err(ResponseError::BadValueLine);
        };
        let Ok(client_flags) = u32::try_from(flags) else { return Err(ResponseError::BadValueLine) };
        let limit = self.limits.value_bytes as u64;
        if bytes > limit {
            return Err(ResponseError::TooLarge { bytes, limit });
        }
        if found != Some(key) || self.has_value {
            return Err(ResponseError::WrongKey);
        }
        sink(Event::Value { client_flags, bytes });
        Ok(Step::Value(bytes))
    }
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
