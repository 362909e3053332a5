//! The requests that a worker may still send, and when.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use net::Nanos;
use stats::Rng;
use stats::volley_stop_rule::Moments;
use study::spec::{Arrivals, LoadSpec, Stop, Target, ThinkTime, Warmup, even_share};

use super::Task;
use crate::arrivals::Timetable;
use crate::censored_waits::Waits;
use crate::coordinator::{Control, Gauge, NEVER};
use crate::coordinator_exchange::Tally;
use crate::protocol::Protocol;

/// The requests that the stop rule still allows: no limit, or what remains of a limit, a trace or a volley round.
#[derive(Default)]
pub(super) struct Budget {
    pub(super) has_started: bool,
    pub(super) timetable: Option<Timetable>,
    /// Think time of the clients and its random numbers; `None` without think time.
    think: Option<(ThinkTime, Rng)>,
    /// Number of requests that may still be sent; `None` if unlimited. Once it is 0, it remains 0.
    left: Option<u64>,
    /// Number of operations of this worker in the warm-up of a cache load; `None` for other loads.
    of_warmup: Option<u64>,
    of_measured: Option<u64>,
    exhausted: bool,
    due: u64,
    /// Volley's rule: the round (0 before the first), the number of clients still in it, and each client's share.
    round: u32,
    round_open: u32,
    shares: Vec<Share>,
}

#[derive(Clone, Default)]
struct Share {
    left: u64,
    samples: Moments,
}

impl Budget {
    pub(super) fn new(task: &Task<'_>) -> Self {
        // An open loop, which has no think time, draws its gaps from the same numbers.
        let think = Some(task.spec.arrivals.think()).filter(|think| *think != ThinkTime::NONE);
        let think = think.map(|think| (think, Rng::stream(task.spec.seed, u64::from(task.index) * 2 + 1)));
        let is_cache = matches!(task.spec.target, Target::Cache { .. });
        let share = |all: u64| is_cache.then(|| even_share(all, task.index.into(), task.workers.into()));
        let of_warmup = if let Warmup::Requests(requests) = task.spec.warmup { share(requests) } else { None };
        let of_measured = if let Stop::Requests { requests, .. } = task.spec.stop { share(requests) } else { None };
        let in_rounds = if task.control.has_rounds { task.clients as usize } else { 0 };
        let shares = vec![Share::default(); in_rounds];
        Self { think, left: of_warmup, of_warmup, of_measured, shares, ..Self::default() }
    }

    pub(super) fn start(&mut self, task: &Task<'_>, protocol: &mut impl Protocol) {
        self.has_started = true;
        let start = task.control.start.load(Relaxed);
        self.timetable = match task.spec.arrivals {
            Arrivals::Recorded => Some(Timetable { start, next: protocol.next_at(), drawn: None }),
            arrivals => {
                let arrivals = task.spec.shape.first().map_or(arrivals, |stage| arrivals.at(stage.from));
                Timetable::new(arrivals, &[], task.spec.seed, (task.index, task.workers), start)
            }
        };
    }

    /// Starts measuring. Returns whether clients that had used up the warm-up must continue.
    pub(super) fn begin_measuring(&mut self, task: &Task<'_>, from: Nanos, protocol: &mut impl Protocol) -> bool {
        let control = task.control;
        self.left = self.of_measured.or_else(|| control.limited.then(|| control.take_tickets()));
        let LoadSpec { arrivals, seed, ref shape, .. } = *task.spec;
        let ends_pause = self.of_warmup.is_some() && self.has_started;
        if ends_pause || !shape.is_empty() {
            // The schedule restarts with new gaps, so that the pause makes no request late.
            self.timetable = match arrivals {
                Arrivals::Recorded => {
                    // The trace was halted during the pause.
                    let next = protocol.next_at();
                    Some(Timetable { start: from.saturating_sub(next.unwrap_or(0)), next, drawn: None })
                }
                arrivals => {
                    let seed = stats::random::mix(seed);
                    Timetable::new(arrivals, shape, seed, (task.index, task.workers), from)
                }
            };
        }
        ends_pause && self.timetable.is_none()
    }

    /// End of a pause of a client that starts at `at`; `None` without think time.
    pub(super) fn thinks_until(&mut self, at: Nanos) -> Option<Nanos> {
        self.think.as_mut().map(|(think, rng)| at.saturating_add(think.sample_ns(rng)))
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == Some(0)
    }

    /// Due time of the next scheduled request; `None` if no request may be sent.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.timetable.as_ref().filter(|_| !self.is_spent()).map(Timetable::due)
    }

    /// Advances the schedule if a request is due by `now` and may be sent, and returns its due time. The caller then
    /// calls [`take`](Self::take) and [`sent`](Self::sent).
    pub(super) fn pass_due(&mut self, now: Nanos) -> Option<Nanos> {
        let timetable = self.timetable.as_mut()?;
        let due = timetable.due();
        self.exhausted |= due == NEVER;
        if due > now || self.left == Some(0) {
            return None;
        }
        timetable.advance();
        Some(due)
    }

    /// Advances a recorded schedule, whose next due time is known only after a send.
    pub(super) fn sent(&mut self, due: Nanos, from: Nanos, protocol: &mut impl Protocol) {
        if let Some(timetable) = &mut self.timetable
            && timetable.drawn.is_none()
        {
            self.due += u64::from(due >= from);
            timetable.next = protocol.next_at();
        }
    }

    pub(super) fn take(&mut self, wanted: u32, protocol: &mut impl Protocol, tally: &Tally<'_>) -> u32 {
        let there = if self.is_spent() { 0 } else { protocol.available(wanted) };
        self.exhausted |= there < wanted && !self.is_spent();
        let Some(left) = &mut self.left else { return there };
        if tally.is_measuring && tally.control.limited {
            // Refill from the number that all workers share. This budget is used up once the shared number is.
            while *left <= u64::from(there) {
                match tally.control.take_tickets() {
                    0 => break,
                    more => *left += more,
                }
            }
        }
        let taken = u64::from(there).min(*left);
        *left -= taken;
        taken as u32
    }

    pub(super) fn begins_round(&mut self, control: &Control) -> bool {
        let round = control.round.load(Acquire);
        if round == self.round {
            return false;
        }
        self.round = round;
        self.round_open = self.shares.len() as u32;
        self.shares.fill(Share { left: control.quota.load(Relaxed), samples: Moments::default() });
        true
    }

    /// Takes one request from the client's share of a round. Returns false if none is left; always true without rounds.
    pub(super) fn take_of_round(&mut self, id: u32, now: Nanos, gauge: &Gauge) -> bool {
        if self.round == 0 {
            return true;
        }
        let share = &mut self.shares[id as usize];
        if share.left > 0 {
            share.left -= 1;
            return true;
        }
        self.round_open = self.round_open.saturating_sub(1);
        if self.round_open == 0 {
            gauge.last_answer.store(now, Relaxed);
            gauge.live().rounds.extend(self.shares.iter().map(|share| share.samples));
            gauge.round_done.store(self.round, Release);
        }
        false
    }

    pub(super) fn give_back(&mut self, id: u32) {
        if self.round > 0 {
            self.shares[id as usize].left += 1;
        }
    }

    pub(super) fn sample(&mut self, id: u32, service_ns: Nanos) {
        if let Some(share) = self.shares.get_mut(id as usize) {
            share.samples.record(service_ns as f64);
        }
    }

    /// Whether all clients wait for the start or for the next round.
    pub(super) fn awaits_coordinator(&self, control: &Control) -> bool {
        !self.has_started || control.has_rounds && self.round_open == 0
    }

    /// Notifies the coordinator that all permitted requests have been sent, once none is in flight.
    pub(super) fn report_spent(&self, tally: &Tally<'_>) {
        let gauge = tally.gauge;
        if self.is_spent() && self.has_started {
            if tally.is_measuring {
                gauge.last_answer.store(tally.recorder.last_end(), Relaxed);
                gauge.drained.store(true, Release);
            } else {
                gauge.rested.store(true, Release);
            }
        }
        if self.exhausted {
            gauge.last_answer.store(tally.recorder.last_end(), Relaxed);
            gauge.exhausted.store(true, Release);
        }
    }

    /// Adds due but unsent requests to `waits`. Returns the number of recorded operations due while measuring.
    pub(super) fn finish(mut self, end: Nanos, limited: bool, waits: &mut Waits, protocol: &mut impl Protocol) -> u64 {
        // Unless the shared number is used up, this worker might have taken more requests from it.
        let mut left = match self.left {
            None | Some(1..) if limited => u64::MAX,
            left => left.unwrap_or(u64::MAX),
        };
        if let Some(timetable) = &mut self.timetable {
            while left > 0 && timetable.due() < end {
                waits.unsent(timetable.due());
                left -= 1;
                timetable.advance();
                if timetable.drawn.is_none() {
                    self.due += 1;
                    protocol.skip();
                    timetable.next = protocol.next_at();
                }
            }
        }
        self.due
    }
}
