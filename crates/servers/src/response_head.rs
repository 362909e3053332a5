//! Writes heads of HTTP/1 responses.

use std::fmt::Display;
use std::io::Write;

use wire::decimal;

/// Whether the connection persists after a response, and whether a header states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    Implicit,
    /// The connection persists, and a header states this, because HTTP/1.0 clients need the header.
    Explicit,
    Close,
}

impl KeepAlive {
    #[inline]
    pub(crate) fn new(stays: bool, minor_version: u8) -> KeepAlive {
        match (stays, minor_version) {
            (false, _) => KeepAlive::Close,
            (true, 0) => KeepAlive::Explicit,
            (true, _) => KeepAlive::Implicit,
        }
    }
}

/// The properties of a response that follow from its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) keep_alive: KeepAlive,
    pub(crate) head_only: bool,
}

impl Reply {
    pub(crate) const CLOSE: Reply = Reply { keep_alive: KeepAlive::Close, head_only: false };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Known(u64),
    Chunked,
    UntilClose,
    /// No body and no length field, as for status 204.
    Nothing,
}

/// Appends the status line, the headers of every response, and `Connection` if it is needed.
#[inline]
pub(crate) fn push_status(out: &mut Vec<u8>, stamp: &[u8], status: &str, keep_alive: KeepAlive) {
    for part in ["HTTP/1.1 ", status, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(stamp);
    out.extend_from_slice(match keep_alive {
        KeepAlive::Implicit => b"",
        KeepAlive::Explicit => b"Connection: keep-alive\r\n",
        KeepAlive::Close => b"Connection: close\r\n",
    });
}

#[inline]
pub(crate) fn push_head(
    out: &mut Vec<u8>,
    stamp: &[u8],
    status: &str,
    keep_alive: KeepAlive,
    content_type: &str,
    length: Length,
    allowed: &str,
) {
    push_status(out, stamp, status, keep_alive);
    for (name, value) in [("Content-Type: ", content_type), ("Allow: ", allowed)] {
        if !value.is_empty() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    match length {
        Length::Known(bytes) => {
            out.extend_from_slice(b"Content-Length: ");
            decimal::push(out, bytes);
            out.extend_from_slice(b"\r\n");
        }
        Length::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Length::UntilClose | Length::Nothing => {}
    }
    out.extend_from_slice(b"\r\n");
}

#[cold]
pub(crate) fn push_failure(
    out: &mut Vec<u8>,
    stamp: &[u8],
    code: u16,
    why: impl Display,
    content_type: &str,
    reply: Reply,
    allowed: &str,
) {
    let body = format!("{why}\n");
    let length = Length::Known(body.len() as u64);
    push_head(out, stamp, status_line(code), reply.keep_alive, content_type, length, allowed);
    if !reply.head_only {
        out.extend_from_slice(body.as_bytes());
    }
}

/// The status line for a code. Source: RFC 9110, section 15, RFC 6585 for 431 and RFC 4918 for 507.
fn status_line(code: u16) -> &'static str {
    match code {
        404 => "404 Not Found",
        405 => "405 Method Not Allowed",
        408 => "408 Request Timeout",
        413 => "413 Content Too Large",
        414 => "414 URI Too Long",
        431 => "431 Request Header Fields Too Large",
        501 => "501 Not Implemented",
        503 => "503 Service Unavailable",
        505 => "505 HTTP Version Not Supported",
        507 => "507 Insufficient Storage",
        _ => "400 Bad Request",
    }
}

pub(crate) fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector cannot fail");
}
