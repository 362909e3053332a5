//! Tables of memcached requests and responses.

use wire::memcached::{Expected, Limits, expires_ms};

use crate::bodies::{NARROW_MEMCACHED, memcached_answers, memcached_requests};
use crate::{Case, check_all};

fn check(limits: Limits, cases: &[Case]) {
    check_all(cases, b"get good\r\n", r#"get "good""#, |pieces| memcached_requests(limits, pieces));
}

// Each case of the first three tables was sent to memcached 1.6.18 (Debian 12, `memcached -u nobody -p 21211 -l
// 127.0.0.1 -U 0`), followed by `version\r\n`, on its own connection. memcached sent these responses, except:
// - a storage command with an invalid key, flags, exptime, cas or number of words: it skips only the line and parses
//   the block as a command (`CLIENT_ERROR bad command line format`, then `END` for the `get x` in the block);
// - "a length with a sign": it accepts the plus sign and waits for 5 bytes;
// - "gat without a key": `END`; "cas with noreply for it": no response;
// - "a length beyond the skip limit", "a length of 64 bits": `CLIENT_ERROR bad command line format`; it skips only the
//   line and keeps the connection open.
#[rustfmt::skip]
const RETRIEVAL: &[Case] = &[
    ("get", b"get k\r\n", r#"get "k""#),
    ("get of many", b"get a bb ccc\r\n", r#"get "a" "bb" "ccc""#),
    ("get twice in one piece", b"get a\r\nget b\r\n", r#"get "a"; get "b""#),
    ("LF alone", b"get a\n", r#"get "a""#),
    ("spaces between and behind", b"get  a   b \r\n", r#"get "a" "b""#),
    ("a space before", b" get a\r\n", r#"get "a""#),
    ("a tab is not a space", b"get a\tb\r\n", r#"get "a\tb""#),
    ("bytes beyond ASCII", b"get \xff\x80\r\n", r#"get "\xff\x80""#),
    ("CR within", b"get a\rb\r\n", r#"get "a\rb""#),
    ("noreply is a key here", b"get noreply\r\n", r#"get "noreply""#),
    ("gets", b"gets a b\r\n", r#"gets "a" "b""#),
    ("gat", b"gat 10 a\r\n", r#"get 10 "a""#),
    ("gats", b"gats 0 a b\r\n", r#"gets 0 "a" "b""#),
    ("gat in the past", b"gat -1 a\r\n", r#"get -1 "a""#),
    ("gat without a number", b"gat x a\r\n", "refused CLIENT_ERROR invalid exptime argument"),
    ("gat over 32 bits", b"gat 2147483648 a\r\n", r#"get -2147483648 "a""#),
    ("gat without a key", b"gat 10\r\n", "refused ERROR"),
    ("gat without anything", b"gat\r\n", "refused ERROR"),
    ("get without a key", b"get\r\n", "refused ERROR"),
    ("get with a space", b"get \r\n", "refused ERROR"),
    ("capital letters", b"GET a\r\n", "refused ERROR"),
    ("a longer name", b"getx a\r\n", "refused ERROR"),
    ("an empty line", b"\r\n", "refused ERROR"),
    ("only LF", b"\n", "refused ERROR"),
    ("only spaces", b"   \r\n", "refused ERROR"),
    ("NUL", b"\0\r\n", "refused ERROR"),
    ("half a line", b"get a", "more"),
    ("without its LF", b"get a\r", "more"),
    ("nothing", b"", ""),
];

#[rustfmt::skip]
const STORAGE: &[Case] = &[
    ("set", b"set k 1 0 5\r\nhello\r\n", r#"set "k" 1 0 "hello""#),
    ("set of nothing", b"set k 0 0 0\r\n\r\n", r#"set "k" 0 0 """#),
    ("CRLF in a value", b"set k 0 0 4\r\n\r\n\r\n\r\n", r#"set "k" 0 0 "\r\n\r\n""#),
    ("a command in a value", b"set k 0 0 7\r\nget a\r\n\r\n", r#"set "k" 0 0 "get a\r\n""#),
    ("NUL in a value", b"set k 0 0 1\r\n\0\r\n", r#"set "k" 0 0 "\x00""#),
    ("add", b"add k 0 60 1\r\na\r\n", r#"add "k" 0 60 "a""#),
    ("replace", b"replace k 0 60 1\r\na\r\n", r#"replace "k" 0 60 "a""#),
    ("append", b"append k 0 0 1\r\na\r\n", r#"append "k" 0 0 "a""#),
    ("prepend", b"prepend k 0 0 1\r\na\r\n", r#"prepend "k" 0 0 "a""#),
    ("cas", b"cas k 0 0 1 18446744073709551615\r\na\r\n", r#"cas "k" 0 0 cas 18446744073709551615 "a""#),
    ("set noreply", b"set k 0 0 1 noreply\r\na\r\n", r#"set "k" 0 0 noreply "a""#),
    ("cas noreply", b"cas k 0 0 1 2 noreply\r\na\r\n", r#"cas "k" 0 0 cas 2 noreply "a""#),
    ("a key named noreply", b"set noreply 0 0 1\r\na\r\n", r#"set "noreply" 0 0 "a""#),
    ("another last word", b"set k 0 0 1 please\r\na\r\n", r#"set "k" 0 0 "a""#),
    ("30 days", b"set k 0 2592000 1\r\na\r\n", r#"set "k" 0 2592000 "a""#),
    ("a date", b"set k 0 2592001 1\r\na\r\n", r#"set "k" 0 2592001 "a""#),
    ("in the past", b"set k 0 -1 1\r\na\r\n", r#"set "k" 0 -1 "a""#),
    ("flags of 32 bits", b"set k 4294967295 0 1\r\na\r\n", r#"set "k" 4294967295 0 "a""#),
    ("LF ends the line", b"set k 0 0 1\na\r\n", r#"set "k" 0 0 "a""#),
    ("a value that has not come", b"set k 0 0 5\r\nhel", "more"),
    ("its CRLF has not come", b"set k 0 0 5\r\nhello\r", "more"),
    // The block's length is known, so the block is skipped.
    ("flags over 32 bits", b"set k 4294967296 0 5\r\nget x\r\n", r#"set "k" 0 0 "get x""#),
    ("negative flags", b"set k -1 0 5\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("flags that are none", b"set k x 0 5\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("an exptime that is none", b"set k 0 x 5\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("an exptime over 32 bits", b"set k 0 4294967301 5\r\nget x\r\n", r#"set "k" 0 5 "get x""#),
    ("cas without its number", b"cas k 0 0 5\r\nget x\r\n", "refused ERROR"),
    ("cas with a word for it", b"cas k 0 0 5 x\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("cas with noreply for it", b"cas k 0 0 5 noreply\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("too many words", b"set k 0 0 5 6 7\r\nget x\r\n", "refused ERROR"),
    ("refused silently", b"set k x 0 5 noreply\r\nget x\r\n", "refused CLIENT_ERROR bad command line format silent"),
    ("a longer value", b"set k 0 0 3\r\nabcde\r\n", "refused CLIENT_ERROR bad data chunk; refused ERROR"),
    ("a shorter value", b"set k 0 0 5\r\nabc\r\nget x\r\n", "refused CLIENT_ERROR bad data chunk; refused ERROR"),
    ("a value of the wrong end", b"set k 0 0 3\r\nabc\n\n", "refused CLIENT_ERROR bad data chunk"),
    ("the same silently", b"set k 0 0 3 noreply\r\nabc\n\n", "refused CLIENT_ERROR bad data chunk silent"),
    // The block's length is unknown, so only the line is skipped.
    ("no length", b"set k 0 0\r\n", "refused ERROR"),
    ("no words", b"set\r\n", "refused ERROR"),
    ("a negative length", b"set k 0 0 -1\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a length that is none", b"set k 0 0 x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a length over 64 bits", b"set k 0 0 18446744073709551616\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a length with a sign", b"set k 0 0 +5\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a length beyond the skip limit", b"set k 0 0 2147483649\r\nget x\r\n", "refused SERVER_ERROR object too large for cache close outdates \"k\""),
    ("a length of 64 bits", b"set k 0 0 18446744073709551615\r\nget x\r\n", "refused SERVER_ERROR object too large for cache close outdates \"k\""),
];

#[rustfmt::skip]
const OTHERS: &[Case] = &[
    ("delete", b"delete k\r\n", r#"delete "k""#),
    ("delete noreply", b"delete k noreply\r\n", r#"delete "k" noreply"#),
    ("delete 0", b"delete k 0\r\n", r#"delete "k""#),
    ("delete 0 noreply", b"delete k 0 noreply\r\n", r#"delete "k" noreply"#),
    ("delete with a time", b"delete k 5\r\n", "refused CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
    ("delete with a time, silently", b"delete k 5 noreply\r\n", "refused CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply] silent"),
    ("delete nothing", b"delete\r\n", "refused ERROR"),
    ("delete with four words", b"delete k 0 0 0\r\n", "refused ERROR"),
    ("incr", b"incr k 18446744073709551615\r\n", r#"incr "k" 18446744073709551615"#),
    ("decr", b"decr k 0 noreply\r\n", r#"decr "k" 0 noreply"#),
    ("incr by a word", b"incr k x\r\n", "refused CLIENT_ERROR invalid numeric delta argument"),
    ("incr by less than nothing", b"incr k -1\r\n", "refused CLIENT_ERROR invalid numeric delta argument"),
    ("incr without a number", b"incr k\r\n", "refused ERROR"),
    ("touch", b"touch k 10\r\n", r#"touch "k" 10"#),
    ("touch noreply", b"touch k -1 noreply\r\n", r#"touch "k" -1 noreply"#),
    ("touch without a number", b"touch k x\r\n", "refused CLIENT_ERROR invalid exptime argument"),
    ("touch without a word", b"touch k\r\n", "refused ERROR"),
    ("flush_all", b"flush_all\r\n", "flush_all 0"),
    ("flush_all noreply", b"flush_all noreply\r\n", "flush_all 0 noreply"),
    ("flush_all later", b"flush_all 10 noreply\r\n", "flush_all 10 noreply"),
    ("flush_all in the past", b"flush_all -1\r\n", "flush_all 0"),
    ("flush_all with a word", b"flush_all x\r\n", "refused CLIENT_ERROR invalid exptime argument"),
    ("version", b"version\r\n", "version"),
    ("verbosity", b"verbosity 1\r\n", "verbosity"),
    ("verbosity noreply", b"verbosity 1 noreply\r\n", "verbosity noreply"),
    ("verbosity without a number", b"verbosity\r\n", "refused ERROR"),
    ("stats", b"stats\r\n", r#"stats """#),
    ("stats of something", b"stats items\r\n", r#"stats "items""#),
    ("quit", b"quit\r\n", "quit"),
    ("mn", b"mn\r\n", "mn"),
    ("other meta commands", b"mg k v\r\n", "refused ERROR"),
];

/// Cases with limits in bytes: keys 10, values 40, lines 48 (`get`: 64), and skipped blocks 100.
#[rustfmt::skip]
const NARROW: &[Case] = &[
    ("a key of the limit", b"get 1234567890\r\n", r#"get "1234567890""#),
    ("a key over it", b"get 12345678901\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a second key over it", b"get a 12345678901\r\n", "refused CLIENT_ERROR bad command line format"),
    ("set of a key over it", b"set 12345678901 0 0 5\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("silently", b"set 12345678901 0 0 5 noreply\r\nget x\r\n", "refused CLIENT_ERROR bad command line format silent"),
    ("cas of a key over it", b"cas 12345678901 0 0 5 1\r\nget x\r\n", "refused CLIENT_ERROR bad command line format"),
    ("delete of a key over it", b"delete 12345678901\r\n", "refused CLIENT_ERROR bad command line format"),
    ("a value of the limit", b"set k 0 0 40\r\n0123456789012345678901234567890123456789\r\n", r#"set "k" 0 0 "0123456789012345678901234567890123456789""#),
    ("a value over it", b"set k 0 0 41\r\n0123456789012345678901234567890123456789x\r\n", "refused SERVER_ERROR object too large for cache outdates \"k\""),
    ("silently over it", b"set k 0 0 41 noreply\r\n0123456789012345678901234567890123456789x\r\n", "refused SERVER_ERROR object too large for cache silent outdates \"k\""),
    ("add over it", b"add k 0 0 41\r\n0123456789012345678901234567890123456789x\r\n", "refused SERVER_ERROR object too large for cache"),
    ("cas over it", b"cas k 0 0 41 1\r\n0123456789012345678901234567890123456789x\r\n", "refused SERVER_ERROR object too large for cache"),
    ("a block over the skip limit", b"set k 0 0 101\r\nget x\r\n", "refused SERVER_ERROR object too large for cache close outdates \"k\""),
    ("a long key and such a block", b"set 12345678901 0 0 101\r\nget x\r\n", "refused CLIENT_ERROR bad command line format close"),
    ("a line over the limit", b"delete aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", "refused CLIENT_ERROR line too long"),
    ("a line of nothing over it", b"                                                        \r\n", "refused CLIENT_ERROR line too long"),
    ("a storage line over it", b"set aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 5\r\nget x\r\n", "refused CLIENT_ERROR line too long close"),
    ("a line of keys of 64 bytes", b"get 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 90\r\n", r#"get "1" "2" "3" "4" "5" "6" "7" "8" "9" "0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "0" "1" "2" "3" "4" "5" "6" "7" "8" "90""#),
    ("a line of keys over it", b"get 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 901\r\n", "refused CLIENT_ERROR line too long"),
];

#[test]
fn requests() {
    check(Limits::DEFAULT, RETRIEVAL);
    check(Limits::DEFAULT, STORAGE);
    check(Limits::DEFAULT, OTHERS);
    check(NARROW_MEMCACHED, NARROW);
}

#[test]
fn times() {
    for (exptime, expect) in [
        (0, 0),
        (-1, 1),
        (i32::MIN, 1),
        (1, 11_000),
        (2_592_000, 2_592_010_000),
        (2_592_001, 2_592_001_000),
        (i32::MAX, 2_147_483_647_000),
    ] {
        assert_eq!(expires_ms(exptime, 9_001), expect, "{exptime}");
    }
}

/// Requests, the bytes of their responses, and the meaning of the responses.
type Answers = (&'static [Expected<'static>], &'static [u8], &'static str);

const GET: &[Expected<'static>] = &[Expected::Get(b"a")];

#[rustfmt::skip]
const ANSWERS: &[Answers] = &[
    (GET, b"VALUE a 0 5\r\nhello\r\nEND\r\n", r#"Hit value 0 5 "hello""#),
    (GET, b"VALUE a 9 0\r\n\r\nEND\r\n", "Hit value 9 0"),
    (GET, b"END\r\nEND\r\n", "Miss; Miss"),
    (GET, b"VALUE a 0 7\r\nEND\r\n\r\n\r\nEND\r\n", r#"Hit value 0 7 "END\r\n\r\n""#),
    (GET, b"VALUE b 0 5\r\nhello\r\nEND\r\n", "error a value of a key that was not requested, or out of order"),
    (GET, b"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\n", "error a value of a key that was not requested, or out of order"),
    (GET, b"VALUE a 0\r\n", "error a value whose line is not a key and numbers"),
    (GET, b"VALUE a 0 1 2\r\n", "error a value whose line is not a key and numbers"),
    (GET, b"VALUE a 0 -1\r\n", "error a value whose line is not a key and numbers"),
    (GET, b"VALUE a 4294967296 1\r\n", "error a value whose line is not a key and numbers"),
    (GET, b"VALUE a 0 1048577\r\n", "error a value of 1048577 bytes, over the limit of 1048576"),
    (GET, b"VALUE a 0 2\r\nabc\r\nEND\r\n", "error a value not followed by CRLF"),
    (GET, b"VALUE a 0 4\r\nabc\r\nEND\r\n", "error a value not followed by CRLF"),
    (GET, b"VALUE a 0 1\r\na\nEND\r\n", "error a value not followed by CRLF"),
    (GET, b"END\n", "error a line that does not end in CRLF"),
    (GET, b"STORED\r\n", "error a line that is not a response to the request"),
    (GET, b"\r\n", "error a line that is not a response to the request"),
    (GET, b"HTTP/1.1 400 Bad Request\r\n", "error a line that is not a response to the request"),
    (GET, b"ERROR\r\n", r#"Error "ERROR""#),
    (GET, b"CLIENT_ERROR bad\r\nEND\r\n", r#"Error "bad"; Miss"#),
    (GET, b"SERVER_ERROR out of memory\r\n", r#"ServerError "out of memory""#),
    (GET, b"VALUE a 0 1\r\nx\r\nSERVER_ERROR out\r\n", r#"ServerError value 0 1 "x" "out""#),
    (GET, b"VALUE a 0 5\r\nhel", r#"more value 0 5 "hel""#),
    (&[Expected::Set], b"STORED\r\nNOT_STORED\r\n", "Stored; NotStored"),
    (&[Expected::Set], b"DELETED\r\n", "error a line that is not a response to the request"),
    (&[Expected::Delete], b"DELETED\r\nNOT_FOUND\r\n", "Deleted; NotFound"),
    (&[Expected::Delete], b"STORED\r\n", "error a line that is not a response to the request"),
];

#[test]
fn answers() {
    let mut wrong = Vec::new();
    for (expected, bytes, expect) in ANSWERS {
        for pieces in crate::cuts(bytes) {
            let found = memcached_answers(Limits::DEFAULT, expected, &pieces).join("; ");
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
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), ANSWERS.len(), wrong.join("\n"));
    let long = b"SERVER_ERROR 1234567890123456789012345678901234567890123456789";
    assert_eq!(memcached_answers(NARROW_MEMCACHED, GET, &[long]), ["error a line of more than 48 bytes"]);
}
