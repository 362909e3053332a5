//! `cargo xtask churn`: whether the cache server's memory stays below its cap and the constant that its documents state.

mod clients;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::built;
use crate::conformance::process::{Process, free_port, until};

/// What the server may take beyond its cap, as `quintain serve cache --help` says it.
const CONSTANT_BYTES: u64 = 4 << 20;
const CONNECTION_BYTES: u64 = 16 << 10;
/// The largest item of the server, of which four may be in flight.
const LARGEST_ITEM_BYTES: u64 = (1 << 20) + 250;
/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_millis(100);

const HELP: &str = "\
Whether the cache server's anonymous memory stays below its cap, 4 MiB, 16 KiB per connection and what may be in flight, while items of all sizes come and go.
The server is the release build, which must be there: `cargo build --release`.

Usage: cargo xtask churn [FLAG VALUE]...

  --backend NAME      epoll or io_uring [default: both]
  --maxmem BYTES      the cap, bytes [default: 64000000 and 10000000]
  --threads N         threads of the server [default: 2]
  --evict NAME        its evictor [default: its own]
  --duration TIME     of each run, as 90s or 5m [default: 5m]
  --connections N     clients, a multiple of 2 [default: 50]
  --rate N            commands a second; 0 is as many as it takes [default: 20000]
  --server PATH       another binary";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Request {
    backends: Vec<String>,
    caps_bytes: Vec<u64>,
    threads: u64,
    evict: Option<String>,
    duration: Duration,
    connections: usize,
    rate: u64,
    server: Option<PathBuf>,
}

/// Runs every combination of backend and cap; the error says which were above.
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
    let mut above = Vec::new();
    println!("backend   maxmem B    idle B      peak B      allowed B   commands   evictions  verdict");
    for backend in &request.backends {
        for &cap_bytes in &request.caps_bytes {
            let run = churn(&request, &server, backend, cap_bytes)?;
            let in_flight = (cap_bytes / 8).max(4 * LARGEST_ITEM_BYTES);
            let allowed = cap_bytes + CONSTANT_BYTES + CONNECTION_BYTES * request.connections as u64 + in_flight;
            let verdict = if run.peak_bytes <= allowed { "within" } else { "ABOVE" };
            println!(
                "{backend:9} {cap_bytes:<11} {:<11} {:<11} {allowed:<11} {:<10} {:<10} {verdict}: the cap {:+.1} KiB",
                run.idle_bytes,
                run.peak_bytes,
                run.commands,
                run.evictions,
                (run.peak_bytes as f64 - cap_bytes as f64) / 1024.0
            );
            if run.evictions == 0 {
                return Err("error: nothing was evicted, so the cap was not tried: longer, or faster".to_owned());
            }
            if run.peak_bytes > allowed {
                above.push(format!("{backend} with {cap_bytes} B"));
            }
        }
    }
    if above.is_empty() { Ok(()) } else { Err(format!("error: above the cap and its constant: {}", above.join(", "))) }
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut request = Request {
        backends: vec!["epoll".to_owned(), "io_uring".to_owned()],
        caps_bytes: vec![64_000_000, 10_000_000],
        threads: 2,
        evict: None,
        duration: Duration::from_secs(300),
        connections: 50,
        rate: 20_000,
        server: None,
    };
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or(format!("error: `{flag}` needs a value\n\n{HELP}"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("error: `{flag} {value}`: {error}"));
        match flag.as_str() {
            "--backend" => request.backends = vec![value.clone()],
            "--maxmem" => request.caps_bytes = vec![number()?],
            "--threads" => request.threads = number()?,
            "--evict" => request.evict = Some(value.clone()),
            "--duration" => {
                let (digits, unit_s) = match value.strip_suffix('m') {
                    Some(minutes) => (minutes, 60),
                    None => (value.strip_suffix('s').unwrap_or(value), 1),
                };
                let count = digits.parse::<u64>().map_err(|error| format!("error: `{flag} {value}`: {error}"))?;
                request.duration = Duration::from_secs(count * unit_s);
            }
            "--connections" => request.connections = number()? as usize,
            "--rate" => request.rate = number()?,
            "--server" => request.server = Some(value.into()),
            _ => return Err(format!("error: unknown flag `{flag}`\n\n{HELP}")),
        }
    }
    if request.connections == 0 || !request.connections.is_multiple_of(clients::THREADS) {
        return Err(format!("error: `--connections {}`: a multiple of {}", request.connections, clients::THREADS));
    }
    Ok(request)
}

/// What one run has shown.
struct Run {
    idle_bytes: u64,
    peak_bytes: u64,
    commands: u64,
    evictions: u64,
}

fn churn(request: &Request, server: &Path, backend: &str, cap_bytes: u64) -> Result<Run, String> {
    let port = free_port()?;
    let evict = request.evict.as_ref().map_or(String::new(), |name| format!(" --evict {name}"));
    let command = format!(
        "'{}' serve cache -p {port} --backend {backend} --maxmem {cap_bytes}B --threads {}{evict}",
        server.display(),
        request.threads
    );
    let mut process = Process::start(&command, Path::new("."))?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let ready = until(Duration::from_secs(10), || std::net::TcpStream::connect(address).ok());
    if ready.is_none() {
        return Err(format!("error: `{command}` does not listen: {}", process.last_words()));
    }
    let idle_bytes = anonymous_bytes(process.id())?;
    let start = Instant::now();
    let is_over = AtomicBool::new(false);
    let mut peak_bytes = idle_bytes;
    let played = std::thread::scope(|scope| {
        let clients = (0..clients::THREADS).map(|index| {
            let is_over = &is_over;
            scope.spawn(move || {
                let count = request.connections / clients::THREADS;
                clients::play(address, index, count, request.rate / clients::THREADS as u64, is_over)
            })
        });
        let clients: Vec<_> = clients.collect();
        let mut sampled = Ok(());
        while start.elapsed() < request.duration
            && sampled.is_ok()
            && !clients.iter().any(|client| client.is_finished())
        {
            std::thread::sleep(SAMPLE);
            sampled = anonymous_bytes(process.id()).map(|bytes| peak_bytes = peak_bytes.max(bytes));
        }
        is_over.store(true, Ordering::Relaxed);
        let played = clients.into_iter().map(|client| client.join().expect("a client returns its errors"));
        let commands = played.sum::<Result<u64, String>>();
        sampled.and(commands)
    });
    let commands = played.map_err(|why| format!("error: {why}; its last words: {}", process.last_words()))?;
    let evictions = clients::statistic(address, "evictions")?;
    if let Some(status) = process.ended() {
        return Err(format!("error: the server ended ({status})"));
    }
    Ok(Run { idle_bytes, peak_bytes, commands, evictions })
}

/// Resident memory of a process that is no file's.
fn anonymous_bytes(pid: i32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| format!("the server: {error}"))?;
    anonymous_of(&status).ok_or("`/proc/PID/status` has no RssAnon and RssShmem (Linux 4.5)".to_owned())
}

fn anonymous_of(status: &str) -> Option<u64> {
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kib("RssAnon")? + kib("RssShmem")?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_read() {
        let request = parse(&words(&["--backend", "epoll", "--duration", "2m", "--maxmem", "1000"])).unwrap();
        assert_eq!((request.backends, request.caps_bytes), (words(&["epoll"]), vec![1000]));
        assert_eq!(request.duration, Duration::from_secs(120));
        for wrong in [&["--rate"][..], &["--rate", "x"], &["--duration", "1h"], &["--connections", "3"], &["x", "y"]] {
            assert!(parse(&words(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn anonymous_memory_is_that_of_no_file() {
        let status = "VmRSS:\t  999 kB\nRssAnon:\t     300 kB\nRssFile:\t 600 kB\nRssShmem:\t      99 kB\n";
        assert_eq!(anonymous_of(status), Some(399 * 1024));
        assert_eq!(anonymous_of("VmRSS:\t 1 kB\n"), None);
        assert!(anonymous_bytes(std::process::id() as i32).unwrap() > 100 << 10);
    }
}
