//! Records the outcome of each request of a worker: valid, invalid, late or failed.

use net::Nanos;
use study::record::{LoggedRequest, SlowResponse};
use study::spec::{Stop, Target};

use super::Task;
use super::client_states_and_timers::{Connections, Flight, State};
use crate::censored_waits::Waits;
use crate::coordinator_exchange::PhaseTracker;
use crate::protocol::{CacheOutcome, Protocol};
use crate::recorder::{Answered, Fault, Log, Recorder, StreamsRecorder};

/// Maximum number of logged requests of a load, over all workers: about 100 MB.
const LOG_MAX: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Warmup,
    Measured,
    /// After the end of the load, at which the request was still in flight.
    Beyond,
}

#[derive(Clone, Copy, Debug)]
struct Beyond {
    intended: Nanos,
    sent_at: Nanos,
    timed_out: bool,
    operation: Option<u32>,
}

pub(super) struct Tally<'a> {
    pub(super) phase: PhaseTracker<'a>,
    pub(super) recorder: Recorder,
    timeout_ns: Nanos,
    /// Whether the number of requests is limited, in which case send times decide which of them are measured.
    is_counted: bool,
    beyond: Vec<Beyond>,
    /// Number of timeouts of requests in flight, and of failed connects.
    pub(super) in_vain: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(task: &Task<'a>) -> Self {
        let spec = task.spec;
        let is_cache = matches!(spec.target, Target::Cache { .. });
        let mut recorder = Recorder::new(spec.window_ns, spec.arrivals.is_open(), is_cache);
        if spec.log_one_in > 0 {
            let entries_max = LOG_MAX / task.workers.max(1) as usize;
            recorder.log = Some(Box::new(Log { one_in: spec.log_one_in, entries_max, ..Log::default() }));
        }
        if matches!(spec.target, Target::Http { http2: true, .. } | Target::Journey { http2: true, .. }) {
            recorder.streams = Some(Box::<StreamsRecorder>::default());
        }
        Self {
            phase: PhaseTracker::new(task.control, task.place),
            recorder,
            timeout_ns: spec.timeout_ns,
            is_counted: matches!(spec.stop, Stop::Requests { .. }),
            beyond: Vec::new(),
            in_vain: 0,
        }
    }

    /// The span in which a request counts: by its send time if the number of requests is limited, otherwise by its end.
    #[inline]
    fn span(&self, is_measured: bool, at: Nanos) -> Span {
        let has_begun = if self.is_counted { is_measured } else { at >= self.phase.from };
        match has_begun {
            false => Span::Warmup,
            true if at < self.phase.until => Span::Measured,
            true => Span::Beyond,
        }
    }

    #[inline]
    pub(super) fn measured(&self, count: usize) -> u64 {
        if self.phase.is_measuring { count as u64 } else { 0 }
    }

    /// Increments an HTTP/2 counter, in measured time only.
    pub(super) fn streams(&mut self, count: fn(&mut StreamsRecorder) -> &mut u64) {
        let measured = self.measured(1);
        if let Some(streams) = &mut self.recorder.streams {
            *count(streams) += measured;
        }
    }

    /// Counts a valid response and returns its service time, ns.
    #[inline]
    pub(super) fn right<P: Protocol>(
        &mut self,
        protocol: &P,
        flight: &Flight<P::Expected>,
        status: u16,
        seen: CacheOutcome,
        at: Nanos,
    ) -> Nanos {
        let Flight { intended, free_since, sent_at, is_measured, timed_out, wait, .. } = *flight;
        let span = self.span(is_measured, at);
        let service_ns = at.saturating_sub(sent_at);
        let caused = protocol.is_caused(flight.expected);
        let is_late = timed_out || service_ns > self.timeout_ns;
        match span {
            Span::Warmup => self.recorder.warmup_requests += u64::from(!caused && !is_late),
            Span::Measured if caused => self.recorder.last_answer = at,
            Span::Measured => {
                let latency_ns = self.recorder.answer(Answered { intended, free_since, sent_at, at, wait }, is_late);
                self.recorder.checked += u64::from(protocol.is_checked(flight.expected));
                if latency_ns > self.recorder.slowest.above_ns
                    && let Some((trace_id, request)) = protocol.trace(flight.expected)
                {
                    let ended_ns = at.saturating_sub(self.phase.from);
                    self.recorder.slowest.add(SlowResponse { latency_ns, trace_id, request, ended_ns });
                }
                if let Some((facts, streams)) = protocol.stream_facts().zip(self.recorder.streams.as_mut()) {
                    streams.answer(facts, protocol.message_gaps_ns());
                }
                let last = protocol.last().filter(|last| last.first_at < at);
                let first_byte_ns = last.map(|last| last.first_at.saturating_sub(sent_at));
                if let Some(first_byte_ns) = first_byte_ns {
                    self.recorder.first_byte.record(first_byte_ns);
                }
                if let Some(completed) = protocol.completed().filter(|_| !is_late) {
                    self.recorder.session(completed);
                }
                if self.recorder.log.is_some() && !is_late {
                    self.log(protocol, flight, status, None, at);
                }
                if let Some(nth) = protocol.operation(flight.expected) {
                    let operation = self.recorder.operation(nth);
                    operation.requests += u64::from(!is_late);
                    operation.latency.record(latency_ns);
                    if let Some(first_byte_ns) = first_byte_ns {
                        operation.first_byte(first_byte_ns);
                    }
                }
                if status != 0 {
                    self.recorder.status(status);
                }
            }
            Span::Beyond if caused => {}
            Span::Beyond => self.end_beyond(protocol, flight, timed_out),
        }
        if span != Span::Beyond
            && let Some(cache) = &mut self.recorder.cache
        {
            cache.answer(seen, service_ns, at, span == Span::Measured);
        }
        if is_late {
            self.late(protocol, flight, span, at);
        }
        service_ns
    }

    /// Counts a late response as one error of kind `timeout`, unless the request was counted before.
    #[cold]
    fn late<P: Protocol>(&mut self, protocol: &P, flight: &Flight<P::Expected>, span: Span, at: Nanos) {
        if flight.timed_out {
            self.in_vain = self.in_vain.saturating_sub(1);
        } else if span != Span::Beyond {
            self.fail(protocol, Fault::Timeout, 0, flight, at);
        }
    }

    #[cold]
    pub(super) fn wrong<P: Protocol>(
        &mut self,
        protocol: &P,
        fault: Fault,
        status: u16,
        flight: &Flight<P::Expected>,
        at: Nanos,
    ) {
        let span = self.span(flight.is_measured, at);
        self.recorder.example(fault, || protocol.explain());
        if flight.timed_out {
            // The request has already been counted as a timeout.
            match span {
                Span::Warmup => {}
                Span::Measured => self.recorder.timed_out_request_ended(at),
                Span::Beyond => self.end_beyond(protocol, flight, true),
            }
            return self.late(protocol, flight, span, at);
        }
        if status != 0 && span == Span::Measured {
            self.recorder.status(status);
        }
        self.fail(protocol, fault, status, flight, at);
    }

    #[cold]
    pub(super) fn fail<P: Protocol>(
        &mut self,
        protocol: &P,
        fault: Fault,
        status: u16,
        flight: &Flight<P::Expected>,
        at: Nanos,
    ) {
        match self.span(flight.is_measured, at) {
            Span::Warmup => self.recorder.warmup_faults[fault as usize] += 1,
            Span::Measured => {
                self.recorder.fault(fault, at);
                self.recorder.checked += u64::from(fault == Fault::Body && protocol.is_checked(flight.expected));
                self.recorder.last_failed = at;
                self.recorder.failed_operation(protocol.operation(flight.expected));
                self.log(protocol, flight, status, Some(fault), at);
            }
            Span::Beyond if protocol.is_caused(flight.expected) => {}
            Span::Beyond => self.end_beyond(protocol, flight, false),
        }
    }

    fn end_beyond<P: Protocol>(&mut self, protocol: &P, flight: &Flight<P::Expected>, timed_out: bool) {
        let Flight { intended, sent_at, expected, .. } = *flight;
        self.beyond.push(Beyond { intended, sent_at, timed_out, operation: protocol.operation(expected) });
    }

    #[cold]
    fn log<P: Protocol>(
        &mut self,
        protocol: &P,
        flight: &Flight<P::Expected>,
        status: u16,
        fault: Option<Fault>,
        at: Nanos,
    ) {
        let from = self.phase.from;
        let Some(log) = &mut self.recorder.log else { return };
        log.add(|| {
            let since = |at: Nanos| at as i64 - from as i64;
            let last = protocol.last().filter(|_| status != 0);
            LoggedRequest {
                intended_ns: since(flight.intended),
                sent_ns: since(flight.sent_at),
                first_byte_ns: last.map(|last| since(last.first_at)),
                ended_ns: since(at),
                status,
                bytes: last.map_or(0, |last| last.bytes),
                session: protocol.session(flight.expected),
                request: protocol.index(flight.expected),
                error: fault.map_or_else(String::new, |fault| Fault::NAMES[fault as usize].to_owned()),
            }
        });
    }

    /// Counts a failed connection or attempt, and also a failed request if `request_waits` for the connection.
    #[cold]
    pub(super) fn failed_connect(&mut self, fault: Fault, request_waits: bool, at: Nanos) {
        self.in_vain += 1;
        if !request_waits {
            self.recorder.fault(fault, at);
        }
    }

    /// Adds the requests without a response to `waits`. If `keeps_time`, requests to resend keep their intended times.
    pub(super) fn unanswered<P: Protocol>(
        &mut self,
        protocol: &P,
        connections: &Connections<P::Stream, P::Expected>,
        keeps_time: bool,
        end: Nanos,
    ) -> Waits {
        let mut waits = Waits::new(end, self.timeout_ns);
        let is_overdue = |sent_at: Nanos| end.saturating_sub(sent_at) > self.timeout_ns;
        for (client, id) in connections.clients.iter().zip(0..) {
            let in_flight = || connections.flights(id, 0..client.in_flight);
            if let Some(oldest) = in_flight().map(|flight| flight.sent_at).min() {
                waits.connection(oldest);
            }
            for flight in in_flight() {
                let mut is_counted = flight.timed_out;
                if !is_counted && is_overdue(flight.sent_at) {
                    self.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                    self.recorder.failed_operation(protocol.operation(flight.expected));
                    is_counted = true;
                }
                if protocol.is_caused(flight.expected) {
                    continue;
                }
                // In other states, the requests are unwritten, because their connection is not open yet.
                let is_written = matches!(client.state, State::Open | State::Closing);
                self.recorder.left_in_flight += u64::from(!is_counted && is_written);
                // If the number of requests is limited, only requests sent while measuring count.
                if !self.is_counted || flight.is_measured {
                    waits.request(flight.intended, flight.sent_at);
                }
            }
            let again = connections.flights(id, client.in_flight..client.in_flight + client.again);
            for flight in again.filter(|flight| !protocol.is_caused(flight.expected)) {
                self.recorder.left_in_flight += 1;
                if keeps_time {
                    waits.unsent(flight.intended);
                }
            }
        }
        for Beyond { intended, sent_at, timed_out, operation } in std::mem::take(&mut self.beyond) {
            if !timed_out && is_overdue(sent_at) {
                self.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                self.recorder.failed_operation(operation);
            } else if !timed_out {
                self.recorder.left_in_flight += 1;
            }
            waits.request(intended, sent_at);
        }
        waits
    }
}
