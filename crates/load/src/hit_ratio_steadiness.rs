//! Tests whether the hit ratio of a cache has become steady.

use net::Nanos;
use stats::mann_kendall;

pub(crate) const FEWEST: usize = 20;
/// Number of batches of windows in the second half. Neighboring batches are less correlated than neighboring windows.
const BATCHES: usize = 10;
const P_VALUE: f64 = 0.05;
/// Change in the hit ratio over the second half of the windows below which even a significant trend is negligible.
const MOVE: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steadiness {
    pub(crate) steady: bool,
    /// Change in the hit ratio over the second half of the windows, by Sen's slope; `None` if unknown.
    moved: Option<f64>,
    windows: usize,
}

/// Number of windows at the next check, a quarter more than `seen`. Frequent checks would mistake noise for steadiness.
pub(crate) fn next_look(seen: usize) -> usize {
    (seen + seen / 4).max(FEWEST)
}

/// Applies the Mann-Kendall test to the second half of the windows, each with its GET hits and GETs.
pub(crate) fn judge_steadiness(windows: &[(u64, u64)]) -> Steadiness {
    let half = &windows[windows.len() / 2..];
    let unknown = Steadiness { steady: false, moved: None, windows: windows.len() };
    if windows.len() < FEWEST {
        return unknown;
    }
    let sums = half.chunks(half.len().div_ceil(BATCHES));
    let sums = sums.map(|batch| batch.iter().fold((0, 0), |sum, window| (sum.0 + window.0, sum.1 + window.1)));
    let ratios = sums.filter(|sum| sum.1 > 0).map(|(hits, gets)| hits as f64 / gets as f64).collect::<Vec<_>>();
    if ratios.is_empty() {
        return Steadiness { steady: true, ..unknown };
    }
    let Some(trend) = mann_kendall::mann_kendall(&ratios) else { return unknown };
    let moved = trend.slope * (ratios.len() - 1) as f64;
    Steadiness { steady: trend.p_value >= P_VALUE || moved.abs() < MOVE, moved: Some(moved), windows: windows.len() }
}

impl Steadiness {
    pub(crate) fn sentence(&self, elapsed: Nanos, window_ns: Nanos) -> String {
        let seconds = elapsed as f64 / 1e9;
        let half_s = (self.windows - self.windows / 2) as f64 * window_ns as f64 / 1e9;
        match (self.steady, self.moved) {
            (true, Some(moved)) => {
                format!("steady after {seconds:.1} s: the hit ratio moved by {moved:+.4} over the last {half_s:.1} s")
            }
            (true, None) => format!("after {seconds:.1} s: no reads, so no hit ratio to wait for"),
            (false, Some(moved)) => format!(
                "not steady within {seconds:.1} s: the hit ratio still moved by {moved:+.4} over the last {half_s:.1} s"
            ),
            (false, None) => format!("unknown after {seconds:.1} s: too few windows had a GET"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Rng;

    /// Number of steady series among 100 random ones with hit ratio `ratio(index)`.
    fn steady(count: usize, ratio: impl Fn(usize) -> f64) -> usize {
        (0..100).filter(|&seed| judge_steadiness(&windows(seed, count, &ratio)).steady).count()
    }

    fn windows(seed: u64, count: usize, ratio: impl Fn(usize) -> f64) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(seed);
        (0..count).map(|index| ((0..1000).filter(|_| rng.unit_f64() < ratio(index)).count() as u64, 1000)).collect()
    }

    #[test]
    fn filling_cache_is_not_steady_but_full_one_is() {
        assert_eq!(steady(40, |index| 0.3 + 0.01 * index as f64), 0);
        assert_eq!(steady(100, |index| 0.9 - 0.5 * (-(index as f64) / 40.0).exp()), 0);
        let rested = steady(100, |index| 0.9 - 0.5 * (-(index as f64) / 4.0).exp());
        assert!(rested >= 88, "{rested} of 100");
        assert_eq!(steady(FEWEST - 1, |_| 0.8), 0);
    }

    #[test]
    fn negligible_trend_is_steady() {
        let rising = (0..100).map(|index| (900_000 + 10 * index, 1_000_000)).collect::<Vec<_>>();
        assert!(judge_steadiness(&rising).steady);
        assert!(judge_steadiness(&[(0, 0); 30]).steady);
    }

    #[test]
    fn steady_state_is_rarely_missed() {
        let mut rng = Rng::new(7);
        let missed = (0..500)
            .filter(|_| {
                let noise = (0..40).map(|_| ((800.0 + 12.0 * rng.normal()) as u64, 1000)).collect::<Vec<_>>();
                !judge_steadiness(&noise).steady
            })
            .count();
        assert!(missed < 45, "{missed} of 500");
    }

    #[test]
    fn intervals_between_checks_grow() {
        assert_eq!((next_look(0), next_look(20), next_look(100)), (20, 25, 125));
    }
}
