//! Responses, as a client reads them off one connection.

use super::chunks::{ChunkError, Chunks};
use super::fields::{self, FieldError};
use super::framing::{ContentLength, Declared, Field, TransferCoding};
use super::{Body, Limits};

/// What of a request matters for the framing of its response. Source: RFC 9112 section 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// GET, and every method that is neither HEAD nor CONNECT.
    Get,
    /// HEAD: no response has a body.
    Head,
    /// CONNECT: after a 2xx the connection is a tunnel.
    Connect,
}

impl Asked {
    /// Of a method, which is case-sensitive (RFC 9110 section 9.1).
    pub fn by(method: &str) -> Asked {
        match method {
            "HEAD" => Asked::Head,
            "CONNECT" => Asked::Connect,
            _ => Asked::Get,
        }
    }
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The status code: three digits, whether a code of that number is defined or not.
    pub status: u16,
    /// Whether the connection may carry another request. Source: RFC 9112 section 9.3. Always false after a body that ended with the
    /// stream and after a 2xx to CONNECT.
    pub keep_alive: bool,
    /// Bytes of the head, with the heads of interim responses before it.
    pub head_bytes: u64,
    /// Bytes of the body: the data of chunks without their framing.
    pub body_bytes: u64,
}

/// How far a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, and the response goes on.
    More,
    /// The response is complete.
    Done {
        /// How many of the bytes were its own; what follows them is the next response's.
        used: usize,
        /// What it was.
        response: Response,
    },
}

/// Why a stream of responses cannot be read on. The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The bytes do not begin with `HTTP/`: HTTP/0.9, HTTP/2, TLS, another protocol, or what a body is longer than announced.
    #[error("what came does not begin with `HTTP/`: another protocol, or a body longer than announced")]
    NotHttp,
    /// RFC 9112 2.2: an empty line where a response should begin.
    #[error("an empty line before the status line: a body longer than announced looks like that")]
    EmptyLine,
    /// RFC 9112 4: not `HTTP/1.1 200 OK`.
    #[error("a status line that is not `HTTP/1.1`, space, three digits")]
    BadStatusLine,
    /// RFC 9112 2.3: another major version.
    #[error("HTTP/{major}, which is not HTTP/1")]
    BadVersion {
        /// The major version.
        major: u8,
    },
    /// A line of the head is invalid.
    #[error("{error} in line {line} of the head")]
    Field {
        /// The line, counted from 1, which is the status line.
        line: usize,
        /// What is wrong with it.
        error: FieldError,
    },
    /// The head is larger than the limit.
    #[error("a head of more than {limit} bytes")]
    HeadTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The head has more fields than the limit.
    #[error("more than {limit} fields")]
    TooManyHeaders {
        /// The limit.
        limit: usize,
    },
    /// RFC 9112 6.3, rule 5: lengths that differ.
    #[error("`Content-Length` fields that differ")]
    ConflictingLength,
    /// RFC 9112 6.3, rule 5: not a number, or one that does not fit into 64 bits.
    #[error("a `Content-Length` that is no number below 2^64")]
    BadLength,
    /// RFC 9112 6.3, rule 3: one of the two lies.
    #[error("`Transfer-Encoding` together with `Content-Length`")]
    EncodingWithLength,
    /// RFC 9112 6.1: HTTP/1.0 has no transfer codings, so the framing is faulty.
    #[error("`Transfer-Encoding` in HTTP/1.0")]
    EncodingInHttp10,
    /// RFC 9112 6.1 and 7.1: not a list of codings, or chunked twice or with parameters.
    #[error("a `Transfer-Encoding` that is no list of codings with `chunked` at most once")]
    BadEncoding,
    /// The chunked body is invalid.
    #[error("chunked body: {0}")]
    BadChunk(#[from] ChunkError),
    /// RFC 9110 15.2.2: 101 leaves HTTP/1.1, and nobody asked for it.
    #[error("status 101: the server leaves HTTP/1.1, which was not asked for")]
    SwitchingProtocols,
    /// RFC 9112 8: the stream ended within a response.
    #[error("the stream ended within {}", if *.head { "a head" } else { "a body" })]
    Truncated {
        /// Whether the head, or what follows an interim response, is incomplete; else the body is.
        head: bool,
    },
}

impl ResponseError {
    /// The error's name, `conflicting-length` and so on; that of an invalid line is what is wrong with it, `bare-cr`.
    pub fn name(&self) -> &'static str {
        match self {
            ResponseError::NotHttp => "not-http",
            ResponseError::EmptyLine => "empty-line",
            ResponseError::BadStatusLine => "bad-status-line",
            ResponseError::BadVersion { .. } => "bad-version",
            ResponseError::Field { error, .. } => error.name(),
            ResponseError::HeadTooLarge { .. } => "head-too-large",
            ResponseError::TooManyHeaders { .. } => "too-many-headers",
            ResponseError::ConflictingLength => "conflicting-length",
            ResponseError::BadLength => "bad-length",
            ResponseError::EncodingWithLength => "encoding-with-length",
            ResponseError::EncodingInHttp10 => "encoding-in-http10",
            ResponseError::BadEncoding => "bad-encoding",
            ResponseError::BadChunk(_) => "bad-chunk",
            ResponseError::SwitchingProtocols => "switching-protocols",
            ResponseError::Truncated { .. } => "truncated",
        }
    }
}

/// The last final head that was read and what it meant, so that the same bytes need not be understood again. One for all connections of a
/// worker. It never changes what is read, only how long that takes.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    /// Ends with the empty line, so that no other head begins with it.
    bytes: Vec<u8>,
    asked: Option<Asked>,
    head: Head,
}

impl Memo {
    /// An empty one.
    pub fn new() -> Memo {
        Memo::default()
    }

    fn find(&self, asked: Asked, bytes: &[u8], limits: &Limits, room: usize) -> Option<(Head, usize)> {
        let known = self.asked == Some(asked)
            && bytes.starts_with(&self.bytes)
            && self.bytes.len() <= room
            && self.head.fields <= limits.headers;
        known.then_some((self.head, self.bytes.len()))
    }

    fn keep(&mut self, asked: Asked, bytes: &[u8], head: Head) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.asked = Some(asked);
        self.head = head;
    }
}

/// What a final head means.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    status: u16,
    keep_alive: bool,
    fields: usize,
    /// `None`: until the stream ends.
    body: Option<Body>,
}

/// Reads the responses of one connection as their bytes come. Of a head it keeps what has come of it, of a body nothing.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    limits: Limits,
    state: State,
    head: Head,
    /// Of all heads of this response.
    head_bytes: u64,
    body_bytes: u64,
    /// A head that came in pieces, as far as it has come.
    partial: Vec<u8>,
    parser: Parser,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    /// A body, and what is left of it.
    Length(u64),
    Chunked(Chunks),
    UntilEnd,
    Failed(ResponseError),
}

/// Memory for partial heads that is kept from one to the next.
const PARTIAL_KEPT_BYTES: usize = 4096;

impl ResponseReader {
    /// For a connection that has just been opened. Allocates nothing before a head comes in pieces.
    pub fn new(limits: Limits) -> ResponseReader {
        ResponseReader {
            limits,
            state: State::Head,
            head: Head::default(),
            head_bytes: 0,
            body_bytes: 0,
            partial: Vec::new(),
            parser: Parser::default(),
        }
    }

    /// Reads `bytes`, which follow those of the last call, of the response to what was `asked`; data of the body goes to `body` in pieces
    /// as it lies in `bytes`. Stops behind a complete response: what follows is for the next call. How the stream is cut into calls
    /// changes neither responses nor errors, nor which bytes go to `body`.
    ///
    /// Interim responses (1xx) are read and skipped.
    ///
    /// # Errors
    ///
    /// What is not HTTP/1.1 as RFC 9112 has it. The stream cannot be read on: further calls give the same error.
    #[inline]
    pub fn read(
        &mut self,
        memo: &mut Memo,
        asked: Asked,
        bytes: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> Result<Progress, ResponseError> {
        let mut used = 0;
        if let State::Head = self.state {
            let room = self.limits.head_bytes.saturating_sub(self.head_bytes as usize);
            let known = if self.partial.is_empty() { memo.find(asked, bytes, &self.limits, room) } else { None };
            if let Some((head, head_bytes)) = known {
                used = head_bytes;
                self.begin(head, head_bytes);
            } else {
                match self.read_heads(memo, asked, bytes) {
                    Ok(Some(head_bytes)) => used = head_bytes,
                    Ok(None) => return Ok(Progress::More),
                    Err(error) => return Err(self.fail(error)),
                }
            }
        }
        let rest = &bytes[used..];
        let data_bytes = &mut self.body_bytes;
        let mut data = |piece: &[u8]| {
            *data_bytes += piece.len() as u64;
            body(piece);
        };
        let taken = match &mut self.state {
            State::Length(left) if *left <= rest.len() as u64 => {
                let taken = *left as usize;
                if taken > 0 {
                    data(&rest[..taken]);
                }
                Some(taken)
            }
            State::Length(left) => {
                *left -= rest.len() as u64;
                if !rest.is_empty() {
                    data(rest);
                }
                None
            }
            State::Chunked(chunks) => match chunks.read(&self.limits, rest, data) {
                Ok(taken) => taken,
                Err(error) => return Err(self.fail(error.into())),
            },
            State::UntilEnd => {
                if !rest.is_empty() {
                    data(rest);
                }
                None
            }
            State::Failed(error) => return Err(*error),
            State::Head => None,
        };
        Ok(match taken {
            Some(taken) => Progress::Done { used: used + taken, response: self.finish() },
            None => Progress::More,
        })
    }

    /// The peer has ended the stream: the response that ended with it, `None` where none had begun. A stream that was secured by TLS ends
    /// with `close_notify`; without it, a response that is given here may be incomplete (RFC 9112 section 9.8).
    ///
    /// # Errors
    ///
    /// [`ResponseError::Truncated`] within a response of another framing, and what an earlier call has failed with.
    pub fn end(&mut self) -> Result<Option<Response>, ResponseError> {
        match self.state {
            State::Head if self.partial.is_empty() && self.head_bytes == 0 => Ok(None),
            State::Head => Err(self.fail(ResponseError::Truncated { head: true })),
            State::Length(_) | State::Chunked(_) => Err(self.fail(ResponseError::Truncated { head: false })),
            State::UntilEnd => Ok(Some(self.finish())),
            State::Failed(error) => Err(error),
        }
    }

    /// Whether no byte of a response has come: what comes now begins one.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Head) && self.partial.is_empty() && self.head_bytes == 0
    }

    #[inline]
    fn begin(&mut self, head: Head, head_bytes: usize) {
        self.head = head;
        self.head_bytes += head_bytes as u64;
        self.state = match head.body {
            Some(Body::None) => State::Length(0),
            Some(Body::Length(bytes)) => State::Length(bytes),
            Some(Body::Chunked) => State::Chunked(Chunks::new(true)),
            None => State::UntilEnd,
        };
    }

    #[inline]
    fn finish(&mut self) -> Response {
        let response = Response {
            status: self.head.status,
            keep_alive: self.head.keep_alive,
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
        };
        self.state = State::Head;
        self.head_bytes = 0;
        self.body_bytes = 0;
        response
    }

    #[cold]
    fn fail(&mut self, error: ResponseError) -> ResponseError {
        self.state = State::Failed(error);
        self.partial = Vec::new();
        error
    }

    /// Reads heads until a final one is complete; how many of the bytes they took.
    fn read_heads(&mut self, memo: &mut Memo, asked: Asked, bytes: &[u8]) -> Result<Option<usize>, ResponseError> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let room = self.limits.head_bytes.saturating_sub(self.head_bytes as usize);
            if self.partial.is_empty() {
                if let Some((head, head_bytes)) = memo.find(asked, rest, &self.limits, room) {
                    self.begin(head, head_bytes);
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
                // Line by line, so that nothing behind the head is copied.
                let line = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                let line = line.min(room.saturating_add(1) - self.partial.len());
                self.partial.extend_from_slice(&rest[..line]);
                used += line;
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

    /// Begins the body of a final head.
    fn head_is_final(&mut self, memo: &mut Memo, asked: Asked, bytes: &[u8]) -> Result<bool, ResponseError> {
        match self.parser.status {
            101 => Err(ResponseError::SwitchingProtocols),
            100..200 => {
                self.head_bytes += bytes.len() as u64;
                Ok(false)
            }
            _ => {
                let head = self.parser.head(asked)?;
                memo.keep(asked, bytes, head);
                self.begin(head, bytes.len());
                Ok(true)
            }
        }
    }
}

/// Understands a head line by line, each byte once, however it is cut.
#[derive(Debug, Clone, Default)]
struct Parser {
    /// Where the line begins that is not complete yet.
    line_start: usize,
    /// Up to where no line end was found.
    searched: usize,
    lines: usize,
    fields: usize,
    status: u16,
    minor_version: u8,
    declared: Declared,
    /// A field whose value may go on in a folded line: where its name and its value lie.
    pending: Option<Pending>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    start: usize,
    end: usize,
    is_folded: bool,
}

impl Parser {
    /// Goes on with `bytes`, which begin with those of the last call: the size of the head once it is complete. `room` is how large it
    /// may be.
    fn advance(&mut self, bytes: &[u8], limits: &Limits, room: usize) -> Result<Option<usize>, ResponseError> {
        const BEGIN: &[u8] = b"HTTP/";
        let shown = bytes.len().min(BEGIN.len());
        if self.lines == 0 && bytes[..shown] != BEGIN[..shown] {
            let is_empty = matches!(bytes, [b'\n' | b'\r', ..]);
            return Err(if is_empty { ResponseError::EmptyLine } else { ResponseError::NotHttp });
        }
        loop {
            let Some(offset) = memchr::memchr(b'\n', &bytes[self.searched..]) else {
                self.searched = bytes.len();
                let is_too_large = bytes.len() > room;
                return if is_too_large { Err(self.too_large(limits)) } else { Ok(None) };
            };
            let (start, end) = (self.line_start, self.searched + offset);
            if end >= room {
                return Err(self.too_large(limits));
            }
            self.line_start = end + 1;
            self.searched = end + 1;
            self.lines += 1;
            let field_error = |error| ResponseError::Field { line: self.lines, error };
            let Some(line) = bytes[start..end].strip_suffix(b"\r") else { return Err(field_error(FieldError::BareLf)) };
            match line {
                _ if self.lines == 1 => self.status_line(line)?,
                [] => {
                    self.settle(bytes);
                    return Ok(Some(end + 1));
                }
                [b' ' | b'\t', ..] => {
                    if self.fields == 0 {
                        return Err(field_error(FieldError::Fold));
                    }
                    fields::check_text(line).map_err(field_error)?;
                    if let Some(pending) = &mut self.pending {
                        *pending = Pending { end: end - 1, is_folded: true, ..*pending };
                    }
                }
                _ => {
                    self.settle(bytes);
                    let (name, _) =
                        fields::split(line).map_err(|error| ResponseError::Field { line: self.lines, error })?;
                    self.fields += 1;
                    if self.fields > limits.headers {
                        return Err(ResponseError::TooManyHeaders { limit: limits.headers });
                    }
                    if Field::of(name).is_some() {
                        self.pending = Some(Pending { start, end: end - 1, is_folded: false });
                    }
                }
            }
        }
    }

    #[cold]
    fn too_large(&self, limits: &Limits) -> ResponseError {
        ResponseError::HeadTooLarge { limit: limits.head_bytes }
    }

    fn status_line(&mut self, line: &[u8]) -> Result<(), ResponseError> {
        let (version, rest) = match line {
            [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, rest @ ..]
                if major.is_ascii_digit() && minor.is_ascii_digit() =>
            {
                ((major - b'0', minor - b'0'), rest)
            }
            _ => return Err(ResponseError::BadStatusLine),
        };
        if version.0 != 1 {
            return Err(ResponseError::BadVersion { major: version.0 });
        }
        let (digits, reason) = match rest {
            [b' ', a, b, c] => ([a, b, c], &[][..]),
            [b' ', a, b, c, b' ', reason @ ..] => ([a, b, c], reason),
            _ => return Err(ResponseError::BadStatusLine),
        };
        if !digits.iter().all(|digit| digit.is_ascii_digit()) {
            return Err(ResponseError::BadStatusLine);
        }
        fields::check_text(reason).map_err(|error| ResponseError::Field { line: 1, error })?;
        self.status = digits.iter().fold(0, |status, &&digit| status * 10 + u16::from(digit - b'0'));
        self.minor_version = version.1;
        Ok(())
    }

    /// The pending field does not go on.
    fn settle(&mut self, bytes: &[u8]) {
        let Some(Pending { start, end, is_folded }) = self.pending.take() else { return };
        let line = &bytes[start..end];
        let colon = memchr::memchr(b':', line).expect("a field that was split has a colon");
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if is_folded {
            // RFC 9112 5.2: each fold is replaced by one or more spaces.
            let spaced = |&byte: &u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
            let value = value.iter().map(spaced).collect::<Vec<_>>();
            self.declared.take(name, fields::trim(&value));
        } else {
            self.declared.take(name, fields::trim(value));
        }
    }

    /// What the head means as an answer to what was `asked`. Source: RFC 9112 section 6.3, its rules in their order.
    fn head(&self, asked: Asked) -> Result<Head, ResponseError> {
        let Declared { length, coding, .. } = self.declared;
        let (status, fields) = (self.status, self.fields);
        let keep_alive = self.declared.persists(self.minor_version);
        let head = |keep_alive, body| Ok(Head { status, keep_alive, fields, body });
        if asked == Asked::Head || matches!(status, 204 | 304) {
            return head(keep_alive, Some(Body::None));
        }
        if asked == Asked::Connect && (200..300).contains(&status) {
            return head(false, Some(Body::None));
        }
        if coding != TransferCoding::Absent {
            return match coding {
                _ if length != ContentLength::Absent => Err(ResponseError::EncodingWithLength),
                _ if self.minor_version == 0 => Err(ResponseError::EncodingInHttp10),
                TransferCoding::Chunked | TransferCoding::ThenChunked => head(keep_alive, Some(Body::Chunked)),
                TransferCoding::Other | TransferCoding::ChunkedThen => head(false, None),
                TransferCoding::Invalid | TransferCoding::Absent => Err(ResponseError::BadEncoding),
            };
        }
        match length {
            ContentLength::Bytes(bytes) => head(keep_alive, Some(Body::Length(bytes))),
            ContentLength::Conflicting => Err(ResponseError::ConflictingLength),
            ContentLength::Invalid => Err(ResponseError::BadLength),
            ContentLength::Absent => head(false, None),
        }
    }
}
