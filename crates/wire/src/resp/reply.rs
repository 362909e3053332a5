//! Replies of RESP2 on one connection, for a client. Arrays are errors: our requests never cause one.

use super::Limits;
use crate::number;

/// A reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// `+`: a line of text.
    Simple,
    /// `-`. The stream stays in step.
    Error,
    /// `:`.
    Integer(i64),
    /// `$`: its length, bytes.
    Bulk(u64),
    /// `$-1`: nothing.
    Null,
}

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// The string of a [`Reply::Bulk`] begins; its length, bytes.
    BulkLength(u64),
    /// A piece of it, borrowed from the input; never empty.
    Data(&'e [u8]),
    /// The text of a [`Reply::Simple`] or [`Reply::Error`].
    Text(&'e [u8]),
}

/// How far a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and it goes on.
    More,
    /// It is complete.
    Done {
        /// How many of the bytes were its own.
        used: usize,
        /// The reply.
        reply: Reply,
    },
}

/// Why a stream of replies cannot be read on. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A byte that begins no reply we asked for: another protocol, or a string longer than announced.
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
    /// A number or length that is none.
    #[error("an invalid number or length")]
    BadValue,
    /// A string that is not followed by CRLF.
    #[error("a string not followed by CRLF")]
    BadBulkEnd,
    /// A string over the limit.
    #[error("a string of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// What was announced.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

#[derive(Debug, Clone, Copy)]
enum State {
    Line,
    /// In a string; its length, bytes.
    Data {
        left: u64,
        bytes: u64,
    },
    /// CRLF behind a string, and how much of it has come.
    DataEnd {
        seen: usize,
        bytes: u64,
    },
    Failed(ReplyError),
}

/// Reads the replies of one connection as their bytes come. Of a line that comes in pieces it keeps what has come, at most
/// [`Limits::line_bytes`]; of strings nothing.
#[derive(Debug, Clone)]
pub struct ReplyReader {
    limits: Limits,
    state: State,
    partial: Vec<u8>,
}

impl ReplyReader {
    /// For a connection that has just been opened.
    pub fn new(limits: Limits) -> ReplyReader {
        ReplyReader { limits, state: State::Line, partial: Vec::new() }
    }

    /// Whether no reply is half read.
    pub fn is_between(&self) -> bool {
        self.partial.is_empty() && matches!(self.state, State::Line)
    }

    /// Reads `bytes`, which follow those taken before; what is in the reply goes to `sink`. Stops behind a complete reply. How the stream
    /// is cut into calls changes neither replies nor errors.
    ///
    /// # Errors
    ///
    /// What is no reply. The stream cannot be read on: further calls give the same error.
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

    /// The reply that `line`, without its LF, is or begins.
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
