//! Point estimates with confidence intervals.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::special_functions;
pub use crate::special_functions::normal_cdf;

/// A point with its confidence interval. Reports show all five numbers, never only the point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Best single value, in the unit of the sample.
    pub point: f64,
    /// Lower end of the interval, in the unit of the point.
    pub low: f64,
    /// Upper end of the interval, in the unit of the point.
    pub high: f64,
    /// Share of such intervals that contain the true value, such as 0.95.
    pub level: f64,
    /// Number of independent values on which the estimate is based.
    pub n: u64,
}

impl Estimate {
    /// Returns the estimate of the inverse ratio.
    pub fn inverse(&self) -> Estimate {
        Estimate { point: 1.0 / self.point, low: 1.0 / self.high, high: 1.0 / self.low, ..*self }
    }

    /// Creates the estimate `point` ± `half_width`.
    pub fn around(point: f64, half_width: f64, level: f64, n: u64) -> Estimate {
        Estimate { point, low: point - half_width, high: point + half_width, level, n }
    }

    /// Maps the point and both ends by an increasing function.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Estimate {
        Estimate { point: rising(self.point), low: rising(self.low), high: rising(self.high), ..self }
    }

    /// Returns the estimate of a ratio, from the estimate of its logarithm.
    pub fn exp(self) -> Estimate {
        self.map(f64::exp)
    }

    /// Half of the interval's width, in the unit of the point.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half-width divided by the absolute value of the point: 0 if the width is 0, and infinite if only the point is 0.
    pub fn relative_half_width(&self) -> f64 {
        let half_width = self.half_width();
        if half_width == 0.0 { 0.0 } else { half_width / self.point.abs() }
    }
}

/// Arithmetic mean in the unit of the values; `None` for an empty sample.
pub fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample variance (divisor `n - 1`), in two passes for precision; `None` for fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = average(values)?;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Some(squares / (values.len() - 1) as f64)
}

/// Mean of independent values with its Student t interval: `mean ± t(n-1, 1-a/2)·s/√n`. `None` for fewer than two
/// values, or if a value is not finite. The level is exact for normal values and nearly exact for values that are means
/// (Georges et al. 2007; simulations are in `docs/results/coverage.md`).
pub fn mean(values: &[f64], level: f64) -> Option<Estimate> {
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let (point, variance) = (average(values)?, variance(values)?);
    let n = values.len();
    let half_width = t_two_sided(level, (n - 1) as f64) * (variance / n as f64).sqrt();
    Some(Estimate::around(point, half_width, level, n as u64))
}

/// Quantile `t` of Student's distribution with `df` degrees of freedom for probability `level` between `-t` and `t`.
pub fn t_two_sided(level: f64, df: f64) -> f64 {
    assert!(level > 0.0 && level < 1.0, "`level` is a fraction, not a percentage: {level}");
    // Most calls repeat the previous one, because a row has many metrics of equal sample size.
    thread_local!(static LAST: Cell<[f64; 3]> = const { Cell::new([f64::NAN; 3]) });
    let [last_level, last_df, mut t] = LAST.get();
    if (last_level, last_df) != (level, df) {
        t = -special_functions::t_quantile((1.0 - level) / 2.0, df);
        LAST.set([level, df, t]);
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    // scipy 1.17: a = [55.8, 53.5, 57.6, 75.8, 76.3, 61.0]
    // scipy.stats.t.interval(0.95, 5, loc=numpy.mean(a), scale=scipy.stats.sem(a))
    #[test]
    fn mean_matches_scipy() {
        let found = mean(&[55.8, 53.5, 57.6, 75.8, 76.3, 61.0], 0.95).unwrap();
        assert!((found.point - 63.333_333_333_333_336).abs() < 1e-12);
        assert!((found.low - 52.679485321210635).abs() < 1e-9, "{found:?}");
        assert!((found.high - 73.98718134545604).abs() < 1e-9, "{found:?}");
        assert_eq!((found.level, found.n), (0.95, 6));
    }

    #[test]
    fn no_interval_without_two_finite_values() {
        assert_eq!(mean(&[], 0.95), None);
        assert_eq!(mean(&[1.0], 0.95), None);
        assert_eq!(mean(&[1.0, f64::NAN], 0.95), None);
        assert_eq!(mean(&[1.0, f64::INFINITY], 0.95), None);
    }

    #[test]
    fn equal_values_have_no_width() {
        let found = mean(&[5.0; 8], 0.95).unwrap();
        assert_eq!((found.low, found.high, found.relative_half_width()), (5.0, 5.0, 0.0));
        let zero = mean(&[-1.0, 1.0], 0.95).unwrap();
        assert_eq!(zero.relative_half_width(), f64::INFINITY);
    }

    #[test]
    #[should_panic(expected = "not a percentage")]
    fn rejects_a_percentage_as_level() {
        mean(&[1.0, 2.0], 95.0);
    }
}
