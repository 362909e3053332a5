//! Reads messages, which can arrive in pieces. A message has lines, and blocks whose lengths the lines announce.

/// A part of a response, passed on as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// The start of a value.
    Value {
        /// The 32 bits that the client stored with the value; 0 in RESP.
        client_flags: u32,
        /// Size of the value, in bytes.
        bytes: u64,
    },
    /// A nonempty piece of the value, borrowed from the input.
    Data(&'e [u8]),
    /// The text of an error or a simple reply.
    Text(&'e [u8]),
}

/// An error in a stream of responses. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// An unexpected first byte of a reply, due to a different protocol or an overlong string. Contains the byte.
    #[error("byte 0x{0:02x} at the start of a reply")]
    BadType(u8),
    /// Bytes that are not a valid response to the request. Contains the violation.
    #[error("{0}")]
    Invalid(&'static str),
    /// A line that has no end within the limit. Contains the limit, in bytes.
    #[error("a line of more than {0} bytes")]
    LineTooLong(usize),
    /// A value that exceeds the limit.
    #[error("a value of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// Announced size of the value, in bytes.
        bytes: u64,
        /// Maximum size of a value, in bytes.
        limit: u64,
    },
    /// A value for a key that was not requested, or a second value for the same key.
    #[error("a value of a key that was not requested, or out of order")]
    WrongKey,
}

/// LF without CR, or CR without LF.
pub(crate) const BAD_LINE_END: StreamError = StreamError::Invalid("a line that does not end in CRLF");

pub(crate) enum Next<T> {
    Line,
    /// A block of this many bytes, then CRLF.
    Block(u64),
    Done(T),
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Line,
    /// Within a block; this many bytes of it are left, including its CRLF.
    Block(u64),
    Failed(StreamError),
}

/// Reads messages. Buffers incomplete lines, but no blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockReader {
    state: State,
    partial: Vec<u8>,
}

impl BlockReader {
    pub(crate) fn is_at_line(&self) -> bool {
        self.partial.is_empty() && matches!(self.state, State::Line)
    }

    pub(crate) fn fail(&mut self, error: StreamError) -> StreamError {
        self.state = State::Failed(error);
        error
    }

    /// Passes the parts of a message to `take`. Returns the message and the number of bytes used; `None` if incomplete.
    /// The caller must pass an error to [`Self::fail`].
    pub(crate) fn read<T, S: FnMut(Event<'_>)>(
        &mut self,
        line_limit: usize,
        bytes: &[u8],
        sink: &mut S,
        mut take: impl FnMut(Option<&[u8]>, &mut S) -> Result<Next<T>, StreamError>,
    ) -> Result<Option<(usize, T)>, StreamError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let next = match self.state {
                State::Line => {
                    let room = line_limit.saturating_sub(self.partial.len());
                    let shown = &rest[..rest.len().min(room)];
                    let Some(end) = memchr::memchr(b'\n', shown) else {
                        if shown.len() == room {
                            return Err(StreamError::LineTooLong(line_limit));
                        }
                        self.partial.extend_from_slice(rest);
                        return Ok(None);
                    };
                    used += end + 1;
                    if self.partial.is_empty() {
                        take(Some(&rest[..end]), sink)?
                    } else {
                        self.partial.extend_from_slice(&rest[..end]);
                        let next = take(Some(&self.partial), sink);
                        self.partial.clear();
                        next?
                    }
                }
                State::Block(left) => {
                    let data = usize::try_from(left.saturating_sub(2)).map_or(rest.len(), |data| data.min(rest.len()));
                    let (data, behind) = rest.split_at(data);
                    if !data.is_empty() {
                        sink(Event::Data(data));
                    }
                    let left = left - data.len() as u64;
                    let wanted = &b"\r\n"[2 - left.min(2) as usize..];
                    let end = &behind[..behind.len().min(wanted.len())];
                    if !wanted.starts_with(end) {
                        return Err(StreamError::Invalid("a value not followed by CRLF"));
                    }
                    used += data.len() + end.len();
                    let left = left - end.len() as u64;
                    if left > 0 {
                        self.state = State::Block(left);
                        return Ok(None);
                    }
                    take(None, sink)?
                }
                State::Failed(error) => return Err(error),
            };
            self.state = match next {
                Next::Block(bytes) => State::Block(bytes + 2),
                Next::Line | Next::Done(_) => State::Line,
            };
            if let Next::Done(message) = next {
                return Ok(Some((used, message)));
            }
        }
    }
}
