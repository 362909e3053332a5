//! Requests, as a server reads them.

use std::ops::Range;

use super::Limits;
use super::command::Name;
use crate::number;

/// A request: a name and its arguments, in the bytes they were read from, `'b`, at places that the reader remembers until it reads on, `'r`. There
/// is at least the name.
#[derive(Debug, Clone, Copy)]
pub struct Request<'b, 'r> {
    bytes: &'b [u8],
    places: &'r [Range<u32>],
    /// What quotes of an inline request stand for, which are not in the bytes; they lie behind `INLINE`.
    unquoted: &'r [u8],
}

/// Places from here on lie in what was unquoted.
const INLINE: u32 = 1 << 31;

impl<'b: 'r, 'r> Request<'b, 'r> {
    /// How many arguments there are, with the name.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The argument of this index; 0 is the name. Empty where there is none.
    #[inline]
    pub fn argument(&self, index: usize) -> &'r [u8] {
        self.places.get(index).map_or(b"", |place| self.at(place))
    }

    /// All of them in their order, the name first.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &'r [u8]> + use<'b, 'r> {
        let request = *self;
        self.places.iter().map(move |place| request.at(place))
    }

    fn at(&self, place: &Range<u32>) -> &'r [u8] {
        if place.start >= INLINE {
            &self.unquoted[(place.start - INLINE) as usize..(place.end - INLINE) as usize]
        } else {
            &self.bytes[place.start as usize..place.end as usize]
        }
    }

    /// The command that it names, with a number of arguments that the command has.
    ///
    /// # Errors
    ///
    /// [`Refusal::UnknownCommand`], [`Refusal::WrongCount`]. The stream is in step.
    #[inline]
    pub fn command(&self) -> Result<Name, Refusal> {
        let name = Name::parse(self.argument(0)).ok_or(Refusal::UnknownCommand)?;
        if name.takes(self.count()) { Ok(name) } else { Err(Refusal::WrongCount { name }) }
    }
}

/// Why a request is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such command.
    #[error("unknown command")]
    UnknownCommand,
    /// The command does not have so many arguments.
    #[error("wrong number of arguments for '{}' command", name.text())]
    WrongCount {
        /// The command.
        name: Name,
    },
    /// An argument over the limit.
    #[error("an argument over the limit of {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// All arguments together are over the limit.
    #[error("arguments over the limit of {limit} bytes together")]
    RequestTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Quotes that do not close, or something behind them.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// A count of arguments that is no number, or over the limit.
    #[error("Protocol error: invalid multibulk length")]
    BadCount,
    /// A length that is no number, negative, or beyond what is skipped.
    #[error("Protocol error: invalid bulk length")]
    BadLength,
    /// Another byte than `$` before an argument.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.found).escape_default())]
    NoLength {
        /// The byte.
        found: u8,
    },
    /// An argument, or its length, that does not end in CRLF where it should.
    #[error("Protocol error: expected CRLF")]
    NoEnd,
    /// An inline request over the limit of a line.
    #[error("Protocol error: too big inline request")]
    LineTooLong,
    /// A count over the limit of a line.
    #[error("Protocol error: too big mbulk count string")]
    CountTooLong,
    /// A length over the limit of a line.
    #[error("Protocol error: too big bulk count string")]
    LengthTooLong,
}

impl Refusal {
    /// Whether where the next request begins is not known: the connection is to be closed after the answer.
    pub fn closes(self) -> bool {
        !matches!(
            self,
            Refusal::UnknownCommand
                | Refusal::WrongCount { .. }
                | Refusal::TooLarge { .. }
                | Refusal::RequestTooLarge { .. }
                | Refusal::Quotes
        )
    }

    /// Appends the error that answers it: `-ERR` and its words.
    pub fn compose(self, out: &mut Vec<u8>) {
        super::compose_error(out, &format!("ERR {self}"));
    }
}

/// What the bytes at the front of a connection's stream come to.
#[derive(Debug, Clone, Copy)]
pub enum Read<'b, 'r> {
    /// A request.
    Request {
        /// Bytes taken.
        used: usize,
        /// The request.
        request: Request<'b, 'r>,
    },
    /// It is not all there.
    Need {
        /// Bytes taken, which were skipped.
        used: usize,
        /// At least so many more are needed before it is worth reading again.
        more: usize,
    },
    /// A bad request.
    Refused {
        /// Bytes taken.
        used: usize,
        /// Why.
        refusal: Refusal,
    },
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before a request, or in an inline one, so much of which has no end.
    Start {
        scanned: usize,
    },
    /// In an array, with so many arguments to come; what was read of it ends at `at`.
    Array {
        left: usize,
        at: usize,
    },
    /// The same, within an argument.
    Argument {
        left: usize,
        at: usize,
        bytes: usize,
    },
    /// In an array that is refused when it ends: nothing of it is kept.
    Skip {
        left: usize,
        refusal: Refusal,
    },
    /// The same, within an argument and its CRLF.
    SkipArgument {
        left: usize,
        bytes: u64,
        refusal: Refusal,
    },
    Closed,
}

/// The longest argument that is skipped, as Redis' `proto-max-bulk-len`.
const SKIPPED_MAX_BYTES: u64 = 512 << 20;

/// Bytes of a count or length with its sign and end that can be a number: longer lines are refused without waiting for their end.
const LENGTH_LINE_MAX_BYTES: usize = 32;

/// Reads the requests of one connection. Of a request it keeps where its arguments are, 8 bytes each, and what its quotes stand for.
#[derive(Debug, Clone)]
pub struct RequestReader {
    limits: Limits,
    state: State,
    places: Vec<Range<u32>>,
    unquoted: Vec<u8>,
    /// Bytes of the arguments that are kept.
    argument_bytes: usize,
}

/// A length or count at the front of some bytes.
enum Length {
    Is { value: i64, used: usize },
    More,
    TooLong,
    NoEnd,
    Bad,
}

impl RequestReader {
    /// For a connection that has just been opened. Allocates nothing before a request comes.
    pub fn new(limits: Limits) -> RequestReader {
        let state = State::Start { scanned: 0 };
        // Places are numbers of 31 bits.
        let limits = Limits {
            request_bytes: limits.request_bytes.min(1 << 29),
            arguments: limits.arguments.min(1 << 24),
            line_bytes: limits.line_bytes.min(1 << 29),
            ..limits
        };
        RequestReader { limits, state, places: Vec::new(), unquoted: Vec::new(), argument_bytes: 0 }
    }

    /// Reads the next request off `bytes`: what has come and was not taken yet. Whoever calls again calls with the bytes behind `used`, and
    /// with more of them after [`Read::Need`]. How the stream is cut into calls changes neither requests nor refusals, and nothing is
    /// looked at twice but a count or length that has not come whole.
    pub fn read<'b: 'r, 'r>(&'r mut self, bytes: &'b [u8]) -> Read<'b, 'r> {
        // Bytes that were skipped and precede the request.
        let mut base = 0;
        loop {
            let rest = &bytes[base..];
            match self.state {
                State::Start { scanned } => match rest.first() {
                    None => return Read::Need { used: base, more: 1 },
                    Some(b'*') => match self.length(&rest[1..]) {
                        Length::Is { value, used } if value <= 0 => base += 1 + used,
                        Length::Is { value, used } => {
                            let Some(left) = usize::try_from(value).ok().filter(|left| *left <= self.limits.arguments)
                            else {
                                return self.close(bytes, Refusal::BadCount);
                            };
                            self.places.clear();
                            self.argument_bytes = 0;
                            self.state = State::Array { left, at: 1 + used };
                        }
                        Length::More => return Read::Need { used: base, more: 1 },
                        Length::TooLong => return self.close(bytes, Refusal::CountTooLong),
                        Length::NoEnd => return self.close(bytes, Refusal::NoEnd),
                        Length::Bad => return self.close(bytes, Refusal::BadCount),
                    },
                    Some(_) => match self.inline_end(rest, scanned) {
                        Ok(Some(end)) => {
                            self.state = State::Start { scanned: 0 };
                            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
                            match split_inline(line, &mut self.places, &mut self.unquoted) {
                                Ok(()) if self.places.is_empty() => base += end + 1,
                                Ok(()) => return self.lend(bytes, base, end + 1),
                                Err(refusal) => return Read::Refused { used: base + end + 1, refusal },
                            }
                        }
                        Ok(None) => {
                            self.state = State::Start { scanned: rest.len() };
                            return Read::Need { used: base, more: 1 };
                        }
                        Err(refusal) => return self.close(bytes, refusal),
                    },
                },
                State::Array { left: 0, at } => {
                    self.state = State::Start { scanned: 0 };
                    return self.lend(bytes, base, at);
                }
                State::Array { left, at } => match self.argument_length(&rest[at.min(rest.len())..]) {
                    Ok(Some((length, used))) => {
                        let kept = self.argument_bytes as u64 + length;
                        let refusal = if length > self.limits.bulk_bytes as u64 {
                            Some(Refusal::TooLarge { limit: self.limits.bulk_bytes })
                        } else if kept > self.limits.request_bytes as u64 {
                            Some(Refusal::RequestTooLarge { limit: self.limits.request_bytes })
                        } else {
                            None
                        };
                        if let Some(refusal) = refusal {
                            base += at + used;
                            self.state = State::SkipArgument { left: left - 1, bytes: length + 2, refusal };
                        } else {
                            self.state = State::Argument { left, at: at + used, bytes: length as usize };
                        }
                    }
                    Ok(None) => return Read::Need { used: base, more: 1 },
                    Err(refusal) => return self.close(bytes, refusal),
                },
                State::Argument { left, at, bytes: length } => {
                    let end = at + length;
                    if rest.len() < end + 2 {
                        return Read::Need { used: base, more: end + 2 - rest.len() };
                    }
                    if &rest[end..end + 2] != b"\r\n" {
                        return self.close(bytes, Refusal::NoEnd);
                    }
                    // The limits of `new` keep requests below 2 GiB.
                    self.places.push(at as u32..end as u32);
                    self.argument_bytes += length;
                    self.state = State::Array { left: left - 1, at: end + 2 };
                }
                State::Skip { left: 0, refusal } => {
                    self.state = State::Start { scanned: 0 };
                    return Read::Refused { used: base, refusal };
                }
                State::Skip { left, refusal } => match self.argument_length(rest) {
                    Ok(Some((length, used))) => {
                        base += used;
                        self.state = State::SkipArgument { left: left - 1, bytes: length + 2, refusal };
                    }
                    Ok(None) => return Read::Need { used: base, more: 1 },
                    Err(refusal) => return self.close(bytes, refusal),
                },
                State::SkipArgument { left, bytes: length, refusal } => {
                    // The two last are looked at together, so that a wrong one is found however the stream is cut.
                    let skipped = (length - 2).min(rest.len() as u64);
                    if skipped < length - 2 || rest.len() as u64 - skipped < 2 {
                        base += skipped as usize;
                        self.state = State::SkipArgument { left, bytes: length - skipped, refusal };
                        let more = usize::try_from(length - skipped).unwrap_or(usize::MAX) - (bytes.len() - base);
                        return Read::Need { used: base, more };
                    }
                    let end = skipped as usize;
                    if &rest[end..end + 2] != b"\r\n" {
                        return self.close(bytes, Refusal::NoEnd);
                    }
                    base += end + 2;
                    self.state = State::Skip { left, refusal };
                }
                State::Closed => return Read::Need { used: bytes.len(), more: 1 },
            }
        }
    }

    fn lend<'b: 'r, 'r>(&'r self, bytes: &'b [u8], base: usize, request_bytes: usize) -> Read<'b, 'r> {
        let bytes = &bytes[base..base + request_bytes];
        let request = Request { bytes, places: &self.places, unquoted: &self.unquoted };
        Read::Request { used: base + request_bytes, request }
    }

    #[cold]
    fn close<'b, 'r>(&mut self, bytes: &[u8], refusal: Refusal) -> Read<'b, 'r> {
        self.state = State::Closed;
        Read::Refused { used: bytes.len(), refusal }
    }

    /// `$`, a length and CRLF, and how many bytes that is.
    #[inline]
    fn argument_length(&self, bytes: &[u8]) -> Result<Option<(u64, usize)>, Refusal> {
        match bytes.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&found) => return Err(Refusal::NoLength { found }),
        }
        match self.length(&bytes[1..]) {
            Length::Is { value, used } => match u64::try_from(value) {
                Ok(value) if value <= SKIPPED_MAX_BYTES.max(self.limits.bulk_bytes as u64) => {
                    Ok(Some((value, used + 1)))
                }
                _ => Err(Refusal::BadLength),
            },
            Length::More => Ok(None),
            Length::TooLong => Err(Refusal::LengthTooLong),
            Length::NoEnd => Err(Refusal::NoEnd),
            Length::Bad => Err(Refusal::BadLength),
        }
    }

    /// A number and CRLF.
    #[inline]
    fn length(&self, bytes: &[u8]) -> Length {
        let limit = LENGTH_LINE_MAX_BYTES.min(self.limits.line_bytes);
        let shown = &bytes[..bytes.len().min(limit)];
        let Some(end) = shown.iter().position(|&byte| byte == b'\r') else {
            return if shown.len() == limit { Length::TooLong } else { Length::More };
        };
        match bytes.get(end + 1) {
            None => Length::More,
            Some(b'\n') => match (number::signed(&bytes[..end]), &bytes[..end]) {
                // As Redis: a number is written in one way.
                (_, [b'0', _, ..] | [b'-', b'0', ..]) | (None, _) => Length::Bad,
                (Some(value), _) => Length::Is { value, used: end + 2 },
            },
            Some(_) => Length::NoEnd,
        }
    }

    fn inline_end(&self, rest: &[u8], scanned: usize) -> Result<Option<usize>, Refusal> {
        let limit = self.limits.line_bytes;
        let shown = &rest[..rest.len().min(limit)];
        let from = scanned.min(shown.len());
        match memchr::memchr(b'\n', &shown[from..]) {
            Some(end) => Ok(Some(from + end)),
            None if shown.len() == limit => Err(Refusal::LineTooLong),
            None => Ok(None),
        }
    }
}

/// The words of an inline request. Source: Redis, `sdssplitargs`: quotes with `\n \r \t \b \a \xHH` in double ones, `\'` in single ones.
fn split_inline(line: &[u8], places: &mut Vec<Range<u32>>, unquoted: &mut Vec<u8>) -> Result<(), Refusal> {
    places.clear();
    unquoted.clear();
    let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0);
    let mut at = 0;
    while at < line.len() {
        if is_space(line[at]) {
            at += 1;
            continue;
        }
        let word = &line[at..];
        let bytes = word.iter().position(|&byte| is_space(byte)).unwrap_or(word.len());
        if memchr::memchr2(b'"', b'\'', &word[..bytes]).is_none() {
            places.push(at as u32..(at + bytes) as u32);
            at += bytes;
            continue;
        }
        let start = unquoted.len() as u32;
        at += unquote(word, unquoted, is_space)?;
        places.push(INLINE + start..INLINE + unquoted.len() as u32);
    }
    Ok(())
}

/// Appends what the word at the front of `bytes` stands for; gives the bytes it has.
fn unquote(bytes: &[u8], out: &mut Vec<u8>, is_space: impl Fn(u8) -> bool) -> Result<usize, Refusal> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if is_space(byte) {
            return Ok(at);
        }
        at += 1;
        if byte != b'"' && byte != b'\'' {
            out.push(byte);
            continue;
        }
        let quote = byte;
        loop {
            let (plain, used) = match &bytes[at..] {
                [] => return Err(Refusal::Quotes),
                [b'\\', b'x', high, low, ..]
                    if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    (hex(*high) << 4 | hex(*low), 4)
                }
                [b'\\', escaped, ..] if quote == b'"' => (
                    match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 0x08,
                        b'a' => 0x07,
                        other => *other,
                    },
                    2,
                ),
                [b'\\', b'\'', ..] if quote == b'\'' => (b'\'', 2),
                [other, rest @ ..] if *other == quote => {
                    // Behind the quote the word is over.
                    if rest.first().is_some_and(|&byte| !is_space(byte)) {
                        return Err(Refusal::Quotes);
                    }
                    return Ok(at + 1);
                }
                [other, ..] => (*other, 1),
            };
            out.push(plain);
            at += used;
        }
    }
    Ok(at)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
