//! Reads RESP2 replies. Arrays are errors, because quintain's requests never cause one.

use super::Limits;
use crate::blocks::{BlockReader, Next, Part, StreamError};
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

/// An error in a stream of replies. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A byte that starts no expected reply: another protocol, or a string longer than announced. Contains the byte.
    #[error("byte 0x{0:02x} at the start of a reply")]
    BadType(u8),
    /// A line without an end within the limit. Contains the limit, in bytes.
    #[error("a line of more than {0} bytes")]
    LineTooLong(usize),
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

impl StreamError for ReplyError {
    const BAD_BLOCK_END: Self = ReplyError::BadBulkEnd;

    fn line_too_long(limit: usize) -> Self {
        ReplyError::LineTooLong(limit)
    }
}

/// Reads a connection's replies from pieces. Buffers at most [`Limits::line_bytes`] and no string.
#[derive(Debug, Clone)]
pub struct ReplyReader {
    limits: Limits,
    blocks: BlockReader<ReplyError>,
    bulk_bytes: u64,
}

impl ReplyReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> ReplyReader {
        ReplyReader { limits, blocks: BlockReader::new(), bulk_bytes: 0 }
    }

    /// Whether the reader is between replies.
    pub fn is_between(&self) -> bool {
        self.blocks.is_at_line()
    }

    /// Reads the next `bytes` and passes parts of the reply to `sink`. Returns a complete reply with the bytes used, or
    /// `None` if all were used. No result depends on how the stream is split. Fails on every call after invalid bytes.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Event<'_>),
    ) -> Result<Option<(usize, Reply)>, ReplyError> {
        if self.is_between()
            && let Some(&byte) = bytes.first()
            && !b"+-:$".contains(&byte)
        {
            return Err(self.blocks.fail(ReplyError::BadType(byte)));
        }
        let Self { limits, blocks, bulk_bytes } = self;
        blocks.read(limits.line_bytes, bytes, |part| match part {
            Part::Line(line) => {
                let next = parse_line(limits, line, &mut sink)?;
                if let Next::Block(bytes) = next {
                    *bulk_bytes = bytes;
                }
                Ok(next)
            }
            Part::Data(data) => {
                sink(Event::Data(data));
                Ok(Next::Line)
            }
            Part::BlockEnd => Ok(Next::Done(Reply::Bulk(*bulk_bytes))),
        })
    }
}

/// Parses `line`, without its LF: a reply, or the start of a string.
#[inline]
fn parse_line(limits: &Limits, line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Next<Reply>, ReplyError> {
    let Some(line) = line.strip_suffix(b"\r") else { return Err(ReplyError::BadLineEnd) };
    if memchr::memchr(b'\r', line).is_some() {
        return Err(ReplyError::BadLineEnd);
    }
    let Some((&mark, text)) = line.split_first() else { return Err(ReplyError::BadLineEnd) };
    Ok(Next::Done(match mark {
        b'+' | b'-' => {
            sink(Event::Text(text));
            if mark == b'+' { Reply::Simple } else { Reply::Error }
        }
        b':' => Reply::Integer(number::signed(text).ok_or(ReplyError::BadValue)?),
        _ if text == b"-1" => Reply::Null,
        _ => {
            let bytes = number::unsigned(text).ok_or(ReplyError::BadValue)?;
            let limit = limits.bulk_bytes as u64;
            if bytes > limit {
                return Err(ReplyError::TooLarge { bytes, limit });
            }
            sink(Event::BulkLength(bytes));
            return Ok(Next::Block(bytes));
        }
    }))
}
