//! Tables of RESP requests and replies.

use wire::resp::{
    Limits, Name, Read, RequestReader, SetOptions, Version, compose_array, compose_bulk, compose_error,
    compose_integer, compose_map, compose_null, parse_set,
};

use crate::bodies::{NARROW_RESP, resp_replies, resp_requests};
use crate::{Case, check_all};

fn check(limits: Limits, cases: &[Case]) {
    check_all(cases, b"*1\r\n$4\r\nPING\r\n", r#"Ping "PING""#, |pieces| resp_requests(limits, pieces));
}

// Each case of the first two tables was sent to Redis 7.0.15 (Debian 12, `redis-server --port 26379 --save ''
// --appendonly no`), followed by `*2\r\n$4\r\nECHO\r\n$3\r\nEND\r\n`. Redis sent the same replies with the same texts,
// except:
// - "quotes that do not close" and the next three: Redis sends the same error but closes the connection;
// - "a count over the limit", "a huge count": Redis has a limit of 2^31 - 1;
// - "a count without an end", "a length without an end": Redis has a limit of 64 KiB and reports an invalid number;
// - "a count that ends in CR", "an argument that is longer", "… shorter": Redis accepts any two bytes as CRLF;
// - "redis-py's first": 7.0 does not support `CLIENT SETINFO` yet;
// - "HTTP": Redis closes without a reply, as after `Host:`; "an unknown name": Redis supports the command.
#[rustfmt::skip]
const ARRAYS: &[Case] = &[
    ("GET", b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", r#"Get "GET" "k""#),
    ("small letters", b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n", r#"Get "get" "k""#),
    ("both", b"*2\r\n$3\r\nGeT\r\n$1\r\nk\r\n", r#"Get "GeT" "k""#),
    ("SET", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n", r#"Set "SET" "k" "hello""#),
    ("SET of nothing", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n", r#"Set "SET" "k" """#),
    ("CRLF in a value", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n", r#"Set "SET" "k" "\r\n\r\n""#),
    ("a request in a value", b"*2\r\n$4\r\nECHO\r\n$14\r\n*1\r\n$4\r\nPING\r\n\r\n", r#"Echo "ECHO" "*1\r\n$4\r\nPING\r\n""#),
    ("two in one piece", b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", r#"Ping "PING"; Quit "QUIT""#),
    ("MGET", b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n", r#"Mget "MGET" "a" "b""#),
    ("MSET", b"*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n", r#"Mset "MSET" "a" "1" "b" "2""#),
    ("HELLO 3", b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", r#"Hello "HELLO" "3""#),
    ("redis-py's first", b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$8\r\nredis-py\r\n", r#"Client "CLIENT" "SETINFO" "LIB-NAME" "redis-py""#),
    ("redis-benchmark's first", b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$4\r\nsave\r\n", r#"Config "CONFIG" "GET" "save""#),
    ("redis-cli's first", b"*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n", r#"Command "COMMAND" "DOCS""#),
    ("an empty array", b"*0\r\n", ""),
    ("a null array", b"*-1\r\n", ""),
    ("a more negative one", b"*-5\r\n", ""),
    ("leading zeros", b"*01\r\n$4\r\nPING\r\n", "refused Protocol error: invalid multibulk length close"),
    ("leading zeros of a length", b"*1\r\n$04\r\nPING\r\n", "refused Protocol error: invalid bulk length close"),
    ("less than zero", b"*-0\r\n", "refused Protocol error: invalid multibulk length close"),
    ("an empty name", b"*1\r\n$0\r\n\r\n", r#"unknown-command: """#),
    ("an unknown name", b"*2\r\n$4\r\nLPOP\r\n$1\r\nk\r\n", r#"unknown-command: "LPOP" "k""#),
    ("GET without a key", b"*1\r\n$3\r\nGET\r\n", r#"wrong-count: "GET""#),
    ("GET of two", b"*3\r\n$3\r\nGET\r\n$1\r\na\r\n$1\r\nb\r\n", r#"wrong-count: "GET" "a" "b""#),
    ("SET without a value", b"*2\r\n$3\r\nSET\r\n$1\r\nk\r\n", r#"wrong-count: "SET" "k""#),
    ("half a count", b"*2", "more"),
    ("half a name", b"*2\r\n$3\r\nGE", "more"),
    ("without its last byte", b"*1\r\n$4\r\nPING\r", "more"),
    ("nothing", b"", ""),
    // The start of the next request is unknown, so the connection must be closed.
    ("a count that is none", b"*x\r\n", "refused Protocol error: invalid multibulk length close"),
    ("no count", b"*\r\n", "refused Protocol error: invalid multibulk length close"),
    ("a count over 64 bits", b"*18446744073709551616\r\n", "refused Protocol error: invalid multibulk length close"),
    ("a count over the limit", b"*65537\r\n", "refused Protocol error: invalid multibulk length close"),
    ("a huge count", b"*2147483647\r\n", "refused Protocol error: invalid multibulk length close"),
    ("a count without an end", b"*0000000000000000000000000000000000001\r\n", "refused Protocol error: too big mbulk count string close"),
    ("a count that ends in CR", b"*1\rx", "refused Protocol error: expected CRLF close"),
    ("a null argument", b"*2\r\n$3\r\nGET\r\n$-1\r\n", "refused Protocol error: invalid bulk length close"),
    ("a length that is none", b"*1\r\n$x\r\n", "refused Protocol error: invalid bulk length close"),
    ("no length", b"*1\r\n$\r\n", "refused Protocol error: invalid bulk length close"),
    ("a length over the skip limit", b"*1\r\n$536870913\r\n", "refused Protocol error: invalid bulk length close"),
    ("a length over 64 bits", b"*1\r\n$99999999999999999999\r\n", "refused Protocol error: invalid bulk length close"),
    ("a length without an end", b"*1\r\n$0000000000000000000000000000000000001\r\n", "refused Protocol error: too big bulk count string close"),
    ("no dollar", b"*1\r\nPING\r\n", "refused Protocol error: expected '$', got 'P' close"),
    ("a number for an argument", b"*1\r\n:1\r\n", "refused Protocol error: expected '$', got ':' close"),
    ("an array in an array", b"*1\r\n*1\r\n$4\r\nPING\r\n", "refused Protocol error: expected '$', got '*' close"),
    ("an argument that is longer", b"*1\r\n$4\r\nPINGS\r\n", "refused Protocol error: expected CRLF close"),
    ("an argument that is shorter", b"*1\r\n$4\r\nPIN\r\n\r\n", "refused Protocol error: expected CRLF close"),
];

#[rustfmt::skip]
const INLINE: &[Case] = &[
    ("PING", b"PING\r\n", r#"Ping "PING""#),
    ("LF alone", b"PING\n", r#"Ping "PING""#),
    ("words", b"SET k v\r\n", r#"Set "SET" "k" "v""#),
    ("spaces and tabs", b" SET \t k  v \r\n", r#"Set "SET" "k" "v""#),
    ("empty lines", b"\r\n\r\n\nPING\r\n", r#"Ping "PING""#),
    ("only empty lines", b"\r\n\r\n", ""),
    ("double quotes", b"SET \"a b\" \"\"\r\n", r#"Set "SET" "a b" """#),
    ("single quotes", b"SET 'a b' ''\r\n", r#"Set "SET" "a b" """#),
    ("escapes", b"ECHO \"\\n\\r\\t\\b\\a\\\\\\\"\\x41\\xfF\"\r\n", r#"Echo "ECHO" "\n\r\t\x08\x07\\\"A\xff""#),
    ("an x without digits", b"ECHO \"\\xg1\"\r\n", r#"Echo "ECHO" "xg1""#),
    ("an escaped single quote", b"ECHO 'it\\'s'\r\n", r#"Echo "ECHO" "it\'s""#),
    ("a backslash in single quotes", b"ECHO '\\n'\r\n", r#"Echo "ECHO" "\\n""#),
    ("quotes within a word", b"ECHO a\"b c\"\r\n", r#"Echo "ECHO" "ab c""#),
    ("a name in quotes", b"\"PING\"\r\n", r#"Ping "PING""#),
    ("a colon is a word", b":1\r\n", r#"unknown-command: ":1""#),
    ("HTTP", b"POST / HTTP/1.1\r\n", r#"unknown-command: "POST" "/" "HTTP/1.1""#),
    ("an array behind it", b"PING\r\n*1\r\n$4\r\nQUIT\r\n", r#"Ping "PING"; Quit "QUIT""#),
    ("quotes that do not close", b"SET k \"v\r\n", "refused Protocol error: unbalanced quotes in request"),
    ("single ones", b"SET k 'v\r\n", "refused Protocol error: unbalanced quotes in request"),
    ("something behind a quote", b"SET \"k\"v w\r\n", "refused Protocol error: unbalanced quotes in request"),
    ("an escape at the end", b"ECHO \"a\\\r\n", "refused Protocol error: unbalanced quotes in request"),
    ("half a line", b"PING", "more"),
];

/// Cases with limits: 6 arguments of 20 bytes each and 48 bytes in total; lines of 40 bytes.
#[rustfmt::skip]
const NARROW: &[Case] = &[
    ("an argument of the limit", b"*2\r\n$4\r\nECHO\r\n$20\r\n01234567890123456789\r\n", r#"Echo "ECHO" "01234567890123456789""#),
    ("an argument over it", b"*2\r\n$4\r\nECHO\r\n$21\r\n01234567890123456789x\r\n", "refused an argument over the limit of 20 bytes"),
    ("and more behind it", b"*3\r\n$3\r\nSET\r\n$21\r\n01234567890123456789x\r\n$1\r\nv\r\n", "refused an argument over the limit of 20 bytes"),
    ("a name over it", b"*1\r\n$21\r\n01234567890123456789x\r\n", "refused an argument over the limit of 20 bytes"),
    ("two over it", b"*2\r\n$21\r\n01234567890123456789x\r\n$22\r\n01234567890123456789xy\r\n", "refused an argument over the limit of 20 bytes"),
    ("all together over it", b"*4\r\n$4\r\nMGET\r\n$20\r\n01234567890123456789\r\n$20\r\n01234567890123456789\r\n$5\r\n01234\r\n", "refused arguments over the limit of 48 bytes together"),
    ("a bad end of one over it", b"*1\r\n$21\r\n01234567890123456789xyz", "refused Protocol error: expected CRLF close"),
    ("no dollar behind one over it", b"*2\r\n$21\r\n01234567890123456789x\r\nx", "refused Protocol error: expected '$', got 'x' close"),
    ("half of one over it", b"*2\r\n$21\r\n01234567890123456789x", "more"),
    ("six arguments", b"*6\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n", r#"Del "DEL" "a" "b" "c" "d" "e""#),
    ("seven", b"*7\r\n", "refused Protocol error: invalid multibulk length close"),
    ("a line of 40 bytes", b"ECHO 012345678901234567890123456789012\r\n", r#"Echo "ECHO" "012345678901234567890123456789012""#),
    ("a line over it", b"ECHO 0123456789012345678901234567890123\r\n", "refused Protocol error: too big inline request close"),
];

#[test]
fn requests() {
    check(Limits::DEFAULT, ARRAYS);
    check(Limits::DEFAULT, INLINE);
    check(NARROW_RESP, &NARROW[..8]);
    check(NARROW_RESP, &NARROW[9..]);
    // Skipped bytes are not kept, so the buffer can be empty in the middle of a request.
    let (name, bytes, _) = NARROW[8];
    for pieces in crate::cuts(bytes) {
        assert!(matches!(resp_requests(NARROW_RESP, &pieces).as_slice(), [] | [_]), "{name}");
        let mut all = pieces.clone();
        all.push(b"\r\n$1\r\nv\r\nPING\r\n");
        assert_eq!(
            resp_requests(NARROW_RESP, &all),
            ["refused an argument over the limit of 20 bytes", r#"Ping "PING""#]
        );
    }
}

type Replies = (&'static [u8], &'static str);

#[rustfmt::skip]
const REPLIES: &[Replies] = &[
    (b"+OK\r\n", r#"Simple "OK""#),
    (b"+\r\n", "Simple"),
    (b"-ERR no such\r\n", r#"Error "ERR no such""#),
    (b":-42\r\n:7\r\n", "Integer(-42); Integer(7)"),
    (b"$5\r\nhello\r\n", r#"Bulk(5) "hello""#),
    (b"$0\r\n\r\n", "Bulk(0)"),
    (b"$4\r\n\r\n\r\n\r\n", r#"Bulk(4) "\r\n\r\n""#),
    (b"$-1\r\n", "Null"),
    (b"$5\r\nhel", r#"more "hel""#),
    (b"*0\r\n", "error byte 0x2a at the start of a reply"),
    (b"_\r\n", "error byte 0x5f at the start of a reply"),
    (b"HTTP/1.1 200 OK\r\n", "error byte 0x48 at the start of a reply"),
    (b"\r\n", "error byte 0x0d at the start of a reply"),
    (b"+OK\n", "error a line that does not end in CRLF"),
    (b"+O\rK\r\n", "error a line that does not end in CRLF"),
    (b":x\r\n", "error an invalid number or length"),
    (b":\r\n", "error an invalid number or length"),
    (b"$-2\r\n", "error an invalid number or length"),
    (b"$?\r\n", "error an invalid number or length"),
    (b"$1\r\nab\r\n", "error a value not followed by CRLF"),
    (b"$3\r\nab\r\n\r\n", "error a value not followed by CRLF"),
    (b"$1048577\r\n", "error a value of 1048577 bytes, over the limit of 1048576"),
    (b"$18446744073709551616\r\n", "error an invalid number or length"),
];

#[test]
fn replies() {
    let mut wrong = Vec::new();
    for (bytes, expect) in REPLIES {
        for pieces in crate::cuts(bytes) {
            let found = resp_replies(Limits::DEFAULT, &pieces).join("; ");
            if found != *expect {
                wrong.push(format!(
                    "{}, {} pieces:\n  {found}\n  {expect} expected",
                    bytes.escape_ascii(),
                    pieces.len()
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), REPLIES.len(), wrong.join("\n"));
    let long = b"+0123456789012345678901234567890123456789";
    assert_eq!(resp_replies(NARROW_RESP, &[long]), ["error a line of more than 40 bytes"]);
}

/// Compares errors with Redis 7.0.15, which received each case through `redis-cli SET k v …`.
#[test]
fn parses_set_options_like_redis() {
    let none = SetOptions::default();
    let cases: &[(&str, Result<SetOptions, &str>)] = &[
        ("", Ok(none)),
        (" EX 10", Ok(SetOptions { expires_ms: 10_007, ..none })),
        (" px 10", Ok(SetOptions { expires_ms: 17, ..none })),
        (" EXAT 10", Ok(SetOptions { expires_ms: 10_000, ..none })),
        (" PXAT 10", Ok(SetOptions { expires_ms: 10, ..none })),
        (" NX", Ok(SetOptions { if_absent: true, ..none })),
        (" xx GET", Ok(SetOptions { if_present: true, get: true, ..none })),
        (" KEEPTTL", Ok(SetOptions { keep_ttl: true, ..none })),
        (" NX XX", Err("syntax error")),
        (" EX", Err("syntax error")),
        (" EX 1 PX 1", Err("syntax error")),
        // As in Redis, an option may be repeated, and its last value counts.
        (" EX 1 EX 2", Ok(SetOptions { expires_ms: 2_007, ..none })),
        (" EX 010", Err("value is not an integer or out of range")),
        (" EX 1 KEEPTTL", Err("syntax error")),
        (" KEEPTTL EX 1", Err("syntax error")),
        (" WHAT", Err("syntax error")),
        (" EX x", Err("value is not an integer or out of range")),
        (" EX 0", Err("invalid expire time in 'set' command")),
        (" EX -1", Err("invalid expire time in 'set' command")),
        (" EX 9223372036854775807", Err("invalid expire time in 'set' command")),
    ];
    for (options, expect) in cases {
        let line = format!("SET k v{options}\r\n");
        let mut reader = RequestReader::new(Limits::DEFAULT);
        let Read::Request { request, .. } = reader.read(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(parse_set(&request, 7), *expect, "{line}");
    }
}

#[test]
fn composes_replies() {
    let mut out = Vec::new();
    for version in [Version::Two, Version::Three] {
        compose_null(&mut out, version);
        compose_map(&mut out, version, 1);
        compose_bulk(&mut out, b"a");
        compose_integer(&mut out, 7);
    }
    compose_error(&mut out, "ERR a\nb");
    compose_array(&mut out, 1);
    compose_integer(&mut out, i64::MIN);
    let expect =
        "$-1\r\n*2\r\n$1\r\na\r\n:7\r\n_\r\n%1\r\n$1\r\na\r\n:7\r\n-ERR a b\r\n*1\r\n:-9223372036854775808\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expect);
}

#[test]
fn commands_check_their_argument_count() {
    let count = |text: &str| Name::parse(text.as_bytes()).map(|name| [1, 2, 3, 4, 5].map(|count| name.takes(count)));
    assert_eq!(count("get"), Some([false, true, false, false, false]));
    assert_eq!(count("SETEX"), Some([false, false, false, true, false]));
    assert_eq!(count("Del"), Some([false, true, true, true, true]));
    assert_eq!((count("multi"), count("scan"), count("")), (None, None, None));
}
