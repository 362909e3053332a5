//! The schedule of an open loop: intended send times that depend only on the seed and the worker.

use net::Nanos;
use stats::Rng;
use study::spec::{Arrivals, Stage};

use crate::coordinator::NEVER;

/// Intended send times of one worker. Only the next one is drawn in advance, so a backlog needs no memory.
#[derive(Debug)]
pub(crate) struct Timetable {
    pub(crate) start: Nanos,
    /// Time of the next send, ns after `start`; `None` at the end of a trace.
    pub(crate) next: Option<Nanos>,
    /// Draws further send times; `None` for a recorded schedule, whose times are supplied before they are due.
    pub(crate) drawn: Option<Drawn>,
}

#[derive(Debug)]
pub(crate) struct Drawn {
    rng: Rng,
    /// Mean gap between this worker's sends in ns, fractional so that the long-run rate is exact. With a shape, the gap
    /// is a number of requests of the whole load.
    gap: f64,
    poisson: bool,
    first: f64,
    next: f64,
    count: u64,
    shape: Option<Shape>,
}

/// Inverts a shape: finds the time at which it has scheduled a given number of requests.
#[derive(Debug)]
struct Shape {
    stages: Box<[Stage]>,
    at: usize,
    /// Start of the current stage `at` in ns, and number of requests scheduled before it.
    before_ns: f64,
    before: f64,
}

impl Shape {
    /// Returns the time at which the shape has scheduled `requests`, ns. `requests` must not decrease between calls.
    fn time_ns(&mut self, requests: f64) -> f64 {
        while let Some(stage) = self.stages.get(self.at) {
            let inside = requests - self.before;
            if inside < stage.requests() {
                // This form of the root of `from t + slope t^2 / 2 = inside` avoids cancellation.
                let slope = (stage.to - stage.from) / (stage.duration_ns as f64 / 1e9);
                let root = (stage.from.powi(2) + 2.0 * slope * inside).max(0.0).sqrt();
                let s = 2.0 * inside / (stage.from + root).max(f64::MIN_POSITIVE);
                return self.before_ns + s * 1e9;
            }
            self.before += stage.requests();
            self.before_ns += stage.duration_ns as f64;
            self.at += 1;
        }
        AFTER_SHAPE_NS
    }
}

/// A time later than the end of any load, ns.
const AFTER_SHAPE_NS: f64 = 1e18;

impl Timetable {
    /// Creates the schedule of worker `index`. The `workers` share the offered rate evenly. The rate follows `stages`, or
    /// is constant without any. `None` in a closed loop and for recorded times.
    pub(crate) fn new(
        arrivals: Arrivals,
        stages: &[Stage],
        seed: u64,
        (index, workers): (u32, u32),
        start: Nanos,
    ) -> Option<Self> {
        let rate_per_s = arrivals.offered_per_s()?;
        let shape = || Shape { stages: stages.into(), at: 0, before_ns: 0.0, before: 0.0 };
        let mut shape = (!stages.is_empty()).then(shape);
        let gap = if stages.is_empty() { 1e9 / rate_per_s } else { 1.0 } * f64::from(workers);
        let poisson = matches!(arrivals, Arrivals::Poisson { .. });
        // Workers draw their challenges from even random streams and their schedules from odd ones.
        let mut rng = Rng::stream(seed, u64::from(index) * 2 + 1);
        // At a constant rate, workers take turns. Poisson schedules need no turns, because their sum is Poisson too.
        let next = if poisson { rng.exponential(gap) } else { gap * f64::from(index) / f64::from(workers) };
        let next_ns = shape.as_mut().map_or(next, |shape| shape.time_ns(next));
        let drawn = Drawn { rng, gap, poisson, first: next, next, count: 0, shape };
        Some(Timetable { start, next: Some(next_ns as Nanos), drawn: Some(drawn) })
    }

    pub(crate) fn due(&self) -> Nanos {
        self.next.map_or(NEVER, |next| self.start.saturating_add(next))
    }

    pub(crate) fn advance(&mut self) {
        let Some(drawn) = &mut self.drawn else { return };
        drawn.count += 1;
        drawn.next = if drawn.poisson {
            drawn.next + drawn.rng.exponential(drawn.gap)
        } else {
            drawn.first + drawn.gap * drawn.count as f64 // Adding up gaps would accumulate rounding errors.
        };
        let next = drawn.next;
        let next_ns = drawn.shape.as_mut().map_or(next, |shape| shape.time_ns(next));
        self.next = Some(next_ns as Nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, index: u32, workers: u32, count: usize) -> Vec<Nanos> {
        let mut table = Timetable::new(arrivals, &[], 3, (index, workers), 1_000).unwrap();
        (0..count)
            .map(|_| {
                let due = table.due();
                table.advance();
                due
            })
            .collect()
    }

    #[test]
    fn workers_take_turns_at_constant_rate() {
        let arrivals = Arrivals::Constant { rate_per_s: 1e6 };
        assert_eq!(times(arrivals, 0, 2, 3), [1_000, 3_000, 5_000]);
        assert_eq!(times(arrivals, 1, 2, 3), [2_000, 4_000, 6_000]);
    }

    #[test]
    fn fractional_gap_keeps_long_run_rate() {
        let last = *times(Arrivals::Constant { rate_per_s: 3e8 }, 0, 1, 3_000_001).last().unwrap();
        assert_eq!(last, 1_000 + 10_000_000);
    }

    #[test]
    fn poisson_gaps_have_expected_mean_and_spread() {
        let times = times(Arrivals::Poisson { rate_per_s: 1e5 }, 0, 1, 100_001);
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect::<Vec<_>>();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "an exponential's deviation is its mean: {variance}");
    }

    #[test]
    fn shapes_schedule_the_area_under_their_rates() {
        let stages = study::load_shape::parse("0..1k over 2s, 3k for 1s, 1k..0 over 2s").unwrap();
        for (arrivals, allowed) in
            [(Arrivals::Constant { rate_per_s: 1.0 }, 2), (Arrivals::Poisson { rate_per_s: 1.0 }, 200)]
        {
            let mut times = Vec::new();
            for index in 0..3 {
                let mut table = Timetable::new(arrivals, &stages, 3, (index, 3), 1_000).unwrap();
                while table.due() < 100_000_000_000 {
                    times.push(table.due() - 1_000);
                    table.advance();
                }
            }
            let count = |from_s: u64, to_s: u64| {
                let span = from_s * 1_000_000_000..to_s * 1_000_000_000;
                times.iter().filter(|at| span.contains(at)).count()
            };
            for (from_s, to_s, expected) in [(0, 1, 250), (1, 2, 750), (2, 3, 3_000), (3, 4, 750), (4, 5, 250)] {
                let seen = count(from_s, to_s);
                assert!(seen.abs_diff(expected) <= allowed, "{from_s} to {to_s} s: {seen}, expected {expected}");
            }
            assert_eq!(count(5, 90), 0);
        }
    }

    #[test]
    fn schedule_depends_only_on_seed() {
        let arrivals = Arrivals::Poisson { rate_per_s: 1e3 };
        assert_eq!(times(arrivals, 1, 4, 100), times(arrivals, 1, 4, 100));
        assert_ne!(times(arrivals, 1, 4, 100), times(arrivals, 2, 4, 100));
    }
}
