//! Tables of request and response heads.

use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Decoder, Indexing};
use wire::http2::{FieldError, Incoming, Limits, RequestHead, ResponseDecoder, ResponseHead, read_trailers};

/// Encodes a block from lines such as `:method: GET`.
fn block(text: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for line in text.lines() {
        let (name, value) = line[1..].split_once(": ").unwrap();
        let name = format!("{}{name}", &line[..1]);
        hpack::push_field(&mut block, name.as_bytes(), value.as_bytes(), Indexing::Skip);
    }
    block
}

fn request(text: &str) -> Result<String, FieldError> {
    let mut head = RequestHead::default();
    let mut others = Vec::new();
    let add = |name: &[u8], value: &[u8]| others.push([name, b"=", value].concat().escape_ascii().to_string());
    let read = head.read(&mut Decoder::default(), &block(text), &Limits::DEFAULT, add).unwrap();
    read.map(|()| format!("{} {} {:?} {}", head.method(), head.path(), head.content_length, others.join(" ")))
}

#[test]
fn reads_requests() {
    let start = ":method: GET\n:scheme: http\n:authority: a:1\n:path: /b?c\n";
    for (text, expect) in [
        (start.to_owned(), Ok("GET /b?c None ")),
        (format!("{start}te: trailers\ncookie: a=b"), Ok("GET /b?c None te=trailers cookie=a=b")),
        (format!("{start}host: A:1"), Ok("GET /b?c None host=A:1")),
        (
            format!("{start}content-length: 3\ncontent-length: 3"),
            Ok("GET /b?c Some(3) content-length=3 content-length=3"),
        ),
        (":path: *\n:method: OPTIONS\n:scheme: https\nhost: a".to_owned(), Ok("OPTIONS * None host=a")),
        (":method: CONNECT\n:authority: a:1".to_owned(), Ok("CONNECT  None ")),
        (format!("{start}host: other"), Err(FieldError::HOST)),
        (format!("{start}content-length: 3\ncontent-length: 4"), Err(FieldError::LENGTH)),
        (format!("{start}content-length: -3"), Err(FieldError::LENGTH)),
        (format!("{start}te: gzip"), Err(FieldError::CONNECTION)),
        (format!("{start}connection: close"), Err(FieldError::CONNECTION)),
        (format!("{start}transfer-encoding: chunked"), Err(FieldError::CONNECTION)),
        (format!("{start}Upper: case"), Err(FieldError::NAME)),
        (format!("{start}a b: c"), Err(FieldError::NAME)),
        (format!("{start}a:  c"), Err(FieldError::VALUE)),
        (format!("{start}a: c\u{1}"), Err(FieldError::VALUE)),
        (format!("{start}a: c\n:path: /"), Err(FieldError::LATE_PSEUDO)),
        (format!("{start}:path: /"), Err(FieldError::REPEATED_PSEUDO)),
        (format!("{start}:status: 200"), Err(FieldError::UNKNOWN_PSEUDO)),
        (format!("{start}:protocol: websocket"), Err(FieldError::UNKNOWN_PSEUDO)),
        (":method: GET\n:scheme: http\n:authority: a".to_owned(), Err(FieldError::MISSING_PSEUDO)),
        (":method: GET\n:path: /\n:authority: a".to_owned(), Err(FieldError::MISSING_PSEUDO)),
        (":scheme: http\n:path: /\n:authority: a".to_owned(), Err(FieldError::MISSING_PSEUDO)),
        (":method: GET\n:scheme: http\n:path: /".to_owned(), Err(FieldError::MISSING_PSEUDO)),
        (":method: GET\n:scheme: http\n:authority: a\n:path: b".to_owned(), Err(FieldError::PATH)),
        (":method: GET\n:scheme: http\n:authority: a\n:path: ".to_owned(), Err(FieldError::PATH)),
        (":method: GET\n:scheme: http\n:authority: a\n:path: *".to_owned(), Err(FieldError::PATH)),
        (":method: GET\n:scheme: http\n:authority: a b\n:path: /".to_owned(), Err(FieldError::HOST)),
        (":method: CONNECT\n:authority: a:1\n:path: /".to_owned(), Err(FieldError::UNKNOWN_PSEUDO)),
    ] {
        assert_eq!(request(&text).as_deref(), expect.as_ref().copied(), "{text}");
    }
}

#[test]
fn a_head_keeps_nothing_of_the_last_one() {
    let mut head = RequestHead::default();
    let mut read = |text: &str| {
        let result = head.read(&mut Decoder::default(), &block(text), &Limits::DEFAULT, |_, _| {}).unwrap();
        result.map(|()| (head.method().to_owned(), head.path().to_owned(), head.content_length, head.expect_continue))
    };
    let first = ":method: PUT\n:scheme: http\n:authority: a\n:path: /a\ncontent-length: 1\nexpect: 100-continue";
    assert_eq!(read(first), Ok(("PUT".to_owned(), "/a".to_owned(), Some(1), true)));
    assert_eq!(read(":method: GET"), Err(FieldError::MISSING_PSEUDO));
    let last = ":method: GET\n:scheme: http\n:authority: a\n:path: /";
    assert_eq!(read(last), Ok(("GET".to_owned(), "/".to_owned(), None, false)));
}

fn response(text: &str) -> Result<(u16, Option<u64>), FieldError> {
    let read = ResponseHead::read(&mut Decoder::default(), &block(text), &Limits::DEFAULT, |_, _| {}).unwrap();
    read.map(|head| (head.status, head.content_length))
}

#[test]
fn reads_responses() {
    for (text, expect) in [
        (":status: 200", Ok((200, None))),
        (":status: 599\ncontent-length: 12\nserver: x", Ok((599, Some(12)))),
        (":status: 103\nlink: x", Ok((103, None))),
        (":status: 99", Err(FieldError::STATUS)),
        (":status: 099", Err(FieldError::STATUS)),
        (":status: 2000", Err(FieldError::STATUS)),
        (":status: 101", Err(FieldError::STATUS)),
        (":status: 200\n:status: 200", Err(FieldError::REPEATED_PSEUDO)),
        (":status: 200\n:path: /", Err(FieldError::UNKNOWN_PSEUDO)),
        ("server: x\n:status: 200", Err(FieldError::LATE_PSEUDO)),
        ("server: x", Err(FieldError::MISSING_PSEUDO)),
        ("", Err(FieldError::MISSING_PSEUDO)),
    ] {
        assert_eq!(response(text), expect, "{text}");
    }
}

#[test]
fn trailers_have_no_pseudo_fields() {
    let read = |text| read_trailers(&mut Decoder::default(), &block(text), &Limits::DEFAULT, |_, _| {}).unwrap();
    assert_eq!(read("grpc-status: 0"), Ok(()));
    assert_eq!(read(":status: 200"), Err(FieldError::UNKNOWN_PSEUDO));
}

#[test]
fn known_blocks_depend_on_the_table() {
    let mut decoder = ResponseDecoder::default();
    let mut read = |block: &[u8]| {
        let head = decoder.read(block, &Limits::DEFAULT).unwrap();
        head.map(|head| (head.status, head.content_length))
    };
    let insert = |length: &str| {
        let mut block = vec![0x88];
        hpack::push_field(&mut block, b"content-length", length.as_bytes(), Indexing::Insert);
        block
    };
    for _ in 0..3 {
        assert_eq!(read(&insert("5")), Ok((200, Some(5))));
        assert_eq!(read(&[0x88, 0xbe]), Ok((200, Some(5))));
        assert_eq!(read(&[0x88, 0xbe]), Ok((200, Some(5))));
        assert_eq!(read(&insert("6")), Ok((200, Some(6))));
        assert_eq!(read(&[0x88, 0xbe]), Ok((200, Some(6))));
        assert_eq!(read(&[0x88]), Ok((200, None)));
        assert_eq!(read(&[0x8d]), Ok((404, None)));
        assert_eq!(read(&[]), Err(FieldError::MISSING_PSEUDO));
    }
}

/// A server may insert the same fields with each response and refer to an earlier copy.
#[test]
fn known_blocks_insert_their_fields() {
    let inserting = |lengths: &[usize]| {
        let mut block = vec![0x88];
        for bytes in lengths {
            let name = format!("x-{bytes}");
            hpack::push_field(&mut block, name.as_bytes(), &vec![b'v'; *bytes], Indexing::Insert);
        }
        hpack::push_field(&mut block, b"content-length", lengths.len().to_string().as_bytes(), Indexing::Insert);
        block
    };
    let blocks = [inserting(&[10]), inserting(&[200, 30]), inserting(&[1_000, 20, 5]), inserting(&[5_000])];
    for pattern in [&[0][..], &[1], &[2], &[3], &[0, 1], &[2, 2, 0], &[0, 1, 2], &[3, 0]] {
        for repeated in [0, 1, 2, 3, 5, 40, 150] {
            let (mut known, mut plain) = (ResponseDecoder::default(), Decoder::default());
            for nth in pattern.repeat(repeated).into_iter().chain([1, 0]) {
                let expect = ResponseHead::read(&mut plain, &blocks[nth], &Limits::DEFAULT, |_, _| {}).unwrap();
                assert_eq!(known.read(&blocks[nth], &Limits::DEFAULT), Ok(expect));
            }
            for index in 62..200 {
                let mut block = Vec::new();
                hpack::push_indexed(&mut block, index);
                let decode = |decoder: &mut Decoder| {
                    let mut field = Vec::new();
                    let add = |name: &[u8], value: &[u8]| field = [name, b"=", value].concat();
                    decoder.clone().decode(&block, &Limits::DEFAULT, add).map(|()| field)
                };
                let decoder = known.decoder(&Limits::DEFAULT).unwrap();
                assert_eq!(decode(decoder), decode(&mut plain), "{pattern:?} x {repeated}, {index}");
            }
        }
    }
}

#[test]
fn messages_have_their_declared_length() {
    let get = RequestMethod::Get;
    let head = |status, content_length| ResponseHead { status, content_length };
    let run = |asked, heads: &[(ResponseHead, bool)], data: &[(usize, bool)]| {
        let mut message = Incoming::default();
        assert!(message.awaits_head());
        heads.iter().try_for_each(|(head, ends)| message.response(*head, asked, *ends))?;
        data.iter().try_for_each(|(bytes, ends)| message.data(*bytes, *ends))?;
        Ok((message.is_complete(), message.body_bytes))
    };
    assert_eq!(run(get, &[(head(200, None), true)], &[]), Ok((true, 0)));
    assert_eq!(run(get, &[(head(200, Some(5)), false)], &[(2, false), (3, true)]), Ok((true, 5)));
    assert_eq!(run(get, &[(head(200, Some(5)), false)], &[(5, false)]), Ok((false, 5)));
    assert_eq!(run(get, &[(head(200, None), false)], &[(5, false), (0, true)]), Ok((true, 5)));
    assert_eq!(run(get, &[(head(103, None), false), (head(200, None), true)], &[]), Ok((true, 0)));
    assert_eq!(run(RequestMethod::Head, &[(head(200, Some(5)), true)], &[]), Ok((true, 0)));
    assert_eq!(run(get, &[(head(304, Some(5)), true)], &[]), Ok((true, 0)));
    assert_eq!(run(get, &[(head(200, Some(5)), true)], &[]), Err(FieldError::BODY_LENGTH));
    assert_eq!(run(get, &[(head(200, Some(5)), false)], &[(4, true)]), Err(FieldError::BODY_LENGTH));
    assert_eq!(run(get, &[(head(200, Some(5)), false)], &[(6, false)]), Err(FieldError::BODY_LENGTH));
    assert_eq!(run(RequestMethod::Head, &[(head(200, Some(5)), false)], &[(5, true)]), Err(FieldError::BODY_LENGTH));
    assert_eq!(run(get, &[(head(100, None), true)], &[]), Err(FieldError::ENDING));
    assert_eq!(run(get, &[(head(100, None), false)], &[(1, true)]), Err(FieldError::EARLY_DATA));

    let mut message = Incoming::default();
    message.response(head(200, None), get, false).unwrap();
    assert!(!message.awaits_head());
    assert_eq!(
        (message.trailers(false), message.trailers(true), message.is_complete()),
        (Err(FieldError::ENDING), Ok(()), true)
    );
    assert_eq!(Incoming::request(Some(1), true), Err(FieldError::BODY_LENGTH));
    assert!(Incoming::request(None, true).unwrap().is_complete());
}
