//! Tables of requests: heads, targets, framing, limits.

use wire::http1::{Body, BodyReader, Limits, MessageError, parse_request};

use crate::describe_stream;

type Case = (&'static str, &'static [u8], &'static str);

fn check_all(limits: Limits, cases: &[Case]) {
    let mut wrong = Vec::new();
    for (name, bytes, expect) in cases {
        for pieces in describe_stream::cuts(bytes) {
            let lengths = || pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>();
            let found = describe_stream::requests(limits, &pieces);
            if found != *expect {
                wrong.push(format!("{name}, cut {:?}:\n  {found}\n  {expect} expected", lengths()));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let names = cases.iter().map(|case| case.0).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
}

#[test]
fn heads() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, &[
        ("wrk's request", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", "GET / 1.1 keep"),
        ("two in one piece", b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: b\r\n\r\n", "GET /a 1.1 keep; HEAD /b 1.1 keep"),
        ("empty lines before it", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / 1.1 keep"),
        ("an empty line between", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / 1.1 keep; GET / 1.1 keep"),
        ("half of one", b"GET / HTTP/1.1\r\nHo", "more"),
        ("without its last byte", b"GET / HTTP/1.1\r\nHost: a\r\n\r", "more"),
        ("one and a half", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", "GET / 1.1 keep; more"),
        ("nothing", b"", ""),
        ("close", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / 1.1 close"),
        ("HTTP/1.0", b"GET / HTTP/1.0\r\n\r\n", "GET / 1.0 close"),
        ("ab's request", b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: a\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n", "GET / 1.0 keep"),
        ("an undefined method", b"FROB! / HTTP/1.1\r\nHost: a\r\n\r\n", "FROB! / 1.1 keep"),
        ("values are cut", b"GET / HTTP/1.1\r\nHost: \t a \t\r\nA:\r\nB: c  d\r\n\r\n", "GET / 1.1 keep"),
        ("bytes beyond ASCII in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: \x80\xff\r\n\r\n", "GET / 1.1 keep"),
        // RFC 9112, sections 2.2, 2.3 and 3.
        ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "error 505 bad-version"),
        ("HTTP/3.0", b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "error 505 bad-version"),
        // RFC 9110, section 2.5.
        ("HTTP/1.2", b"GET /a HTTP/1.2\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /a 1.1 close"),
        ("HTTP/1.2 behind an empty line", b"\r\nGET / HTTP/1.9\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\n", "GET / 1.1 keep; GET /b 1.1 keep"),
        ("half of HTTP/1.2", b"GET / HTTP/1.2\r\nHost", "more"),
        ("HTTP/1.2 without a host", b"GET / HTTP/1.2\r\n\r\n", "error 400 missing-host"),
        ("HTTP/1.25", b"GET / HTTP/1.25\r\nHost: a\r\n\r\n", "error 400 bad-line-end"),
        ("HTTP/0.9", b"GET / HTTP/0.9\r\n\r\n", "error 505 bad-version"),
        ("a version of two digits", b"GET / HTTP/12.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("a version in small letters", b"GET / http/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("another protocol's version", b"GET / ICAP/1.0\r\n\r\n", "error 400 bad-request-line"),
        ("no version", b"GET /\r\n\r\n", "error 400 bad-request-line"),
        ("a space behind the version", b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "error 400 bad-line-end"),
        ("two spaces before the target", b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("two spaces before the version", b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("a tab for a space", b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("a space before the method", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("a method in brackets", b"(GET) / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("NUL in the method", b"G\0T / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("a hello of TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", "error 400 bad-request-line"),
        ("a response", b"HTTP/1.1 200 OK\r\n\r\n", "error 400 bad-request-line"),
        ("LF ends the request line", b"GET / HTTP/1.1\nHost: a\r\n\r\n", "error 400 bare-lf"),
        ("LF ends a field", b"GET / HTTP/1.1\r\nHost: a\n\r\n", "error 400 bare-lf"),
        ("LF ends the head", b"GET / HTTP/1.1\r\nHost: a\r\n\n", "error 400 bare-lf"),
        ("LF before it", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bare-lf"),
        ("LF smuggles a field", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\nContent-Length: 5\r\n\r\n", "error 400 bare-lf"),
        ("CR ends the request line", b"GET / HTTP/1.1\rHost: a\r\n\r\n", "error 400 bad-line-end"),
        ("CR in a value", b"GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n", "error 400 bad-field-value"),
        ("CR before it", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-line-end"),
        ("CR at the head's end", b"GET / HTTP/1.1\r\nHost: a\r\n\rX", "error 400 bad-line-end"),
        // RFC 9112, section 5, and RFC 9110, section 5.
        ("space before the colon", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "error 400 bad-field-name"),
        ("no name", b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "error 400 bad-field-name"),
        ("no colon", b"GET / HTTP/1.1\r\nHost\r\n\r\n", "error 400 bad-field-name"),
        ("NUL in a name", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length\0: 1\r\n\r\n", "error 400 bad-field-name"),
        ("NUL in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\0\r\n\r\n", "error 400 bad-field-value"),
        ("DEL in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: \x7f\r\n\r\n", "error 400 bad-field-value"),
        ("a folded line", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", "error 400 bad-field-name"),
        ("a folded line first", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "error 400 bad-field-name"),
        // RFC 9110, section 10.1.1.
        ("expect", b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\na", r#"POST / 1.1 keep expect "a""#),
        ("expect without body", b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "GET / 1.1 keep"),
        ("expect of HTTP/1.0", b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na", r#"POST / 1.0 close "a""#),
        ("another expectation", b"POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\na", r#"POST / 1.1 keep "a""#),
    ]);
}

#[test]
fn targets() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, &[
        // RFC 9112, section 3.2.
        ("path and query", b"GET /a/b?c=d&e=%20 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a/b?c=d&e=%20 1.1 keep"),
        ("characters that clients forget to encode", b"GET /{a}|[b]\"<c>^`\\ HTTP/1.1\r\nHost: a\r\n\r\n", r#"GET /{a}|[b]"<c>^`\ 1.1 keep"#),
        ("a path of slashes", b"GET //a// HTTP/1.1\r\nHost: a\r\n\r\n", "GET //a// 1.1 keep"),
        ("absolute form", b"GET http://a.example:80/b?c HTTP/1.1\r\nHost: other\r\n\r\n", "GET http://a.example:80/b?c 1.1 keep"),
        ("absolute form without path", b"GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET HTTPS://a 1.1 keep"),
        ("absolute form of IPv6", b"GET http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET http://[::1]:8080/ 1.1 keep"),
        ("absolute form without host", b"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("absolute form with a port alone", b"GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("absolute form with a user", b"GET http://b@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("a scheme that is none", b"GET 1http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("asterisk of OPTIONS", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * 1.1 keep"),
        ("asterisk of GET", b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("asterisk and more", b"OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("authority of CONNECT", b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "CONNECT a.example:443 1.1 keep"),
        ("authority of CONNECT, IPv6", b"CONNECT [::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT [::1]:443 1.1 keep"),
        ("authority without port", b"CONNECT a.example HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("authority with a port too large", b"CONNECT a:65536 HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("authority without host", b"CONNECT :443 HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("path of CONNECT", b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("authority of GET", b"GET a.example:80 HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("a path without slash", b"GET index.html HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("a fragment", b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-target"),
        ("a target beyond ASCII", "GET /ä HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes(), "error 400 bad-target"),
        ("a target that is no UTF-8", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("NUL in the target", b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", "error 400 bad-request-line"),
        ("no Host", b"GET / HTTP/1.1\r\n\r\n", "error 400 missing-host"),
        ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "error 400 duplicate-host"),
        ("two Hosts alike", b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "error 400 duplicate-host"),
        ("two Hosts in HTTP/1.0", b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "error 400 duplicate-host"),
        ("an empty Host", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / 1.1 keep"),
        ("Host of IPv6 with port", b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET / 1.1 keep"),
        ("Host of IPv6 without brackets", b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "error 400 bad-host"),
        ("Host with an open bracket", b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "error 400 bad-host"),
        ("Host with text behind the bracket", b"GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", "error 400 bad-host"),
        ("a list of Hosts", b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "error 400 bad-host"),
        ("Host with a path", b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "error 400 bad-host"),
        ("Host with a user", b"GET / HTTP/1.1\r\nHost: b@a\r\n\r\n", "error 400 bad-host"),
        ("Host with a port of letters", b"GET / HTTP/1.1\r\nHost: a:http\r\n\r\n", "error 400 bad-host"),
        ("a URL as Host", b"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", "error 400 bad-host"),
    ]);
}

#[test]
fn framing() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, &[
        ("length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ntestGET / HTTP/1.1\r\nHost: a\r\n\r\n", r#"POST / 1.1 keep "test"; GET / 1.1 keep"#),
        ("length of GET", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", r#"GET / 1.1 keep "a""#),
        ("length of HEAD", b"HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", r#"HEAD / 1.1 keep "a""#),
        ("length zero", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", r#"POST / 1.1 keep """#),
        ("no framing means no body", b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / 1.1 keep"),
        ("equal lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\nContent-Length: 1\r\n\r\na", r#"POST / 1.1 keep "a""#),
        ("half a body", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nte", "POST / 1.1 keep; more"),
        ("chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntest\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", r#"POST / 1.1 keep "test"; GET / 1.1 keep"#),
        ("chunked and close", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", r#"POST / 1.1 close """#),
        // Request smuggling.
        ("length and chunked", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", "error 400 encoding-with-length"),
        ("chunked and length", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG", "error 400 encoding-with-length"),
        ("length and identity", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: identity\r\n\r\na", "error 400 encoding-with-length"),
        ("different lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", "error 400 conflicting-length"),
        ("a list of different lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,2\r\n\r\na", "error 400 conflicting-length"),
        ("length with a sign", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na", "error 400 bad-length"),
        ("negative length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\na", "error 400 bad-length"),
        ("empty length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\na", "error 400 bad-length"),
        ("length of 2^64", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\na", "error 400 bad-length"),
        ("a misspelled length", b"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\n", "POST / 1.1 keep"),
        ("chunked in HTTP/1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "error 400 encoding-in-http10"),
        ("gzip, then chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "error 501 unknown-encoding"),
        ("gzip", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "error 400 bad-encoding"),
        ("identity", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", "error 400 bad-encoding"),
        ("chunked, then identity", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", "error 400 bad-encoding"),
        ("chunked and another field", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n", "error 400 bad-encoding"),
        ("another field and chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n", "error 501 unknown-encoding"),
        ("chunked twice", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", "error 400 bad-encoding"),
        ("no coding in the field", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", "error 400 bad-encoding"),
        ("no coding in the first field", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", r#"POST / 1.1 keep """#),
        ("xchunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "error 400 bad-encoding"),
        ("quoted chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", "error 400 bad-encoding"),
        ("vertical tab before chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", "error 400 bad-field-value"),
        ("tab before chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", r#"POST / 1.1 keep """#),
        ("space behind the name", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n", "error 400 bad-field-name"),
        ("the name in a folded line", b"POST / HTTP/1.1\r\nHost: a\r\nA: b\r\n Transfer-Encoding: chunked\r\n\r\n", "error 400 bad-field-name"),
        ("the value in a folded line", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", "error 400 bad-field-name"),
        // Chunks use the same reader as in responses, so a few cases suffice.
        ("bare LF in an extension", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;\nxx\r\n0\r\n\r\n", "POST / 1.1 keep; error 400 bad-chunk"),
        ("a size that wraps", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100000000000000001\r\n", "POST / 1.1 keep; error 400 bad-chunk"),
        ("data longer than its size", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "POST / 1.1 keep; error 400 bad-chunk"),
        ("a folded trailer", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", "POST / 1.1 keep; error 400 bad-chunk"),
        ("the end in LF", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n", "POST / 1.1 keep; error 400 bad-chunk"),
        // The server in this table has a limit of 1 MiB.
        ("a length beyond the limit", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", "POST / 1.1 keep; error 413 body-too-large"),
    ]);
}

#[test]
fn limits() {
    let limits = Limits { head_bytes: 40, headers: 2 };
    #[rustfmt::skip]
    check_all(limits, &[
        ("a head of the limit", b"GET / HTTP/1.1\r\nHost: 01234567890123\r\n\r\n", "GET / 1.1 keep"),
        ("a head beyond the limit", b"GET / HTTP/1.1\r\nHost: 012345678901234\r\n\r\n", "error 431 head-too-large"),
        ("a field without end", b"GET / HTTP/1.1\r\nHost: 01234567890123456789", "error 431 head-too-large"),
        ("a target without end", b"GET /0123456789012345678901234567890123456789", "error 414 target-too-long"),
        ("a target beyond the limit", b"GET /0123456789012345678901234567890123456789 HTTP/1.1\r\nHost: a\r\n\r\n", "error 414 target-too-long"),
        ("empty lines without end", b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n", "error 431 head-too-large"),
        ("an error beyond the limit is not seen", b"GET / HTTP/1.1\r\nHost: 012345678901234567890\r\n: b\r\n\r\n", "error 431 head-too-large"),
        ("an error within the limit comes first", b"GET / HTTP/1.1\r\n: b\r\nHost: 0123456789012345678901234567890\r\n\r\n", "error 400 bad-field-name"),
        ("fields of the limit", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n", "GET / 1.1 keep"),
        ("fields beyond the limit", b"GET / HTTP/1.1\r\nHost:\r\nA:\r\nB:\r\n\r\n", "error 431 too-many-headers"),
        ("the limit applies per request", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / 1.1 keep; GET / 1.1 keep"),
    ]);
    let none = Limits { head_bytes: 0, headers: 0 };
    check_all(none, &[("no room at all", b"GET / HTTP/1.1\r\n\r\n", "error 431 head-too-large")]);
    let any = Limits { head_bytes: usize::MAX, headers: usize::MAX };
    check_all(any, &[("any room", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / 1.1 keep")]);
}

#[test]
fn rejects_bodies_over_the_limit() {
    let read = |body, limits: Limits, limit_bytes, bytes: &[u8]| {
        let mut data = Vec::new();
        let result = BodyReader::new(body, &limits, limit_bytes).read(bytes, |piece| data.extend_from_slice(piece));
        (result.map_err(|error| (error.status(), crate::describe_stream::variant(error))), data.len())
    };
    let done = |used| Ok(Some(used));
    let any = Limits::DEFAULT;
    assert_eq!(read(Body::Length(4), any, 4, b"testGET"), (done(4), 4));
    assert_eq!(read(Body::Length(5), any, 4, b"tests"), (Err((413, "body-too-large".to_owned())), 0));
    assert_eq!(read(Body::None, any, 0, b"GET"), (done(0), 0));
    assert_eq!(read(Body::Chunked, any, 4, b"2\r\nte\r\n2\r\nst\r\n0\r\n\r\nGET"), (done(19), 4));
    assert_eq!(
        read(Body::Chunked, any, 4, b"2\r\nte\r\n3\r\nsts\r\n0\r\n\r\n"),
        (Err((413, "body-too-large".to_owned())), 2)
    );
    let few = Limits { head_bytes: 10, headers: 1 };
    assert_eq!(read(Body::Chunked, few, 4, b"0\r\nA: b\r\nC: d\r\n\r\n"), (Err((431, "bad-chunk".to_owned())), 0));
    assert_eq!(read(Body::Chunked, few, 4, b"0\r\nA: 0123456789\r\n\r\n"), (Err((431, "bad-chunk".to_owned())), 0));
}

/// Sends 64 KiB byte by byte, which must not cause 65,536 parses or change the result.
#[test]
fn parses_a_long_head_byte_by_byte() {
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    (0..200).for_each(|index| bytes.extend_from_slice(format!("A{index}: {}\r\n", "b".repeat(200)).as_bytes()));
    bytes.extend_from_slice(b"\r\n");
    for end in (0..bytes.len()).step_by(997) {
        assert!(matches!(parse_request(&bytes[..end], &Limits::DEFAULT), Ok(None)), "{end}");
    }
    let (_, used) = parse_request(&bytes, &Limits::DEFAULT).unwrap().unwrap();
    assert_eq!(used, bytes.len());
}

/// An error in a long partial head is reported at the end of the head, or once the head is too large.
#[test]
fn reports_errors_in_long_heads_at_their_end() {
    let bytes = format!("GET / HTTP/1.1\r\nA: {}\r\nHost : a\r\n\r\n", "b".repeat(1024)).into_bytes();
    let wrong = Err(MessageError::BadFieldName);
    let judge = |bytes: &[u8], head_bytes| {
        parse_request(bytes, &Limits { head_bytes, headers: 9 }).map(|found| found.is_some())
    };
    assert_eq!(judge(&bytes[..bytes.len() - 1], 2000), Ok(false));
    assert_eq!(judge(&bytes, 2000), wrong);
    assert_eq!(judge(&bytes, bytes.len() - 2), wrong);
    assert_eq!(judge(&bytes, 1000), Err(MessageError::HeadTooLarge(1000)));
}

#[test]
fn rejects_a_million_fields() {
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    (0..1_000_000).for_each(|_| bytes.extend_from_slice(b"A: b\r\n"));
    let found = parse_request(&bytes, &Limits::DEFAULT).unwrap_err();
    assert_eq!(found, MessageError::TooManyHeaders(256));
}

#[test]
fn accepts_any_header_values_and_ends_at_the_empty_line() {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\nB:  c d \t\r\nE:\r\nb: \xff\r\n\r\nX: y\r\n";
    let (_, used) = parse_request(bytes, &Limits::DEFAULT).unwrap().unwrap();
    assert_eq!(used, bytes.len() - 6);
}
