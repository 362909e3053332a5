//! What a worker counts of its requests, each in the part of the load that it belongs to.

use net::Nanos;
use study::spec::{Stop, Target};

use super::Task;
use super::connections::{Connections, Flight};
use crate::censored::Waits;
use crate::observer::Observer;
use crate::protocol::{CacheOutcome, Protocol};
use crate::recorder::{Answered, Fault, Recorder};

/// The part of a load that a request counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Warmup,
    Measured,
    /// It ended after the end: it was in flight then.
    Beyond,
}

/// The recorder of a worker, and what decides where in it a request counts.
pub(super) struct Tally<'a> {
    pub(super) observer: Observer<'a>,
    pub(super) recorder: Recorder,
    timeout_ns: Nanos,
    /// The number of measured requests is given; what is counted as measured is what was asked while measuring.
    is_counted: bool,
    /// Requests that ended after the end: when they were intended and written.
    beyond: Vec<(Nanos, Nanos)>,
    /// Errors by which no request ended: timeouts, failed connects.
    pub(super) in_vain: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(task: &Task<'a>) -> Self {
        let spec = task.spec;
        let is_cache = matches!(spec.target, Target::Cache { .. });
        Self {
            observer: Observer::new(task.control, task.place),
            recorder: Recorder::new(spec.window_ns, spec.arrivals.is_open(), task.tls.is_some(), is_cache),
            timeout_ns: spec.timeout_ns,
            is_counted: matches!(spec.stop, Stop::Requests { .. }),
            beyond: Vec::new(),
            in_vain: 0,
        }
    }

    /// Where a request counts that ends at `at`. Of a number of requests those count that were asked while measuring; else what
    /// ends while measuring does.
    #[inline]
    fn span(&self, is_measured: bool, at: Nanos) -> Span {
        let has_begun = if self.is_counted { is_measured } else { at >= self.observer.from };
        match has_begun {
            false => Span::Warmup,
            true if at < self.observer.until => Span::Measured,
            true => Span::Beyond,
        }
    }

    /// `count` of something that counts from the beginning of measuring on.
    #[inline]
    pub(super) fn measured(&self, count: usize) -> u64 {
        if self.observer.is_measuring { count as u64 } else { 0 }
    }

    /// A request has its right answer. Returns its service time, ns.
    #[inline]
    pub(super) fn right<P: Protocol>(
        &mut self,
        protocol: &P,
        flight: &Flight<P::Expected>,
        status: u16,
        seen: CacheOutcome,
        at: Nanos,
    ) -> Nanos {
        let Flight { intended, free_since, sent_at, is_measured, timed_out, .. } = *flight;
        let span = self.span(is_measured, at);
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
        if timed_out || service_ns > self.timeout_ns {
            self.late(protocol, flight, at);
        }
        service_ns
    }

    #[cold]
    fn late<P: Protocol>(&mut self, protocol: &P, flight: &Flight<P::Expected>, at: Nanos) {
        let span = self.span(flight.is_measured, at);
        if !flight.timed_out && span != Span::Beyond {
            self.fail(protocol, Fault::Timeout, flight, at);
        }
        self.recorder.late_answers += u64::from(span == Span::Measured);
    }

    /// An answer that can be read, and is not the right one.
    #[cold]
    pub(super) fn wrong<P: Protocol>(
        &mut self,
        protocol: &P,
        fault: Fault,
        status: u16,
        flight: &Flight<P::Expected>,
        at: Nanos,
    ) {
        let is_counted = status != 0 && self.span(flight.is_measured, at) == Span::Measured;
        self.recorder.example(fault, || protocol.explain());
        if is_counted {
            self.recorder.status(status);
        }
        self.fail(protocol, fault, flight, at);
    }

    /// A request has failed by `fault`.
    #[cold]
    pub(super) fn fail<P: Protocol>(&mut self, protocol: &P, fault: Fault, flight: &Flight<P::Expected>, at: Nanos) {
        match self.span(flight.is_measured, at) {
            Span::Warmup => self.recorder.warmup_faults[fault as usize] += 1,
            Span::Measured => {
                self.recorder.fault(fault, at);
                self.recorder.last_failed = at;
            }
            Span::Beyond if protocol.is_caused(flight.expected) => {}
            Span::Beyond => self.beyond.push((flight.intended, flight.sent_at)),
        }
    }

    /// A connect has failed. Where a request waited for the connection, it is lost too, and the fault counts there.
    #[cold]
    pub(super) fn failed_connect(&mut self, fault: Fault, request_waits: bool, at: Nanos) {
        self.in_vain += 1;
        if !request_waits {
            self.recorder.fault(fault, at);
        }
    }

    /// The requests that had no answer at the end. `keeps_time`: what was to be asked again has a time in a timetable.
    pub(super) fn unanswered<P: Protocol>(
        &mut self,
        protocol: &P,
        connections: &Connections<P::Stream, P::Expected>,
        keeps_time: bool,
        end: Nanos,
    ) -> Waits {
        let mut waits = Waits::new(end, self.timeout_ns);
        for (client, id) in connections.clients.iter().zip(0..) {
            for (nth, flight) in connections.flights(id, client.in_flight).enumerate() {
                if !flight.timed_out && end.saturating_sub(flight.sent_at) > self.timeout_ns {
                    self.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                }
                if nth == 0 {
                    waits.connection(flight.sent_at);
                }
                // Of a number of requests, those that were asked while measuring are meant.
                let is_due = !self.is_counted || flight.is_measured;
                if is_due && !protocol.is_caused(flight.expected) {
                    waits.request(flight.intended, flight.sent_at);
                }
            }
            if keeps_time {
                let again = connections.flights(id, client.again).filter(|flight| !protocol.is_caused(flight.expected));
                again.for_each(|flight| waits.unsent(flight.intended));
            }
        }
        self.beyond.iter().for_each(|&(intended, sent_at)| waits.request(intended, sent_at));
        waits
    }
}
