//! What one worker sees of the coordinator and lets it see: where the measured time lies, what was counted in it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use net::Nanos;
use study::seam::LATENCY_BOUNDS_NS;

use crate::coordinator::{Control, Gauge, NEVER};
use crate::recorder::{Fault, Faults, Recorder};

/// What the thread of a worker has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) run_queue_ns: Option<u64>,
}

/// Follows what the coordinator says, for one worker, or one client of a journey.
#[derive(Debug)]
pub(crate) struct PhaseTracker<'a> {
    pub(crate) control: &'a Control,
    pub(crate) gauge: &'a Gauge,
    /// When measuring begins and when it ends, as seen last; [`NEVER`]: not known yet.
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
    /// Measuring has begun.
    pub(crate) is_measuring: bool,
    usage_before: Usage,
    /// When this worker saw it begin; 0: not yet.
    pub(crate) wall_from: Nanos,
}

impl<'a> PhaseTracker<'a> {
    /// The phase of worker `index`.
    pub(crate) fn new(control: &'a Control, index: u32) -> Self {
        let gauge = &control.gauges[index as usize];
        let usage_before = Usage::default();
        Self { control, gauge, from: NEVER, until: NEVER, is_measuring: false, usage_before, wall_from: 0 }
    }

    /// Whether measuring begins with this look; once. `usage` reads what this thread has used.
    #[inline]
    pub(crate) fn begins_measuring(&mut self, now: Nanos, recorder: &mut Recorder, usage: impl Fn() -> Usage) -> bool {
        if self.is_measuring {
            return false;
        }
        self.from = self.control.from.load(Acquire);
        recorder.expect(self.from);
        if now < self.from {
            return false;
        }
        self.is_measuring = true;
        recorder.begin_measuring(self.from);
        self.usage_before = usage();
        self.wall_from = now;
        true
    }

    /// Whether the load is over.
    #[inline]
    pub(crate) fn is_over(&mut self, now: Nanos) -> bool {
        self.until = self.control.until.load(Relaxed);
        now >= self.until
    }

    /// Tells why a connection did not come to stand.
    pub(crate) fn report_problem(&self, fault: Fault, why: String) {
        self.gauge.live().last_problem = Some((fault, why));
    }

    /// Lets the coordinator see what was counted. `in_vain`: errors by which no request ended.
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
            for slice in &recorder.slices[live.windows.len()..] {
                let sum_ns = slice.latency.sum as f64;
                live.windows.push((sum_ns, slice.timed as f64));
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

    /// What was used since measuring began; `after`: what had been at the end.
    pub(crate) fn used(&self, after: Usage) -> Usage {
        let before = self.usage_before;
        let run_queue_ns = after.run_queue_ns.zip(before.run_queue_ns);
        Usage {
            cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
            run_queue_ns: run_queue_ns.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}
