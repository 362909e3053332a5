//! Decides when a study that runs in whole blocks has enough of them. Every point has a trial in every block and no
//! point ends early, because trials without counterparts cannot be compared. The rules consider only interval widths,
//! never which contender is ahead, so the tests of [`crate::ranking`] keep their level.

use crate::interval::{self, Estimate};

/// Number of blocks before the first look, and minimum for any claim.
pub const FIRST_LOOK: u32 = 12;

/// Number of blocks at the next look: 12, 18, 24, 30, then half as many again each time. Each look is a chance to stop
/// because widths happen to be narrow; having few looks keeps the chance small.
pub fn next_look(blocks: u32) -> u32 {
    match blocks {
        0..12 => FIRST_LOOK,
        12..30 => blocks - blocks % 6 + 6,
        _ => {
            let later =
                std::iter::successors(Some(30u64), |look| Some(look * 3 / 2)).find(|&look| look > u64::from(blocks));
            later.and_then(|look| u32::try_from(look).ok()).unwrap_or(u32::MAX)
        }
    }
}

/// Whether a study that has completed `blocks` blocks is due for a look.
pub fn is_look(blocks: u32) -> bool {
    blocks >= FIRST_LOOK && next_look(blocks - 1) == blocks
}

/// Relative standard deviation between trials, pooled over points: the root mean square of `s_i/mean_i`. Pooling
/// averages out luck and covers rare starts of other points. `None` if no point has two values and a nonzero mean.
pub fn pooled_relative_sd<'a>(points: impl IntoIterator<Item = &'a [f64]>) -> Option<f64> {
    let squares = points.into_iter().filter_map(|values| {
        let mean = interval::average(values)?;
        (mean != 0.0).then_some(interval::variance(values)? / (mean * mean))
    });
    let squares = squares.collect::<Vec<_>>();
    interval::average(&squares).map(f64::sqrt)
}

/// Half-width of a point's interval under the pooled deviation, relative to its mean; `None` for fewer than two trials.
pub fn pooled_half_width(pooled_relative_sd: f64, trials: u32, level: f64) -> Option<f64> {
    (trials >= 2).then(|| {
        let n = f64::from(trials);
        interval::t_two_sided(level, n - 1.0) * pooled_relative_sd / n.sqrt()
    })
}

/// Mean with the reported interval, `mean ± t(n-1)·max(s_i, s_pool·|mean|)/√n`; `None` as for [`interval::mean`].
pub fn shown(values: &[f64], pooled_relative_sd: f64, level: f64) -> Option<Estimate> {
    let own = interval::mean(values, level)?;
    let pooled = pooled_half_width(pooled_relative_sd, u32::try_from(values.len()).ok()?, level)? * own.point.abs();
    let half_width = own.half_width().max(pooled);
    Some(Estimate::around(own.point, half_width, level, own.n))
}

/// Target precision of a study, and limits of its number of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Target half-width, as a fraction; `None` ends the study after exactly `min` blocks.
    pub target: Option<f64>,
    /// Minimum number of blocks of the study.
    pub min: u32,
    /// Maximum number of blocks of the study.
    pub max: u32,
}

/// Whether a study has enough blocks. `Display` gives the reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// More blocks are needed.
    Continue,
    /// The requested number of blocks is complete; the rule has no target.
    AsAsked {
        /// Number of completed blocks.
        blocks: u32,
    },
    /// The widest interval meets the target.
    Met {
        /// Half-width of the widest interval, as a fraction.
        width: f64,
        /// Number of completed blocks.
        blocks: u32,
    },
    /// The maximum number of blocks is reached.
    Budget {
        /// Half-width of the widest interval, as a fraction; `None` without an interval.
        width: Option<f64>,
        /// Number of completed blocks.
        blocks: u32,
    },
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, width, blocks) = match *self {
            Decision::Continue => return write!(f, "not yet"),
            Decision::AsAsked { blocks } => ("as requested:", None, blocks),
            Decision::Met { width, blocks } => ("target met:", Some(width), blocks),
            Decision::Budget { width: Some(width), blocks } if width.is_finite() => ("budget:", Some(width), blocks),
            Decision::Budget { blocks, .. } => ("budget: no interval after", None, blocks),
        };
        let width = width.map_or(String::new(), |width| format!(" ±{:.1} % after", width * 100.0));
        write!(f, "{what}{width} {blocks} {}", if blocks == 1 { "block" } else { "blocks" })
    }
}

/// Decides after a whole block. `width` is the study's widest half-width as a fraction, or `None` while a point has
/// no interval. Widths count only at the looks of [`next_look`] and at `max`.
pub fn decide(width: Option<f64>, blocks: u32, rule: &Rule) -> Decision {
    let goal = match rule.target {
        None if blocks >= rule.min => return Decision::AsAsked { blocks },
        None => return Decision::Continue,
        Some(goal) => goal,
    };
    match width {
        Some(width) if width <= goal && blocks >= rule.min && (is_look(blocks) || blocks >= rule.max) => {
            Decision::Met { width, blocks }
        }
        _ if blocks >= rule.max => Decision::Budget { width, blocks },
        _ => Decision::Continue,
    }
}

/// Number of trials likely to reach the target if widths shrink as `t/√n`; `None` if unknown or above a billion.
pub fn trials_needed(relative: f64, trials: u32, target: f64, level: f64) -> Option<u32> {
    if trials < 2 || target.is_nan() || target <= 0.0 || !relative.is_finite() {
        return None;
    }
    let n = f64::from(trials);
    let sd = relative * n.sqrt() / interval::t_two_sided(level, n - 1.0);
    let width = |n: f64| interval::t_two_sided(level, n - 1.0) * sd / n.sqrt();
    let (mut low, mut high) = (1.0, 2.0);
    while width(high) > target {
        (low, high) = (high, high * 2.0);
        if high > 1e9 {
            return None;
        }
    }
    while high - low > 1.0 {
        let middle = ((low + high) / 2.0).floor();
        if width(middle) > target { low = middle } else { high = middle }
    }
    Some(high as u32)
}

/// Share of rare starts that all trials miss with probability `error`: `1-error^(1/n)` (Hanley & Lippman-Hand 1983).
pub fn unseen_share(trials: u32, error: f64) -> f64 {
    1.0 - error.powf(1.0 / f64::from(trials.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_get_rarer() {
        let looks = std::iter::successors(Some(0), |&blocks| Some(next_look(blocks))).take(8).collect::<Vec<_>>();
        assert_eq!(looks, [0, 12, 18, 24, 30, 45, 67, 100]);
        assert_eq!((0..=70).filter(|&blocks| is_look(blocks)).collect::<Vec<_>>(), [12, 18, 24, 30, 45, 67]);
        assert_eq!(next_look(u32::MAX), u32::MAX);
    }

    #[test]
    fn decisions() {
        let rule = Rule { target: Some(0.03), min: 12, max: 40 };
        let table = [
            (None, 0, "not yet"),
            (Some(0.01), 11, "not yet"),
            (Some(0.01), 12, "target met: ±1.0 % after 12 blocks"),
            (Some(0.01), 13, "not yet"),
            (Some(0.05), 18, "not yet"),
            (Some(0.05), 40, "budget: ±5.0 % after 40 blocks"),
            (Some(0.02), 40, "target met: ±2.0 % after 40 blocks"),
            (None, 40, "budget: no interval after 40 blocks"),
        ];
        for (width, blocks, expected) in table {
            assert_eq!(decide(width, blocks, &rule).to_string(), expected, "{width:?} {blocks}");
        }
        let fixed = Rule { target: None, min: 1, max: 1 };
        assert_eq!(decide(None, 1, &fixed).to_string(), "as requested: 1 block");
    }

    #[test]
    fn pooling_is_the_root_of_the_mean_square() {
        // (9, 11) has mean 10 and s² = 2, relative 0.02; (80, 120) has mean 100 and s² = 800, relative 0.08.
        let pooled = pooled_relative_sd([[9.0, 11.0].as_slice(), &[80.0, 120.0]]).unwrap();
        assert!((pooled - ((0.02f64 + 0.08) / 2.0).sqrt()).abs() < 1e-12, "{pooled}");
        assert_eq!(pooled_relative_sd([[1.0].as_slice(), &[1.0, -1.0]]), None);
    }

    #[test]
    fn lucky_points_get_the_pooled_width() {
        let lucky = [100.0, 100.1, 99.9];
        let own = interval::mean(&lucky, 0.95).unwrap();
        let found = shown(&lucky, 0.05, 0.95).unwrap();
        // scipy 1.17: scipy.stats.t.ppf(.975, 2) * 5 / 3**.5 is 12.42
        assert!((found.half_width() - 12.42).abs() < 0.01 && own.half_width() < 0.3, "{found:?}");
        assert_eq!(shown(&lucky, 0.0, 0.95).unwrap().high, own.high);
        assert_eq!(shown(&[1.0], 0.1, 0.95), None);
    }

    // scipy 1.17: next(n for n in range(2, 99) if t.ppf(.975, n-1)*.05/n**.5 <= .03) is 14; .08: 30
    #[test]
    fn computes_trials_needed_for_a_target() {
        for (sd, expected) in [(0.05, 14), (0.08, 30)] {
            let now = pooled_half_width(sd, 12, 0.95).unwrap();
            assert_eq!(trials_needed(now, 12, 0.03, 0.95), Some(expected));
        }
        assert_eq!(trials_needed(0.1, 1, 0.03, 0.95), None);
        assert_eq!(trials_needed(f64::INFINITY, 5, 0.03, 0.95), None);
        assert_eq!(trials_needed(0.0, 5, 0.03, 0.95), Some(2));
    }

    #[test]
    fn computes_share_of_unseen_starts() {
        let percent = [12, 20, 30].map(|trials| (unseen_share(trials, 0.05) * 100.0).round());
        assert_eq!(percent, [22.0, 14.0, 10.0]);
    }
}
