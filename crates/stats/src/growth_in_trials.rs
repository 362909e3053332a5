//! Tests whether a series grows during a trial. Each trial counts as one change, so neighboring values may correlate.

use crate::adjust_p_values::holm_of_some;
use crate::interval::{self, Estimate};
use crate::special_functions::t_tail;

/// Share of the mean below which a change over a whole trial counts as flat.
pub const FLAT_SHARE: f64 = 0.05;

/// Changes of one series in the trials of a design point.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Change from start to end of each trial, in the unit of the series.
    pub changes: Vec<f64>,
    /// Change that is too small to matter in either direction, in the unit of the series.
    pub margin: f64,
}

impl Series {
    /// Creates a change for each trial whose points `(x, y)` have a least-squares line: the slope times the x range of
    /// the shortest trial. The margin is `margin_share` of the mean of all values. `None` if no trial has a line.
    pub fn from_lines(trials: &[Vec<(f64, f64)>], margin_share: f64) -> Option<Series> {
        let slopes = trials.iter().filter_map(|series| Some((series.last()?.0, least_squares(series)?)));
        let slopes = slopes.collect::<Vec<_>>();
        let range = slopes.iter().map(|(end, _)| *end).reduce(f64::min)?;
        let values = trials.iter().flatten().map(|(_, value)| *value).collect::<Vec<_>>();
        let margin = margin_share * interval::average(&values)?.abs();
        Some(Series { changes: slopes.iter().map(|(_, slope)| slope * range).collect(), margin })
    }

    /// Creates a change for each trial from its values in order: the logarithm of the second half's mean over the
    /// first's. Skips trials with fewer than 4 values, or with a half whose mean is not positive.
    pub fn from_halves(trials: &[Vec<f64>], margin: f64) -> Series {
        let change = |values: &Vec<f64>| {
            let (first, second) = values.split_at(values.len() / 2);
            let log = |half: &[f64]| interval::average(half).filter(|_| half.len() >= 2).map(f64::ln);
            Some(log(second)? - log(first)?).filter(|change| change.is_finite())
        };
        Series { changes: trials.iter().filter_map(change).collect(), margin }
    }
}

/// Result of the tests for one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The series is shown to grow.
    Grows,
    /// The series is shown to shrink.
    Shrinks,
    /// The series changes by less than the margin, if at all.
    Flat,
    /// The data show neither a change nor flatness.
    Nothing,
}

/// Result for one series with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Mean change with its t interval, unadjusted; `None` for fewer than two trials.
    pub change: Option<Estimate>,
    /// p-value of the change, adjusted for all series; 1 for fewer than two trials.
    pub p_change: f64,
    /// p-value of the claim that the change is within the margin, adjusted for all series; 1 for fewer than two trials.
    pub p_flat: f64,
    /// Result at the promised error. If both growth and flatness are shown, growth takes precedence.
    pub shown: Shown,
    /// Whether the change is shown to be within the margin, even if it is significant.
    pub is_small: bool,
}

/// Tests all series of a report together. At most a share `error` of reports calls an unchanged series changed, and at
/// most the same share calls a change of the margin or more small (Holm 1979 over all series, for each error).
/// Growth is tested with Student's t over trials, flatness with two one-sided tests against the margin (Schuirmann
/// 1987). A change that is not significant is therefore not necessarily flat.
pub fn growth(series: &[Series], error: f64) -> Vec<Growth> {
    // A series without a p-value does not count in the adjustment.
    let over_all = |p_of: fn(&Series) -> Option<f64>| holm_of_some(series.iter().map(p_of)).map(|p| p.unwrap_or(1.0));
    let p_change = over_all(|series| p_value(&series.changes));
    let p_flat = over_all(|series| p_within(&series.changes, series.margin));
    let one = |((series, p_change), p_flat): ((&Series, f64), f64)| {
        let change = interval::mean(&series.changes, 1.0 - error);
        let is_small = p_flat <= error;
        let shown = match change {
            Some(change) if p_change <= error && change.point > 0.0 => Shown::Grows,
            Some(_) if p_change <= error => Shown::Shrinks,
            _ if is_small => Shown::Flat,
            _ => Shown::Nothing,
        };
        Growth { change, p_change, p_flat, shown, is_small }
    };
    series.iter().zip(p_change).zip(p_flat).map(one).collect()
}

/// Two-sided p-value of a nonzero mean (Student's t); `None` for fewer than two values, or if one is not finite.
pub fn p_value(values: &[f64]) -> Option<f64> {
    let (mean, error, df) = mean_and_error(values)?;
    Some((2.0 * t_tail(mean.abs(), error, df)).min(1.0))
}

fn p_within(values: &[f64], margin: f64) -> Option<f64> {
    let (mean, error, df) = mean_and_error(values)?;
    Some(t_tail(margin - mean, error, df).max(t_tail(margin + mean, error, df)))
}

fn mean_and_error(values: &[f64]) -> Option<(f64, f64, f64)> {
    let n = values.len() as f64;
    let error = (interval::variance(values)? / n).sqrt();
    let mean = interval::average(values)?;
    (mean.is_finite() && error.is_finite()).then_some((mean, error, n - 1.0))
}

/// Returns the slope of the least-squares line through `(x, y)`, in units of y per unit of x. `None` with fewer than
/// two distinct x, or if a value is not finite. Centers the values first, which keeps precision for large x.
pub fn least_squares(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let square = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let product = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    let slope = product / square;
    (square > 0.0 && slope.is_finite()).then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn one(changes: &[f64], margin: f64) -> Growth {
        growth(&[Series { changes: changes.to_vec(), margin }], 0.05)[0]
    }

    // Simpson's rule over Student's density with 4 degrees of freedom, in Python: m = 1.1, e = stdev(c)/5**.5;
    // 2*tail(m/e) and max(tail((2-m)/e), tail((2+m)/e)).
    #[test]
    fn p_values_match_student_t() {
        let found = one(&[1.2, 0.8, 1.5, 0.9, 1.1], 2.0);
        assert!((found.p_change - 0.000_850_545).abs() < 1e-9, "{found:?}");
        assert!((found.p_flat - 0.000_913_130).abs() < 1e-9, "{found:?}");
        assert_eq!((found.shown, found.is_small), (Shown::Grows, true));
    }

    #[test]
    fn classifies_changes() {
        let around = |mean: f64, spread: f64| (0..8).map(|i| mean + spread * f64::from(i % 3 - 1)).collect::<Vec<_>>();
        let table = [
            (around(1.0, 0.1), 0.5, Shown::Grows, false),
            (around(-1.0, 0.1), 0.5, Shown::Shrinks, false),
            (around(0.01, 0.1), 0.5, Shown::Flat, true),
            (around(0.1, 2.0), 0.5, Shown::Nothing, false),
            (vec![0.0; 3], 0.5, Shown::Flat, true),
            (vec![0.0; 3], 0.0, Shown::Nothing, false),
            (vec![0.1; 3], 0.5, Shown::Grows, true),
            (vec![3.0], 0.5, Shown::Nothing, false),
            (vec![f64::NAN; 4], 0.5, Shown::Nothing, false),
        ];
        for (changes, margin, shown, is_small) in table {
            let found = one(&changes, margin);
            assert_eq!((found.shown, found.is_small), (shown, is_small), "{changes:?}: {found:?}");
        }
    }

    #[test]
    fn p_values_of_a_mean() {
        // t is √15; with three degrees of freedom, p = 1 - 2/π (atan a + a / (1 + a²)) with a = t / √3.
        assert!((p_value(&[0.1, 0.2, 0.15, 0.05]).unwrap() - 0.030_466_291_662_171).abs() < 1e-9);
        assert_eq!((p_value(&[0.5, 0.5]), p_value(&[0.0, 0.0]), p_value(&[0.5])), (Some(0.0), Some(1.0), None));
    }

    #[test]
    fn lines_of_trials() {
        let line =
            |slope: f64, n: u32| (1..=n).map(|x| (f64::from(x), 10.0 + slope * f64::from(x))).collect::<Vec<_>>();
        let found = Series::from_lines(&[line(0.0, 10), line(0.5, 20), vec![(1.0, 10.0)]], 0.05).unwrap();
        assert_eq!(found.changes.len(), 2);
        assert!(found.changes[0].abs() < 1e-12 && (found.changes[1] - 5.0).abs() < 1e-12, "{found:?}");
        // The mean is over 31 values: 10 of 10, 20 of 15.25 and one of 10.
        assert!((found.margin - 0.05 * 415.0 / 31.0).abs() < 1e-12, "{found:?}");
        assert_eq!(Series::from_lines(&[], 0.05), None);
    }

    #[test]
    fn halves_of_trials() {
        let trials = [vec![1.0, 1.0, 3.0, 1.0], vec![2.0, 2.0, 9.0, 2.0, 1.0], vec![1.0; 3], vec![0.0, 0.0, 1.0, 1.0]];
        let found = Series::from_halves(&trials, 0.02);
        assert_eq!(found.changes, [2f64.ln(), 4f64.ln() - 2f64.ln()]);
    }

    #[test]
    fn many_series_share_the_error() {
        let mut rng = Rng::new(3);
        let mut flat = || Series { changes: (0..8).map(|_| rng.normal()).collect(), margin: 0.1 };
        let claims = |report: &[Series]| growth(report, 0.05).iter().any(|found| found.shown != Shown::Nothing);
        let wrong = (0..400).filter(|_| claims(&(0..36).map(|_| flat()).collect::<Vec<_>>())).count();
        assert!(wrong <= 32, "{wrong} of 400 at 5 %");
    }

    #[test]
    fn ignores_series_without_trials() {
        let clear = Series { changes: vec![1.0, 1.2, 0.9, 1.1], margin: 0.1 };
        let alone = growth(std::slice::from_ref(&clear), 0.05)[0].p_change;
        let empty = Series { changes: vec![1.0], margin: 0.1 };
        assert_eq!(growth(&[empty.clone(), clear, empty], 0.05)[1].p_change, alone);
    }

    // By hand: the means are 3.9 and 7.9, the sum of products 62.05, and the sum of squares 30.2.
    #[test]
    fn least_squares_matches_the_formula() {
        let points = [(1.0, 2.1), (2.0, 3.9), (3.5, 7.2), (5.0, 9.8), (8.0, 16.5)];
        let slope = least_squares(&points).unwrap();
        assert!((slope / (62.05 / 30.2) - 1.0).abs() < 1e-12, "{slope}");
    }

    #[test]
    fn fits_lines_far_from_zero() {
        let points = (0..100).map(|i| (1e9 + f64::from(i), 7.0 - 0.25 * f64::from(i))).collect::<Vec<_>>();
        assert!((least_squares(&points).unwrap() + 0.25).abs() < 1e-9);
    }

    #[test]
    fn no_slope_without_two_different_x() {
        for points in [&[][..], &[(1.0, 2.0)], &[(1.0, 2.0), (1.0, 3.0)], &[(0.0, 0.0), (1.0, f64::NAN)]] {
            assert_eq!(least_squares(points), None, "{points:?}");
        }
    }
}
