//! Writes heads of responses over HTTP/1 and HTTP/2.

use wire::decimal;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{FRAME_HEAD_BYTES, FrameKind, flags, push_frame_head};

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

/// Index of `:status: 200` in the static table.
const STATUS_200: usize = 8;
/// Start of a literal field without indexing, whose name is in the static table. Source: RFC 7541, section 6.2.2.
const CONTENT_TYPE: [u8; 2] = [0x0f, 31 - 0x0f];
const CONTENT_LENGTH: [u8; 2] = [0x0f, 28 - 0x0f];
/// Update of the dynamic table's size to 0. Source: RFC 7541, section 6.3.
const NO_TABLE: u8 = 0x20;

/// Appends a HEADERS frame with the fields of `stamp`. No field enters the client's table, so heads are independent. If `shrinks_table`, the block first sets the client's table to
/// size 0.
pub(crate) fn push_head_frame(
    out: &mut Vec<u8>,
    stamp: &[u8],
    stream: u32,
    head: &Head,
    ends: bool,
    shrinks_table: bool,
) {
    let flag = if ends { flags::END_STREAM } else { 0 };
    push_frame_head(out, 0, FrameKind::HEADERS, flag | flags::END_HEADERS, stream);
    let start = out.len();
    if shrinks_table {
        out.push(NO_TABLE);
    }
    match head.status {
        200 => hpack::push_indexed(out, STATUS_200),
        status => hpack::push_field(out, b":status", status.to_string().as_bytes(), Indexing::Skip),
    }
    out.extend_from_slice(stamp);
    if !head.content_type.is_empty() {
        out.extend_from_slice(&CONTENT_TYPE);
        hpack::push_text(out, head.content_type.as_bytes());
    }
    if let Length::Known(bytes) = head.length {
        out.extend_from_slice(&CONTENT_LENGTH);
        let digits_at = out.len() + 1;
        out.push(0);
        decimal::push(out, bytes);
        out[digits_at - 1] = (out.len() - digits_at) as u8;
    }
    if !head.allow.is_empty() {
        hpack::push_field(out, b"allow", head.allow.as_bytes(), Indexing::Skip);
    }
    // The block fits into one frame that every client accepts.
    let [high, low] = ((out.len() - start) as u16).to_be_bytes();
    out[start - FRAME_HEAD_BYTES..][..3].copy_from_slice(&[0, high, low]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precomposed_names_match_the_encoder() {
        for (name, bytes) in [("content-type", CONTENT_TYPE), ("content-length", CONTENT_LENGTH)] {
            let mut out = Vec::new();
            hpack::push_literal_name(&mut out, name.as_bytes(), Indexing::Skip);
            assert_eq!(out, bytes);
        }
        let mut out = Vec::new();
        hpack::push_field(&mut out, b":status", b"200", Indexing::Skip);
        hpack::push_table_size(&mut out, 0);
        assert_eq!(out, [0x80 | STATUS_200 as u8, NO_TABLE]);
    }
}
