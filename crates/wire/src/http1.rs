//! HTTP/1.1 codec for clients and servers. The framing follows RFC 9112 and RFC 9110 exactly.
//!
//! ```
//! use wire::http1::{RequestMethod, Limits, Memo, ResponseReader};
//!
//! let mut reader = ResponseReader::new(Limits::DEFAULT);
//! let mut memo = Memo::default();
//! let mut body = Vec::new();
//! let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntestHTTP/1.1 ";
//! let progress = reader.read(&mut memo, RequestMethod::Get, bytes, |piece| body.extend_from_slice(piece)).unwrap();
//! let Some((used, response)) = progress else { panic!("the response is complete") };
//! assert_eq!((used, response.status, body.as_slice()), (42, 200, b"test".as_slice()));
//! ```
//!
//! # Choices that the RFCs leave open
//!
//! A benchmark of servers must not accept input that would confuse a proxy. If the RFCs permit two readings, the
//! stricter one applies, and an invalid message counts as an error. Section numbers without an RFC refer to RFC 9112:
//!
//! - **Bare LF** at the end of a line is an error, although a recipient may accept it (2.2), because parsers that
//!   disagree on bare LF disagree on the end of a head. **Bare CR** is an error (2.2).
//! - **`Transfer-Encoding` with `Content-Length`** is an error (6.3: "ought to be handled as an error"), because
//!   smuggling relies on parsers that use different fields. `Transfer-Encoding` in HTTP/1.0 is also an error (6.1).
//! - **`Content-Length`** may repeat the same value (6.3, RFC 9110, section 8.6). Different values are an error.
//! - **Empty lines** are skipped before a request (2.2: SHOULD). Before a response, they are an error, because a body
//!   two bytes longer than announced looks the same.
//! - **Line folding** counts as spaces in a response (5.2: MUST for a user agent) and is an error in a request (5.2).
//! - **The reason phrase** may be missing together with its space. Some servers omit both, and the line is unambiguous.
//! - **Control characters** in values and reason phrases are errors, except HTAB (RFC 9110, section 5.5).
//! - **HTTP/1.2** to HTTP/1.9 are undefined and count as HTTP/1.1 (RFC 9110, section 2.5).
//! - **White space** around a chunk size is an error unless an extension follows (7.1.1).

mod chunks;
mod compose;
mod error;
pub(crate) mod fields;
mod framing;
pub(crate) mod request;
mod response;

pub use chunks::ChunkError;
pub use compose::compose_request;
pub use error::MessageError;
pub use fields::FieldError;
pub use request::{BodyReader, Request, parse_request};
pub use response::{Memo, RequestMethod, Response, ResponseReader};

/// Limits on the head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a head, including interim heads (1xx) before it, and of a trailer section, in bytes.
    pub head_bytes: usize,
    /// Maximum number of fields in a head or a trailer section; for requests, at most [`Limits::REQUEST_HEADERS_MAX`].
    pub headers: usize,
}

impl Limits {
    /// Default limits: 64 KiB and 256 fields, more than real servers send.
    pub const DEFAULT: Limits = Limits { head_bytes: 64 * 1024, headers: 256 };

    /// Maximum number of fields that [`parse_request`] accepts, even if [`Limits::headers`] is larger.
    pub const REQUEST_HEADERS_MAX: usize = 256;
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How the body of a message is delimited. Source: RFC 9112, section 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The message has no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body uses the chunked transfer coding.
    Chunked,
}
