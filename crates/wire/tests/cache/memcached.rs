//! memcached, both ends.

use wire::memcached::{Asked, Expiry, Limits, Read, RequestReader};

use crate::bodies::{NARROW_MEMCACHED, memcached_answers, memcached_requests};
use crate::{Case, check_all};

fn check(limits: Limits, cases: &[Case]) {
    check_all(cases, b"get good\r\n", r#"get "good""#, |pieces| memcached_requests(limits, pieces));
}

// memcached 1.6.18 (Debian 12, `memcached -u nobody -p 21211 -l 127.0.0.1 -U 0`) was sent each case of the first four tables with
// `version\r\n` behind it, over a socket of its own. Its answers are of the same kind and it is in step afterwards, but for these:
//
// - a storage command that is refused for its key, flags, exptime, cas or number of words: it skips the line alone, and the block that follows is a
//   command to it (`CLIENT_ERROR bad command line format`, then `END` of the `get x` in the block). Of `ms` it skips the block, as here;
// - "a length with a sign": it takes the plus sign, and waits for 5 bytes;
// - "gat without a key": `END`; "cas with noreply for it": silence;
// - "a length beyond what is skipped", "a length of 64 bits": `CLIENT_ERROR bad command line format`, the line alone is skipped and it stays open.
#[rustfmt::skip]
const RETRIEVAL: &[Case] = &[
    ("get", b"get k\r\n", r#"get "k""#),
    ("get of many", b"get a bb ccc\r\n", r#"get "a" "bb" "ccc""#),
    ("get twice in one piece", b"get a\r\nget b\r\n", r#"get "a"; get "b""#),
    ("LF alone", b"get a\n", r#"get "a""#),
    ("spaces between and behind", b"get  a   b \r\n", r#"get "a" "b""#),
    ("a space before", b" get a\r\n", r#"get "a""#),
    ("a tab is no space", b"get a\tb\r\n", r#"get "a\tb""#),
    ("bytes beyond ASCII", b"get \xff\x80\r\n", r#"get "\xff\x80""#),
    ("CR within", b"get a\rb\r\n", r#"get "a\rb""#),
    ("noreply is a key here", b"get noreply\r\n", r#"get "noreply""#),
    ("gets", b"gets a b\r\n", r#"gets "a" "b""#),
    ("gat", b"gat 10 a\r\n", r#"get AfterS(10) "a""#),
    ("gats", b"gats 0 a b\r\n", r#"gets Never "a" "b""#),
    ("gat in the past", b"gat -1 a\r\n", r#"get Past "a""#),
    ("gat without a number", b"gat x a\r\n", "refused bad-exptime"),
    ("gat over 32 bits", b"gat 2147483648 a\r\n", r#"get Past "a""#),
    ("gat without a key", b"gat 10\r\n", "refused unknown-command"),
    ("gat without anything", b"gat\r\n", "refused unknown-command"),
    ("get without a key", b"get\r\n", "refused unknown-command"),
    ("get with a space", b"get \r\n", "refused unknown-command"),
    ("capital letters", b"GET a\r\n", "refused unknown-command"),
    ("a longer name", b"getx a\r\n", "refused unknown-command"),
    ("an empty line", b"\r\n", "refused unknown-command"),
    ("only LF", b"\n", "refused unknown-command"),
    ("only spaces", b"   \r\n", "refused unknown-command"),
    ("NUL", b"\0\r\n", "refused unknown-command"),
    ("half a line", b"get a", "more"),
    ("without its LF", b"get a\r", "more"),
    ("nothing", b"", ""),
];

#[rustfmt::skip]
const STORAGE: &[Case] = &[
    ("set", b"set k 1 0 5\r\nhello\r\n", r#"set "k" 1 Never "hello""#),
    ("set of nothing", b"set k 0 0 0\r\n\r\n", r#"set "k" 0 Never """#),
    ("CRLF in a value", b"set k 0 0 4\r\n\r\n\r\n\r\n", r#"set "k" 0 Never "\r\n\r\n""#),
    ("a command in a value", b"set k 0 0 7\r\nget a\r\n\r\n", r#"set "k" 0 Never "get a\r\n""#),
    ("NUL in a value", b"set k 0 0 1\r\n\0\r\n", r#"set "k" 0 Never "\x00""#),
    ("add", b"add k 0 60 1\r\na\r\n", r#"add "k" 0 AfterS(60) "a""#),
    ("replace", b"replace k 0 60 1\r\na\r\n", r#"replace "k" 0 AfterS(60) "a""#),
    ("append", b"append k 0 0 1\r\na\r\n", r#"append "k" 0 Never "a""#),
    ("prepend", b"prepend k 0 0 1\r\na\r\n", r#"prepend "k" 0 Never "a""#),
    ("cas", b"cas k 0 0 1 18446744073709551615\r\na\r\n", r#"cas "k" 0 Never cas 18446744073709551615 "a""#),
    ("set noreply", b"set k 0 0 1 noreply\r\na\r\n", r#"set "k" 0 Never noreply "a""#),
    ("cas noreply", b"cas k 0 0 1 2 noreply\r\na\r\n", r#"cas "k" 0 Never cas 2 noreply "a""#),
    ("a key named noreply", b"set noreply 0 0 1\r\na\r\n", r#"set "noreply" 0 Never "a""#),
    ("another last word", b"set k 0 0 1 please\r\na\r\n", r#"set "k" 0 Never "a""#),
    ("30 days", b"set k 0 2592000 1\r\na\r\n", r#"set "k" 0 AfterS(2592000) "a""#),
    ("a date", b"set k 0 2592001 1\r\na\r\n", r#"set "k" 0 AtUnixS(2592001) "a""#),
    ("in the past", b"set k 0 -1 1\r\na\r\n", r#"set "k" 0 Past "a""#),
    ("flags of 32 bits", b"set k 4294967295 0 1\r\na\r\n", r#"set "k" 4294967295 Never "a""#),
    ("LF ends the line", b"set k 0 0 1\na\r\n", r#"set "k" 0 Never "a""#),
    ("a value that has not come", b"set k 0 0 5\r\nhel", "more"),
    ("its CRLF has not come", b"set k 0 0 5\r\nhello\r", "more"),
    // The extent is known: the block is skipped.
    ("flags over 32 bits", b"set k 4294967296 0 5\r\nget x\r\n", r#"set "k" 0 Never "get x""#),
    ("negative flags", b"set k -1 0 5\r\nget x\r\n", "refused bad-line"),
    ("flags that are none", b"set k x 0 5\r\nget x\r\n", "refused bad-line"),
    ("an exptime that is none", b"set k 0 x 5\r\nget x\r\n", "refused bad-line"),
    ("an exptime over 32 bits", b"set k 0 4294967301 5\r\nget x\r\n", r#"set "k" 0 AfterS(5) "get x""#),
    ("cas without its number", b"cas k 0 0 5\r\nget x\r\n", "refused unknown-command"),
    ("cas with a word for it", b"cas k 0 0 5 x\r\nget x\r\n", "refused bad-line"),
    ("cas with noreply for it", b"cas k 0 0 5 noreply\r\nget x\r\n", "refused bad-line"),
    ("too many words", b"set k 0 0 5 6 7\r\nget x\r\n", "refused unknown-command"),
    ("refused silently", b"set k x 0 5 noreply\r\nget x\r\n", "refused bad-line silent"),
    ("a longer value", b"set k 0 0 3\r\nabcde\r\n", "refused bad-chunk; refused unknown-command"),
    ("a shorter value", b"set k 0 0 5\r\nabc\r\nget x\r\n", "refused bad-chunk; refused unknown-command"),
    ("a value of the wrong end", b"set k 0 0 3\r\nabc\n\n", "refused bad-chunk"),
    ("the same silently", b"set k 0 0 3 noreply\r\nabc\n\n", "refused bad-chunk silent"),
    // It is not: the line alone.
    ("no length", b"set k 0 0\r\n", "refused unknown-command"),
    ("no words", b"set\r\n", "refused unknown-command"),
    ("a negative length", b"set k 0 0 -1\r\n", "refused bad-line"),
    ("a length that is none", b"set k 0 0 x\r\n", "refused bad-line"),
    ("a length over 64 bits", b"set k 0 0 18446744073709551616\r\n", "refused bad-line"),
    ("a length with a sign", b"set k 0 0 +5\r\n", "refused bad-line"),
    ("a length beyond what is skipped", b"set k 0 0 2147483649\r\nget x\r\n", "refused too-large close outdates \"k\""),
    ("a length of 64 bits", b"set k 0 0 18446744073709551615\r\nget x\r\n", "refused too-large close outdates \"k\""),
];

#[rustfmt::skip]
const OTHERS: &[Case] = &[
    ("delete", b"delete k\r\n", r#"delete "k""#),
    ("delete noreply", b"delete k noreply\r\n", r#"delete "k" noreply"#),
    ("delete 0", b"delete k 0\r\n", r#"delete "k""#),
    ("delete 0 noreply", b"delete k 0 noreply\r\n", r#"delete "k" noreply"#),
    ("delete with a time", b"delete k 5\r\n", "refused delete-with-time"),
    ("delete with a time, silently", b"delete k 5 noreply\r\n", "refused delete-with-time silent"),
    ("delete nothing", b"delete\r\n", "refused unknown-command"),
    ("delete with four words", b"delete k 0 0 0\r\n", "refused unknown-command"),
    ("incr", b"incr k 18446744073709551615\r\n", r#"incr "k" 18446744073709551615"#),
    ("decr", b"decr k 0 noreply\r\n", r#"decr "k" 0 noreply"#),
    ("incr by a word", b"incr k x\r\n", "refused bad-delta"),
    ("incr by less than nothing", b"incr k -1\r\n", "refused bad-delta"),
    ("incr without a number", b"incr k\r\n", "refused unknown-command"),
    ("touch", b"touch k 10\r\n", r#"touch "k" AfterS(10)"#),
    ("touch noreply", b"touch k -1 noreply\r\n", r#"touch "k" Past noreply"#),
    ("touch without a number", b"touch k x\r\n", "refused bad-exptime"),
    ("touch without a word", b"touch k\r\n", "refused unknown-command"),
    ("flush_all", b"flush_all\r\n", "flush_all 0"),
    ("flush_all noreply", b"flush_all noreply\r\n", "flush_all 0 noreply"),
    ("flush_all later", b"flush_all 10 noreply\r\n", "flush_all 10 noreply"),
    ("flush_all in the past", b"flush_all -1\r\n", "flush_all 0"),
    ("flush_all with a word", b"flush_all x\r\n", "refused bad-exptime"),
    ("version", b"version\r\n", "version"),
    ("verbosity", b"verbosity 1\r\n", "verbosity"),
    ("verbosity noreply", b"verbosity 1 noreply\r\n", "verbosity noreply"),
    ("verbosity without a number", b"verbosity\r\n", "refused unknown-command"),
    ("stats", b"stats\r\n", r#"stats """#),
    ("stats of something", b"stats items\r\n", r#"stats "items""#),
    ("quit", b"quit\r\n", "quit"),
];

#[rustfmt::skip]
const META: &[Case] = &[
    ("mg", b"mg k v\r\n", r#"mg "k" v"#),
    ("mg without flags", b"mg k\r\n", r#"mg "k""#),
    ("mg with all of the issue's", b"mg k v t s q O123 k c f\r\n", r#"mg "k" v t s q O123 k c f"#),
    ("mg with the herd's", b"mg k N30 R-1 T60 h l u\r\n", r#"mg "k" N30 R-1 T60 h l u"#),
    ("mg in base64", b"mg a2V5 b v\r\n", r#"mg "a2V5" b v"#),
    ("mg in base64 that is none", b"mg a2V b v\r\n", "refused bad-key"),
    ("mg without a key", b"mg\r\n", "refused unknown-command"),
    ("an unknown flag", b"mg k v !\r\n", "refused bad-flag"),
    ("an unknown letter", b"mg k v y\r\n", "refused bad-flag"),
    ("a flag twice", b"mg k v v\r\n", "refused duplicate-flag"),
    ("T without a number", b"mg k Tx\r\n", "refused bad-token"),
    ("T without anything", b"mg k T\r\n", "refused bad-token"),
    ("N over 32 bits", b"mg k N4294967296\r\n", r#"mg "k" N4294967296"#),
    ("an opaque of 31 bytes", b"mg k O1234567890123456789012345678901\r\n", r#"mg "k" O1234567890123456789012345678901"#),
    ("an opaque of 32 bytes", b"mg k O12345678901234567890123456789012\r\n", "refused opaque-too-long"),
    ("ms", b"ms k 2\r\nab\r\n", r#"set "k" 0 Never meta "ab""#),
    ("ms with flags", b"ms k 2 T60 F7 C9 q O1 I\r\nab\r\n", r#"set "k" 7 AfterS(60) cas 9 meta T60 F7 C9 q O1 I "ab""#),
    ("ms add", b"ms k 1 ME\r\na\r\n", r#"add "k" 0 Never meta ME "a""#),
    ("ms append", b"ms k 1 MA\r\na\r\n", r#"append "k" 0 Never meta MA "a""#),
    ("ms prepend", b"ms k 1 MP\r\na\r\n", r#"prepend "k" 0 Never meta MP "a""#),
    ("ms replace", b"ms k 1 MR\r\na\r\n", r#"replace "k" 0 Never meta MR "a""#),
    ("ms in the mode set", b"ms k 5 Mset\r\nget x\r\n", "refused mode-length"),
    ("ms in a mode that it does not have", b"ms k 5 MX\r\nget x\r\n", "refused bad-set-mode"),
    ("ms with a bad flag", b"ms k 5 !\r\nget x\r\n", "refused bad-flag"),
    ("ms with a bad time", b"ms k 5 Tx\r\nget x\r\n", "refused bad-token"),
    ("ms with bad client flags", b"ms k 5 F-1\r\nget x\r\n", "refused bad-line"),
    ("ms without a length", b"ms k\r\n", "refused bad-line"),
    ("ms with a word for it", b"ms k x\r\n", "refused bad-line"),
    ("ms of nothing", b"ms k 0\r\n\r\n", r#"set "k" 0 Never meta """#),
    ("ms with a longer value", b"ms k 1\r\nabc\r\n", "refused bad-chunk; refused unknown-command"),
    ("md", b"md k q I T30\r\n", r#"md "k" q I T30"#),
    ("ma", b"ma k\r\n", r#"ma "k" up"#),
    ("ma with flags", b"ma k MD D3 J4 N0\r\n", r#"ma "k" down MD D3 J4 N0"#),
    ("ma with a sign", b"ma k M-\r\n", r#"ma "k" down M-"#),
    ("ma with a bad delta", b"ma k Dx\r\n", "refused bad-flags"),
    ("ma in a mode of ms", b"ma k MS\r\n", "refused bad-count-mode"),
    ("mn", b"mn\r\n", "mn"),
    ("me", b"me k\r\n", r#"me "k""#),
    ("mx", b"mx k\r\n", "refused unknown-command"),
];

/// Keys of 10 bytes, values of 40, whole to 16, lines of 48 and of 64, blocks of 100.
#[rustfmt::skip]
const NARROW: &[Case] = &[
    ("a key of the limit", b"get 1234567890\r\n", r#"get "1234567890""#),
    ("a key over it", b"get 12345678901\r\n", "refused bad-line"),
    ("a second key over it", b"get a 12345678901\r\n", "refused bad-line"),
    ("set of a key over it", b"set 12345678901 0 0 5\r\nget x\r\n", "refused bad-line"),
    ("silently", b"set 12345678901 0 0 5 noreply\r\nget x\r\n", "refused bad-line silent"),
    ("cas of a key over it", b"cas 12345678901 0 0 5 1\r\nget x\r\n", "refused bad-line"),
    ("ms of a key over it", b"ms 12345678901 5\r\nget x\r\n", "refused bad-line"),
    ("delete of a key over it", b"delete 12345678901\r\n", "refused bad-line"),
    ("mg of a key over it", b"mg 12345678901 v\r\n", "refused bad-line"),
    ("a value whole", b"set k 0 0 16\r\n0123456789012345\r\n", r#"set "k" 0 Never "0123456789012345""#),
    ("a value in pieces", b"set k 0 0 17\r\n01234567890123456\r\n", r#"set "k" 0 Never "01234567890123456""#),
    ("in pieces without its end", b"set k 0 0 17\r\n01234567890123456XXget x\r\n", r#"refused bad-chunk; get "x""#),
    ("in pieces, half", b"set k 0 0 17\r\n0123", "more"),
    ("a value of the limit", b"set k 0 0 40\r\n0123456789012345678901234567890123456789\r\n", r#"set "k" 0 Never "0123456789012345678901234567890123456789""#),
    ("a value over it", b"set k 0 0 41\r\n0123456789012345678901234567890123456789x\r\n", "refused too-large outdates \"k\""),
    ("silently over it", b"set k 0 0 41 noreply\r\n0123456789012345678901234567890123456789x\r\n", "refused too-large silent outdates \"k\""),
    ("add over it", b"add k 0 0 41\r\n0123456789012345678901234567890123456789x\r\n", "refused too-large"),
    ("cas over it", b"cas k 0 0 41 1\r\n0123456789012345678901234567890123456789x\r\n", "refused too-large"),
    ("ms over it", b"ms k 41\r\n0123456789012345678901234567890123456789x\r\n", "refused too-large outdates \"k\""),
    ("a block over what is skipped", b"set k 0 0 101\r\nget x\r\n", "refused too-large close outdates \"k\""),
    ("a long key and such a block", b"set 12345678901 0 0 101\r\nget x\r\n", "refused bad-line close"),
    ("a line over the limit", b"delete aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n", "refused line-too-long"),
    ("a line of nothing over it", b"                                                        \r\n", "refused line-too-long"),
    ("a storage line over it", b"set aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 5\r\nget x\r\n", "refused line-too-long close"),
    ("an ms line over it", b"ms aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 5\r\nget x\r\n", "refused line-too-long close"),
    ("a line of keys of 64 bytes", b"get 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 90\r\n", r#"get "1" "2" "3" "4" "5" "6" "7" "8" "9" "0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "0" "1" "2" "3" "4" "5" "6" "7" "8" "90""#),
    ("a line of keys over it", b"get 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 901\r\n", "refused line-too-long"),
];

#[test]
fn requests() {
    check(Limits::DEFAULT, RETRIEVAL);
    check(Limits::DEFAULT, STORAGE);
    check(Limits::DEFAULT, OTHERS);
    check(Limits::DEFAULT, META);
    check(NARROW_MEMCACHED, NARROW);
}

#[test]
fn a_server_without_room_swallows_what_it_was_promised() {
    let mut reader = RequestReader::new(NARROW_MEMCACHED);
    let bytes = b"set k 0 0 20\r\n01234567890123456789\r\nget a\r\n";
    let Read::Begin { used, .. } = reader.read(bytes) else { panic!("it is too large to be lent whole") };
    reader.swallow();
    assert!(matches!(reader.read(&bytes[used..]), Read::Command { used: 29, .. }), "the block, its end, and the get");
}

#[test]
fn times() {
    for (exptime, expect) in [
        (0, None),
        (-1, Some(0)),
        (i32::MIN, Some(0)),
        (1, Some(1_000_001)),
        (2_592_000, Some(3_592_000)),
        (2_592_001, Some(2_592_001)),
        (i32::MAX, Some(2_147_483_647)),
    ] {
        assert_eq!(Expiry::of(exptime).ends_unix_s(1_000_000), expect, "{exptime}");
    }
}

/// What was asked, the bytes, and what they mean.
type Answers = (&'static [Asked<'static>], &'static [u8], &'static str);

const ONE: &[Asked<'static>] = &[Asked::Get { keys: &[b"a"] }];
const MANY: &[Asked<'static>] = &[Asked::Get { keys: &[b"a", b"b", b"a", b"c"] }];
const MG: &[Asked<'static>] = &[Asked::Meta { quiet: false, opaque: b"" }];
const MG_OPAQUE: &[Asked<'static>] = &[Asked::Meta { quiet: false, opaque: b"7" }];
const QUIET: &[Asked<'static>] =
    &[Asked::Meta { quiet: true, opaque: b"1" }, Asked::Meta { quiet: true, opaque: b"2" }, Asked::MetaNoop];

#[rustfmt::skip]
const ANSWERS: &[Answers] = &[
    (ONE, b"VALUE a 0 5\r\nhello\r\nEND\r\n", r#"End hit 0 0 5 None "hello" 1/0 5"#),
    (ONE, b"VALUE a 9 0 77\r\n\r\nEND\r\n", r#"End hit 0 9 0 Some(77) 1/0 0"#),
    (ONE, b"END\r\n", "End miss 0 0/1 0"),
    (ONE, b"END\r\nEND\r\n", "End miss 0 0/1 0; End miss 0 0/1 0"),
    (ONE, b"VALUE a 0 7\r\nEND\r\n\r\n\r\nEND\r\n", r#"End hit 0 0 7 None "END\r\n\r\n" 1/0 7"#),
    (ONE, b"VALUE b 0 5\r\nhello\r\nEND\r\n", "error wrong-key"),
    (ONE, b"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n", "error wrong-key"),
    (ONE, b"VALUE a 0\r\n", "error bad-value-line"),
    (ONE, b"VALUE a 0 1 2 3\r\n", "error bad-value-line"),
    (ONE, b"VALUE a 0 -1\r\n", "error bad-value-line"),
    (ONE, b"VALUE a 4294967296 1\r\n", "error bad-value-line"),
    (ONE, b"VALUE a 0 x\r\n", "error bad-value-line"),
    (ONE, b"VALUE a 0 1048577\r\n", "error too-large"),
    (ONE, b"VALUE a 0 2\r\nabc\r\nEND\r\n", "error bad-value-end"),
    (ONE, b"VALUE a 0 4\r\nabc\r\nEND\r\n", "error bad-value-end"),
    (ONE, b"VALUE a 0 1\r\na\nEND\r\n", "error bad-value-end"),
    (ONE, b"END\n", "error bad-line-end"),
    (ONE, b"STORED\r\n", "error unexpected"),
    (ONE, b"\r\n", "error unexpected"),
    (ONE, b"HTTP/1.1 400 Bad Request\r\n", "error unexpected"),
    (ONE, b"ERROR\r\n", "Error 0/0 0"),
    (ONE, b"CLIENT_ERROR bad\r\nEND\r\n", r#"ClientError "bad" 0/0 0; End miss 0 0/1 0"#),
    (ONE, b"SERVER_ERROR out of memory\r\n", r#"ServerError "out of memory" 0/0 0"#),
    (ONE, b"VALUE a 0 5\r\nhel", r#"more hit 0 0 5 None "hel""#),
    (MANY, b"VALUE a 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nVALUE a 0 1\r\nx\r\nVALUE c 0 1\r\nz\r\nEND\r\n",
        r#"End hit 0 0 1 None "x" hit 1 0 1 None "y" hit 2 0 1 None "x" hit 3 0 1 None "z" 4/0 4"#),
    (MANY, b"VALUE b 0 1\r\ny\r\nEND\r\n", r#"End miss 0 hit 1 0 1 None "y" miss 2 miss 3 1/3 1"#),
    (MANY, b"VALUE c 0 1\r\ny\r\nVALUE a 0 1\r\ny\r\nEND\r\n", "error wrong-key"),
    (MANY, b"VALUE a 0 1\r\nx\r\nSERVER_ERROR out\r\n", r#"ServerError hit 0 0 1 None "x" "out" 1/0 1"#),
    (&[Asked::Store], b"STORED\r\nNOT_STORED\r\nEXISTS\r\nNOT_FOUND\r\n", "Stored 0/0 0; NotStored 0/0 0; Exists 0/0 0; NotFound 0/0 0"),
    (&[Asked::Store], b"DELETED\r\n", "error unexpected"),
    (&[Asked::Delete], b"DELETED\r\nNOT_FOUND\r\n", "Deleted 0/0 0; NotFound 0/0 0"),
    (&[Asked::Delete], b"STORED\r\n", "error unexpected"),
    (&[Asked::Touch], b"TOUCHED\r\nNOT_FOUND\r\n", "Touched 0/0 0; NotFound 0/0 0"),
    (&[Asked::Count], b"18446744073709551615\r\nNOT_FOUND\r\n", "Number(18446744073709551615) 0/0 0; NotFound 0/0 0"),
    (&[Asked::Count], b"x\r\n", "error unexpected"),
    (&[Asked::Ok], b"OK\r\n", "Ok 0/0 0"),
    (&[Asked::Version], b"VERSION 1.6.18\r\n", r#"Version "1.6.18" 0/0 0"#),
    (&[Asked::Stats], b"STAT pid 1\r\nSTAT a b c\r\nEND\r\n", r#"End "pid 1" "a b c" 0/0 0"#),
    (&[Asked::Stats], b"RESET\r\n", "Ok 0/0 0"),
    (MG, b"HD\r\nHD t5 s3\r\n", "Head 1/0 0; Head t5 s3 1/0 0"),
    (MG, b"VA 2 f7 kk\r\nab\r\n", r#"Value hit 0 0 2 None f7 kk "ab" 1/0 2"#),
    (MG, b"VA 0\r\n\r\nEN\r\n", "Value hit 0 0 0 None 1/0 0; Miss miss 0 0/1 0"),
    (MG, b"NF\r\nNS\r\nEX\r\n", "NotFound 0/0 0; NotStored 0/0 0; Exists 0/0 0"),
    (MG, b"VA x\r\n", "error bad-value-line"),
    (MG, b"VA 2\r\nabc\r\n", "error bad-value-end"),
    (MG, b"MN\r\n", "error unexpected"),
    (MG, b"HD O1\r\n", "error wrong-opaque"),
    (MG_OPAQUE, b"HD O7\r\nHD O8\r\n", "Head O7 1/0 0; error wrong-opaque"),
    (QUIET, b"MN\r\n", "Suppressed 0/0 0; Suppressed 0/0 0; Noop 0/0 0"),
    (QUIET, b"HD O2\r\nMN\r\n", "Suppressed 0/0 0; Head O2 1/0 0; Noop 0/0 0"),
    (QUIET, b"VA 1 O1\r\na\r\nMN\r\n", r#"Value hit 0 0 1 None O1 "a" 1/0 1; Suppressed 0/0 0; Noop 0/0 0"#),
    (&[Asked::MetaNoop], b"MN\r\n", "Noop 0/0 0"),
    (&[Asked::MetaDebug], b"ME k exp=-1 la=2\r\nEN\r\n", r#"Debug "k exp=-1 la=2" 0/0 0; Miss 0/0 0"#),
];

#[test]
fn answers() {
    let mut wrong = Vec::new();
    for (asked, bytes, expect) in ANSWERS {
        for pieces in crate::cuts(bytes) {
            let found = memcached_answers(Limits::DEFAULT, asked, &pieces).join("; ");
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
    let long = b"VERSION 1234567890123456789012345678901234567890123456789";
    assert_eq!(memcached_answers(NARROW_MEMCACHED, &[Asked::Version], &[long]), ["error line-too-long"]);
}

#[test]
fn so_many_cases() {
    let requests = [RETRIEVAL, STORAGE, OTHERS, META, NARROW].iter().map(|cases| cases.len()).sum::<usize>();
    assert!(requests >= 120 && ANSWERS.len() >= 50, "{requests} and {}", ANSWERS.len());
}
