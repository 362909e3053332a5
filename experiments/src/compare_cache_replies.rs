//! `experiments cache-diff`: sends the same random commands to `quintain serve cache`, memcached and Redis.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use stats::Rng;

use crate::server_process::{Server, quintain};

const BATCH: usize = 64;
const KEYS: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of differences after which a run ends.
const SHOWN: usize = 10;

/// Send the same random commands to `quintain serve cache`, memcached and redis-server, and compare every reply
///
/// Exits with 1 on a difference. Skips a missing rival with a note. Ignores cas uniques, and remaining times that
/// differ by at most 2 s (docs/reference/cache-server.md).
#[derive(Args)]
pub(crate) struct CacheDiffArgs {
    /// Commands per protocol
    #[arg(long, value_name = "N", default_value_t = 80_000)]
    operations: usize,
    /// Seed of the commands [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Program under test [default: the build next to this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Compare only with this rival
    #[arg(long, value_parser = RIVALS.map(|rival| rival.name))]
    rival: Option<String>,
}

struct Rival {
    name: &'static str,
    program: &'static str,
    start: &'static str,
    /// The first command of a connection, with one reply. A random one could look like another protocol.
    first: &'static [u8],
    /// Composes a random command that causes one reply.
    command: fn(&mut Rng) -> Vec<u8>,
    /// Length of the first reply in these bytes; `None` if incomplete.
    reply_bytes: fn(&[u8]) -> Option<usize>,
}

const RIVALS: [Rival; 2] = [
    Rival {
        name: "memcached",
        program: "memcached",
        // memcached's maintainer thread would hold items for a moment, which affects whether `decr` pads the number.
        start: "memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -o no_lru_maintainer,no_lru_crawler -p {port}",
        first: b"mn\r\n",
        command: memcached_command,
        reply_bytes: |bytes| Some(bytes.windows(BARRIER.len()).position(|window| window == BARRIER)? + BARRIER.len()),
    },
    Rival {
        name: "redis",
        program: "redis-server",
        start: "redis-server --bind 127.0.0.1 --save '' --appendonly no --port {port}",
        first: b"*1\r\n$4\r\nPING\r\n",
        command: redis_command,
        reply_bytes: redis_reply_bytes,
    },
];

/// The reply to `mn`: it ends each reply of memcached, and no value contains it.
const BARRIER: &[u8] = b"MN\r\n";

struct Client {
    whose: &'static str,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    fn connect(whose: &'static str, address: SocketAddr) -> Result<Client, String> {
        let stream = TcpStream::connect(address).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        Ok(Client { whose, stream: stream.map_err(|error| format!("error: {address}: {error}"))?, buffer: Vec::new() })
    }

    fn ask(&mut self, batch: &[u8], count: usize, length: fn(&[u8]) -> Option<usize>) -> Result<Vec<Vec<u8>>, String> {
        let Client { whose, stream, buffer } = self;
        stream.write_all(batch).map_err(|error| format!("error: {whose}: {error}"))?;
        let mut replies = Vec::new();
        while replies.len() < count {
            if let Some(bytes) = length(buffer) {
                replies.push(buffer.drain(..bytes).collect());
                continue;
            }
            let mut piece = [0; 65_536];
            match stream.read(&mut piece) {
                Ok(0) => return Err(format!("error: {whose} closed the connection behind {}", show(buffer))),
                Ok(bytes) => buffer.extend_from_slice(&piece[..bytes]),
                Err(error) => return Err(format!("error: {whose}: {error}; it sent {}", show(buffer))),
            }
        }
        Ok(replies)
    }
}

fn compare(rival: &Rival, addresses: [SocketAddr; 2], operations: usize, rng: &mut Rng) -> Result<usize, String> {
    let [ours, theirs] = addresses;
    let mut clients = [Client::connect("quintain", ours)?, Client::connect(rival.name, theirs)?];
    for client in &mut clients {
        client.ask(rival.first, 1, rival.reply_bytes)?;
    }
    let (mut done, mut differences) = (0, 0);
    while done < operations && differences < SHOWN {
        let commands: Vec<_> =
            std::iter::repeat_with(|| (rival.command)(rng)).take(BATCH.min(operations - done)).collect();
        let batch = commands.concat();
        let mut replies = Vec::new();
        for client in &mut clients {
            replies.push(client.ask(&batch, commands.len(), rival.reply_bytes)?);
        }
        for (at, command) in commands.iter().enumerate() {
            let [ours, theirs] = [&replies[0][at], &replies[1][at]];
            if !are_alike(ours, theirs) {
                differences += 1;
                println!("difference at command {}: {}", done + at, show(command));
                println!("  quintain: {}\n  {}: {}", show(ours), rival.name, show(theirs));
            }
        }
        done += commands.len();
    }
    Ok(differences)
}

/// Whether two replies agree. Remaining times may differ by 2 s (250 ms if given in ms), since one reply comes later.
fn are_alike(ours: &[u8], theirs: &[u8]) -> bool {
    let time = |reply: &[u8]| std::str::from_utf8(reply.strip_prefix(b":")?).ok()?.trim_end().parse::<i64>().ok();
    ours == theirs
        || time(ours).zip(time(theirs)).is_some_and(|(ours, theirs)| match ours.max(theirs) {
            99_000..=100_000 | 1_600_000_000..3_000_000_000 => ours.abs_diff(theirs) <= 2,
            99_000_000..=100_000_000 | 1_600_000_000_000..3_000_000_000_000 => ours.abs_diff(theirs) <= 250,
            _ => false,
        })
}

fn show(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(500)].escape_ascii().to_string()
}

fn pick(rng: &mut Rng, list: &'static str) -> &'static str {
    list.split('|').nth(rng.below(list.split('|').count() as u64) as usize).unwrap_or_default()
}

/// Returns a number below 2^63 (memcached 1.6.18 looks for a minus sign past larger ones), other text or many bytes.
fn value(rng: &mut Rng) -> String {
    match rng.below(10) {
        0..4 => rng.below(30).to_string(),
        4 => "999999999999".to_owned(),
        5 => String::new(),
        6 => pick(rng, "+7|007|1x|99").to_string(),
        7 => "v".repeat(rng.below(400) as usize),
        _ => "text".to_owned(),
    }
}

fn memcached_command(rng: &mut Rng) -> Vec<u8> {
    let key = format!("k{}", rng.below(KEYS));
    let noreply = if rng.below(10) == 0 { " noreply" } else { "" };
    // No item expires during a run, but some are already expired when they are stored.
    let exptime = pick(rng, "0|0|0|1000|2592001|2000000000|-1|4294967296|+1000");
    let data = value(rng);
    let bytes = data.len();
    let delta = pick(rng, "1|1|5|0|+3");
    let text = match rng.below(30) {
        0..6 => format!("get {key}\r\n"),
        6 => format!("get {key} k2 none k3\r\n"),
        7 => format!("gat {exptime} {key} k1\r\n"),
        8..13 => format!("set {key} {} {exptime} {bytes}{noreply}\r\n{data}\r\n", rng.below(3)),
        13 => format!("add {key} 4294967297 {exptime} {bytes}{noreply}\r\n{data}\r\n"),
        14 => format!("replace {key} 1 {exptime} {bytes}\r\n{data}\r\n"),
        15 => format!("append {key} 9 {exptime} 2{noreply}\r\nxy\r\n"),
        16 => format!("prepend {key} 9 {exptime} 2\r\nxy\r\n"),
        17 => format!("cas {key} 2 0 {bytes} 18446744073709551615\r\n{data}\r\n"),
        18 => format!("delete {key}{noreply}\r\n"),
        19..22 => format!("incr {key} {delta}{noreply}\r\n"),
        // Each `decr` follows a `set`, because a reply in progress affects whether memcached pads the number.
        22..25 => format!("set {key} 0 0 2\r\n10\r\ndecr {key} {delta}{noreply}\r\n"),
        25 => format!("touch {key} {exptime}{noreply}\r\n"),
        26 if rng.below(20) == 0 => "flush_all\r\n".to_owned(),
        _ => {
            let lines = "verbosity 1|nonsense||get|touch k1 x|incr k1 x|delete k1 5|delete k1 0|incr k1|gat x k1|flush_all x|\
                         touch k1|verbosity|incr k1 -1";
            format!("{}\r\n", pick(rng, lines))
        }
    };
    [text.as_bytes(), b"mn\r\n"].concat()
}

fn redis_command(rng: &mut Rng) -> Vec<u8> {
    let (key, other) = (format!("k{}", rng.below(KEYS)), format!("k{}", rng.below(KEYS)));
    let data = value(rng);
    let number = pick(rng, "1|5|-3|0|9223372036854775807|-9223372036854775808|01|x");
    let seconds = pick(rng, "100000|99999|0|-1|x|9223372036854775807");
    let milliseconds = pick(rng, "100000000|-5|0|9223372036854775807|01");
    let options = "EX 100000|PX 100000000|EXAT 4000000000|PXAT 4000000000123|EX 0|EX x|PX -1|NX|XX|GET|KEEPTTL|NX GET|\
                   KEEPTTL GET|NX XX|WHAT";
    let options = pick(rng, options);
    let line = match rng.below(50) {
        0..6 => format!("GET {key}"),
        6..11 => return words(&["SET", &key, &data]),
        11..17 => return words(&[&["SET", &*key, &*data], options.split(' ').collect::<Vec<_>>().as_slice()].concat()),
        17 => return words(&["SETEX", &key, seconds, &data]),
        18 => return words(&["PSETEX", &key, milliseconds, &data]),
        19 => return words(&["SETNX", &key, &data]),
        20..22 => format!("INCR {key}"),
        22 => format!("DECR {key}"),
        23 => format!("INCRBY {key} {number}"),
        24 => format!("DECRBY {key} {number}"),
        25 => format!("DEL {key} {other} none"),
        26 => format!("UNLINK {key}"),
        27 => format!("MGET {key} {other} none {key}"),
        28 => return words(&["MSET", &key, &data, &other, "x"]),
        29 => format!("EXISTS {key} {key} {other} none"),
        30..32 => format!("EXPIRE {key} {seconds}"),
        32 => format!("PEXPIRE {key} {milliseconds}"),
        33..36 => format!("TTL {key}"),
        36 => format!("PTTL {key}"),
        37 => format!("PERSIST {key}"),
        39 if rng.below(20) == 0 => pick(rng, "FLUSHALL|FLUSHDB|FLUSHALL ASYNC|FLUSHALL SYNC").to_owned(),
        _ => {
            let lines = "nope a b|GET|GET a b|SET a|INCRBY a|MSET a 1 b|EXPIRE a|PING|PING hi|PING a b|ECHO|ECHO hi|HELLO 4|\
                         SELECT 0|SELECT 99|CLIENT SETNAME me|CLIENT NOPE|CONFIG GET save|CONFIG GET appendonly|CONFIG NOPE|\
                         FLUSHALL a|DBSIZE x";
            pick(rng, lines).to_owned()
        }
    };
    words(&line.split(' ').collect::<Vec<_>>())
}

fn words(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

fn redis_reply_bytes(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|window| window == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..end - 2]).ok()?.parse::<i64>().ok();
    let elements = match bytes[0] {
        b'$' => {
            return count()
                .map(|count| if count < 0 { end } else { end + count as usize + 2 })
                .filter(|all| *all <= bytes.len());
        }
        b'*' => count()?.max(0),
        _ => 0,
    };
    (0..elements).try_fold(end, |at, _| Some(at + redis_reply_bytes(bytes.get(at..)?)?))
}

pub(crate) fn run(args: &CacheDiffArgs) -> Result<(), String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = args.seed.unwrap_or(now.subsec_nanos().into());
    let server = quintain(args.server.as_deref())?;
    let mut differ = Vec::new();
    for rival in RIVALS.iter().filter(|rival| args.rival.as_deref().is_none_or(|only| only == rival.name)) {
        if !is_installed(rival.program) {
            println!("{} skipped: {} is not installed", rival.name, rival.program);
            continue;
        }
        let start = Instant::now();
        let ours = Server::start(&format!("'{}' serve cache --threads 1 --maxmem 4MiB -p {{port}}", server.display()))?;
        let theirs = Server::start(rival.start)?;
        let addresses = [ours.address(), theirs.address()];
        let differences = compare(rival, addresses, args.operations, &mut Rng::new(seed))?;
        let (name, commands, seconds) = (rival.name, args.operations, start.elapsed().as_secs_f64());
        println!("{name}: {commands} commands, seed {seed}, {differences} differences, {seconds:.1} s");
        if differences > 0 {
            differ.push(rival.name);
        }
    }
    if differ.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "error: replies differ from those of {}\n\nhint: `experiments cache-diff --seed {seed} --rival {}` shows them again",
            differ.join(" and "),
            differ[0]
        ))
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_split_and_compared() {
        for (bytes, expect) in [
            ("+OK\r\n:1\r\n", Some(5)),
            ("$-1\r\n", Some(5)),
            ("$3\r\nabc\r\nx", Some(9)),
            ("$3\r\nab", None),
            ("*2\r\n:1\r\n$1\r\na\r\n", Some(15)),
            ("*2\r\n:1\r\n", None),
        ] {
            assert_eq!(redis_reply_bytes(bytes.as_bytes()), expect, "{bytes}");
        }
        let alike = |ours: &str, theirs: &str| are_alike(ours.as_bytes(), theirs.as_bytes());
        assert!(alike(":99999\r\n", ":100000\r\n") && alike(":99999000\r\n", ":99998751\r\n"));
        assert!(!alike(":5\r\n", ":6\r\n") && !alike(":99999\r\n", ":-1\r\n") && !alike("+a\r\n", "+b\r\n"));
    }
}
