//! Is B different from A, and by how much? Words that the data earns, and no others.

use crate::interval::{self, Estimate};

/// Mean difference of the logarithms of two conditions, B minus A: the logarithm of their ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// Natural logarithm of the ratio B/A of geometric means.
    pub mean: f64,
    /// Standard error of `mean`.
    pub standard_error: f64,
    /// Degrees of freedom of the t interval.
    pub df: f64,
    /// Pairs, or trials of the smaller side.
    pub n: u64,
}

/// From values that belong together by block, `(a, b)` each: what a block does to both cancels.
///
/// `None` below two pairs or when a value is not positive and finite, as ratios need.
pub fn paired(pairs: &[(f64, f64)]) -> Option<LogRatio> {
    let logs = pairs.iter().map(|&(a, b)| Some(logarithm(b)? - logarithm(a)?)).collect::<Option<Vec<_>>>()?;
    let n = logs.len();
    Some(LogRatio {
        mean: interval::average(&logs)?,
        standard_error: (interval::variance(&logs)? / n as f64).sqrt(),
        df: (n - 1) as f64,
        n: n as u64,
    })
}

/// From values that do not belong together, with variances that may differ. Source: Welch 1947.
///
/// `None` below two values on either side or when one is not positive and finite.
pub fn welch(a: &[f64], b: &[f64]) -> Option<LogRatio> {
    let side = |values: &[f64]| {
        let logs = values.iter().map(|&value| logarithm(value)).collect::<Option<Vec<_>>>()?;
        let n = logs.len() as f64;
        Some((interval::average(&logs)?, interval::variance(&logs)? / n, n))
    };
    let ((mean_a, square_a, n_a), (mean_b, square_b, n_b)) = (side(a)?, side(b)?);
    let square = square_a + square_b;
    let df = if square > 0.0 {
        square.powi(2) / (square_a.powi(2) / (n_a - 1.0) + square_b.powi(2) / (n_b - 1.0))
    } else {
        n_a + n_b - 2.0
    };
    Some(LogRatio { mean: mean_b - mean_a, standard_error: square.sqrt(), df, n: n_a.min(n_b) as u64 })
}

fn logarithm(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

impl LogRatio {
    /// The ratio B/A with its t interval.
    pub fn ratio(&self, level: f64) -> Estimate {
        let half_width = interval::t_two_sided(level, self.df) * self.standard_error;
        let [point, low, high] = [0.0, -half_width, half_width].map(|offset| (self.mean + offset).exp());
        Estimate { point, low, high, level, n: self.n }
    }

    /// Chance of a ratio at least so far from 1, either way, where there is no difference.
    pub fn p_value(&self) -> f64 {
        (2.0 * self.upper_tail(self.mean.abs())).min(1.0)
    }

    /// Two one-sided tests: chance of so good an agreement where the ratio truly lies at or beyond
    /// `1 + margin` or its inverse. Source: Schuirmann 1987.
    ///
    /// # Panics
    /// When `margin` is not positive.
    pub fn equivalence_p_value(&self, margin: f64) -> f64 {
        assert!(margin > 0.0, "a margin is a positive fraction: {margin}");
        let bound = margin.ln_1p();
        self.upper_tail(bound - self.mean).max(self.upper_tail(bound + self.mean))
    }

    /// The smallest difference, as a fraction above 1, that this many trials of this spread would show with chance
    /// `power` at this level: the minimum detectable effect `exp((t(1-a/2) + t(power))·se) - 1`.
    pub fn detectable(&self, level: f64, power: f64) -> f64 {
        let reach = interval::t_two_sided(level, self.df) + interval::t_quantile(power, self.df);
        (reach * self.standard_error).exp_m1()
    }

    /// Chance that a t variable exceeds `distance` in standard errors.
    fn upper_tail(&self, distance: f64) -> f64 {
        match self.standard_error > 0.0 {
            true => interval::t_cdf(-distance / self.standard_error, self.df),
            false if distance > 0.0 => 0.0,
            false => 1.0,
        }
    }
}

/// Adjusts p-values of several comparisons made at once (Holm 1979); the order is kept.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order = (0..p_values.len()).collect::<Vec<_>>();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - place) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// What is asked of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerdictRule {
    /// Level of confidence, a fraction.
    pub level: f64,
    /// Differences below this fraction do not matter, if the asker said so.
    pub margin: Option<f64>,
    /// Whether more is better, as for throughput, or less, as for latency.
    pub higher_is_better: bool,
}

/// What a comparison has shown of B against A. `Display` has the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// B is better.
    Faster,
    /// B is worse.
    Slower,
    /// The difference, if any, lies within the margin.
    Equivalent {
        /// The margin, a fraction.
        margin: f64,
    },
    /// Neither a difference nor its absence was shown.
    Unclear {
        /// What would have been shown in four of five attempts, a fraction.
        detectable: f64,
    },
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Faster => write!(f, "faster"),
            Verdict::Slower => write!(f, "slower"),
            Verdict::Equivalent { margin } => write!(f, "equivalent within ±{} %", percent(*margin)),
            Verdict::Unclear { detectable } => {
                write!(f, "no difference shown (could detect ≥ {} %)", percent(*detectable))
            }
        }
    }
}

fn percent(fraction: f64) -> String {
    let text = format!("{:.1}", fraction * 100.0);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// The power of "could detect".
pub const POWER: f64 = 0.8;

/// Finds the word for one comparison; `p_value` is its own, or as [`holm`] adjusted it among several.
///
/// Equivalence comes first where a margin was stated: a difference that is real and too small to matter is called what
/// the asker declared it to be.
pub fn verdict(found: &LogRatio, p_value: f64, rule: &VerdictRule) -> Verdict {
    let error = 1.0 - rule.level;
    if let Some(margin) = rule.margin.filter(|margin| *margin > 0.0)
        && found.equivalence_p_value(margin) < error
    {
        return Verdict::Equivalent { margin };
    }
    if p_value >= error {
        return Verdict::Unclear { detectable: found.detectable(rule.level, POWER) };
    }
    if (found.mean > 0.0) == rule.higher_is_better { Verdict::Faster } else { Verdict::Slower }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const A: [f64; 6] = [101.0, 98.0, 103.0, 99.5, 100.2, 97.9];
    const B: [f64; 6] = [111.0, 109.0, 115.5, 108.0, 113.1, 106.4];

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found:?}, expected {expected:?}");
    }

    // scipy 1.17, a and b as above, numpy.log of both:
    // r = scipy.stats.ttest_rel(lb, la); r.pvalue; numpy.exp(r.confidence_interval(.95))
    #[test]
    fn paired_matches_scipy() {
        let pairs = A.into_iter().zip(B).collect::<Vec<_>>();
        let found = paired(&pairs).unwrap();
        let ratio = found.ratio(0.95);
        close(found.p_value(), 2.353117484135025e-05);
        close(ratio.low, 1.0866933388330684);
        close(ratio.high, 1.1245879405638648);
        assert_eq!(ratio.n, 6);
    }

    // r = scipy.stats.ttest_ind(lb, la[:5], equal_var=False); r.pvalue; r.df; numpy.exp(r.confidence_interval(.95))
    #[test]
    fn welch_matches_scipy() {
        let found = welch(&A[..5], &B).unwrap();
        let ratio = found.ratio(0.95);
        close(found.p_value(), 0.00016775124518717953);
        close(found.df, 8.334612783855187);
        close(ratio.low, 1.0639515810510884);
        close(ratio.high, 1.1392903746889265);
    }

    // statsmodels 0.15: statsmodels.stats.weightstats.ttost_ind(lb - numpy.log(1.1), la[:5], -numpy.log(1.02), numpy.log(1.02), usevar='unequal')[0]
    #[test]
    fn equivalence_matches_statsmodels() {
        let b = B.map(|value| value / 1.1);
        close(welch(&A[..5], &b).unwrap().equivalence_p_value(0.02), 0.11983538288638884);
    }

    // statsmodels 0.15: statsmodels.stats.multitest.multipletests([.01, .04, .03, .005, .2], method='holm')[1]
    #[test]
    fn holm_matches_statsmodels() {
        let found = holm(&[0.01, 0.04, 0.03, 0.005, 0.2]);
        for (found, expected) in found.into_iter().zip([0.04, 0.09, 0.09, 0.025, 0.2]) {
            close(found, expected);
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    fn words(b: &[f64], margin: Option<f64>, higher_is_better: bool) -> String {
        let found = welch(&A, b).unwrap();
        verdict(&found, found.p_value(), &VerdictRule { level: 0.95, margin, higher_is_better }).to_string()
    }

    // scipy 1.17: se = (2*la.var(ddof=1)/6)**.5
    // numpy.expm1((scipy.stats.t.ppf(.975, 10) + scipy.stats.t.ppf(.8, 10))*se) is 0.0352 for "could detect"
    #[test]
    fn words_are_earned() {
        assert_eq!(words(&B, None, true), "faster");
        assert_eq!(words(&B, None, false), "slower");
        assert_eq!(words(&A, None, true), "no difference shown (could detect ≥ 3.5 %)");
        assert_eq!(words(&A, Some(0.05), true), "equivalent within ±5 %");
        assert_eq!(words(&A, Some(0.001), true), "no difference shown (could detect ≥ 3.5 %)");
        assert_eq!(words(&A.map(|value| value * 1.03), Some(0.2), true), "equivalent within ±20 %");
    }

    #[test]
    fn values_without_spread() {
        let same = paired(&[(2.0, 2.0); 3]).unwrap();
        assert_eq!((same.p_value(), same.ratio(0.95).low), (1.0, 1.0));
        let apart = paired(&[(2.0, 4.0); 3]).unwrap();
        assert_eq!(apart.p_value(), 0.0);
    }

    #[test]
    fn ratios_need_positive_values() {
        assert_eq!(paired(&[(1.0, 2.0)]), None);
        assert_eq!(paired(&[(1.0, 2.0), (0.0, 1.0)]), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0, f64::INFINITY]), None);
        assert_eq!(welch(&[], &[1.0, 2.0]), None);
    }

    #[test]
    fn detectable_difference_is_detected_four_times_of_five() {
        let (mut rng, studies, n) = (Rng::new(12), 1_000, 10);
        let spread = 0.02;
        // Known spread, so that the effect to plant is known: se = spread·sqrt(2/n), df = 18.
        let known = LogRatio { mean: 0.0, standard_error: spread * (0.2f64).sqrt(), df: 18.0, n: 10 };
        let effect = 1.0 + known.detectable(0.95, POWER);
        let shown = (0..studies)
            .filter(|_| {
                let mut draw = |scale: f64| (0..n).map(|_| scale * (spread * rng.normal()).exp()).collect::<Vec<_>>();
                welch(&draw(100.0), &draw(100.0 * effect)).unwrap().p_value() < 0.05
            })
            .count();
        assert!((750..860).contains(&shown), "{shown} of {studies}");
    }
}
