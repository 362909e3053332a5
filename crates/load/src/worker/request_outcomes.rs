//! Records the outcome of each request of a worker: valid, invalid, late or failed.

use net::{Driver, Nanos};
use study::record::{LoggedRequest, SlowResponse};

use super::Worker;
use super::client_states_and_timers::State;
use crate::censored_waits::Waits;
use crate::coordinator_exchange::Span;
use crate::protocol::{Answer, Protocol};
use crate::recorder::{Fault, Flight};

impl<D: Driver, P: Protocol> Worker<'_, D, P> {
    /// Counts a valid response and returns its service time, ns.
    pub(super) fn right(&mut self, flight: &Flight<P::Expected>, answer: &Answer, at: Nanos) -> Nanos {
        let Flight { expected, sent_at, is_measured, timed_out, .. } = *flight;
        let span = self.tally.span(is_measured, at);
        let service_ns = at.saturating_sub(sent_at);
        let caused = self.protocol.is_caused(expected);
        let is_late = timed_out || service_ns > self.task.spec.timeout_ns;
        let recorder = &mut self.tally.recorder;
        match span {
            Span::Warmup => recorder.warmup_requests += u64::from(!caused && !is_late),
            Span::Measured if caused => recorder.last_answer = at,
            Span::Measured => {
                let latency_ns = recorder.answer(flight, at, is_late);
                recorder.checked += u64::from(self.protocol.is_checked(expected));
                if let Some(slowest) = &mut recorder.slowest
                    && latency_ns > slowest.above_ns
                    && let Some((mix, sent)) = self.protocol.mix(expected)
                    && let Some((trace_id, request)) = mix.trace(sent)
                {
                    let ended_ns = at.saturating_sub(recorder.from);
                    slowest.add(SlowResponse { latency_ns, trace_id, request, ended_ns });
                }
                if let Some(((facts, gaps_ns), streams)) = self.protocol.stream_facts().zip(recorder.streams.as_mut()) {
                    streams.answer(facts, gaps_ns);
                }
                let in_parts = answer.arrival.filter(|arrival| arrival.first_at < at);
                let first_byte_ns = in_parts.map(|arrival| arrival.first_at.saturating_sub(sent_at));
                if let Some(first_byte_ns) = first_byte_ns {
                    recorder.first_byte.record(first_byte_ns);
                }
                if let Some(completed) = self.protocol.completed().filter(|_| !is_late) {
                    recorder.session(completed);
                }
                if let Some(nth) = self.protocol.operation(expected) {
                    let operation = recorder.operation(nth);
                    operation.requests += u64::from(!is_late);
                    operation.latency.record(latency_ns);
                    if let Some(first_byte_ns) = first_byte_ns {
                        operation.first_byte.get_or_insert_default().record(first_byte_ns);
                    }
                }
                if answer.status != 0 {
                    recorder.status(answer.status);
                }
                if recorder.log.is_some() && !is_late {
                    self.log(flight, None, answer, at);
                }
            }
            Span::Beyond if caused => {}
            Span::Beyond => self.connections.beyond.push(*flight),
        }
        if span != Span::Beyond
            && let Some(cache) = &mut self.tally.recorder.cache
        {
            cache.answer(answer.seen, service_ns, at, span == Span::Measured);
        }
        if is_late {
            self.late(flight, span, at);
        }
        service_ns
    }

    /// Counts a late response as one error of kind `timeout`, unless the request was counted before.
    #[cold]
    fn late(&mut self, flight: &Flight<P::Expected>, span: Span, at: Nanos) {
        if flight.timed_out {
            self.tally.in_vain = self.tally.in_vain.saturating_sub(1);
        } else if span != Span::Beyond {
            self.fail(flight, Fault::Timeout, &Answer::default(), at);
        }
    }

    #[cold]
    pub(super) fn wrong(&mut self, flight: &Flight<P::Expected>, fault: Fault, answer: &Answer, at: Nanos) {
        let span = self.tally.span(flight.is_measured, at);
        let recorder = &mut self.tally.recorder;
        recorder.example(fault, || self.protocol.explain());
        if flight.timed_out {
            // The request has already been counted as a timeout.
            match span {
                Span::Warmup => {}
                Span::Measured => recorder.timed_out_request_ended(at),
                Span::Beyond => self.connections.beyond.push(*flight),
            }
            return self.late(flight, span, at);
        }
        if answer.status != 0 && span == Span::Measured {
            recorder.status(answer.status);
        }
        self.fail(flight, fault, answer, at);
    }

    /// Counts an error. `answer` is the invalid response, or empty if there was none.
    #[cold]
    pub(super) fn fail(&mut self, flight: &Flight<P::Expected>, fault: Fault, answer: &Answer, at: Nanos) {
        let expected = flight.expected;
        let span = self.tally.span(flight.is_measured, at);
        let recorder = &mut self.tally.recorder;
        match span {
            Span::Warmup => recorder.warmup_faults[fault as usize] += 1,
            Span::Measured => {
                recorder.fault(fault, at);
                recorder.checked += u64::from(fault == Fault::Body && self.protocol.is_checked(expected));
                recorder.last_failed = at;
                recorder.failed_operation(self.protocol.operation(expected));
                self.log(flight, Some(fault), answer, at);
            }
            Span::Beyond if self.protocol.is_caused(expected) => {}
            Span::Beyond => self.connections.beyond.push(*flight),
        }
    }

    #[cold]
    fn log(&mut self, flight: &Flight<P::Expected>, fault: Option<Fault>, answer: &Answer, at: Nanos) {
        let from = self.tally.recorder.from;
        let Some(log) = &mut self.tally.recorder.log else { return };
        log.add(|| {
            let since = |at: Nanos| at as i64 - from as i64;
            let arrival = answer.arrival.filter(|_| answer.status != 0);
            let (request, session) = self.protocol.place_in_load(flight.expected);
            LoggedRequest {
                intended_ns: since(flight.intended),
                sent_ns: since(flight.sent_at),
                first_byte_ns: arrival.map(|arrival| since(arrival.first_at)),
                ended_ns: since(at),
                status: answer.status,
                bytes: arrival.map_or(0, |arrival| arrival.body_bytes),
                session,
                request,
                error: fault.map_or_else(String::new, |fault| Fault::NAMES[fault as usize].to_owned()),
            }
        });
    }

    /// Returns the waits of the requests without a response. Only an open loop keeps the intended times of resends.
    pub(super) fn unanswered(&mut self, end: Nanos) -> Waits {
        let Self { tally, protocol, connections, budget, task, .. } = self;
        let timeout_ns = task.spec.timeout_ns;
        let mut waits = Waits::new(end, timeout_ns);
        let mut is_timeout = |flight: &Flight<P::Expected>| {
            let is_overdue = end.saturating_sub(flight.sent_at) > timeout_ns;
            if is_overdue && !flight.timed_out {
                tally.recorder.fault(Fault::Timeout, end.saturating_sub(1));
                tally.recorder.failed_operation(protocol.operation(flight.expected));
            }
            is_overdue || flight.timed_out
        };
        let mut left_in_flight = 0;
        for (client, id) in connections.clients.iter().zip(0..) {
            let in_flight = || connections.flights(id, 0..client.in_flight);
            if let Some(oldest) = in_flight().map(|flight| flight.sent_at).min() {
                waits.connection(oldest);
            }
            for flight in in_flight() {
                let is_counted = is_timeout(flight);
                if protocol.is_caused(flight.expected) {
                    continue;
                }
                // In other states, the requests are unwritten, because their connection is not open yet.
                let is_written = matches!(client.state, State::Open | State::Closing);
                left_in_flight += u64::from(!is_counted && is_written);
                // If the number of requests is limited, only requests sent while measuring count.
                if !tally.is_counted || flight.is_measured {
                    waits.request(flight.intended, flight.sent_at);
                }
            }
            let again = connections.flights(id, client.in_flight..client.in_flight + client.again);
            for flight in again.filter(|flight| !protocol.is_caused(flight.expected)) {
                left_in_flight += 1;
                if budget.timetable.is_some() {
                    waits.unsent(flight.intended);
                }
            }
        }
        for flight in &connections.beyond {
            left_in_flight += u64::from(!is_timeout(flight));
            waits.request(flight.intended, flight.sent_at);
        }
        tally.recorder.left_in_flight += left_in_flight;
        waits
    }
}
