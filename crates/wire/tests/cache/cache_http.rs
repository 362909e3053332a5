//! Tables of methods and targets of a cache over HTTP.

use wire::cache_http::{Limits, Operation, parse, parse_target};
use wire::http1;

const LIMITS: Limits = Limits { key_bytes: 5, value_bytes: 8 };

fn words(method: &str, target: &str) -> String {
    let decoded = |bytes: std::borrow::Cow<'_, [u8]>| format!("\"{}\"", bytes.escape_ascii());
    match parse_target(method, target, &LIMITS) {
        Ok(Operation::Get { key, head }) => format!("{} {}", if head { "head" } else { "get" }, decoded(key)),
        Ok(Operation::Put { key, value }) => format!("put {} {}", decoded(key), decoded(value)),
        Ok(Operation::Delete(key)) => format!("delete {}", decoded(key)),
        Ok(Operation::Status) => "status".to_owned(),
        Ok(Operation::Reset) => "reset".to_owned(),
        Err(refusal) => format!("{} {}", refusal.status, refusal.to_string().split(':').next().unwrap_or_default()),
    }
}

#[test]
fn targets() {
    #[rustfmt::skip]
    let cases = [
        ("GET", "/k", r#"get "k""#),
        ("GET", "/k%20%25", r#"get "k %""#),
        ("GET", "/%2F", r#"get "/""#),
        ("GET", "/a+b", r#"get "a+b""#),
        ("GET", "/%00%ff", r#"get "\x00\xff""#),
        ("GET", "/reset", r#"get "reset""#),
        ("GET", "/12345", r#"get "12345""#),
        ("GET", "/%31%32%33%34%35", r#"get "12345""#),
        ("GET", "/123456", "414 a key of 6 bytes, over the limit of 5"),
        ("GET", "/", "400 missing key"),
        ("GET", "//", "400 missing key"),
        ("GET", "/k/", "400 more than a key"),
        ("GET", "/k/v", "400 more than a key"),
        ("GET", "/%", "400 `%` without two hexadecimal digits"),
        ("GET", "/%4", "400 `%` without two hexadecimal digits"),
        ("GET", "/%4g", "400 `%` without two hexadecimal digits"),
        ("GET", "/%%41", "400 `%` without two hexadecimal digits"),
        ("GET", "/k?a=b", "400 a query"),
        ("GET", "/k%3Fa", r#"get "k?a""#),
        ("GET", "http://host:1/k", r#"get "k""#),
        ("GET", "http://host", "400 missing key"),
        ("GET", "http://host?a/k", "400 a query"),
        ("GET", "*", "400 missing key"),
        ("HEAD", "/", "status"),
        ("HEAD", "http://host", "status"),
        ("HEAD", "/k", r#"head "k""#),
        ("PUT", "/k/v", r#"put "k" "v""#),
        ("PUT", "/k/a/b/", r#"put "k" "a/b/""#),
        ("PUT", "/k/a%2Fb", r#"put "k" "a/b""#),
        ("PUT", "/k//", r#"put "k" "/""#),
        ("PUT", "/k/", r#"put "k" """#),
        ("PUT", "/k", "400 missing value"),
        ("PUT", "/", "400 missing key"),
        ("PUT", "//v", "400 missing key"),
        ("PUT", "/k/%zz", "400 `%` without two hexadecimal digits"),
        ("PUT", "/k/a?b", "400 a query"),
        ("PUT", "/k/12345678", r#"put "k" "12345678""#),
        ("PUT", "/k/123456789", "413 a value of 9 bytes, over the limit of 8"),
        ("PUT", "/123456/v", "414 a key of 6 bytes, over the limit of 5"),
        ("DELETE", "/k", r#"delete "k""#),
        ("DELETE", "/k/v", "400 more than a key"),
        ("DELETE", "/", "400 missing key"),
        ("POST", "/reset", "reset"),
        ("POST", "/reset/", "404 POST is only valid for `/reset`"),
        ("POST", "/k", "404 POST is only valid for `/reset`"),
        ("POST", "/", "404 POST is only valid for `/reset`"),
        ("PATCH", "/k", "405 a method other than GET, PUT, DELETE, HEAD, POST"),
        ("OPTIONS", "*", "405 a method other than GET, PUT, DELETE, HEAD, POST"),
        ("get", "/k", "405 a method other than GET, PUT, DELETE, HEAD, POST"),
    ];
    for (method, target, expect) in cases {
        assert_eq!(words(method, target), expect, "{method} {target}");
    }
}

#[test]
fn rejects_nonempty_bodies() {
    for (length, expect) in [("0", None), ("1", Some("a body: the value of PUT goes in the target, `/key/value`"))] {
        let head = format!("PUT /k/v HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let (request, _) = http1::parse_request(head.as_bytes(), &http1::Limits::DEFAULT).unwrap().unwrap();
        assert_eq!(parse(&request, &Limits::DEFAULT).err().map(|refusal| refusal.to_string()).as_deref(), expect);
    }
}
