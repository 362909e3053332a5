//! What is written: the bytes, and what is refused.

use wire::http1::{
    Body, ComposeError, check_header, check_method, check_target, compose_chunk, compose_last_chunk, compose_request,
    compose_response_head,
};

fn request(
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
    close: bool,
) -> Result<String, ComposeError> {
    let mut out = b"before".to_vec();
    let result = compose_request(&mut out, method, target, headers, body.as_bytes(), close);
    let text = String::from_utf8(out).unwrap();
    let added = text.strip_prefix("before").unwrap();
    assert!(result.is_ok() || added.is_empty(), "nothing is written of what is refused");
    result.map(|()| added.to_owned())
}

const HOST: (&str, &str) = ("Host", "a");

#[test]
fn requests() {
    let check = |method, target, headers: &[(&str, &str)], body, close, expect: &str| {
        assert_eq!(request(method, target, headers, body, close).as_deref(), Ok(expect));
    };
    check("GET", "/", &[HOST], "", false, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    check(
        "GET",
        "/a?b",
        &[HOST, ("X", "y")],
        "",
        true,
        "GET /a?b HTTP/1.1\r\nHost: a\r\nX: y\r\nConnection: close\r\n\r\n",
    );
    check("POST", "/", &[HOST], "test", false, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ntest");
    check("POST", "/", &[HOST], "", false, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    check("GET", "/", &[HOST], "a", false, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na");
    let given = [HOST, ("content-length", "4"), ("connection", "x, Close")];
    let expect = "PUT / HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\nconnection: x, Close\r\n\r\ntest";
    check("PUT", "/", &given, "test", true, expect);
    check("OPTIONS", "*", &[HOST], "", false, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    check("CONNECT", "a:443", &[HOST], "", false, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n");
}

#[test]
fn requests_that_are_refused() {
    let check = |method, target, headers: &[(&str, &str)], expect: &str| {
        assert_eq!(request(method, target, headers, "test", false).unwrap_err().to_string(), expect);
    };
    let (marks, path) = ("!#$%&'*+-.^_`|~", "expected an ASCII path that starts with `/`, without spaces or `#`");
    check("GET /a", "/", &[HOST], &format!("`GET /a` is not a valid method: only letters, digits and {marks}"));
    check("", "/", &[HOST], &format!("`` is not a valid method: only letters, digits and {marks}"));
    check("GET\r\n", "/", &[HOST], &format!("`GET\\r\\n` is not a valid method: only letters, digits and {marks}"));
    check("GET", "", &[HOST], &format!("`` is not a valid target for GET: {path}"));
    check("GET", "a", &[HOST], &format!("`a` is not a valid target for GET: {path}"));
    check("GET", "/a b", &[HOST], &format!("`/a b` is not a valid target for GET: {path}"));
    check("GET", "/\r\nX: y", &[HOST], &format!("`/\\r\\nX: y` is not a valid target for GET: {path}"));
    check("GET", "/ä", &[HOST], &format!("`/ä` is not a valid target for GET: {path}"));
    let names = format!("is not a valid header name: only letters, digits and {marks}");
    check("GET", "/", &[HOST, ("X Y", "z")], &format!("`X Y` {names}"));
    check("GET", "/", &[HOST, ("", "z")], &format!("`` {names}"));
    check("GET", "/", &[HOST, ("X:", "z")], &format!("`X:` {names}"));
    let controls = "control characters cannot be sent";
    check("GET", "/", &[HOST, ("X", "y\r\nZ: 1")], &format!("0x0d in the value of header `X`, at byte 1: {controls}"));
    check("GET", "/", &[HOST, ("X", "\n")], &format!("0x0a in the value of header `X`, at byte 0: {controls}"));
    check("GET", "/", &[HOST, ("X", "ab\0")], &format!("0x00 in the value of header `X`, at byte 2: {controls}"));
    check("GET", "/", &[], "0 `Host` headers: a request has exactly one");
    check("GET", "/", &[HOST, ("host", "b")], "2 `Host` headers: a request has exactly one");
    check("GET", "/", &[("Host", "http://a")], "`http://a` is not a valid host and port");
    let length = "for a body of 4 bytes: drop it, it is added automatically";
    check("GET", "/", &[HOST, ("Content-Length", "5")], &format!("`Content-Length: 5` {length}"));
    check("GET", "/", &[HOST, ("Content-Length", "four")], &format!("`Content-Length: four` {length}"));
    let encoding = "`Transfer-Encoding` is not supported: a body is sent with `Content-Length`";
    check("GET", "/", &[HOST, ("Transfer-Encoding", "chunked")], encoding);
}

#[test]
fn parts_are_checked_alone() {
    assert!(check_method("PROPFIND").is_ok() && check_method("a(b").is_err());
    assert!(check_target("GET", "/a").is_ok() && check_target("GET", "*").is_err());
    assert!(check_header("X", "a\tb").is_ok() && check_header("X", "ä").is_ok() && check_header("X", "\x7f").is_err());
}

fn response(status: u16, headers: &[(&str, &str)], body: Body, close: bool) -> Result<String, String> {
    let mut out = Vec::new();
    let result = compose_response_head(&mut out, status, headers, body, close).map_err(|error| error.to_string());
    assert!(result.is_ok() || out.is_empty());
    result.map(|()| String::from_utf8(out).unwrap())
}

#[test]
fn responses() {
    let check = |status, headers: &[(&str, &str)], body, close, expect: &str| {
        assert_eq!(response(status, headers, body, close).as_deref(), Ok(expect));
    };
    check(200, &[], Body::Length(4), false, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    check(200, &[("A", "b")], Body::Chunked, false, "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n");
    check(100, &[], Body::None, false, "HTTP/1.1 100 Continue\r\n\r\n");
    check(204, &[], Body::None, true, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    check(299, &[], Body::Length(0), false, "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn responses_that_are_refused() {
    let check = |status, headers: &[(&str, &str)], body, expect: &str| {
        assert_eq!(response(status, headers, body, false).unwrap_err(), expect);
    };
    check(99, &[], Body::Length(0), "99 is not a valid status, or does not fit this body");
    check(600, &[], Body::Length(0), "600 is not a valid status, or does not fit this body");
    check(204, &[], Body::Length(1), "204 is not a valid status, or does not fit this body");
    check(200, &[], Body::None, "200 is not a valid status, or does not fit this body");
    check(
        200,
        &[("A", "\n")],
        Body::Chunked,
        "0x0a in the value of header `A`, at byte 0: control characters cannot be sent",
    );
    assert!(response(200, &[("Content-Length", "1")], Body::Length(1), false).is_err());
    assert!(response(200, &[("Transfer-Encoding", "chunked")], Body::Length(1), false).is_err());
}

#[test]
fn chunks() {
    let mut out = Vec::new();
    compose_chunk(&mut out, b"");
    compose_chunk(&mut out, &[b'a'; 26]);
    compose_chunk(&mut out, b"b");
    compose_last_chunk(&mut out);
    assert_eq!(out, b"1a\r\naaaaaaaaaaaaaaaaaaaaaaaaaa\r\n1\r\nb\r\n0\r\n\r\n");
}
