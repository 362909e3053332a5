//! Links a worker to the coordinator: reads the start and end of measuring, and publishes counts.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use net::Nanos;
use study::generator_messages::LATENCY_BOUNDS_NS;

use crate::coordinator::{Control, Gauge, NEVER};
use crate::recorder::{Fault, Faults, Recorder};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) run_queue_ns: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct PhaseTracker<'a> {
    pub(crate) control: &'a Control,
    pub(crate) gauge: &'a Gauge,
    /// Start and end of measuring as last read from the coordinator, ns; [`NEVER`] if not decided yet.
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
    pub(crate) is_measuring: bool,
    usage_before: Usage,
    /// Time at which this worker noticed the start, ns; 0 before that.
    pub(crate) wall_from: Nanos,
}

impl<'a> PhaseTracker<'a> {
    pub(crate) fn new(control: &'a Control, index: u32) -> Self {
        let gauge = &control.gauges[index as usize];
        let usage_before = Usage::default();
        Self { control, gauge, from: NEVER, until: NEVER, is_measuring: false, usage_before, wall_from: 0 }
    }

    /// Whether measuring has just started, which is true only once.
    #[inline]
    pub(crate) fn begins_measuring(&mut self, now: Nanos, recorder: &mut Recorder, usage: impl Fn() -> Usage) -> bool {
        if self.is_measuring {
            return false;
        }
        self.from = self.control.from.load(Acquire);
        recorder.from = self.from;
        if now < self.from {
            return false;
        }
        self.is_measuring = true;
        recorder.begin_measuring(self.from);
        self.usage_before = usage();
        self.wall_from = now;
        true
    }

    #[inline]
    pub(crate) fn is_over(&mut self, now: Nanos) -> bool {
        self.until = self.control.until.load(Relaxed);
        now >= self.until
    }

    pub(crate) fn report_problem(&self, fault: Fault, why: String) {
        self.gauge.live().last_problem = Some((fault, why));
    }

    /// Publishes the counts of this worker. `in_vain` is the number of errors that ended no request.
    pub(crate) fn publish(&self, now: Nanos, recorder: &mut Recorder, in_vain: u64) {
        let sum = |faults: &Faults| faults.iter().sum::<u64>();
        let warmup_ended = recorder.warmup_requests + sum(&recorder.warmup_faults);
        let ended = warmup_ended + recorder.requests + sum(&recorder.faults);
        self.gauge.warmup_requests.store(warmup_ended, Relaxed);
        self.gauge.ended.store(ended.saturating_sub(in_vain), Relaxed);
        self.gauge.in_vain.store(in_vain, Relaxed);
        if self.is_measuring {
            recorder.roll(now.min(self.until));
            let mut live = self.gauge.live();
            live.requests = recorder.requests;
            live.faults = recorder.faults;
            live.slowest.clone_from(&recorder.slowest.responses);
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

    pub(crate) fn used(&self, after: Usage) -> Usage {
        let before = self.usage_before;
        let run_queue_ns = after.run_queue_ns.zip(before.run_queue_ns);
        Usage {
            cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
            run_queue_ns: run_queue_ns.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}
