//! Measures a driver's anonymous memory after its creation, with open connections, and after small and large responses.
//! A separate process sends the responses, so that only the client's memory is counted.
//!
//! ```text
//! cargo run --release -p net --example memory_per_connection -- epoll 400
//! backend connections  made KiB  open KiB  small KiB  large KiB  bytes/connection
//! ```

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool that ends its own processes")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use net::{Address, Close, Config, Conn, Driver, Epoll, Event, Uring};

const RECEIVE_BYTES: usize = 16_384;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", connections] => serve(number(connections)?),
        [backend, connections] => {
            let connections = number(connections)?;
            let config = Config {
                connections,
                receive_bytes: RECEIVE_BYTES,
                send_bytes_max: 1 << 20,
                pause_reads_above_bytes: usize::MAX,
            };
            match backend {
                "epoll" => measure(backend, || Epoll::new(&config), connections),
                "io_uring" => measure(backend, || Uring::new(&config), connections),
                other => Err(io::Error::other(format!("`{other}` is neither epoll nor io_uring"))),
            }
        }
        _ => Err(io::Error::other("usage: memory epoll|io_uring CONNECTIONS")),
    }
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(|_| io::Error::other(format!("`{text}` is not a number")))
}

struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers a request byte of 0 with 60,000 bytes, and any other request byte `n` with 100 * `n` bytes.
fn serve(connections: usize) -> io::Result<()> {
    let config =
        Config { connections, receive_bytes: RECEIVE_BYTES, send_bytes_max: 1 << 20, pause_reads_above_bytes: 65_536 };
    let mut driver = Epoll::new(&config)?;
    let (_, at) = driver.listen(&Address::Inet((Ipv4Addr::LOCALHOST, 0).into()), 4096)?;
    println!("{at}");
    io::stdout().flush()?;
    let answer = vec![b'x'; 60_000];
    loop {
        driver.turn(None)?;
        while let Some(event) = driver.next_event() {
            match event {
                Event::Data(conn, data) => {
                    let hundreds = usize::from(driver.bytes(data)[0]);
                    let len = if hundreds == 0 { answer.len() } else { hundreds * 100 };
                    if driver.send(conn, &answer[..len]).is_err() {
                        driver.close(conn, Close::Reset);
                    }
                }
                Event::EndOfStream(conn) => driver.close(conn, Close::Graceful),
                _ => {}
            }
        }
    }
}

fn measure<D: Driver>(backend: &str, open: impl FnOnce() -> io::Result<D>, connections: usize) -> io::Result<()> {
    let itself = std::env::current_exe()?;
    let mut peer = Peer(Command::new(itself).args(["serve", &connections.to_string()]).stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(peer.0.stdout.take().expect("it is piped")).read_line(&mut line)?;
    let at = Address::resolve(line.trim())?.remove(0);
    let before = anonymous_kib()?;
    let mut driver = open()?;
    let made = anonymous_kib()? - before;
    let mut conns: Vec<Conn> = Vec::with_capacity(connections);
    let mut stand = 0;
    while stand < connections {
        while conns.len() < connections && conns.len() < stand + 64 {
            conns.push(driver.connect(&at)?);
        }
        driver.turn(None)?;
        while let Some(event) = driver.next_event() {
            match event {
                Event::Connected(_) => stand += 1,
                other => return Err(io::Error::other(format!("{other:?}"))),
            }
        }
    }
    let opened = anonymous_kib()? - before;
    let mut round = |request: u8, bytes: usize| -> io::Result<i64> {
        for &conn in &conns {
            driver.send(conn, &[request]).map_err(io::Error::other)?;
        }
        let mut left = bytes * connections;
        while left > 0 {
            driver.turn(None)?;
            while let Some(event) = driver.next_event() {
                match event {
                    Event::Data(_, data) => left -= driver.bytes(data).len(),
                    other => return Err(io::Error::other(format!("{other:?}"))),
                }
            }
        }
        Ok(anonymous_kib()? - before)
    };
    let small = (0..5).map(|_| round(1, 100)).last().expect("five rounds")?;
    let large = round(0, 60_000)?;
    let each = (small - made) * 1024 / connections as i64;
    println!("backend connections  made KiB  open KiB  small KiB  large KiB  bytes/connection");
    println!("{backend:>7} {connections:>11} {made:>9} {opened:>9} {small:>10} {large:>10} {each:>17}");
    Ok(())
}

fn anonymous_kib() -> io::Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()).unwrap_or(0)
    };
    Ok(of("RssAnon:") + of("RssShmem:"))
}
