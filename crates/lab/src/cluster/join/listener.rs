//! The lab's listener for nodes: admits nodes with a valid ticket and limits all other connections.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
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

/// An event at the port of a [`Listener`].
#[derive(Debug)]
pub enum Event {
    /// The node of this rank joined from this address and has this channel.
    Joined(u32, SocketAddr, Pipes),
    /// A second connection with the ticket, from this address, claimed this rank: one of the two is an intruder.
    Twice(u32, SocketAddr),
    /// A connection from this address was refused. Only the first [`REFUSALS_TOLD`] are reported.
    Refused(SocketAddr, Why),
    /// All nodes have joined, or the time is up. The value counts all refused connections, including reported ones.
    Over(u64),
}

struct Rank {
    address: Option<IpAddr>,
    is_here: bool,
    /// Whether [`Event::Twice`] was reported for this rank.
    is_told: bool,
}

struct HalfOpen {
    opening: Opening,
    from: SocketAddr,
    since: Instant,
}

/// A listening port for the nodes of one run. Dropping this value closes the port and all half-open connections.
pub struct Listener {
    /// Address to which nodes connect.
    pub address: SocketAddr,
    /// SHA-256 of the certificate, in hexadecimal. It is not a secret.
    pub fingerprint: String,
    /// Secret that a node presents to join. Nodes receive it in their environment, never in arguments.
    pub ticket: String,
    socket: TcpListener,
    config: Arc<ServerConfig>,
    /// Random key of the HMACs by which tickets are compared, so that timing reveals nothing about the ticket.
    key: hmac::Key,
    ranks: Vec<Rank>,
    deadline: Instant,
    /// Connections that have not joined yet, oldest first.
    half_open: Vec<HalfOpen>,
    /// Time until which no connection is accepted, because file descriptors ran out.
    paused: Option<Instant>,
    refused: u64,
    events: VecDeque<Event>,
}

impl Listener {
    /// Listens on `address`, which should be on the network of the nodes; port 0 lets the kernel choose. `expected` has
    /// the address of each node by rank; `None` allows any. Nodes may join until `deadline`, in [`Listener::next`].
    /// Fails if the address is unusable or the kernel has no random bytes.
    pub fn bind(address: SocketAddr, expected: Vec<Option<IpAddr>>, deadline: Instant) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        rustix::net::listen(&socket, BACKLOG)?;
        let (config, fingerprint) = certificate::make()?;
        let no_random = |_| io::Error::other("no random bytes from the kernel");
        let mut ticket = [0; 32];
        SystemRandom::new().fill(&mut ticket).map_err(no_random)?;
        Ok(Self {
            address: socket.local_addr()?,
            fingerprint,
            ticket: hex(&ticket),
            socket,
            config,
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(no_random)?,
            ranks: expected.into_iter().map(|address| Rank { address, is_here: false, is_told: false }).collect(),
            deadline,
            half_open: Vec::new(),
            paused: None,
            refused: 0,
            events: VecDeque::new(),
        })
    }

    /// Lets nodes join until the next event; `None` after `timeout`. [`Event::Over`] is the last event.
    pub fn next(&mut self, timeout: Duration) -> Option<Event> {
        let until = lab_clocks::now() + timeout;
        while self.events.is_empty() {
            let now = lab_clocks::now();
            if self.ranks.iter().all(|rank| rank.is_here) || now >= self.deadline {
                return Some(Event::Over(self.refused));
            }
            if now >= until {
                return None;
            }
            let ready = self.wait(until);
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
        self.events.pop_front()
    }

    /// Polls the socket and half-open connections. Returns whether each is ready.
    fn wait(&self, until: Instant) -> Vec<bool> {
        let now = lab_clocks::now();
        let is_open = self.has_room(now) && self.paused.is_none_or(|paused| paused <= now);
        let knocks = if is_open { PollFlags::IN } else { PollFlags::empty() };
        let mut polled = vec![PollFd::from_borrowed_fd(self.socket.as_fd(), knocks)];
        polled.extend(self.half_open.iter().map(|half_open| half_open.opening.interest()));
        // An interrupted poll reports that nothing is ready, and the caller polls again.
        let _ = poll(&mut polled, Some(&lab_clocks::left(until.min(self.deadline).min(now + TICK))));
        polled.iter().map(|polled| !polled.revents().is_empty()).collect()
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
            match self.socket.accept() {
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
        let tls = ServerConnection::new(Arc::clone(&self.config)).map_err(Why::from);
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
                            self.events.push_back(Event::Joined(rank, from, pipes));
                        }
                        Err(error) => self.refuse(from, error.into()),
                    }
                }
            }
        }
    }

    /// Returns the rank of a node that may join. The ticket is checked first, so that intruders cannot probe ranks.
    fn check(&mut self, Join { rank: number, ticket }: Join, from: SocketAddr) -> Result<u32, Why> {
        let tag = hmac::sign(&self.key, self.ticket.as_bytes());
        hmac::verify(&self.key, ticket.as_bytes(), tag.as_ref()).map_err(|_| Why::Ticket)?;
        let rank = self.ranks.get_mut(number as usize).ok_or(Why::Rank(number))?;
        if rank.address.is_some_and(|address| address.to_canonical() != from.ip().to_canonical()) {
            return Err(Why::Address);
        }
        if rank.is_here {
            if !std::mem::replace(&mut rank.is_told, true) {
                self.events.push_back(Event::Twice(number, from));
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
            self.events.push_back(Event::Refused(from, why));
        }
        self.refused += 1;
    }
}
