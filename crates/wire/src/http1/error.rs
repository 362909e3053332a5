//! Errors in HTTP/1.1 messages.

use super::chunks::ChunkError;
use super::fields::FieldError;

/// An error in a request or a response. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A request line other than method, target and version, separated by single spaces. Source: RFC 9112, section 3.
    #[error("a request line that is not a method, a target and a version")]
    BadRequestLine,
    /// A major version of HTTP other than 1. Source: RFC 9112, section 2.3.
    #[error("a version other than HTTP/1.0 and HTTP/1.1")]
    BadVersion,
    /// A target in none of the four forms, or in one that the method does not allow. Source: RFC 9112, section 3.2.
    #[error("a target that is not a path, a URI, `*` (OPTIONS) or an authority (CONNECT)")]
    BadTarget,
    /// A request line that exceeds the size limit of a head. Contains the limit, in bytes. Source: RFC 9112, section 3.
    #[error("a target of more than {0} bytes")]
    TargetTooLong(usize),
    /// A folded line, or one without a token before the colon. Source: RFC 9112, section 5, and RFC 9110, section 5.1.
    #[error("a header whose name is not a token followed by a colon, or a folded line")]
    BadFieldName,
    /// A control character in a value. Source: RFC 9110, section 5.5.
    #[error("a control character in a header value, or a bare CR")]
    BadFieldValue,
    /// LF without CR. Source: RFC 9112, section 2.2.
    #[error("a line that ends in LF without CR")]
    BareLf,
    /// CR without LF, or a wrong byte at the end of the request line or the head. Source: RFC 9112, section 2.2.
    #[error("a line that does not end in CRLF")]
    BadLineEnd,
    /// A head that exceeds the limit. Contains the limit, in bytes. Source of the status: RFC 6585, section 5.
    #[error("a head of more than {0} bytes")]
    HeadTooLarge(usize),
    /// A head with more fields than the limit allows. Contains the limit.
    #[error("more than {0} headers")]
    TooManyHeaders(usize),
    /// An HTTP/1.1 request without `Host`. Source: RFC 9112, section 3.2.
    #[error("missing `Host`")]
    MissingHost,
    /// More than one `Host`. Source: RFC 9112, section 3.2.
    #[error("more than one `Host`")]
    DuplicateHost,
    /// A `Host` that is not a host with an optional port. Source: RFC 9112, section 3.2.
    #[error("a `Host` that is not a host and port")]
    BadHost,
    /// Different values of `Content-Length`. Source: RFC 9112, section 6.3, rule 5.
    #[error("conflicting `Content-Length` headers")]
    ConflictingLength,
    /// A length that is not a number, or that is 2^64 or more. Source: RFC 9112, section 6.3, rule 5.
    #[error("a `Content-Length` that is not a number below 2^64")]
    BadLength,
    /// A transfer coding together with a length: a request-smuggling attempt. Source: RFC 9112, section 6.3, rule 3.
    #[error("`Transfer-Encoding` together with `Content-Length`")]
    EncodingWithLength,
    /// A transfer coding in HTTP/1.0, which has none. Source: RFC 9112, section 6.1.
    #[error("`Transfer-Encoding` in HTTP/1.0")]
    EncodingInHttp10,
    /// An invalid list of codings, or one that does not end in `chunked`. Source: RFC 9112, section 6.3, rule 4.
    #[error("a `Transfer-Encoding` that does not end in `chunked`")]
    BadEncoding,
    /// A coding other than chunked. Source: RFC 9112, section 6.1.
    #[error("a transfer coding other than `chunked`")]
    UnknownEncoding,
    /// An invalid chunked body.
    #[error("chunked body: {0}")]
    BadChunk(#[from] ChunkError),
    /// A body that exceeds the limit. Contains the limit, in bytes.
    #[error("a body of more than {0} bytes")]
    BodyTooLarge(u64),
    /// A response that does not start with `HTTP/`, such as HTTP/2, TLS, or the rest of a body longer than announced.
    #[error("the response does not start with `HTTP/`: another protocol, or a body longer than announced")]
    NotHttp,
    /// An empty line before the status line. Source: RFC 9112, section 2.2.
    #[error("an empty line before the status line: the previous body may be longer than announced")]
    EmptyLine,
    /// A status line that is not of the form `HTTP/1.1 200 OK`. Source: RFC 9112, section 4.
    #[error("a status line that is not `HTTP/1.1`, space, three digits")]
    BadStatusLine,
    /// A major version of HTTP other than 1. Contains that version. Source: RFC 9112, section 2.3.
    #[error("HTTP/{0}, which is not HTTP/1")]
    OtherVersion(u8),
    /// An invalid line of the head.
    #[error("{error} in line {line} of the head")]
    Field {
        /// Number of the line in the head; the status line is 1. Folded lines are counted too.
        line: usize,
        /// Error in the line.
        error: FieldError,
    },
    /// An invalid list of codings, or `chunked` twice or with parameters. Source: RFC 9112, sections 6.1 and 7.1.
    #[error("a `Transfer-Encoding` that is not a list of codings with `chunked` at most once")]
    BadCodings,
    /// A change of protocol (status 101) that the client did not request. Source: RFC 9110, section 15.2.2.
    #[error("status 101: the server switched protocols without being asked")]
    SwitchingProtocols,
    /// A stream that ends too early: in or between heads (`true`), or in a body (`false`). Source: RFC 9112, section 8.
    #[error("the stream ended in the middle of {}", if *.0 { "a head" } else { "a body" })]
    Truncated(bool),
}

impl MessageError {
    /// The status of the response to a bad request: 400, 413, 414, 431, 501 or 505. The connection must then be closed.
    pub fn status(&self) -> u16 {
        match self {
            MessageError::BodyTooLarge(_) => 413,
            MessageError::TargetTooLong(_) => 414,
            MessageError::HeadTooLarge(_)
            | MessageError::TooManyHeaders(_)
            | MessageError::BadChunk(ChunkError::TrailersTooLarge(_) | ChunkError::TooManyTrailers(_)) => 431,
            MessageError::UnknownEncoding => 501,
            MessageError::BadVersion => 505,
            _ => 400,
        }
    }
}
