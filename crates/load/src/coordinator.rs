//! Decides when measuring starts and ends, and gives orders to the workers through [`Control`], their only shared
//! state. The thread that called [`crate::run`], or a simulation, steps the coordinator with the current time.

use std::ops::AddAssign;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use net::Nanos;
use stats::batch_means;
use stats::volley_stop_rule::{Moments, Next, VolleyRule};
use study::generator_messages::{Announced, Connected, HOLD_MAX, Latencies, Phase, Told};
use study::record::SlowResponse;
use study::spec::{Arrivals, LoadSpec, Stop, Target, ThinkTime, Warmup};

use crate::hit_ratio_steadiness;
use crate::recorder::{Fault, Faults};

pub(crate) const NEVER: Nanos = Nanos::MAX;
/// Time in ns between announcing a moment and the moment itself, so that workers can learn of it in time.
const NOTICE_NS: Nanos = 2_000_000;
/// Timeout of the first connects in ns, unless the request timeout is longer.
const CONNECT_NS: Nanos = 5_000_000_000;
/// Time after which a gate that is still closed fails the load, ns.
const GATE_NS: Nanos = 60_000_000_000;
const TICKETS: u64 = 64;

pub(crate) const SENT_ONCE: &str = "a file of which each row is sent once";
/// Number of request timeouts without progress after which a load with a limited number of requests is abandoned.
const QUIET_TIMEOUTS: u64 = 2;
/// Additional time without progress that an open loop is allowed, in mean gaps between its sends.
const QUIET_GAPS: f64 = 10.0;
/// Maximum time that connections stay open after the end, even if the coordinator fails.
const HOLD: Duration = HOLD_MAX.saturating_mul(2);

/// The coordinator's orders to the workers. The tickets are the only part that workers change.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) start: AtomicU64,
    pub(crate) from: AtomicU64,
    pub(crate) until: AtomicU64,
    pub(crate) window_ns: Nanos,
    /// Whether the workers share a limited number of requests.
    pub(crate) limited: bool,
    tickets: AtomicU64,
    tickets_at_once: u64,
    /// Whether the load has volley's rounds. `round` starts at 0; `quota` is the number of requests per client.
    pub(crate) has_rounds: bool,
    pub(crate) round: AtomicU32,
    pub(crate) quota: AtomicU64,
    pub(crate) gauges: Vec<Gauge>,
    /// Whether connections may close after measuring has ended.
    released: Mutex<bool>,
    release: Condvar,
}

/// One worker's published state, on its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Gauge {
    pub(crate) settled: AtomicU32,
    pub(crate) reached: AtomicU32,
    pub(crate) warmup_requests: AtomicU64,
    pub(crate) ended: AtomicU64,
    /// Number of timeouts and failed connects that ended no request.
    pub(crate) in_vain: AtomicU64,
    /// Whether this worker has sent its whole share of a limited number of requests.
    pub(crate) all_sent: AtomicBool,
    pub(crate) round_done: AtomicU32,
    /// Whether every warm-up request of a cache load has received its response.
    pub(crate) rested: AtomicBool,
    /// Whether this worker's trace or file of values is exhausted and all its responses have arrived.
    pub(crate) exhausted: AtomicBool,
    /// Whether all requests that were allowed during measuring have ended.
    pub(crate) drained: AtomicBool,
    /// End of this worker's last request in ns, set once the worker may send no more.
    pub(crate) last_answer: AtomicU64,
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) requests: u64,
    pub(crate) faults: Faults,
    pub(crate) latencies: Latencies,
    /// Sum of latencies (ns) and number of responses per finished window.
    pub(crate) windows: Vec<(f64, f64)>,
    /// Number of GET hits and number of GETs of a cache load, per finished window of the warm-up.
    pub(crate) transient: Vec<(u64, u64)>,
    /// Statistical moments of the last round's latencies, one entry per client.
    pub(crate) rounds: Vec<Moments>,
    pub(crate) last_problem: Option<(Fault, String)>,
    pub(crate) slowest: Vec<SlowResponse>,
}

impl Gauge {
    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner) // Plain numbers stay consistent after a panic.
    }
}

impl Control {
    pub(crate) fn new(spec: &LoadSpec, workers: u32) -> Self {
        let limit = if let Stop::Requests { requests, .. } = spec.stop { Some(requests) } else { None };
        Self {
            start: AtomicU64::new(NEVER),
            from: AtomicU64::new(NEVER),
            until: AtomicU64::new(NEVER),
            window_ns: spec.window_ns,
            // Each worker of a cache load has its own fixed share.
            limited: limit.is_some() && !matches!(spec.target, Target::Cache { .. }),
            tickets: AtomicU64::new(limit.unwrap_or(0)),
            // Keep this small enough that no worker holds back a noticeable share of the tickets.
            tickets_at_once: (limit.unwrap_or(0) / (u64::from(workers) * 16)).clamp(1, TICKETS),
            has_rounds: matches!(spec.stop, Stop::Volley { .. }),
            round: AtomicU32::new(0),
            quota: AtomicU64::new(0),
            gauges: (0..workers).map(|_| Gauge::default()).collect(),
            released: Mutex::new(false),
            release: Condvar::new(),
        }
    }

    /// Lets connections close. Must be called once nothing else needs them open.
    pub(crate) fn release(&self) {
        *self.released.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.release.notify_all();
    }

    pub(crate) fn hold(&self) {
        let released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        // The result is ignored, because connections close even after a timeout.
        let _ = self.release.wait_timeout_while(released, HOLD, |released| !*released);
    }

    /// Takes some of the requests that all workers share and returns their number; 0 if none are left.
    pub(crate) fn take_tickets(&self) -> u64 {
        let taken = |left: u64| left.min(self.tickets_at_once);
        let (Ok(left) | Err(left)) = self.tickets.fetch_update(AcqRel, Acquire, |left| Some(left - taken(left)));
        taken(left)
    }

    fn all(&self, flag: fn(&Gauge) -> &AtomicBool) -> bool {
        self.gauges.iter().all(|gauge| flag(gauge).load(Acquire))
    }

    /// Latest end of a request of workers that may send no more, ns; 0 without any.
    fn last_answer(&self) -> Nanos {
        self.gauges.iter().map(|gauge| gauge.last_answer.load(Relaxed)).max().unwrap_or(0)
    }

    fn sum(&self, value: impl Fn(&Gauge) -> u64) -> u64 {
        self.gauges.iter().map(value).sum()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Measured(Ended),
    Unreachable(Option<(Fault, String)>),
    NotStarted,
    InputEnded,
    Interrupted,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) duration_ns: Nanos,
    pub(crate) warmup_ns: Nanos,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
    pub(crate) reason: String,
    pub(crate) volley: Option<study::record::Volley>,
    pub(crate) steadiness: Option<String>,
}

#[derive(Debug)]
enum State {
    Connecting,
    /// The load is connected and waits for the gate to open.
    Waiting,
    WarmingUp,
    Measuring,
}

pub(crate) struct Coordinator<'a> {
    pub(crate) spec: &'a LoadSpec,
    control: &'a Control,
    gate: Option<&'a Gate>,
    pub(crate) tell: &'a mut dyn FnMut(Told),
    state: State,
    since: Nanos,
    started: Nanos,
    pub(crate) from: Nanos,
    deadline: Nanos,
    /// Number of windows at which the interval rule checks next.
    look_at: usize,
    volley: Option<Rounds>,
    warmup_note: &'static str,
    /// Number of warm-up windows at which a cache load next checks for a steady hit ratio, and the last check's result.
    look_at_transient: usize,
    steadiness: Option<String>,
    quiet: Quiet,
}

/// Detects a load whose requests all time out.
#[derive(Debug, Default)]
struct Quiet {
    ended: u64,
    /// Value of `in_vain` when a request last ended, and the time at which the coordinator noticed that end.
    in_vain: u64,
    since: Nanos,
}

#[derive(Debug)]
struct Rounds {
    rule: VolleyRule,
    /// Start of the round, or [`NEVER`] between rounds.
    began: Nanos,
    inside_ns: Nanos,
}

/// Holds back several connected loads until all can start together.
#[derive(Debug, Default)]
pub struct Gate(OnceLock<Nanos>);

impl Gate {
    /// Lets the load start at `at_ns` of the monotonic clock, or at once if it has passed. Later calls have no effect.
    pub fn open(&self, at_ns: Nanos) {
        let _ = self.0.set(at_ns);
    }
}

impl<'a> Coordinator<'a> {
    pub(crate) fn new(
        spec: &'a LoadSpec,
        control: &'a Control,
        gate: Option<&'a Gate>,
        tell: &'a mut dyn FnMut(Told),
        now: Nanos,
    ) -> Self {
        let volley = match spec.stop {
            Stop::Volley { round_requests, half_width_ns, max_ns } => Some(Rounds {
                rule: VolleyRule::new(spec.clients, round_requests, half_width_ns, max_ns),
                began: NEVER,
                inside_ns: 0,
            }),
            _ => None,
        };
        Self {
            spec,
            control,
            gate,
            tell,
            state: State::Connecting,
            since: now,
            started: NEVER,
            from: NEVER,
            deadline: NEVER,
            look_at: batch_means::next_look(0),
            volley,
            warmup_note: "",
            look_at_transient: hit_ratio_steadiness::FEWEST,
            steadiness: None,
            quiet: Quiet { since: now, ..Quiet::default() },
        }
    }

    pub(crate) fn next_moment(&self, now: Nanos) -> Nanos {
        [self.from, self.deadline].into_iter().filter(|&at| at > now).fold(NEVER, Nanos::min)
    }

    pub(crate) fn phase(&self, now: Nanos) -> Phase {
        match self.state {
            State::Connecting | State::Waiting => Phase::Connect,
            _ if now >= self.from => Phase::Measure,
            _ => Phase::Warmup,
        }
    }

    /// Time in which requests only timed out or failed to connect, ns; `None` unless it exceeds the limit.
    fn in_vain_for(&mut self, now: Nanos) -> Option<Nanos> {
        let ended = self.control.sum(|gauge| gauge.ended.load(Relaxed));
        let in_vain = self.control.sum(|gauge| gauge.in_vain.load(Relaxed));
        if ended != self.quiet.ended {
            self.quiet = Quiet { ended, in_vain, since: now };
        }
        if self.from <= now {
            self.quiet.since = self.quiet.since.max(self.from);
        }
        let gaps_ns = match self.spec.arrivals {
            Arrivals::Closed { think: ThinkTime::Constant(think_ns) } => think_ns,
            Arrivals::Closed { think } => (QUIET_GAPS * think.mean_ns() as f64) as Nanos,
            arrivals => arrivals.offered_per_s().map_or(0, |rate| (QUIET_GAPS * 1e9 / rate) as Nanos),
        };
        let patience = self.spec.timeout_ns.saturating_mul(QUIET_TIMEOUTS).saturating_add(gaps_ns);
        let quiet = now.saturating_sub(self.quiet.since);
        // Some requests may time out after the last send, while the responses to others are still in transit.
        let is_vain = in_vain > self.quiet.in_vain || in_vain > 0 && self.control.all(|gauge| &gauge.all_sent);
        (is_vain && quiet >= patience).then_some(quiet)
    }

    /// Advances the load to `now`. Returns `Some` at the end, after ordering the workers to stop; this is the last step.
    pub(crate) fn step(&mut self, now: Nanos, aborted: bool) -> Option<Outcome> {
        if aborted {
            if matches!(self.state, State::Measuring) && now > self.from {
                return self.measured(now, "interrupted".to_owned());
            }
            return self.end(now, Outcome::Interrupted);
        }
        if self.control.all(|gauge| &gauge.exhausted) && self.started < now {
            return self.input_ended(now);
        }
        match self.state {
            State::Connecting => self.connecting(now),
            State::Waiting => self.waiting(now),
            State::WarmingUp => self.warming_up(now),
            State::Measuring => self.measuring(now),
        }
    }

    /// Ends the load, under every stop rule, at the end of a trace or of a file that is not repeated.
    fn input_ended(&mut self, now: Nanos) -> Option<Outcome> {
        let last = self.control.last_answer().max(self.from.saturating_add(1));
        if !matches!(self.state, State::Measuring) || now <= self.from {
            return self.end(now, Outcome::InputEnded);
        }
        let rest = match self.spec.stop {
            Stop::Requests { requests, .. } if self.control.all(|gauge| &gauge.drained) => {
                return self.measured(last, format!("{requests} requests"));
            }
            Stop::Requests { requests, .. } => format!(", before {requests} requests"),
            _ => String::new(),
        };
        let input = if matches!(self.spec.target, Target::Cache { .. }) { "the trace" } else { SENT_ONCE };
        self.measured(last, format!("the end of {input}{rest}"))
    }

    fn connecting(&mut self, now: Nanos) -> Option<Outcome> {
        let settled = self.control.sum(|gauge| u64::from(gauge.settled.load(Relaxed)));
        let patience = CONNECT_NS.max(self.spec.timeout_ns);
        let tried = settled >= u64::from(self.spec.own_clients());
        if !tried && now.saturating_sub(self.since) < patience {
            return None;
        }
        if self.control.sum(|gauge| u64::from(gauge.reached.load(Relaxed))) == 0 {
            let refusal = self.control.gauges.iter().find_map(|gauge| gauge.live().last_problem.clone());
            return self.end(now, Outcome::Unreachable(refusal));
        }
        if self.gate.is_some() {
            (self.state, self.since) = (State::Waiting, now);
            let reached = self.control.gauges.iter().map(|gauge| gauge.reached.load(Relaxed)).sum();
            (self.tell)(Told::Connected(Connected { reached, clients: self.spec.own_clients() }));
            return self.waiting(now);
        }
        self.start(now + NOTICE_NS)
    }

    fn waiting(&mut self, now: Nanos) -> Option<Outcome> {
        match self.gate.and_then(|gate| gate.0.get()) {
            Some(at) => self.start((*at).max(now + NOTICE_NS)),
            None if now.saturating_sub(self.since) >= GATE_NS => self.end(now, Outcome::NotStarted),
            None => None,
        }
    }

    fn start(&mut self, at: Nanos) -> Option<Outcome> {
        self.started = at;
        self.control.start.store(self.started, Release);
        self.state = State::WarmingUp;
        if let Some(rounds) = &self.volley {
            // Volley counts its priming round, so there is no warm-up before it.
            let first = rounds.rule.first();
            self.measure_from(self.started);
            return self.next_round(first, self.started);
        }
        if let Warmup::DurationNs(warmup_ns) = self.spec.warmup {
            self.measure_from(self.started + warmup_ns);
        }
        None
    }

    fn warming_up(&mut self, now: Nanos) -> Option<Outcome> {
        let wanted = match self.spec.warmup {
            Warmup::Requests(wanted) => wanted,
            Warmup::Steady { max_ns } => {
                self.steady(now, max_ns);
                return None;
            }
            Warmup::DurationNs(_) => return None,
        };
        let done = if matches!(self.spec.target, Target::Cache { .. }) {
            self.control.all(|gauge| &gauge.rested)
        } else {
            self.control.sum(|gauge| gauge.warmup_requests.load(Relaxed)) >= wanted
        };
        if done {
            self.measure_from(now + NOTICE_NS);
        } else if now.saturating_sub(self.started) >= self.spec.stop.longest_ns() || self.in_vain_for(now).is_some() {
            self.warmup_note = "; the warm-up was cut short";
            self.measure_from(now + NOTICE_NS);
        }
        None
    }

    /// Starts measuring a cache load once the hit ratio shows no trend.
    fn steady(&mut self, now: Nanos, max_ns: Nanos) {
        let elapsed = now.saturating_sub(self.started);
        let finished = self.control.gauges.iter().map(|gauge| gauge.live().transient.len()).min().unwrap_or(0);
        if finished < self.look_at_transient && elapsed < max_ns {
            return;
        }
        self.look_at_transient = hit_ratio_steadiness::next_look(finished);
        let mut windows = vec![(0, 0); finished];
        self.control.gauges.iter().for_each(|gauge| add_windows(&mut windows, &gauge.live().transient));
        let judged = hit_ratio_steadiness::judge_steadiness(&windows);
        if judged.steady || elapsed >= max_ns {
            self.steadiness = Some(judged.sentence(elapsed, self.spec.window_ns));
            self.measure_from(now + NOTICE_NS);
        }
    }

    fn next_round(&mut self, next: Next, now: Nanos) -> Option<Outcome> {
        match next {
            Next::Round { requests_per_client } => {
                if let Some(rounds) = &mut self.volley {
                    rounds.began = now;
                }
                self.control.quota.store(requests_per_client.max(1), Relaxed);
                self.control.round.fetch_add(1, Release);
                None
            }
            Next::Done(why) => self.measured(now.max(self.from + 1), why.to_owned()),
        }
    }

    fn measure_from(&mut self, from: Nanos) {
        self.from = from;
        self.deadline = from.saturating_add(self.spec.stop.longest_ns());
        let is_end_known = matches!(self.spec.stop, Stop::Duration { .. });
        if is_end_known {
            self.control.until.store(self.deadline, Release);
        }
        self.control.from.store(from, Release);
        (self.tell)(Told::Announced(Announced { from_ns: from, until_ns: is_end_known.then_some(self.deadline) }));
        self.state = State::Measuring;
    }

    fn measuring(&mut self, now: Nanos) -> Option<Outcome> {
        if now < self.from {
            return None;
        }
        let rule = match self.spec.stop {
            Stop::Duration { duration_ns } => {
                return (now >= self.deadline).then(|| self.measured(self.deadline, words_of_duration(duration_ns)))?;
            }
            Stop::Requests { requests, .. } => {
                if self.control.all(|gauge| &gauge.drained) {
                    let last = self.control.last_answer().max(self.from + 1);
                    return self.measured(last, format!("{requests} requests"));
                }
                if let Some(quiet_ns) = self.in_vain_for(now) {
                    let quiet = format!("{:.1} s", quiet_ns as f64 / 1e9);
                    return self.measured(now, format!("requests: gave up, no response for {quiet}"));
                }
                "requests"
            }
            Stop::Interval { relative, level, .. } => {
                if let Some(reason) = self.narrow_enough(relative, level) {
                    return self.measured(now, reason);
                }
                "interval"
            }
            Stop::Volley { .. } => {
                let round = self.control.round.load(Relaxed);
                let gauges = self.control.gauges.iter();
                if gauges.clone().all(|gauge| gauge.round_done.load(Acquire) == round)
                    && let Some(rounds) = &mut self.volley
                {
                    let last = self.control.last_answer();
                    let samples = gauges.flat_map(|gauge| std::mem::take(&mut gauge.live().rounds)).collect::<Vec<_>>();
                    rounds.inside_ns += last.saturating_sub(rounds.began);
                    rounds.began = NEVER;
                    let next = rounds.rule.finish_round(&samples, now - self.from);
                    let at = if matches!(next, Next::Done(_)) { last } else { now };
                    return self.next_round(next, at);
                }
                "volley"
            }
        };
        (now >= self.deadline).then(|| {
            let reason = format!("{rule}: not met within {}", words_of_duration(self.deadline - self.from));
            self.measured(self.deadline.max(self.from + 1), reason)
        })?
    }

    /// Applies the interval rule to all finished windows by batch means. Returns the reason to stop, if any.
    fn narrow_enough(&mut self, relative: f64, level: f64) -> Option<String> {
        let finished = self.control.gauges.iter().map(|gauge| gauge.live().windows.len()).min()?;
        if finished < self.look_at {
            return None;
        }
        self.look_at = batch_means::next_look(finished);
        let mut windows = vec![(0.0, 0.0); finished];
        self.control.gauges.iter().for_each(|gauge| add_windows(&mut windows, &gauge.live().windows));
        let batches = batch_means::ratio(&windows, level).ok()?;
        let estimate = batches.estimate;
        let half_width = (estimate.high - estimate.low) / 2.0 / estimate.point;
        (half_width <= relative).then(|| {
            format!(
                "interval: +-{:.2} % at {:.0} % over {} batches",
                half_width * 100.0,
                level * 100.0,
                batches.batches
            )
        })
    }

    fn measured(&mut self, until: Nanos, mut reason: String) -> Option<Outcome> {
        reason.push_str(self.warmup_note);
        let mut duration_ns = until.saturating_sub(self.from);
        let mut volley = None;
        if let Some(rounds) = &self.volley {
            // Exclude the pauses between rounds. The last round may have been cut off.
            duration_ns = rounds.inside_ns + until.saturating_sub(rounds.began);
            volley = (rounds.rule.samples > 0).then(|| study::record::Volley {
                mean_us: rounds.rule.mean_ns / 1e3,
                stddev_us: rounds.rule.stddev_ns / 1e3,
                samples: rounds.rule.samples,
                rounds: rounds.rule.rounds(),
            });
        }
        let ended = Ended {
            duration_ns,
            warmup_ns: self.from - self.started,
            from: self.from,
            until,
            reason,
            volley,
            steadiness: self.steadiness.take(),
        };
        self.end(until, Outcome::Measured(ended))
    }

    fn end(&mut self, until: Nanos, outcome: Outcome) -> Option<Outcome> {
        self.control.until.store(until, Release);
        Some(outcome)
    }
}

pub(crate) fn add_windows<T: Copy + AddAssign>(sums: &mut [(T, T)], worker: &[(T, T)]) {
    for (sum, window) in sums.iter_mut().zip(worker) {
        sum.0 += window.0;
        sum.1 += window.1;
    }
}

fn words_of_duration(duration_ns: Nanos) -> String {
    format!("{} s", duration_ns as f64 / 1e9)
}
