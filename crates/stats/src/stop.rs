//! When are there trials enough?

use crate::interval;

pub use crate::volley::{Moments, Next, VolleyEnd, VolleyRule};

/// Trials are added until the interval is narrow enough, or there are as many as may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveRule {
    /// Half-width over the mean that is narrow enough, a fraction.
    pub relative: f64,
    /// Level of confidence, a fraction.
    pub level: f64,
    /// At least so many trials. To stop as soon as an interval happens to be narrow biases it: the
    /// fewer there are at least, the more: with 8, intervals of nominal 95 % cover above 92 % in simulations (see
    /// `docs/METHOD.md`).
    pub min: u32,
    /// At most so many.
    pub max: u32,
}

/// Whether there are trials enough, and why. `Display` says it in words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// More are needed.
    Continue {
        /// Half-width over the mean so far, a fraction; `None` when there is no interval yet.
        relative: Option<f64>,
        /// Trials so far.
        trials: u32,
    },
    /// The interval is narrow enough.
    Met {
        /// Half-width over the mean, a fraction.
        relative: f64,
        /// Trials it took.
        trials: u32,
    },
    /// The most trials are done and the interval is what it is.
    Budget {
        /// Half-width over the mean, a fraction; `None` when there is no interval.
        relative: Option<f64>,
        /// Trials done.
        trials: u32,
    },
}

impl Decision {
    /// Whether to stop.
    pub fn is_final(&self) -> bool {
        !matches!(self, Decision::Continue { .. })
    }
}

/// A relative half-width as `±2.3 %`, or what stands in its place.
fn width(relative: Option<f64>) -> String {
    match relative {
        Some(relative) if relative.is_finite() => format!("±{:.1} %", relative * 100.0),
        Some(_) => "a mean of 0".to_owned(),
        None => "no interval".to_owned(),
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (words, relative, trials) = match *self {
            Decision::Continue { relative, trials } => ("so far", relative, trials),
            Decision::Met { relative, trials } => ("target met", Some(relative), trials),
            Decision::Budget { relative, trials } => ("budget", relative, trials),
        };
        let plural = if trials == 1 { "trial" } else { "trials" };
        write!(f, "{words}: {} after {trials} {plural}", width(relative))
    }
}

/// Looks at the values of all trials of one design point, after each new one.
///
/// Half-width is Student's over the mean's size. A rule whose `max` is below its `min` stops at `max`.
pub fn adaptive(values: &[f64], rule: &AdaptiveRule) -> Decision {
    let trials = values.len() as u32;
    let relative = interval::mean(values, rule.level).map(|estimate| estimate.relative_half_width());
    match relative {
        Some(relative) if trials >= rule.min && relative <= rule.relative => Decision::Met { relative, trials },
        _ if trials >= rule.max => Decision::Budget { relative, trials },
        _ => Decision::Continue { relative, trials },
    }
}

/// Windows that a single trial must have before its interval is looked at in order to stop.
const FIRST_LOOK: usize = 50;

/// How many windows a trial of so many should have when its interval is next looked at in order to stop: 50, then half as
/// many again each time.
///
/// Each look is a chance to stop because the interval happens to be narrow. Looking after every ten windows, intervals of
/// nominal 95 % cover 85 to 92 % in simulations where many looks are taken; with this, 93 to 95 % (see `docs/METHOD.md`).
pub fn next_look(windows: usize) -> usize {
    if windows < FIRST_LOOK { FIRST_LOOK } else { windows.saturating_mul(3) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: AdaptiveRule = AdaptiveRule { relative: 0.03, level: 0.95, min: 8, max: 30 };

    fn check(values: &[f64], expected: &str) {
        assert_eq!(adaptive(values, &RULE).to_string(), expected);
    }

    #[test]
    fn looks_get_rarer() {
        let looks = std::iter::successors(Some(0), |&windows| Some(next_look(windows))).take(5).collect::<Vec<_>>();
        assert_eq!(looks, [0, 50, 75, 112, 168]);
    }

    #[test]
    fn nothing_yet() {
        check(&[], "so far: no interval after 0 trials");
        check(&[100.0], "so far: no interval after 1 trial");
    }

    #[test]
    fn narrow_but_too_few() {
        check(&[100.0; 7], "so far: ±0.0 % after 7 trials");
    }

    #[test]
    fn narrow_and_enough() {
        check(&[100.0; 8], "target met: ±0.0 % after 8 trials");
        assert!(adaptive(&[100.0; 8], &RULE).is_final());
    }

    #[test]
    fn wide_until_the_budget_is_spent() {
        let values = (0..30).map(|i| 100.0 + 10.0 * f64::from(i % 3)).collect::<Vec<_>>();
        // scipy 1.17: a = [100 + 10*(i%3) for i in range(20)]
        // scipy.stats.t.ppf(.975, 19)*scipy.stats.sem(a)/numpy.mean(a) is 0.0354, 0.0282 for 30, 0.0561 for the squares of those
        check(&values[..20], "so far: ±3.5 % after 20 trials");
        check(&values, "target met: ±2.8 % after 30 trials");
        let wide = values.iter().map(|value| value * value).collect::<Vec<_>>();
        check(&wide, "budget: ±5.6 % after 30 trials");
    }

    #[test]
    fn a_mean_of_zero_is_never_narrow() {
        let values = (0..30).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect::<Vec<_>>();
        check(&values, "budget: a mean of 0 after 30 trials");
        check(&[0.0; 8], "target met: ±0.0 % after 8 trials");
    }
}
