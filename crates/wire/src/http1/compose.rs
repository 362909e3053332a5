//! Writes messages. Input that would end a line early, and so inject another message, is an error.

use super::fields::{self, is_token};
use super::request::{check_target, is_host};
use crate::number;

/// Why a message cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// RFC 9110 9.1: a method is a token. Contains the method.
    #[error("`{}` is not a valid method: only letters, digits and {MARKS}", .0.escape_debug())]
    Method(String),
    /// RFC 9112 3.2: the target of a request line.
    #[error(
        "`{}` is not a valid target for {method}: expected an ASCII path that starts with `/`, without spaces or `#`",
        target.escape_debug()
    )]
    Target {
        /// The method, which decides on the form of the target.
        method: String,
        /// The target.
        target: String,
    },
    /// RFC 9110 5.1: the name of a field is a token. Contains the name.
    #[error("`{}` is not a valid header name: only letters, digits and {MARKS}", .0.escape_debug())]
    HeaderName(String),
    /// RFC 9110 5.5: control characters would end the value and inject a header.
    #[error("0x{byte:02x} in the value of header `{name}`, at byte {at}: control characters cannot be sent")]
    HeaderValue {
        /// The name of the field.
        name: String,
        /// The control character.
        byte: u8,
        /// Its position in the value, from 0.
        at: usize,
    },
    /// RFC 9112 3.2: an HTTP/1.1 request has one `Host`. Contains their number.
    #[error("{0} `Host` headers: a request has exactly one")]
    Host(usize),
    /// RFC 9112 3.2: `Host` is a host with an optional port. Contains the value.
    #[error("`{}` is not a valid host and port", .0.escape_debug())]
    HostValue(String),
    /// RFC 9112 6.2: `Content-Length` is the length of the body.
    #[error("`Content-Length: {}` for a body of {body_bytes} bytes: drop it, it is added automatically", value.escape_debug())]
    Length {
        /// The value.
        value: String,
        /// The size of the body, in bytes.
        body_bytes: usize,
    },
    /// The body is sent without a transfer coding.
    #[error("`Transfer-Encoding` is not supported: a body is sent with `Content-Length`")]
    Encoding,
}

const MARKS: &str = "!#$%&'*+-.^_`|~";

/// Appends an HTTP/1.1 request to `out`. `headers` includes `Host`. Adds `Content-Length` if there
/// is a body or the method expects one (POST, PUT, PATCH; RFC 9110 8.6), and `Connection: close` if
/// `close`, unless `headers` has the field.
///
/// Fails if a server would read the request differently. `out` is unchanged then.
pub fn compose_request<N: AsRef<str>, V: AsRef<str>>(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    headers: &[(N, V)],
    body: &[u8],
    close: bool,
) -> Result<(), ComposeError> {
    if !is_token(method.as_bytes()) {
        return Err(ComposeError::Method(method.to_owned()));
    }
    if check_target(method, target).is_err() {
        return Err(ComposeError::Target { method: method.to_owned(), target: target.to_owned() });
    }
    let (mut hosts, mut has_length, mut has_close) = (0, false, false);
    for (name, value) in headers.iter().map(|(name, value)| (name.as_ref(), value.as_ref())) {
        if !is_token(name.as_bytes()) {
            return Err(ComposeError::HeaderName(name.to_owned()));
        }
        if let Some((at, byte)) = value.bytes().enumerate().find(|&(_, byte)| fields::is_control(byte)) {
            return Err(ComposeError::HeaderValue { name: name.to_owned(), byte, at });
        }
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            hosts += 1;
            if !is_host(fields::trim(value.as_bytes())) {
                return Err(ComposeError::HostValue(value.to_owned()));
            }
        } else if is("content-length") {
            has_length = true;
            if number::unsigned_of_any_length(fields::trim(value.as_bytes())) != Some(body.len() as u64) {
                return Err(ComposeError::Length { value: value.to_owned(), body_bytes: body.len() });
            }
        } else if is("transfer-encoding") {
            return Err(ComposeError::Encoding);
        } else if is("connection") {
            has_close |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        }
    }
    if hosts != 1 {
        return Err(ComposeError::Host(hosts));
    }
    push(out, &[method, " ", target, " HTTP/1.1\r\n"]);
    for (name, value) in headers {
        push(out, &[name.as_ref(), ": ", value.as_ref(), "\r\n"]);
    }
    if !has_length && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
        push(out, &["Content-Length: "]);
        number::push(out, body.len() as u64);
        push(out, &["\r\n"]);
    }
    if close && !has_close {
        push(out, &["Connection: close\r\n"]);
    }
    push(out, &["\r\n"]);
    out.extend_from_slice(body);
    Ok(())
}

fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}
