//! The schedule of an open loop: intended send times that depend only on the seed.

use net::Nanos;
use stats::Rng;
use study::spec::Arrivals;

use crate::coordinator::NEVER;

/// Intended send times of one worker. They depend only on the seed, never on the server or
/// generator. Only one is drawn in advance, so a backlog needs no memory.
#[derive(Debug)]
pub(crate) enum Timetable {
    Drawn(Drawn),
    /// A recorded schedule: [`Timetable::set_next`] supplies each send before it is due.
    Recorded {
        start: Nanos,
        /// Time since `start`, or `None` at the end of the trace.
        next: Option<Nanos>,
    },
}

#[derive(Debug)]
pub(crate) struct Drawn {
    rng: Rng,
    /// Mean gap between sends, ns, with its fraction: the long-run rate is exact.
    gap_ns: f64,
    poisson: bool,
    start: Nanos,
    first_ns: f64,
    next_ns: f64,
    count: u64,
}

impl Timetable {
    /// Worker `index` of `workers`, which share the offered rate evenly. `None` in a closed loop.
    pub(crate) fn new(arrivals: Arrivals, seed: u64, index: u32, workers: u32, start: Nanos) -> Option<Self> {
        let gap_ns = 1e9 / arrivals.offered_per_s()? * f64::from(workers);
        let poisson = matches!(arrivals, Arrivals::Poisson { .. });
        // The workers' challenges use even streams, their schedules odd ones.
        let mut rng = Rng::stream(seed, u64::from(index) * 2 + 1);
        // Workers take turns at a constant rate. The sum of Poisson schedules is Poisson.
        let next_ns = if poisson { rng.exponential(gap_ns) } else { gap_ns * f64::from(index) / f64::from(workers) };
        Some(Timetable::Drawn(Drawn { rng, gap_ns, poisson, start, first_ns: next_ns, next_ns, count: 0 }))
    }

    pub(crate) fn due(&self) -> Nanos {
        match self {
            Timetable::Drawn(drawn) => drawn.start + drawn.next_ns as Nanos,
            Timetable::Recorded { start, next } => next.map_or(NEVER, |next| start.saturating_add(next)),
        }
    }

    pub(crate) fn advance(&mut self) {
        let Timetable::Drawn(drawn) = self else { return };
        drawn.count += 1;
        drawn.next_ns = if drawn.poisson {
            drawn.next_ns + drawn.rng.exponential(drawn.gap_ns)
        } else {
            drawn.first_ns + drawn.gap_ns * drawn.count as f64 // Adding up gaps would accumulate rounding errors.
        };
    }

    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Timetable::Recorded { .. })
    }

    pub(crate) fn set_next(&mut self, at: Option<Nanos>) {
        if let Timetable::Recorded { next, .. } = self {
            *next = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, index: u32, workers: u32, count: usize) -> Vec<Nanos> {
        let mut table = Timetable::new(arrivals, 3, index, workers, 1_000).unwrap();
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
    fn schedule_depends_only_on_seed() {
        let arrivals = Arrivals::Poisson { rate_per_s: 1e3 };
        assert_eq!(times(arrivals, 1, 4, 100), times(arrivals, 1, 4, 100));
        assert_ne!(times(arrivals, 1, 4, 100), times(arrivals, 2, 4, 100));
    }
}
