//! Parses HTTP/1.1 as strictly as RFC 9112 allows. Shares no code with quintain's servers, which it also verifies.

use super::unsuccessful_check_reason::excerpt;

pub(super) const HEAD_MAX: usize = 64 * 1024;
pub(super) const BODY_MAX: usize = 16 << 20;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Header fields, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) head_bytes: usize,
}

/// How the end of a body is determined (RFC 9112, section 6.3).
#[derive(Debug, PartialEq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
    UntilEnd,
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(super) fn has_connection_close(&self) -> bool {
        let options = self.header("connection").into_iter().flat_map(|value| value.split(','));
        options.into_iter().any(|option| option.trim().eq_ignore_ascii_case("close"))
    }
}

/// Parses a head, given without its final empty line and the body. `head` says whether the request was HEAD.
pub(super) fn parse(bytes: &[u8], head: bool) -> Result<(Response, Framing), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| format!("a head that is not text: {}", quoted(bytes)))?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    if line.is_empty() {
        return Err("a response begins with an empty line".to_owned());
    }
    let status = status(line).ok_or(format!("`{}` is not a status line", line.escape_default()))?;
    let mut headers = Vec::new();
    for line in lines {
        let field = line.split_once(':').filter(|(name, value)| is_token(name) && !value.contains(['\r', '\n', '\0']));
        let (name, value) = field.ok_or(format!("`{}` is not a header", line.escape_default()))?;
        headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
    let response = Response { status, headers, body: Vec::new(), head_bytes: bytes.len() + 4 };
    let framing = framing(&response, head)?;
    Ok((response, framing))
}

/// Parses a status line (RFC 9112, section 4); `None` if invalid.
fn status(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "))?;
    let (code, reason) = rest.split_once(' ')?;
    let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    code.parse().ok().filter(|code| is_code && (100..600).contains(code) && !reason.contains(['\r', '\n', '\0']))
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Determines the framing of the body (RFC 9112, section 6.3). Fails on any error instead of repairing it.
fn framing(response: &Response, head: bool) -> Result<Framing, String> {
    let (codings, lengths) = (response.header("transfer-encoding"), response.header("content-length"));
    let length = match lengths[..] {
        [] => None,
        [one] if !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length = one.parse().ok().filter(|length| *length <= BODY_MAX);
            Some(length.ok_or(format!("a body of {one} bytes is longer than {BODY_MAX}"))?)
        }
        _ => return Err(format!("Content-Length is `{}`", lengths.join("`, `"))),
    };
    if !codings.is_empty() && length.is_some() {
        return Err("Content-Length beside Transfer-Encoding".to_owned());
    }
    if head || matches!(response.status, ..200 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    match (codings.len(), length) {
        (0, Some(length)) => Ok(Framing::Length(length)),
        (0, None) => Ok(Framing::UntilEnd),
        (1, _) if codings[0].eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
        _ => Err(format!("Transfer-Encoding is `{}`", codings.join("`, `"))),
    }
}

pub(super) fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", excerpt(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, is_head: bool, expected: &str) {
        let text = match parse(head.as_bytes(), is_head) {
            Ok((response, framing)) => format!("{} {framing:?}", response.status),
            Err(error) => error,
        };
        assert!(text.starts_with(expected), "{head:?}: {text}");
    }

    #[test]
    fn framings() {
        for (head, is_head, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 4", false, "200 Length(4)"),
            ("HTTP/1.1 200 \r\ncontent-length:4 ", false, "200 Length(4)"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 4", true, "200 Length(0)"),
            ("HTTP/1.0 200 OK", false, "200 UntilEnd"),
            ("HTTP/1.1 204 No Content", false, "204 Length(0)"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 4", false, "304 Length(0)"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", false, "200 Chunked"),
        ] {
            check(head, is_head, expected);
        }
    }

    #[test]
    fn rejects_malformed_heads() {
        for (head, expected) in [
            ("", "a response begins with an empty line"),
            ("HTTP/1.1 200", "`HTTP/1.1 200` is not a status line"),
            ("HTTP/1.1 20 OK", "`HTTP/1.1 20 OK` is not a status line"),
            ("HTTP/1.1 2000 OK", "`HTTP/1.1 2000 OK` is not a status line"),
            ("HTTP/1.1 999 OK", "`HTTP/1.1 999 OK` is not a status line"),
            ("HTTP/2 200 OK", "`HTTP/2 200 OK` is not a status line"),
            ("testHTTP/1.1 200 OK", "`testHTTP/1.1 200 OK` is not a status line"),
            ("HTTP/1.1 200 OK\nA: b", "`HTTP/1.1 200 OK\\nA: b` is not a status line"),
            ("HTTP/1.1 200 OK\r\nA", "`A` is not a header"),
            ("HTTP/1.1 200 OK\r\nA : b", "`A : b` is not a header"),
            ("HTTP/1.1 200 OK\r\nA: b\r\n c", "` c` is not a header"),
            ("HTTP/1.1 200 OK\r\nA: b\nC: d", "`A: b\\nC: d` is not a header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: +4", "Content-Length is `+4`"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4", "Content-Length is `4`, `4`"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999", "a body of 9999"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length beside"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip", "Transfer-Encoding is `gzip`"),
        ] {
            check(head, false, expected);
        }
        assert!(parse(b"HTTP/1.1 200 OK\r\nA: \xff", false).unwrap_err().starts_with("a head that is not text"));
    }
}
