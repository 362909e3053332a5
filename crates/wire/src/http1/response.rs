//! Reads responses on the client side. Responses can arrive in pieces.

use std::ops::Range;

use super::error::MessageError;
use super::fields::{self, FieldError};
use super::framing::{Declared, Field, Remaining};
use super::{Body, Limits};

/// A request's method, reduced to the cases that affect response framing. Source: RFC 9112, section 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// GET, or any method other than HEAD and CONNECT.
    Get,
    /// HEAD, whose response never has a body.
    Head,
    /// CONNECT, which turns the connection into a tunnel after a 2xx response.
    Connect,
}

impl RequestMethod {
    /// Parses a method name, which is case-sensitive (RFC 9110, section 9.1).
    pub fn parse(method: &str) -> RequestMethod {
        match method {
            "HEAD" => RequestMethod::Head,
            "CONNECT" => RequestMethod::Connect,
            _ => RequestMethod::Get,
        }
    }
}

/// Status and sizes of a complete response, and whether the connection can be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Response {
    /// The status code, which may be any three digits.
    pub status: u16,
    /// Whether the connection can be reused: not after the stream's end or a 2xx to CONNECT (RFC 9112, section 9.3).
    pub keep_alive: bool,
    /// Size of the head and of any interim heads before it, in bytes.
    pub head_bytes: u64,
    /// Size of the body without chunk framing, in bytes.
    pub body_bytes: u64,
}

/// Parsed heads, shared by all connections of a worker. A head with identical bytes is not parsed again.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    known: [KnownHead; MEMO_HEADS],
    /// Index of the latest hit or insertion. The search starts there, because a server's responses rarely change.
    recent: usize,
}

/// Number of remembered heads, enough for a few URLs and statuses. Searching more heads would take longer than parsing.
const MEMO_HEADS: usize = 4;

#[derive(Debug, Clone, Default)]
struct KnownHead {
    /// The head, including its final empty line, so that only an identical head matches. Empty if the slot is unused.
    bytes: Vec<u8>,
    asked: Option<RequestMethod>,
    head: Head,
}

impl Memo {
    fn find(&mut self, asked: RequestMethod, bytes: &[u8], limits: &Limits, room: usize) -> Option<(Head, usize)> {
        for offset in 0..MEMO_HEADS {
            let index = (self.recent + offset) % MEMO_HEADS;
            let known = &self.known[index];
            if known.asked == Some(asked) && bytes.starts_with(&known.bytes) {
                self.recent = index;
                let is_allowed = known.bytes.len() <= room && known.head.fields <= limits.headers;
                return is_allowed.then_some((known.head, known.bytes.len()));
            }
        }
        None
    }

    fn keep(&mut self, asked: RequestMethod, bytes: &[u8], head: Head) {
        self.recent = (self.recent + 1) % MEMO_HEADS;
        let known = &mut self.known[self.recent];
        known.bytes.clear();
        known.bytes.extend_from_slice(bytes);
        known.asked = Some(asked);
        known.head = head;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Head {
    status: u16,
    keep_alive: bool,
    fields: usize,
    /// Framing of the body; `None` if the body ends with the stream.
    body: Option<Body>,
}

/// Reads a connection's responses, which can arrive in pieces. Buffers incomplete heads, but no bodies.
#[derive(Debug, Clone, Default)]
pub struct ResponseReader {
    limits: Limits,
    state: State,
    /// The part of the current response that has been read.
    response: Response,
    partial: Vec<u8>,
    parser: Parser,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Head,
    Body(Remaining),
    Failed(MessageError),
}

/// Maximum size of a buffer that is kept for the next partial head, in bytes.
const PARTIAL_KEPT_BYTES: usize = 4096;

impl ResponseReader {
    /// Creates a reader for a new connection. The reader allocates only if a head is split.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader { limits, ..ResponseReader::default() }
    }

    /// Reads `bytes`, the next part of the response to `asked`, and passes body data to `body` as slices of `bytes`.
    /// Skips interim responses (1xx). Returns the number of bytes used and the response, or `None` if it is incomplete.
    /// The next call must start with the first unused byte. Fails, also on all later calls, if RFC 9112 is violated.
    pub fn read(
        &mut self,
        memo: &mut Memo,
        asked: RequestMethod,
        bytes: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> Result<Option<(usize, Response)>, MessageError> {
        let mut used = 0;
        if let State::Head = self.state {
            if self.is_between()
                && let Some((head, head_bytes)) = memo.find(asked, bytes, &self.limits, self.limits.head_bytes)
            {
                // Fast path: a known head and a complete body need no state.
                if let Some(Body::Length(body_bytes)) = head.body
                    && body_bytes <= (bytes.len() - head_bytes) as u64
                {
                    let used = head_bytes + body_bytes as usize;
                    if body_bytes > 0 {
                        body(&bytes[head_bytes..used]);
                    }
                    let Head { status, keep_alive, .. } = head;
                    let response = Response { status, keep_alive, head_bytes: head_bytes as u64, body_bytes };
                    return Ok(Some((used, response)));
                }
                self.begin_body(head, head_bytes);
                used = head_bytes;
            } else {
                let read = self.read_heads(memo, asked, bytes).map_err(|error| self.fail(error))?;
                let Some(heads_bytes) = read else { return Ok(None) };
                used = heads_bytes;
            }
        }
        let rest = &bytes[used..];
        let data_bytes = &mut self.response.body_bytes;
        let data = |piece: &[u8]| {
            *data_bytes += piece.len() as u64;
            body(piece);
        };
        let taken = match &mut self.state {
            State::Body(remaining) => match remaining.read(&self.limits, rest, data) {
                Ok(taken) => taken,
                Err(error) => return Err(self.fail(error.into())),
            },
            State::Failed(error) => return Err(*error),
            State::Head => None,
        };
        Ok(taken.map(|taken| (used + taken, self.finish())))
    }

    /// Ends the stream. Returns the response that the end completes, or `None` if no response has started. Fails with
    /// [`MessageError::Truncated`] if a response is incomplete, or with an earlier error. If TLS ended without
    /// `close_notify`, the returned response may also be truncated (RFC 9112, section 9.8).
    pub fn end(&mut self) -> Result<Option<Response>, MessageError> {
        match self.state {
            State::Head if self.is_between() => Ok(None),
            State::Head => {
                // An incomplete line has not been checked yet.
                let partial = std::mem::take(&mut self.partial);
                let wrong = match partial.as_slice() {
                    [] => None,
                    partial => self.parser.advance(partial, &self.limits, partial.len()).err(),
                };
                Err(self.fail(wrong.unwrap_or(MessageError::Truncated(true))))
            }
            State::Body(Remaining::UntilEnd) => Ok(Some(self.finish())),
            State::Body(_) => Err(self.fail(MessageError::Truncated(false))),
            State::Failed(error) => Err(error),
        }
    }

    /// Whether the reader is between responses, so that the stream may end here.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Head) && self.partial.is_empty() && self.response.head_bytes == 0
    }

    fn begin_body(&mut self, head: Head, head_bytes: usize) {
        (self.response.status, self.response.keep_alive) = (head.status, head.keep_alive);
        self.response.head_bytes += head_bytes as u64;
        self.state = State::Body(Remaining::new(head.body, true));
    }

    fn finish(&mut self) -> Response {
        self.state = State::Head;
        std::mem::take(&mut self.response)
    }

    fn fail(&mut self, error: MessageError) -> MessageError {
        self.state = State::Failed(error);
        self.partial = Vec::new();
        error
    }

    /// Reads heads until a final one is complete. Returns the number of bytes used.
    fn read_heads(
        &mut self,
        memo: &mut Memo,
        asked: RequestMethod,
        bytes: &[u8],
    ) -> Result<Option<usize>, MessageError> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let room = self.limits.head_bytes.saturating_sub(self.response.head_bytes as usize);
            if self.partial.is_empty() {
                // `read` has already looked up the first head.
                let is_first = used == 0 && self.response.head_bytes == 0;
                if !is_first && let Some((head, head_bytes)) = memo.find(asked, rest, &self.limits, room) {
                    self.begin_body(head, head_bytes);
                    return Ok(Some(used + head_bytes));
                }
                self.parser = Parser::default();
                let Some(head_bytes) = self.parser.advance(rest, &self.limits, room)? else {
                    self.partial.extend_from_slice(rest);
                    return Ok(None);
                };
                used += head_bytes;
                if self.head_is_final(memo, asked, &rest[..head_bytes])? {
                    return Ok(Some(used));
                }
            } else {
                // Append line by line, so that body bytes are never copied.
                let end = memchr::memchr(b'\n', rest);
                let line = end.map_or(rest.len(), |end| end + 1).min(room.saturating_add(1) - self.partial.len());
                self.partial.extend_from_slice(&rest[..line]);
                used += line;
                if end.is_none() && self.partial.len() <= room && self.partial.len() >= BEGIN.len() {
                    return Ok(None);
                }
                let mut partial = std::mem::take(&mut self.partial);
                if self.parser.advance(&partial, &self.limits, room)?.is_some() {
                    let is_final = self.head_is_final(memo, asked, &partial)?;
                    if partial.capacity() <= PARTIAL_KEPT_BYTES {
                        partial.clear();
                        self.partial = partial;
                    }
                    if is_final {
                        return Ok(Some(used));
                    }
                } else {
                    self.partial = partial;
                }
            }
        }
        Ok(None)
    }

    /// Starts the body if the head is final, and skips an interim head. Returns whether the head is final.
    fn head_is_final(&mut self, memo: &mut Memo, asked: RequestMethod, bytes: &[u8]) -> Result<bool, MessageError> {
        match self.parser.status {
            101 => Err(MessageError::SwitchingProtocols),
            100..200 => {
                self.response.head_bytes += bytes.len() as u64;
                Ok(false)
            }
            _ => {
                let head = self.parser.head(asked)?;
                memo.keep(asked, bytes, head);
                self.begin_body(head, bytes.len());
                Ok(true)
            }
        }
    }
}

const BEGIN: &[u8] = b"HTTP/";

/// Parses a head from left to right. The first error wins, no matter how the head is split.
#[derive(Debug, Clone, Default)]
struct Parser {
    line_start: usize,
    lines: usize,
    fields: usize,
    status: u16,
    minor_version: u8,
    declared: Declared,
    /// A framing field that a folded line may continue, and the position of its value.
    pending: Option<(Field, Range<usize>)>,
    has_folds: bool,
}

impl Parser {
    /// Parses up to `room` bytes. `bytes` starts with the previous call's bytes. Returns the size of a complete head.
    fn advance(&mut self, bytes: &[u8], limits: &Limits, room: usize) -> Result<Option<usize>, MessageError> {
        // Ignore bytes beyond the limit, so that results do not depend on how the stream is split.
        let shown = &bytes[..bytes.len().min(room)];
        loop {
            let start = self.line_start;
            let line = &shown[start..];
            let end = match line {
                _ if self.lines == 0 => self.status_line(line)?,
                [b'\r', b'\n', ..] => {
                    self.settle(shown);
                    return Ok(Some(start + 2));
                }
                [b' ' | b'\t', ..] => self.folded_line(line)?,
                _ => self.field_line(shown, limits)?,
            };
            let Some(end) = end else {
                let is_too_large = bytes.len() > room;
                return if is_too_large { Err(MessageError::HeadTooLarge(limits.head_bytes)) } else { Ok(None) };
            };
            self.lines += 1;
            self.line_start = start + end + 2;
        }
    }

    fn field_error(&self, error: FieldError) -> MessageError {
        MessageError::Field { line: self.lines + 1, error }
    }

    /// Parses the status line. Returns the position of its end, or `None` if it is incomplete.
    fn status_line(&mut self, line: &[u8]) -> Result<Option<usize>, MessageError> {
        let (minor, digits) = match line {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9', b' ', a, b, c, _, ..]
                if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit() =>
            {
                (minor, [a, b, c])
            }
            _ => return wrong_status_line(line),
        };
        let end = match line[12] {
            b' ' => fields::text_end(&line[13..]).map_err(|error| self.field_error(error))?.map(|end| end + 13),
            b'\r' => fields::text_end(&line[12..]).map_err(|error| self.field_error(error))?.map(|end| end + 12),
            b'\n' => return Err(self.field_error(FieldError::BareLf)),
            _ => return Err(MessageError::BadStatusLine),
        };
        self.status = digits.iter().fold(0, |status, &&digit| status * 10 + u16::from(digit - b'0'));
        self.minor_version = minor - b'0';
        Ok(end)
    }

    fn folded_line(&mut self, line: &[u8]) -> Result<Option<usize>, MessageError> {
        if self.fields == 0 {
            return Err(self.field_error(FieldError::Fold));
        }
        let end = fields::text_end(line).map_err(|error| self.field_error(error))?;
        if let (Some((_, value)), Some(end)) = (&mut self.pending, end) {
            value.end = self.line_start + end;
            self.has_folds = true;
        }
        Ok(end)
    }

    fn field_line(&mut self, shown: &[u8], limits: &Limits) -> Result<Option<usize>, MessageError> {
        let line = &shown[self.line_start..];
        let Some(colon) = fields::name_end(line).map_err(|error| self.field_error(error))? else { return Ok(None) };
        let value = fields::text_end(&line[colon + 1..]).map_err(|error| self.field_error(error))?;
        let Some(value_bytes) = value else { return Ok(None) };
        self.settle(shown);
        self.fields += 1;
        if self.fields > limits.headers {
            return Err(MessageError::TooManyHeaders(limits.headers));
        }
        let end = colon + 1 + value_bytes;
        if let Some(field) = Field::from_name(&line[..colon]) {
            self.pending = Some((field, self.line_start + colon + 1..self.line_start + end));
        }
        Ok(Some(end))
    }

    /// Applies the pending field once no further line can continue it.
    fn settle(&mut self, shown: &[u8]) {
        let Some((field, value)) = self.pending.take() else { return };
        let value = &shown[value];
        if self.has_folds {
            // Each fold is replaced by one or more spaces (RFC 9112, section 5.2).
            let spaced = |&byte: &u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
            let value = value.iter().map(spaced).collect::<Vec<_>>();
            self.declared.take(field, value.trim_ascii());
        } else {
            self.declared.take(field, value.trim_ascii());
        }
    }

    /// Interprets the head as a response to `asked`, by the rules of RFC 9112, section 6.3, in order.
    fn head(&self, asked: RequestMethod) -> Result<Head, MessageError> {
        let (status, fields) = (self.status, self.fields);
        let keep_alive = self.declared.persists(self.minor_version);
        let head = |keep_alive, body| Ok(Head { status, keep_alive, fields, body });
        // Rule 2 comes before rule 1: a 204 to CONNECT also opens a tunnel.
        if asked == RequestMethod::Connect && (200..300).contains(&status) {
            return head(false, Some(Body::Length(0)));
        }
        if asked == RequestMethod::Head || matches!(status, 204 | 304) {
            return head(keep_alive, Some(Body::Length(0)));
        }
        let length = self.declared.length(self.minor_version)?;
        match self.declared.codings {
            None => head(keep_alive && length.is_some(), length.map(Body::Length)),
            Some(codings) if codings.is_invalid || codings.count == 0 => Err(MessageError::BadCodings),
            Some(codings) if codings.end_chunked() => head(keep_alive, Some(Body::Chunked)),
            Some(_) => head(false, None),
        }
    }
}

/// Fails with the error in a status line, or returns `None` if the line is merely incomplete.
fn wrong_status_line(line: &[u8]) -> Result<Option<usize>, MessageError> {
    for (at, &byte) in line.iter().enumerate().take(12) {
        match at {
            0 if byte == b'\r' || byte == b'\n' => return Err(MessageError::EmptyLine),
            0..5 if byte != BEGIN[at] => return Err(MessageError::NotHttp),
            6 if byte != b'.' => return Err(MessageError::BadStatusLine),
            8 if byte != b' ' => return Err(MessageError::BadStatusLine),
            5 | 7 | 9..12 if !byte.is_ascii_digit() => return Err(MessageError::BadStatusLine),
            7 if line[5] != b'1' => return Err(MessageError::OtherVersion(line[5] - b'0')),
            _ => {}
        }
    }
    Ok(None)
}
