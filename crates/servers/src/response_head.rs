//! Writes heads of HTTP/1 responses.

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
    pub(crate) const PERSIST: Reply = Reply { keep_alive: KeepAlive::Implicit, head_only: false };
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

/// The parts of a head that differ between responses. Empty texts are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) length: Length,
    /// Methods that the target allows.
    pub(crate) allow: &'static str,
}

impl Head {
    pub(crate) const fn new(status: u16, content_type: &'static str, length: Length) -> Head {
        Head { status, content_type, length, allow: "" }
    }
}

/// Appends the status line, the headers of every response, and `Connection` if it is needed.
pub(crate) fn push_status(out: &mut Vec<u8>, stamp: &[u8], status: u16, keep_alive: KeepAlive) {
    for part in ["HTTP/1.1 ", status_line(status), "\r\n"] {
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
pub(crate) fn push_head(out: &mut Vec<u8>, stamp: &[u8], keep_alive: KeepAlive, head: &Head) {
    push_status(out, stamp, head.status, keep_alive);
    for (name, value) in [("Content-Type: ", head.content_type), ("Allow: ", head.allow)] {
        if !value.is_empty() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    match head.length {
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

/// Appends a response. The response to HEAD has no body.
pub(crate) fn push_response(out: &mut Vec<u8>, stamp: &[u8], reply: Reply, head: &Head, body: &[u8]) {
    push_head(out, stamp, reply.keep_alive, head);
    if !reply.head_only {
        out.extend_from_slice(body);
    }
}

/// The status line for a code. Source: RFC 9110, section 15, RFC 6585 for 431 and RFC 4918 for 507.
fn status_line(code: u16) -> &'static str {
    match code {
        200 => "200 OK",
        201 => "201 Created",
        204 => "204 No Content",
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
