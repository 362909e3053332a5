//! Tables of composed requests.

use wire::http1::compose_request;

fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &str, close: bool) -> Result<String, String> {
    let mut out = b"before".to_vec();
    let result = compose_request(&mut out, method, target, headers, body.as_bytes(), close);
    let text = String::from_utf8(out).unwrap();
    let added = text.strip_prefix("before").unwrap();
    assert!(result.is_ok() || added.is_empty(), "nothing is written on refusal");
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
fn rejects_invalid_requests() {
    let check = |method, target, headers: &[(&str, &str)], expect: &str| {
        assert_eq!(request(method, target, headers, "test", false).unwrap_err(), expect);
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
