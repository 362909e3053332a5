//! memcached's text and meta protocol.

use std::collections::HashMap;
use std::net::SocketAddr;

use stats::Rng;

use super::{BATCH, Differences, Pair, are_near, pick};

/// What ends each answer: that of `mn`, which no value has.
const BARRIER: &[u8] = b"MN\r\n";
const KEYS: u64 = 10;
/// Neither ends within a run, or it has ended.
const TIMES: [&str; 14] = [
    "0",
    "0",
    "0",
    "0",
    "1000",
    "2592000",
    "2592001",
    "2000000000",
    "-1",
    "-2147483648",
    "4294967296",
    "2147483648",
    "4294968296",
    "+1000",
];

/// Cas uniques of ours and theirs, which are other numbers: each corresponds to one.
#[derive(Default)]
struct Uniques {
    of_ours: HashMap<u64, u64>,
    of_theirs: HashMap<u64, u64>,
    /// The last seen of each key.
    last: HashMap<String, [u64; 2]>,
}

impl Uniques {
    fn correspond(&mut self, key: &str, pair: [u64; 2]) -> bool {
        let [ours, theirs] = pair;
        self.last.insert(key.to_owned(), pair);
        *self.of_ours.entry(ours).or_insert(theirs) == theirs && *self.of_theirs.entry(theirs).or_insert(ours) == ours
    }
}

/// A command: for ours, for theirs, and the key whose cas unique its answer may tell.
struct Command {
    bytes: [Vec<u8>; 2],
    key: String,
    /// It counts up or down.
    counts: bool,
}

pub(super) fn compare(addresses: [SocketAddr; 2], operations: usize, rng: &mut Rng) -> Result<Differences, String> {
    let mut pair = Pair::connect(addresses)?;
    let mut uniques = Uniques::default();
    let mut differences = Differences::default();
    let mut done = 0;
    let mut next: Option<Command> = None;
    while done < operations {
        let mut commands = Vec::new();
        while commands.len() < BATCH.min(operations - done) {
            let command = next.take().unwrap_or_else(|| command(rng, &uniques));
            // memcached writes a number over the old one, and pads it, where no answer on its way has that: a batch begins with it.
            if command.counts && !commands.is_empty() {
                next = Some(command);
                break;
            }
            commands.push(command);
        }
        let joined = |which: usize| {
            let bytes = commands.iter().flat_map(|command| [command.bytes[which].as_slice(), b"mn\r\n"]);
            bytes.collect::<Vec<_>>().concat()
        };
        let length = |bytes: &[u8]| {
            let at = bytes.windows(BARRIER.len()).position(|window| window == BARRIER)?;
            Some(at + BARRIER.len())
        };
        let [ours, theirs] = pair.ask([&joined(0), &joined(1)], commands.len(), length)?;
        for ((command, ours), theirs) in commands.iter().zip(&ours).zip(&theirs) {
            if !are_alike(command, ours, theirs, &mut uniques)
                && differences.add(done, &command.bytes[0], [ours, theirs])
            {
                return Ok(differences);
            }
            done += 1;
        }
    }
    Ok(differences)
}

/// Compares two answers word by word.
fn are_alike(command: &Command, ours: &[u8], theirs: &[u8], uniques: &mut Uniques) -> bool {
    let mut one = ours.split_inclusive(|&byte| byte == b'\n');
    let mut other = theirs.split_inclusive(|&byte| byte == b'\n');
    loop {
        let (Some(ours), Some(theirs)) = (one.next(), other.next()) else {
            return one.next().is_none() && other.next().is_none();
        };
        // The answer of `gets` has the unique at its end, that of a meta command behind `c`.
        let is_value = ours.starts_with(b"VALUE ");
        let is_meta = ours.starts_with(b"HD ") || ours.starts_with(b"VA ");
        if ours == theirs && !is_value && !is_meta {
            continue;
        }
        let (mine_all, yours) = (words(ours), words(theirs));
        if mine_all.len() != yours.len() {
            return false;
        }
        for (at, (mine, yours)) in mine_all.iter().zip(&yours).enumerate() {
            let numbers = || Some([number(mine.get(1..)?)?, number(yours.get(1..)?)?]);
            let is_alike = match (mine.first(), yours.first()) {
                _ if is_value && at == 4 => match (number(mine), number(yours)) {
                    (Some(ours), Some(theirs)) => {
                        let key = String::from_utf8_lossy(key_of(&mine_all)).into_owned();
                        uniques.correspond(&key, [ours as u64, theirs as u64])
                    }
                    _ => mine == yours,
                },
                (Some(b'c'), Some(b'c')) if is_meta => match numbers() {
                    // Nothing was stored.
                    Some([0, 0]) => true,
                    Some([ours, theirs]) => uniques.correspond(&command.key, [ours as u64, theirs as u64]),
                    None => mine == yours,
                },
                (Some(b't'), Some(b't')) if is_meta => {
                    numbers().map_or(mine == yours, |[one, other]| are_near(one, other, 2))
                }
                (Some(b'l'), Some(b'l')) if is_meta => numbers().is_some(),
                _ => mine == yours,
            };
            if !is_alike {
                return false;
            }
        }
    }
}

/// The key in a `VALUE` line.
fn key_of<'a>(words: &[&'a [u8]]) -> &'a [u8] {
    words.get(1).copied().unwrap_or(b"?")
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(|&byte| byte == b' ').collect()
}

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.trim_end().parse().ok()
}

/// No number of 2^63 and more, nor what becomes one: of those 1.6.18 looks for a minus sign behind the value, too, in what lay there before.
fn value(rng: &mut Rng) -> String {
    match rng.below(12) {
        0..4 => rng.below(30).to_string(),
        4 => rng.below(1_000_000_000_000).to_string(),
        5 => "999999999999".to_owned(),
        6 => String::new(),
        7 => pick(rng, &["+7", " 12 x", "007", "1x", "9 ", "99"]).to_string(),
        8 => "v".repeat(rng.below(400) as usize),
        _ => "text".to_owned(),
    }
}

/// What is put behind or before another value.
fn piece(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => "v".repeat(rng.below(100) as usize),
        _ => pick(rng, &["text", "x", "x ", ""]).to_owned(),
    }
}

fn command(rng: &mut Rng, uniques: &Uniques) -> Command {
    let key = format!("k{}", rng.below(KEYS));
    let known = uniques.last.get(&key).copied();
    let mut bytes = [Vec::new(), Vec::new()];
    let mut push = |text: &str| bytes.iter_mut().for_each(|bytes| bytes.extend_from_slice(text.as_bytes()));
    let noreply = if rng.below(10) == 0 { " noreply" } else { "" };
    let time = pick(rng, &TIMES);
    let (data, piece) = (value(rng), piece(rng));
    let delta = pick(rng, &["1", "1", "5", "0", "+3"]);
    match rng.below(40) {
        0..5 => push(&format!("get {key}\r\n")),
        5 => push(&format!("gets {key} k1 none\r\n")),
        6 => push(&format!("get {key} k2 none k3\r\n")),
        7 => push(&format!("gat {time} {key} k1\r\n")),
        8 => push(&format!("gats {time} {key}\r\n")),
        9..13 => push(&format!("set {key} {} {time} {}{noreply}\r\n{data}\r\n", rng.below(3), data.len())),
        13 => push(&format!("add {key} 4294967297 {time} {}{noreply}\r\n{data}\r\n", data.len())),
        14 => push(&format!("replace {key} 1 {time} {}\r\n{data}\r\n", data.len())),
        15 => push(&format!("append {key} 9 {time} {}{noreply}\r\n{piece}\r\n", piece.len())),
        16 => push(&format!("prepend {key} 9 {time} {}\r\n{piece}\r\n", piece.len())),
        17 | 18 => {
            // Of the last that was told, or of none.
            let unique = known.filter(|_| rng.below(4) > 0).unwrap_or([u64::MAX; 2]);
            for (bytes, unique) in bytes.iter_mut().zip(unique) {
                bytes.extend_from_slice(format!("cas {key} 2 0 {} {unique}\r\n{data}\r\n", data.len()).as_bytes());
            }
        }
        19 => push(&format!("delete {key}{noreply}\r\n")),
        20..23 => push(&format!("incr {key} {delta}{noreply}\r\n")),
        23..26 => push(&format!("decr {key} {delta}{noreply}\r\n")),
        26 => push(&format!("touch {key} {time}{noreply}\r\n")),
        27 => push(match rng.below(60) {
            0 => "flush_all\r\n",
            1 => "flush_all noreply\r\n",
            2..12 => "verbosity 1\r\n",
            12..22 => "nonsense\r\n",
            22..32 => "\r\n",
            32..42 => "get\r\n",
            42..52 => "touch k1 x\r\n",
            _ => "incr k1 x\r\n",
        }),
        28 => push(pick(
            rng,
            &[
                "mg\r\n",
                "mg k1 X\r\n",
                "mg k1 v v\r\n",
                "mg k1 Tx\r\n",
                "ma k1 Dx\r\n",
                "ma k1 MX\r\n",
                "md k1 y\r\n",
                "mg k1 D\r\n",
                "mg k1 J\r\n",
                "mg k1 F\r\n",
                "mg k1 C\r\n",
                "mg k1 M\r\n",
                "mg a b\r\n",
                "ma k1 q q\r\n",
                "mg k1 E1\r\n",
                "me none\r\n",
                "mg none O12345678901234567890123456789012\r\n",
                "delete k1 5\r\n",
                "delete k1 0\r\n",
                "incr k1\r\n",
                "gat x k1\r\n",
                "flush_all x\r\n",
                "touch k1\r\n",
                "verbosity\r\n",
                "incr k1 -1\r\n",
            ],
        )),
        29..33 => push(&format!(
            "mg {key}{}\r\n",
            flags(rng, &["v", "h", "t", "s", "f", "c", "k", "q", "O7", "u", "l", "T", "N", "R", "T"])
        )),
        33 | 34 => {
            let flags = flags(rng, &["c", "k", "q", "O9", "T", "F5", "ME", "MR", "MS", "MA", "MP", "I", "F4294967298"]);
            let data = if flags.contains(" MA") || flags.contains(" MP") { &piece } else { &data };
            push(&format!("ms {key} {}{flags}\r\n{data}\r\n", data.len()));
        }
        35 => {
            // Of one that was told, perhaps long ago, which `I` allows.
            let unique = known.unwrap_or([u64::MAX; 2]);
            let flags = flags(rng, &["I", "c", "k", "T"]);
            for (bytes, unique) in bytes.iter_mut().zip(unique) {
                bytes.extend_from_slice(format!("ms {key} {} C{unique}{flags}\r\n{data}\r\n", data.len()).as_bytes());
            }
        }
        36 => push(&format!("md {key}{}\r\n", flags(rng, &["q", "I", "I", "T", "k", "O3"]))),
        37 => {
            let unique = known.unwrap_or([u64::MAX; 2]);
            for (bytes, unique) in bytes.iter_mut().zip(unique) {
                bytes.extend_from_slice(format!("md {key} C{unique} k\r\n").as_bytes());
            }
        }
        38 => {
            push(&format!("ma {key}{}\r\n", flags(rng, &["v", "t", "c", "k", "q", "O2", "N", "J7", "D3", "MD", "MI"])))
        }
        // A key that is never sent as it is: memcached remembers how an item's key was sent, and this cache does not.
        _ => push(pick(
            rng,
            &["mg AQID b k v\r\n", "ms AQID 2 b k\r\n12\r\n", "ma AQID b v k\r\n", "md AQID b k\r\n", "mg AQI b v\r\n"],
        )),
    }
    let counts = ["incr", "decr", "ma"].iter().any(|name| bytes[0].starts_with(name.as_bytes()));
    Command { bytes, key, counts }
}

/// Some of the flags, each once, in any order; `T`, `N` and `R` with a time.
fn flags(rng: &mut Rng, of: &[&str]) -> String {
    let mut left: Vec<&str> = of.to_vec();
    let mut text = String::new();
    let mut seen = Vec::new();
    for _ in 0..rng.below(6) {
        let flag = left.swap_remove(rng.below(left.len() as u64) as usize);
        if seen.contains(&flag.as_bytes()[0]) {
            continue;
        }
        seen.push(flag.as_bytes()[0]);
        // `N` of an append would be stored here, and is not there.
        let number = match flag {
            // What ends at once has `t` of 2^32 s less a few there.
            "T" => pick(rng, &["0", "1000", "2592000", "2000000000", "4294968296"]),
            "N" => pick(rng, &["1000", "0", "2000000000"]),
            "R" => pick(rng, &["900", "1500", "0", "-1"]),
            _ => "",
        };
        text += &format!(" {flag}{number}");
        if left.is_empty() {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared() {
        let command = Command { bytes: [Vec::new(), Vec::new()], key: "k1".to_owned(), counts: false };
        let mut uniques = Uniques::default();
        let mut alike =
            |ours: &str, theirs: &str| are_alike(&command, ours.as_bytes(), theirs.as_bytes(), &mut uniques);
        assert!(alike("STORED\r\nMN\r\n", "STORED\r\nMN\r\n"));
        assert!(!alike("STORED\r\nMN\r\n", "NOT_STORED\r\nMN\r\n"));
        assert!(!alike("STORED\r\nMN\r\n", "MN\r\n"));
        assert!(alike("VALUE k1 0 1 5\r\nx\r\nEND\r\n", "VALUE k1 0 1 9\r\nx\r\nEND\r\n"));
        assert!(!alike("VALUE k1 0 1 5\r\nx\r\nEND\r\n", "VALUE k1 0 1 8\r\nx\r\nEND\r\n"), "5 is 9");
        assert!(alike("HD c5 t99 l3\r\n", "HD c9 t98 l0\r\n"));
        assert!(!alike("HD c5 t99\r\n", "HD c9 t9\r\n"));
        assert!(!alike("HD c6\r\n", "HD c9\r\n"));
        assert!(!alike("HD h0\r\n", "HD h1\r\n"));
        assert!(!alike("VA 1 t5\r\nx\r\n", "VA 1 t5\r\ny\r\n"));
    }
}
