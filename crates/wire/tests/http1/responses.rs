//! Tables of responses: heads, framing, connections, limits.

use wire::http1::{Limits, Memo, MessageError, RequestMethod, ResponseReader};

use crate::describe_stream;

type Case = (&'static str, &'static [u8], &'static str);

fn check_all(limits: Limits, asked: RequestMethod, cases: &[Case]) {
    let mut wrong = Vec::new();
    let mut shared = Memo::default();
    for (name, bytes, expect) in cases {
        for pieces in describe_stream::cuts(bytes) {
            let lengths = || pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>();
            let fresh = describe_stream::responses(&mut Memo::default(), limits, asked, &pieces);
            let known = describe_stream::responses(&mut shared, limits, asked, &pieces);
            if fresh != *expect || known != *expect {
                wrong
                    .push(format!("{name}, cut {:?}:\n  {fresh}\n  {known} with memo\n  {expect} expected", lengths()));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let names = cases.iter().map(|case| case.0).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
}

#[test]
fn framing() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Get, &[
        // RFC 9112, section 6.2, and section 6.3, rule 6.
        ("content length", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("whaleconnect's answer", b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\nContent-Type: text/html\r\n\r\ntest", r#"200 keep "test""#),
        ("content length zero", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("two responses", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nbc", r#"200 keep "a"; 404 keep "bc""#),
        ("the same response three times", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nbHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc", r#"200 keep "a"; 200 keep "b"; 200 keep "c""#),
        ("a body that looks like a response", b"HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", r#"200 keep "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n""#),
        ("length with leading zeros", b"HTTP/1.1 200 OK\r\nContent-Length: 0004\r\n\r\ntest", r#"200 keep "test""#),
        ("length in tabs and spaces", b"HTTP/1.1 200 OK\r\nContent-Length:\t 4 \t\r\n\r\ntest", r#"200 keep "test""#),
        ("length without space", b"HTTP/1.1 200 OK\r\nContent-Length:4\r\n\r\ntest", r#"200 keep "test""#),
        ("length in capitals", b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("length in small letters", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("largest length", b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\ntest", r#"error truncated after "test""#),
        ("a list of equal lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\ntest", r#"200 keep "test""#),
        ("a list of equal lengths without spaces", b"HTTP/1.1 200 OK\r\nContent-Length: 4,4,4\r\n\r\ntest", r#"200 keep "test""#),
        ("equal length fields", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nServer: x\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("equal length fields of different writing", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\ncontent-length: 04\r\n\r\ntest", r#"200 keep "test""#),
        // RFC 9112, section 6.3, rule 8.
        ("until the end", b"HTTP/1.1 200 OK\r\n\r\nall of this", r#"200 close "all of this""#),
        ("until the end, empty", b"HTTP/1.1 200 OK\r\n\r\n", r#"200 close """#),
        ("until the end, keep-alive is a lie", b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nx", r#"200 close "x""#),
        ("until the end, HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\nx", r#"200 close "x""#),
        ("no field at all", b"HTTP/1.1 500 \r\n\r\n", r#"500 close """#),
        // RFC 9112, section 6.3, rule 1.
        ("204 has no body", b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", r#"204 keep ""; 200 keep """#),
        ("204 with a length has no body", b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"204 keep ""; 204 keep """#),
        ("a chunked 204 has no body", b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", r#"204 keep """#),
        ("304 has no body", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\nHTTP/1.1 304 x\r\n\r\n", r#"304 keep ""; 304 keep """#),
        ("304 with both framings", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n", r#"304 keep """#),
        ("205 has a length", b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", r#"205 keep """#),
        ("206 is framed as others", b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/9\r\n\r\na", r#"206 keep "a""#),
        // Interim responses: RFC 9110, section 15.2.
        ("100 before 200", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", r#"200 keep "a""#),
        ("103 with fields before 200", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", r#"200 keep "a""#),
        ("three interim responses", b"HTTP/1.1 100 \r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"204 keep """#),
        ("interim responses before each of two", b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 x\r\n\r\nHTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"204 keep ""; 204 keep """#),
        ("an interim response closes nothing", b"HTTP/1.1 100 x\r\nConnection: close\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"204 keep """#),
        ("an interim response and the end", b"HTTP/1.1 100 Continue\r\n\r\n", "error truncated"),
        ("an interim response and half a head", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2", "error truncated"),
        ("101", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "error switching-protocols"),
        // RFC 9112, section 6.3, rules 3 and 5.
        ("different lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ntest", "error conflicting-length"),
        ("a list of different lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 4, 5\r\n\r\ntest", "error conflicting-length"),
        ("different lengths and a third", b"HTTP/1.1 200 OK\r\nContent-Length: 4, 5, 4\r\n\r\ntest", "error conflicting-length"),
        ("different and invalid", b"HTTP/1.1 200 OK\r\nContent-Length: 4, 5, x\r\n\r\ntest", "error bad-length"),
        ("length with a sign", b"HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\ntest", "error bad-length"),
        ("negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\ntest", "error bad-length"),
        ("hexadecimal length", b"HTTP/1.1 200 OK\r\nContent-Length: 0x4\r\n\r\ntest", "error bad-length"),
        ("length with a fraction", b"HTTP/1.1 200 OK\r\nContent-Length: 4.0\r\n\r\ntest", "error bad-length"),
        ("length with a gap", b"HTTP/1.1 200 OK\r\nContent-Length: 4 2\r\n\r\ntest", "error bad-length"),
        ("length with underscores", b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\ntest", "error bad-length"),
        ("length in other digits", "HTTP/1.1 200 OK\r\nContent-Length: \u{ff14}\r\n\r\ntest".as_bytes(), "error bad-length"),
        ("no length in the field", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\ntest", "error bad-length"),
        ("an empty element among lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 4,\r\n\r\ntest", "error bad-length"),
        ("semicolon between lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 4;4\r\n\r\ntest", "error bad-length"),
        ("length of 2^64", b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "error bad-length"),
        ("length that wraps", b"HTTP/1.1 200 OK\r\nContent-Length: 36893488147419103236\r\n\r\ntest", "error bad-length"),
        ("a good length then a bad one", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: four\r\n\r\ntest", "error bad-length"),
        ("chunked with a length", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", "error encoding-with-length"),
        ("length with chunked", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "error encoding-with-length"),
        ("a bad length with chunked", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "error encoding-with-length"),
        ("length with gzip", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: gzip\r\n\r\ntest", "error encoding-with-length"),
        ("length with an empty coding", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding:\r\n\r\ntest", "error encoding-with-length"),
        // RFC 9112, section 6.1.
        ("chunked in HTTP/1.0", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "error encoding-in-http10"),
        ("a length is no other field", b"HTTP/1.1 200 OK\r\nContent-Lengt: 1\r\nContent-Length-: 2\r\nXontent-Length: 3\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep "test""#),
    ]);
}

#[test]
fn chunked() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Get, &[
        // RFC 9112, section 7.1.
        ("chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntest\r\n2\r\nme\r\n0\r\n\r\n", r#"200 keep "testme""#),
        ("the last chunk alone", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", r#"200 keep """#),
        ("hexadecimal sizes", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n", r#"200 keep "01234567890123456789a""#),
        ("leading zeros in sizes", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000000000004\r\ntest\r\n000\r\n\r\n", r#"200 keep "test""#),
        ("data that looks like the last chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n0\r\n\r\n", r#"200 keep "0\r\n\r\n""#),
        ("chunked, then another response", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"200 keep "a"; 204 keep """#),
        ("chunked in capitals", b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("chunked and close", b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 close "a""#),
        // Extensions are ignored: RFC 9112, section 7.1.1.
        ("extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;name=value\r\na\r\n0;last\r\n\r\n", r#"200 keep "a""#),
        ("extension with white space", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \t; name = value\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("quoted extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"; b\";c\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("empty extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("bare LF in an extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n", "error bad-chunk"),
        ("bare CR in an extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\rb\r\na\r\n0\r\n\r\n", "error bad-chunk"),
        ("NUL in an extension", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\0b\r\na\r\n0\r\n\r\n", "error bad-chunk"),
        // Trailers: RFC 9112, section 7.1.2.
        ("trailers", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nDigest: x\r\nExpires: never\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"200 keep "a"; 204 keep """#),
        ("a trailer without value", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest:\r\n\r\n", r#"200 keep """#),
        ("a folded trailer", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: a\r\n b\r\n\r\n", r#"200 keep """#),
        ("trailers that would frame are ignored", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 4\r\nConnection: close\r\n\r\n", r#"200 keep """#),
        ("a trailer that begins folded", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n a: b\r\n\r\n", "error bad-chunk"),
        ("a trailer without colon", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest\r\n\r\n", "error bad-chunk"),
        ("a trailer without name", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n: a\r\n\r\n", "error bad-chunk"),
        ("a trailer with a space before the colon", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest : a\r\n\r\n", "error bad-chunk"),
        ("a trailer with NUL", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: \0\r\n\r\n", "error bad-chunk"),
        ("a trailer that ends in LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: a\n\r\n", "error bad-chunk"),
        ("a trailer with a bare CR", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: a\rb\r\n\r\n", "error bad-chunk"),
        ("the end in a bare CR", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\rX", "error bad-chunk"),
        ("the end in LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n", "error bad-chunk"),
        // Sizes that some parsers misread.
        ("size with a prefix", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x4\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size with a sign", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+4\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("negative size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size with underscore", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size behind a space", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 4\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size before a space", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4 \r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size and another", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4 2\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("no size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("extension without size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n0\r\n\r\n", "error bad-chunk"),
        ("a letter that is not a digit", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ng\r\n0\r\n\r\n", "error bad-chunk"),
        ("size of 2^64", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\ntest", "error bad-chunk"),
        ("size that wraps to 4", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000000000000004\r\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("largest size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\ntest", r#"error truncated after "test""#),
        ("size that ends in LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\ntest\r\n0\r\n\r\n", "error bad-chunk"),
        ("size that ends in CR", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\rtest\r\n0\r\n\r\n", "error bad-chunk"),
        ("data longer than its size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntest\r\n0\r\n\r\n", r#"error bad-chunk after "tes""#),
        ("data shorter than its size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntest\r\n0\r\n\r\n", r#"error bad-chunk after "test\r""#),
        ("data that ends in LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntest\n0\r\n\r\n", r#"error bad-chunk after "test""#),
        ("data that ends in CR and another byte", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntest\rX0\r\n\r\n", r#"error bad-chunk after "test""#),
        ("the end within a size", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4", "error truncated"),
        ("the end within data", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nte", r#"error truncated after "te""#),
        ("the end behind data", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntest\r\n", r#"error truncated after "test""#),
        ("the end behind the last chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "error truncated"),
        ("the end within trailers", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", "error truncated"),
        // RFC 9112, section 6.1, and section 6.3, rule 4.
        ("gzip, then chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("two fields of codings", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("coding with parameters, then chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip;q=1, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("empty elements", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: , chunked ,\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("gzip alone lasts until the end", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", r#"200 close "0\r\n\r\n""#),
        ("identity lasts until the end", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx", r#"200 close "x""#),
        ("chunked, then gzip lasts until the end", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nx", r#"200 close "x""#),
        ("xchunked lasts until the end", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nx", r#"200 close "x""#),
        ("chunked twice", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("chunked in two fields", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("chunked, gzip, chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip, chunked\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("chunked with a parameter", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("quoted chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("chunked in a quoted parameter", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x;y=\"a, chunked\"\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("two words for a coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked gzip\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("no coding in the field", b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("no coding in the first field", b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("no coding in the second field", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: ,\r\n\r\n1\r\na\r\n0\r\n\r\n", r#"200 keep "a""#),
        ("commas for codings", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: ,,\r\n\r\n0\r\n\r\n", "error bad-codings"),
        ("vertical tab before chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "error control"),
        ("no-break space before chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \xa0chunked\r\n\r\n0\r\n\r\n", "error bad-codings"),
    ]);
}

#[test]
fn heads() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Get, &[
        // RFC 9112, section 4.
        ("no reason phrase", b"HTTP/1.1 204 \r\n\r\n", r#"204 keep """#),
        ("no reason phrase and no space", b"HTTP/1.1 204\r\n\r\n", r#"204 keep """#),
        ("a reason phrase in another language", "HTTP/1.1 204 Geht schön\r\n\r\n".as_bytes(), r#"204 keep """#),
        ("a reason phrase with tab and digits", b"HTTP/1.1 204 1\t2 3\r\n\r\n", r#"204 keep """#),
        ("an undefined status", b"HTTP/1.1 299 x\r\nContent-Length: 1\r\n\r\na", r#"299 keep "a""#),
        ("a status beyond 599", b"HTTP/1.1 999 x\r\nContent-Length: 1\r\n\r\na", r#"999 keep "a""#),
        ("a status below 100", b"HTTP/1.1 099 x\r\nContent-Length: 1\r\n\r\na", r#"99 keep "a""#),
        ("NUL in the reason phrase", b"HTTP/1.1 204 a\0b\r\n\r\n", "error control"),
        ("CR in the reason phrase", b"HTTP/1.1 204 a\rb\r\n\r\n", "error bare-cr"),
        ("a status of two digits", b"HTTP/1.1 20 OK\r\n\r\n", "error bad-status-line"),
        ("a status of four digits", b"HTTP/1.1 2000 OK\r\n\r\n", "error bad-status-line"),
        ("a status with letters", b"HTTP/1.1 2xx OK\r\n\r\n", "error bad-status-line"),
        ("no status", b"HTTP/1.1\r\n\r\n", "error bad-status-line"),
        ("no status but a space", b"HTTP/1.1 \r\n\r\n", "error bad-status-line"),
        ("two spaces before the status", b"HTTP/1.1  200 OK\r\n\r\n", "error bad-status-line"),
        ("a tab before the status", b"HTTP/1.1\t200 OK\r\n\r\n", "error bad-status-line"),
        ("a tab behind the status", b"HTTP/1.1 200\tOK\r\n\r\n", "error bad-status-line"),
        ("a space before the version", b" HTTP/1.1 200 OK\r\n\r\n", "error not-http"),
        ("version in small letters", b"http/1.1 200 OK\r\n\r\n", "error not-http"),
        ("a version without minor number", b"HTTP/1 200 OK\r\n\r\n", "error bad-status-line"),
        ("a version of two digits", b"HTTP/1.10 200 OK\r\n\r\n", "error bad-status-line"),
        ("a later version of HTTP/1", b"HTTP/1.2 204 x\r\n\r\n", r#"204 keep """#),
        ("HTTP/2.0", b"HTTP/2.0 200 OK\r\n\r\n", "error other-version"),
        ("HTTP/0.9", b"HTTP/0.9 200 OK\r\n\r\n", "error other-version"),
        ("a response of HTTP/0.9", b"<html>hello</html>", "error not-http"),
        ("a frame of HTTP/2", b"\0\0\x12\x04\0\0\0\0\0", "error not-http"),
        ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "error not-http"),
        ("an alert of TLS", b"\x15\x03\x01\0\x02\x02\x16", "error not-http"),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", "error not-http"),
        ("one byte that is not H", b"X", "error not-http"),
        ("a request", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "error not-http"),
        ("a body longer than announced", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntests", r#"200 keep "test"; error not-http"#),
        ("a body longer by an empty line", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest\r\n", r#"200 keep "test"; error empty-line"#),
        ("an empty line first", b"\r\nHTTP/1.1 204 x\r\n\r\n", "error empty-line"),
        ("LF first", b"\nHTTP/1.1 204 x\r\n\r\n", "error empty-line"),
        ("an empty line between", b"HTTP/1.1 204 x\r\n\r\n\r\nHTTP/1.1 204 x\r\n\r\n", r#"204 keep ""; error empty-line"#),
        // RFC 9112, section 2.2.
        ("LF ends the status line", b"HTTP/1.1 204 x\nA: b\r\n\r\n", "error bare-lf"),
        ("LF ends a field", b"HTTP/1.1 200 OK\r\nContent-Length: 4\n\r\ntest", "error bare-lf"),
        ("LF ends the head", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\ntest", "error bare-lf"),
        ("LF everywhere", b"HTTP/1.1 200 OK\nContent-Length: 4\n\ntest", "error bare-lf"),
        ("CR ends a field", b"HTTP/1.1 200 OK\r\nA: b\rContent-Length: 4\r\n\r\ntest", "error bare-cr"),
        ("CR CR LF", b"HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n", "error bare-cr"),
        ("CR in a name", b"HTTP/1.1 200 OK\r\nA\rB: b\r\n\r\n", "error bare-cr"),
        ("CR begins a line", b"HTTP/1.1 200 OK\r\n\rA: b\r\n\r\n", "error bare-cr"),
        // RFC 9112, section 5, and RFC 9110, section 5.
        ("empty value", b"HTTP/1.1 204 x\r\nA:\r\nB: \t \r\n\r\n", r#"204 keep """#),
        ("colons in a value", b"HTTP/1.1 204 x\r\nA: b: c:\r\n\r\n", r#"204 keep """#),
        ("every character of a token", b"HTTP/1.1 204 x\r\n!#$%&'*+-.^_`|~09azAZ: b\r\n\r\n", r#"204 keep """#),
        ("bytes beyond ASCII in a value", b"HTTP/1.1 204 x\r\nA: \x80\xff\r\n\r\n", r#"204 keep """#),
        ("tab in a value", b"HTTP/1.1 204 x\r\nA: b\tc\r\n\r\n", r#"204 keep """#),
        ("NUL in a value", b"HTTP/1.1 204 x\r\nA: b\0c\r\n\r\n", "error control"),
        ("DEL in a value", b"HTTP/1.1 204 x\r\nA: b\x7f\r\n\r\n", "error control"),
        ("escape in a long value", b"HTTP/1.1 204 x\r\nA: 0123456789012345678901234567890123456789\x1b\r\n\r\n", "error control"),
        ("space before the colon", b"HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\ntest", "error space-before-colon"),
        ("tab before the colon", b"HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", "error space-before-colon"),
        ("two words for a name", b"HTTP/1.1 204 x\r\nA B: c\r\n\r\n", "error space-before-colon"),
        ("no name", b"HTTP/1.1 204 x\r\n: b\r\n\r\n", "error empty-name"),
        ("no colon", b"HTTP/1.1 204 x\r\nContent-Length\r\n\r\n", "error no-colon"),
        ("NUL in a name", b"HTTP/1.1 204 x\r\nContent-Length\0: 4\r\n\r\n", "error bad-name"),
        ("a name beyond ASCII", "HTTP/1.1 204 x\r\nÄ: b\r\n\r\n".as_bytes(), "error bad-name"),
        ("a name in brackets", b"HTTP/1.1 204 x\r\n(a): b\r\n\r\n", "error bad-name"),
        // RFC 9112, section 5.2.
        ("a folded value", b"HTTP/1.1 200 OK\r\nServer: a\r\n b\r\n\tc\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("a folded length", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 4\r\n\r\ntest", r#"200 keep "test""#),
        ("a length folded in two", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n 2\r\n\r\ntest", "error bad-length"),
        ("lengths in folded lines", b"HTTP/1.1 200 OK\r\nContent-Length: 4,\r\n\t4\r\n\r\ntest", r#"200 keep "test""#),
        ("a folded coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n , chunked\r\n\r\n0\r\n\r\n", r#"200 keep """#),
        ("a folded connection", b"HTTP/1.1 204 x\r\nConnection: foo,\r\n close\r\n\r\n", r#"204 close """#),
        ("a length in the folded line of another", b"HTTP/1.1 200 OK\r\nA: b\r\n Content-Length: 9\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep "test""#),
        ("a folded line of spaces", b"HTTP/1.1 204 x\r\nA: b\r\n  \r\n\r\n", r#"204 keep """#),
        ("a fold behind the status line", b"HTTP/1.1 200 OK\r\n Content-Length: 4\r\n\r\ntest", "error fold"),
        ("NUL in a folded line", b"HTTP/1.1 204 x\r\nA: b\r\n c\0\r\n\r\n", "error control"),
        ("CR in a folded line", b"HTTP/1.1 204 x\r\nA: b\r\n c\rd\r\n\r\n", "error bare-cr"),
        // RFC 9112, section 8.
        ("nothing", b"", ""),
        ("half a status line", b"HTTP/1.1 20", "error truncated"),
        ("a status line", b"HTTP/1.1 200 OK\r\n", "error truncated"),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-Le", "error truncated"),
        ("a head without its last byte", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r", "error truncated"),
        ("half a body", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nte", r#"error truncated after "te""#),
        ("no body", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", "error truncated"),
        ("a response and half of one", b"HTTP/1.1 204 x\r\n\r\nHTTP/1", r#"204 keep ""; error truncated"#),
    ]);
}

#[test]
fn connections() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Get, &[
        // RFC 9112, section 9.3.
        ("HTTP/1.1 persists", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("HTTP/1.1 closes if it says so", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("HTTP/1.0 closes", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("HTTP/1.0 persists if it says so", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("keep-alive in any case", b"HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("close in any case", b"HTTP/1.1 200 OK\r\nCONNECTION: CLOSE\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("close among others", b"HTTP/1.1 200 OK\r\nConnection: Upgrade ,close, foo\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("close in the second field", b"HTTP/1.1 200 OK\r\nConnection: foo\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("close outweighs keep-alive", b"HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("close outweighs keep-alive in HTTP/1.0", b"HTTP/1.0 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", r#"200 close """#),
        ("a word that contains close", b"HTTP/1.1 200 OK\r\nConnection: closed, x-close\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("other fields do not close", b"HTTP/1.1 200 OK\r\nProxy-Connection: close\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
        ("no option", b"HTTP/1.1 200 OK\r\nConnection: ,\r\nContent-Length: 0\r\n\r\n", r#"200 keep """#),
    ]);
}

#[test]
fn head_responses_have_no_body() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Head, &[
        ("HEAD with a length", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", r#"200 keep ""; 200 keep """#),
        ("HEAD and chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", r#"200 keep """#),
        ("HEAD without framing", b"HTTP/1.1 200 OK\r\n\r\n", r#"200 keep """#),
        ("HEAD of an error", b"HTTP/1.1 404 x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n", r#"404 close """#),
        ("HEAD with both framings", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", r#"200 keep """#),
        ("HEAD with a body is a body too long", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest", r#"200 keep ""; error not-http"#),
    ]);
}

#[test]
fn connect_opens_a_tunnel() {
    #[rustfmt::skip]
    check_all(Limits::DEFAULT, RequestMethod::Connect, &[
        ("a tunnel", b"HTTP/1.1 200 OK\r\n\r\n", r#"200 close """#),
        ("a tunnel of 204", b"HTTP/1.1 204 x\r\n\r\n", r#"204 close """#),
        ("a tunnel ignores framing", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", r#"200 close """#),
        ("no tunnel of 300", b"HTTP/1.1 300 x\r\nContent-Length: 4\r\n\r\ntest", r#"300 keep "test""#),
        ("no tunnel", b"HTTP/1.1 407 x\r\nContent-Length: 4\r\n\r\ntest", r#"407 keep "test""#),
    ]);
}

#[test]
fn limits() {
    let limits = Limits { head_bytes: 54, headers: 2 };
    #[rustfmt::skip]
    check_all(limits, RequestMethod::Get, &[
        ("a head of the limit", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: 56789012345\r\n\r\na", r#"200 keep "a""#),
        ("a head beyond the limit", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: 567890123456\r\n\r\na", "error head-too-large"),
        ("a line without end", b"HTTP/1.1 200 OK\r\nA: 012345678901234567890123456789012345678901234567890123456789", "error head-too-large"),
        ("an error within the limit comes first", b"HTTP/1.1 200 OK\r\n: b\r\nA: 01234567890123456789012345678901234567890123456789", "error empty-name"),
        ("an error beyond the limit is not seen", b"HTTP/1.1 200 OK\r\nA: 01234567890123456789012345678901234567890123456789\r\n: b\r\n", "error head-too-large"),
        ("garbage is garbage, not large", b"garbage that has more than fifty-five bytes before its end", "error not-http"),
        ("interim heads count", b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 100 x\r\n\r\nHTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n", "error head-too-large"),
        ("interim heads within the limit", b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 100 x\r\n\r\nHTTP/1.1 204\r\n\r\nHTTP/1.1 204\r\n\r\n", r#"204 keep ""; 204 keep """#),
        ("the limit applies per response", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", r#"200 keep "a"; 200 keep "a""#),
        ("fields of the limit", b"HTTP/1.1 204 x\r\nA: 1\r\nB: 2\r\n\r\n", r#"204 keep """#),
        ("fields beyond the limit", b"HTTP/1.1 204 x\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", "error too-many-headers"),
        ("folded lines are not fields", b"HTTP/1.1 204 x\r\nA: 1\r\n B: 2\r\n C: 3\r\n\r\n", r#"204 keep """#),
        ("trailers beyond the limit", b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 0123456789012345678901234567890123456789012345678901234567890\r\n\r\n", "error bad-chunk"),
        ("trailer fields beyond the limit", b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", "error bad-chunk"),
        ("a body is not limited", b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n012345678901234567890123456789012345678901234567890123456789", r#"200 keep "012345678901234567890123456789012345678901234567890123456789""#),
    ]);
    let none = Limits { head_bytes: 0, headers: 0 };
    check_all(none, RequestMethod::Get, &[("no room at all", b"HTTP/1.1 204 x\r\n\r\n", "error head-too-large")]);
    let any = Limits { head_bytes: usize::MAX, headers: usize::MAX };
    check_all(any, RequestMethod::Get, &[("any room", b"HTTP/1.1 204 x\r\nA: b\r\n\r\n", r#"204 keep """#)]);
}

/// The parser examines eight bytes at a time, so each byte is checked at each position.
#[test]
fn checks_every_byte_at_every_position() {
    for byte in 0..=255_u8 {
        for before in 0..20 {
            let value = [vec![b'a'; before], vec![byte], vec![b'a'; 12]].concat();
            let bytes = [b"HTTP/1.1 204 x\r\nA: ".as_slice(), &value, b"\r\n\r\n"].concat();
            let expect = match byte {
                b'\r' => "error bare-cr",
                b'\n' => "error bare-lf",
                b'\t' => r#"204 keep """#,
                0..0x20 | 0x7f => "error control",
                _ => r#"204 keep """#,
            };
            let found =
                describe_stream::responses(&mut Memo::default(), Limits::DEFAULT, RequestMethod::Get, &[&bytes]);
            assert_eq!(found, expect, "0x{byte:02x} behind {before} bytes");
        }
    }
}

#[test]
fn distinguishes_framing_names_from_similar_ones() {
    for (name, value) in [("Content-Length", "7"), ("Transfer-Encoding", "chunked"), ("Connection", "close")] {
        let read = |name: &[u8]| {
            let (begin, end) = (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", format!(": {value}\r\n\r\n"));
            let bytes = [begin.as_slice(), name, end.as_bytes()].concat();
            describe_stream::responses(&mut Memo::default(), Limits::DEFAULT, RequestMethod::Get, &[&bytes])
        };
        assert_ne!(read(name.as_bytes()), r#"200 keep """#, "{name}");
        for at in 0..name.len() {
            let mut other = name.as_bytes().to_vec();
            other[at] ^= 0x20;
            if other[at].is_ascii_alphabetic() {
                assert_eq!(read(&other), read(name.as_bytes()), "{}", other.escape_ascii());
            }
            other[at] = if other[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(read(&other), r#"200 keep """#, "{}", other.escape_ascii());
        }
    }
}

#[test]
fn memo_respects_limits_and_methods() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: b\r\n\r\na";
    let mut memo = Memo::default();
    let mut read = |limits, asked| describe_stream::responses(&mut memo, limits, asked, &[bytes]);
    let wide = Limits::DEFAULT;
    assert_eq!(read(wide, RequestMethod::Get), r#"200 keep "a""#);
    assert_eq!(read(wide, RequestMethod::Head), r#"200 keep ""; error not-http"#);
    assert_eq!(read(wide, RequestMethod::Get), r#"200 keep "a""#);
    assert_eq!(read(Limits { headers: 1, ..wide }, RequestMethod::Get), "error too-many-headers");
    assert_eq!(read(Limits { head_bytes: 40, ..wide }, RequestMethod::Get), "error head-too-large");
    let interim = [b"HTTP/1.1 100 x\r\n\r\n".as_slice(), bytes].concat();
    let mut read = |limits| describe_stream::responses(&mut memo, limits, RequestMethod::Get, &[&interim]);
    assert_eq!(read(wide), r#"200 keep "a""#);
    assert_eq!(read(Limits { head_bytes: 50, ..wide }), "error head-too-large");
}

#[test]
fn rejects_endless_streams() {
    let begin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let endless = [
        ("interim responses", String::new(), "HTTP/1.1 100 Continue\r\n\r\n", "head-too-large"),
        ("fields", "HTTP/1.1 200 OK\r\n".to_owned(), "A: b\r\n", "too-many-headers"),
        ("folded lines", "HTTP/1.1 200 OK\r\nA: b\r\n".to_owned(), " c\r\n", "head-too-large"),
        ("a line", "HTTP/1.1 200 ".to_owned(), "a", "head-too-large"),
        ("a value", "HTTP/1.1 200 OK\r\nContent-Length: ".to_owned(), "0", "head-too-large"),
        ("a size", begin.to_owned(), "0", "bad-chunk"),
        ("an extension", format!("{begin}1;"), "a", "bad-chunk"),
        ("extensions", begin.to_owned(), "1;0123456789012345678901234567890123456789\r\na\r\n", "bad-chunk"),
        ("trailers", format!("{begin}0\r\n"), "A: b\r\n", "bad-chunk"),
        ("a trailer", format!("{begin}0\r\nA: "), "b", "bad-chunk"),
    ];
    for (name, begin, more, expect) in endless {
        let mut reader = ResponseReader::new(Limits::DEFAULT);
        let mut memo = Memo::default();
        let mut read = |bytes: &[u8]| reader.read(&mut memo, RequestMethod::Get, bytes, |_| {});
        assert!(matches!(read(begin.as_bytes()), Ok(None)), "{name}");
        let found = (0..100_000).find_map(|_| read(more.as_bytes()).err());
        assert_eq!(found.map(crate::describe_stream::variant).as_deref(), Some(expect), "{name}");
    }
}

/// Some servers write chunks of one byte.
#[test]
fn accepts_many_small_chunks() {
    let mut stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    (0..50_000).for_each(|_| stream.extend_from_slice(b"1\r\na\r\n"));
    stream.extend_from_slice(b"0\r\n\r\n");
    let mut data_bytes = 0;
    let mut reader = ResponseReader::new(Limits::DEFAULT);
    let progress =
        reader.read(&mut Memo::default(), RequestMethod::Get, &stream, |data| data_bytes += data.len()).unwrap();
    let Some((used, response)) = progress else { panic!("{progress:?}") };
    assert_eq!((used, response.body_bytes, data_bytes), (stream.len(), 50_000, 50_000));
}

#[test]
fn counts_head_and_body_bytes() {
    let bytes =
        b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\nmore";
    let mut reader = ResponseReader::new(Limits::DEFAULT);
    let progress = reader.read(&mut Memo::default(), RequestMethod::Get, bytes, |_| {}).unwrap();
    let Some((used, response)) = progress else { panic!("{progress:?}") };
    assert_eq!((used, response.head_bytes, response.body_bytes), (bytes.len() - 4, 18 + 47, 2));
}

#[test]
fn parses_methods_case_sensitively() {
    assert_eq!(
        ["HEAD", "CONNECT", "GET", "head", "POST"].map(RequestMethod::parse),
        [RequestMethod::Head, RequestMethod::Connect, RequestMethod::Get, RequestMethod::Get, RequestMethod::Get]
    );
}

#[test]
fn errors_name_cause_line_and_limit() {
    let error = |bytes: &[u8]| -> MessageError {
        ResponseReader::new(Limits { head_bytes: 100, headers: 2 })
            .read(&mut Memo::default(), RequestMethod::Get, bytes, |_| {})
            .unwrap_err()
    };
    let cases: [(&[u8], &str); 6] = [
        (b"HTTP/1.1 200 OK\r\nA: b\r\nC: \x01\r\n\r\n", "the control character 0x01 in line 3 of the head"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\nE: f\r\n\r\n", "more than 2 headers"),
        (&[b"HTTP/1.1 200 ".as_slice(), &[b'x'; 100]].concat(), "a head of more than 100 bytes"),
        (b"HTTP/3.0 200 OK\r\n", "HTTP/3, which is not HTTP/1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", "chunked body: 0x78 in a chunk size"),
        (b"SSH-2.0", "the response does not start with `HTTP/`: another protocol, or a body longer than announced"),
    ];
    for (bytes, expect) in cases {
        assert_eq!(error(bytes).to_string(), expect);
    }
    let mut reader = ResponseReader::new(Limits::DEFAULT);
    reader.read(&mut Memo::default(), RequestMethod::Get, b"HTTP/1.1 200 OK\r\n", |_| {}).unwrap();
    assert_eq!(reader.end().unwrap_err().to_string(), "the stream ended in the middle of a head");
}
