//! Property tests with random messages. `fuzz/http1.rs` compares the parser with httparse on random bytes.

use proptest::prelude::*;
use wire::http1::{Body, BodyReader, Limits, Memo, RequestMethod, ResponseReader, compose_request, parse_request};

#[derive(Debug, Clone)]
struct Meant {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunk_bytes: Option<usize>,
    close: bool,
    interim: bool,
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = "X-[A-Za-z0-9!#$%&'*+.^_`|~-]{0,12}";
    let value = "([!-~\u{80}-\u{2ff}]([ \t!-~\u{80}-\u{2ff}]{0,30}[!-~\u{80}-\u{2ff}])?)?";
    prop::collection::vec((name, value), 0..6)
}

fn meant() -> impl Strategy<Value = Meant> {
    let status = prop_oneof![4 => Just(200_u16), 1 => 201..599_u16];
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (status, headers(), body, prop::option::of(1..50_usize), any::<bool>(), any::<bool>()).prop_map(
        |(status, headers, body, chunk_bytes, close, interim)| {
            let has_no_body = matches!(status, 204 | 304);
            let body = if has_no_body { Vec::new() } else { body };
            Meant { status, headers, body, chunk_bytes, close, interim }
        },
    )
}

fn write(out: &mut Vec<u8>, meant: &Meant) {
    let headers = meant.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
    if meant.interim {
        out.extend_from_slice(format!("HTTP/1.1 103 Early Hints\r\n{headers}\r\n").as_bytes());
    }
    let framing = match meant.chunk_bytes {
        _ if matches!(meant.status, 204 | 304) => String::new(),
        Some(_) => "Transfer-Encoding: chunked\r\n".to_owned(),
        None => format!("Content-Length: {}\r\n", meant.body.len()),
    };
    let close = if meant.close { "Connection: close\r\n" } else { "" };
    out.extend_from_slice(format!("HTTP/1.1 {} \r\n{headers}{framing}{close}\r\n", meant.status).as_bytes());
    match meant.chunk_bytes.filter(|_| framing.starts_with('T')) {
        Some(bytes) => {
            for data in meant.body.chunks(bytes) {
                out.extend_from_slice(&[format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat());
            }
            out.extend_from_slice(b"0\r\n\r\n");
        }
        None => out.extend_from_slice(&meant.body),
    }
}

/// Splits a stream into pieces of these sizes, cyclically.
fn pieces<'a>(mut stream: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &size in sizes.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at(size.min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

proptest! {
    #[test]
    fn written_responses_parse_back(
        connections in prop::collection::vec(prop::collection::vec(meant(), 1..5), 1..4),
        repeated in 1..3_usize,
        sizes in prop::collection::vec(1..400_usize, 1..8),
    ) {
        let mut memo = Memo::default();
        for responses in connections {
            let responses = vec![responses; repeated].concat();
            let mut stream = Vec::new();
            let mut ends = Vec::new();
            for meant in &responses {
                write(&mut stream, meant);
                ends.push(stream.len());
            }
            let mut reader = ResponseReader::new(Limits::DEFAULT);
            let (mut body, mut read, mut at) = (Vec::new(), Vec::new(), 0);
            for piece in pieces(&stream, &sizes) {
                let mut rest = piece;
                while !rest.is_empty() {
                    match reader.read(&mut memo, RequestMethod::Get, rest, |data| body.extend_from_slice(data)).unwrap() {
                        None => {
                            at += rest.len();
                            rest = &[];
                        }
                        Some((used, response)) => {
                            at += used;
                            rest = &rest[used..];
                            read.push((response, std::mem::take(&mut body), at));
                        }
                    }
                }
            }
            prop_assert_eq!(reader.end(), Ok(None));
            prop_assert_eq!(read.len(), responses.len());
            for ((response, body, at), (meant, end)) in read.iter().zip(responses.iter().zip(ends)) {
                prop_assert_eq!((response.status, response.keep_alive), (meant.status, !meant.close));
                prop_assert_eq!(response.body_bytes, meant.body.len() as u64);
                prop_assert_eq!((body, *at), (&meant.body, end));
            }
        }
    }

    #[test]
    fn requests_are_rejected_or_parse_back(
        method in prop_oneof![3 => "GET|POST|PUT|OPTIONS|CONNECT|DELETE", 1 => "[ -~\r\n\0]{0,6}"],
        target in prop_oneof![3 => "/[!-~]{0,20}", 1 => "(http://)?[a-z.:0-9*]{1,20}", 1 => any::<String>()],
        given in prop_oneof![3 => headers(), 1 => prop::collection::vec((any::<String>(), any::<String>()), 0..3)],
        host in prop_oneof![3 => "[a-z.]{1,9}(:[0-9]{1,4})?", 1 => any::<String>()],
        body in prop::collection::vec(any::<u8>(), 0..50),
        close in any::<bool>(),
    ) {
        let mut given = given;
        given.insert(given.len() / 2, ("Host".to_owned(), host));
        let mut out = Vec::new();
        if compose_request(&mut out, &method, &target, &given, &body, close).is_err() {
            prop_assert!(out.is_empty());
            return Ok(());
        }
        let (request, used) = parse_request(&out, &Limits::DEFAULT).unwrap().unwrap();
        prop_assert_eq!((request.method, request.target), (method.as_str(), target.as_str()));
        prop_assert!(request.keep_alive || close || given.iter().any(|(name, _)| name.eq_ignore_ascii_case("connection")));
        prop_assert!(!(close && request.keep_alive));
        let head = str::from_utf8(&out[..used]).unwrap().trim_end_matches("\r\n");
        let headers = head.split("\r\n").skip(1).map(|line| line.split_once(": ").unwrap()).collect::<Vec<_>>();
        for ((name, value), (given_name, given_value)) in headers.iter().zip(&given) {
            prop_assert_eq!((*name, *value), (given_name.as_str(), given_value.as_str()));
        }
        let added = headers.iter().skip(given.len()).map(|(name, _)| *name).collect::<Vec<_>>();
        prop_assert!(["Content-Length", "Connection"].ends_with(&added) || added == ["Content-Length"]);
        let mut data = Vec::new();
        let progress = BodyReader::new(request.body, &Limits::DEFAULT, u64::MAX).read(&out[used..], |piece| data.extend_from_slice(piece));
        prop_assert_eq!(progress, Ok(Some(body.len())));
        prop_assert_eq!(data, body);
        prop_assert_eq!(used + request_body_bytes(request.body), out.len());
    }
}

fn request_body_bytes(body: Body) -> usize {
    match body {
        Body::None => 0,
        Body::Length(bytes) => bytes as usize,
        Body::Chunked => panic!("requests are not written in chunks"),
    }
}
