//! Reads messages of lines, and of blocks whose length a line announces, from pieces of a stream.

/// An error of a protocol. The stream is unusable after it.
pub(crate) trait StreamError: Copy {
    const BAD_BLOCK_END: Self;

    fn line_too_long(limit: usize) -> Self;
}

pub(crate) enum Part<'p> {
    /// Without its LF.
    Line(&'p [u8]),
    /// A nonempty piece of a block. The returned [`Next`] is ignored.
    Data(&'p [u8]),
    BlockEnd,
}

pub(crate) enum Next<T> {
    Line,
    /// A block of this many bytes, then CRLF.
    Block(u64),
    Done(T),
}

#[derive(Debug, Clone, Copy)]
enum State<E> {
    Line,
    /// In a block of which this many bytes are left.
    Data(u64),
    /// CRLF after a block, of which this many bytes have arrived.
    DataEnd(usize),
    Failed(E),
}

/// Buffers incomplete lines, but no blocks.
#[derive(Debug, Clone)]
pub(crate) struct BlockReader<E> {
    state: State<E>,
    partial: Vec<u8>,
}

impl<E: StreamError> BlockReader<E> {
    pub(crate) fn new() -> Self {
        Self { state: State::Line, partial: Vec::new() }
    }

    pub(crate) fn is_at_line(&self) -> bool {
        self.partial.is_empty() && matches!(self.state, State::Line)
    }

    #[cold]
    pub(crate) fn fail(&mut self, error: E) -> E {
        self.state = State::Failed(error);
        error
    }

    /// Passes the parts of a message to `take`. Returns the message with the bytes used, or `None` if it is incomplete
    /// and all were used. Fails on every call after an error.
    #[inline]
    pub(crate) fn read<T>(
        &mut self,
        line_limit: usize,
        bytes: &[u8],
        take: impl FnMut(Part<'_>) -> Result<Next<T>, E>,
    ) -> Result<Option<(usize, T)>, E> {
        self.advance(line_limit, bytes, take).map_err(|error| self.fail(error))
    }

    #[inline]
    fn advance<T>(
        &mut self,
        line_limit: usize,
        bytes: &[u8],
        mut take: impl FnMut(Part<'_>) -> Result<Next<T>, E>,
    ) -> Result<Option<(usize, T)>, E> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let next = match self.state {
                State::Line => {
                    let room = line_limit.saturating_sub(self.partial.len());
                    let shown = &rest[..rest.len().min(room)];
                    let Some(end) = memchr::memchr(b'\n', shown) else {
                        if shown.len() == room {
                            return Err(E::line_too_long(line_limit));
                        }
                        self.partial.extend_from_slice(rest);
                        return Ok(None);
                    };
                    used += end + 1;
                    if self.partial.is_empty() {
                        take(Part::Line(&rest[..end]))?
                    } else {
                        self.partial.extend_from_slice(&rest[..end]);
                        let next = take(Part::Line(&self.partial));
                        self.partial.clear();
                        next?
                    }
                }
                State::Data(left) => {
                    let piece = &rest[..usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()))];
                    if !piece.is_empty() {
                        take(Part::Data(piece))?;
                    }
                    used += piece.len();
                    let left = left - piece.len() as u64;
                    if left > 0 {
                        self.state = State::Data(left);
                        return Ok(None);
                    }
                    self.state = State::DataEnd(0);
                    continue;
                }
                State::DataEnd(seen) => {
                    let wanted = &b"\r\n"[seen..];
                    let shown = &rest[..rest.len().min(wanted.len())];
                    if !wanted.starts_with(shown) {
                        return Err(E::BAD_BLOCK_END);
                    }
                    used += shown.len();
                    if shown.len() < wanted.len() {
                        self.state = State::DataEnd(seen + shown.len());
                        return Ok(None);
                    }
                    take(Part::BlockEnd)?
                }
                State::Failed(error) => return Err(error),
            };
            self.state = match next {
                Next::Block(left) => State::Data(left),
                Next::Line | Next::Done(_) => State::Line,
            };
            if let Next::Done(message) = next {
                return Ok(Some((used, message)));
            }
        }
    }
}
