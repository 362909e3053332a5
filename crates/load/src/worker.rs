//! One worker: a driver, its clients, one loop for every protocol, arrival law and stop rule.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use net::{Address, Close, CloseReason, Conn, Data, Driver, Event, Nanos};
use stats::Rng;
use stats::stop::Moments;
use study::spec::{Arrivals, Connection, LoadSpec, Stop, Target, Warmup};

use crate::arrivals::Timetable;
use crate::censored::Waits;
use crate::coordinator::{Control, Gauge, NEVER};
use crate::protocol::{Protocol, Reading, Seen};
use crate::recorder::{Answered, Fault, Faults, Recorder};
use crate::tls::{Connector, Session};

/// Connections of one worker that are being opened at the same time, so that no accept queue overflows by our doing.
const CONNECTING_MAX: usize = 64;
/// A worker looks at the clock and at [`Control`] at least so often, ns.
const TICK_NS: Nanos = 10_000_000;
/// Between the rounds of volley's rule it looks so often, ns.
const ROUND_TICK_NS: Nanos = 200_000;
/// First pause before a lost connection is opened again; it doubles up to the second figure, ns.
const BACKOFF_NS: (Nanos, Nanos) = (1_000_000, 100_000_000);
/// A subject that has said that it ends a connection does so within this, or it is reset, ns.
const DRAIN_NS: Nanos = 50_000_000;

/// What a worker is given.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) address: Address,
    /// Which worker, of how many.
    pub(crate) index: u32,
    pub(crate) workers: u32,
    /// How many of the clients are its own.
    pub(crate) clients: u32,
    pub(crate) control: &'a Control,
    /// With it, connections are encrypted.
    pub(crate) tls: Option<&'a Connector>,
}

/// What the thread of a worker has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) run_queue_ns: Option<u64>,
}

/// What a worker leaves.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) recorder: Recorder,
    pub(crate) usage: Usage,
    pub(crate) wall_ns: Nanos,
    pub(crate) turns: u64,
    pub(crate) spin_ns: Nanos,
    /// Requests in flight, times ns.
    pub(crate) flight_integral: u128,
    /// Clients in back-off, times ns.
    pub(crate) backoff_integral: u128,
    /// Requests without an answer at the end.
    pub(crate) waits: Waits,
    /// Of recorded gaps: operations meant to be sent while measured, those not sent among them.
    pub(crate) due: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
    /// Nothing more is asked on this connection; the subject is about to end it.
    Draining,
    /// We closed; the driver has not let go yet.
    Closing,
}

/// A connection, and what belongs to it while it changes.
struct Client<S> {
    state: State,
    conn: Option<Conn>,
    /// When its state began.
    since: Nanos,
    /// Place of its oldest request in flight among its flights, and how many there are.
    head: u32,
    in_flight: u32,
    stream: S,
    tls: Option<Box<Session>>,
    /// Its first connect has ended, well or not.
    settled: bool,
    connected_before: bool,
    backoff_ns: Nanos,
    /// It is kept from connecting since its last connection was lost.
    backing_off: bool,
    /// When the one of its timers fires that still means something.
    wakes_at: Nanos,
    /// The connection has ended as it should: the next one is asked for at once.
    at_once: bool,
    /// Requests left of a round.
    quota: u64,
    /// Its connection has brought an answer.
    served: bool,
    /// Requests of the connection before that are to be asked again on the next one: they are its oldest flights.
    again: u32,
    /// The same, and what answers on that connection have caused.
    owed: u32,
    /// The beginning of what came on its connection while nothing was asked there.
    unasked: Option<Box<str>>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Flight<E> {
    expected: E,
    /// When the timetable wanted it sent; in a closed loop when it was.
    intended: Nanos,
    /// When there was room for it on its connection.
    free_since: Nanos,
    /// When it was written, or its own connection asked for.
    sent_at: Nanos,
    /// It was asked for the first time while measuring.
    is_measured: bool,
    timed_out: bool,
}

/// The part of a load that a request counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Warmup,
    Measured,
    /// It ended after the end: it was in flight then.
    Beyond,
}

/// Where the bytes of an answer lie.
#[derive(Clone, Copy)]
enum Source {
    /// In the driver, as they came.
    Driver(Data),
    /// In `plain`, decrypted.
    Plain,
}

struct Worker<'a, D, P: Protocol> {
    task: Task<'a>,
    gauge: &'a Gauge,
    driver: &'a mut D,
    protocol: P,
    rng: Rng,
    timetable: Option<Timetable>,
    think_ns: Nanos,
    /// Each request has a connection of its own.
    per_request: bool,
    clients: Vec<Client<P::Stream>>,
    /// Requests in flight, `depth` places for each client, used in turn.
    flights: Vec<Flight<P::Expected>>,
    depth: u32,
    /// What is to be sent, what was decrypted, what was encrypted; kept for their memory.
    out: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
    /// The client of each slot of the driver.
    by_slot: Vec<u32>,
    unconnected: VecDeque<u32>,
    connecting: usize,
    /// First connects that have ended, well or not.
    settled: u32,
    /// Clients that ever had a connection.
    reached: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Open loop: room for a request on a client, and since when; the longest idle first.
    idle: VecDeque<(u32, Nanos)>,
    started: bool,
    measuring: bool,
    from: Nanos,
    until: Nanos,
    /// Requests that may still be sent, where their number is given; `None`: any. At 0 there are no more of them.
    quota: Option<u64>,
    /// Of a cache: how many operations of the warm-up and of what is measured are this worker's.
    warmup_quota: Option<u64>,
    measured_quota: Option<u64>,
    /// The number of measured requests is given; what is counted as measured is what was asked while measuring.
    is_counted: bool,
    /// Requests that wait for the next connection of their client.
    owed: u64,
    /// Requests that ended after the end: when they were intended and written.
    beyond: Vec<(Nanos, Nanos)>,
    /// The coordinator knows that all that may be sent is answered.
    told_done: bool,
    /// The trace has no more operations for this worker, and the coordinator knows that all are answered.
    exhausted: bool,
    told_exhausted: bool,
    /// Of recorded gaps: operations meant to be sent while measured.
    due: u64,
    /// Volley's rule: the round, clients that are not through it, and the samples of each client.
    round: u32,
    round_open: u32,
    samples: Vec<Moments>,
    in_flight: u64,
    flight_since: Nanos,
    flight_integral: u128,
    /// Clients in back-off, since when, and the integral so far.
    in_backoff: u64,
    backoff_since: Nanos,
    backoff_integral: u128,
    /// Errors by which no request ended: timeouts, failed connects.
    in_vain: u64,
    tick_at: Nanos,
    scan_at: Nanos,
    turns: u64,
    turns_before: u64,
    spin_ns: Nanos,
    usage_before: Usage,
    wall_from: Nanos,
    recorder: Recorder,
}

/// Runs a worker to its end. `usage` reads what this thread has used; `on_turn` is called once a turn with the time
/// (a simulation steps the coordinator there). Fails only when the driver does.
pub(crate) fn run<D: Driver, P: Protocol>(
    task: Task<'_>,
    driver: &mut D,
    protocol: P,
    usage: impl Fn() -> Usage,
    mut on_turn: impl FnMut(Nanos),
) -> io::Result<Done> {
    let mut worker = Worker::new(task, driver, protocol);
    let mut now = worker.driver.now();
    worker.housekeep(now)?;
    loop {
        let wake = worker.next_wake(now);
        let spinning = wake == now;
        worker.driver.turn(Some(wake))?;
        worker.turns += 1;
        let before = std::mem::replace(&mut now, worker.driver.now());
        on_turn(now);
        if worker.observe(now, &usage) {
            return Ok(worker.done(now, usage()));
        }
        let mut events = 0;
        while let Some(event) = worker.driver.next_event() {
            events += 1;
            worker.handle(event);
        }
        if spinning && events == 0 && worker.measuring {
            worker.spin_ns += now - before;
        }
        worker.fire_timers(now);
        worker.send_due();
        worker.tell_done();
        if now >= worker.tick_at {
            worker.housekeep(now)?;
        }
    }
}

impl<'a, D: Driver, P: Protocol> Worker<'a, D, P> {
    fn new(task: Task<'a>, driver: &'a mut D, protocol: P) -> Self {
        let count = task.clients as usize;
        let client = || Client {
            state: State::Down,
            conn: None,
            since: 0,
            head: 0,
            in_flight: 0,
            stream: protocol.stream(),
            tls: None,
            settled: false,
            connected_before: false,
            backoff_ns: BACKOFF_NS.0,
            backing_off: false,
            wakes_at: 0,
            at_once: false,
            quota: 0,
            served: false,
            again: 0,
            owed: 0,
            unasked: None,
        };
        let depth = task.spec.pipeline;
        let open_loop = task.spec.arrivals.is_open();
        let think_ns = match task.spec.arrivals {
            Arrivals::Closed { think_ns } => think_ns,
            Arrivals::Poisson { .. } | Arrivals::Constant { .. } | Arrivals::Recorded => 0,
        };
        let rounds = task.control.has_rounds();
        let cache = matches!(task.spec.target, Target::Cache { .. });
        let share = |all: u64| share(all, task.index, task.workers);
        let warmup_quota = match task.spec.warmup {
            Warmup::Requests(requests) if cache => Some(share(requests)),
            _ => None,
        };
        let measured_quota = match task.spec.stop {
            Stop::Requests { requests, .. } if cache => Some(share(requests)),
            _ => None,
        };
        let is_counted = matches!(task.spec.stop, Stop::Requests { .. });
        Self {
            gauge: &task.control.gauges[task.index as usize],
            rng: Rng::stream(task.spec.seed, u64::from(task.index) * 2),
            timetable: None,
            think_ns,
            per_request: task.spec.connection == Connection::PerRequest,
            clients: (0..count).map(|_| client()).collect(),
            flights: vec![Flight::default(); count * depth as usize],
            depth,
            out: Vec::new(),
            plain: Vec::new(),
            cipher: Vec::new(),
            by_slot: vec![u32::MAX; count],
            unconnected: (0..task.clients).collect(),
            connecting: 0,
            settled: 0,
            reached: 0,
            timers: BinaryHeap::new(),
            idle: VecDeque::with_capacity(if open_loop { count * depth as usize } else { 0 }),
            started: false,
            measuring: false,
            from: NEVER,
            until: NEVER,
            quota: warmup_quota,
            warmup_quota,
            measured_quota,
            is_counted,
            owed: 0,
            beyond: Vec::new(),
            told_done: false,
            exhausted: false,
            told_exhausted: false,
            due: 0,
            round: 0,
            round_open: 0,
            samples: if rounds { vec![Moments::default(); count] } else { Vec::new() },
            in_flight: 0,
            flight_since: 0,
            flight_integral: 0,
            in_backoff: 0,
            backoff_since: 0,
            backoff_integral: 0,
            in_vain: 0,
            tick_at: 0,
            scan_at: 0,
            turns: 0,
            turns_before: 0,
            spin_ns: 0,
            usage_before: Usage::default(),
            wall_from: 0,
            recorder: Recorder::new(task.spec.window_ns, open_loop, task.tls.is_some(), cache),
            driver,
            protocol,
            task,
        }
    }

    fn next_wake(&self, now: Nanos) -> Nanos {
        let mut wake = self.tick_at;
        if let Some(&Reverse((at, _))) = self.timers.peek() {
            wake = wake.min(at);
        }
        if let Some(timetable) = &self.timetable
            && !self.idle.is_empty()
            && self.quota != Some(0)
        {
            wake = wake.min(timetable.due().saturating_sub(self.task.spec.spin_ns));
        }
        wake.max(now)
    }

    /// Looks at what the coordinator wants; true: the end.
    #[inline]
    fn observe(&mut self, now: Nanos, usage: &impl Fn() -> Usage) -> bool {
        let control = self.task.control;
        if !self.measuring {
            self.from = control.from.load(Acquire);
            self.recorder.expect(self.from);
            if now >= self.from {
                self.measuring = true;
                self.recorder.begin(self.from);
                self.usage_before = usage();
                self.wall_from = now;
                self.turns_before = self.turns;
                self.begin_measured_quota(now);
            }
        }
        // After what begins with it: without a warm-up the first request is one of those that are counted.
        if !self.started && now >= control.start.load(Acquire) {
            self.start();
        }
        self.until = control.until.load(Relaxed);
        if control.has_rounds() && self.started {
            self.follow_rounds(now);
        }
        now >= self.until
    }

    /// Every client that stands may send from now on.
    fn start(&mut self) {
        self.started = true;
        if !self.measuring
            && let Some(cache) = &mut self.recorder.cache
        {
            cache.begin(self.task.control.start.load(Relaxed));
        }
        let spec = self.task.spec;
        let start = self.task.control.start.load(Relaxed);
        self.timetable = match spec.arrivals {
            Arrivals::Recorded => Some(Timetable::recorded(start, self.protocol.next_at())),
            arrivals => Timetable::new(arrivals, spec.seed, self.task.index, self.task.workers, start),
        };
        if self.task.control.has_rounds() {
            return; // The first round starts them.
        }
        let now = self.driver.now();
        for id in 0..self.clients.len() as u32 {
            if self.is_free(id) {
                self.go_on(id, now, self.depth);
            }
        }
    }

    /// What is measured has operations of its own; clients that had sent all of the warm-up go on.
    fn begin_measured_quota(&mut self, now: Nanos) {
        let control = self.task.control;
        self.quota = self.measured_quota.or_else(|| control.limited.then(|| control.take_tickets()));
        self.told_done = false;
        if self.warmup_quota.is_none() || !self.started {
            return;
        }
        let spec = self.task.spec;
        // Nobody was late in the pause before; the gaps are others than before.
        let (index, workers) = (self.task.index, self.task.workers);
        self.timetable = match spec.arrivals {
            Arrivals::Recorded => {
                // The trace stood still in the pause.
                let next = self.protocol.next_at();
                Some(Timetable::recorded(self.from.saturating_sub(next.unwrap_or(0)), next))
            }
            arrivals => Timetable::new(arrivals, stats::random::mix(spec.seed), index, workers, self.from),
        };
        if self.timetable.is_none() {
            for id in 0..self.clients.len() as u32 {
                if self.is_free(id) {
                    self.go_on(id, now, self.depth);
                }
            }
        }
    }

    /// Takes up to `wanted` requests from what may still be sent.
    #[inline]
    fn take_quota(&mut self, wanted: u32) -> u32 {
        let there = if self.quota == Some(0) { 0 } else { self.protocol.available(wanted) };
        if there < wanted && self.quota != Some(0) {
            self.exhausted = true;
        }
        let wanted = there;
        let Some(quota) = &mut self.quota else { return wanted };
        if self.measuring && self.task.control.limited {
            // Of what all workers have together; none of it is left where nothing is left here.
            while *quota <= u64::from(wanted) {
                match self.task.control.take_tickets() {
                    0 => break,
                    more => *quota += more,
                }
            }
        }
        let taken = u64::from(wanted).min(*quota);
        *quota -= taken;
        taken as u32
    }

    /// Tells the coordinator when all that may be sent is answered.
    #[inline]
    fn tell_done(&mut self) {
        if self.in_flight > 0 || self.owed > 0 {
            return;
        }
        if self.quota == Some(0) && self.started && !self.told_done {
            self.told_done = true;
            if self.measuring {
                self.gauge.last_answer.store(self.recorder.last_end(), Relaxed);
                self.gauge.drained.store(true, Release);
            } else {
                self.gauge.rested.store(true, Release);
            }
        }
        if self.exhausted && !self.told_exhausted {
            self.told_exhausted = true;
            self.gauge.last_answer.store(self.recorder.last_end(), Relaxed);
            self.gauge.exhausted.store(true, Release);
        }
    }

    /// Whether a client waits for nothing but its next request.
    fn is_free(&self, id: u32) -> bool {
        let client = &self.clients[id as usize];
        // Where each request has its own connection, one that could be reached needs none to be free.
        let stands = if self.per_request { State::Down } else { State::Open };
        client.state == stands && client.in_flight == 0 && client.connected_before
    }

    /// Volley's rule: a new round gives every client its share.
    fn follow_rounds(&mut self, now: Nanos) {
        let round = self.task.control.round.load(Acquire);
        if round == self.round {
            return;
        }
        self.round = round;
        let quota = self.task.control.quota.load(Relaxed);
        self.round_open = self.clients.len() as u32;
        self.samples.fill(Moments::default());
        for id in 0..self.clients.len() as u32 {
            self.clients[id as usize].quota = quota;
            if self.is_free(id) {
                self.go_on(id, now, 1);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Data(conn, data) => self.data(conn, data),
            Event::Connected(conn) => self.connected(conn),
            Event::EndOfStream(conn) => self.end_of_stream(conn),
            Event::Closed(conn, reason) => self.closed(conn, reason),
            // A client listens to nobody, does not ask when all is sent, and nobody has its waker.
            Event::Accepted(..) | Event::Sent(_) | Event::Woken => {}
        }
    }

    /// The client whose connection is `conn`.
    #[inline]
    fn client_of(&self, conn: Conn) -> Option<u32> {
        let id = *self.by_slot.get(conn.index())?;
        let client = self.clients.get(id as usize)?;
        (client.conn == Some(conn)).then_some(id)
    }

    #[inline]
    fn data(&mut self, conn: Conn, data: Data) {
        let Some(id) = self.client_of(conn) else { return };
        let at = self.driver.now();
        let bytes = self.driver.bytes(data);
        self.recorder.received_bytes += if self.measuring { bytes.len() as u64 } else { 0 };
        if self.clients[id as usize].tls.is_some() {
            self.decrypt(id, data, at);
        } else {
            self.read(id, Source::Driver(data), at);
        }
    }

    /// Reads the answers in what has come.
    #[inline]
    fn read(&mut self, id: u32, source: Source, at: Nanos) {
        let mut offset = 0;
        let mut answers = 0;
        loop {
            let client = &mut self.clients[id as usize];
            let bytes = match source {
                Source::Driver(data) => &self.driver.bytes(data)[offset..],
                Source::Plain => &self.plain[offset..],
            };
            if bytes.is_empty() {
                break;
            }
            match client.state {
                State::Open if client.in_flight > 0 && client.unasked.is_none() => {}
                State::Open if client.in_flight > 0 => return self.spoiled(id, at),
                State::Open | State::Thinking if self.protocol.unasked(&mut client.stream, bytes) => break,
                State::Draining | State::Closing => return,
                _ => {
                    client.unasked.get_or_insert_with(|| begins(bytes).into());
                    break;
                }
            }
            let flight = self.flights[(id * self.depth + client.head) as usize];
            match self.protocol.read(&mut client.stream, flight.expected, bytes, at) {
                Reading::More => break,
                Reading::Answer { used, fault, status, last, seen } => {
                    offset += used;
                    answers += 1;
                    self.answered(id, flight, fault, status, seen, at);
                    if last {
                        return self.drain(id, at);
                    }
                    if self.per_request {
                        self.clients[id as usize].at_once = true;
                        return self.give_up(id, None, at); // The subject would keep it.
                    }
                }
                Reading::Broken(fault) => return self.broken(id, fault, at),
            }
        }
        if answers > 0 {
            self.go_on(id, at, answers);
        }
    }

    /// The oldest request in flight of a client has its answer, right or wrong.
    #[inline]
    fn answered(
        &mut self,
        id: u32,
        flight: Flight<P::Expected>,
        fault: Option<Fault>,
        status: u16,
        seen: Seen,
        at: Nanos,
    ) {
        self.take_flight(id, at);
        let client = &mut self.clients[id as usize];
        client.backoff_ns = BACKOFF_NS.0;
        client.served = true;
        let span = self.span(flight.is_measured, at);
        if let Some(fault) = fault {
            return self.wrong(fault, status, &flight, at);
        }
        let Flight { intended, free_since, sent_at, timed_out, .. } = flight;
        let service_ns = at.saturating_sub(sent_at);
        let caused = seen.class.is_caused();
        match span {
            Span::Warmup => self.recorder.warmup_requests += u64::from(!caused),
            Span::Measured if caused => self.recorder.last_answer = at,
            Span::Measured => {
                self.recorder.answer(Answered { intended, free_since, sent_at, at });
                if status != 0 {
                    self.recorder.status(status);
                }
            }
            Span::Beyond if caused => {}
            Span::Beyond => self.beyond.push((intended, sent_at)),
        }
        if span != Span::Beyond
            && let Some(cache) = &mut self.recorder.cache
        {
            cache.answer(seen, service_ns, at, span == Span::Measured);
        }
        if timed_out || service_ns > self.task.spec.timeout_ns {
            self.late(&flight, at);
        }
        if let Some(samples) = self.samples.get_mut(id as usize) {
            samples.record(service_ns as f64);
        }
    }

    /// Removes the oldest request in flight of a client.
    #[inline]
    fn take_flight(&mut self, id: u32, at: Nanos) {
        let client = &mut self.clients[id as usize];
        client.in_flight -= 1;
        client.head += 1;
        if client.head == self.depth {
            client.head = 0;
        }
        self.flight_ends(at);
    }

    /// An error by which no request ended.
    #[cold]
    fn failed_in_vain(&mut self, fault: Fault, at: Nanos) {
        self.in_vain += 1;
        self.recorder.fault(fault, at);
    }

    /// Where a request counts that ends at `at`. Of a number of requests those count that were asked while measuring; else what
    /// ends while measuring does.
    #[inline]
    fn span(&self, is_measured: bool, at: Nanos) -> Span {
        let has_begun = if self.is_counted { is_measured } else { at >= self.from };
        match has_begun {
            false => Span::Warmup,
            true if at < self.until => Span::Measured,
            true => Span::Beyond,
        }
    }

    /// A request has failed by `fault`.
    #[cold]
    fn fail(&mut self, fault: Fault, flight: &Flight<P::Expected>, at: Nanos) {
        match self.span(flight.is_measured, at) {
            Span::Warmup => self.recorder.warmup_faults[fault as usize] += 1,
            Span::Measured => {
                self.recorder.fault(fault, at);
                self.recorder.last_failed = at;
            }
            Span::Beyond if self.protocol.is_caused(flight.expected) => {}
            Span::Beyond => self.beyond.push((flight.intended, flight.sent_at)),
        }
    }

    /// An answer that can be read, and is not the right one.
    #[cold]
    fn wrong(&mut self, fault: Fault, status: u16, flight: &Flight<P::Expected>, at: Nanos) {
        let is_counted = status != 0 && self.span(flight.is_measured, at) == Span::Measured;
        let Self { recorder, protocol, .. } = self;
        recorder.example(fault, || protocol.explain());
        if is_counted {
            recorder.status(status);
        }
        self.fail(fault, flight, at);
    }

    /// What came is no answer to the oldest request in flight, and nothing behind it can be read.
    #[cold]
    fn broken(&mut self, id: u32, fault: Fault, at: Nanos) {
        let Self { recorder, protocol, .. } = self;
        recorder.example(fault, || protocol.explain());
        self.hang_up(id, fault, at);
    }

    /// A request was asked on a connection on which bytes had come before it: its answer cannot be told from what follows them.
    #[cold]
    fn spoiled(&mut self, id: u32, at: Nanos) {
        let begins = self.clients[id as usize].unasked.take();
        self.recorder.example(P::UNREADABLE, || Some(format!("bytes that nobody asked for: `{}`", begins?)));
        self.hang_up(id, P::UNREADABLE, at);
    }

    /// The oldest request in flight has failed by `fault`, and we end its connection. Those behind it have done nothing wrong.
    fn hang_up(&mut self, id: u32, fault: Fault, at: Nanos) {
        self.lost_request(id, Some(fault), at);
        self.put_off(id, at);
        self.give_up(id, None, at);
    }

    /// What is in flight on this connection is owed no answer any more: it is asked again on the next one.
    #[cold]
    fn put_off(&mut self, id: u32, at: Nanos) {
        // What has timed out was counted as that; those behind it were sent later.
        while self.oldest(id).is_some_and(|flight| flight.timed_out) {
            self.take_flight(id, at);
        }
        let count = std::mem::take(&mut self.clients[id as usize].in_flight);
        for _ in 0..count {
            self.flight_ends(at);
        }
        self.clients[id as usize].again = count;
        self.owe(id);
    }

    /// The oldest request in flight of a client.
    fn oldest(&self, id: u32) -> Option<&Flight<P::Expected>> {
        let client = &self.clients[id as usize];
        (client.in_flight > 0).then(|| &self.flights[(id * self.depth + client.head) as usize])
    }

    /// Remembers what waits for the next connection of a client.
    fn owe(&mut self, id: u32) {
        let client = &mut self.clients[id as usize];
        let owed = client.again + self.protocol.caused(&client.stream);
        self.owed += u64::from(owed);
        self.owed -= u64::from(std::mem::replace(&mut client.owed, owed));
    }

    /// Asks what the connection before has left, on a new one; how many requests that were. The timetable's time stays; a closed loop
    /// sends them anew.
    fn ask_again(&mut self, id: u32, now: Nanos) -> u32 {
        let client = &mut self.clients[id as usize];
        self.owed -= u64::from(std::mem::take(&mut client.owed));
        let count = std::mem::take(&mut client.again);
        if count == 0 {
            return 0;
        }
        self.out.clear();
        for place in 0..count {
            let client = &mut self.clients[id as usize];
            let flight = &mut self.flights[(id * self.depth + (client.head + place) % self.depth) as usize];
            flight.expected = self.protocol.again(&mut client.stream, flight.expected, now, &mut self.out);
            (flight.free_since, flight.sent_at) = (now, now);
            if self.timetable.is_none() {
                flight.intended = now;
            }
            client.in_flight += 1;
            self.flight_begins(now);
        }
        self.recorder.asked_again += if self.measuring { u64::from(count) } else { 0 };
        self.send_out(id);
        count
    }

    #[cold]
    fn late(&mut self, flight: &Flight<P::Expected>, at: Nanos) {
        let span = self.span(flight.is_measured, at);
        if !flight.timed_out && span != Span::Beyond {
            self.fail(Fault::Timeout, flight, at);
        }
        self.recorder.late_answers += u64::from(span == Span::Measured);
    }

    /// A client has room for `room` more requests: what next?
    #[inline]
    fn go_on(&mut self, id: u32, now: Nanos, room: u32) {
        if !self.started {
            return;
        }
        let caused = self.protocol.caused(&self.clients[id as usize].stream).min(room);
        let room = room - caused;
        if self.timetable.is_some() {
            self.idle.extend(std::iter::repeat_n((id, now), room as usize));
            if caused > 0 {
                self.ask(id, caused, now, now, now);
            }
            return;
        }
        if self.round > 0 {
            let client = &mut self.clients[id as usize];
            if client.quota == 0 {
                return self.through_round(now);
            }
            client.quota -= 1;
        }
        if self.think_ns > 0 && caused == 0 {
            let client = &mut self.clients[id as usize];
            client.state = State::Thinking;
            client.wakes_at = now + self.think_ns;
            self.timers.push(Reverse((client.wakes_at, id)));
            return;
        }
        let count = caused + self.take_quota(room);
        if count > 0 {
            self.ask(id, count, now, now, now);
        }
    }

    /// One more client has done its share of the round.
    fn through_round(&mut self, now: Nanos) {
        self.round_open = self.round_open.saturating_sub(1);
        if self.round_open == 0 {
            self.gauge.last_answer.store(now, Relaxed);
            self.gauge.live().rounds.extend_from_slice(&self.samples);
            self.gauge.round_done.store(self.round, Release);
        }
    }

    /// Sends `count` requests of a client, or asks for the connection that its one request is to have.
    #[inline]
    fn ask(&mut self, id: u32, count: u32, intended: Nanos, free_since: Nanos, now: Nanos) {
        let flight = Flight {
            expected: P::Expected::default(),
            intended,
            free_since,
            sent_at: now,
            is_measured: self.measuring,
            timed_out: false,
        };
        if self.per_request {
            self.flights[id as usize] = flight;
            let client = &mut self.clients[id as usize];
            (client.head, client.in_flight) = (0, 1);
            self.flight_begins(now);
            return self.connect(id, now);
        }
        self.out.clear();
        for _ in 0..count {
            let stream = &mut self.clients[id as usize].stream;
            let expected = self.protocol.request(stream, now, &mut self.rng, &mut self.out);
            let client = &mut self.clients[id as usize];
            let mut place = client.head + client.in_flight;
            if place >= self.depth {
                place -= self.depth;
            }
            client.in_flight += 1;
            self.flights[(id * self.depth + place) as usize] = Flight { expected, ..flight };
            self.flight_begins(now);
        }
        let client = &mut self.clients[id as usize];
        client.state = State::Open;
        self.send_out(id);
    }

    /// Hands `out` to the driver, encrypted where it must be.
    #[inline]
    fn send_out(&mut self, id: u32) {
        let client = &mut self.clients[id as usize];
        let Some(conn) = client.conn else { return };
        let bytes = match &mut client.tls {
            None => &self.out,
            Some(session) => {
                self.cipher.clear();
                // A session that has failed was given up when it did.
                let _ = session.write(&self.out);
                session.take(&mut self.cipher);
                &self.cipher
            }
        };
        self.recorder.sent_bytes += if self.measuring { bytes.len() as u64 } else { 0 };
        // A connection that is gone says so by its `Closed`, which finds the requests in flight and counts them. None is
        // full: the driver has room for all that can be in flight.
        let _ = self.driver.send(conn, bytes);
    }

    /// The encrypted bytes of a connection have come.
    fn decrypt(&mut self, id: u32, data: Data, at: Nanos) {
        let client = &mut self.clients[id as usize];
        let (Some(session), Some(conn)) = (&mut client.tls, client.conn) else { return };
        self.plain.clear();
        let read = session.read(self.driver.bytes(data), &mut self.plain);
        self.cipher.clear();
        session.take(&mut self.cipher);
        if !self.cipher.is_empty() {
            self.recorder.sent_bytes += if self.measuring { self.cipher.len() as u64 } else { 0 };
            let _ = self.driver.send(conn, &self.cipher); // As in `send_out`.
        }
        if let Err(error) = read {
            self.recorder.example(Fault::Tls, || Some(error.to_string()));
            if client.state == State::Handshaking {
                self.gauge.live().last_problem = Some(error.to_string());
            }
            return self.refused(id, Fault::Tls, at);
        }
        let (handshaking, resumed, ended) = (session.is_handshaking(), session.resumed(), session.ended());
        if client.state == State::Handshaking && !handshaking {
            self.recorder.handshake(at.saturating_sub(client.since), resumed);
            self.stands(id, at);
        }
        if !self.plain.is_empty() {
            self.read(id, Source::Plain, at);
        }
        if ended {
            self.ended(id, at, true);
        }
    }

    /// Open loop: sends what is due, as far as connections are free.
    fn send_due(&mut self) {
        while let Some(timetable) = &mut self.timetable
            && let Some(&(id, free_since)) = self.idle.front()
        {
            let due = timetable.due();
            let now = self.driver.now();
            if due == NEVER {
                self.exhausted = true;
            }
            if due > now || self.quota == Some(0) {
                return;
            }
            timetable.advance();
            let recorded = timetable.is_recorded();
            self.idle.pop_front();
            if self.take_quota(1) == 0 {
                return;
            }
            self.ask(id, 1, due, free_since, now);
            if recorded {
                self.due += u64::from(due >= self.from);
                self.next_recorded();
            }
        }
    }

    /// The time of the next operation of a trace.
    fn next_recorded(&mut self) {
        let next = self.protocol.next_at();
        if let Some(timetable) = &mut self.timetable {
            timetable.set_next(next);
        }
    }

    #[inline]
    fn flight_begins(&mut self, at: Nanos) {
        self.flight(at);
        self.in_flight += 1;
    }

    #[inline]
    fn flight_ends(&mut self, at: Nanos) {
        self.flight(at);
        self.in_flight -= 1;
    }

    /// Brings the integral of requests in flight up to `at`; only the measured time counts.
    #[inline]
    fn flight(&mut self, at: Nanos) {
        let from = self.flight_since.max(self.from);
        let until = at.min(self.until);
        if until > from {
            self.flight_integral += u128::from(self.in_flight) * u128::from(until - from);
        }
        self.flight_since = at;
    }

    fn connected(&mut self, conn: Conn) {
        let Some(id) = self.client_of(conn) else { return };
        let at = self.driver.now();
        let client = &mut self.clients[id as usize];
        self.recorder.connect.record(at.saturating_sub(client.since));
        client.since = at;
        let Some(connector) = self.task.tls else { return self.stands(id, at) };
        client.state = State::Handshaking;
        let session = client.tls.insert(Box::new(connector.start()));
        self.cipher.clear();
        session.take(&mut self.cipher);
        let _ = self.driver.send(conn, &self.cipher); // A connection that is gone says so.
    }

    /// A connection stands, its handshake done where there is one: it can be used.
    fn stands(&mut self, id: u32, at: Nanos) {
        self.connect_ended();
        let client = &mut self.clients[id as usize];
        let probe = client.in_flight == 0;
        if !std::mem::replace(&mut client.connected_before, true) {
            self.reached += 1;
        } else if self.measuring && !self.per_request {
            self.recorder.reconnects += 1;
        }
        client.state = State::Open;
        client.since = at;
        client.served = false;
        client.unasked = None;
        self.protocol.renew(&mut client.stream);
        self.settle(id);
        if !self.per_request {
            let again = self.ask_again(id, at);
            return self.go_on(id, at, self.depth - again);
        }
        if probe {
            self.clients[id as usize].at_once = true;
            return self.give_up(id, None, at); // It has shown that the subject can be reached.
        }
        self.out.clear();
        let stream = &mut self.clients[id as usize].stream;
        self.flights[id as usize].expected = self.protocol.request(stream, at, &mut self.rng, &mut self.out);
        self.send_out(id);
    }

    fn connect_ended(&mut self) {
        self.connecting -= 1;
        if !self.unconnected.is_empty() {
            self.tick_at = 0; // Room for the next one.
        }
    }

    /// The first connect of a client has ended.
    fn settle(&mut self, id: u32) {
        if !std::mem::replace(&mut self.clients[id as usize].settled, true) {
            self.settled += 1;
        }
    }

    fn end_of_stream(&mut self, conn: Conn) {
        let Some(id) = self.client_of(conn) else { return };
        let at = self.driver.now();
        // Without the alert that closes a TLS stream anybody may have cut it (RFC 8446, 6.1).
        let in_order = self.clients[id as usize].tls.as_ref().is_none_or(|session| session.ended());
        self.ended(id, at, in_order);
    }

    /// The subject sends no more on this connection.
    fn ended(&mut self, id: u32, at: Nanos, in_order: bool) {
        let client = &mut self.clients[id as usize];
        if client.state == State::Open && client.in_flight > 0 {
            let flight = self.flights[(id * self.depth + client.head) as usize];
            match self.protocol.end(&mut client.stream, flight.expected) {
                Reading::Answer { fault, status, seen, .. } if in_order => {
                    self.answered(id, flight, fault, status, seen, at);
                    self.drain(id, at);
                }
                Reading::Answer { .. } => {
                    let why = || Some("the TLS stream ended without its closing alert".to_owned());
                    self.recorder.example(Fault::Truncated, why);
                    self.lost_request(id, Some(Fault::Truncated), at);
                }
                // Between two answers, as a server does that has waited long enough: it may not have seen what was asked.
                Reading::Broken(Fault::Closed) if self.clients[id as usize].served => {
                    return self.give_up(id, Some(Fault::ClosedBetween), at);
                }
                Reading::Broken(fault) => {
                    let Self { recorder, protocol, .. } = self;
                    recorder.example(fault, || protocol.explain());
                    self.lost_request(id, Some(fault), at);
                }
                Reading::More => {}
            }
        }
        if self.clients[id as usize].state == State::Handshaking {
            self.gauge.live().last_problem = Some("closed before the TLS handshake was done".to_owned());
            return self.refused(id, Fault::Closed, at);
        }
        self.give_up(id, Some(Fault::Closed), at);
    }

    /// Nothing more is asked on this connection: the subject has said that it ends it, or was asked to. What was sent behind its last
    /// answer is owed none (RFC 9112, 9.6).
    fn drain(&mut self, id: u32, at: Nanos) {
        self.put_off(id, at);
        self.forget_room(id);
        let client = &mut self.clients[id as usize];
        client.state = State::Draining;
        client.since = at;
        client.at_once = true;
    }

    /// There is no room on this client any more.
    fn forget_room(&mut self, id: u32) {
        if self.timetable.is_some() {
            self.idle.retain(|&(other, _)| other != id);
        }
    }

    /// A connection has failed, also where no request was in flight on it.
    fn refused(&mut self, id: u32, fault: Fault, at: Nanos) {
        let client = &self.clients[id as usize];
        if client.in_flight == 0 {
            self.failed_in_vain(fault, at);
        } else if client.state != State::Open {
            self.in_vain += 1; // Its request was never sent, and is lost below.
        }
        self.settle(id);
        self.give_up(id, Some(fault), at);
    }

    /// Closes the connection of a client; requests in flight on it have failed by `fault`.
    fn give_up(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        let client = &mut self.clients[id as usize];
        let Some(conn) = client.conn else { return };
        let was = std::mem::replace(&mut client.state, State::Closing);
        // The subject has ended its side, after its last answer: an end in order, and no haste to reset.
        let how = if was == State::Draining { Close::Graceful } else { Close::Reset };
        self.lose(id, was, fault, at);
        self.driver.close(conn, how);
    }

    /// What a connection that was in state `was` takes with it.
    fn lose(&mut self, id: u32, was: State, fault: Option<Fault>, at: Nanos) {
        if matches!(was, State::Connecting | State::Handshaking) {
            self.connect_ended();
        }
        while self.clients[id as usize].in_flight > 0 {
            self.lost_request(id, fault, at);
        }
        if was == State::Open {
            self.forget_room(id);
        }
        self.owe(id);
    }

    /// The oldest request in flight of a client will not be answered.
    fn lost_request(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        let client = &mut self.clients[id as usize];
        let flight = self.flights[(id * self.depth + client.head) as usize];
        if self.round > 0 {
            client.quota += 1; // It is asked again.
        }
        self.take_flight(id, at);
        if let Some(fault) = fault
            && !flight.timed_out
        {
            self.fail(fault, &flight, at);
        }
    }

    fn closed(&mut self, conn: Conn, reason: CloseReason) {
        let Some(id) = self.client_of(conn) else { return };
        let at = self.driver.now();
        let fault = match reason {
            CloseReason::Local => Fault::Closed,
            CloseReason::Reset => Fault::Reset,
            CloseReason::Refused | CloseReason::QueueFull => Fault::Refused,
            CloseReason::TimedOut => Fault::ConnectTimeout,
            CloseReason::Os(_) => Fault::Os,
        };
        let client = &mut self.clients[id as usize];
        let was = std::mem::replace(&mut client.state, State::Down);
        client.conn = None;
        client.tls = None;
        client.since = at;
        let at_once = std::mem::take(&mut client.at_once);
        if was == State::Connecting || was == State::Handshaking {
            if client.in_flight == 0 {
                self.failed_in_vain(fault, at);
            } else {
                self.in_vain += 1; // Likewise.
            }
            self.gauge.live().last_problem = Some(words(reason));
        }
        self.lose(id, was, Some(fault), at);
        self.settle(id);
        if !at_once {
            return self.back_off(id, at);
        }
        if self.per_request {
            return self.go_on(id, at, 1);
        }
        self.unconnected.push_back(id);
        self.tick_at = 0;
    }

    /// The next connection of a client is asked for after a while.
    fn back_off(&mut self, id: u32, at: Nanos) {
        let client = &mut self.clients[id as usize];
        client.wakes_at = at + client.backoff_ns;
        self.timers.push(Reverse((client.wakes_at, id)));
        client.backoff_ns = (client.backoff_ns * 2).min(BACKOFF_NS.1);
        if !std::mem::replace(&mut client.backing_off, true) {
            self.backoff(at);
            self.in_backoff += 1;
        }
    }

    /// Brings the integral of clients in back-off up to `at`; only the measured time counts.
    fn backoff(&mut self, at: Nanos) {
        let from = self.backoff_since.max(self.from);
        let until = at.min(self.until);
        self.backoff_integral += u128::from(self.in_backoff) * u128::from(until.saturating_sub(from));
        self.backoff_since = at;
    }

    fn fire_timers(&mut self, now: Nanos) {
        while let Some(&Reverse((at, id))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            match self.clients[id as usize].state {
                // Of a connection that is no more.
                _ if self.clients[id as usize].wakes_at != at => {}
                State::Thinking => {
                    self.clients[id as usize].state = State::Open;
                    if self.take_quota(1) == 1 {
                        self.ask(id, 1, now, now, now);
                    }
                }
                State::Down if self.per_request && self.clients[id as usize].connected_before => {
                    self.go_on(id, now, 1);
                }
                State::Down => {
                    self.unconnected.push_back(id);
                    self.tick_at = 0;
                }
                // Its connection ended and stands again, or is about to.
                _ => {}
            }
        }
    }

    /// What need not be done at once: connects, timeouts, what the coordinator wants to know.
    fn housekeep(&mut self, now: Nanos) -> io::Result<()> {
        while self.connecting < CONNECTING_MAX
            && let Some(id) = self.unconnected.pop_front()
        {
            if self.clients[id as usize].state == State::Down {
                self.connect(id, now);
            }
        }
        if now >= self.scan_at {
            self.scan(now);
            self.scan_at = now + (self.task.spec.timeout_ns / 16).max(TICK_NS);
        }
        let between_rounds = self.task.control.has_rounds() && self.round_open == 0;
        let tick_ns = if between_rounds || !self.started { ROUND_TICK_NS } else { TICK_NS };
        let control = self.task.control;
        // The moments at which something begins or ends are kept to the nanosecond.
        let moments = [control.start.load(Relaxed), control.from.load(Relaxed), control.until.load(Relaxed)];
        self.tick_at = moments.into_iter().filter(|&at| at > now).fold(now + tick_ns, Nanos::min);
        self.publish(now);
        Ok(())
    }

    fn connect(&mut self, id: u32, at: Nanos) {
        let conn = match self.driver.connect(&self.task.address) {
            Ok(conn) => conn,
            Err(error) => return self.unconnectable(id, &error, at),
        };
        self.connecting += 1;
        self.by_slot[conn.index()] = id;
        if self.clients[id as usize].backing_off {
            self.backoff(at);
            self.in_backoff -= 1;
        }
        let client = &mut self.clients[id as usize];
        client.backing_off = false;
        client.conn = Some(conn);
        client.state = State::Connecting;
        client.since = at;
    }

    /// This machine has no room for one more connection.
    #[cold]
    fn unconnectable(&mut self, id: u32, error: &io::Error, at: Nanos) {
        self.recorder.example(Fault::Os, || Some(error.to_string()));
        self.gauge.live().last_problem = Some(error.to_string());
        if self.clients[id as usize].in_flight == 0 {
            self.failed_in_vain(Fault::Os, at);
        }
        self.lose(id, State::Down, Some(Fault::Os), at);
        self.settle(id);
        self.back_off(id, at);
    }

    /// Counts requests and connects that have waited too long, and ends what a subject does not end itself.
    fn scan(&mut self, now: Nanos) {
        let timeout_ns = self.task.spec.timeout_ns;
        for id in 0..self.clients.len() as u32 {
            let client = &mut self.clients[id as usize];
            let waited = now.saturating_sub(client.since);
            match client.state {
                State::Open => {
                    let (head, in_flight) = (client.head, client.in_flight);
                    for place in 0..in_flight {
                        let place = id * self.depth + (head + place) % self.depth;
                        let flight = &mut self.flights[place as usize];
                        if now.saturating_sub(flight.sent_at) <= timeout_ns {
                            break; // Those behind it were sent later.
                        }
                        if !std::mem::replace(&mut flight.timed_out, true) {
                            let flight = *flight;
                            self.in_vain += 1;
                            self.fail(Fault::Timeout, &flight, now);
                        }
                    }
                }
                State::Connecting | State::Handshaking if waited > timeout_ns => {
                    self.gauge.live().last_problem = Some("no answer in time".to_owned());
                    self.refused(id, Fault::ConnectTimeout, now);
                }
                State::Draining if waited > DRAIN_NS => {
                    client.state = State::Closing;
                    if let Some(conn) = client.conn {
                        self.driver.close(conn, Close::Reset);
                    }
                }
                _ => {}
            }
        }
    }

    fn publish(&mut self, now: Nanos) {
        self.gauge.settled.store(self.settled, Relaxed);
        self.gauge.reached.store(self.reached, Relaxed);
        let sum = |faults: &Faults| faults.iter().sum::<u64>();
        let warmup_ended = self.recorder.warmup_requests + sum(&self.recorder.warmup_faults);
        let ended = warmup_ended + self.recorder.requests + sum(&self.recorder.faults);
        self.gauge.warmup_requests.store(warmup_ended, Relaxed);
        self.gauge.ended.store(ended.saturating_sub(self.in_vain), Relaxed);
        self.gauge.in_vain.store(self.in_vain, Relaxed);
        self.gauge.all_sent.store(self.measuring && self.quota == Some(0), Relaxed);
        if !self.measuring
            && let Some(cache) = &mut self.recorder.cache
        {
            cache.roll(now);
            let mut live = self.gauge.live();
            let known = live.transient.len();
            live.transient.extend_from_slice(&cache.transient[known..]);
        }
        if self.measuring {
            self.recorder.roll(now.min(self.until));
            let mut live = self.gauge.live();
            live.requests = self.recorder.requests;
            live.errors = self.recorder.faults.iter().sum();
            for slice in &self.recorder.slices[live.windows.len()..] {
                live.windows.push((slice.latency.sum as f64, slice.answers as f64));
            }
        }
    }

    fn done(mut self, now: Nanos, usage: Usage) -> Done {
        self.flight(now);
        self.backoff(now);
        let end = self.until.min(now);
        let timeout_ns = self.task.spec.timeout_ns;
        let mut waits = Waits::new(end, timeout_ns);
        for (client, flights) in self.clients.iter().zip(self.flights.chunks_exact(self.depth as usize)) {
            for place in 0..client.in_flight {
                let flight = flights[((client.head + place) % self.depth) as usize];
                if !flight.timed_out && end.saturating_sub(flight.sent_at) > timeout_ns {
                    self.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                }
                if place == 0 {
                    waits.connection(flight.sent_at);
                }
                // Of a number of requests, those that were asked while measuring are meant.
                let is_due = !self.is_counted || flight.is_measured;
                if is_due && !self.protocol.is_caused(flight.expected) {
                    waits.request(flight.intended, flight.sent_at);
                }
            }
            if self.timetable.is_some() {
                // What was to be asked again keeps its time.
                for place in 0..client.again {
                    let flight = flights[((client.head + place) % self.depth) as usize];
                    if !self.protocol.is_caused(flight.expected) {
                        waits.unsent(flight.intended);
                    }
                }
            }
        }
        self.beyond.iter().for_each(|&(intended, sent_at)| waits.request(intended, sent_at));
        // Of what all workers share, any of them may have had more.
        let mut left = match self.quota {
            None | Some(1..) if self.task.control.limited => u64::MAX,
            quota => quota.unwrap_or(u64::MAX),
        };
        if let Some(timetable) = &mut self.timetable {
            while left > 0 && timetable.due() < end {
                waits.unsent(timetable.due());
                left -= 1;
                timetable.advance();
                if timetable.is_recorded() {
                    self.due += 1;
                    self.protocol.skip();
                    timetable.set_next(self.protocol.next_at());
                }
            }
        }
        self.recorder.finish(end);
        let before = self.usage_before;
        let run_queue_ns = usage.run_queue_ns.zip(before.run_queue_ns).map(|(after, before)| after - before);
        Done {
            recorder: self.recorder,
            usage: Usage { cpu_ns: usage.cpu_ns.saturating_sub(before.cpu_ns), run_queue_ns },
            wall_ns: now - self.wall_from,
            turns: self.turns - self.turns_before,
            spin_ns: self.spin_ns,
            flight_integral: self.flight_integral,
            backoff_integral: self.backoff_integral,
            waits,
            due: self.due,
        }
    }
}

/// What one worker has of a number: as even as it goes.
fn share(all: u64, index: u32, workers: u32) -> u64 {
    let workers = u64::from(workers);
    all / workers + u64::from(u64::from(index) < all % workers)
}

/// The first bytes of what came, for a message.
#[cold]
fn begins(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let more = if bytes.len() > SHOWN { "..." } else { "" };
    format!("{}{more}", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}

/// Why a connection did not come to stand.
fn words(reason: CloseReason) -> String {
    match reason {
        CloseReason::Refused => "nobody listens there".to_owned(),
        CloseReason::QueueFull => "the queue of its listener is full".to_owned(),
        CloseReason::Reset => "reset by the other side".to_owned(),
        CloseReason::TimedOut => "the kernel gave up waiting".to_owned(),
        CloseReason::Local => "closed".to_owned(),
        CloseReason::Os(number) => io::Error::from_raw_os_error(number).to_string(),
    }
}
