//! Was a steady state reached before measuring began?

use crate::trend::{self, Growth, Series, Shown};

/// A change from the first half of a trial to the second that is smaller than this moves the mean of the trial by less than half
/// of it, and is called steady whatever a test says.
pub const MARGIN: f64 = 0.02;
/// With fewer trials of a point there is no telling.
const FEWEST: usize = 3;

/// Whether the trials of a design point had reached a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// `Some(false)`: they were shown not to have, `Some(true)`: they were not, `None`: too few to tell.
    pub reached: Option<bool>,
    /// The logarithm of the mean of the second half of a trial over that of the first, over trials.
    pub change: Growth,
}

/// Looks at all design points of a report together: `points[point][trial][window]`, latencies for example.
///
/// A trial that begins before the transient is over differs between its halves, and the other trials of its point differ in the
/// same direction; what the machine does to a trial, or windows that resemble their neighbours, have no direction. So trials are counted
/// and not windows: in at most `error` of reports a point that is steady is said not to be (Student's t over trials, Holm over points).
/// Changes below [`MARGIN`] are not held against it.
///
/// # Panics
/// When `error` is not strictly between 0 and 1.
pub fn steady(points: &[Vec<Vec<f64>>], error: f64) -> Vec<Steady> {
    judge(&points.iter().map(|trials| halves(trials)).collect::<Vec<_>>(), error)
}

/// What [`judge`] needs of the trials of a design point, `trials[trial][window]`.
pub fn halves(trials: &[Vec<f64>]) -> Series {
    let mut series = Series::from_halves(trials, MARGIN);
    // Those that are not judged take no part.
    if series.changes.len() < FEWEST {
        series.changes.clear();
    }
    series
}

/// The same as [`steady()`], by the [`halves`] of each design point.
///
/// # Panics
/// When `error` is not strictly between 0 and 1.
pub fn judge(points: &[Series], error: f64) -> Vec<Steady> {
    let found = trend::growth(points, error).into_iter();
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

    fn trials(rng: &mut Rng, trials: usize, windows: usize, shape: impl Fn(usize) -> f64) -> Vec<Vec<f64>> {
        let mut trial = || (0..windows).map(|window| shape(window) * (0.1 * rng.normal()).exp()).collect();
        (0..trials).map(|_| trial()).collect()
    }

    fn reached(points: &[Vec<Vec<f64>>]) -> Vec<Option<bool>> {
        steady(points, 0.05).iter().map(|found| found.reached).collect()
    }

    #[test]
    fn a_slow_start_of_every_trial_is_seen() {
        let mut rng = Rng::new(5);
        let slow_start = trials(&mut rng, 8, 40, |window| if window < 6 { 1.5 } else { 1.0 });
        let ramp = trials(&mut rng, 8, 40, |window| 1.0 + window as f64 / 100.0);
        let even = trials(&mut rng, 8, 40, |_| 1.0);
        assert_eq!(reached(&[slow_start, ramp, even]), [Some(false), Some(false), Some(true)]);
    }

    #[test]
    fn what_moves_the_mean_by_too_little_is_steady() {
        let point = (0..8).map(|trial| vec![1.0, 1.0 + f64::from(trial) * 1e-4, 1.01, 1.01]).collect::<Vec<_>>();
        let found = steady(&[point], 0.05)[0];
        assert_eq!((found.change.shown, found.reached), (Shown::Grows, Some(true)));
    }

    #[test]
    fn too_few_are_not_judged() {
        let mut rng = Rng::new(6);
        assert_eq!(reached(&[trials(&mut rng, 2, 40, |_| 1.0), trials(&mut rng, 8, 3, |_| 1.0), vec![]]), [None; 3]);
        assert_eq!(reached(&[vec![vec![0.0; 20]; 8]]), [None], "no latency, no ratio");
    }
}
