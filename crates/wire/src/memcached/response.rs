//! Answers, as a client reads them off one connection.

use super::Limits;
use crate::number;

/// What was asked, so that its answer can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// `get`, `gets`, `gat`, `gats` of these keys in this order.
    Get {
        /// The keys.
        keys: &'a [&'a [u8]],
    },
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store,
    /// `delete`.
    Delete,
    /// `touch`.
    Touch,
    /// `incr`, `decr`.
    Count,
    /// `flush_all`, `verbosity`: `OK`.
    Ok,
    /// `version`.
    Version,
    /// `stats`.
    Stats,
    /// `mg`, `ms`, `md`, `ma`.
    Meta {
        /// With flag `q`: the answer may be left out.
        quiet: bool,
        /// What its flag `O` has, empty where there is none: it tells whose answer a line is.
        opaque: &'a [u8],
    },
    /// `mn`.
    MetaNoop,
    /// `me`.
    MetaDebug,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `END` of `get` and `stats`.
    End,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`, `NS`.
    NotStored,
    /// `EXISTS`, `EX`.
    Exists,
    /// `NOT_FOUND`, `NF`.
    NotFound,
    /// `DELETED`.
    Deleted,
    /// `TOUCHED`.
    Touched,
    /// `OK`, `RESET`.
    Ok,
    /// The new value after `incr` and `decr`.
    Number(u64),
    /// `VERSION`.
    Version,
    /// `HD`: a meta command was carried out, or an item is there whose value was not asked for.
    Head,
    /// `VA`: a value.
    Value,
    /// `EN`: a miss.
    Miss,
    /// `MN`.
    Noop,
    /// `ME`.
    Debug,
    /// Nothing came, because it was asked quietly: the line that came belongs to a later request. No byte of it was taken. When it was
    /// answered is not known.
    Suppressed,
    /// `ERROR`.
    Error,
    /// `CLIENT_ERROR`.
    ClientError,
    /// `SERVER_ERROR`.
    ServerError,
}

impl Outcome {
    /// Whether it is one of the three errors. They are answers: the stream is in step.
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Error | Outcome::ClientError | Outcome::ServerError)
    }
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub outcome: Outcome,
    /// Keys that were there.
    pub hits: usize,
    /// Keys that were not. Keys behind an error are neither.
    pub misses: usize,
    /// Bytes of values.
    pub value_bytes: u64,
}

/// What is found on the way to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// A value begins.
    Value {
        /// Of which of the keys asked for; 0 for a meta command.
        index: usize,
        /// The client's own 32 bits; 0 for a meta command, whose `f` is among [`Event::Flag`].
        client_flags: u32,
        /// Bytes of the value.
        bytes: u64,
        /// The cas unique, where it was asked for.
        cas: Option<u64>,
    },
    /// A piece of it, as it lies in the bytes read; never empty.
    Data(&'e [u8]),
    /// A key that is not there.
    Miss {
        /// Which of the keys asked for.
        index: usize,
    },
    /// A flag of a meta answer.
    Flag {
        /// Its letter.
        letter: u8,
        /// What follows it.
        argument: &'e [u8],
    },
    /// The text of an error, of `VERSION`, of one `STAT`, of `ME`.
    Text(&'e [u8]),
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and the answer goes on.
    More,
    /// The answer is complete.
    Done {
        /// How many of the bytes were its own.
        used: usize,
        /// What it was.
        answer: Answer,
    },
}

/// Why a stream of answers cannot be read on. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// A line that is no answer to what was asked: another protocol, a value longer than announced, or answers out of step.
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
    /// A `VALUE` or `VA` line whose numbers are none.
    #[error("a value whose line is not a key and numbers")]
    BadValueLine,
    /// The value is not followed by CRLF: it is longer or shorter than announced.
    #[error("a value not followed by CRLF")]
    BadValueEnd,
    /// A value over the limit.
    #[error("a value of {bytes} bytes, over the limit of {limit}")]
    TooLarge {
        /// What was announced.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A value of a key that was not asked for, or not in this order.
    #[error("a value of a key that was not requested, or out of order")]
    WrongKey,
    /// An opaque token that is not the one that was sent.
    #[error("an opaque token other than the one sent")]
    WrongOpaque,
    /// The stream ended within an answer.
    #[error("the stream ended in the middle of a response")]
    Truncated,
}

impl ResponseError {
    /// The error's name, `wrong-key` and so on.
    pub fn name(&self) -> &'static str {
        match self {
            ResponseError::Unexpected => "unexpected",
            ResponseError::LineTooLong { .. } => "line-too-long",
            ResponseError::BadLineEnd => "bad-line-end",
            ResponseError::BadValueLine => "bad-value-line",
            ResponseError::BadValueEnd => "bad-value-end",
            ResponseError::TooLarge { .. } => "too-large",
            ResponseError::WrongKey => "wrong-key",
            ResponseError::WrongOpaque => "wrong-opaque",
            ResponseError::Truncated => "truncated",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    Line,
    Data {
        left: u64,
    },
    /// CRLF behind a value, and how much of it has come.
    DataEnd {
        seen: usize,
    },
    Failed(ResponseError),
}

/// What a line leads to.
enum Step {
    /// The next line.
    Line,
    /// A value.
    Value(u64),
    Done(Outcome),
    Suppressed,
}

/// Reads the answers of one connection as their bytes come. Of a line that comes in pieces it keeps what has come, at most
/// [`Limits::line_bytes`]; of values nothing.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    limits: Limits,
    state: State,
    partial: Vec<u8>,
    /// Index of the key that may come next.
    next_key: usize,
    hits: usize,
    misses: usize,
    value_bytes: u64,
    /// After `VA`: its value is the last of the answer.
    is_last: bool,
    has_begun: bool,
}

impl ResponseReader {
    /// For a connection that has just been opened.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader {
            limits,
            state: State::Line,
            partial: Vec::new(),
            next_key: 0,
            hits: 0,
            misses: 0,
            value_bytes: 0,
            is_last: false,
            has_begun: false,
        }
    }

    /// Whether no answer is half read.
    pub fn is_between(&self) -> bool {
        !self.has_begun && self.partial.is_empty() && matches!(self.state, State::Line)
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// [`ResponseError::Truncated`] where an answer is half read, and the error that there was before.
    pub fn end(&self) -> Result<(), ResponseError> {
        match self.state {
            State::Failed(error) => Err(error),
            _ if self.is_between() => Ok(()),
            _ => Err(ResponseError::Truncated),
        }
    }

    /// Reads `bytes`, which follow those taken before, of the answer to what was `asked`; what it has goes to `sink`. Stops behind a complete
    /// answer. How the stream is cut into calls changes neither answers nor errors. `asked` is the same until the answer is complete.
    ///
    /// # Errors
    ///
    /// What is no answer to what was asked. The stream cannot be read on: further calls give the same error.
    #[inline]
    pub fn read(
        &mut self,
        asked: Asked<'_>,
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
                        self.line(asked, &rest[..end], &mut sink)
                    } else {
                        let mut partial = std::mem::take(&mut self.partial);
                        let kept = partial.len();
                        partial.extend_from_slice(&rest[..end]);
                        let step = self.line(asked, &partial, &mut sink);
                        partial.truncate(if matches!(step, Ok(Step::Suppressed)) { kept } else { 0 });
                        self.partial = partial;
                        step
                    };
                    used += end + 1;
                    match step {
                        Ok(Step::Line) => self.has_begun = true,
                        Ok(Step::Value(left)) => {
                            self.has_begun = true;
                            self.state = State::Data { left };
                        }
                        Ok(Step::Done(outcome)) => return Ok(Progress::Done { used, answer: self.finish(outcome) }),
                        Ok(Step::Suppressed) => {
                            let answer = Answer { outcome: Outcome::Suppressed, hits: 0, misses: 0, value_bytes: 0 };
                            return Ok(Progress::Done { used: 0, answer });
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
                    self.value_bytes += piece.len() as u64;
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
                    if self.is_last {
                        return Ok(Progress::Done { used, answer: self.finish(Outcome::Value) });
                    }
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

    fn finish(&mut self, outcome: Outcome) -> Answer {
        let Self { hits, misses, value_bytes, .. } = *self;
        (self.hits, self.misses, self.value_bytes, self.next_key) = (0, 0, 0, 0);
        (self.is_last, self.has_begun) = (false, false);
        self.state = State::Line;
        Answer { outcome, hits, misses, value_bytes }
    }

    /// What `line`, without its LF, says.
    #[inline]
    fn line(&mut self, asked: Asked<'_>, line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Step, ResponseError> {
        let Some(line) = line.strip_suffix(b"\r") else { return Err(ResponseError::BadLineEnd) };
        if memchr::memchr(b'\r', line).is_some() && !matches!(asked, Asked::Get { .. }) {
            return Err(ResponseError::BadLineEnd);
        }
        if let Asked::Get { keys } = asked {
            if let Some(value) = line.strip_prefix(b"VALUE ") {
                return self.value(keys, value, sink);
            }
            if line == b"END" {
                for index in self.next_key..keys.len() {
                    self.misses += 1;
                    sink(Event::Miss { index });
                }
                return Ok(Step::Done(Outcome::End));
            }
        }
        if let Some(outcome) = error_line(line, sink) {
            return Ok(Step::Done(outcome));
        }
        let outcome = match (asked, line) {
            (Asked::Store, b"STORED") => Outcome::Stored,
            (Asked::Store, b"NOT_STORED") => Outcome::NotStored,
            (Asked::Store, b"EXISTS") => Outcome::Exists,
            (Asked::Store | Asked::Delete | Asked::Touch | Asked::Count, b"NOT_FOUND") => Outcome::NotFound,
            (Asked::Delete, b"DELETED") => Outcome::Deleted,
            (Asked::Touch, b"TOUCHED") => Outcome::Touched,
            (Asked::Ok, b"OK") | (Asked::Stats, b"OK" | b"RESET") => Outcome::Ok,
            (Asked::Stats, b"END") => Outcome::End,
            (Asked::MetaNoop, b"MN") => Outcome::Noop,
            (Asked::MetaDebug, b"EN") => Outcome::Miss,
            // memcached pads the number with spaces where it has become shorter; they are behind it in the value, not here.
            (Asked::Count, digits) => match number::unsigned(digits) {
                Some(value) => Outcome::Number(value),
                None => return Err(ResponseError::Unexpected),
            },
            (Asked::Version, _) => match line.strip_prefix(b"VERSION ") {
                Some(text) => {
                    sink(Event::Text(text));
                    Outcome::Version
                }
                None => return Err(ResponseError::Unexpected),
            },
            (Asked::Stats, _) => match line.strip_prefix(b"STAT ") {
                Some(text) => {
                    sink(Event::Text(text));
                    return Ok(Step::Line);
                }
                None => return Err(ResponseError::Unexpected),
            },
            (Asked::MetaDebug, _) => match line.strip_prefix(b"ME ") {
                Some(text) => {
                    sink(Event::Text(text));
                    Outcome::Debug
                }
                None => return Err(ResponseError::Unexpected),
            },
            (Asked::Meta { quiet, opaque }, _) => return self.meta(quiet, opaque, line, sink),
            _ => return Err(ResponseError::Unexpected),
        };
        Ok(Step::Done(outcome))
    }

    /// `VALUE key flags bytes [cas]`, of which `VALUE ` is gone.
    #[inline]
    fn value(&mut self, keys: &[&[u8]], value: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<Step, ResponseError> {
        let mut words = value.split(|&byte| byte == b' ');
        let (key, flags, bytes) = (words.next(), words.next(), words.next());
        let cas = words.next();
        let is_all = words.next().is_none();
        let (Some(key), Some(flags), Some(bytes)) =
            (key, flags.and_then(number::unsigned), bytes.and_then(number::unsigned))
        else {
            return Err(ResponseError::BadValueLine);
        };
        let cas = match cas {
            Some(word) => Some(number::unsigned(word).ok_or(ResponseError::BadValueLine)?),
            None => None,
        };
        let (Ok(client_flags), true) = (u32::try_from(flags), is_all) else { return Err(ResponseError::BadValueLine) };
        self.check_size(bytes)?;
        let left = keys.get(self.next_key..).unwrap_or_default();
        let Some(skipped) = left.iter().position(|other| *other == key) else { return Err(ResponseError::WrongKey) };
        for index in self.next_key..self.next_key + skipped {
            self.misses += 1;
            sink(Event::Miss { index });
        }
        let index = self.next_key + skipped;
        self.next_key = index + 1;
        self.hits += 1;
        sink(Event::Value { index, client_flags, bytes, cas });
        Ok(Step::Value(bytes))
    }

    fn check_size(&self, bytes: u64) -> Result<(), ResponseError> {
        let limit = self.limits.value_bytes as u64;
        if bytes > limit { Err(ResponseError::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    /// `HD flags*`, `VA bytes flags*`, `EN`, `NF`, `NS`, `EX`.
    fn meta(
        &mut self,
        quiet: bool,
        opaque: &[u8],
        line: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<Step, ResponseError> {
        let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let code = words.next().unwrap_or_default();
        let outcome = match code {
            b"HD" => Outcome::Head,
            b"VA" => Outcome::Value,
            b"EN" => Outcome::Miss,
            b"NF" => Outcome::NotFound,
            b"NS" => Outcome::NotStored,
            b"EX" => Outcome::Exists,
            b"MN" if quiet => return Ok(Step::Suppressed),
            _ => return Err(ResponseError::Unexpected),
        };
        let bytes = match outcome {
            Outcome::Value => Some(words.next().and_then(number::unsigned).ok_or(ResponseError::BadValueLine)?),
            _ => None,
        };
        // A miss of `mg` has no flags; asked quietly it is not sent, so that this one is of a later request.
        let is_of_another = if outcome == Outcome::Miss {
            quiet
        } else {
            let found = words.clone().find(|word| word[0] == b'O').map_or(b"".as_slice(), |word| &word[1..]);
            found != opaque
        };
        if is_of_another {
            return if quiet { Ok(Step::Suppressed) } else { Err(ResponseError::WrongOpaque) };
        }
        if let Some(bytes) = bytes {
            self.check_size(bytes)?;
            sink(Event::Value { index: 0, client_flags: 0, bytes, cas: None });
        }
        for word in words {
            sink(Event::Flag { letter: word[0], argument: &word[1..] });
        }
        match (outcome, bytes) {
            (Outcome::Value, Some(bytes)) => {
                self.hits = 1;
                self.is_last = true;
                return Ok(Step::Value(bytes));
            }
            (Outcome::Head, _) => self.hits = 1,
            (Outcome::Miss, _) => {
                self.misses = 1;
                sink(Event::Miss { index: 0 });
            }
            _ => {}
        }
        Ok(Step::Done(outcome))
    }
}

fn error_line(line: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Option<Outcome> {
    if line == b"ERROR" {
        return Some(Outcome::Error);
    }
    let (text, outcome) = match line {
        [b'C', ..] => (line.strip_prefix(b"CLIENT_ERROR ")?, Outcome::ClientError),
        [b'S', ..] => (line.strip_prefix(b"SERVER_ERROR ")?, Outcome::ServerError),
        [b'E', ..] => (line.strip_prefix(b"ERROR ")?, Outcome::Error),
        _ => return None,
    };
    sink(Event::Text(text));
    Some(outcome)
}
