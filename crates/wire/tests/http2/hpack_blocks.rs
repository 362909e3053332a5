//! Tests of field blocks: HPACK with its tables, and fields shared between requests.

use wire::http2::hpack::{self, Decoder, HpackError};
use wire::http2::{Limits, SharedFields, TableUse, request_fields};

use crate::hex;

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<String, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    decoder.decode(block, &Limits::DEFAULT, |name, value| fields.push(format!("{}: {}", text(name), text(value))))?;
    Ok(fields.join("\n"))
}

fn check_all(decoder: &mut Decoder, blocks: &[(&str, &str)]) {
    for (block, expect) in blocks {
        assert_eq!(decoded(decoder, &hex(block)).as_deref(), Ok(*expect), "{block}");
    }
}

/// Source: RFC 7541, appendix C.2.
#[test]
fn decodes_each_representation() {
    for (block, expect) in [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header"),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path"),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret"),
        ("82", ":method: GET"),
    ] {
        check_all(&mut Decoder::default(), &[(block, expect)]);
    }
}

/// Source: RFC 7541, appendices C.3 and C.4.
#[test]
fn decodes_requests_on_one_connection() {
    let expects = [
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
        ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
    ];
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let huffman = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, huffman] {
        let cases = blocks.into_iter().zip(expects).collect::<Vec<_>>();
        check_all(&mut Decoder::default(), &cases);
    }
}

/// Uses a table of 256 bytes, so that fields are evicted. Source: RFC 7541, appendices C.5 and C.6.
#[test]
fn decodes_responses_with_eviction() {
    let common = "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com";
    let expects = [
        format!(":status: 302\n{common}"),
        format!(":status: 307\n{common}"),
        ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: \
         https://www.example.com\ncontent-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; \
         version=1"
            .to_owned(),
    ];
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d \
         546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f \
         6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b \
         2076 6572 7369 6f6e 3d31",
    ];
    let huffman = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
         8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 \
         dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, huffman] {
        let mut decoder = Decoder::default();
        decoder.allow_table(256);
        let shrink = "3fe1 01";
        let first = [shrink, blocks[0]].concat();
        check_all(&mut decoder, &[(&first, &expects[0]), (blocks[1], &expects[1]), (blocks[2], &expects[2])]);
    }
}

#[test]
fn rejects_invalid_blocks() {
    for (block, expect) in [
        ("80", HpackError::Index(0)),
        ("be", HpackError::Index(62)),
        ("ff", HpackError::Truncated),
        ("ff80 8080 8010", HpackError::Integer),
        ("ffff ffff ff07", HpackError::Integer),
        ("ff80 8080 8080 00", HpackError::Integer),
        ("40", HpackError::Truncated),
        ("4003 6162", HpackError::Truncated),
        ("7e01 61", HpackError::Index(62)),
        // RFC 7541, section 5.2: padding of eight bits, padding of zeros, EOS.
        ("0082 1fff 0161", HpackError::Huffman),
        ("0081 1800 0161", HpackError::Huffman),
        ("0084 ffff ffff 0161", HpackError::Huffman),
        // RFC 7541, sections 4.2 and 6.3.
        ("8220", HpackError::TableSizePlace),
        ("3fe2 1f", HpackError::TableSize(4097)),
    ] {
        let result = decoded(&mut Decoder::default(), &hex(block));
        assert_eq!(result, Err(expect), "{block}");
    }
}

#[test]
fn a_smaller_setting_needs_a_smaller_table() {
    let mut decoder = Decoder::default();
    decoder.allow_table(100);
    assert_eq!(decoded(&mut decoder.clone(), &hex("82")), Err(HpackError::TableSizePlace));
    assert_eq!(decoded(&mut decoder, &hex("3f45 82")).as_deref(), Ok(":method: GET"));
}

#[test]
fn table_keeps_its_size_over_many_insertions() {
    let mut decoder = Decoder::default();
    for number in 0..10_000 {
        let (name, value) = (format!("name-{number}"), "v".repeat(number % 200));
        let mut block = Vec::new();
        hpack::push_field(&mut block, name.as_bytes(), value.as_bytes(), hpack::Indexing::Insert);
        hpack::push_indexed(&mut block, hpack::DYNAMIC_FIRST);
        let field = format!("{name}: {value}");
        assert_eq!(decoded(&mut decoder, &block), Ok(format!("{field}\n{field}")));
    }
    assert_eq!(decoder.changes, 10_000);
    let mut block = Vec::new();
    hpack::push_indexed(&mut block, hpack::DYNAMIC_FIRST + 128);
    assert!(decoded(&mut decoder, &block).is_err(), "4,096 bytes hold 128 fields at most");
}

#[test]
fn an_evicted_name_can_be_reused_by_the_field_that_evicts_it() {
    let mut decoder = Decoder::default();
    let mut block = Vec::new();
    hpack::push_table_size(&mut block, 100);
    hpack::push_field(&mut block, b"long-name", &[b'a'; 50], hpack::Indexing::Insert);
    block.extend_from_slice(&[0x7e, 1, b'b']); // Reuses the name of this field, with the value `b`.
    block.push(0xbe);
    let expect = format!("long-name: {}\nlong-name: b\nlong-name: b", "a".repeat(50));
    assert_eq!(decoded(&mut decoder, &block), Ok(expect));
}

#[test]
fn fields_of_a_block_are_limited() {
    let limits = Limits { fields: 3, list_bytes: 200, ..Limits::DEFAULT };
    let decode = |block: &[u8]| Decoder::default().decode(block, &limits, |_, _| {});
    assert_eq!(decode(&[0x82; 3]), Ok(()));
    assert_eq!(decode(&[0x82; 4]), Err(HpackError::TooManyFields(3)));
    let mut bomb = Vec::new();
    hpack::push_field(&mut bomb, b"name", &[b'a'; 100], hpack::Indexing::Insert);
    bomb.push(0xbe);
    assert_eq!(decode(&bomb), Err(HpackError::FieldsTooLarge(200)));
}

fn mix() -> Vec<Vec<(String, String)>> {
    [("GET", "/a"), ("POST", "/b?c=1"), ("PUT", "/")]
        .map(|(method, target)| {
            let headers = [("X-Own", target), ("Host", "example.com:8080"), ("User-Agent", "quintain/1")];
            request_fields("http", method, target, &headers, b"").unwrap()
        })
        .to_vec()
}

#[test]
fn requests_decode_however_they_use_the_table() {
    let mut mix = mix();
    let shared = SharedFields::new(&mix, 4096, |_| true);
    assert_eq!(shared.table_bytes(), ":authorityexample.com:8080".len() + "user-agentquintain/1".len() + 64);
    mix.iter_mut().for_each(|fields| shared.sort(fields));
    let block = |fields: &[(String, String)], table| {
        let mut block = Vec::new();
        fields.iter().for_each(|field| shared.push(&mut block, field, table));
        block
    };
    for first in &mix {
        for avoided in [false, true] {
            let mut decoder = Decoder::default();
            let (fill, refer) =
                if avoided { (TableUse::Avoid, TableUse::Avoid) } else { (TableUse::Fill, TableUse::Refer) };
            let mut blocks = vec![(block(first, fill), first)];
            blocks.extend(mix.iter().map(|fields| (block(fields, refer), fields)));
            for (block, fields) in blocks {
                let expect =
                    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n");
                assert_eq!(decoded(&mut decoder, &block), Ok(expect));
            }
            assert_eq!(decoder.changes, if avoided { 0 } else { 2 });
        }
    }
    let refer = block(&mix[0], TableUse::Refer);
    assert!(refer.starts_with(&[0xbf, 0x82, 0x86]), "{}", refer.escape_ascii());
}

#[test]
fn shared_fields_fit_into_the_table() {
    let shared = SharedFields::new(&mix(), 55, |_| true);
    assert_eq!(shared.table_bytes(), "user-agentquintain/1".len() + 32);
    assert_eq!(SharedFields::new(&mix(), 4096, |value| !value.contains("quintain")).table_bytes(), 58);
}

#[test]
fn requests_that_http2_forbids_are_refused() {
    let host = ("Host", "a");
    for (method, target, header, expect) in [
        ("GET", "/", ("Connection", "close"), "`connection` is a header of HTTP/1.1 connections"),
        ("GET", "/", ("TE", "gzip"), "`te` must be `trailers`"),
        ("CONNECT", "a:80", ("X", "y"), "`CONNECT a:80` cannot be sent over HTTP/2"),
        ("GET", "http://a/", ("X", "y"), "`GET http://a/` cannot be sent over HTTP/2"),
        ("GET", "/", ("X", "a\nb"), "control characters cannot be sent"),
        ("GET", "/", ("Host", "b"), "2 `Host` headers"),
    ] {
        let error = request_fields("http", method, target, &[host, header], b"").unwrap_err();
        assert!(error.contains(expect), "{error}");
    }
    let fields = request_fields("https", "POST", "/", &[host, ("TE", " trailers ")], b"abc").unwrap();
    let text = fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    assert_eq!(text, [":method=POST", ":scheme=https", ":authority=a", ":path=/", "te=trailers", "content-length=3"]);
}
