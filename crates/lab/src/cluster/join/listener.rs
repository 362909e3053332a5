//! The lab's listener for nodes: admits nodes with a valid ticket and limits all other connections.

use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::{ServerConfig, ServerConnection};

use super::certificate::{self, hex};
use super::handshake_and_first_line::{Opening, Why};
use super::{Join, Pipes};
use crate::lab_clocks;

pub(super) const HALF_OPEN_MAX: usize = 64;
const OPENING_MAX: Duration = Duration::from_secs(2);
/// Age at which the oldest of [`HALF_OPEN_MAX`] half-open connections may be dropped to make room for nodes.
const PATIENCE: Duration = Duration::from_millis(250);
/// Interval between checks of [`OPENING_MAX`] and [`PATIENCE`].
const TICK: Duration = Duration::from_millis(50);
/// Backlog of the socket: 1,024 nodes can connect at once without a retry.
const BACKLOG: i32 = 1024;
/// Maximum number of refusals that are reported one by one; the rest are only counted.
pub const REFUSALS_TOLD: usize = 8;

/// A listening port for nodes, with the certificate and ticket of one run.
#[derive(Debug)]
pub struct Listener {
    /// Address to which nodes connect.
    pub address: SocketAddr,
    /// SHA-256 of the certificate, in hexadecimal. It is not a secret.
    pub fingerprint: String,
    /// Secret that a node presents to join. Nodes receive it in their environment, never in arguments.
    pub ticket: String,
    socket: TcpListener,
    config: Arc<ServerConfig>,
}

impl Listener {
    /// Listens on `address`, which should be on the network of the nodes; port 0 lets the kernel choose. Connections
    /// wait until [`Listener::accept`]. Fails if the address is unusable or the kernel has no random bytes.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        rustix::net::listen(&socket, BACKLOG)?;
        let (config, fingerprint) = certificate::make()?;
        let mut ticket = [0; 32];
        SystemRandom::new().fill(&mut ticket).map_err(|_| io::Error::other("no random bytes from the kernel"))?;
        Ok(Self { address: socket.local_addr()?, socket, config, fingerprint, ticket: hex(&ticket) })
    }

    /// Lets nodes join in a new thread, until `window` has passed. `expected` has the address of each node by rank;
    /// `None` allows any. Fails if the thread or the pipe that ends it cannot be created.
    pub fn accept(self, expected: Vec<Option<IpAddr>>, window: Duration) -> io::Result<Joining> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| io::Error::other("no random bytes from the kernel"))?;
        let (sender, events) = mpsc::channel();
        let (end, ender) = io::pipe()?;
        let ranks = expected.into_iter().map(|address| Rank { address, is_here: false, is_told: false }).collect();
        let (listener, deadline) = (self, lab_clocks::now() + window);
        let (half_open, paused, refused) = (Vec::new(), None, 0);
        let door = Door { listener, key, ranks, deadline, half_open, paused, refused, events: sender, end };
        std::thread::Builder::new().name("join".to_owned()).spawn(move || door.run())?;
        Ok(Joining { events, _ender: ender })
    }
}

/// Nodes that are joining. Dropping this value closes the port.
#[derive(Debug)]
pub struct Joining {
    events: mpsc::Receiver<Event>,
    _ender: PipeWriter,
}

impl Joining {
    /// Waits up to `timeout` for the next event. `None` after the timeout or after [`Event::Over`].
    pub fn next(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }
}

/// An event at the port of a [`Listener`].
#[derive(Debug)]
pub enum Event {
    /// The node of this rank joined from this address and has this channel.
    Joined(u32, SocketAddr, Pipes),
    /// A second connection with the ticket, from this address, claimed this rank: one of the two is an intruder.
    Twice(u32, SocketAddr),
    /// A connection from this address was refused. Only the first [`REFUSALS_TOLD`] are reported.
    Refused(SocketAddr, Why),
    /// The port is closed. The value counts all refused connections, including reported ones.
    Over(u64),
}

struct Rank {
    address: Option<IpAddr>,
    is_here: bool,
    /// Whether [`Event::Twice`] was sent for this rank.
    is_told: bool,
}

struct HalfOpen {
    opening: Opening,
    from: SocketAddr,
    since: Instant,
}

struct Door {
    listener: Listener,
    /// Random key of the HMACs by which tickets are compared, so that timing reveals nothing about the ticket.
    key: hmac::Key,
    ranks: Vec<Rank>,
    deadline: Instant,
    /// Connections that have not joined yet, oldest first.
    half_open: Vec<HalfOpen>,
    /// Time until which no connection is accepted, because file descriptors ran out.
    paused: Option<Instant>,
    refused: u64,
    events: mpsc::Sender<Event>,
    end: PipeReader,
}

impl Door {
    fn run(mut self) {
        while self.ranks.iter().any(|rank| !rank.is_here) && lab_clocks::now() < self.deadline {
            let Some(ready) = self.wait() else { return };
            self.advance(&ready[1..]);
            let now = lab_clocks::now();
            let slow = self.half_open.partition_point(|half_open| half_open.since + OPENING_MAX <= now);
            for half_open in self.half_open.drain(..slow).collect::<Vec<_>>() {
                self.turn_away(half_open, Why::Slow);
            }
            if ready[0] {
                self.accept();
            }
        }
        let Door { listener, half_open, events, refused, .. } = self;
        drop((listener, half_open));
        let _ = events.send(Event::Over(refused));
    }

    /// Polls the socket and half-open connections. Returns whether each is ready; `None` if the lab stopped waiting.
    fn wait(&self) -> Option<Vec<bool>> {
        let now = lab_clocks::now();
        let is_open = self.has_room(now) && self.paused.is_none_or(|paused| paused <= now);
        let knocks = if is_open { PollFlags::IN } else { PollFlags::empty() };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.socket.as_fd(), knocks),
        ];
        polled.extend(self.half_open.iter().map(|half_open| half_open.opening.interest()));
        // An interrupted poll reports that nothing is ready, and the caller polls again.
        let _ = poll(&mut polled, Some(&lab_clocks::left(self.deadline.min(now + TICK))));
        let ready = polled.iter().map(|polled| !polled.revents().is_empty()).collect::<Vec<_>>();
        (!ready[0]).then(|| ready[1..].to_vec())
    }

    fn has_room(&self, now: Instant) -> bool {
        self.half_open.len() < HALF_OPEN_MAX || self.half_open[0].since + PATIENCE <= now
    }

    fn accept(&mut self) {
        // The limit on iterations lets half-open connections be served in between.
        for _ in 0..HALF_OPEN_MAX {
            if !self.has_room(lab_clocks::now()) {
                return;
            }
            match self.listener.socket.accept() {
                Ok((stream, from)) => self.greet(stream, from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => {
                    self.paused = Some(lab_clocks::now() + Duration::from_millis(100));
                    return;
                }
            }
        }
    }

    fn greet(&mut self, stream: TcpStream, from: SocketAddr) {
        let ip = from.ip().to_canonical();
        if self.ranks.iter().all(|rank| rank.address.is_some_and(|address| address.to_canonical() != ip)) {
            return self.refuse(from, Why::Address);
        }
        if self.half_open.len() >= HALF_OPEN_MAX {
            let oldest = self.half_open.remove(0);
            self.refuse(oldest.from, Why::Slow);
        }
        let tls = ServerConnection::new(Arc::clone(&self.listener.config)).map_err(Why::from);
        match tls.and_then(|tls| Ok(Opening::new(stream, tls)?)) {
            Ok(opening) => self.half_open.push(HalfOpen { opening, from, since: lab_clocks::now() }),
            Err(why) => self.refuse(from, why),
        }
    }

    fn advance(&mut self, ready: &[bool]) {
        let all = std::mem::take(&mut self.half_open);
        for (mut half_open, is_ready) in all.into_iter().zip(ready) {
            if !is_ready {
                self.half_open.push(half_open);
                continue;
            }
            let from = half_open.from;
            let line = half_open.opening.line::<Join>();
            match line.and_then(|line| line.map(|join| self.check(join, from)).transpose()) {
                Ok(None) => self.half_open.push(half_open),
                Err(why) => self.turn_away(half_open, why),
                Ok(Some(rank)) => {
                    match half_open.opening.say(&Ok::<(), String>(())).and_then(|()| half_open.opening.pipes()) {
                        Ok(pipes) => {
                            self.ranks[rank as usize].is_here = true;
                            // Sending fails if the lab no longer listens. It has then closed the pipe that ends this thread.
                            let _ = self.events.send(Event::Joined(rank, from, pipes));
                        }
                        Err(error) => self.refuse(from, error.into()),
                    }
                }
            }
        }
    }

    /// Returns the rank of a node that may join. The ticket is checked first, so that intruders cannot probe ranks.
    fn check(&mut self, Join { rank: number, ticket }: Join, from: SocketAddr) -> Result<u32, Why> {
        let tag = hmac::sign(&self.key, self.listener.ticket.as_bytes());
        hmac::verify(&self.key, ticket.as_bytes(), tag.as_ref()).map_err(|_| Why::Ticket)?;
        let rank = self.ranks.get_mut(number as usize).ok_or(Why::Rank(number))?;
        if rank.address.is_some_and(|address| address.to_canonical() != from.ip().to_canonical()) {
            return Err(Why::Address);
        }
        if rank.is_here {
            if !std::mem::replace(&mut rank.is_told, true) {
                let _ = self.events.send(Event::Twice(number, from));
            }
            return Err(Why::Twice(number));
        }
        Ok(number)
    }

    fn turn_away(&mut self, half_open: HalfOpen, why: Why) {
        half_open.opening.close(&Err::<(), _>(why.to_string()));
        self.refuse(half_open.from, why);
    }

    fn refuse(&mut self, from: SocketAddr, why: Why) {
        if self.refused < REFUSALS_TOLD as u64 {
            let _ = self.events.send(Event::Refused(from, why));
        }
        self.refused += 1;
    }
}
