//! Ping-pong server: one worker with its own epoll per CPU. The main thread distributes connections round-robin.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::exit;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::SockRef;

const BUFFER: usize = 16 * 1024;
/// The token of a worker's waker; higher tokens are connections.
const WAKER: Token = Token(0);

/// Replaces each word with its response. A zero ends the process.
fn answer(words: &mut [u8]) {
    for bytes in words.chunks_exact_mut(4) {
        let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if word == 0 {
            exit(0);
        }
        bytes.copy_from_slice(&word.wrapping_add(1).to_be_bytes());
    }
}

/// Responses replace words. `sent <= whole <= filled` split the buffer: sent responses, unsent responses, partial word.
struct Connection {
    stream: TcpStream,
    buffer: Box<[u8; BUFFER]>,
    sent: usize,
    whole: usize,
    filled: usize,
}

impl Connection {
    /// Receives and responds until the socket would block, as mio reports readiness once. Returns `false` at the end.
    fn turn(&mut self) -> io::Result<bool> {
        loop {
            while self.sent < self.whole {
                self.sent += self.stream.write(&self.buffer[self.sent..self.whole])?;
            }
            self.buffer.copy_within(self.whole..self.filled, 0);
            self.filled -= self.whole;
            (self.sent, self.whole) = (0, 0);
            match self.stream.read(&mut self.buffer[self.filled..])? {
                0 => return Ok(false),
                got => self.filled += got,
            }
            self.whole = self.filled & !3;
            answer(&mut self.buffer[..self.whole]);
        }
    }

    fn is_over(&mut self) -> bool {
        loop {
            match self.turn() {
                Ok(open) => return !open,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }
}

fn work(mut poll: Poll, dealt: Receiver<TcpStream>) -> io::Result<()> {
    let mut events = Events::with_capacity(256);
    let mut connections = HashMap::new();
    let mut last = WAKER;
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            let token = event.token();
            if token == WAKER {
                for mut stream in dealt.try_iter() {
                    last = Token(last.0 + 1);
                    poll.registry().register(&mut stream, last, Interest::READABLE | Interest::WRITABLE)?;
                    let buffer = Box::new([0; BUFFER]);
                    connections.insert(last, Connection { stream, buffer, sent: 0, whole: 0, filled: 0 });
                }
            } else if connections.get_mut(&token).is_some_and(Connection::is_over) {
                connections.remove(&token);
            }
        }
    }
}

/// Starts a worker, which takes connections from its channel when its waker is called.
fn start() -> io::Result<(Sender<TcpStream>, Waker)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let (deal, dealt) = channel();
    thread::spawn(move || {
        if let Err(error) = work(poll, dealt) {
            eprintln!("{error}");
            exit(1);
        }
    });
    Ok((deal, waker))
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let (port, address) = match &arguments[..] {
        [_, flag, port] if flag == "-p" => (port.parse().ok(), Some(Ipv4Addr::LOCALHOST)),
        [_, flag, port, to, address] if flag == "-p" && to == "-a" => (port.parse().ok(), address.parse().ok()),
        _ => (None, None),
    };
    let (Some(port), Some(address)): (Option<u16>, _) = (port, address) else {
        eprintln!("usage: rust-multiplex -p PORT [-a ADDRESS]");
        exit(2);
    };
    // The number of workers respects the CPU affinity of the process.
    let workers = (0..thread::available_parallelism()?.get()).map(|_| start()).collect::<io::Result<Vec<_>>>()?;
    let listener = TcpListener::bind((address, port))?; // with SO_REUSEADDR
    SockRef::from(&listener).listen(i32::MAX)?; // the kernel caps it at net.core.somaxconn
    println!("ready {}", listener.local_addr()?.port());
    let mut next = workers.iter().cycle();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).is_ok()
                    && let Some((deal, waker)) = next.next()
                    && deal.send(TcpStream::from_std(stream)).is_ok()
                {
                    waker.wake()?;
                }
            }
            Err(_) => thread::sleep(Duration::from_millis(1)), // too many files: wait for connections to close
        }
    }
}
