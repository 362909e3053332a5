//! What a worker may still send, and when.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use net::Nanos;
use stats::volley::Moments;
use study::spec::{Arrivals, Stop, Target, Warmup};

use super::Task;
use crate::arrivals::Timetable;
use crate::censored::Waits;
use crate::coordinator::{Control, Gauge, NEVER};
use crate::phase_tracker::PhaseTracker;
use crate::protocol::Protocol;
use crate::recorder::Recorder;

/// When the next request may go, and how many are left. Whatever the stop rule and the arrivals are, they are values of
/// this: by duration and interval any number, of a number of requests or a trace what is left of it, by volley's rule what
/// is left of a round.
pub(super) struct Budget {
    /// Clients may send.
    pub(super) has_started: bool,
    /// When requests are to be sent, in an open loop that has started.
    pub(super) timetable: Option<Timetable>,
    /// Pause between an answer and the next request of its client, in a closed loop.
    pub(super) think_ns: Nanos,
    /// Requests that may still be sent, where their number is given; `None`: any. At 0 there are no more of them.
    left: Option<u64>,
    /// Of a cache: how many operations of the warm-up and of what is measured are this worker's.
    of_warmup: Option<u64>,
    of_measured: Option<u64>,
    /// The coordinator knows that all that may be sent is answered.
    told_done: bool,
    /// The trace has no more operations for this worker, and the coordinator knows that all are answered.
    exhausted: bool,
    told_exhausted: bool,
    /// Of recorded gaps: operations meant to be sent while measured.
    due: u64,
    /// Volley's rule: the round, 0 for none yet, clients that are not through it, and what each client has of it.
    round: u32,
    round_open: u32,
    shares: Vec<Share>,
}

/// What one client has of a round: requests left, and the service times it has seen.
#[derive(Clone, Default)]
struct Share {
    left: u64,
    samples: Moments,
}

impl Budget {
    pub(super) fn new(task: &Task<'_>) -> Self {
        let think_ns = if let Arrivals::Closed { think_ns } = task.spec.arrivals { think_ns } else { 0 };
        let is_cache = matches!(task.spec.target, Target::Cache { .. });
        let of_warmup = match task.spec.warmup {
            Warmup::Requests(requests) if is_cache => Some(share(requests, task.index, task.workers)),
            _ => None,
        };
        let of_measured = match task.spec.stop {
            Stop::Requests { requests, .. } if is_cache => Some(share(requests, task.index, task.workers)),
            _ => None,
        };
        let in_rounds = if task.control.has_rounds() { task.clients as usize } else { 0 };
        Self {
            has_started: false,
            timetable: None,
            think_ns,
            left: of_warmup,
            of_warmup,
            of_measured,
            told_done: false,
            exhausted: false,
            told_exhausted: false,
            due: 0,
            round: 0,
            round_open: 0,
            shares: vec![Share::default(); in_rounds],
        }
    }

    /// Clients may send from now on.
    pub(super) fn start(&mut self, task: &Task<'_>, protocol: &mut impl Protocol) {
        self.has_started = true;
        let start = task.control.start.load(Relaxed);
        self.timetable = match task.spec.arrivals {
            Arrivals::Recorded => Some(Timetable::recorded(start, protocol.next_at())),
            arrivals => Timetable::new(arrivals, task.spec.seed, task.index, task.workers, start),
        };
    }

    /// Measuring begins at `from`, and what is measured has requests of its own. Whether clients that had sent all of the warm-up
    /// are to go on now.
    pub(super) fn begin_measuring(&mut self, task: &Task<'_>, from: Nanos, protocol: &mut impl Protocol) -> bool {
        let control = task.control;
        self.left = self.of_measured.or_else(|| control.limited.then(|| control.take_tickets()));
        self.told_done = false;
        if self.of_warmup.is_none() || !self.has_started {
            return false;
        }
        // Nobody was late in the pause before; the gaps are others than before.
        self.timetable = match task.spec.arrivals {
            Arrivals::Recorded => {
                // The trace stood still in the pause.
                let next = protocol.next_at();
                Some(Timetable::recorded(from.saturating_sub(next.unwrap_or(0)), next))
            }
            arrivals => Timetable::new(arrivals, stats::random::mix(task.spec.seed), task.index, task.workers, from),
        };
        self.timetable.is_none()
    }

    /// Whether no more of a given number may be sent.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.left == Some(0)
    }

    /// When the next request of the timetable is due, where one may still be sent.
    #[inline]
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.timetable.as_ref().filter(|_| !self.is_spent()).map(Timetable::due)
    }

    /// When the next request was due, where it is due by `now` and one may still be sent; the timetable goes on. Whoever sends
    /// it takes it ([`take`](Self::take)) and says so ([`sent`](Self::sent)).
    #[inline]
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

    /// The request that was due at `due` is sent. Of a trace only now is known when the next one is.
    #[inline]
    pub(super) fn sent(&mut self, due: Nanos, from: Nanos, protocol: &mut impl Protocol) {
        if let Some(timetable) = &mut self.timetable
            && timetable.is_recorded()
        {
            self.due += u64::from(due >= from);
            timetable.set_next(protocol.next_at());
        }
    }

    /// Takes up to `wanted` requests from what may still be sent; how many those are.
    #[inline]
    pub(super) fn take(&mut self, wanted: u32, protocol: &mut impl Protocol, phase: &PhaseTracker<'_>) -> u32 {
        let there = if self.is_spent() { 0 } else { protocol.available(wanted) };
        self.exhausted |= there < wanted && !self.is_spent();
        let Some(left) = &mut self.left else { return there };
        if phase.is_measuring && phase.control.limited {
            // Of what all workers have together; none of it is left where nothing is left here.
            while *left <= u64::from(there) {
                match phase.control.take_tickets() {
                    0 => break,
                    more => *left += more,
                }
            }
        }
        let taken = u64::from(there).min(*left);
        *left -= taken;
        taken as u32
    }

    /// Whether a new round of volley's rule has begun: every client has its share of it.
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

    /// Takes one request of a client's share of the round, where there are rounds; false: the client is through it.
    #[inline]
    pub(super) fn take_of_round(&mut self, id: u32, now: Nanos, gauge: &Gauge) -> bool {
        if self.round == 0 {
            return true;
        }
        let share = &mut self.shares[id as usize];
        if share.left > 0 {
            share.left -= 1;
            return true;
        }
        self.through_round(now, gauge);
        false
    }

    /// One more client has done its share of the round.
    fn through_round(&mut self, now: Nanos, gauge: &Gauge) {
        self.round_open = self.round_open.saturating_sub(1);
        if self.round_open == 0 {
            gauge.last_answer.store(now, Relaxed);
            gauge.live().rounds.extend(self.shares.iter().map(|share| share.samples));
            gauge.round_done.store(self.round, Release);
        }
    }

    /// A request of a client was lost: it is asked again.
    pub(super) fn give_back(&mut self, id: u32) {
        if self.round > 0 {
            self.shares[id as usize].left += 1;
        }
    }

    /// A request of a client has its answer, so long after it was written.
    #[inline]
    pub(super) fn sample(&mut self, id: u32, service_ns: Nanos) {
        if let Some(share) = self.shares.get_mut(id as usize) {
            share.samples.record(service_ns as f64);
        }
    }

    /// Whether all clients wait for a word of the coordinator: for the start, or for the next round.
    pub(super) fn awaits_word(&self, control: &Control) -> bool {
        !self.has_started || control.has_rounds() && self.round_open == 0
    }

    /// Tells the coordinator when all that may be sent is sent; called when all that was sent is answered.
    #[inline]
    pub(super) fn tell(&mut self, phase: &PhaseTracker<'_>, recorder: &Recorder) {
        let gauge = phase.gauge;
        if self.is_spent() && self.has_started && !std::mem::replace(&mut self.told_done, true) {
            if phase.is_measuring {
                gauge.last_answer.store(recorder.last_end(), Relaxed);
                gauge.drained.store(true, Release);
            } else {
                gauge.rested.store(true, Release);
            }
        }
        if self.exhausted && !std::mem::replace(&mut self.told_exhausted, true) {
            gauge.last_answer.store(recorder.last_end(), Relaxed);
            gauge.exhausted.store(true, Release);
        }
    }

    /// The load has ended at `end`: requests that were due before and were not sent go to `waits`. Returns the operations of
    /// recorded gaps that were meant to be sent while measured.
    pub(super) fn finish(mut self, end: Nanos, limited: bool, waits: &mut Waits, protocol: &mut impl Protocol) -> u64 {
        // Of what all workers share, any of them may have had more.
        let mut left = match self.left {
            None | Some(1..) if limited => u64::MAX,
            left => left.unwrap_or(u64::MAX),
        };
        if let Some(timetable) = &mut self.timetable {
            while left > 0 && timetable.due() < end {
                waits.unsent(timetable.due());
                left -= 1;
                timetable.advance();
                if timetable.is_recorded() {
                    self.due += 1;
                    protocol.skip();
                    timetable.set_next(protocol.next_at());
                }
            }
        }
        self.due
    }
}

/// What one worker has of a number: as even as it goes.
fn share(all: u64, index: u32, workers: u32) -> u64 {
    let workers = u64::from(workers);
    all / workers + u64::from(u64::from(index) < all % workers)
}
