//! The lab's listener for nodes: admits nodes with a valid ticket and limits all other connections.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use rustls::{ServerConfig, ServerConnection};

use super::Join;
use super::certificate::{self, fingerprint, hex};
use super::encrypted_stream::{Opening, Why};
use crate::json_lines::Channel;
use crate::lab_clocks;
use crate::process_start_and_stop::wait_readable;

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
    /// The node of this rank joined and has this channel.
    Joined(u32, Channel),
    /// A connection from this address was refused. After the first [`REFUSALS_TOLD`], only [`Why::Twice`] is reported.
    Refused(SocketAddr, Why),
    /// All nodes have joined, or the time is up. The value counts all refused connections, including reported ones.
    Over(u64),
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
    /// Addresses of the nodes by rank.
    expected: Vec<IpAddr>,
    /// Ranks that have joined.
    joined: BTreeSet<u32>,
    deadline: Instant,
    /// Connections that have not joined yet, oldest first.
    half_open: Vec<HalfOpen>,
    refused: u64,
    events: VecDeque<Event>,
}

impl Listener {
    /// Listens on `address`, which should be on the network of the nodes; port 0 lets the kernel choose. `expected` has
    /// the address of each node by rank. Nodes may join until `deadline`, in [`Listener::next`]. Fails if the address is
    /// unusable or the kernel has no random bytes.
    pub fn bind(address: SocketAddr, expected: &[IpAddr], deadline: Instant) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        rustix::net::listen(&socket, BACKLOG)?;
        let (config, fingerprint) = certificate::make()?;
        let mut ticket = [0; 32];
        SystemRandom::new().fill(&mut ticket).map_err(|_| io::Error::other("no random bytes from the kernel"))?;
        Ok(Self {
            address: socket.local_addr()?,
            fingerprint,
            ticket: hex(&ticket),
            socket,
            config,
            expected: expected.iter().map(IpAddr::to_canonical).collect(),
            joined: BTreeSet::new(),
            deadline,
            half_open: Vec::new(),
            refused: 0,
            events: VecDeque::new(),
        })
    }

    /// Lets nodes join until the next event; `None` after `timeout`. [`Event::Over`] is the last event.
    pub fn next(&mut self, timeout: Duration) -> Option<Event> {
        let until = lab_clocks::now() + timeout;
        while self.events.is_empty() {
            let now = lab_clocks::now();
            if self.joined.len() == self.expected.len() || now >= self.deadline {
                return Some(Event::Over(self.refused));
            }
            if now >= until {
                return None;
            }
            let mut handles = self.half_open.iter().map(|half_open| half_open.opening.handle()).collect::<Vec<_>>();
            handles.extend(self.has_room().then(|| self.socket.as_fd()));
            wait_readable(&handles, (until.min(self.deadline) - now).min(TICK));
            self.advance();
            self.accept();
        }
        self.events.pop_front()
    }

    fn has_room(&self) -> bool {
        self.half_open.len() < HALF_OPEN_MAX || self.half_open[0].since + PATIENCE <= lab_clocks::now()
    }

    fn accept(&mut self) {
        // The limit on iterations lets half-open connections be served in between.
        for _ in 0..HALF_OPEN_MAX {
            if !self.has_room() {
                return;
            }
            match self.socket.accept() {
                Ok((stream, from)) => self.greet(stream, from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                // File descriptors ran out, but the socket stays readable.
                Err(_) => {
                    std::thread::sleep(TICK);
                    return;
                }
            }
        }
    }

    fn greet(&mut self, stream: TcpStream, from: SocketAddr) {
        if !self.expected.contains(&from.ip().to_canonical()) {
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

    fn advance(&mut self) {
        for mut half_open in std::mem::take(&mut self.half_open) {
            let from = half_open.from;
            let checked = match half_open.opening.line() {
                Ok(None) if half_open.since + OPENING_MAX > lab_clocks::now() => {
                    self.half_open.push(half_open);
                    continue;
                }
                Ok(None) => Err(Why::Slow),
                Ok(Some(join)) => self.check(join, from.ip()),
                Err(why) => Err(why),
            };
            // The node receives this line only if the handshake is complete.
            let sent = half_open.opening.say(&checked.as_ref().map(|_| ()).map_err(Why::to_string));
            let joined = checked.and_then(|rank| {
                sent?;
                Ok((rank, half_open.opening.channel()?))
            });
            match joined {
                Ok((rank, channel)) => {
                    self.joined.insert(rank);
                    self.events.push_back(Event::Joined(rank, channel));
                }
                Err(why) => self.refuse(from, why),
            }
        }
    }

    /// Returns the rank of a node that may join. The ticket is checked first, so that intruders cannot probe ranks.
    fn check(&self, Join { rank, ticket }: Join, from: IpAddr) -> Result<u32, Why> {
        // Hashes are compared, so that timing reveals nothing about the ticket.
        if fingerprint(ticket.as_bytes()) != fingerprint(self.ticket.as_bytes()) {
            return Err(Why::Ticket);
        }
        match self.expected.get(rank as usize) {
            None => Err(Why::Rank(rank)),
            Some(expected) if *expected != from.to_canonical() => Err(Why::Address),
            Some(_) if self.joined.contains(&rank) => Err(Why::Twice(rank)),
            Some(_) => Ok(rank),
        }
    }

    fn refuse(&mut self, from: SocketAddr, why: Why) {
        if self.refused < REFUSALS_TOLD as u64 || matches!(why, Why::Twice(_)) {
            self.events.push_back(Event::Refused(from, why));
        }
        self.refused += 1;
    }
}
