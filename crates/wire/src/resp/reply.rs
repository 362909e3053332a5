//! Reads RESP2 replies. Arrays are errors, because quintain's requests never cause one.

use super::Limits;
use crate::number;

/// A reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `+`: a line of text.
    Simple,
    /// `-`: an error. The stream remains usable.
    Error,
    /// `:`.
    Integer(i64),
    /// `$`: a string, with its length in bytes.
    Bulk(u64),
    /// `$-1`: null.
    Null,
}

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// The start of a [`Reply::Bulk`], with its length in bytes.
    BulkLength(u64),
    /// A nonempty piece of the string, borrowed from the input.
    Data(&'e [u8]),
    /// The text of a [`Reply::Simple`] or [`Reply::Error`].
    Text(&'e [u8]),
}

/// The state of a reply after a call to [`ReplyReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were used; the reply is incomplete.
    More,
    /// The reply is complete.
    Done {
        /// Bytes of the input that belong to this reply.
        used: usize,
        /// The reply.
        reply: Reply,
    },
}

/// An error in a stream of replies. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A byte that starts no expected reply: another protocol, or a string longer than announced.
    #[error("byte 0x{byte:02x} at the start of a reply")]
    BadType {
        /// The byte.
        byte: u8,
    },
    /// A line without an end within the limit.
    #[error("a line of more than {limit} bytes")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// CR without LF, or LF without CR.
    #[error("a line that does not end in CRLF")]
    BadLineEnd,
    /// An invalid number or length.
    #[error("an invalid number or length")]
    BadValue,
    /// A string without CRLF after it.
    #[error("a string not followed by CRLF")]
    BadBulkEnd,
    /// A string over the limit.
    #[error("a string of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// The announced size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

#[derive(Debug, Clone, Copy)]
enum State {
    Line,
    /// `left` bytes of a string of `bytes`.
    Data {
        left: u64,
        bytes: u64,
    },
    /// CRLF after a string; `seen` bytes of it have arrived.
    DataEnd {
        seen: usize,
        bytes: u64,
    },
    Failed(ReplyError),
}

/// Reads a connection's replies from pieces. Buffers at most [`Limits::line_bytes`] and no string.
#[derive(Debug, Clone)]
pub struct ReplyReader {
    limits: Limits,
    state: State,
    partial: Vec<u8>,
}

impl ReplyReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> ReplyReader {
        ReplyReader { limits, state: State::Line, partial: Vec::new() }
    }

    /// Whether the reader is between replies.
    pub fn is_between(&self) -> bool {
        self.partial.is_empty() && matches!(self.state, State::Line)
    }

    /// Reads the next `bytes` and passes parts of the reply to `sink`. Stops after a complete
    /// reply. Results do not depend on how the stream is split.
    ///
    /// Fails if bytes are invalid, and then on every call.
    pub fn read(&mut self, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Result<Progress, ReplyError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.state {
                State::Line => {
                    let room = self.limits.line_bytes.saturating_sub(self.partial.len());
                    let shown = &rest[..rest.len().min(room)];
                    if self.partial.is_empty()
                        && let Some(&byte) = rest.first()
                        && !b"+-:$".contains(&byte)
                    {
                        return Err(self.fail(ReplyError::BadType { byte }));
                    }
                    let Some(end) = memchr::memchr(b'\n', shown) else {
                        if shown.len() == room {
                            return Err(self.fail(ReplyError::LineTooLong { limit: self.limits.line_bytes }));
                        }
                        self.partial.extend_from_slice(rest);
                        return Ok(Progress::More);
                    };
                    let reply = if self.partial.is_empty() {
                        self.parse_line(&rest[..end], &mut sink)
                    } else {
                        let mut partial = std::mem::take(&mut self.partial);
                        partial.extend_from_slice(&rest[..end]);
                        let reply = self.parse_line(&partial, &mut sink);
                        partial.clear();
                        self.partial = partial;
                        reply
                    };
                    used += end + 1;
                    match reply {
                        Ok(Reply::Bulk(bytes)) => self.state = State::Data { left: bytes, bytes },
                        Ok(reply) => return Ok(Progress::Done { used, reply }),
                        Err(error) => return Err(self.fail(error)),
                    }
                }
                State::Data { left, bytes } => {
                    let piece = &rest[..usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()))];
                    if !piece.is_empty() {
                        sink(Event::Data(piece));
                    }
                    used += piece.len();
                    let left = left - piece.len() as u64;
                    if left > 0 {
                        self.state = State::Data { left, bytes };
                        return Ok(Progress::More);
                    }
                    self.state = State::DataEnd { seen: 0, bytes };
                }
                State::DataEnd { seen, bytes } => {
                    let wanted = &b"\r\n"[seen..];
                    let shown = &rest[..rest.len().min(wanted.len())];
                    if !wanted.starts_with(shown) {
                        return Err(self.fail(ReplyError::BadBulkEnd));
                    }
                    used += shown.len();
                    if shown.len() < wanted.len() {
                        self.state = State::DataEnd { seen: seen + shown.len(), bytes };
                        return Ok(Progress::More);
                    }
                    self.state = State::Line;
                    return Ok(Progress::Done { used, reply: Reply::Bulk(bytes) });
                }
                State::Failed(error) => return Err(error),
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: ReplyError) -> ReplyError {
        self.state = State::Failed(error);
        error
    }

    /// Parses `line`, without its LF: a reply, or the start of a string.
    #[inline]
    fn parse_line(&self, line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Reply, ReplyError> {
        let Some(line) = line.strip_suffix(b"\r") else { return Err(ReplyError::BadLineEnd) };
        if memchr::memchr(b'\r', line).is_some() {
            return Err(ReplyError::BadLineEnd);
        }
        let Some((&mark, text)) = line.split_first() else { return Err(ReplyError::BadLineEnd) };
        match mark {
            b'+' | b'-' => {
                sink(Event::Text(text));
                Ok(if mark == b'+' { Reply::Simple } else { Reply::Error })
            }
            b':' => number::signed(text).map(Reply::Integer).ok_or(ReplyError::BadValue),
            _ if text == b"-1" => Ok(Reply::Null),
            _ => {
                let bytes = number::unsigned(text).ok_or(ReplyError::BadValue)?;
                let limit = self.limits.bulk_bytes as u64;
                if bytes > limit {
                    return Err(ReplyError::TooLarge { bytes, limit });
                }
                sink(Event::BulkLength(bytes));
                Ok(Reply::Bulk(bytes))
            }
        }
    }
}
