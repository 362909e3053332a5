//! Tables of methods and targets of a cache over HTTP.

use wire::cache_http::{Encoded, Limits, Operation, Refusal, parse, parse_target};
use wire::http1;

const LIMITS: Limits = Limits { key_bytes: 5, value_bytes: 8 };

fn words(method: &str, target: &str) -> String {
    let decoded = |encoded: Encoded<'_>| format!("\"{}\"", encoded.decode().escape_ascii());
    match parse_target(method, target, &LIMITS) {
        Ok(Operation::Get { key, head }) => format!("{} {}", if head { "head" } else { "get" }, decoded(key)),
        Ok(Operation::Put { key, value }) => format!("put {} {}", decoded(key), decoded(value)),
        Ok(Operation::Delete(key)) => format!("delete {}", decoded(key)),
        Ok(Operation::Status) => "status".to_owned(),
        Ok(Operation::Reset) => "reset".to_owned(),
        Err(refusal) => format!("{} {}", refusal.status(), crate::bodies::variant(refusal)),
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
        ("GET", "/123456", "414 key-too-long"),
        ("GET", "/", "400 no-key"),
        ("GET", "//", "400 no-key"),
        ("GET", "/k/", "400 not-a-key"),
        ("GET", "/k/v", "400 not-a-key"),
        ("GET", "/%", "400 bad-escape"),
        ("GET", "/%4", "400 bad-escape"),
        ("GET", "/%4g", "400 bad-escape"),
        ("GET", "/%%41", "400 bad-escape"),
        ("GET", "/k?a=b", "400 query"),
        ("GET", "/k%3Fa", r#"get "k?a""#),
        ("GET", "http://host:1/k", r#"get "k""#),
        ("GET", "http://host", "400 no-key"),
        ("GET", "http://host?a/k", "400 query"),
        ("GET", "*", "400 no-key"),
        ("HEAD", "/", "status"),
        ("HEAD", "http://host", "status"),
        ("HEAD", "/k", r#"head "k""#),
        ("PUT", "/k/v", r#"put "k" "v""#),
        ("PUT", "/k/a/b/", r#"put "k" "a/b/""#),
        ("PUT", "/k/a%2Fb", r#"put "k" "a/b""#),
        ("PUT", "/k//", r#"put "k" "/""#),
        ("PUT", "/k/", r#"put "k" """#),
        ("PUT", "/k", "400 no-value"),
        ("PUT", "/", "400 no-key"),
        ("PUT", "//v", "400 no-key"),
        ("PUT", "/k/%zz", "400 bad-escape"),
        ("PUT", "/k/a?b", "400 query"),
        ("PUT", "/k/12345678", r#"put "k" "12345678""#),
        ("PUT", "/k/123456789", "413 value-too-large"),
        ("PUT", "/123456/v", "414 key-too-long"),
        ("DELETE", "/k", r#"delete "k""#),
        ("DELETE", "/k/v", "400 not-a-key"),
        ("DELETE", "/", "400 no-key"),
        ("POST", "/reset", "reset"),
        ("POST", "/reset/", "404 unknown-resource"),
        ("POST", "/k", "404 unknown-resource"),
        ("POST", "/", "404 unknown-resource"),
        ("PATCH", "/k", "405 unknown-method"),
        ("OPTIONS", "*", "405 unknown-method"),
        ("get", "/k", "405 unknown-method"),
    ];
    for (method, target, expect) in cases {
        assert_eq!(words(method, target), expect, "{method} {target}");
    }
}

#[test]
fn rejects_nonempty_bodies() {
    for (length, expect) in [("0", None), ("1", Some(Refusal::HasBody))] {
        let head = format!("PUT /k/v HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let (request, _) = http1::parse_request(head.as_bytes(), &http1::Limits::DEFAULT).unwrap().unwrap();
        assert_eq!(parse(&request, &Limits::DEFAULT).err(), expect);
    }
}
