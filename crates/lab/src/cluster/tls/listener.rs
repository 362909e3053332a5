//! The lab's side: a port that is open until all nodes have joined, and for no longer than a window.

use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ServerConfig, ServerConnection};

use super::Pipes;
use super::certificate::{self, hex};
use super::first::{Answer, Asked, Join};
use super::opening::{Broken, Opening};
use crate::clock;

/// Connections at most that have not said which node they are.
pub(super) const HALF_OPEN_MAX: usize = 64;
/// They must have said so within this.
const OPENING_MAX: Duration = Duration::from_secs(2);
/// Where more than [`HALF_OPEN_MAX`] come, the oldest has this long, so that those that say nothing do not keep nodes out. Nodes that lose
/// their place come again.
const PATIENCE: Duration = Duration::from_millis(250);
/// Connections that the kernel keeps for us: of a thousand nodes that come at once none has to come again.
const BACKLOG: i32 = 1024;
/// Of those that are refused the first are told, and the others counted.
pub const REFUSALS_TOLD: usize = 8;

/// A port that nodes join at, with the certificate and the ticket of one run.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    config: Arc<ServerConfig>,
    fingerprint: String,
    ticket: String,
}

impl Listener {
    /// Listens on `address`, best the one that leads to the nodes; its port may be 0. Nobody is answered before [`Listener::accept`].
    ///
    /// # Errors
    /// It cannot listen there, or there is no randomness.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        rustix::net::listen(&socket, BACKLOG)?;
        let (config, fingerprint) = certificate::make()?;
        let mut ticket = [0; 32];
        SystemRandom::new().fill(&mut ticket).map_err(|_| io::Error::other("no random bytes from the kernel"))?;
        Ok(Self { address: socket.local_addr()?, socket, config, fingerprint, ticket: hex(&ticket) })
    }

    /// Where nodes join.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SHA-256 of the certificate, hexadecimal; no secret.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What nodes show to be let in: a secret, so it goes to them by their environment, never in arguments.
    pub fn ticket(&self) -> &str {
        &self.ticket
    }

    /// Lets nodes in, in a thread of its own: one for each of `expected`, whose index is the rank, from that address; `None`: from any.
    ///
    /// # Errors
    /// No thread, or no pipe to end it.
    pub fn accept(self, expected: Vec<Option<IpAddr>>, window: Duration) -> io::Result<Joining> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| io::Error::other("no random bytes from the kernel"))?;
        let (sender, events) = mpsc::channel();
        let (end, ender) = io::pipe()?;
        let door = Door {
            tag: hmac::sign(&key, self.ticket.as_bytes()),
            key,
            socket: self.socket,
            config: self.config,
            ranks: expected.into_iter().map(|address| Rank { address, is_here: false, is_told: false }).collect(),
            deadline: clock::now() + window,
            half_open: Vec::new(),
            paused: None,
            refused: 0,
            events: sender,
            end,
        };
        std::thread::Builder::new().name("join".to_owned()).spawn(move || door.run())?;
        Ok(Joining { events, _ender: ender })
    }
}

/// Nodes on their way. Dropped, it closes the port.
#[derive(Debug)]
pub struct Joining {
    events: mpsc::Receiver<Event>,
    _ender: PipeWriter,
}

impl Joining {
    /// What happened next; `None`: nothing within `timeout`, or nothing more to come after [`Event::Over`].
    pub fn next(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }
}

/// What happened at the port.
#[derive(Debug)]
pub enum Event {
    /// A node is there.
    Joined {
        /// Its number.
        rank: u32,
        /// Where it came from.
        from: SocketAddr,
        /// The channel to it.
        pipes: Pipes,
    },
    /// Another connection with the ticket claimed a rank whose node is there: one of the two is none of ours. Told once per rank.
    Twice {
        /// The rank.
        rank: u32,
        /// Where the second came from.
        from: SocketAddr,
    },
    /// A connection was refused; the first [`REFUSALS_TOLD`] are told.
    Refused(Refusal),
    /// The port is closed.
    Over {
        /// Connections that were refused, those that were told among them.
        refused: u64,
        /// Ranks whose nodes have not come.
        missing: Vec<u32>,
    },
}

/// A connection that is none of a node, or not as it must be.
#[derive(Debug, thiserror::Error)]
#[error("refused a connection from {from}: {why}")]
pub struct Refusal {
    /// Where it came from.
    pub from: SocketAddr,
    /// What was wrong.
    pub why: Why,
}

/// What was wrong with a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// No node is expected from there, or not this one.
    #[error("no such node is expected from this address")]
    Address,
    /// It did not say in time which node it is.
    #[error("it did not join in time")]
    Slow,
    /// It ended before it had said which node it is.
    #[error("the connection ended before it joined")]
    Ended,
    /// Its handshake failed, in the words of the library.
    #[error("TLS: {0}")]
    Tls(String),
    /// Its first line is too long, or says something else.
    #[error("its first line is not understood")]
    Line,
    /// It does not know the secret.
    #[error("wrong ticket")]
    Ticket,
    /// There is no such rank.
    #[error("there is no rank {0}")]
    Rank(u32),
    /// Its rank is taken.
    #[error("rank {0} has joined already")]
    Twice(u32),
    /// This machine could not serve it.
    #[error("{0}")]
    Machine(String),
}

impl From<Broken> for Why {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Ended | Broken::Io(_) => Why::Ended,
            Broken::Tls(error) => Why::Tls(error.to_string()),
            Broken::Line => Why::Line,
        }
    }
}

struct Rank {
    address: Option<IpAddr>,
    is_here: bool,
    /// Whether a second one was told.
    is_told: bool,
}

struct HalfOpen {
    opening: Opening,
    from: SocketAddr,
    since: Instant,
}

struct Door {
    socket: TcpListener,
    config: Arc<ServerConfig>,
    /// The ticket is compared by codes with a key that nobody knows, so that the time it takes tells nothing.
    key: hmac::Key,
    tag: hmac::Tag,
    ranks: Vec<Rank>,
    deadline: Instant,
    /// The oldest first.
    half_open: Vec<HalfOpen>,
    /// Out of descriptors: nobody is accepted before this.
    paused: Option<Instant>,
    refused: u64,
    events: mpsc::Sender<Event>,
    end: PipeReader,
}

impl Door {
    fn run(mut self) {
        while self.ranks.iter().any(|rank| !rank.is_here) && clock::now() < self.deadline {
            let Some(ready) = self.wait() else { return };
            self.advance(&ready[1..]);
            self.expire();
            if ready[0] {
                self.accept();
            }
        }
        let missing = (0..).zip(&self.ranks).filter(|(_, rank)| !rank.is_here).map(|(number, _)| number).collect();
        let Door { socket, half_open, events, refused, .. } = self;
        drop((socket, half_open));
        let _ = events.send(Event::Over { refused, missing });
    }

    /// Waits for something to do: whether someone knocks, and which of the half open have something to say. `None`: the lab has given up.
    fn wait(&self) -> Option<Vec<bool>> {
        let now = clock::now();
        let mut until = self.deadline;
        if let Some(oldest) = self.half_open.first() {
            let is_full = self.half_open.len() >= HALF_OPEN_MAX;
            let patience = oldest.since + PATIENCE;
            until = until.min(if is_full && patience > now { patience } else { oldest.since + OPENING_MAX });
        }
        let paused = self.paused.filter(|paused| *paused > now);
        until = until.min(paused.unwrap_or(until));
        let is_open = self.has_room(now) && paused.is_none();
        let knocks = if is_open { PollFlags::IN } else { PollFlags::empty() };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.socket.as_fd(), knocks),
        ];
        polled.extend(self.half_open.iter().map(|half_open| {
            let (stream, interest) = half_open.opening.interest();
            PollFd::from_borrowed_fd(stream, interest)
        }));
        let left = Timespec::try_from(until.saturating_duration_since(now)).ok();
        // What is interrupted finds nothing ready, and comes back.
        let _ = poll(&mut polled, left.as_ref());
        let ready = polled.iter().map(|polled| !polled.revents().is_empty()).collect::<Vec<_>>();
        (!ready[0]).then(|| ready[1..].to_vec())
    }

    /// Whether another connection may come in, if need be in the place of the oldest.
    fn has_room(&self, now: Instant) -> bool {
        self.half_open.len() < HALF_OPEN_MAX || self.half_open[0].since + PATIENCE <= now
    }

    fn accept(&mut self) {
        // No more at once, so that those who are here are heard in between.
        for _ in 0..HALF_OPEN_MAX {
            if !self.has_room(clock::now()) {
                return;
            }
            match self.socket.accept() {
                Ok((stream, from)) => self.greet(stream, from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => {
                    self.paused = Some(clock::now() + Duration::from_millis(100));
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
        let opening = ServerConnection::new(Arc::clone(&self.config)).map_err(|error| error.to_string());
        match opening.and_then(|tls| Opening::new(stream, tls).map_err(|error| error.to_string())) {
            Ok(opening) => self.half_open.push(HalfOpen { opening, from, since: clock::now() }),
            Err(why) => self.refuse(from, Why::Machine(why)),
        }
    }

    fn advance(&mut self, ready: &[bool]) {
        let all = std::mem::take(&mut self.half_open);
        for (mut half_open, is_ready) in all.into_iter().zip(ready) {
            if !is_ready {
                self.half_open.push(half_open);
                continue;
            }
            match half_open.opening.line::<Asked>() {
                Ok(None) => self.half_open.push(half_open),
                Ok(Some(Asked::Join(join))) => self.admit(half_open, &join),
                Err(broken) => self.turn_away(half_open, broken.into()),
            }
        }
    }

    fn expire(&mut self) {
        let now = clock::now();
        let slow = self.half_open.partition_point(|half_open| half_open.since + OPENING_MAX <= now);
        for half_open in self.half_open.drain(..slow).collect::<Vec<_>>() {
            self.turn_away(half_open, Why::Slow);
        }
    }

    fn admit(&mut self, half_open: HalfOpen, join: &Join) {
        let HalfOpen { mut opening, from, since } = half_open;
        if let Err(why) = self.check(join, from) {
            return self.turn_away(HalfOpen { opening, from, since }, why);
        }
        match opening.say(&Answer::Joined {}).and_then(|()| opening.pipes()) {
            Ok(pipes) => {
                self.ranks[join.rank as usize].is_here = true;
                // A lab that does not listen any more has closed the pipe that ends us.
                let _ = self.events.send(Event::Joined { rank: join.rank, from, pipes });
            }
            Err(error) => self.refuse(from, Why::Machine(error.to_string())),
        }
    }

    /// Whether a node may join. The ticket comes first: without it nobody learns which ranks there are.
    fn check(&mut self, join: &Join, from: SocketAddr) -> Result<(), Why> {
        hmac::verify(&self.key, join.ticket.as_bytes(), self.tag.as_ref()).map_err(|_| Why::Ticket)?;
        let rank = self.ranks.get_mut(join.rank as usize).ok_or(Why::Rank(join.rank))?;
        if rank.address.is_some_and(|address| address.to_canonical() != from.ip().to_canonical()) {
            return Err(Why::Address);
        }
        if rank.is_here {
            if !std::mem::replace(&mut rank.is_told, true) {
                let _ = self.events.send(Event::Twice { rank: join.rank, from });
            }
            return Err(Why::Twice(join.rank));
        }
        Ok(())
    }

    /// Refuses one, and tells it why where it can be told.
    fn turn_away(&mut self, half_open: HalfOpen, why: Why) {
        if half_open.opening.is_encrypted() {
            half_open.opening.close(&Answer::Refused(why.to_string()));
        }
        self.refuse(half_open.from, why);
    }

    fn refuse(&mut self, from: SocketAddr, why: Why) {
        if self.refused < REFUSALS_TOLD as u64 {
            let _ = self.events.send(Event::Refused(Refusal { from, why }));
        }
        self.refused += 1;
    }
}
