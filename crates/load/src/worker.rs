//! A worker: a driver with its connections and budget, and a single loop for all protocols, arrivals and stop rules.

mod budget;
mod client_states_and_timers;
mod connection_lifecycle;
mod request_outcomes;

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use net::{Conn, Data, Driver, Event, Nanos};
use stats::Rng;
use study::load_shape;
use study::record;
use study::spec::{Connection, LoadSpec};

use self::budget::Budget;
use self::client_states_and_timers::{Connections, State};
use crate::censored_waits::{Stalls, Waits};
use crate::coordinator::{Control, NEVER};
use crate::coordinator_exchange::{Tally, Usage};
use crate::protocol::{Answer, Parsed, Protocol};
use crate::recorder::{Flight, Recorder, Slowest, Wait};
use crate::server_endpoint::Server;
use crate::tls::Session;

/// Maximum interval between checks of the clock and of [`Control`], ns.
const TICK_NS: Nanos = 10_000_000;
const ROUND_TICK_NS: Nanos = 200_000;
/// Interval at which a client without a turn in the warm-up checks whether measuring has started, ns.
const WARMUP_POLL_NS: Nanos = 10_000_000;
/// Maximum number of times that a connection is read per event, so that others and timers do not wait.
const BURSTS_MAX: u32 = 4;

#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) server: Server,
    pub(crate) index: u32,
    pub(crate) workers: u32,
    pub(crate) place: u32,
    pub(crate) clients: u32,
    pub(crate) control: &'a Control,
    pub(crate) connections_per_client: usize,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) recorder: Recorder,
    pub(crate) resources: record::Worker,
    /// Number of requests in flight, integrated over time, in request-ns.
    pub(crate) flight_integral: u128,
    pub(crate) backoff_integral: u128,
    pub(crate) waits: Waits,
    /// Number of operations with recorded gaps that were scheduled while measuring.
    pub(crate) due: u64,
}

#[derive(Clone, Copy)]
enum Source {
    Driver(Data),
    Plain,
}

struct Worker<'a, D, P: Protocol> {
    task: Task<'a>,
    driver: &'a mut D,
    protocol: P,
    rng: Rng,
    connections: Connections<P::Stream, P::Expected>,
    budget: Budget,
    tally: Tally<'a>,
    out: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
    scan_at: Nanos,
    turns: u64,
    turns_before: u64,
    spin_ns: Nanos,
    stalls: Stalls,
    /// Number of responses in the data read last.
    burst: u32,
}

/// Runs the worker. A simulation steps the coordinator in `on_turn`, called every turn. Fails only if the driver fails.
pub(crate) fn run<D: Driver, P: Protocol>(
    task: Task<'_>,
    driver: &mut D,
    protocol: P,
    usage: impl Fn() -> Usage,
    mut on_turn: impl FnMut(Nanos),
) -> io::Result<Done> {
    let mut worker = Worker {
        rng: Rng::stream(task.spec.seed, u64::from(task.index) * 2),
        connections: Connections::new(&task, || protocol.stream()),
        budget: Budget::new(&task),
        tally: Tally::new(task.spec, task.control, task.place),
        out: Vec::new(),
        plain: Vec::new(),
        cipher: Vec::new(),
        scan_at: 0,
        turns: 0,
        turns_before: 0,
        spin_ns: 0,
        stalls: Stalls::default(),
        burst: 0,
        driver,
        protocol,
        task,
    };
    if worker.protocol.mix(P::Expected::default()).is_some_and(|(mix, _)| mix.has_traces()) {
        worker.tally.recorder.slowest = Some(Slowest::default());
    }
    let mut now = worker.driver.now();
    worker.housekeep(now);
    loop {
        let wake = worker.next_wake(now);
        let spinning = wake == now;
        worker.driver.turn(Some(wake))?;
        worker.turns += 1;
        let before = std::mem::replace(&mut now, worker.driver.now());
        worker.stalls.record_wake(wake, now);
        on_turn(now);
        if worker.observe(now, &usage) {
            return Ok(worker.done(now, usage()));
        }
        let mut events = 0;
        while let Some(event) = worker.driver.next_event() {
            events += 1;
            worker.handle(event);
        }
        if spinning && events == 0 && worker.tally.is_measuring {
            worker.spin_ns += now - before;
        }
        worker.fire_timers(now);
        worker.send_due();
        if worker.connections.is_at_rest() {
            worker.budget.report_spent(&worker.tally);
        }
        if now >= worker.connections.tick_at {
            worker.housekeep(now);
        }
    }
}

impl<D: Driver, P: Protocol> Worker<'_, D, P> {
    fn next_wake(&self, now: Nanos) -> Nanos {
        let mut wake = self.connections.next_wake();
        if !self.connections.idle.is_empty()
            && let Some(due) = self.budget.next_due()
        {
            wake = wake.min(due.saturating_sub(self.task.spec.spin_ns));
        }
        wake.max(now)
    }

    fn observe(&mut self, now: Nanos, usage: &impl Fn() -> Usage) -> bool {
        let control = self.task.control;
        if self.tally.begins_measuring(now, usage) {
            self.turns_before = self.turns;
            if self.budget.begin_measuring(&self.task, self.tally.recorder.from, &mut self.protocol) {
                self.all_go_on(now, self.connections.depth);
            }
        }
        // This follows the checks above, so that without a warm-up the first request is already measured.
        if !self.budget.has_started && now >= control.start.load(Acquire) {
            self.start();
        }
        self.tally.until = control.until.load(Relaxed);
        if control.has_rounds && self.budget.has_started && self.budget.begins_round(control) {
            self.all_go_on(now, 1);
        }
        now >= self.tally.until
    }

    fn start(&mut self) {
        let control = self.task.control;
        if !self.tally.is_measuring
            && let Some(cache) = &mut self.tally.recorder.cache
        {
            cache.window_end = control.start.load(Relaxed) + control.window_ns;
        }
        self.budget.start(&self.task, &mut self.protocol);
        // With rounds, clients do not send until the first round starts.
        if !control.has_rounds {
            self.all_go_on(self.driver.now(), self.connections.depth);
        }
    }

    /// Lets clients that only wait for their next request send up to `room` requests each.
    fn all_go_on(&mut self, now: Nanos, room: u32) {
        for id in 0..self.task.clients {
            if self.connections.is_free(id) {
                self.go_on(id, now, room);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Data(conn, data) => {
                let Some(id) = self.connections.client_of(conn) else { return self.parked_data(conn, data) };
                let mut next = Some(self.received(data));
                let mut bursts = 0;
                while let Some((data, at)) = next {
                    if self.connections.client(id).link.tls.is_some() {
                        self.decrypt(id, data, at);
                    } else {
                        self.read(id, Source::Driver(data), at);
                    }
                    bursts += 1;
                    let answers = std::mem::take(&mut self.burst);
                    next = if bursts < BURSTS_MAX { self.receive_more(id, answers) } else { None };
                }
            }
            Event::Connected(conn) => self.connected(conn),
            Event::EndOfStream(conn) => self.end_of_stream(conn),
            Event::Closed(conn, reason) => self.closed(conn, reason),
            // Clients do not listen, never request write completions and share no waker.
            Event::Accepted(..) | Event::Sent(_) | Event::Woken => {}
        }
    }

    fn received(&mut self, data: Data) -> (Data, Nanos) {
        self.tally.recorder.received_bytes += self.tally.measured(self.driver.bytes(data).len());
        (data, self.driver.now())
    }

    /// Receives the data that has arrived since the last event, if the connection waits for most of its responses.
    /// Otherwise, a server that writes each response by itself would cause one wake-up and one write per response.
    fn receive_more(&mut self, id: u32, answers: u32) -> Option<(Data, Nanos)> {
        if answers == 0 || answers > self.connections.depth / 2 {
            return None;
        }
        let data = self.driver.receive_more(self.connections.client(id).link.conn?)?;
        Some(self.received(data))
    }

    fn read(&mut self, id: u32, mut source: Source, mut at: Nanos) {
        let mut offset = 0;
        let mut answers = 0;
        loop {
            let (client, flight) = self.connections.flight(id, 0);
            let expected = flight.expected;
            let bytes = match source {
                Source::Driver(data) => &self.driver.bytes(data)[offset..],
                Source::Plain => &self.plain[offset..],
            };
            if bytes.is_empty() {
                // Requests that replace these responses wait for more, to be sent together.
                if let Source::Driver(_) = source
                    && let Some((data, now)) = self.receive_more(id, answers)
                {
                    (source, offset, at) = (Source::Driver(data), 0, now);
                    continue;
                }
                break;
            }
            match client.state {
                State::Open | State::Opening | State::Thinking if !P::ORDERED => {}
                State::Open if client.in_flight > 0 && client.unsolicited.is_none() => {}
                State::Open if client.in_flight > 0 => return self.reject_unsolicited(id, at),
                State::Closing => return,
                State::Tunneling if let Source::Driver(data) = source => return self.tunnel_data(id, data, at),
                _ => {
                    client.unsolicited.get_or_insert_with(|| escaped_start(bytes).into());
                    break;
                }
            }
            match self.protocol.read(&mut client.stream, expected, bytes, at) {
                Parsed::More => offset += bytes.len(),
                Parsed::Answer(answer) => {
                    offset += answer.used;
                    answers += 1;
                    self.answered(id, &answer, at);
                    if answer.is_last {
                        return self.end_after_last(id, at);
                    }
                    if self.ends_by_plan(id, at) {
                        return;
                    }
                }
                Parsed::Refused { used, place } => {
                    offset += used;
                    answers += 1;
                    self.declined(id, place, at);
                    if self.connections.per_request {
                        return self.close_in_order(id, None, at);
                    }
                }
                Parsed::Changed { used } => {
                    offset += used;
                    answers += 1;
                    let stream = &mut client.stream;
                    if let Some(streams) = &mut self.tally.recorder.streams {
                        let limit = self.protocol.server_limit(stream);
                        streams.counts.allowed = streams.counts.allowed.into_iter().chain([limit]).min();
                    }
                    if self.protocol.is_leaving(stream) {
                        self.leave(id, at);
                    } else if client.state == State::Opening && self.protocol.is_ready(stream) {
                        self.established(id, at);
                    }
                }
                Parsed::Broken(fault) => return self.broken(id, fault, at),
            }
        }
        self.burst = answers;
        if P::ORDERED {
            if answers > 0 {
                self.go_on(id, at, answers);
            }
            return;
        }
        let client = self.connections.client(id);
        let is_open = matches!(client.state, State::Open | State::Thinking);
        if is_open && client.in_flight == 0 && self.protocol.is_leaving(&mut client.stream) {
            self.tally.streams(|streams| &mut streams.goaways);
            return self.end_after_last(id, at);
        }
        if answers > 0 && client.state == State::Open && !self.connections.per_request {
            self.go_on(id, at, answers);
        }
        self.send_owed(id);
    }

    /// Sends the frames that responses have caused.
    fn send_owed(&mut self, id: u32) {
        self.out.clear();
        self.protocol.owed(&mut self.connections.client(id).stream, &mut self.out);
        if !self.out.is_empty() {
            self.send_out(id);
        }
    }

    /// Closes a connection that has had its planned number of responses. Returns whether it closed the connection.
    fn ends_by_plan(&mut self, id: u32, at: Nanos) -> bool {
        if self.connections.per_request {
            self.connections.client(id).at_once = true;
            self.close_in_order(id, None, at); // Otherwise, the server would keep it open.
            return true;
        }
        let Connection::Requests(max) = self.task.spec.connection else { return false };
        let client = self.connections.client(id);
        let is_over = client.link.answers >= max;
        if is_over {
            client.link.by_plan = true;
            self.end_after_last(id, at);
        }
        is_over
    }

    fn answered(&mut self, id: u32, answer: &Answer, at: Nanos) {
        let flight = self.take_flight(id, answer.place, at);
        self.connections.answered(id);
        if let Some(fault) = answer.fault {
            return self.wrong(&flight, fault, answer, at);
        }
        let service_ns = self.right(&flight, answer, at);
        if flight.timed_out || service_ns > self.task.spec.timeout_ns {
            self.protocol.abandon(&mut self.connections.client(id).stream);
        }
        self.budget.sample(id, service_ns);
    }

    /// Removes a request that is no longer in flight, and starts its client's think time.
    fn take_flight(&mut self, id: u32, place: u32, at: Nanos) -> Flight<P::Expected> {
        let flight = *self.connections.flight(id, place).1;
        if P::ORDERED {
            self.connections.pop(id, at, &self.tally);
        } else {
            self.connections.remove(id, place, at, &self.tally);
        }
        self.think_from(id, at);
        flight
    }

    /// Resends up to `room` requests that the server did not process. Only an open loop keeps their intended times.
    fn resend(&mut self, id: u32, now: Nanos, room: u32) -> u32 {
        let count = self.connections.client(id).again.min(room);
        self.out.clear();
        for _ in 0..count {
            let nth = self.connections.client(id).in_flight;
            let (client, flight) = self.connections.flight(id, nth);
            self.tally.recorder.asked_again += u64::from(!self.protocol.is_caused(flight.expected));
            self.tally.recorder.sent += u64::from(!self.protocol.is_caused(flight.expected));
            let expected = self.protocol.again(&mut client.stream, flight.expected, now, &mut self.out);
            let intended = if self.budget.timetable.is_some() { flight.intended } else { now };
            let flight =
                Flight { expected, intended, free_since: now, sent_at: now, wait: Wait::Connection, ..*flight };
            self.connections.push(id, flight, now, &self.tally); // The request returns to its place in the queue.
        }
        self.connections.client(id).again -= count;
        self.connections.owe(id, 0);
        if count > 0 {
            self.send_out(id);
        }
        count
    }

    /// Whether requests take places of an open connection, which the server may limit.
    fn has_places(&self) -> bool {
        !P::ORDERED && !self.connections.per_request
    }

    /// Number of places left for new requests in an unordered protocol once pending resends have taken theirs.
    fn free_places(&mut self, id: u32, now: Nanos) -> u32 {
        let depth = self.connections.depth;
        let mut room = self.protocol.room(&mut self.connections.client(id).stream, depth);
        if self.connections.client(id).again > 0 {
            room -= self.resend(id, now, room);
        }
        room.saturating_sub(self.connections.client(id).idle)
    }

    fn go_on(&mut self, id: u32, now: Nanos, room: u32) {
        if !self.budget.has_started || self.switches_server(id) {
            return;
        }
        if self.connections.per_request && self.connections.client(id).again > 0 {
            return self.connect(id, now);
        }
        let room = if self.has_places() { self.free_places(id, now) } else { room };
        if room == 0 {
            return;
        }
        let caused = self.protocol.caused(&self.connections.client(id).stream).min(room);
        if caused > 0 {
            let until = self.protocol.thinks_until(&self.connections.client(id).stream);
            if until > now {
                self.connections.owe(id, caused);
                return self.connections.think(id, until);
            }
        }
        let room = room - caused;
        if self.budget.timetable.is_some() {
            let wait = if self.has_places() { self.takes_places(id, room, now) } else { Wait::Own };
            self.connections.idle.extend(std::iter::repeat_n((id, now, wait), room as usize));
            if caused > 0 {
                self.ask(id, caused, now, (now, Wait::Own), now);
            }
            return;
        }
        if !self.budget.take_of_round(id, now, self.tally.gauge) {
            return;
        }
        if let Some(turn) = self.next_turn(id, now).filter(|_| caused == 0) {
            return self.connections.think(id, turn);
        }
        if caused == 0 {
            if self.connections.client(id).due_at.is_none() {
                self.think_from(id, now);
            }
            if let Some(due) = self.connections.client(id).due_at.filter(|due| *due > now) {
                return self.connections.think(id, due);
            }
        }
        let count = caused + self.budget.take(room, &mut self.protocol, &self.tally);
        if count > 0 {
            self.ask(id, count, now, (now, Wait::Own), now);
        }
    }

    /// Time of a client's next turn, if the number of clients changes: `None` for now, [`NEVER`] after its last turn.
    fn next_turn(&self, id: u32, now: Nanos) -> Option<Nanos> {
        let Task { spec, index, workers, .. } = self.task;
        if spec.shape.is_empty() {
            return None;
        }
        let level = f64::from(id) * f64::from(workers) + f64::from(index) + 1.0;
        let from = self.tally.recorder.from;
        let turn = |since_ns| load_shape::time_of_level(&spec.shape, level, since_ns);
        let at = match now.checked_sub(from) {
            Some(since_ns) => turn(since_ns).map_or(NEVER, |ns| from.saturating_add(ns)),
            None if turn(0) == Some(0) => now,
            // The start of measuring may not have been decided yet.
            None => from.min(now + WARMUP_POLL_NS),
        };
        (at > now).then_some(at)
    }

    fn think_from(&mut self, id: u32, at: Nanos) {
        if let Some(until) = self.budget.thinks_until(at) {
            self.connections.client(id).due_at = Some(until);
        }
    }

    /// Sends `count` requests. If each request has its own connection, opens one for a single request instead.
    fn ask(&mut self, id: u32, count: u32, intended: Nanos, (free_since, wait): (Nanos, Wait), now: Nanos) {
        let (expected, is_measured) = (P::Expected::default(), self.tally.is_measuring);
        let flight =
            Flight { expected, intended, free_since, sent_at: now, is_measured, timed_out: false, refusals: 0, wait };
        if self.connections.per_request {
            self.connections.push(id, flight, now, &self.tally);
            return self.connect(id, now);
        }
        self.out.clear();
        for _ in 0..count {
            let stream = &mut self.connections.client(id).stream;
            self.protocol.due(stream, intended);
            let expected = self.protocol.request(stream, now, &mut self.rng, &mut self.out);
            self.tally.recorder.sent += u64::from(!self.protocol.is_caused(expected));
            self.connections.push(id, Flight { expected, ..flight }, now, &self.tally);
        }
        self.connections.client(id).state = State::Open;
        self.send_out(id);
    }

    fn send_out(&mut self, id: u32) {
        self.send_on(id, false);
    }

    /// Sends `out` to a client's connection, and then the end of its TLS session if `ends`.
    fn send_on(&mut self, id: u32, ends: bool) {
        let client = self.connections.client(id);
        let Some(conn) = client.link.conn else { return };
        let sent = send(self.driver, conn, client.link.tls.as_deref_mut(), &self.out, &mut self.cipher, ends);
        self.tally.recorder.sent_bytes += self.tally.measured(sent);
    }

    fn send_due(&mut self) {
        while let Some(&(id, free_since, wait)) = self.connections.idle.front() {
            if self.has_places() && !self.has_place(id) {
                continue;
            }
            let now = self.driver.now();
            let Some(due) = self.budget.pass_due(now) else { return };
            self.connections.idle.pop_front();
            if self.has_places() {
                self.connections.client(id).idle -= 1;
            }
            if self.budget.take(1, &mut self.protocol, &self.tally) == 0 {
                return;
            }
            self.ask(id, 1, due, (free_since, wait), now);
            self.budget.sent(due, self.tally.recorder.from, &mut self.protocol);
        }
    }

    /// Counts the new idle places of an unordered protocol and returns why they were not free before.
    fn takes_places(&mut self, id: u32, room: u32, now: Nanos) -> Wait {
        let depth = self.connections.depth;
        let client = self.connections.client(id);
        client.idle += room;
        if client.since == now {
            Wait::Connection
        } else if self.protocol.server_limit(&mut client.stream) < depth {
            Wait::Server
        } else {
            Wait::Own
        }
    }

    /// Whether the first idle place of an unordered protocol still exists. Drops it if the server reduced the limit.
    fn has_place(&mut self, id: u32) -> bool {
        let depth = self.connections.depth;
        let client = self.connections.client(id);
        let has_place = client.again == 0 && self.protocol.room(&mut client.stream, depth) > 0;
        if !has_place {
            client.idle -= 1;
            self.connections.idle.pop_front();
        }
        has_place
    }

    fn fire_timers(&mut self, now: Nanos) {
        while let Some(id) = self.connections.fired(now) {
            let needs_none = self.connections.per_request && self.connections.client(id).connected_before;
            match self.connections.client(id).state {
                State::Thinking => {
                    self.connections.client(id).state = State::Open;
                    self.connections.owe(id, 0);
                    self.go_on(id, now, 1);
                }
                State::Down if needs_none => self.go_on(id, now, 1),
                State::Down => self.connections.queue(id),
                // The connection ended, and a new one is open or about to be opened.
                _ => {}
            }
        }
    }

    fn housekeep(&mut self, now: Nanos) {
        while let Some(id) = self.connections.next_unconnected() {
            self.connect(id, now);
        }
        if now >= self.scan_at {
            self.scan(now);
            self.scan_at = now + (self.task.spec.timeout_ns / 16).max(TICK_NS);
        }
        let control = self.task.control;
        let tick_ns = if self.budget.awaits_coordinator(control) { ROUND_TICK_NS } else { TICK_NS };
        // Phase changes must be exact to the nanosecond.
        let moments = [control.start.load(Relaxed), control.from.load(Relaxed), control.until.load(Relaxed)];
        self.connections.tick_at = moments.into_iter().filter(|&at| at > now).fold(now + tick_ns, Nanos::min);
        let gauge = self.tally.gauge;
        gauge.settled.store(self.connections.settled, Relaxed);
        gauge.reached.store(self.connections.reached, Relaxed);
        gauge.all_sent.store(self.tally.is_measuring && self.budget.is_spent(), Relaxed);
        self.tally.publish(now);
    }

    fn done(mut self, now: Nanos, usage: Usage) -> Done {
        let end = self.tally.until.min(now);
        let mut waits = self.unanswered(end);
        let Self { mut connections, budget, mut tally, mut protocol, stalls, .. } = self;
        let due = budget.finish(end, self.task.control.limited, &mut waits, &mut protocol);
        waits.stalled(&stalls, tally.recorder.from);
        tally.recorder.finish(end);
        tally.recorder.transcript = protocol.transcript();
        let before = tally.usage_before;
        let run_queue_ns = usage.run_queue_ns.zip(before.run_queue_ns);
        let resources = record::Worker {
            cpu: self.task.spec.cpu_of(self.task.place),
            requests: tally.recorder.requests,
            cpu_ns: usage.cpu_ns.saturating_sub(before.cpu_ns),
            spin_ns: self.spin_ns,
            run_queue_ns: run_queue_ns.map(|(after, before)| after.saturating_sub(before)),
            wall_ns: now - tally.wall_from,
            turns: self.turns - self.turns_before,
            stalled_ns: waits.stalled_since(0),
        };
        Done {
            resources,
            flight_integral: connections.in_flight.sum(now, &tally),
            backoff_integral: connections.in_backoff.sum(now, &tally),
            recorder: tally.recorder,
            waits,
            due,
        }
    }
}

/// Sends bytes, encrypted if there is a TLS session, which ends if `ends`. Returns the number of bytes on the wire.
fn send<D: Driver>(
    driver: &mut D,
    conn: Conn,
    tls: Option<&mut Session>,
    plain: &[u8],
    cipher: &mut Vec<u8>,
    ends: bool,
) -> usize {
    let bytes = match tls {
        None => plain,
        Some(session) => {
            cipher.clear();
            session.write(plain);
            session.take(cipher);
            if ends {
                session.close(cipher);
            }
            cipher
        }
    };
    if !bytes.is_empty() {
        // Errors are ignored: a lost connection also reports `Closed`, and buffers hold all requests in flight.
        let _ = driver.send(conn, bytes);
    }
    bytes.len()
}

#[cold]
pub(crate) fn escaped_start(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    format!("{}{more}", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}
