//! `experiments churn`: checks that the cache server's memory stays below its cap plus a constant.

mod clients;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use crate::server_process::{Server, quintain};

/// Memory in bytes that the server may use beyond its cap, from `quintain serve cache --help`.
const CONSTANT_BYTES: u64 = 4 << 20;
const CONNECTION_BYTES: u64 = 16 << 10;
/// Size of the server's largest item, in bytes. Up to four such items may be in flight.
const LARGEST_ITEM_BYTES: u64 = (1 << 20) + 250;
const SAMPLE: Duration = Duration::from_millis(100);

/// Check that the memory of `quintain serve cache` stays within its cap and constant
///
/// As items come and go, anonymous memory stays below the cap plus 4 MiB, 16 KiB per connection and items in flight.
#[derive(Args)]
pub(crate) struct ChurnArgs {
    #[arg(long, value_delimiter = ',', default_value = "epoll,io_uring")]
    backend: Vec<String>,
    /// Memory caps in bytes
    #[arg(long, value_delimiter = ',', default_value = "64000000,10000000")]
    maxmem: Vec<u64>,
    /// Threads of the server
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Eviction policy [default: the server's]
    #[arg(long)]
    evict: Option<String>,
    /// Length of each run, such as 90s or 5m
    #[arg(long, default_value = "5m", value_parser = duration)]
    duration: Duration,
    /// Number of clients, which must be even
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Commands per second (0: as many as possible)
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    /// Program under test [default: the build next to this one]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

pub(crate) fn run(args: &ChurnArgs) -> Result<(), String> {
    let server = quintain(args.server.as_deref())?;
    let mut above = Vec::new();
    println!("backend   maxmem B    idle B      peak B      allowed B   commands   evictions  verdict");
    for backend in &args.backend {
        for &cap_bytes in &args.maxmem {
            let run = churn(args, &server, backend, cap_bytes)?;
            let in_flight = (cap_bytes / 8).max(4 * LARGEST_ITEM_BYTES);
            let allowed = cap_bytes + CONSTANT_BYTES + CONNECTION_BYTES * args.connections as u64 + in_flight;
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

fn duration(text: &str) -> Result<Duration, std::num::ParseIntError> {
    let (digits, unit_s) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    Ok(Duration::from_secs(digits.parse::<u64>()? * unit_s))
}

struct Run {
    idle_bytes: u64,
    peak_bytes: u64,
    commands: u64,
    evictions: u64,
}

fn churn(args: &ChurnArgs, server: &Path, backend: &str, cap_bytes: u64) -> Result<Run, String> {
    let evict = args.evict.as_ref().map_or(String::new(), |name| format!(" --evict {name}"));
    let threads = args.threads;
    let command =
        format!("serve cache -p {{port}} --backend {backend} --maxmem {cap_bytes}B --threads {threads}{evict}");
    let mut server = Server::start(&format!("'{}' {command}", server.display()))?;
    let (address, pid) = (server.address(), server.pid());
    let idle_bytes = anonymous_bytes(pid)?;
    let start = Instant::now();
    let is_over = AtomicBool::new(false);
    let mut peak_bytes = idle_bytes;
    let played = std::thread::scope(|scope| {
        let clients = (0..clients::THREADS).map(|index| {
            let (is_over, count) = (&is_over, args.connections / clients::THREADS);
            scope.spawn(move || clients::play(address, index, count, args.rate / clients::THREADS as u64, is_over))
        });
        let clients: Vec<_> = clients.collect();
        let mut sampled = Ok(());
        while start.elapsed() < args.duration && sampled.is_ok() && !clients.iter().any(|client| client.is_finished()) {
            std::thread::sleep(SAMPLE);
            sampled = anonymous_bytes(pid).map(|bytes| peak_bytes = peak_bytes.max(bytes));
        }
        is_over.store(true, Ordering::Relaxed);
        let played = clients.into_iter().map(|client| client.join().expect("a client returns its errors"));
        let commands = played.sum::<Result<u64, String>>();
        sampled.and(commands)
    });
    let commands = played.map_err(|why| format!("error: {why}"))?;
    let evictions = clients::statistic(address, "evictions")?;
    if let Some(status) = server.exit_status() {
        return Err(format!("error: the server ended ({status})"));
    }
    Ok(Run { idle_bytes, peak_bytes, commands, evictions })
}

fn anonymous_bytes(pid: u32) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|why| format!("the server: {why}"))?;
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

    #[test]
    fn parses_durations() {
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert!(duration("1h").is_err());
    }

    #[test]
    fn anonymous_memory_excludes_files() {
        let status = "VmRSS:\t  999 kB\nRssAnon:\t     300 kB\nRssFile:\t 600 kB\nRssShmem:\t      99 kB\n";
        assert_eq!(anonymous_of(status), Some(399 * 1024));
        assert_eq!(anonymous_of("VmRSS:\t 1 kB\n"), None);
        assert!(anonymous_bytes(std::process::id()).unwrap() > 100 << 10);
    }
}
