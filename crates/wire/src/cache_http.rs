//! A cache over HTTP/1.1: maps methods and targets, as read by [`crate::http1`], to operations.
//!
//! ```
//! use wire::cache_http::{Limits, Operation, parse};
//! use wire::http1;
//!
//! let bytes = b"PUT /city/S%C3%A3o%20Paulo HTTP/1.1\r\nHost: a\r\n\r\n";
//! let (request, _) = http1::parse_request(bytes, &http1::Limits::DEFAULT).unwrap().unwrap();
//! let Ok(Operation::Put { key, value }) = parse(&request, &Limits::DEFAULT) else { panic!("it is a PUT") };
//! assert_eq!((&*key, &*value), (b"city".as_slice(), "São Paulo".as_bytes()));
//! ```
//!
//! | request | success | otherwise |
//! |---|---|---|
//! | `GET /k` | 200, the value as body | 404, empty body |
//! | `HEAD /k` | 200, the value's `Content-Length` | 404 |
//! | `PUT /k/v` | 201 if created, 204 if replaced | 413 for a value over the limit, 507 if the cache is full and evicts nothing |
//! | `DELETE /k` | 204 | 404 |
//! | `HEAD /` | 200, memory use in header fields | |
//! | `POST /reset` | 204, all keys are deleted | |
//! | anything else | | 400 for most [`Refusal`]s, 404 for any other `POST`, 405 for any other method, 414 for a target or key over the limit |
//!
//! The connection stays open in all cases, because the framing was valid.
//!
//! # Target syntax
//!
//! - The key is between the first and the second `/`; the value is **everything** after the second: `PUT /k/a/b` stores
//!   `a/b`. A slash in a key must be written as `%2F`; in a value, this is optional.
//! - `PUT /k/` stores the **empty value**. `PUT /k` has **no value**, which is an error (400).
//! - An empty key is an error, except in `HEAD /`. `reset` is an ordinary key except in `POST`.
//! - A target of `GET`, `HEAD` or `DELETE` has one segment: `GET /a/b` is an error, not the key `a/b`.
//! - `%` and two hexadecimal digits encode one byte; other uses of `%` are errors. `+` is a plus sign.
//! - `?` is an error, because no request has a query; write `%3F`. In absolute form, the authority is ignored.
//! - A nonempty or chunked body is an error (400). The server skips the body.

use std::borrow::Cow;

use crate::decimal::hexadecimal;
use crate::http1::{Body, Request};

/// Limits on the sizes of decoded keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a decoded key, in bytes.
    pub key_bytes: usize,
    /// Maximum size of a decoded value, in bytes. The size limit of the request head also bounds it.
    pub value_bytes: usize,
}

impl Limits {
    /// Default limits, as in memcached: keys of 250 B and values of 1 MiB.
    pub const DEFAULT: Limits = Limits { key_bytes: 250, value_bytes: 1 << 20 };
}

/// The operation that a valid request specifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Reads the value of a key, or only its presence and size with `HEAD`.
    Get {
        /// Key to read.
        key: Cow<'a, [u8]>,
        /// Whether to return only presence and size (`HEAD`).
        head: bool,
    },
    /// Stores a value under a key.
    Put {
        /// Key under which the value is stored.
        key: Cow<'a, [u8]>,
        /// The value, possibly empty.
        value: Cow<'a, [u8]>,
    },
    /// Deletes the contained key.
    Delete(Cow<'a, [u8]>),
    /// Reports memory use (`HEAD /`).
    Status,
    /// Deletes all keys (`POST /reset`).
    Reset,
}

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The response status: 400, 404, 405, 413 or 414.
    pub status: u16,
    reason: Cow<'static, str>,
}

impl Refusal {
    fn new(status: u16, reason: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { status, reason: reason.into() }
    }

    fn too_long(status: u16, what: &str, bytes: usize, limit: usize) -> Refusal {
        Refusal::new(status, format!("{what} of {bytes} bytes, over the limit of {limit}"))
    }
}

/// The value of the `Allow` header in a response with status 405. Source: RFC 9110, section 15.5.6.
pub const ALLOW: &str = "GET, PUT, DELETE, HEAD, POST";

/// Interprets `request` as a cache operation. Fails if it has a body, exceeds `limits` or is not in the module's table.
pub fn parse<'a>(request: &Request<'a>, limits: &Limits) -> Result<Operation<'a>, Refusal> {
    if !matches!(request.body, Body::None | Body::Length(0)) {
        return Err(Refusal::new(400, "a body: the value of PUT goes in the target, `/key/value`"));
    }
    parse_target(request.method, request.target, limits)
}

/// Interprets a method and a target like [`parse`]. [`crate::http1::parse_request`] must have accepted both.
pub fn parse_target<'a>(method: &str, target: &'a str, limits: &Limits) -> Result<Operation<'a>, Refusal> {
    let bad = |reason| Refusal::new(400, reason);
    let no_key = || bad("missing key: the target is `/` and a key");
    let query = || bad("a query: write a question mark in a key as `%3F`");
    let bad_escape = || bad("`%` without two hexadecimal digits: write a percent sign as `%25`");
    let no_value = || bad("missing value: the target of PUT is `/key/value`, or `/key/` for an empty value");
    if !matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "POST") {
        return Err(Refusal::new(405, "a method other than GET, PUT, DELETE, HEAD, POST"));
    }
    let path = match target.strip_prefix('/') {
        Some(path) => path,
        None => match target.split_once("://") {
            Some((_, rest)) if rest.split('/').next().unwrap_or_default().contains('?') => return Err(query()),
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => return Err(no_key()),
        },
    };
    if path.contains('?') {
        return Err(query());
    }
    match method {
        "POST" if path == "reset" => return Ok(Operation::Reset),
        "POST" => return Err(Refusal::new(404, "POST is only valid for `/reset`")),
        "HEAD" if path.is_empty() => return Ok(Operation::Status),
        _ => {}
    }
    let (key, value) = path.split_once('/').map_or((path, None), |(key, value)| (key, Some(value)));
    if key.is_empty() {
        return Err(no_key());
    }
    let key = decode(key.as_bytes()).ok_or_else(bad_escape)?;
    let value = match (method, value) {
        ("PUT", Some(value)) => Some(decode(value.as_bytes()).ok_or_else(bad_escape)?),
        ("PUT", None) => return Err(no_value()),
        (_, Some(_)) => return Err(bad("more than a key: write a slash in a key as `%2F`")),
        (_, None) => None,
    };
    if key.len() > limits.key_bytes {
        return Err(Refusal::too_long(414, "a key", key.len(), limits.key_bytes));
    }
    Ok(match (method, value) {
        (_, Some(value)) if value.len() > limits.value_bytes => {
            return Err(Refusal::too_long(413, "a value", value.len(), limits.value_bytes));
        }
        (_, Some(value)) => Operation::Put { key, value },
        ("DELETE", None) => Operation::Delete(key),
        (_, None) => Operation::Get { key, head: method == "HEAD" },
    })
}

/// Decodes percent-encoded text; `None` if two digits do not follow each `%`. Allocates only if a byte is encoded.
/// Source: RFC 3986, section 2.1.
fn decode(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'%', text).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let [high, low] = *rest[at + 1..].first_chunk()?;
        if !(high.is_ascii_hexdigit() && low.is_ascii_hexdigit()) {
            return None;
        }
        out.push(hexadecimal(high) << 4 | hexadecimal(low));
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
    Some(Cow::Owned(out))
}
