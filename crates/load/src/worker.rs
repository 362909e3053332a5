//! One worker: a driver, its clients, one loop for every protocol, arrival law and stop rule.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use net::{Address, Close, CloseReason, Conn, Data, Driver, Event, Nanos};
use stats::Rng;
use stats::stop::Moments;
use study::spec::{Arrivals, LoadSpec};

use crate::arrivals::Timetable;
use crate::coordinator::{Control, Gauge, NEVER};
use crate::protocol::{Protocol, Reading};
use crate::recorder::{Answered, Fault, Recorder};

/// Connections of one worker that are being opened at the same time, so that no accept queue overflows by our doing.
const CONNECTING_MAX: usize = 64;
/// A worker looks at the clock and at [`Control`] at least so often, ns.
const TICK_NS: Nanos = 10_000_000;
/// Between the rounds of volley's rule it looks so often, ns.
const ROUND_TICK_NS: Nanos = 200_000;
/// First pause before a lost connection is opened again; it doubles up to the second figure, ns.
const BACKOFF_NS: (Nanos, Nanos) = (1_000_000, 100_000_000);

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
    pub(crate) unfinished: u64,
    pub(crate) unsent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection; a timer or the queue of first connects will change that.
    Down,
    Connecting,
    /// Connected, nothing in flight.
    Idle,
    /// Connected, thinking; a timer ends it.
    Thinking,
    /// A request is in flight.
    Waiting,
    /// We closed; the driver has not let go yet.
    Closing,
}

#[derive(Debug)]
struct Client<E> {
    state: State,
    conn: Option<Conn>,
    expected: E,
    intended: Nanos,
    free_since: Nanos,
    /// When the request was written, or the connection asked for.
    sent_at: Nanos,
    timed_out: bool,
    /// Its first connect has ended, well or not.
    settled: bool,
    connected_before: bool,
    backoff_ns: Nanos,
    /// Requests left of a round.
    quota: u64,
    /// The front of an answer that came in pieces.
    partial: Vec<u8>,
}

struct Worker<'a, D, P: Protocol> {
    task: Task<'a>,
    gauge: &'a Gauge,
    driver: &'a mut D,
    protocol: P,
    rng: Rng,
    timetable: Option<Timetable>,
    think_ns: Nanos,
    clients: Vec<Client<P::Expected>>,
    /// The client of each slot of the driver.
    by_slot: Vec<u32>,
    unconnected: VecDeque<u32>,
    connecting: usize,
    /// First connects that have ended, well or not.
    settled: u32,
    /// Clients that ever had a connection.
    reached: u32,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Open loop: clients without work, the longest idle first.
    idle: VecDeque<u32>,
    started: bool,
    measuring: bool,
    from: Nanos,
    until: Nanos,
    /// Requests rule: answers that may still be counted without asking for more.
    tickets: u64,
    /// No answer counts after this.
    counted_until: Nanos,
    /// Volley's rule: the round, clients that are not through it, and the samples of each client.
    round: u32,
    round_open: u32,
    samples: Vec<Moments>,
    in_flight: u64,
    flight_since: Nanos,
    flight_integral: u128,
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
            expected: P::Expected::default(),
            intended: 0,
            free_since: 0,
            sent_at: 0,
            timed_out: false,
            settled: false,
            connected_before: false,
            backoff_ns: BACKOFF_NS.0,
            quota: 0,
            partial: Vec::new(),
        };
        let open_loop = task.spec.arrivals.offered_per_s().is_some();
        let think_ns = match task.spec.arrivals {
            Arrivals::Closed { think_ns } => think_ns,
            Arrivals::Poisson { .. } | Arrivals::Constant { .. } => 0,
        };
        let rounds = task.control.has_rounds();
        Self {
            gauge: &task.control.gauges[task.index as usize],
            rng: Rng::stream(task.spec.seed, u64::from(task.index) * 2),
            timetable: None,
            think_ns,
            clients: (0..count).map(|_| client()).collect(),
            by_slot: vec![u32::MAX; count],
            unconnected: (0..task.clients).collect(),
            connecting: 0,
            settled: 0,
            reached: 0,
            timers: BinaryHeap::with_capacity(count * 2),
            idle: VecDeque::with_capacity(count),
            started: false,
            measuring: false,
            from: NEVER,
            until: NEVER,
            tickets: 0,
            counted_until: NEVER,
            round: 0,
            round_open: 0,
            samples: if rounds { vec![Moments::default(); count] } else { Vec::new() },
            in_flight: 0,
            flight_since: 0,
            flight_integral: 0,
            tick_at: 0,
            scan_at: 0,
            turns: 0,
            turns_before: 0,
            spin_ns: 0,
            usage_before: Usage::default(),
            wall_from: 0,
            recorder: Recorder::new(task.spec.window_ns, open_loop),
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
        {
            wake = wake.min(timetable.due().saturating_sub(self.task.spec.spin_ns));
        }
        wake.max(now)
    }

    /// Looks at what the coordinator wants; true: the end.
    #[inline]
    fn observe(&mut self, now: Nanos, usage: &impl Fn() -> Usage) -> bool {
        let control = self.task.control;
        if !self.started && now >= control.start.load(Acquire) {
            self.start();
        }
        if !self.measuring {
            self.from = control.from.load(Acquire);
            if now >= self.from {
                self.measuring = true;
                self.recorder.begin(self.from);
                self.usage_before = usage();
                self.wall_from = now;
                self.turns_before = self.turns;
            }
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
        let spec = self.task.spec;
        let start = self.task.control.start.load(Relaxed);
        self.timetable = Timetable::new(spec.arrivals, spec.seed, self.task.index, self.task.workers, start);
        if self.task.control.has_rounds() {
            return; // The first round starts them.
        }
        let now = self.driver.now();
        for id in 0..self.clients.len() as u32 {
            if self.clients[id as usize].state == State::Idle {
                self.go_on(id, now);
            }
        }
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
            if self.clients[id as usize].state == State::Idle {
                self.go_on(id, now);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Data(conn, data) => self.data(conn, data),
            Event::Connected(conn) => self.connected(conn),
            Event::EndOfStream(conn) => self.end_of_stream(conn),
            Event::Closed(conn, reason) => self.closed(conn, reason),
            // A client listens to nobody, and nobody has its waker.
            Event::Accepted(..) | Event::Woken => {}
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
        let client = &mut self.clients[id as usize];
        match client.state {
            State::Waiting => {}
            State::Closing => return,
            _ => return self.distrust(id, at), // An answer that nobody asked for.
        }
        let (reading, length) = if client.partial.is_empty() {
            (self.protocol.read(client.expected, bytes), bytes.len())
        } else {
            // The limit keeps a flood from being copied; what lies beyond it is no answer anyway.
            let room = (P::ANSWER_BYTES_MAX + 1).saturating_sub(client.partial.len());
            client.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
            (self.protocol.read(client.expected, &client.partial), client.partial.len())
        };
        match reading {
            Reading::Right(used) => {
                client.partial.clear();
                self.answered(id, at);
                if used < length {
                    self.distrust(id, at); // More than was asked for.
                }
            }
            Reading::More if length < P::ANSWER_BYTES_MAX => {
                if client.partial.is_empty() {
                    client.partial.extend_from_slice(bytes);
                }
            }
            Reading::More | Reading::Wrong => self.distrust(id, at),
        }
    }

    /// The right answer is there.
    #[inline]
    fn answered(&mut self, id: u32, at: Nanos) {
        let client = &mut self.clients[id as usize];
        client.state = State::Idle;
        client.backoff_ns = BACKOFF_NS.0;
        let moments =
            Answered { intended: client.intended, free_since: client.free_since, sent_at: client.sent_at, at };
        client.free_since = at;
        let timed_out = std::mem::take(&mut client.timed_out);
        let service_ns = at.saturating_sub(moments.sent_at);
        if at < self.from {
            self.recorder.warmup_requests += 1;
        } else if at < self.until && at < self.counted_until && self.take_ticket(at) {
            self.recorder.answer(moments);
        }
        if timed_out || service_ns > self.task.spec.timeout_ns {
            self.late(timed_out, at);
        }
        if let Some(samples) = self.samples.get_mut(id as usize) {
            samples.record(service_ns as f64);
        }
        self.flight_ends(at);
        self.go_on(id, at);
    }

    #[cold]
    fn late(&mut self, counted: bool, at: Nanos) {
        if !counted {
            self.recorder.fault(Fault::Timeout, at);
        }
        if self.measuring {
            self.recorder.late_answers += 1;
        }
    }

    /// Whether one more answer counts, where their number is limited.
    #[inline]
    fn take_ticket(&mut self, at: Nanos) -> bool {
        if !self.task.control.limited {
            return true;
        }
        if self.tickets == 0 {
            self.tickets = self.task.control.take_tickets();
        }
        if self.tickets == 0 {
            self.counted_until = at;
            self.gauge.last_answer.store(self.recorder.last_answer, Relaxed);
            self.gauge.drained.store(true, Release);
            return false;
        }
        self.tickets -= 1;
        true
    }

    /// A client that stands and has nothing in flight: what next?
    #[inline]
    fn go_on(&mut self, id: u32, now: Nanos) {
        if !self.started {
            return;
        }
        if self.timetable.is_some() {
            self.idle.push_back(id);
            return;
        }
        if self.round > 0 {
            let client = &mut self.clients[id as usize];
            if client.quota == 0 {
                return self.through_round(now);
            }
            client.quota -= 1;
        }
        if self.think_ns > 0 {
            self.clients[id as usize].state = State::Thinking;
            self.timers.push(Reverse((now + self.think_ns, id)));
            return;
        }
        self.send(id, now, now);
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

    #[inline]
    fn send(&mut self, id: u32, intended: Nanos, now: Nanos) {
        let client = &mut self.clients[id as usize];
        let Some(conn) = client.conn else { return };
        let (request, expected) = self.protocol.request(&mut self.rng);
        client.expected = expected;
        client.intended = intended;
        client.sent_at = now;
        client.state = State::Waiting;
        let length = request.len() as u64;
        // A connection that is gone says so by its `Closed`, which finds the client waiting and counts it.
        let _ = self.driver.send(conn, request);
        self.recorder.sent_bytes += if self.measuring { length } else { 0 };
        self.flight_begins(now);
    }

    /// Open loop: sends what is due, as far as connections are free.
    fn send_due(&mut self) {
        while let Some(timetable) = &mut self.timetable
            && let Some(&id) = self.idle.front()
        {
            let due = timetable.due();
            let now = self.driver.now();
            if due > now {
                return;
            }
            timetable.advance();
            self.idle.pop_front();
            self.send(id, due, now);
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
        let until = at.min(self.until).min(self.counted_until);
        if until > from {
            self.flight_integral += u128::from(self.in_flight) * u128::from(until - from);
        }
        self.flight_since = at;
    }

    fn connected(&mut self, conn: Conn) {
        let Some(id) = self.client_of(conn) else { return };
        let at = self.driver.now();
        self.connect_ended();
        let client = &mut self.clients[id as usize];
        self.recorder.connect.record(at.saturating_sub(client.sent_at));
        if !std::mem::replace(&mut client.connected_before, true) {
            self.reached += 1;
        } else if self.measuring {
            self.recorder.reconnects += 1;
        }
        client.state = State::Idle;
        client.free_since = at;
        client.partial.clear();
        self.settle(id);
        self.go_on(id, at);
    }

    fn connect_ended(&mut self) {
        self.connecting -= 1;
        self.tick_at = 0; // Room for the next one.
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
        self.give_up(id, Some(Fault::Closed), at);
    }

    /// What came is not the answer; what follows cannot be trusted either.
    #[cold]
    fn distrust(&mut self, id: u32, at: Nanos) {
        let client = &mut self.clients[id as usize];
        if client.state != State::Waiting {
            // A valid answer was counted; what came after it is an error of its own.
            self.recorder.fault(Fault::WrongAnswer, at);
        }
        self.give_up(id, Some(Fault::WrongAnswer), at);
    }

    /// Closes the connection of a client; a request in flight on it has failed by `fault`.
    fn give_up(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        let client = &mut self.clients[id as usize];
        let Some(conn) = client.conn else { return };
        let was = std::mem::replace(&mut client.state, State::Closing);
        match was {
            State::Waiting => self.lost_request(id, fault, at),
            State::Connecting => self.connect_ended(),
            State::Idle if self.timetable.is_some() => self.idle.retain(|&other| other != id),
            _ => {}
        }
        self.driver.close(conn, Close::Reset);
    }

    /// A request in flight will not be answered.
    fn lost_request(&mut self, id: u32, fault: Option<Fault>, at: Nanos) {
        let timed_out = std::mem::take(&mut self.clients[id as usize].timed_out);
        self.flight_ends(at);
        if let Some(fault) = fault
            && !timed_out
        {
            self.recorder.fault(fault, at);
        }
        if self.round > 0 {
            self.clients[id as usize].quota += 1; // It is asked again.
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
        client.conn = None;
        let was = std::mem::replace(&mut client.state, State::Down);
        match was {
            State::Waiting => self.lost_request(id, Some(fault), at),
            State::Connecting => {
                self.recorder.fault(fault, at);
                self.connect_ended();
                self.gauge.live().last_refusal = Some(reason);
            }
            State::Idle if self.timetable.is_some() => self.idle.retain(|&other| other != id),
            _ => {}
        }
        self.settle(id);
        let client = &mut self.clients[id as usize];
        self.timers.push(Reverse((at + client.backoff_ns, id)));
        client.backoff_ns = (client.backoff_ns * 2).min(BACKOFF_NS.1);
    }

    fn fire_timers(&mut self, now: Nanos) {
        while let Some(&Reverse((at, id))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            match self.clients[id as usize].state {
                State::Thinking => self.send(id, now, now),
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
                self.connect(id)?;
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

    fn connect(&mut self, id: u32) -> io::Result<()> {
        let at = self.driver.now();
        let conn = self.driver.connect(&self.task.address)?;
        self.connecting += 1;
        self.by_slot[conn.index()] = id;
        let client = &mut self.clients[id as usize];
        client.conn = Some(conn);
        client.state = State::Connecting;
        client.sent_at = at;
        Ok(())
    }

    /// Counts requests and connects that have waited too long.
    fn scan(&mut self, now: Nanos) {
        let timeout_ns = self.task.spec.timeout_ns;
        for id in 0..self.clients.len() as u32 {
            let client = &mut self.clients[id as usize];
            if now.saturating_sub(client.sent_at) <= timeout_ns {
                continue;
            }
            match client.state {
                State::Waiting if !client.timed_out => {
                    client.timed_out = true;
                    self.recorder.fault(Fault::Timeout, now);
                }
                State::Connecting => {
                    self.recorder.fault(Fault::ConnectTimeout, now);
                    self.settle(id);
                    self.give_up(id, None, now);
                }
                _ => {}
            }
        }
    }

    fn publish(&mut self, now: Nanos) {
        self.gauge.settled.store(self.settled, Relaxed);
        self.gauge.reached.store(self.reached, Relaxed);
        self.gauge.warmup_requests.store(self.recorder.warmup_requests, Relaxed);
        if self.measuring {
            self.recorder.roll(now.min(self.until));
            let mut live = self.gauge.live();
            live.requests = self.recorder.requests;
            live.errors = self.recorder.faults.iter().sum();
            for slice in &self.recorder.slices[live.windows.len()..] {
                let count = slice.latency.len() as f64;
                live.windows.push((slice.latency.mean().unwrap_or(0.0) * count, count));
            }
        }
    }

    fn done(mut self, now: Nanos, usage: Usage) -> Done {
        self.flight(now);
        let end = self.until.min(now);
        let timeout_ns = self.task.spec.timeout_ns;
        let mut unfinished = 0;
        for client in &self.clients {
            if client.state == State::Waiting {
                unfinished += 1;
                if !client.timed_out && end.saturating_sub(client.sent_at) > timeout_ns {
                    self.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                }
            }
        }
        let mut unsent = 0;
        if let Some(timetable) = &mut self.timetable {
            while timetable.due() < end {
                timetable.advance();
                unsent += 1;
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
            unfinished,
            unsent,
        }
    }
}
