//! Tests whether measuring began in a steady state.

use crate::growth_in_trials::{self, Growth, Series, Shown};

/// Largest relative change between a trial's halves that counts as steady. The mean moves by less than half as much.
pub const MARGIN: f64 = 0.02;
const FEWEST: usize = 3;

/// Result of the steady-state test for the trials of a design point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Whether a steady state was reached: `Some(false)` if the test rejects it, `None` if there are too few trials.
    pub reached: Option<bool>,
    /// Logarithm of the ratio of the second half's mean to the first half's, tested over the trials.
    pub change: Growth,
}

/// Creates the changes that [`judge`] needs from the trials of a design point: `trials[trial][window]`.
pub fn halves(trials: &[Vec<f64>]) -> Series {
    let mut series = Series::from_halves(trials, MARGIN);
    // A point with too few trials is excluded, so that it does not count in the adjustment.
    if series.changes.len() < FEWEST {
        series.changes.clear();
    }
    series
}

/// Tests all design points of a report together, from the [`halves`] of each. Trials that start before the transient is
/// over differ between their halves, in the same direction for all trials of a point. Disturbances by the machine and
/// correlated windows have no direction. The test therefore counts trials, not windows: at most a share `error` of
/// reports calls a steady point unsteady (Student's t, Holm over points). Changes below [`MARGIN`] never count.
pub fn judge(points: &[Series], error: f64) -> Vec<Steady> {
    let found = growth_in_trials::growth(points, error).into_iter();
    let judged = |change: Growth| {
        let moved = change.change.map(|mean| mean.point.abs() > MARGIN)?;
        Some(!(moved && matches!(change.shown, Shown::Grows | Shown::Shrinks)))
    };
    found.map(|change| Steady { reached: judged(change), change }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn steady(points: &[Vec<Vec<f64>>], error: f64) -> Vec<Steady> {
        judge(&points.iter().map(|trials| halves(trials)).collect::<Vec<_>>(), error)
    }

    fn trials(rng: &mut Rng, trials: usize, windows: usize, shape: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let mut trial = || (0..windows).map(|window| shape(window) * (0.1 * rng.normal()).exp()).collect();
        (0..trials).map(|_| trial()).collect()
    }

    fn reached(points: &[Vec<Vec<f64>>]) -> Vec<Option<bool>> {
        steady(points, 0.05).iter().map(|found| found.reached).collect()
    }

    #[test]
    fn detects_a_slow_start_of_every_trial() {
        let mut rng = Rng::new(5);
        let slow_start = trials(&mut rng, 8, 40, |window| if window < 6 { 1.5 } else { 1.0 });
        let ramp = trials(&mut rng, 8, 40, |window| 1.0 + window as f64 / 100.0);
        let even = trials(&mut rng, 8, 40, |_| 1.0);
        assert_eq!(reached(&[slow_start, ramp, even]), [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn tiny_changes_are_steady() {
        let point = (0..8).map(|trial| vec![1.0, 1.0 + f64::from(trial) * 1e-4, 1.01, 1.01]).collect::<Vec<_>>();
        let found = steady(&[point], 0.05)[0];
        assert_eq!((found.change.shown, found.reached), (Shown::Grows, Some(true)));
    }

    #[test]
    fn does_not_judge_too_few_trials() {
        let mut rng = Rng::new(6);
        assert_eq!(reached(&[trials(&mut rng, 2, 40, |_| 1.0), trials(&mut rng, 8, 3, |_| 1.0), vec![]]), [None; 3]);
        assert_eq!(reached(&[vec![vec![0.0; 20]; 8]]), [None], "no latency, no ratio");
    }
}
