//! Reads requests on the server side. Requests can arrive in pieces.

use std::ops::Range;

use super::Limits;
use super::command::Name;
use crate::decimal;

/// The name and arguments of a request. Borrows the input (`'b`) and the reader's positions (`'r`).
#[derive(Debug, Clone, Copy)]
pub struct Request<'b, 'r> {
    bytes: &'b [u8],
    places: &'r [Range<u32>],
    /// Arguments of an inline request with quotes removed. Their positions start at `INLINE`.
    unquoted: &'r [u8],
}

/// The first position that refers to `unquoted`.
const INLINE: u32 = 1 << 31;

impl<'b: 'r, 'r> Request<'b, 'r> {
    /// The number of arguments, including the name.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The argument at this index; empty if out of range. Index 0 is the name.
    pub fn argument(&self, index: usize) -> &'r [u8] {
        self.places.get(index).map_or(b"", |place| self.at(place))
    }

    /// All arguments in order, the name first.
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

    /// Returns the command. Fails with [`Refusal::UnknownCommand`] or [`Refusal::WrongCount`]; the stream stays usable.
    pub fn command(&self) -> Result<Name, Refusal> {
        let name = Name::parse(self.argument(0)).ok_or(Refusal::UnknownCommand)?;
        if name.takes(self.count()) { Ok(name) } else { Err(Refusal::WrongCount(name)) }
    }
}

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The command is not supported.
    #[error("unknown command")]
    UnknownCommand,
    /// The command does not accept this number of arguments. Contains the command.
    #[error("wrong number of arguments for '{}' command", .0.text())]
    WrongCount(Name),
    /// An argument exceeds the limit. Contains the limit, in bytes.
    #[error("an argument over the limit of {0} bytes")]
    TooLarge(usize),
    /// All arguments together exceed the limit. Contains the limit, in bytes.
    #[error("arguments over the limit of {0} bytes together")]
    RequestTooLarge(usize),
    /// Quotes are not closed, or text directly follows closing quotes.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// The request violates the protocol. Contains the violation.
    #[error("Protocol error: {0}")]
    Protocol(&'static str),
    /// A byte other than `$` precedes an argument. Contains the byte.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0).escape_default())]
    NoLength(u8),
}

const BAD_COUNT: Refusal = Refusal::Protocol("invalid multibulk length");
/// A length that is not a number, is negative, or is larger than can be skipped.
const BAD_LENGTH: Refusal = Refusal::Protocol("invalid bulk length");
/// No CRLF after an argument or its length.
const NO_END: Refusal = Refusal::Protocol("expected CRLF");

impl Refusal {
    /// Whether to close the connection after the response, because the next request cannot be found.
    pub fn closes(self) -> bool {
        matches!(self, Refusal::Protocol(_) | Refusal::NoLength(_))
    }

    /// Appends the error response: `-ERR` and the reason.
    pub fn compose(self, out: &mut Vec<u8>) {
        super::compose_error(out, &format!("ERR {self}"));
    }
}

/// The result of [`RequestReader::read`].
#[derive(Debug, Clone, Copy)]
pub enum Read<'b, 'r> {
    /// A complete request.
    Request {
        /// Number of input bytes that can be discarded.
        used: usize,
        /// Name and arguments of the request.
        request: Request<'b, 'r>,
    },
    /// The next request is incomplete.
    Need {
        /// Number of input bytes that were skipped and can be discarded.
        used: usize,
        /// Minimum number of additional bytes that the next call of `read` needs.
        more: usize,
    },
    /// A bad request.
    Refused {
        /// Number of input bytes that can be discarded.
        used: usize,
        /// Reason for the rejection.
        refusal: Refusal,
    },
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before a request, or within an inline one. Contains the number of bytes that were searched for a line end.
    Start(usize),
    /// Within an array that has been parsed up to `at`, with `left` arguments to come.
    Array { left: usize, at: usize },
    /// An argument of a rejected array is being skipped; this many bytes of it are left, including its CRLF.
    SkipArgument { left: usize, bytes: u64 },
    /// The connection must be closed, and input is ignored.
    Closed,
}

/// Maximum size of an argument that is skipped, in bytes: Redis' `proto-max-bulk-len`.
const SKIPPED_MAX_BYTES: u64 = 512 << 20;

/// Maximum length in bytes of a line with a valid count or length. Longer lines are rejected before they end.
const LENGTH_LINE_MAX_BYTES: usize = 32;

/// Reads the requests of one connection. Keeps argument positions, 8 bytes each, and unquoted text.
#[derive(Debug, Clone)]
pub struct RequestReader {
    limits: Limits,
    state: State,
    places: Vec<Range<u32>>,
    unquoted: Vec<u8>,
    argument_bytes: usize,
    /// Why the current array will be rejected at its end; `None` if it is valid so far.
    refusal: Option<Refusal>,
}

impl RequestReader {
    /// Creates a reader for a new connection. The reader allocates at the first request.
    pub fn new(limits: Limits) -> RequestReader {
        let state = State::Start(0);
        // These caps keep positions below 2^31.
        let limits = Limits {
            request_bytes: limits.request_bytes.min(1 << 29),
            arguments: limits.arguments.min(1 << 24),
            line_bytes: limits.line_bytes.min(1 << 29),
            ..limits
        };
        RequestReader { limits, state, places: Vec::new(), unquoted: Vec::new(), argument_bytes: 0, refusal: None }
    }

    /// Reads the next request from `bytes`, the unused part of the stream. The next call must get the bytes after
    /// `used`, plus new ones if the result is [`Read::Need`]. Results do not depend on how the stream is split.
    pub fn read<'b: 'r, 'r>(&'r mut self, bytes: &'b [u8]) -> Read<'b, 'r> {
        let mut base = 0;
        loop {
            let rest = &bytes[base..];
            match self.state {
                State::Start(scanned) => match rest.first() {
                    None => return Read::Need { used: base, more: 1 },
                    Some(b'*') => {
                        match self.length(&rest[1..], Refusal::Protocol("too big mbulk count string"), BAD_COUNT) {
                            Ok(Some((value, used))) if value <= 0 => base += 1 + used,
                            Ok(Some((value, used))) => {
                                let Some(left) =
                                    usize::try_from(value).ok().filter(|left| *left <= self.limits.arguments)
                                else {
                                    return self.close(bytes, BAD_COUNT);
                                };
                                self.places.clear();
                                self.argument_bytes = 0;
                                self.state = State::Array { left, at: 1 + used };
                            }
                            Ok(None) => return Read::Need { used: base, more: 1 },
                            Err(refusal) => return self.close(bytes, refusal),
                        }
                    }
                    Some(_) => {
                        let shown = &rest[..rest.len().min(self.limits.line_bytes)];
                        let from = scanned.min(shown.len());
                        let Some(end) = memchr::memchr(b'\n', &shown[from..]).map(|end| from + end) else {
                            if shown.len() == self.limits.line_bytes {
                                return self.close(bytes, Refusal::Protocol("too big inline request"));
                            }
                            self.state = State::Start(rest.len());
                            return Read::Need { used: base, more: 1 };
                        };
                        self.state = State::Start(0);
                        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
                        match split_inline(line, &mut self.places, &mut self.unquoted) {
                            Ok(()) if self.places.is_empty() => base += end + 1,
                            Ok(()) => return self.lend(bytes, base, end + 1),
                            Err(refusal) => return Read::Refused { used: base + end + 1, refusal },
                        }
                    }
                },
                State::Array { left: 0, at } => {
                    self.state = State::Start(0);
                    return match self.refusal.take() {
                        Some(refusal) => Read::Refused { used: base + at, refusal },
                        None => self.lend(bytes, base, at),
                    };
                }
                State::Array { left, at } => match self.argument_length(&rest[at.min(rest.len())..]) {
                    Ok(Some((length, used))) => {
                        let kept = self.argument_bytes as u64 + length;
                        if length > self.limits.bulk_bytes as u64 {
                            self.refusal.get_or_insert(Refusal::TooLarge(self.limits.bulk_bytes));
                        } else if kept > self.limits.request_bytes as u64 {
                            self.refusal.get_or_insert(Refusal::RequestTooLarge(self.limits.request_bytes));
                        }
                        if self.refusal.is_some() {
                            base += at + used;
                            self.state = State::SkipArgument { left: left - 1, bytes: length + 2 };
                            continue;
                        }
                        let (start, length) = (at + used, length as usize);
                        let end = start + length;
                        if rest.len() < end + 2 {
                            return Read::Need { used: base, more: end + 2 - rest.len() };
                        }
                        if &rest[end..end + 2] != b"\r\n" {
                            return self.close(bytes, NO_END);
                        }
                        self.places.push(start as u32..end as u32);
                        self.argument_bytes += length;
                        self.state = State::Array { left: left - 1, at: end + 2 };
                    }
                    Ok(None) => return Read::Need { used: base, more: 1 },
                    Err(refusal) => return self.close(bytes, refusal),
                },
                State::SkipArgument { left, bytes: length } => {
                    // Check the last two bytes together, so that a split between them has no effect.
                    let skipped = (length - 2).min(rest.len() as u64);
                    if skipped < length - 2 || rest.len() as u64 - skipped < 2 {
                        base += skipped as usize;
                        self.state = State::SkipArgument { left, bytes: length - skipped };
                        let more = usize::try_from(length - skipped).unwrap_or(usize::MAX) - (bytes.len() - base);
                        return Read::Need { used: base, more };
                    }
                    let end = skipped as usize;
                    if &rest[end..end + 2] != b"\r\n" {
                        return self.close(bytes, NO_END);
                    }
                    base += end + 2;
                    self.state = State::Array { left, at: 0 };
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

    fn close<'b, 'r>(&mut self, bytes: &[u8], refusal: Refusal) -> Read<'b, 'r> {
        self.state = State::Closed;
        Read::Refused { used: bytes.len(), refusal }
    }

    /// Parses `$`, a length and CRLF. Returns the length and the number of bytes used, or `None` if CRLF is missing.
    fn argument_length(&self, bytes: &[u8]) -> Result<Option<(u64, usize)>, Refusal> {
        match bytes.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&found) => return Err(Refusal::NoLength(found)),
        }
        let length = self.length(&bytes[1..], Refusal::Protocol("too big bulk count string"), BAD_LENGTH)?;
        let Some((value, used)) = length else { return Ok(None) };
        match u64::try_from(value) {
            Ok(value) if value <= SKIPPED_MAX_BYTES.max(self.limits.bulk_bytes as u64) => Ok(Some((value, used + 1))),
            _ => Err(BAD_LENGTH),
        }
    }

    /// Parses a number and CRLF. Returns its value and the number of bytes used, or `None` if CRLF is missing.
    fn length(&self, bytes: &[u8], too_long: Refusal, bad: Refusal) -> Result<Option<(i64, usize)>, Refusal> {
        let limit = LENGTH_LINE_MAX_BYTES.min(self.limits.line_bytes);
        let shown = &bytes[..bytes.len().min(limit)];
        let Some(end) = shown.iter().position(|&byte| byte == b'\r') else {
            return if shown.len() == limit { Err(too_long) } else { Ok(None) };
        };
        match bytes.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => decimal::canonical(&bytes[..end]).map(|value| Some((value, end + 2))).ok_or(bad),
            Some(_) => Err(NO_END),
        }
    }
}

/// Splits an inline request like Redis' `sdssplitargs`. Double quotes allow `\n \r \t \b \a \xHH`, single quotes `\'`.
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

/// Letters after a backslash within double quotes, and the bytes for which they stand; others stand for themselves.
const ESCAPES: [(u8, u8); 5] = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 0x08), (b'a', 0x07)];

/// Appends the unquoted form of the word at the start of `bytes`. Returns the size of the quoted word in bytes.
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
                    (decimal::hexadecimal(*high) << 4 | decimal::hexadecimal(*low), 4)
                }
                [b'\\', escaped, ..] if quote == b'"' => {
                    let known = ESCAPES.iter().find(|(letter, _)| letter == escaped);
                    (known.map_or(*escaped, |(_, byte)| *byte), 2)
                }
                [b'\\', b'\'', ..] if quote == b'\'' => (b'\'', 2),
                [other, rest @ ..] if *other == quote => {
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
