//! A simulated network with a virtual clock and a seed, for tests of whole engines. With equal seeds, a test has equal
//! events, to the nanosecond. A test defines servers ([`Sim::serve`]) and clients that connect to the driver
//! ([`Sim::client`]). A driver can also connect to itself. Time advances only in [`Driver::turn`](crate::Driver::turn).
//!
//! ```
//! use net::sim::{Network, Sim, ready_made_peers};
//! use net::{Config, Driver, Event};
//!
//! let config =
//!     Config { connections: 1, receive_bytes: 4096, send_bytes_max: 4096, pause_reads_above_bytes: usize::MAX };
//! let mut driver = Sim::new(7, &config, Network::PERFECT);
//! let address = "10.0.0.1:7".parse().unwrap();
//! driver.serve(address, |_| ready_made_peers::ping_pong(|_| 1_000).into());
//!
//! let conn = driver.connect(&address.into()).unwrap();
//! driver.turn(None).unwrap();
//! assert!(matches!(driver.next_event(), Some(Event::Connected(_))));
//! assert_eq!(driver.now(), 10_000);
//! driver.send(conn, &[0, 0, 0, 1]).unwrap();
//! driver.turn(None).unwrap();
//! let Some(Event::Data(_, data)) = driver.next_event() else { panic!() };
//! assert_eq!(driver.bytes(data), [0, 0, 0, 2]);
//! assert_eq!(driver.now(), 21_000);
//! ```

mod connection_end;
mod driver;
mod network_parameters;
mod peer;
pub mod ready_made_peers;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

pub use self::network_parameters::Network;
pub use self::peer::{Actions, Answer, Peer};

use self::connection_end::{End, Owner, Phase, pop};
use self::network_parameters::Dice;
use self::peer::Action;
use crate::connection_slots::Slots;
use crate::driver::{CloseReason, Config, Conn, Event, Nanos};

/// Timeout of an unanswered connect, in ns. Linux takes this long for its default of six retries.
pub const CONNECT_TIMEOUT_NS: Nanos = 127_000_000_000;
/// Delay in ns, as in Linux, before the first retry of a connect that found the queue full.
const CONNECT_AGAIN_NS: Nanos = 1_000_000_000;

/// A driver for a simulated network; see the [module](self).
pub struct Sim {
    config: Config,
    network: Network,
    dice: Dice,
    now: Nanos,
    /// Scheduled changes, sorted by time and then by the order of scheduling, which `written` counts.
    agenda: BTreeMap<(Nanos, u64), Change>,
    written: u64,
    /// Both ends of each connection: 0 is the connecting side, 1 the accepting side.
    links: Vec<Option<[End; 2]>>,
    /// Link and side of each connection of the driver. A link without ends belongs to a finished connection.
    connections: Slots<(usize, usize)>,
    listeners: Vec<Option<Listening>>,
    port_next: u16,
    services: Vec<Service>,
    notes: VecDeque<Note>,
    received: Vec<u8>,
}

struct Listening {
    address: SocketAddr,
    backlog: usize,
    queue: VecDeque<usize>,
}

struct Service {
    address: SocketAddr,
    accepted: u64,
    answer: Box<dyn FnMut(u64) -> Answer>,
}

enum Note {
    Event(Event),
    Readable(Conn),
    Sent(Conn),
    Accept(u32),
}
type Change = Box<dyn FnOnce(&mut Sim)>;

impl Sim {
    /// Creates a driver whose clock is at zero, in an empty network.
    pub fn new(seed: u64, config: &Config, network: Network) -> Self {
        Self {
            connections: Slots::new(config.connections),
            config: config.clone(),
            network,
            dice: Dice(seed),
            now: 0,
            agenda: BTreeMap::new(),
            written: 0,
            links: Vec::new(),
            listeners: Vec::new(),
            port_next: 40_000,
            services: Vec::new(),
            notes: VecDeque::new(),
            received: Vec::new(),
        }
    }

    /// Defines the server at `address`. `answer` gets the index of each connection. Other addresses refuse connections.
    pub fn serve(&mut self, address: SocketAddr, answer: impl FnMut(u64) -> Answer + 'static) {
        self.services.retain(|service| service.address != address);
        self.services.push(Service { address, accepted: 0, answer: Box::new(answer) });
    }

    /// Lets `peer` connect to the driver's listener on `address`, at time `at` (ns) or later.
    pub fn client(&mut self, address: SocketAddr, at: Nanos, peer: impl Peer + 'static) {
        let link = self.link(Owner::Peer(Box::new(peer)));
        self.put(at.max(self.now), move |sim| sim.travel(link, 0, move |sim| sim.connect_arrives(link, address, 0)));
    }

    fn link(&mut self, who: Owner) -> usize {
        self.links.push(Some([End { who, ..End::default() }, End::default()]));
        self.links.len() - 1
    }

    fn put(&mut self, at: Nanos, change: impl FnOnce(&mut Sim) + 'static) {
        self.agenda.insert((at, self.written), Box::new(change));
        self.written += 1;
    }

    fn end(&mut self, link: usize, side: usize) -> Option<&mut End> {
        Some(&mut self.links[link].as_mut()?[side])
    }

    /// The driver's end of a connection, with its link and side.
    fn end_of(&mut self, conn: Conn) -> Option<(usize, usize, &mut End)> {
        let &mut (link, side) = self.connections.get_mut(conn)?;
        Some((link, side, self.end(link, side)?))
    }

    /// Schedules an arrival at the other end, after everything that `side` has already sent.
    fn travel(&mut self, link: usize, side: usize, arrive: impl FnOnce(&mut Sim) + 'static) {
        let delay = self.dice.within(&self.network.delay_ns);
        let now = self.now;
        let Some(end) = self.end(link, side) else { return };
        end.arrives = end.arrives.max(now + delay);
        let at = end.arrives;
        self.put(at, arrive);
    }

    fn reset(&mut self, link: usize, side: usize) {
        self.travel(link, side, move |sim| sim.reset_arrives(link, 1 - side));
    }

    fn pump(&mut self, link: usize, side: usize) {
        let to = 1 - side;
        loop {
            let most = self.dice.within_usize(&self.network.segment_bytes).max(1);
            let (window, lost) = (self.network.window_bytes, self.dice.happens(self.network.reset_share));
            let Some(end) = self.end(link, side) else { return };
            let count = most.min(window.saturating_sub(end.in_flight)).min(end.outgoing.len());
            if !end.stands || count == 0 {
                break;
            }
            let bytes = pop(&mut end.outgoing, count);
            end.in_flight += count;
            if lost {
                self.reset(link, to);
                self.reset(link, side);
            } else {
                self.travel(link, side, move |sim| sim.bytes_arrive(link, to, &bytes));
            }
        }
        let Some(end) = self.end(link, side) else { return };
        if end.stands && end.outgoing.is_empty() && end.end_wanted && !end.end_sent {
            end.end_sent = true;
            self.travel(link, side, move |sim| sim.end_arrives(link, to));
        }
    }

    fn connect_arrives(&mut self, link: usize, address: SocketAddr, tries: u32) {
        if self.links[link].is_none() {
            return; // The connect was abandoned.
        }
        let listening = |place: &Option<Listening>| place.as_ref().is_some_and(|l| l.address == address);
        if let Some(index) = self.listeners.iter().position(listening) {
            let listening = self.listeners[index].as_mut().expect("just found");
            if listening.queue.len() >= listening.backlog {
                return self.put(self.now + (CONNECT_AGAIN_NS << tries), move |sim| match tries {
                    0..6 => sim.connect_arrives(link, address, tries + 1),
                    _ => sim.failed(link, CloseReason::TimedOut),
                });
            }
            listening.queue.push_back(link);
            self.notes.push_back(Note::Accept(index as u32));
            self.establish(link, 1);
            return self.travel(link, 1, move |sim| sim.connected(link));
        }
        let answer = match self.services.iter_mut().find(|service| service.address == address) {
            Some(service) => {
                service.accepted += 1;
                (service.answer)(service.accepted - 1)
            }
            None => Answer::Refuse,
        };
        match answer {
            Answer::Accept(peer) => {
                self.establish(link, 1);
                self.travel(link, 1, move |sim| sim.connected(link));
                if let Some(end) = self.end(link, 1) {
                    end.who = Owner::Peer(peer);
                }
                self.tell(link, 1, |peer, now, to| peer.on_connect(now, to));
            }
            Answer::Refuse => self.travel(link, 1, move |sim| sim.failed(link, CloseReason::Refused)),
            Answer::Ignore => {
                self.put(self.now + CONNECT_TIMEOUT_NS, move |sim| sim.failed(link, CloseReason::TimedOut));
            }
        }
    }

    fn establish(&mut self, link: usize, side: usize) {
        if let Some(end) = self.end(link, side) {
            end.stands = true;
        }
    }

    fn connected(&mut self, link: usize) {
        self.establish(link, 0);
        let Some(end) = self.end(link, 0) else { return };
        match end.who {
            Owner::Driver(conn) => {
                if end.phase == Phase::Connecting {
                    end.phase = Phase::Open;
                    self.notes.push_back(Note::Event(Event::Connected(conn)));
                }
                self.pump(link, 0);
                self.note_sent(conn);
                self.close_if_sent(conn);
            }
            Owner::Gone => self.reset(link, 0),
            _ => self.tell(link, 0, |peer, now, to| peer.on_connect(now, to)),
        }
    }

    fn failed(&mut self, link: usize, reason: CloseReason) {
        let Some(end) = self.end(link, 0) else { return };
        if let Owner::Driver(conn) = end.who {
            self.finish(conn, reason);
        }
        self.peer_leaves(link, 0, true);
        self.links[link] = None;
    }

    fn bytes_arrive(&mut self, link: usize, to: usize, bytes: &[u8]) {
        let Some(end) = self.end(link, to) else { return };
        if matches!(end.who, Owner::Gone) {
            return self.reset(link, to);
        }
        if end.reset_arrived {
            return; // Nothing arrives after a reset or after lost bytes.
        }
        end.inbox.extend(bytes);
        self.take(link, to);
    }

    fn end_arrives(&mut self, link: usize, to: usize) {
        let Some(end) = self.end(link, to) else { return };
        end.end_arrived = !end.reset_arrived;
        self.take(link, to);
    }

    fn reset_arrives(&mut self, link: usize, to: usize) {
        let Some(end) = self.end(link, to) else { return };
        end.reset_arrived = true;
        end.outgoing.clear();
        if let Owner::Driver(conn) = end.who
            && end.phase == Phase::Closing
        {
            return self.finish(conn, CloseReason::Local);
        }
        self.take(link, to);
    }

    /// Delivers arrived data: to a peer at once, to a driver when it takes events.
    fn take(&mut self, link: usize, side: usize) {
        let now = self.now;
        let Some(end) = self.end(link, side) else { return };
        match end.who {
            Owner::Driver(conn) => self.note(conn),
            Owner::Peer(_) if end.stalled_until <= now || end.reset_arrived => self.peer_takes(link, side),
            _ => {}
        }
    }

    fn peer_takes(&mut self, link: usize, side: usize) {
        let Some(end) = self.end(link, side) else { return };
        if !end.inbox.is_empty() {
            let bytes = Vec::from(std::mem::take(&mut end.inbox));
            self.taken(link, side, bytes.len());
            self.tell(link, side, |peer, now, to| peer.on_data(&bytes, now, to));
        }
        let Some(end) = self.end(link, side) else { return };
        if end.reset_arrived {
            return self.peer_leaves(link, side, true);
        }
        if end.end_arrived && !end.end_told {
            end.end_told = true;
            self.tell(link, side, |peer, now, to| peer.on_end_of_stream(now, to));
            self.peer_leaves_if_done(link, side);
        }
    }

    fn taken(&mut self, link: usize, side: usize, count: usize) {
        let Some(other) = self.end(link, 1 - side) else { return };
        other.in_flight -= count;
        let is_driver = if let Owner::Driver(conn) = other.who { Some(conn) } else { None };
        self.pump(link, 1 - side);
        if let Some(conn) = is_driver {
            self.note(conn); // Its reads may have been paused until now.
            self.note_sent(conn);
            self.close_if_sent(conn);
        }
    }

    fn peer_leaves_if_done(&mut self, link: usize, side: usize) {
        if self.end(link, side).is_some_and(|end| end.end_told && end.end_sent) {
            self.peer_leaves(link, side, false);
        }
    }

    fn peer_leaves(&mut self, link: usize, side: usize, reset: bool) {
        let now = self.now;
        let Some(end) = self.end(link, side) else { return };
        if let Owner::Peer(mut peer) = std::mem::replace(&mut end.who, Owner::Gone) {
            peer.on_closed(reset, now);
        }
        self.drop_if_gone(link);
    }

    fn drop_if_gone(&mut self, link: usize) {
        if self.links[link].iter().flatten().all(|end| matches!(end.who, Owner::Gone)) {
            self.links[link] = None;
        }
    }

    fn tell(&mut self, link: usize, side: usize, say: impl FnOnce(&mut dyn Peer, Nanos, &mut Actions)) {
        let now = self.now;
        let mut actions = Actions::default();
        if let Some(End { who: Owner::Peer(peer), .. }) = self.end(link, side) {
            say(peer.as_mut(), now, &mut actions);
        }
        for (after, action) in actions.0 {
            if after == 0 {
                self.act(link, side, action);
            } else {
                self.put(now + after, move |sim| sim.act(link, side, action));
            }
        }
    }

    fn act(&mut self, link: usize, side: usize, action: Action) {
        let now = self.now;
        let Some(end) = self.end(link, side) else { return };
        if !matches!(end.who, Owner::Peer(_)) {
            return; // The peer has left.
        }
        match action {
            Action::Send(bytes) => {
                if !end.end_wanted {
                    end.outgoing.extend(bytes);
                    self.pump(link, side);
                }
            }
            Action::EndOfStream => {
                end.end_wanted = true;
                self.pump(link, side);
                self.peer_leaves_if_done(link, side);
            }
            Action::Reset => {
                self.reset(link, side);
                self.peer_leaves(link, side, true);
            }
            Action::Stall(span) => {
                end.stalled_until = end.stalled_until.max(now + span);
                let at = end.stalled_until;
                self.put(at, move |sim| sim.take(link, side));
            }
            Action::Wake => self.tell(link, side, |peer, now, to| peer.on_wake(now, to)),
        }
    }
}
