//! `experiments cache-diff`: the same random commands to `quintain serve cache` and to the servers whose protocols it speaks.

mod memcached;
mod redis;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use stats::Rng;

use crate::server::{Server, quintain};

/// Commands sent at once.
const BATCH: usize = 64;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Differences of one run that are shown; it ends with the last.
const SHOWN: usize = 10;

/// Send the same random commands to `quintain serve cache`, memcached and redis-server, and compare every reply
///
/// Exits with 1 on a difference. A rival that is not installed is skipped and named. Not compared, as docs/CACHE.md says:
/// numbers of cas uniques (which must correspond), the flag `l`, remaining times within 2 s.
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
    /// Only this rival
    #[arg(long, value_parser = RIVALS)]
    rival: Option<String>,
}

const RIVALS: [&str; 2] = ["memcached", "redis"];

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

/// Compares; the error names the rivals whose replies differ.
pub(crate) fn run(args: &CacheDiffArgs) -> Result<(), String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = args.seed.unwrap_or(now.subsec_nanos().into());
    let server = quintain(args.server.as_deref())?;
    let mut differ = Vec::new();
    for rival in RIVALS.into_iter().filter(|rival| args.rival.as_deref().is_none_or(|only| only == *rival)) {
        let program = if rival == "redis" { "redis-server" } else { rival };
        if !is_installed(program) {
            println!("{rival} skipped: {program} is not installed");
            continue;
        }
        let start = Instant::now();
        // One thread and one shard: cas uniques of all keys then come in one order, as they do there.
        let ours = format!("'{}' serve cache --threads 1 --maxmem 4MiB --access-times on -p", server.display());
        let ours = Server::start(&format!("{ours} {{port}}"))?;
        let theirs = match rival {
            "redis" => "redis-server --bind 127.0.0.1 --save '' --appendonly no --port {port}",
            // Its maintainer would hold items for a moment, which decides whether `decr` pads and what flags remain.
            _ => "memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -o no_lru_maintainer,no_lru_crawler -p {port}",
        };
        let theirs = Server::start(theirs)?;
        let addresses = [ours.address(), theirs.address()];
        let mut rng = Rng::new(seed);
        let differences = match rival {
            "redis" => redis::compare(addresses, args.operations, &mut rng)?,
            _ => memcached::compare(addresses, args.operations, &mut rng)?,
        };
        println!(
            "{rival}: {} commands, seed {}, {} differences, {:.1} s",
            args.operations,
            seed,
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
            "error: replies differ from those of {}\n\nhint: `experiments cache-diff --seed {} --rival {}` shows them again",
            differ.join(" and "),
            seed,
            differ[0]
        ))
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
