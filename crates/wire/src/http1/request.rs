//! Reads requests on the server side: heads from the bytes received so far, then bodies in pieces.

use std::mem::MaybeUninit;

use super::error::MessageError;
use super::framing::{Declared, Field, Remaining};
use super::{Body, Limits};

/// The head of a request, borrowed from the input.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The method, a case-sensitive token.
    pub method: &'a str,
    /// The target in one of the four forms of RFC 9112, section 3.2. Contains only visible ASCII characters.
    pub target: &'a str,
    /// Minor version: 0 for HTTP/1.0, 1 for HTTP/1.1 and later.
    pub minor_version: u8,
    /// Whether the client allows another request on the connection. Source: RFC 9112, section 9.3.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue`; other expectations may get 417. Source: RFC 9110, section 10.1.1.
    pub expect_continue: bool,
    /// How the body is delimited.
    pub body: Body,
}

type Parsed<'a> = Result<Option<(Request<'a>, usize)>, MessageError>;

/// Size in bytes above which an incomplete head is not parsed; 64 KiB byte by byte would otherwise take 65,536 parses.
const PARTIAL_SEARCHED_BYTES: usize = 1024;

/// Parses the request at the start of `bytes` and returns it with the size of its head, or `None` if it is incomplete.
/// A [`BodyReader`] reads the body. Each call needs all received bytes of the request. Fails with the first violation
/// of RFC 9112 or `limits`, however the head is split. An incomplete head over 1 KiB is checked only for its size.
pub fn parse_request<'a>(bytes: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let mut start = 0;
    while bytes[start..].starts_with(b"\r\n") {
        start += 2;
    }
    // Ignore bytes beyond the limit, so that results do not depend on how the stream is split.
    let is_cut = bytes.len() > limits.head_bytes;
    let shown = &bytes[start.min(limits.head_bytes)..bytes.len().min(limits.head_bytes)];
    let incomplete = || {
        let has_line = memchr::memchr(b'\n', shown).is_some();
        match is_cut {
            false => Ok(None),
            true if has_line || shown.is_empty() => Err(MessageError::HeadTooLarge(limits.head_bytes)),
            true => Err(MessageError::TargetTooLong(limits.head_bytes)),
        }
    };
    if shown.len() >= PARTIAL_SEARCHED_BYTES && !is_cut && !has_head_end(shown) {
        return Ok(None);
    }

    let mut room = [const { MaybeUninit::uninit() }; Limits::REQUEST_HEADERS_MAX];
    let room = &mut room[..limits.headers.min(Limits::REQUEST_HEADERS_MAX)];
    let headers_max = room.len();
    let mut parsed = httparse::Request::new(&mut []);
    let head_bytes = match parsed.parse_with_uninit_headers(shown, room) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return incomplete(),
        Err(error) => {
            return match later_minor(error, shown) {
                Some(digit) => parse_as_1_1(bytes, start, start + digit, limits),
                None => Err(request_error(error, shown, headers_max)),
            };
        }
    };
    let (Some(method), Some(target), Some(minor_version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(MessageError::BadRequestLine);
    };
    let head = &shown[..head_bytes];
    // httparse accepts LF instead of CRLF, which allows smuggling, so check that the head has one CR per line.
    if head[0] == b'\n' || count(head, b'\r') != parsed.headers.len() + 2 {
        return Err(MessageError::BareLf);
    }
    check_target(method, target)?;

    let mut declared = Declared::default();
    let mut expect_continue = false;
    let mut host = None;
    for header in parsed.headers.iter() {
        let name = header.name;
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                if host.replace(header.value).is_some() {
                    return Err(MessageError::DuplicateHost);
                }
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                expect_continue |= header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
            _ => {
                if let Some(field) = Field::from_name(name.as_bytes()) {
                    declared.take(field, header.value.trim_ascii());
                }
            }
        }
    }
    match host {
        Some(value) if !is_host(value.trim_ascii()) => return Err(MessageError::BadHost),
        None if minor_version >= 1 => return Err(MessageError::MissingHost),
        _ => {}
    }
    let body = body(&declared, minor_version)?;
    let request = Request {
        method,
        target,
        minor_version,
        keep_alive: declared.persists(minor_version),
        expect_continue: expect_continue && minor_version >= 1 && !matches!(body, Body::None | Body::Length(0)),
        body,
    };
    Ok(Some((request, start + head_bytes)))
}

/// Returns the position of the minor version if it is 2 to 9, which httparse rejects; otherwise, `None`.
fn later_minor(error: httparse::Error, bytes: &[u8]) -> Option<usize> {
    let version = memchr::memchr_iter(b' ', bytes).nth(1).map(|space| space + 1)?;
    let digit = version + "HTTP/1.".len();
    let is_later = bytes[version..].starts_with(b"HTTP/1.") && matches!(bytes.get(digit), Some(b'2'..=b'9'));
    (error == httparse::Error::Version && is_later).then_some(digit)
}

/// Parses a request with a minor version above 1, at position `digit`, as HTTP/1.1. Source: RFC 9110, section 2.5.
fn parse_as_1_1<'a>(bytes: &'a [u8], start: usize, digit: usize, limits: &Limits) -> Parsed<'a> {
    let mut changed = bytes[..bytes.len().min(limits.head_bytes + 1)].to_vec();
    changed[digit] = b'1';
    let Some((request, head_bytes)) = parse_request(&changed, limits)? else { return Ok(None) };
    let text = |from: usize, length: usize| std::str::from_utf8(&bytes[from..from + length]);
    let method_end = start + request.method.len();
    let (Ok(method), Ok(target)) = (text(start, request.method.len()), text(method_end + 1, request.target.len()))
    else {
        return Err(MessageError::BadRequestLine);
    };
    let Request { minor_version, keep_alive, expect_continue, body, .. } = request;
    Ok(Some((Request { method, target, minor_version, keep_alive, expect_continue, body }, head_bytes)))
}

/// Counts the occurrences of `byte` in `bytes`, with a loop that the compiler vectorizes.
fn count(bytes: &[u8], byte: u8) -> usize {
    bytes.chunks(255).map(|piece| piece.iter().map(|&other| u8::from(other == byte)).sum::<u8>() as usize).sum()
}

fn has_head_end(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| matches!(&bytes[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

fn request_error(error: httparse::Error, bytes: &[u8], headers_max: usize) -> MessageError {
    match error {
        httparse::Error::HeaderName => MessageError::BadFieldName,
        httparse::Error::HeaderValue => MessageError::BadFieldValue,
        httparse::Error::NewLine => MessageError::BadLineEnd,
        httparse::Error::TooManyHeaders => MessageError::TooManyHeaders(headers_max),
        httparse::Error::Version if names_other_version(bytes) => MessageError::BadVersion,
        _ => MessageError::BadRequestLine,
    }
}

/// Whether the version that httparse rejected is an unsupported HTTP version; otherwise, it is malformed.
fn names_other_version(bytes: &[u8]) -> bool {
    let version = bytes.trim_ascii_start().splitn(3, |&byte| byte == b' ').nth(2).unwrap_or_default();
    match version.strip_prefix(b"HTTP/") {
        Some([b'1', b'.', minor, ..]) => minor.is_ascii_digit(),
        Some([b'1', ..] | []) | None => false,
        Some([major, ..]) => major.is_ascii_digit(),
    }
}

/// Checks that the target has a form that the method allows. Source: RFC 9112, section 3.2.
pub(crate) fn check_target(method: &str, target: &str) -> Result<(), MessageError> {
    let is_visible = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let is_of_method = match method {
        "CONNECT" => target.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && is_host(target.as_bytes()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }),
        _ if target.starts_with('/') => true,
        "OPTIONS" if target == "*" => true,
        _ => is_absolute(target),
    };
    if is_visible && is_of_method { Ok(()) } else { Err(MessageError::BadTarget) }
}

/// Whether `target` starts with `scheme://host`, without a user. Source: RFC 3986, section 3; RFC 9110, section 4.2.4.
fn is_absolute(target: &str) -> bool {
    let Some((scheme, rest)) = target.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    is_scheme && !authority.is_empty() && !authority.starts_with(':') && is_host(authority.as_bytes())
}

/// Whether `value` is `uri-host [ ":" port ]` or empty. Source: RFC 9110, section 7.2, and RFC 3986, section 3.2.2.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let host = match value {
        [b'[', rest @ ..] => {
            match rest.iter().position(|&byte| !byte.is_ascii_alphanumeric() && !b":.%-_~".contains(&byte)) {
                Some(end) if end > 0 && rest[end] == b']' => end + 2,
                _ => return false,
            }
        }
        _ => value.iter().position(|&byte| !is_host_byte(byte)).unwrap_or(value.len()),
    };
    match &value[host..] {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether a byte is an unreserved character, a sub-delim or `%`. Source: RFC 3986, section 3.2.2.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte)
}

/// Determines the framing of a request's body. Source: RFC 9112, section 6.3.
fn body(declared: &Declared, minor_version: u8) -> Result<Body, MessageError> {
    let length = declared.length(minor_version)?;
    match declared.codings {
        None => Ok(length.map_or(Body::None, Body::Length)),
        Some(codings) if !codings.end_chunked() => Err(MessageError::BadEncoding),
        Some(codings) if codings.count > 1 => Err(MessageError::UnknownEncoding),
        Some(_) => Ok(Body::Chunked),
    }
}

/// Reads the body of one request in pieces, without a buffer.
#[derive(Debug, Clone)]
pub struct BodyReader {
    limits: Limits,
    limit_bytes: u64,
    /// Number of data bytes passed to the sink so far.
    pub read_bytes: u64,
    /// The unread part; once reading has failed, the error.
    remaining: Result<Remaining, MessageError>,
}

impl BodyReader {
    /// Creates a reader that limits the body to `limit_bytes` and trailers to `limits`. [`Self::read`] checks both.
    pub fn new(body: Body, limits: &Limits, limit_bytes: u64) -> BodyReader {
        let remaining = match body {
            Body::Length(bytes) if bytes > limit_bytes => Err(MessageError::BodyTooLarge(limit_bytes)),
            _ => Ok(Remaining::new(Some(body), false)),
        };
        BodyReader { limits: *limits, limit_bytes, read_bytes: 0, remaining }
    }

    /// Reads `bytes`, the next part of the body, and passes its data to `sink` as slices of `bytes`. Returns the number
    /// of bytes used if the body is complete, or `None` if it is not. Must not be called after the end of the body.
    /// Fails, also on all later calls, if the chunked coding is invalid or the body exceeds the limit.
    pub fn read(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<Option<usize>, MessageError> {
        let (read_bytes, limit_bytes) = (&mut self.read_bytes, self.limit_bytes);
        let remaining = self.remaining.as_mut().map_err(|error| *error)?;
        let result = remaining.read(&self.limits, bytes, |piece| {
            *read_bytes += piece.len() as u64;
            if *read_bytes <= limit_bytes {
                sink(piece);
            }
        });
        let result = match result {
            _ if self.read_bytes > limit_bytes => Err(MessageError::BodyTooLarge(limit_bytes)),
            result => result.map_err(MessageError::BadChunk),
        };
        if let Err(error) = &result {
            self.remaining = Err(*error);
        }
        result
    }
}
