use super::chunks::ChunkError;
use super::fields::FieldError;

/// An error in a request or a response. The connection is unusable after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// RFC 9112 3: not a method, a target and a version with one space between each.
    #[error("a request line that is not a method, a target and a version")]
    BadRequestLine,
    /// RFC 9112 2.3: another major version of HTTP.
    #[error("a version other than HTTP/1.0 and HTTP/1.1")]
    BadVersion,
    /// RFC 9112 3.2: a target in none of the four forms, or in one the method does not allow.
    #[error("a target that is not a path, a URI, `*` (OPTIONS) or an authority (CONNECT)")]
    BadTarget,
    /// RFC 9112 3: the request line exceeds the limit on heads. Contains the limit, in bytes.
    #[error("a target of more than {0} bytes")]
    TargetTooLong(usize),
    /// RFC 9112 5.1 and 5.2, RFC 9110 5.1: no token before the colon, no colon, or a folded line.
    #[error("a header whose name is not a token followed by a colon, or a folded line")]
    BadFieldName,
    /// RFC 9110 5.5: a control character in a value.
    #[error("a control character in a header value, or a bare CR")]
    BadFieldValue,
    /// RFC 9112 2.2: LF without CR.
    #[error("a line that ends in LF without CR")]
    BareLf,
    /// RFC 9112 2.2: CR without LF, or another byte where the request line or the head should end.
    #[error("a line that does not end in CRLF")]
    BadLineEnd,
    /// The head exceeds the limit. Source of the status: RFC 6585 section 5. Contains the limit, in bytes.
    #[error("a head of more than {0} bytes")]
    HeadTooLarge(usize),
    /// The head has more fields than the limit. Contains the limit.
    #[error("more than {0} headers")]
    TooManyHeaders(usize),
    /// RFC 9112 3.2: an HTTP/1.1 request without `Host`.
    #[error("missing `Host`")]
    MissingHost,
    /// RFC 9112 3.2: more than one `Host`.
    #[error("more than one `Host`")]
    DuplicateHost,
    /// RFC 9112 3.2: a `Host` that is not a host with an optional port.
    #[error("a `Host` that is not a host and port")]
    BadHost,
    /// RFC 9112 6.3, rule 5: different lengths.
    #[error("conflicting `Content-Length` headers")]
    ConflictingLength,
    /// RFC 9112 6.3, rule 5: not a number, or 2^64 or more.
    #[error("a `Content-Length` that is not a number below 2^64")]
    BadLength,
    /// RFC 9112 6.3, rule 3: a request-smuggling attempt.
    #[error("`Transfer-Encoding` together with `Content-Length`")]
    EncodingWithLength,
    /// RFC 9112 6.1: a transfer coding in HTTP/1.0, which has none.
    #[error("`Transfer-Encoding` in HTTP/1.0")]
    EncodingInHttp10,
    /// RFC 9112 6.3, rule 4: no end, as `chunked` is not the last coding, or not a list of codings.
    #[error("a `Transfer-Encoding` that does not end in `chunked`")]
    BadEncoding,
    /// RFC 9112 6.1: a coding other than chunked.
    #[error("a transfer coding other than `chunked`")]
    UnknownEncoding,
    /// The chunked body is invalid.
    #[error("chunked body: {0}")]
    BadChunk(#[from] ChunkError),
    /// The body is larger than the limit. Contains the limit, in bytes.
    #[error("a body of more than {0} bytes")]
    BodyTooLarge(u64),
    // Only of responses.
    /// A response that does not begin with `HTTP/`: HTTP/0.9, HTTP/2, TLS, another protocol, or a body longer than
    /// announced.
    #[error("the response does not start with `HTTP/`: another protocol, or a body longer than announced")]
    NotHttp,
    /// RFC 9112 2.2: an empty line before the status line.
    #[error("an empty line before the status line: the previous body may be longer than announced")]
    EmptyLine,
    /// RFC 9112 4: not `HTTP/1.1 200 OK`.
    #[error("a status line that is not `HTTP/1.1`, space, three digits")]
    BadStatusLine,
    /// RFC 9112 2.3: another major version. Contains the major version.
    #[error("HTTP/{0}, which is not HTTP/1")]
    OtherVersion(u8),
    /// A line of the head is invalid.
    #[error("{error} in line {line} of the head")]
    Field {
        /// Line number; the status line is 1. Folded lines count.
        line: usize,
        /// Error in that line.
        error: FieldError,
    },
    /// RFC 9112 6.1 and 7.1: not a list of codings, `chunked` twice, or `chunked` with parameters.
    #[error("a `Transfer-Encoding` that is not a list of codings with `chunked` at most once")]
    BadCodings,
    /// RFC 9110 15.2.2: the server left HTTP/1.1 without a request to do so.
    #[error("status 101: the server switched protocols without being asked")]
    SwitchingProtocols,
    /// RFC 9112 8: the stream ended inside a response. Contains whether in a head, or between interim and final one.
    #[error("the stream ended in the middle of {}", if *.0 { "a head" } else { "a body" })]
    Truncated(bool),
}

impl MessageError {
    /// The status of the response to a request: 400, 413, 414, 431, 501 or 505. Close the connection after it.
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
