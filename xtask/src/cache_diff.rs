//! `cargo xtask cache-diff`: the same random commands to `quintain serve cache` and to the servers whose protocols it speaks.

mod memcached;
mod redis;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stats::Rng;

use crate::built;
use crate::conformance::process::{Process, free_port, until};

/// Commands sent at once.
const BATCH: usize = 64;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Differences of one run that are shown; it ends with the last.
const SHOWN: usize = 10;

const HELP: &str = "\
Send the same random commands on a few keys to `quintain serve cache` and to memcached and redis-server, and compare every reply byte
by byte. Exits 1 on a difference. A rival that is not installed is skipped and named. The server is the release build: `cargo build --release`.

What is not compared, as docs/CACHE.md says: numbers of cas uniques (which must correspond), the flag `l`, remaining times within 2 s.

Usage: cargo xtask cache-diff [FLAG VALUE]...

  --operations N  commands per protocol [default: 80000]
  --seed N        seed of the commands [default: another each time, printed]
  --server PATH   another binary of quintain
  --rival NAME    memcached or redis [default: both]";

/// A server beside ours.
pub(crate) struct Pair {
    ours: TcpStream,
    theirs: TcpStream,
    buffers: [Vec<u8>; 2],
}

impl Pair {
    fn connect(addresses: [SocketAddr; 2]) -> Result<Pair, String> {
        let connect = |address| -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let [ours, theirs] =
            addresses.map(|address| connect(address).map_err(|error| format!("error: {address}: {error}")));
        Ok(Pair { ours: ours?, theirs: theirs?, buffers: Default::default() })
    }

    /// Sends to ours and theirs, and reads as many replies of each as `count` says; `length` is that of the reply at the front.
    fn ask(
        &mut self,
        requests: [&[u8]; 2],
        count: usize,
        length: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<[Vec<Vec<u8>>; 2], String> {
        let mut streams = [&mut self.ours, &mut self.theirs];
        for (stream, request) in streams.iter_mut().zip(requests) {
            stream.write_all(request).map_err(|error| format!("error: sending: {error}"))?;
        }
        let mut replies = [Vec::new(), Vec::new()];
        for (index, whose) in ["quintain", "the rival"].into_iter().enumerate() {
            let buffer = &mut self.buffers[index];
            while replies[index].len() < count {
                if let Some(bytes) = length(buffer) {
                    replies[index].push(buffer.drain(..bytes).collect());
                    continue;
                }
                let mut piece = [0; 65_536];
                match streams[index].read(&mut piece) {
                    Ok(0) => return Err(format!("error: {whose} closed the connection behind {}", show(buffer))),
                    Ok(bytes) => buffer.extend_from_slice(&piece[..bytes]),
                    Err(error) => return Err(format!("error: {whose}: {error}; it sent {}", show(buffer))),
                }
            }
        }
        Ok(replies)
    }
}

/// What differed.
#[derive(Default)]
struct Differences {
    count: usize,
}

impl Differences {
    /// Shows one; whether that was enough.
    fn add(&mut self, number: usize, request: &[u8], replies: [&[u8]; 2]) -> bool {
        self.count += 1;
        println!("difference at command {number}: {}", show(request));
        println!("  quintain: {}", show(replies[0]));
        println!("  rival:    {}", show(replies[1]));
        self.count >= SHOWN
    }
}

fn show(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(500)].escape_ascii().to_string()
}

/// Draws from a list.
fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Whether two numbers of seconds, or of milliseconds, are the same time as seen a moment later.
fn are_near(one: i64, other: i64, tolerance: i64) -> bool {
    (one - other).abs() <= tolerance
}

/// What the command line asks for.
struct Request {
    operations: usize,
    seed: u64,
    server: Option<PathBuf>,
    rivals: Vec<&'static str>,
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut request = Request {
        operations: 80_000,
        seed: now.subsec_nanos().into(),
        server: None,
        rivals: vec!["memcached", "redis"],
    };
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or(format!("error: `{flag}` needs a value\n\n{HELP}"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("error: `{flag} {value}`: {error}"));
        match flag.as_str() {
            "--operations" => request.operations = number()? as usize,
            "--seed" => request.seed = number()?,
            "--server" => request.server = Some(value.into()),
            "--rival" => match request.rivals.iter().find(|name| *name == value) {
                Some(name) => request.rivals = vec![*name],
                None => return Err(format!("error: `--rival {value}`: expected memcached or redis")),
            },
            _ => return Err(format!("error: unknown flag `{flag}`\n\n{HELP}")),
        }
    }
    Ok(request)
}

/// Compares; the error says what differed.
pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let request = parse(arguments)?;
    let server = match &request.server {
        Some(path) => path.clone(),
        None => built::quintain()?,
    };
    let mut differ = Vec::new();
    for &rival in &request.rivals {
        let program = if rival == "redis" { "redis-server" } else { rival };
        if !is_installed(program) {
            println!("{rival} skipped: {program} is not installed");
            continue;
        }
        let start = Instant::now();
        // One thread and one shard: cas uniques of all keys then come in one order, as they do there.
        let ours = format!("'{}' serve cache --threads 1 --maxmem 4MiB --access-times on -p", server.display());
        let (_ours, our_address) = started(&format!("{ours} {{port}}"))?;
        let theirs = match rival {
            "redis" => "redis-server --bind 127.0.0.1 --save '' --appendonly no --port {port}",
            // Its maintainer would hold items for a moment, which decides whether `decr` pads and what flags remain.
            _ => "memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -o no_lru_maintainer,no_lru_crawler -p {port}",
        };
        let (_theirs, their_address) = started(theirs)?;
        let addresses = [our_address, their_address];
        let mut rng = Rng::new(request.seed);
        let differences = match rival {
            "redis" => redis::compare(addresses, request.operations, &mut rng)?,
            _ => memcached::compare(addresses, request.operations, &mut rng)?,
        };
        println!(
            "{rival}: {} commands, seed {}, {} differences, {:.1} s",
            request.operations,
            request.seed,
            differences.count,
            start.elapsed().as_secs_f64()
        );
        if differences.count > 0 {
            differ.push(rival);
        }
    }
    if differ.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "error: replies differ from those of {}\n\nhint: `cargo xtask cache-diff --seed {} --rival {}` shows them again",
            differ.join(" and "),
            request.seed,
            differ[0]
        ))
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A server on a free port, once it listens.
fn started(command: &str) -> Result<(Process, SocketAddr), String> {
    let port = free_port()?;
    let command = command.replace("{port}", &port.to_string());
    let process = Process::start(&command, Path::new("."))?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    if until(Duration::from_secs(20), || TcpStream::connect(address).ok()).is_none() {
        return Err(format!("error: `{command}` does not listen: {}", process.last_words()));
    }
    Ok((process, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let request = parse(&words(&["--operations", "5", "--seed", "7", "--rival", "redis"])).unwrap();
        assert_eq!((request.operations, request.seed, request.rivals), (5, 7, vec!["redis"]));
        for wrong in [&["--seed"][..], &["--seed", "x"], &["--rival", "nginx"], &["x", "y"]] {
            assert!(parse(&words(wrong)).is_err(), "{wrong:?}");
        }
    }
}
