//! Replies, as a client reads them off one connection.

use super::Limits;
use crate::number;

/// What a reply, or an element of one, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `+`: a line of text.
    Simple,
    /// `-`, and `!` of RESP3. An answer like others: the stream is in step.
    Error,
    /// `:`.
    Integer(i64),
    /// `$`, and `=` of RESP3, which has a format before its text: so many bytes.
    Bulk(u64),
    /// `$-1`, `*-1`, `_`: nothing.
    Null,
    /// `#` of RESP3.
    Boolean(bool),
    /// `,` of RESP3, as text.
    Double,
    /// `(` of RESP3, as text.
    BigNumber,
    /// `*`: so many elements.
    Array(u64),
    /// `~` of RESP3.
    Set(u64),
    /// `%` of RESP3: so many pairs.
    Map(u64),
    /// `|` of RESP3: so many pairs that tell about the reply behind them; not a reply of its own.
    Attribute(u64),
    /// `>` of RESP3: out of band, not a reply to any request.
    Push(u64),
}

/// What is found on the way through a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// A value begins: the reply itself at depth 0, its elements deeper. Also of a push message.
    Value {
        /// What it is.
        kind: Kind,
        /// How many arrays it is in.
        depth: usize,
    },
    /// The text of a line, or a piece of a string as it lies in the bytes read; never empty.
    Data(&'e [u8]),
}

/// A complete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What it is.
    pub kind: Kind,
    /// Values in it, itself among them.
    pub elements: u64,
    /// Nulls among them: the misses of `GET` and `MGET`.
    pub nulls: u64,
    /// Strings (`$`) among them: their hits.
    pub bulks: u64,
    /// Bytes of these strings.
    pub bulk_bytes: u64,
    /// Errors among them.
    pub errors: u64,
}

/// How far a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and it goes on.
    More,
    /// The reply to the oldest request is complete.
    Done {
        /// How many of the bytes were its own.
        used: usize,
        /// What it was.
        answer: Answer,
    },
    /// A push message is complete. No request is answered by it.
    Push {
        /// How many of the bytes were its own.
        used: usize,
        /// What it was.
        answer: Answer,
    },
}

/// Why a stream of replies cannot be read on. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A byte that begins no reply: another protocol, or a string longer than announced.
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
    /// A number, length, boolean or null that is none.
    #[error("an invalid number, length, boolean or null")]
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
    /// An array over the limit.
    #[error("{count} elements, over the limit of {limit}")]
    TooMany {
        /// What was announced.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// Arrays in arrays over the limit.
    #[error("arrays nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A push message or an attribute within a reply.
    #[error("an unexpected push message or attribute")]
    Misplaced,
    /// The stream ended within a reply.
    #[error("the stream ended in the middle of a reply")]
    Truncated,
}

impl ReplyError {
    /// The error's name, `bad-type` and so on.
    pub fn name(&self) -> &'static str {
        match self {
            ReplyError::BadType { .. } => "bad-type",
            ReplyError::LineTooLong { .. } => "line-too-long",
            ReplyError::BadLineEnd => "bad-line-end",
            ReplyError::BadValue => "bad-value",
            ReplyError::BadBulkEnd => "bad-bulk-end",
            ReplyError::TooLarge { .. } => "too-large",
            ReplyError::TooMany { .. } => "too-many",
            ReplyError::TooDeep { .. } => "too-deep",
            ReplyError::Misplaced => "misplaced",
            ReplyError::Truncated => "truncated",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    Line,
    Data {
        left: u64,
    },
    /// CRLF behind a string, and how much of it has come.
    DataEnd {
        seen: usize,
    },
    Failed(ReplyError),
}

/// Reads the replies of one connection as their bytes come. Of a line that comes in pieces it keeps what has come, at most
/// [`Limits::line_bytes`]; of strings nothing; of arrays how many elements are left, one number a level.
#[derive(Debug, Clone)]
pub struct ReplyReader {
    limits: Limits,
    state: State,
    partial: Vec<u8>,
    /// Elements left, by level.
    left: [u64; Limits::DEPTH_MAX],
    depth: usize,
    /// What the reply is, once its first line has come.
    kind: Option<Kind>,
    /// An attribute is being read, or has been: the reply is still to come.
    in_attribute: bool,
    counts: Answer,
}

const NOTHING: Answer = Answer { kind: Kind::Null, elements: 0, nulls: 0, bulks: 0, bulk_bytes: 0, errors: 0 };

impl ReplyReader {
    /// For a connection that has just been opened.
    pub fn new(limits: Limits) -> ReplyReader {
        ReplyReader {
            limits,
            state: State::Line,
            partial: Vec::new(),
            left: [0; Limits::DEPTH_MAX],
            depth: 0,
            kind: None,
            in_attribute: false,
            counts: NOTHING,
        }
    }

    /// Whether no reply is half read.
    pub fn is_between(&self) -> bool {
        self.kind.is_none() && !self.in_attribute && self.partial.is_empty() && matches!(self.state, State::Line)
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// [`ReplyError::Truncated`] where a reply is half read, and the error that there was before.
    pub fn end(&self) -> Result<(), ReplyError> {
        match self.state {
            State::Failed(error) => Err(error),
            _ if self.is_between() => Ok(()),
            _ => Err(ReplyError::Truncated),
        }
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
                        && !b"+-:$*_#,(!=%~|>".contains(&byte)
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
                    let result = if self.partial.is_empty() {
                        self.line(&rest[..end], &mut sink)
                    } else {
                        let mut partial = std::mem::take(&mut self.partial);
                        partial.extend_from_slice(&rest[..end]);
                        let result = self.line(&partial, &mut sink);
                        partial.clear();
                        self.partial = partial;
                        result
                    };
                    used += end + 1;
                    match result {
                        Ok(false) => {}
                        Ok(true) => {
                            if let Some(progress) = self.value_ended(used) {
                                return Ok(progress);
                            }
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
                        return Err(self.fail(ReplyError::BadBulkEnd));
                    }
                    used += shown.len();
                    if shown.len() < wanted.len() {
                        self.state = State::DataEnd { seen: seen + shown.len() };
                        return Ok(Progress::More);
                    }
                    self.state = State::Line;
                    if let Some(progress) = self.value_ended(used) {
                        return Ok(progress);
                    }
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

    /// A value that has no more to come: is the reply complete?
    fn value_ended(&mut self, used: usize) -> Option<Progress> {
        while self.depth > 0 {
            let left = &mut self.left[self.depth - 1];
            *left -= 1;
            if *left > 0 {
                return None;
            }
            self.depth -= 1;
        }
        if std::mem::take(&mut self.in_attribute) {
            self.counts = NOTHING;
            // The reply is still to come; `kind` says that something has begun.
            return None;
        }
        let kind = self.kind.take().unwrap_or(Kind::Null);
        let answer = Answer { kind, ..std::mem::replace(&mut self.counts, NOTHING) };
        Some(if matches!(kind, Kind::Push(_)) {
            Progress::Push { used, answer }
        } else {
            Progress::Done { used, answer }
        })
    }

    /// What `line`, without its LF, says; true where the value is complete with it.
    #[inline]
    fn line(&mut self, line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<bool, ReplyError> {
        let Some(line) = line.strip_suffix(b"\r") else { return Err(ReplyError::BadLineEnd) };
        if memchr::memchr(b'\r', line).is_some() {
            return Err(ReplyError::BadLineEnd);
        }
        let Some((&mark, text)) = line.split_first() else { return Err(ReplyError::BadLineEnd) };
        let count = || number::unsigned(text).ok_or(ReplyError::BadValue);
        let kind = match mark {
            b'+' => Kind::Simple,
            b'-' => Kind::Error,
            b':' => Kind::Integer(number::signed(text).ok_or(ReplyError::BadValue)?),
            b'$' | b'*' if text == b"-1" => Kind::Null,
            b'$' | b'=' => Kind::Bulk(count()?),
            b'!' => {
                let bytes = count()?;
                return self.begin(Kind::Error, Some(bytes), b"", sink);
            }
            b'*' => Kind::Array(count()?),
            b'~' => Kind::Set(count()?),
            b'%' => Kind::Map(count()?),
            b'|' => Kind::Attribute(count()?),
            b'>' => Kind::Push(count()?),
            b'_' if text.is_empty() => Kind::Null,
            b'#' if text == b"t" => Kind::Boolean(true),
            b'#' if text == b"f" => Kind::Boolean(false),
            b',' => Kind::Double,
            b'(' => Kind::BigNumber,
            b'_' | b'#' => return Err(ReplyError::BadValue),
            byte => return Err(ReplyError::BadType { byte }),
        };
        let bytes = if let Kind::Bulk(bytes) = kind { Some(bytes) } else { None };
        let text = if matches!(kind, Kind::Simple | Kind::Error | Kind::Double | Kind::BigNumber) { text } else { b"" };
        self.begin(kind, bytes, text, sink)
    }

    /// A value of this kind begins, with a string of so many bytes or a text.
    fn begin(
        &mut self,
        kind: Kind,
        bytes: Option<u64>,
        text: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<bool, ReplyError> {
        let is_first = self.depth == 0;
        let elements = match kind {
            Kind::Array(count) | Kind::Set(count) => Some(count),
            Kind::Map(pairs) => Some(pairs.saturating_mul(2)),
            Kind::Push(count) if is_first && self.kind.is_none() => Some(count),
            Kind::Attribute(pairs) if is_first => Some(pairs.saturating_mul(2)),
            Kind::Push(_) | Kind::Attribute(_) => return Err(ReplyError::Misplaced),
            _ => None,
        };
        if let Some(count) = elements {
            let limit = self.limits.arguments as u64;
            if count > limit {
                return Err(ReplyError::TooMany { count, limit });
            }
            let limit = self.limits.depth.min(Limits::DEPTH_MAX);
            if self.depth >= limit {
                return Err(ReplyError::TooDeep { limit });
            }
        }
        if let Some(bytes) = bytes {
            let limit = self.limits.bulk_bytes as u64;
            if bytes > limit {
                return Err(ReplyError::TooLarge { bytes, limit });
            }
        }
        self.counts.elements += 1;
        if self.counts.elements > self.limits.elements {
            return Err(ReplyError::TooMany { count: self.counts.elements, limit: self.limits.elements });
        }
        match kind {
            Kind::Null => self.counts.nulls += 1,
            Kind::Error => self.counts.errors += 1,
            Kind::Bulk(bytes) => {
                self.counts.bulks += 1;
                self.counts.bulk_bytes += bytes;
            }
            _ => {}
        }
        if is_first {
            self.in_attribute = matches!(kind, Kind::Attribute(_));
            self.kind = Some(kind);
        }
        sink(Event::Value { kind, depth: self.depth });
        if !text.is_empty() {
            sink(Event::Data(text));
        }
        match (elements, bytes) {
            (Some(0), _) => Ok(true),
            (Some(count), _) => {
                self.left[self.depth] = count;
                self.depth += 1;
                Ok(false)
            }
            (None, Some(bytes)) => {
                self.state = State::Data { left: bytes };
                Ok(false)
            }
            (None, None) => Ok(true),
        }
    }
}
