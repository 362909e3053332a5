//! The generators of a trial, which start together and whose measurements are combined.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use study::generator_messages::{Heard, Progress, Span, Told};
use study::pool_measurements;
use study::record::{Agent, FailureKind, Measurement, NetworkCounters, NodeClock};

use crate::lab_clocks;
use crate::trial_end_reason::{End, failed};

/// Minimum notice that generators get before they start together.
const LEAD: Duration = Duration::from_millis(100);

/// A generator on this machine or on a node, with times converted to the lab's clock.
pub(crate) trait Engine {
    fn handle(&self) -> BorrowedFd<'_>;

    /// Returns the messages that have arrived. `readable`: whether [`handle`](Engine::handle) is readable.
    fn hear(&mut self, readable: bool) -> Result<Vec<Told>, End>;

    fn tell(&mut self, heard: Heard) -> Result<(), End>;

    /// Ends the load within `patience`. Returns facts about a remote generator; `None` for a local one.
    fn end(&mut self, patience: Duration) -> Result<Option<RemoteFacts>, End>;
}

pub(crate) struct RemoteFacts {
    pub(crate) node: String,
    pub(crate) cpus: Vec<u32>,
    pub(crate) network: NetworkCounters,
    pub(crate) clock: NodeClock,
}

pub(crate) fn broken(text: impl std::fmt::Display) -> End {
    failed(FailureKind::Generator, format!("the generator failed: {text}"))
}

pub(crate) struct Load<'a> {
    parts: Vec<Running<'a>>,
    announced: bool,
    lead: Duration,
}

struct Running<'a> {
    engine: Box<dyn Engine + 'a>,
    connected: bool,
    live: Option<Progress>,
    span: Option<Span>,
    measurement: Option<Measurement>,
}

impl<'a> Load<'a> {
    /// Combines generators. `round_trip` is the longest time to a generator and back.
    pub(crate) fn new(engines: Vec<Box<dyn Engine + 'a>>, round_trip: Duration) -> Self {
        let running = |engine| Running { engine, connected: false, live: None, span: None, measurement: None };
        let parts = engines.into_iter().map(running).collect();
        Self { parts, announced: false, lead: LEAD.max(round_trip * 20) }
    }

    fn talking(&self) -> impl Iterator<Item = (usize, &dyn Engine)> {
        let parts = self.parts.iter().enumerate().filter(|(_, part)| part.measurement.is_none());
        parts.map(|(nth, part)| (nth, &*part.engine))
    }

    pub(crate) fn handles(&self) -> Vec<BorrowedFd<'_>> {
        self.talking().map(|(_, engine)| engine.handle()).collect()
    }

    /// Reads messages. Returns combined progress, the first announced moments and the span that all have measured.
    pub(crate) fn hear(&mut self, readable: &[bool]) -> Result<Vec<Told>, End> {
        let mut events = Vec::new();
        let talking = self.talking().map(|(nth, _)| nth).collect::<Vec<_>>();
        for (nth, readable) in talking.into_iter().zip(readable) {
            for told in self.parts[nth].engine.hear(*readable)? {
                self.take(nth, told, &mut events)?;
            }
        }
        Ok(events)
    }

    fn take(&mut self, nth: usize, told: Told, events: &mut Vec<Told>) -> Result<(), End> {
        let part = &mut self.parts[nth];
        match told {
            Told::Error(text) => return Err(broken(text)),
            Told::Unreachable(text) => return Err(failed(FailureKind::Answers, text)),
            Told::Progress(live) => {
                part.live = Some(live);
                events.push(Told::Progress(together(self.parts.iter().filter_map(|part| part.live.as_ref()))));
            }
            Told::Connected(_) => {
                part.connected = true;
                if self.parts.iter().all(|part| part.connected) {
                    self.tell(Heard::Go { at_ns: lab_clocks::monotonic_ns() + lab_clocks::nanos(self.lead) })?;
                }
            }
            // All generators announce the same moments, within the error of their clocks.
            Told::Announced(moments) => {
                let is_first = !std::mem::replace(&mut self.announced, true);
                events.extend(is_first.then_some(Told::Announced(moments)));
            }
            Told::Measured(span) => {
                part.span = Some(span);
                let spans = self.parts.iter().filter_map(|part| part.span).collect::<Vec<_>>();
                if spans.len() == self.parts.len() {
                    let from_ns = spans.iter().map(|span| span.from_ns).min().unwrap_or(span.from_ns);
                    let until_ns = spans.iter().map(|span| span.until_ns).max().unwrap_or(span.until_ns);
                    events.push(Told::Measured(Span { from_ns, until_ns }));
                }
            }
            Told::Measurement(measurement) => part.measurement = Some(*measurement),
        }
        Ok(())
    }

    pub(crate) fn tell(&mut self, heard: Heard) -> Result<(), End> {
        self.parts.iter_mut().try_for_each(|part| part.engine.tell(heard))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.parts.iter().all(|part| part.measurement.is_some())
    }

    /// Ends all generators of a load that [is done](Load::is_done). Returns the combined measurement and one per remote
    /// generator.
    pub(crate) fn end(mut self, patience: Duration) -> Result<(Measurement, Vec<Agent>), End> {
        let (mut agents, mut measurements) = (Vec::new(), Vec::new());
        let workers = self.parts.iter().flat_map(|part| &part.measurement).map(|measurement| measurement.threads).sum();
        for (part, nth) in self.parts.iter_mut().zip(1..) {
            let known = part.engine.end(patience)?;
            let measurement = part.measurement.take().ok_or_else(|| broken("it has no measurement"))?;
            if let Some(RemoteFacts { node, cpus, network, clock }) = known {
                let outline = pool_measurements::outline(&measurement, nth, workers).map_err(broken)?;
                agents.push(Agent { node, cpus, measurement: Box::new(outline), network, clock, verdict: None });
            }
            measurements.push(measurement);
        }
        let measurement = match measurements.len() {
            1 => measurements.remove(0),
            _ => pool_measurements::pool(&measurements).map_err(broken)?,
        };
        Ok((measurement, agents))
    }
}

fn together<'a>(lives: impl IntoIterator<Item = &'a Progress>) -> Progress {
    let (mut all, mut latency, mut phases) = (Progress::default(), 0.0, Vec::new());
    for live in lives {
        phases.push(live.phase);
        all.elapsed_ns = all.elapsed_ns.max(live.elapsed_ns);
        all.requests += live.requests;
        all.rate_per_s += live.rate_per_s;
        all.slowest.extend_from_slice(&live.slowest);
        latency += live.latency_mean_ns.unwrap_or(0.0) * live.rate_per_s;
        all.errors += live.errors;
        all.cpu_ns += live.cpu_ns;
        all.latencies.add(&live.latencies);
        let add = |(kind, count): (&String, &u64)| *all.errors_by_kind.entry(kind.clone()).or_default() += count;
        live.errors_by_kind.iter().for_each(add);
    }
    study::record::keep_slowest(&mut all.slowest);
    all.phase = phases.into_iter().min_by_key(|phase| *phase as u8).unwrap_or_default();
    all.latency_mean_ns = Some(latency / all.rate_per_s).filter(|mean| mean.is_finite() && *mean > 0.0);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use study::generator_messages::{Latencies, Phase};

    use super::*;

    #[test]
    fn combines_progress_of_generators() {
        let live = |phase, requests: u64, rate_per_s: f64, latency_mean_ns: f64, bucket: usize| {
            let mut latencies =
                Box::new(Latencies { sum_ns: requests as f64 * latency_mean_ns, ..Latencies::default() });
            latencies.counts[bucket] = requests;
            Progress {
                slowest: Vec::new(),
                phase,
                elapsed_ns: requests,
                requests,
                rate_per_s,
                latency_mean_ns: Some(latency_mean_ns),
                errors: 1,
                cpu_ns: 5,
                errors_by_kind: BTreeMap::from([("timeout".to_owned(), 1)]),
                latencies,
            }
        };
        let (one, other) = (live(Phase::Measure, 300, 30.0, 1_000.0, 2), live(Phase::Warmup, 100, 10.0, 5_000.0, 4));
        let all = together([&one, &other]);
        assert_eq!(
            (all.phase, all.elapsed_ns, all.requests, all.errors),
            (Phase::Warmup, 300, 400, 2),
            "the slowest's phase"
        );
        assert_eq!(
            (all.rate_per_s, all.latency_mean_ns, all.cpu_ns),
            (40.0, Some(2_000.0), 10),
            "the mean is of requests"
        );
        assert_eq!((all.latencies.counts[2], all.latencies.counts[4], all.latencies.sum_ns), (300, 100, 800_000.0));
        assert_eq!(all.errors_by_kind, BTreeMap::from([("timeout".to_owned(), 2)]));
        let none = together([]);
        assert_eq!((none.phase, none.requests, none.latency_mean_ns), (Phase::Connect, 0, None));
    }
}
