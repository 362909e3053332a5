//! Commands that make a cache server allocate, move and free memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stats::Rng;

pub(super) const THREADS: usize = 2;
const BATCH: usize = 16;
/// Number of batches per phase. Values are small, mixed, large and mixed in turn; the index grows, shrinks and grows.
const PHASE: u64 = 4_000;
const VALUE_BYTES_MAX: u64 = 60_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends commands on `connections` until `is_over` and returns their number. `rate` is per second; 0 means no limit.
pub(super) fn play(
    address: SocketAddr,
    thread: usize,
    connections: usize,
    rate: u64,
    is_over: &AtomicBool,
) -> Result<u64, String> {
    let mut clients = (0..connections).map(|_| connect(address)).collect::<Result<Vec<_>, _>>()?;
    let mut rng = Rng::stream(7, thread as u64);
    let blob: Vec<u8> = (0..VALUE_BYTES_MAX).map(|_| b'a' + rng.below(26) as u8).collect();
    let (mut said, mut heard, mut commands) = (Vec::new(), Vec::new(), 0);
    let start = Instant::now();
    let mut batch = 0;
    while !is_over.load(Ordering::Relaxed) {
        let index = rng.below(connections as u64) as usize;
        if rng.below(2_000) == 0 {
            clients[index] = connect(address)?;
        }
        said.clear();
        for _ in 0..BATCH {
            command(&mut rng, batch / PHASE % 4, &blob, &mut said);
        }
        said.extend_from_slice(b"mn\r\n");
        exchange(&mut clients[index], &said, &mut heard)?;
        commands += BATCH as u64;
        batch += 1;
        if let Some(late) = commands.checked_mul(1_000_000_000).and_then(|commands| commands.checked_div(rate)) {
            std::thread::sleep(Duration::from_nanos(late).saturating_sub(start.elapsed()));
        }
    }
    Ok(commands)
}

/// Appends a store, or less often a read, delete, increment or change of the expiry time.
fn command(rng: &mut Rng, phase: u64, blob: &[u8], said: &mut Vec<u8>) {
    let key = rng.below(3_000_000);
    let kind = rng.below(20);
    let written = match kind {
        0..=12 => {
            let bytes = match phase {
                0 => rng.below(40),
                2 => rng.below(VALUE_BYTES_MAX),
                _ if rng.below(100) == 0 => rng.below(VALUE_BYTES_MAX),
                _ => rng.exponential(200.0) as u64,
            };
            let bytes = bytes.min(VALUE_BYTES_MAX);
            let (flags, expiry) = (rng.below(2) * 7, rng.below(3).saturating_sub(1) * 30);
            let from = rng.below(VALUE_BYTES_MAX - bytes + 1) as usize;
            write!(said, "set key-{key} {flags} {expiry} {bytes}\r\n")
                .and_then(|()| said.write_all(&blob[from..from + bytes as usize]))
                .and_then(|()| said.write_all(b"\r\n"))
        }
        13 | 14 => write!(said, "get key-{key} key-{} key-{}\r\n", key / 2, key / 3),
        15 | 16 => write!(said, "delete key-{key}\r\n"),
        17 => write!(said, "touch key-{key} {}\r\n", rng.below(60)),
        18 => write!(said, "append key-{key} 0 0 100\r\n{}\r\n", "z".repeat(100)),
        _ => write!(said, "set count-{} 0 0 1\r\n5\r\nincr count-{} 999999\r\n", key % 100, key % 100),
    };
    written.expect("writing to a vector does not fail");
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).and_then(|stream| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    });
    stream.map_err(|error| format!("a client cannot connect: {error}"))
}

/// Sends commands that end with a barrier. Reads until the data ends with the barrier's response, which ends no value.
fn exchange(client: &mut TcpStream, said: &[u8], heard: &mut Vec<u8>) -> Result<(), String> {
    client.write_all(said).map_err(|error| format!("a client cannot send: {error}"))?;
    heard.clear();
    let mut room = [0; 16_384];
    while !heard.ends_with(b"MN\r\n") {
        match client.read(&mut room) {
            Ok(0) => return Err("a client was cut off".to_owned()),
            Ok(bytes) => heard.extend_from_slice(&room[..bytes]),
            Err(error) => return Err(format!("a client hears nothing: {error}")),
        }
    }
    Ok(())
}

pub(super) fn statistic(address: SocketAddr, name: &str) -> Result<u64, String> {
    let mut heard = Vec::new();
    exchange(&mut connect(address)?, b"stats\r\nmn\r\n", &mut heard)?;
    let text = String::from_utf8_lossy(&heard);
    let line = text.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.parse().ok()).ok_or(format!("the server has no statistic `{name}`"))
}
