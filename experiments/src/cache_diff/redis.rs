//! RESP2 and RESP3.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use stats::Rng;

use super::{BATCH, Differences, Pair, are_near, pick};

const KEYS: u64 = 10;
/// Times that do not end within a run. Milliseconds and seconds are told apart from counters by their size, see [`are_alike`].
const TIMES: [&str; 9] = [
    "EX 100000",
    "PX 100000000",
    "ex 100000",
    "EXAT 4000000000",
    "PXAT 4000000000123",
    "PXAT 1",
    "EX 0",
    "EX x",
    "PX -1",
];

pub(super) fn compare(addresses: [SocketAddr; 2], operations: usize, rng: &mut Rng) -> Result<Differences, String> {
    let mut differences = Differences::default();
    let mut number = 0;
    for version in [2, 3] {
        let mut pair = Pair::connect(addresses)?;
        let hello = format!("HELLO {version}\r\n");
        pair.ask([hello.as_bytes(), hello.as_bytes()], 1, length)?;
        let until = number + operations / 2;
        let mut batches = 0;
        while number < until {
            let commands: Vec<Vec<u8>> =
                std::iter::repeat_with(|| commands(rng)).flatten().take(BATCH.min(until - number)).collect();
            let bytes = commands.concat();
            let [ours, theirs] = pair.ask([&bytes, &bytes], commands.len(), length)?;
            for ((command, ours), theirs) in commands.iter().zip(&ours).zip(&theirs) {
                if !are_alike(ours, theirs) && differences.add(number, command, [ours, theirs]) {
                    return Ok(differences);
                }
                number += 1;
            }
            batches += 1;
            if batches % 20 == 0 {
                // Out of any transaction, and all keys one after the other: theirs come in another order.
                let leave = [b"RESET\r\n".to_vec(), hello.clone().into_bytes()].concat();
                pair.ask([&leave, &leave], 2, length)?;
                let pattern = pick(rng, &["*", "k?", "k[1-4]", "[^k]*", "*3", "none"]);
                let [ours, theirs] = [scan(&mut pair, 0, pattern)?, scan(&mut pair, 1, pattern)?];
                if ours != theirs {
                    let shown = [&ours, &theirs].map(|keys| format!("{keys:?}").into_bytes());
                    let request = format!("SCAN MATCH {pattern}");
                    if differences.add(number, request.as_bytes(), [&shown[0], &shown[1]]) {
                        return Ok(differences);
                    }
                }
            }
        }
    }
    Ok(differences)
}

/// All keys that `SCAN` of one server goes through.
fn scan(pair: &mut Pair, which: usize, pattern: &str) -> Result<BTreeSet<String>, String> {
    let mut keys = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let request = format!("SCAN {cursor} MATCH {pattern} COUNT 3\r\n");
        // The other one is asked something harmless, so that both answer once.
        let mut requests: [&[u8]; 2] = [b"PING\r\n"; 2];
        requests[which] = request.as_bytes();
        let replies = pair.ask(requests, 1, length)?;
        let text = String::from_utf8_lossy(&replies[which][0]).into_owned();
        let mut strings = text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with(['*', '$']));
        cursor = strings.next().ok_or(format!("error: SCAN is answered {text}"))?.to_owned();
        keys.extend(strings.map(str::to_owned));
        if cursor == "0" {
            return Ok(keys);
        }
    }
}

/// Bytes of the reply at the front.
fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|window| window == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..end - 2]).ok()?.parse::<i64>().ok();
    let elements = match bytes[0] {
        b'$' => {
            return count()
                .map(|count| if count < 0 { end } else { end + count as usize + 2 })
                .filter(|all| *all <= bytes.len());
        }
        b'*' => count()?.max(0),
        b'%' => 2 * count()?,
        _ => 0,
    };
    (0..elements).try_fold(end, |at, _| Some(at + length(bytes.get(at..)?)?))
}

/// Compares two replies; numbers that are times may differ by a moment.
fn are_alike(ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let lines = |bytes: &[u8]| bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (ours, theirs) = (lines(ours), lines(theirs));
    let number = |line: &[u8]| std::str::from_utf8(line.strip_prefix(b":")?).ok()?.trim_end().parse::<i64>().ok();
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(ours, theirs)| {
            let (Some(one), Some(other)) = (number(ours), number(theirs)) else { return ours == theirs };
            let are_in = |range: std::ops::Range<i64>| range.contains(&one) && range.contains(&other);
            one == other
                || (are_in(99_000..100_001)
                    || are_in(1_600_000_000..3_000_000_000)
                    || are_in(9_200_000_000_000_000..9_300_000_000_000_000))
                    && are_near(one, other, 2)
                || (are_in(99_900_000..100_000_001)
                    || are_in(1_600_000_000_000..3_000_000_000_000)
                    || are_in(9_200_000_000_000_000_000..i64::MAX))
                    && are_near(one, other, 250)
        })
}

fn value(rng: &mut Rng) -> String {
    match rng.below(10) {
        0..4 => rng.below(30).to_string(),
        4 => (rng.next_u64() as i64).to_string(),
        5 => pick(rng, &["9223372036854775807", "-9223372036854775808", "007", "+1", "-0", "1.5"]).to_string(),
        6 => "v".repeat(1 + rng.below(400) as usize),
        7 => String::new(),
        _ => "text".to_owned(),
    }
}

/// One command, or some that belong together, each as an array of its words. Quotes make a word that may be empty.
fn commands(rng: &mut Rng) -> Vec<Vec<u8>> {
    let key = format!("k{}", rng.below(KEYS));
    let other = format!("k{}", rng.below(KEYS));
    let data = value(rng);
    let time = pick(rng, &TIMES);
    let option = pick(rng, &["", "", "", "NX", "XX", "GT", "LT", "gt XX", "NX GT", "GT LT", "WHAT"]);
    let from_now = pick(rng, &["", "", "NX", "XX", "NX GT", "GT LT", "WHAT"]);
    let number = pick(rng, &["1", "5", "-3", "0", "9223372036854775807", "-9223372036854775808", "01", "x"]);
    let set_options = pick(rng, &["NX", "XX", "GET", "KEEPTTL", "NX GET", "XX GET", "KEEPTTL GET", "NX XX", "WHAT"]);
    let all: Vec<String> = (0..KEYS).map(|key| format!("k{key}")).collect();
    let line = match rng.below(60) {
        0..5 => format!("GET {key}"),
        5..10 => return vec![words(&["SET", &key, &data])],
        10..13 => {
            return vec![words(
                &[&["SET", key.as_str(), data.as_str()], time.split(' ').collect::<Vec<_>>().as_slice()].concat(),
            )];
        }
        13..16 => {
            return vec![words(
                &[&["SET", key.as_str(), data.as_str()], set_options.split(' ').collect::<Vec<_>>().as_slice()]
                    .concat(),
            )];
        }
        16 => return vec![words(&["SETEX", &key, pick(rng, &["100000", "0", "x", "-1"]), &data])],
        17 => return vec![words(&["PSETEX", &key, pick(rng, &["100000000", "0", "9223372036854775807"]), &data])],
        18 => return vec![words(&["SETNX", &key, &data])],
        19 => return vec![words(&["GETSET", &key, &data])],
        20 => format!("GETDEL {key}"),
        21 | 22 => format!("GETEX {key} {}", pick(rng, &["", "PERSIST", time, time, "PERSIST EX 5", "EX", "NX"])),
        23 | 24 => return vec![words(&["APPEND", &key, &data])],
        25 => format!("STRLEN {key}"),
        26..28 => format!("INCR {key}"),
        28 => format!("DECR {key}"),
        29 => format!("INCRBY {key} {number}"),
        30 => format!("DECRBY {key} {number}"),
        31 => format!("DEL {key} {other} none"),
        32 => format!("UNLINK {key}"),
        33 => format!("MGET {key} {other} none {key}"),
        34 => return vec![words(&["MSET", &key, &data, &other, "x"])],
        35 => format!("EXISTS {key} {key} {other} none"),
        // `GT` and `LT` of times from now: which of two equal ones is later is a matter of milliseconds.
        36 => {
            format!(
                "EXPIRE {key} {} {from_now}",
                pick(rng, &["100000", "99999", "0", "-1", "x", "9223372036854775807"])
            )
        }
        37 => format!("PEXPIRE {key} {} {from_now}", pick(rng, &["100000000", "-5", "9223372036854775807", "01"])),
        38 => format!(
            "EXPIREAT {key} {} {option}",
            pick(rng, &["4000000000", "4000000001", "1", "-1", "9223372036854775807"])
        ),
        39 => format!(
            "PEXPIREAT {key} {} {option}",
            pick(rng, &["4000000000123", "4000000000124", "1", "9223372036854775807"])
        ),
        40 => format!("TTL {key}"),
        41 => format!("PTTL {key}"),
        42 => format!("EXPIRETIME {key}"),
        43 => format!("PEXPIRETIME {key}"),
        44 => format!("PERSIST {key}"),
        45 => format!("TYPE {key}"),
        46 => format!("TOUCH {key} {other} none"),
        // What has ended counts until it is looked at, in both.
        47 => {
            return vec![
                words(&[&["MGET"], all.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat()),
                words(&["DBSIZE"]),
            ];
        }
        48 => "MULTI".to_owned(),
        49 | 50 => "EXEC".to_owned(),
        51 => pick(rng, &["DISCARD", "UNWATCH", "MULTI", "EXEC", "MULTI x", "EXEC x"]).to_string(),
        // A key that is there: what comes and goes unseen is told otherwise, as docs/CACHE.md says.
        52 => return vec![words(&["SET", &key, &data]), words(&["WATCH", &key]), words(&["GET", &key])],
        53 => pick(
            rng,
            &[
                "LPUSH2 a b",
                "nope",
                "GET",
                "GET a b",
                "SET a",
                "INCRBY a",
                "MSET a 1 b",
                "EXPIRE a",
                "SCAN",
                "GETEX",
                "TYPE",
                "TOUCH",
            ],
        )
        .to_string(),
        54 => pick(
            rng,
            &[
                "PING",
                "PING hi",
                "PING a b",
                "ECHO hi",
                "ECHO",
                "SELECT 0",
                "SELECT x",
                "SELECT 99",
                "HELLO 4",
                "HELLO x",
                "HELLO 3 WHAT",
            ],
        )
        .to_string(),
        55 => pick(
            rng,
            &[
                "SCAN x",
                "SCAN 0 COUNT 0",
                "SCAN 0 COUNT x",
                "SCAN 0 MATCH",
                "SCAN 0 WHAT 1",
                "SCAN 0 COUNT 1000 MATCH none",
            ],
        )
        .to_string(),
        56 => pick(
            rng,
            &[
                "CLIENT GETNAME",
                "CLIENT SETNAME me",
                "CLIENT NOPE",
                "CLIENT SETNAME",
                "CLIENT ID x",
                "CONFIG GET save",
                "CONFIG GET appendonly",
                "CONFIG NOPE",
                "CONFIG GET",
                "CLIENT REPLY ON",
                "COMMAND NOPE",
            ],
        )
        .to_string(),
        57 if rng.below(20) == 0 => pick(rng, &["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHALL SYNC"]).to_string(),
        57 => pick(rng, &["FLUSHALL a", "FLUSHALL SYNC b", "RESET", "DBSIZE x"]).to_string(),
        58 => return vec![words(&["CLIENT", "SETNAME", "a b"])],
        _ => {
            return vec![
                words(&["MULTI"]),
                words(&["INCR", &key]),
                words(&["GET", &key]),
                words(&["MGET", &key, &other]),
                words(&["EXEC"]),
            ];
        }
    };
    vec![words(&line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>())]
}

fn words(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_apart_and_compared() {
        for (bytes, expect) in [
            ("+OK\r\n:1\r\n", Some(5)),
            ("$-1\r\n", Some(5)),
            ("$3\r\nabc\r\nx", Some(9)),
            ("$3\r\nab", None),
            ("*2\r\n:1\r\n$1\r\na\r\n", Some(15)),
            ("*2\r\n:1\r\n", None),
            ("%1\r\n:1\r\n_\r\n", Some(11)),
            ("*-1\r\n", Some(5)),
        ] {
            assert_eq!(length(bytes.as_bytes()), expect, "{bytes}");
        }
        let alike = |ours: &str, theirs: &str| are_alike(ours.as_bytes(), theirs.as_bytes());
        assert!(alike(":99999\r\n", ":100000\r\n") && alike("*1\r\n:99999000\r\n", "*1\r\n:99998751\r\n"));
        assert!(!alike(":5\r\n", ":6\r\n") && !alike(":99999\r\n", ":-1\r\n") && !alike("+a\r\n", "+b\r\n"));
    }
}
