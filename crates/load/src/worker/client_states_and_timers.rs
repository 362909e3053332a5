//! The connections of a worker, with their states, requests in flight and timers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use net::{Conn, Nanos};
use study::spec::Connection;
use wire::http1::ResponseReader;

use super::Task;
use crate::coordinator_exchange::Tally;
use crate::recorder::{Flight, Wait};
use crate::tls::Session;

/// Maximum number of connects in progress per worker, limited so that no accept queue overflows.
const CONNECTING_MAX: usize = 64;
/// First and longest pause before a lost connection is reopened, ns. Each pause is twice as long as the previous one.
pub(super) const BACKOFF_NS: (Nanos, Nanos) = (1_000_000, 100_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No connection until a timer, the queue of first connects, or the next request opens one.
    Down,
    Connecting,
    /// Waiting until a proxy opens a tunnel to the server.
    Tunneling,
    Handshaking,
    /// Waiting until the protocol is ready for requests.
    Opening,
    Open,
    Thinking,
    /// Closed by the client, and not yet confirmed by the driver.
    Closing,
}

impl State {
    pub(super) fn is_connecting(self) -> bool {
        matches!(self, State::Connecting | State::Tunneling | State::Handshaking | State::Opening)
    }
}

pub(super) struct Client<S> {
    pub(super) state: State,
    pub(super) link: Link,
    pub(super) since: Nanos,
    /// Index of the client's oldest flight in its ring.
    head: u32,
    pub(super) in_flight: u32,
    pub(super) stream: S,
    /// Reader of the proxy's response to CONNECT, until it is complete.
    pub(super) tunnel: Option<Box<ResponseReader>>,
    settled: bool,
    pub(super) connected_before: bool,
    backoff_ns: Nanos,
    backing_off: bool,
    /// Time at which the client's timer expires; earlier timers are obsolete.
    wakes_at: Nanos,
    /// Due time of the next request, after the think time; `None` if the client is not waiting.
    pub(super) due_at: Option<Nanos>,
    /// Whether to reconnect at once, after an orderly close.
    pub(super) at_once: bool,
    /// Number of requests to send again, usually on the next connection. They follow the flights in the ring.
    pub(super) again: u32,
    /// Number of entries in [`Connections::idle`], for an unordered protocol in an open loop.
    pub(super) idle: u32,
    /// Number of requests in `again`, plus the number caused on the previous connection.
    owed: u32,
    /// First unsolicited bytes on this connection, escaped; `None` if there were none.
    pub(super) unsolicited: Option<Box<str>>,
    /// Idle connections to other servers, which the client has called before.
    others: Vec<Link>,
}

/// A client's connection to a server.
#[derive(Default)]
pub(super) struct Link {
    pub(super) server: u32,
    /// Handle of the connection; `None` before it opens and once it is lost.
    pub(super) conn: Option<Conn>,
    pub(super) tls: Option<Box<Session>>,
    /// Number of responses on this connection, up to `u32::MAX`.
    pub(super) answers: u32,
    /// Whether the next connection is the first to its server or follows one that ended after its planned requests.
    pub(super) by_plan: bool,
}

impl<S> Client<S> {
    /// Place in the ring of the request in flight with `nth` older requests; `nth` must be less than `depth`.
    fn place(&self, nth: u32, depth: u32) -> u32 {
        let place = self.head + nth;
        if place >= depth { place - depth } else { place }
    }
}

/// A number integrated over the measured time, in ns times the unit of the number.
#[derive(Default)]
pub(super) struct Integral {
    count: u64,
    since: Nanos,
    sum: u128,
}

impl Integral {
    /// Brings the integral up to `at`, for measured time only, and returns the number, which the caller may change.
    fn count_at(&mut self, at: Nanos, tally: &Tally<'_>) -> &mut u64 {
        let from = self.since.max(tally.recorder.from);
        let until = at.min(tally.until);
        if until > from {
            self.sum += u128::from(self.count) * u128::from(until - from);
        }
        self.since = at;
        &mut self.count
    }

    /// Removes requests that the server did not process from the integral, given their send times. As in latencies, a
    /// request counts only from the write that gets a response.
    fn forget(&mut self, sent_at: &[Nanos], at: Nanos, tally: &Tally<'_>) {
        let until = at.min(tally.until);
        let in_vain = |&sent_at: &Nanos| u128::from(until.saturating_sub(sent_at.max(tally.recorder.from).min(at)));
        let in_vain = sent_at.iter().map(in_vain).sum();
        *self.count_at(at, tally) -= sent_at.len() as u64;
        self.sum = self.sum.saturating_sub(in_vain);
    }

    pub(super) fn sum(&mut self, at: Nanos, tally: &Tally<'_>) -> u128 {
        self.count_at(at, tally);
        self.sum
    }
}

pub(super) struct Connections<S, E> {
    pub(super) clients: Vec<Client<S>>,
    /// Requests in flight, in a ring of `depth` entries per client.
    flights: Vec<Flight<E>>,
    pub(super) depth: u32,
    pub(super) per_request: bool,
    by_slot: Vec<u32>,
    others_max: usize,
    unconnected: VecDeque<u32>,
    connecting: usize,
    pub(super) settled: u32,
    pub(super) reached: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Time of the next housekeeping, ns; 0 for this turn.
    pub(super) tick_at: Nanos,
    /// Clients of an open loop with room for a request, since when each has had room, and why it had none before.
    pub(super) idle: VecDeque<(u32, Nanos, Wait)>,
    owed: u64,
    /// Requests that ended after the end of the load.
    pub(super) beyond: Vec<Flight<E>>,
    pub(super) in_flight: Integral,
    pub(super) in_backoff: Integral,
}

impl<S, E: Copy + Default> Connections<S, E> {
    pub(super) fn new(task: &Task<'_>, stream: impl Fn() -> S) -> Self {
        let (count, depth) = (task.clients as usize, task.spec.pipeline);
        let places = count * depth as usize;
        let client = || Client {
            state: State::Down,
            link: Link::default(),
            since: 0,
            head: 0,
            in_flight: 0,
            stream: stream(),
            tunnel: None,
            settled: false,
            connected_before: false,
            backoff_ns: BACKOFF_NS.0,
            backing_off: false,
            wakes_at: 0,
            due_at: None,
            at_once: false,
            again: 0,
            idle: 0,
            owed: 0,
            unsolicited: None,
            others: Vec::new(),
        };
        Self {
            clients: (0..count).map(|_| client()).collect(),
            flights: vec![Flight::default(); places],
            depth,
            per_request: task.spec.connection == Connection::PerRequest,
            by_slot: vec![u32::MAX; count * task.connections_per_client],
            others_max: task.connections_per_client - 1,
            unconnected: (0..task.clients).collect(),
            connecting: 0,
            settled: 0,
            reached: 0,
            timers: BinaryHeap::new(),
            tick_at: 0,
            idle: VecDeque::with_capacity(if task.spec.arrivals.is_open() { places } else { 0 }),
            owed: 0,
            beyond: Vec::new(),
            in_flight: Integral::default(),
            in_backoff: Integral::default(),
        }
    }

    pub(super) fn client(&mut self, id: u32) -> &mut Client<S> {
        &mut self.clients[id as usize]
    }

    pub(super) fn client_of(&self, conn: Conn) -> Option<u32> {
        let id = *self.by_slot.get(conn.index())?;
        let client = self.clients.get(id as usize)?;
        (client.link.conn == Some(conn)).then_some(id)
    }

    /// The parked connection with this handle, and the client that has parked it.
    pub(super) fn parked(&mut self, conn: Conn) -> Option<(u32, &mut Link)> {
        let id = *self.by_slot.get(conn.index())?;
        let mut others = self.clients.get_mut(id as usize)?.others.iter_mut();
        others.find(|other| other.conn == Some(conn)).map(|other| (id, other))
    }

    /// Parks a client's connection; resumes the one to `server`, if any. Returns one to close if too many are parked.
    pub(super) fn switch(&mut self, id: u32, server: u32) -> Option<Conn> {
        let client = &mut self.clients[id as usize];
        let known = client.others.iter().position(|other| other.server == server);
        let new = Link { server, by_plan: true, ..Link::default() };
        let next = known.map_or(new, |at| client.others.remove(at));
        client.state = if next.conn.is_some() { State::Open } else { State::Down };
        client.others.push(std::mem::replace(&mut client.link, next));
        let is_full = client.others.iter().filter(|other| other.conn.is_some()).count() > self.others_max;
        client.others.iter().find_map(|other| other.conn).filter(|_| is_full)
    }

    pub(super) fn is_free(&self, id: u32) -> bool {
        let client = &self.clients[id as usize];
        // With a connection per request, an idle client has no connection, but it must have reached the server before.
        let stands = if self.per_request { State::Down } else { State::Open };
        client.state == stands && client.in_flight == 0 && client.connected_before
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.in_flight.count == 0 && self.owed == 0
    }

    pub(super) fn flight(&mut self, id: u32, nth: u32) -> (&mut Client<S>, &mut Flight<E>) {
        let client = &mut self.clients[id as usize];
        let place = id * self.depth + client.place(nth, self.depth);
        (client, &mut self.flights[place as usize])
    }

    pub(super) fn flights(&self, id: u32, nths: Range<u32>) -> impl Iterator<Item = &Flight<E>> {
        let client = &self.clients[id as usize];
        nths.map(move |nth| &self.flights[(id * self.depth + client.place(nth, self.depth)) as usize])
    }

    pub(super) fn push(&mut self, id: u32, flight: Flight<E>, at: Nanos, tally: &Tally<'_>) {
        let client = &mut self.clients[id as usize];
        let place = id * self.depth + client.place(client.in_flight, self.depth);
        client.in_flight += 1;
        self.flights[place as usize] = flight;
        *self.in_flight.count_at(at, tally) += 1;
    }

    pub(super) fn pop(&mut self, id: u32, at: Nanos, tally: &Tally<'_>) {
        let client = &mut self.clients[id as usize];
        client.in_flight -= 1;
        client.head += 1;
        if client.head == self.depth {
            client.head = 0;
        }
        *self.in_flight.count_at(at, tally) -= 1;
    }

    /// Removes a request of an unordered protocol. The last request takes its place.
    pub(super) fn remove(&mut self, id: u32, place: u32, at: Nanos, tally: &Tally<'_>) {
        let client = &mut self.clients[id as usize];
        client.in_flight -= 1;
        let of_client = &mut self.flights[(id * self.depth) as usize..][..self.depth as usize];
        let (last, last_again) = (client.in_flight as usize, (client.in_flight + client.again) as usize);
        of_client[place as usize] = of_client[last];
        // The requests to send again must directly follow the requests in flight.
        of_client[last] = of_client[last_again];
        *self.in_flight.count_at(at, tally) -= 1;
    }

    /// Queues a request of an unordered protocol that the server did not process, unless it was counted as a timeout.
    pub(super) fn defer(&mut self, id: u32, place: u32, at: Nanos, tally: &Tally<'_>) {
        let flight = *self.flight(id, place).1;
        if flight.timed_out {
            return self.remove(id, place, at, tally);
        }
        self.in_flight.forget(&[flight.sent_at], at, tally);
        let client = &mut self.clients[id as usize];
        client.in_flight -= 1;
        client.again += 1;
        let start = id * self.depth;
        self.flights.swap((start + place) as usize, (start + client.in_flight) as usize);
        self.owe(id, 0);
    }

    pub(super) fn answered(&mut self, id: u32) {
        let client = self.client(id);
        client.backoff_ns = BACKOFF_NS.0;
        client.link.answers = client.link.answers.saturating_add(1);
    }

    pub(super) fn move_to_next_connection(&mut self, id: u32, caused: u32, at: Nanos, tally: &Tally<'_>) {
        // Timed-out requests are the oldest and have already been counted.
        while self.client(id).in_flight > 0 && self.flight(id, 0).1.timed_out {
            self.pop(id, at, tally);
        }
        let count = self.client(id).in_flight;
        let sent_at = self.flights(id, 0..count).map(|flight| flight.sent_at).collect::<Vec<_>>();
        self.in_flight.forget(&sent_at, at, tally);
        self.client(id).in_flight = 0;
        self.client(id).again += count;
        self.owe(id, caused);
    }

    pub(super) fn owe(&mut self, id: u32, caused: u32) {
        let client = &mut self.clients[id as usize];
        let owed = client.again + caused;
        self.owed += u64::from(owed);
        self.owed -= u64::from(std::mem::replace(&mut client.owed, owed));
    }

    pub(super) fn not_idle(&mut self, id: u32) {
        self.idle.retain(|&(other, ..)| other != id);
        self.client(id).idle = 0;
    }

    pub(super) fn queue(&mut self, id: u32) {
        self.unconnected.push_back(id);
        self.tick_at = 0;
    }

    pub(super) fn next_unconnected(&mut self) -> Option<u32> {
        while self.connecting < CONNECTING_MAX {
            let id = self.unconnected.pop_front()?;
            if self.client(id).state == State::Down {
                return Some(id);
            }
        }
        None
    }

    pub(super) fn connects(&mut self, id: u32, conn: Conn, at: Nanos, tally: &Tally<'_>) {
        self.connecting += 1;
        self.by_slot[conn.index()] = id;
        let client = &mut self.clients[id as usize];
        if std::mem::take(&mut client.backing_off) {
            *self.in_backoff.count_at(at, tally) -= 1;
        }
        client.link.conn = Some(conn);
        client.state = State::Connecting;
        client.since = at;
    }

    pub(super) fn connect_ended(&mut self) {
        self.connecting -= 1;
        if !self.unconnected.is_empty() {
            self.tick_at = 0; // There is room for the next connect.
        }
    }

    pub(super) fn established(&mut self, id: u32, at: Nanos) -> bool {
        let client = &mut self.clients[id as usize];
        client.state = State::Open;
        client.since = at;
        client.link.answers = 0;
        client.unsolicited = None;
        let is_first = !std::mem::replace(&mut client.connected_before, true);
        self.reached += u32::from(is_first);
        self.settle(id);
        is_first
    }

    pub(super) fn settle(&mut self, id: u32) {
        self.settled += u32::from(!std::mem::replace(&mut self.clients[id as usize].settled, true));
    }

    pub(super) fn back_off(&mut self, id: u32, at: Nanos, tally: &Tally<'_>) {
        let client = &mut self.clients[id as usize];
        let wakes_at = at + client.backoff_ns;
        client.backoff_ns = (client.backoff_ns * 2).min(BACKOFF_NS.1);
        if !std::mem::replace(&mut client.backing_off, true) {
            *self.in_backoff.count_at(at, tally) += 1;
        }
        self.wake(id, wakes_at);
    }

    pub(super) fn think(&mut self, id: u32, wakes_at: Nanos) {
        self.client(id).state = State::Thinking;
        self.wake(id, wakes_at);
    }

    /// Whether the client needs no connection until its next request is due.
    pub(super) fn waits_for_think_time(&mut self, id: u32, at: Nanos) -> bool {
        let client = self.client(id);
        let Some(due) = client.due_at.filter(|due| *due > at && client.owed == 0) else { return false };
        self.wake(id, due);
        true
    }

    fn wake(&mut self, id: u32, at: Nanos) {
        if std::mem::replace(&mut self.client(id).wakes_at, at) != at {
            self.timers.push(Reverse((at, id)));
        }
    }

    pub(super) fn next_wake(&self) -> Nanos {
        self.timers.peek().map_or(self.tick_at, |&Reverse((at, _))| at.min(self.tick_at))
    }

    pub(super) fn fired(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&Reverse((at, id))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            // Any other timer belongs to an earlier connection.
            if self.client(id).wakes_at == at {
                return Some(id);
            }
        }
        None
    }
}
