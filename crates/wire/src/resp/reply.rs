//! Reads RESP2 replies. Arrays are errors, because quintain's requests never cause one.

use super::Limits;
use crate::decimal;
use crate::line_and_block_reader::{BAD_LINE_END, BlockReader, Event, Next, StreamError};

const BAD_NUMBER: StreamError = StreamError::Invalid("an invalid number or length");

/// A complete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A simple string (`+`).
    Simple,
    /// An error (`-`). The stream remains usable.
    Error,
    /// An integer (`:`).
    Integer(i64),
    /// A string (`$`). Contains its length in bytes.
    Bulk(u64),
    /// Null (`$-1`).
    Null,
}

/// Reads a connection's replies, which can arrive in pieces. Buffers at most [`Limits::line_bytes`] and no string.
#[derive(Debug, Clone)]
pub struct ReplyReader {
    limits: Limits,
    blocks: BlockReader,
    bulk_bytes: u64,
}

impl ReplyReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: Limits) -> ReplyReader {
        ReplyReader { limits, blocks: BlockReader::default(), bulk_bytes: 0 }
    }

    /// Whether the reader is between replies, so that the stream may end here.
    pub fn is_between(&self) -> bool {
        self.blocks.is_at_line()
    }

    /// Reads `bytes` and passes parts of the reply to `sink`. Returns the reply and the number of bytes used, or `None`
    /// if it is incomplete. Results do not depend on how the stream is split. After invalid bytes, all calls fail.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Event<'_>),
    ) -> Result<Option<(usize, Reply)>, StreamError> {
        if self.is_between()
            && let Some(&byte) = bytes.first()
            && !b"+-:$".contains(&byte)
        {
            return Err(self.blocks.fail(StreamError::BadType(byte)));
        }
        let Self { limits, blocks, bulk_bytes } = self;
        let read = blocks.read(limits.line_bytes, bytes, &mut sink, |line, sink| {
            let Some(line) = line else { return Ok(Next::Done(Reply::Bulk(*bulk_bytes))) };
            let next = parse_line(limits, line, sink)?;
            if let Next::Block(bytes) = next {
                *bulk_bytes = bytes;
            }
            Ok(next)
        });
        read.map_err(|error| blocks.fail(error))
    }
}

/// Parses `line`, without its LF: a reply, or the start of a string.
fn parse_line(limits: &Limits, line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Next<Reply>, StreamError> {
    let Some(line) = line.strip_suffix(b"\r") else { return Err(BAD_LINE_END) };
    if memchr::memchr(b'\r', line).is_some() {
        return Err(BAD_LINE_END);
    }
    let Some((&mark, text)) = line.split_first() else { return Err(BAD_LINE_END) };
    Ok(Next::Done(match mark {
        b'+' | b'-' => {
            sink(Event::Text(text));
            if mark == b'+' { Reply::Simple } else { Reply::Error }
        }
        b':' => Reply::Integer(decimal::signed(text).ok_or(BAD_NUMBER)?),
        _ if text == b"-1" => Reply::Null,
        _ => {
            let bytes = decimal::unsigned(text).ok_or(BAD_NUMBER)?;
            let limit = limits.bulk_bytes as u64;
            if bytes > limit {
                return Err(StreamError::TooLarge { bytes, limit });
            }
            sink(Event::Value { client_flags: 0, bytes });
            return Ok(Next::Block(bytes));
        }
    }))
}
