//! Compares two conditions measured in the same blocks, in random order, so that labels are exchangeable (Fisher 1935).

use crate::interval::{self, Estimate};
use crate::{Bound, special_functions};

/// Largest number of pairs with the exact distribution of signed ranks. More pairs use the normal distribution.
const EXACT_MAX: usize = 400;

/// Size of a difference, in half-widths of its interval, that about 80 % of comparisons show (simulated: 75 to 84 %).
pub const COULD_SHOW: f64 = 1.5;

/// Difference of logarithms that replaces a ratio to zero or to an unbounded value. It exceeds any measured difference.
pub(crate) const FAR: f64 = 1e3;

/// Values of one condition, one per block; `None` for a block whose trial lacks the metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Lower bound of each value, in the metric's unit.
    pub least: Vec<Option<f64>>,
    /// Upper bound of each value; infinite if requests were still waiting when the trial ended.
    pub most: Vec<Option<f64>>,
}

impl Side {
    /// Creates a side of exactly known values.
    pub fn known(values: &[Option<f64>]) -> Self {
        Self { least: values.to_vec(), most: values.to_vec() }
    }
}

impl FromIterator<Option<Bound>> for Side {
    fn from_iter<I: IntoIterator<Item = Option<Bound>>>(bounds: I) -> Self {
        let ends = |bound: Bound| (bound.value, if bound.at_least { f64::INFINITY } else { bound.value });
        let (least, most) = bounds.into_iter().map(|bound| bound.map(ends).unzip()).unzip();
        Self { least, most }
    }
}

/// Differences between two conditions whose values may be lower bounds. Tests use the least favorable values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DifferenceRange {
    /// Differences if every value equals its lower bound.
    pub(crate) known: Pairs,
    pub(crate) least: Pairs,
    pub(crate) most: Pairs,
}

impl DifferenceRange {
    /// Pairs the values of common blocks; `None` if there are none, or if a `difference(a, b)` is not a number.
    pub(crate) fn new(a: &Side, b: &Side, difference: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let pairs = |a: &[Option<f64>], b: &[Option<f64>]| {
            let common = a.iter().zip(b).filter_map(|(a, b)| Some(difference((*a)?, (*b)?).clamp(-FAR, FAR)));
            let logs = common.collect::<Vec<_>>();
            (!logs.is_empty() && !logs.iter().any(|log| log.is_nan())).then(|| Pairs::from_logs(logs))
        };
        let (known, least) = (pairs(&a.least, &b.least)?, pairs(&a.most, &b.least)?);
        Some(Self { known, least, most: pairs(&a.least, &b.most)? })
    }

    /// Returns [`Pairs::shift`] with the outermost ends, so that the interval covers all values between the bounds.
    pub(crate) fn shift(&self, level: f64) -> Option<Estimate> {
        let (known, least, most) = (self.known.shift(level)?, self.least.shift(level)?, self.most.shift(level)?);
        Some(Estimate { low: least.low, high: most.high, ..known })
    }
}

/// Differences of logarithms, ln B - ln A, one per block in which both have a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    logs: Vec<f64>,
}

impl Pairs {
    /// Creates pairs from `(a, b)`, one per block. `None` without pairs, or if a value is not positive and finite.
    pub fn new(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Pairs> {
        let log = |value: f64| (value > 0.0 && value.is_finite()).then(|| value.ln());
        let logs = pairs.into_iter().map(|(a, b)| Some(log(b)? - log(a)?)).collect::<Option<Vec<_>>>()?;
        (!logs.is_empty()).then_some(Pairs { logs })
    }

    /// Creates pairs from differences: ln B - ln A, or B - A, for which [`Pairs::shift`] is valid but ratios are not.
    /// Panics if there are no differences, or if one is not finite.
    pub fn from_logs(logs: Vec<f64>) -> Pairs {
        assert!(!logs.is_empty() && logs.iter().all(|log| log.is_finite()), "at least one difference, all finite");
        Pairs { logs }
    }

    /// Number of pairs, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.logs.len()
    }

    /// Tests by Wilcoxon's signed ranks whether the typical difference is `shift`.
    pub fn against(&self, shift: f64) -> SignedRank {
        SignedRank::new(&self.logs.iter().map(|log| log - shift).collect::<Vec<_>>())
    }

    /// Typical ratio B/A with the interval of the signed rank test: exp of the median of all Walsh averages (Hodges &
    /// Lehmann 1963; Hollander, Wolfe & Chicken 2014, chapter 3). `None` for too few pairs (below 6 at 95 %).
    pub fn typical(&self, level: f64) -> Option<Estimate> {
        self.shift(level).map(Estimate::exp)
    }

    /// Typical difference B - A with its interval: [`Pairs::typical`] without exponentiation, `None` in the same cases.
    pub fn shift(&self, level: f64) -> Option<Estimate> {
        assert!(level > 0.0 && level < 1.0, "`level` is a fraction, not a percentage: {level}");
        let n = self.logs.len();
        let k = walsh_rank(n, (1.0 - level) / 2.0);
        if k == 0 {
            return None;
        }
        let walsh = self.walsh();
        let (low, high) = (walsh[k - 1], walsh[walsh.len() - k]);
        Some(Estimate { point: median(&walsh), low, high, level, n: n as u64 })
    }

    /// Typical difference of logarithms, without an interval.
    pub fn typical_log(&self) -> f64 {
        median(&self.walsh())
    }

    /// Ratio of geometric means, with Student's t interval of the differences. `None` for fewer than two pairs.
    pub fn mean(&self, level: f64) -> Option<Estimate> {
        interval::mean(&self.logs, level).map(Estimate::exp)
    }

    /// Means of all pairs of differences, including each difference with itself, ascending (Walsh averages).
    fn walsh(&self) -> Vec<f64> {
        let n = self.logs.len();
        let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
        for (i, first) in self.logs.iter().enumerate() {
            walsh.extend(self.logs[i..].iter().map(|second| (first + second) / 2.0));
        }
        walsh.sort_unstable_by(f64::total_cmp);
        walsh
    }
}

/// Geometric half-width of a ratio's interval, as a fraction of the ratio.
pub fn half_width(ratio: &Estimate) -> f64 {
    ((ratio.high.ln() - ratio.low.ln()) / 2.0).exp_m1()
}

fn median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Number of signed-rank sums `w` of `n` untied pairs with `P(W+ <= w) <= tail`: the rank of the interval's end.
fn walsh_rank(n: usize, tail: f64) -> usize {
    if n > EXACT_MAX {
        let n = n as f64;
        let (mean, sd) = (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
        return ((mean - 0.5 + sd * special_functions::normal_quantile(tail)).floor() + 1.0).max(0.0) as usize;
    }
    let ranks = (1..=n).map(|rank| 2 * rank).collect::<Vec<_>>();
    let chances = distribution(&ranks);
    // Ranks are doubled, so odd indices are empty.
    let sums = chances.iter().step_by(2).scan(0.0, |sum, chance| {
        *sum += chance;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= tail).count()
}

/// Probability of each sum of positive ranks under random signs: `c_n(w) = (c_{n-1}(w) + c_{n-1}(w - rank)) / 2`.
fn distribution(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    let mut reach = 0;
    for &rank in ranks {
        reach += rank;
        for w in (0..=reach).rev() {
            let with = if w >= rank { chances[w - rank] } else { 0.0 };
            chances[w] = (chances[w] + with) / 2.0;
        }
    }
    chances
}

/// Result of Wilcoxon's signed rank test (Wilcoxon 1945). Equal differences share their mean rank, and the distribution
/// uses these ranks. A zero difference is dropped after ranking (Pratt 1959).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// One-sided p-value of the claim that B is larger.
    pub p_larger: f64,
    /// One-sided p-value of the claim that B is smaller.
    pub p_smaller: f64,
}

impl SignedRank {
    fn new(differences: &[f64]) -> SignedRank {
        let mut order = differences.to_vec();
        order.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (mut ranks, mut positive, mut before) = (Vec::with_capacity(order.len()), 0, 0);
        for tied in order.chunk_by(|a, b| a.abs() == b.abs()) {
            // Twice the mean of the ranks `before + 1` to `before + n`, where `n` is the number of tied values.
            let rank = 2 * before + tied.len() + 1;
            before += tied.len();
            if tied[0] != 0.0 {
                ranks.extend(std::iter::repeat_n(rank, tied.len()));
                positive += rank * tied.iter().filter(|difference| **difference > 0.0).count();
            }
        }
        if ranks.len() > EXACT_MAX {
            let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
            let sd = (ranks.iter().map(|rank| (rank * rank) as f64).sum::<f64>() / 4.0).sqrt();
            let tail = |sum: f64| special_functions::normal_cdf((sum + 1.0) / sd).min(1.0);
            return SignedRank { p_larger: tail(mean - positive as f64), p_smaller: tail(positive as f64 - mean) };
        }
        let chances = distribution(&ranks);
        let sum = |chances: &[f64]| chances.iter().sum::<f64>().min(1.0);
        SignedRank { p_larger: sum(&chances[positive..]), p_smaller: sum(&chances[..=positive]) }
    }

    /// Two-sided p-value of a difference, at most 1.
    pub fn p_two_sided(&self) -> f64 {
        (2.0 * self.p_larger.min(self.p_smaller)).min(1.0)
    }
}

/// Minimum number of blocks that can show a difference, with Holm over `tests` tests: `b >= log2(40·tests)` at 5 %,
/// because the smallest two-sided p of `b` blocks is `2^(1-b)`.
pub fn blocks_needed(tests: usize, error: f64) -> u32 {
    (2.0 * tests.max(1) as f64 / error).log2().ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWELVE: [f64; 12] = [0.021, -0.004, 0.035, 0.012, 0.050, -0.011, 0.027, 0.018, 0.009, 0.041, -0.002, 0.030];

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found:?}, expected {expected:?}");
    }

    // scipy 1.17: scipy.stats.wilcoxon(d, method='exact').pvalue is 0.00927734375; alternative='greater' gives
    // 0.004638671875. R: wilcox.test(d, conf.int = TRUE) gives the interval 0.005 to 0.031 and the estimate 0.0195.
    #[test]
    fn twelve_pairs_match_the_published_tables() {
        let pairs = Pairs::from_logs(TWELVE.to_vec());
        let test = pairs.against(0.0);
        close(test.p_two_sided(), 0.00927734375);
        close(test.p_larger, 0.004638671875);
        let ratio = pairs.typical(0.95).unwrap();
        close(ratio.point.ln(), 0.0195);
        close(ratio.low.ln(), 0.005);
        close(ratio.high.ln(), 0.031);
        assert_eq!(ratio.n, 12);
    }

    // Source: Hollander, Wolfe & Chicken 2014, table A.4.
    #[test]
    fn walsh_ranks_at_95_percent() {
        for (n, k) in [(5, 0), (6, 1), (8, 4), (10, 9), (12, 14), (15, 26), (18, 41), (20, 53), (24, 82), (30, 138)] {
            assert_eq!(walsh_rank(n, 0.025), k, "{n} pairs");
        }
    }

    // Ties and zeros, counted over all 2^n signs of the mid-ranks, as in R: coin::wilcoxsign_test(a ~ b, distribution =
    // "exact", zero.method = "Pratt").
    #[test]
    fn ties_and_zeros_match_the_enumeration_of_all_signs() {
        let table: [&[f64]; 5] = [
            &[1.0, 1.0, -1.0, 2.0],
            &[0.0, 0.0, 1.0, 2.0, 2.0, -3.0],
            &[0.0],
            &[-1.0, -1.0, -1.0, -1.0, -1.0],
            &[0.5, 0.0, -0.5, 1.5, 1.5, -1.5, 2.0, 3.0],
        ];
        for differences in table {
            let n = differences.len();
            let rank = |value: f64| {
                let less = differences.iter().filter(|other| other.abs() < value.abs()).count();
                let same = differences.iter().filter(|other| other.abs() == value.abs()).count();
                2 * less + same + 1
            };
            let sum = |positive: &dyn Fn(usize) -> bool| {
                let kept = (0..n).filter(|&i| differences[i] != 0.0 && positive(i));
                kept.map(|i| rank(differences[i])).sum::<usize>()
            };
            let seen = sum(&|i| differences[i] > 0.0);
            let all = (0..1u32 << n).map(|signs| sum(&|i| signs >> i & 1 == 1)).collect::<Vec<_>>();
            let share =
                |keep: &dyn Fn(usize) -> bool| all.iter().filter(|&&sum| keep(sum)).count() as f64 / all.len() as f64;
            let found = SignedRank::new(differences);
            close(found.p_larger, share(&|sum| sum >= seen));
            close(found.p_smaller, share(&|sum| sum <= seen));
        }
    }

    #[test]
    fn normal_approximation_is_close_to_exact() {
        let mut rng = crate::Rng::new(3);
        let logs = (0..EXACT_MAX).map(|_| 0.05 * rng.normal() + 0.004).collect::<Vec<_>>();
        let exact = SignedRank::new(&logs);
        let mut more = logs;
        more.push(1e-9); // One more pair, with the smallest rank.
        let normal = SignedRank::new(&more);
        assert!((exact.p_larger - normal.p_larger).abs() < 2e-3, "{exact:?} {normal:?}");
        let (at, beyond) = (walsh_rank(EXACT_MAX, 0.025) as f64, walsh_rank(EXACT_MAX + 1, 0.025) as f64);
        assert!((beyond / at - 1.0).abs() < 0.01, "{at} {beyond}");
    }

    #[test]
    fn ratios_need_positive_values() {
        assert_eq!(Pairs::new([]), None);
        assert_eq!(Pairs::new([(1.0, 0.0)]), None);
        assert_eq!(Pairs::new([(f64::INFINITY, 1.0)]), None);
        assert_eq!(Pairs::new([(1.0, 1.0); 5]).unwrap().typical(0.95), None);
        close(Pairs::new([(2.0, 3.0)]).unwrap().typical_log().exp(), 1.5);
    }

    #[test]
    fn computes_blocks_needed_for_tests() {
        assert_eq!([1, 3, 12, 66].map(|tests| blocks_needed(tests, 0.05)), [6, 7, 9, 12]);
    }

    proptest! {
        #[test]
        fn test_and_interval_agree(logs in prop::collection::vec(-0.2f64..0.2, 6..40)) {
            let pairs = Pairs::from_logs(logs);
            let ratio = pairs.typical(0.95).unwrap();
            prop_assert!(ratio.low <= ratio.point && ratio.point <= ratio.high);
            // Without ties, the interval contains 1 exactly if the test does not reject it.
            let holds = ratio.low <= 1.0 && 1.0 <= ratio.high;
            prop_assert_eq!(holds, pairs.against(0.0).p_two_sided() > 0.05 , "{:?} {:?}", ratio, pairs.against(0.0));
        }

        #[test]
        fn swapping_the_conditions_mirrors_everything(logs in prop::collection::vec(-0.2f64..0.2, 6..30)) {
            let (ab, ba) = (Pairs::from_logs(logs.clone()), Pairs::from_logs(logs.iter().map(|log| -log).collect()));
            prop_assert!((ab.against(0.0).p_larger - ba.against(0.0).p_smaller).abs() < 1e-12);
            let (ab, ba) = (ab.typical(0.95).unwrap(), ba.typical(0.95).unwrap());
            prop_assert!((ab.low * ba.high - 1.0).abs() < 1e-9 && (ab.point * ba.point - 1.0).abs() < 1e-9);
        }
    }
}
