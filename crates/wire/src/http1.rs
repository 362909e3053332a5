//! HTTP/1.1 as bytes: requests and responses, framed exactly by RFC 9112 and RFC 9110, on both ends of a connection.
//!
//! ```
//! use wire::http1::{RequestMethod, Limits, Memo, Progress, ResponseReader};
//!
//! let mut reader = ResponseReader::new(Limits::DEFAULT);
//! let mut memo = Memo::new();
//! let mut body = Vec::new();
//! let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntestHTTP/1.1 ";
//! let progress = reader.read(&mut memo, RequestMethod::Get, bytes, |piece| body.extend_from_slice(piece)).unwrap();
//! let Progress::Done { used, response } = progress else { panic!("the response is complete") };
//! assert_eq!((used, response.status, body.as_slice()), (42, 200, b"test".as_slice()));
//! ```
//!
//! # Where the RFCs leave a choice
//!
//! A tool that judges servers must not excuse what would confuse a proxy in front of them, so of two permitted readings the stricter
//! is taken, and what is no valid message is an error that is counted, never a guess:
//!
//! - **Bare LF** at the end of a line (RFC 9112 2.2: a recipient MAY recognise it) is an error: two parsers that differ in it disagree on
//!   where a head ends. **Bare CR** is an error (2.2).
//! - **`Transfer-Encoding` with `Content-Length`** is an error (6.3: "ought to be handled as an error"): one of them lies, and which
//!   of them is believed is what request smuggling lives on. So is `Transfer-Encoding` in a message of HTTP/1.0 (6.1: its framing is faulty).
//! - **`Content-Length`** may be repeated with the same value (6.3, RFC 9110 8.6); different values are an error.
//! - **Empty lines** are skipped before a request (2.2: SHOULD) and are an error before a response: a body that is two bytes longer
//!   than announced looks just like that.
//! - **Folded lines** are read as spaces in a response, which a user agent MUST do, and are an error in a request, where a server
//!   may (5.2).
//! - **Reason phrase**: may be missing together with its space, which servers do and which nobody can mistake.
//! - **Control characters** in values and reason phrases are errors other than HTAB (RFC 9110 5.5: CR, LF and NUL MUST not pass, others MAY).
//! - **HTTP/1.2** and above, which nobody has defined, is read as HTTP/1.1 in a response (RFC 9110 2.5) and answered by 505 in a request.
//! - **White space** around a chunk's size is an error unless an extension follows (7.1.1 has no place for it).

mod chunks;
mod compose;
mod fields;
mod framing;
mod request;
mod response;

pub use chunks::ChunkError;
pub use compose::{ComposeError, compose_request};
pub use fields::{FieldError, Fields};
pub use request::{BodyProgress, BodyReader, Request, RequestError, parse_request};
pub use response::{Memo, Progress, RequestMethod, Response, ResponseError, ResponseReader};

/// How much of a head is read before it is called too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head: start line, fields and the empty line. Interim responses (1xx) count into the head of theirs. The trailer
    /// section of a chunked body may have as many again.
    pub head_bytes: usize,
    /// Fields of a head, and of a trailer section. A request has at most [`Limits::REQUEST_HEADERS_MAX`], whatever is said here.
    pub headers: usize,
}

impl Limits {
    /// 64 KiB and 256 fields: beyond what servers in use send.
    pub const DEFAULT: Limits = Limits { head_bytes: 64 * 1024, headers: 256 };

    /// Fields that [`parse_request`] has room for.
    pub const REQUEST_HEADERS_MAX: usize = 256;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// How the body of a message is delimited. Source: RFC 9112 section 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// No body.
    None,
    /// This many bytes.
    Length(u64),
    /// The chunked transfer coding.
    Chunked,
}
