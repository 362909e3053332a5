//! Writes requests. Input that would end a line early, and so inject a second message, is an error.

use super::fields::{self, is_token};
use super::request::{check_target, is_host};
use crate::decimal;

const MARKS: &str = "!#$%&'*+-.^_`|~";

/// Appends an HTTP/1.1 request to `out`. `headers` must have `Host`. Adds fields that `headers` lacks: `Content-Length`
/// for POST, PUT, PATCH and nonempty bodies (RFC 9110, section 8.6), and `Connection: close` if `close` is set.
/// Fails with the reason, and leaves `out` unchanged, if a server would read the request differently: the method or a
/// name is not a token (RFC 9110, sections 5.1 and 9.1), the target or `Host` is invalid (RFC 9112, section 3.2), a
/// value has control characters (RFC 9110, section 5.5), or `Content-Length` is wrong (RFC 9112, section 6.2).
pub fn compose_request<N: AsRef<str>, V: AsRef<str>>(
    out: &mut Vec<u8>,
    method: &str,
    target: &str,
    headers: &[(N, V)],
    body: &[u8],
    close: bool,
) -> Result<(), String> {
    if !is_token(method.as_bytes()) {
        let shown = method.escape_debug();
        return Err(format!("`{shown}` is not a valid method: only letters, digits and {MARKS}"));
    }
    if check_target(method, target).is_err() {
        return Err(format!(
            "`{}` is not a valid target for {method}: expected an ASCII path that starts with `/`, without spaces or \
             `#`",
            target.escape_debug()
        ));
    }
    let (mut hosts, mut has_length, mut has_close) = (0, false, false);
    for (name, value) in headers.iter().map(|(name, value)| (name.as_ref(), value.as_ref())) {
        if !is_token(name.as_bytes()) {
            let shown = name.escape_debug();
            return Err(format!("`{shown}` is not a valid header name: only letters, digits and {MARKS}"));
        }
        if let Some((at, byte)) = value.bytes().enumerate().find(|&(_, byte)| fields::is_control(byte)) {
            return Err(format!(
                "0x{byte:02x} in the value of header `{name}`, at byte {at}: control characters cannot be sent"
            ));
        }
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            hosts += 1;
            if !is_host(value.trim_ascii().as_bytes()) {
                return Err(format!("`{}` is not a valid host and port", value.escape_debug()));
            }
        } else if is("content-length") {
            has_length = true;
            if decimal::unsigned_of_any_length(value.trim_ascii().as_bytes()) != Some(body.len() as u64) {
                return Err(format!(
                    "`Content-Length: {}` for a body of {} bytes: drop it, it is added automatically",
                    value.escape_debug(),
                    body.len()
                ));
            }
        } else if is("transfer-encoding") {
            return Err("`Transfer-Encoding` is not supported: a body is sent with `Content-Length`".to_owned());
        } else if is("connection") {
            has_close |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        }
    }
    if hosts != 1 {
        return Err(format!("{hosts} `Host` headers: a request has exactly one"));
    }
    push(out, &[method, " ", target, " HTTP/1.1\r\n"]);
    for (name, value) in headers {
        push(out, &[name.as_ref(), ": ", value.as_ref(), "\r\n"]);
    }
    if !has_length && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
        push(out, &["Content-Length: "]);
        decimal::push(out, body.len() as u64);
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
