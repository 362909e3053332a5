//! Links a worker to the coordinator: reads the start and end of measuring, and counts and publishes results.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use net::Nanos;
use study::generator_messages::LATENCY_BOUNDS_NS;
use study::record::StreamsMeasurement;
use study::spec::{LoadSpec, Stop, Target};

use crate::coordinator::{Control, Gauge, NEVER};
use crate::recorder::{Fault, Faults, Log, Recorder, StreamsRecorder};

/// Maximum number of logged requests of a load, over all workers: about 100 MB.
const LOG_MAX: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Warmup,
    Measured,
    /// After the end of the load, at which the request was still in flight.
    Beyond,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) run_queue_ns: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Tally<'a> {
    pub(crate) control: &'a Control,
    pub(crate) gauge: &'a Gauge,
    pub(crate) recorder: Recorder,
    /// End of measuring as last read from the coordinator, ns; [`NEVER`] if not decided yet.
    pub(crate) until: Nanos,
    pub(crate) is_measuring: bool,
    /// Use of the worker's thread when this worker noticed the start.
    pub(crate) usage_before: Usage,
    /// Time at which this worker noticed the start, ns; 0 before that.
    pub(crate) wall_from: Nanos,
    /// Whether the number of requests is limited, in which case send times decide which of them are measured.
    pub(crate) is_counted: bool,
    /// Number of timeouts of requests in flight, and of failed connects, which ended no request.
    pub(crate) in_vain: u64,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(spec: &LoadSpec, control: &'a Control, place: u32) -> Self {
        let is_cache = matches!(spec.target, Target::Cache { .. });
        let mut recorder = Recorder::new(spec.window_ns, spec.arrivals.is_open(), is_cache);
        if spec.log_one_in > 0 {
            let entries_max = LOG_MAX / spec.workers_of_all().max(1) as usize;
            recorder.log = Some(Box::new(Log { one_in: spec.log_one_in, entries_max, ..Log::default() }));
        }
        if matches!(spec.target, Target::Http { http2: true, .. } | Target::Journey { http2: true, .. }) {
            recorder.streams = Some(Box::<StreamsRecorder>::default());
        }
        Self {
            control,
            gauge: &control.gauges[place as usize],
            recorder,
            until: NEVER,
            is_measuring: false,
            usage_before: Usage::default(),
            wall_from: 0,
            is_counted: matches!(spec.stop, Stop::Requests { .. }),
            in_vain: 0,
        }
    }

    /// Whether measuring has just started, which is true only once.
    pub(crate) fn begins_measuring(&mut self, now: Nanos, usage: impl Fn() -> Usage) -> bool {
        if self.is_measuring {
            return false;
        }
        self.recorder.from = self.control.from.load(Acquire);
        if now < self.recorder.from {
            return false;
        }
        self.is_measuring = true;
        self.recorder.begin_measuring();
        self.usage_before = usage();
        self.wall_from = now;
        true
    }

    pub(crate) fn report_problem(&self, fault: Fault, why: String) {
        self.gauge.live().last_problem = Some((fault, why));
    }

    /// Publishes the counts of this worker.
    pub(crate) fn publish(&mut self, now: Nanos) {
        let Self { recorder, in_vain, .. } = self;
        let sum = |faults: &Faults| faults.iter().sum::<u64>();
        let warmup_ended = recorder.warmup_requests + sum(&recorder.warmup_faults);
        let ended = warmup_ended + recorder.requests + sum(&recorder.faults);
        self.gauge.warmup_requests.store(warmup_ended, Relaxed);
        self.gauge.ended.store(ended.saturating_sub(*in_vain), Relaxed);
        self.gauge.in_vain.store(*in_vain, Relaxed);
        if self.is_measuring {
            recorder.roll(now.min(self.until));
            let mut live = self.gauge.live();
            live.requests = recorder.requests;
            live.faults = recorder.faults;
            if let Some(slowest) = &recorder.slowest {
                live.slowest.clone_from(&slowest.responses);
            }
            for slice in &recorder.slices[live.windows.len()..] {
                let sum_ns = slice.latency.sum() as f64;
                live.windows.push((sum_ns, slice.latency.len() as f64));
                live.latencies.sum_ns += sum_ns;
                slice.latency.classify(&LATENCY_BOUNDS_NS, &mut live.latencies.counts);
            }
        } else if let Some(cache) = &mut recorder.cache {
            cache.roll(now);
            let mut live = self.gauge.live();
            let known = live.transient.len();
            live.transient.extend_from_slice(&cache.transient[known..]);
        }
    }

    /// The span in which a request counts: by its send time if the number of requests is limited, otherwise by its end.
    pub(crate) fn span(&self, is_measured: bool, at: Nanos) -> Span {
        let has_begun = if self.is_counted { is_measured } else { at >= self.recorder.from };
        match has_begun {
            false => Span::Warmup,
            true if at < self.until => Span::Measured,
            true => Span::Beyond,
        }
    }

    pub(crate) fn measured(&self, count: usize) -> u64 {
        if self.is_measuring { count as u64 } else { 0 }
    }

    /// Increments an HTTP/2 counter, in measured time only.
    pub(crate) fn streams(&mut self, count: fn(&mut StreamsMeasurement) -> &mut u64) {
        let measured = self.measured(1);
        if let Some(streams) = &mut self.recorder.streams {
            *count(&mut streams.counts) += measured;
        }
    }

    /// Keeps an example of a fault, which also explains why the server is unreachable.
    #[cold]
    pub(crate) fn report(&mut self, fault: Fault, why: String) {
        self.recorder.example(fault, || Some(why.clone()));
        self.report_problem(fault, why);
    }

    /// Counts a failed connection or attempt, and also a failed request if `request_waits` for the connection.
    #[cold]
    pub(crate) fn failed_connect(&mut self, fault: Fault, request_waits: bool, at: Nanos) {
        self.in_vain += 1;
        if !request_waits {
            self.recorder.fault(fault, at);
        }
    }
}
