//! The connections of a worker: in what state each is, what is in flight on it, when it wakes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use net::{Conn, Nanos};
use study::spec::Connection;

use super::Task;
use crate::phase_tracker::PhaseTracker;
use crate::tls::Session;

/// Connections of one worker that are being opened at the same time, so that no accept queue overflows by our doing.
const CONNECTING_MAX: usize = 64;
/// First pause before a lost connection is opened again; it doubles up to the second figure, ns.
const BACKOFF_NS: (Nanos, Nanos) = (1_000_000, 100_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No connection. A timer or the queue of first connects will change that, or the next request where each has a
    /// connection of its own.
    Down,
    Connecting,
    /// Connected; the TLS handshake is on.
    Handshaking,
    /// Connected; requests may be in flight.
    Open,
    /// Connected, thinking; a timer ends it.
    Thinking,
    /// We closed; the driver has not let go yet.
    Closing,
}

/// A connection, and what belongs to it while it changes.
pub(super) struct Client<S> {
    pub(super) state: State,
    pub(super) conn: Option<Conn>,
    /// When its state began.
    pub(super) since: Nanos,
    /// Place of its oldest request in flight among its flights, and how many there are.
    head: u32,
    pub(super) in_flight: u32,
    pub(super) stream: S,
    pub(super) tls: Option<Box<Session>>,
    /// Its first connect has ended, well or not.
    settled: bool,
    pub(super) connected_before: bool,
    backoff_ns: Nanos,
    /// It is kept from connecting since its last connection was lost.
    backing_off: bool,
    /// When the one of its timers fires that still means something.
    wakes_at: Nanos,
    /// With think time: when its next request is due, whatever becomes of its connection until then. `None`: its first.
    pub(super) due_at: Option<Nanos>,
    /// The connection has ended as it should: the next one is asked for at once.
    pub(super) at_once: bool,
    /// Its connection has brought an answer.
    pub(super) served: bool,
    /// Requests of the connection before that are to be asked again on the next one: they are its oldest flights.
    pub(super) again: u32,
    /// The same, and what answers on that connection have caused.
    owed: u32,
    /// The beginning of what came on its connection while nothing was asked there.
    pub(super) unasked: Option<Box<str>>,
}

impl<S> Client<S> {
    /// Whether its requests in flight are written; one with a connection of its own waits for that first.
    pub(super) fn is_written(&self) -> bool {
        matches!(self.state, State::Open | State::Closing)
    }

    /// Where among its `depth` flights the one is that has `nth` older ones before it, fewer than `depth`.
    #[inline]
    fn place(&self, nth: u32, depth: u32) -> u32 {
        let place = self.head + nth;
        if place >= depth { place - depth } else { place }
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight<E> {
    pub(super) expected: E,
    /// When the timetable wanted it sent; in a closed loop when it was.
    pub(super) intended: Nanos,
    /// When there was room for it on its connection.
    pub(super) free_since: Nanos,
    /// When it was written, or its own connection asked for.
    pub(super) sent_at: Nanos,
    /// It was asked for the first time while measuring.
    pub(super) is_measured: bool,
    pub(super) timed_out: bool,
}

/// How many there are of something, times ns of the measured time.
#[derive(Default)]
pub(super) struct Integral {
    count: u64,
    since: Nanos,
    sum: u128,
}

impl Integral {
    /// How many there are, to be changed at `at`, up to which the sum is brought first; only the measured time counts.
    #[inline]
    fn count_at(&mut self, at: Nanos, phase: &PhaseTracker<'_>) -> &mut u64 {
        let from = self.since.max(phase.from);
        let until = at.min(phase.until);
        if until > from {
            self.sum += u128::from(self.count) * u128::from(until - from);
        }
        self.since = at;
        &mut self.count
    }

    /// The sum up to `at`.
    pub(super) fn sum(&mut self, at: Nanos, phase: &PhaseTracker<'_>) -> u128 {
        self.count_at(at, phase);
        self.sum
    }
}

/// The clients of a worker. It knows neither driver nor protocol.
pub(super) struct Connections<S, E> {
    pub(super) clients: Vec<Client<S>>,
    /// Requests in flight, `depth` places for each client, used in turn.
    flights: Vec<Flight<E>>,
    pub(super) depth: u32,
    /// Each request has a connection of its own.
    pub(super) per_request: bool,
    /// The client of each slot of the driver.
    by_slot: Vec<u32>,
    unconnected: VecDeque<u32>,
    connecting: usize,
    /// First connects that have ended, well or not.
    pub(super) settled: u32,
    /// Clients that ever had a connection.
    pub(super) reached: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When the worker does what need not be done at once, connects among it; 0: in this turn.
    pub(super) tick_at: Nanos,
    /// Open loop: room for a request on a client, and since when; the longest idle first.
    pub(super) idle: VecDeque<(u32, Nanos)>,
    /// Requests that wait for the next connection of their client.
    owed: u64,
    pub(super) in_flight: Integral,
    pub(super) in_backoff: Integral,
}

impl<S, E: Copy + Default> Connections<S, E> {
    pub(super) fn new(task: &Task<'_>, stream: impl Fn() -> S) -> Self {
        let (count, depth) = (task.clients as usize, task.spec.pipeline);
        let places = count * depth as usize;
        let client = || Client {
            state: State::Down,
            conn: None,
            since: 0,
            head: 0,
            in_flight: 0,
            stream: stream(),
            tls: None,
            settled: false,
            connected_before: false,
            backoff_ns: BACKOFF_NS.0,
            backing_off: false,
            wakes_at: 0,
            due_at: None,
            at_once: false,
            served: false,
            again: 0,
            owed: 0,
            unasked: None,
        };
        Self {
            clients: (0..count).map(|_| client()).collect(),
            flights: vec![Flight::default(); places],
            depth,
            per_request: task.spec.connection == Connection::PerRequest,
            by_slot: vec![u32::MAX; count],
            unconnected: (0..task.clients).collect(),
            connecting: 0,
            settled: 0,
            reached: 0,
            timers: BinaryHeap::new(),
            tick_at: 0,
            idle: VecDeque::with_capacity(if task.spec.arrivals.is_open() { places } else { 0 }),
            owed: 0,
            in_flight: Integral::default(),
            in_backoff: Integral::default(),
        }
    }

    #[inline]
    pub(super) fn client(&mut self, id: u32) -> &mut Client<S> {
        &mut self.clients[id as usize]
    }

    /// The client whose connection is `conn`.
    #[inline]
    pub(super) fn client_of(&self, conn: Conn) -> Option<u32> {
        let id = *self.by_slot.get(conn.index())?;
        let client = self.clients.get(id as usize)?;
        (client.conn == Some(conn)).then_some(id)
    }

    /// Whether a client waits for nothing but its next request.
    pub(super) fn is_free(&self, id: u32) -> bool {
        let client = &self.clients[id as usize];
        // Where each request has its own connection, one that could be reached needs none to be free.
        let stands = if self.per_request { State::Down } else { State::Open };
        client.state == stands && client.in_flight == 0 && client.connected_before
    }

    /// Whether no request waits for its answer, or for a connection on which it is asked again.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        self.in_flight.count == 0 && self.owed == 0
    }

    /// A client and its request in flight that has `nth` older ones before it.
    #[inline]
    pub(super) fn flight(&mut self, id: u32, nth: u32) -> (&mut Client<S>, &mut Flight<E>) {
        let client = &mut self.clients[id as usize];
        let place = id * self.depth + client.place(nth, self.depth);
        (client, &mut self.flights[place as usize])
    }

    /// The first `count` requests of a client, the oldest first.
    pub(super) fn flights(&self, id: u32, count: u32) -> impl Iterator<Item = &Flight<E>> {
        let client = &self.clients[id as usize];
        (0..count).map(move |nth| &self.flights[(id * self.depth + client.place(nth, self.depth)) as usize])
    }

    /// One more request is in flight, behind the others of its client.
    #[inline]
    pub(super) fn push(&mut self, id: u32, flight: Flight<E>, at: Nanos, phase: &PhaseTracker<'_>) {
        let client = &mut self.clients[id as usize];
        let place = id * self.depth + client.place(client.in_flight, self.depth);
        client.in_flight += 1;
        self.flights[place as usize] = flight;
        *self.in_flight.count_at(at, phase) += 1;
    }

    /// Removes the oldest request in flight of a client.
    #[inline]
    pub(super) fn pop(&mut self, id: u32, at: Nanos, phase: &PhaseTracker<'_>) {
        let client = &mut self.clients[id as usize];
        client.in_flight -= 1;
        client.head += 1;
        if client.head == self.depth {
            client.head = 0;
        }
        *self.in_flight.count_at(at, phase) -= 1;
    }

    /// The oldest request in flight of a client has its answer, right or wrong.
    #[inline]
    pub(super) fn answered(&mut self, id: u32, at: Nanos, phase: &PhaseTracker<'_>) {
        self.pop(id, at, phase);
        let client = self.client(id);
        client.backoff_ns = BACKOFF_NS.0;
        client.served = true;
    }

    /// What is in flight on this connection is owed no answer any more: it is asked again on the next one. `caused`: as for
    /// [`owe`](Self::owe).
    pub(super) fn put_off(&mut self, id: u32, caused: u32, at: Nanos, phase: &PhaseTracker<'_>) {
        // What has timed out was counted as that; those behind it were sent later.
        while self.client(id).in_flight > 0 && self.flight(id, 0).1.timed_out {
            self.pop(id, at, phase);
        }
        let count = self.client(id).in_flight;
        // They count as in flight from the write that is answered, as their latency does.
        let since = |flight: &Flight<E>| flight.sent_at.max(phase.from).min(at);
        let until = at.min(phase.until);
        let in_vain =
            self.flights(id, count).map(|flight| u128::from(until.saturating_sub(since(flight)))).sum::<u128>();
        *self.in_flight.count_at(at, phase) -= u64::from(count);
        self.in_flight.sum = self.in_flight.sum.saturating_sub(in_vain);
        self.client(id).in_flight = 0;
        self.client(id).again = count;
        self.owe(id, caused);
    }

    /// Remembers what waits for the next connection of a client. `caused`: requests that answers on this one have caused.
    pub(super) fn owe(&mut self, id: u32, caused: u32) {
        let client = &mut self.clients[id as usize];
        let owed = client.again + caused;
        self.owed += u64::from(owed);
        self.owed -= u64::from(std::mem::replace(&mut client.owed, owed));
    }

    /// How many requests are to be asked again on the connection that has come to stand; they wait no more.
    pub(super) fn take_again(&mut self, id: u32) -> u32 {
        let client = &mut self.clients[id as usize];
        self.owed -= u64::from(std::mem::take(&mut client.owed));
        std::mem::take(&mut client.again)
    }

    /// There is no room on this client any more.
    pub(super) fn forget_room(&mut self, id: u32) {
        self.idle.retain(|&(other, _)| other != id);
    }

    /// A client is to be connected as soon as there is room among those that connect.
    pub(super) fn queue(&mut self, id: u32) {
        self.unconnected.push_back(id);
        self.tick_at = 0;
    }

    /// The next client to connect, where there is room for one more.
    pub(super) fn next_unconnected(&mut self) -> Option<u32> {
        while self.connecting < CONNECTING_MAX {
            let id = self.unconnected.pop_front()?;
            if self.client(id).state == State::Down {
                return Some(id);
            }
        }
        None
    }

    /// `conn` is being opened for a client.
    pub(super) fn connects(&mut self, id: u32, conn: Conn, at: Nanos, phase: &PhaseTracker<'_>) {
        self.connecting += 1;
        self.by_slot[conn.index()] = id;
        let client = &mut self.clients[id as usize];
        if std::mem::take(&mut client.backing_off) {
            *self.in_backoff.count_at(at, phase) -= 1;
        }
        client.conn = Some(conn);
        client.state = State::Connecting;
        client.since = at;
    }

    /// A connect has ended, well or not.
    pub(super) fn connect_ended(&mut self) {
        self.connecting -= 1;
        if !self.unconnected.is_empty() {
            self.tick_at = 0; // Room for the next one.
        }
    }

    /// The connection of a client can be used; whether it is its first one.
    pub(super) fn stands(&mut self, id: u32, at: Nanos) -> bool {
        let client = &mut self.clients[id as usize];
        client.state = State::Open;
        client.since = at;
        client.served = false;
        client.unasked = None;
        let is_first = !std::mem::replace(&mut client.connected_before, true);
        self.reached += u32::from(is_first);
        self.settle(id);
        is_first
    }

    /// The first connect of a client has ended.
    pub(super) fn settle(&mut self, id: u32) {
        self.settled += u32::from(!std::mem::replace(&mut self.clients[id as usize].settled, true));
    }

    /// The next connection of a client is asked for after a while.
    pub(super) fn back_off(&mut self, id: u32, at: Nanos, phase: &PhaseTracker<'_>) {
        let client = &mut self.clients[id as usize];
        let wakes_at = at + client.backoff_ns;
        client.backoff_ns = (client.backoff_ns * 2).min(BACKOFF_NS.1);
        if !std::mem::replace(&mut client.backing_off, true) {
            *self.in_backoff.count_at(at, phase) += 1;
        }
        self.wake(id, wakes_at);
    }

    /// A client thinks until `wakes_at`.
    pub(super) fn think(&mut self, id: u32, wakes_at: Nanos) {
        self.client(id).state = State::Thinking;
        self.wake(id, wakes_at);
    }

    /// Whether a client that has just lost its connection needs none before its next request is due; a timer then opens one.
    pub(super) fn thinks_on(&mut self, id: u32, at: Nanos) -> bool {
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

    /// When the next timer fires, or the next tick comes.
    #[inline]
    pub(super) fn next_wake(&self) -> Nanos {
        self.timers.peek().map_or(self.tick_at, |&Reverse((at, _))| at.min(self.tick_at))
    }

    /// The client of the next timer that has fired by `now`, of those that still mean something.
    #[inline]
    pub(super) fn fired(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&Reverse((at, id))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            // Others are of a connection that is no more.
            if self.client(id).wakes_at == at {
                return Some(id);
            }
        }
        None
    }
}
