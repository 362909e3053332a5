//! Laws that delays are drawn from, with their exact figures to hold measurements against.

use crate::random::Rng;
use crate::special;

/// A law of non-negative numbers, in whatever unit its parameters have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Without memory.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Its logarithm is normal.
    Lognormal {
        /// The median.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// One of two values: a hit and a miss.
    Bimodal {
        /// The lower value.
        low: f64,
        /// The higher value.
        high: f64,
        /// Share of the higher one, a fraction.
        high_share: f64,
    },
}

impl Distribution {
    /// Whether the parameters make a law: finite, not negative, `low` not above `high`, a share within 0 and 1.
    pub fn is_valid(&self) -> bool {
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        match *self {
            Distribution::Constant { value } => fine(value),
            Distribution::Exponential { mean } => fine(mean),
            Distribution::Lognormal { median, sigma } => fine(median) && fine(sigma),
            Distribution::Bimodal { low, high, high_share } => {
                fine(low) && fine(high) && low <= high && fine(high_share) && high_share <= 1.0
            }
        }
    }

    /// One value.
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        match *self {
            Distribution::Constant { value } => value,
            Distribution::Exponential { mean } => rng.exponential(mean),
            Distribution::Lognormal { median, sigma } => median * (sigma * rng.normal()).exp(),
            Distribution::Bimodal { low, high, high_share } => {
                if rng.unit_f64() < high_share {
                    high
                } else {
                    low
                }
            }
        }
    }

    /// The exact mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Constant { value } => value,
            Distribution::Exponential { mean } => mean,
            Distribution::Lognormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
            Distribution::Bimodal { low, high, high_share } => low + (high - low) * high_share,
        }
    }

    /// The exact quantile `p`: the smallest value that at least a share `p` of all do not exceed.
    ///
    /// # Panics
    /// When `p` is not a fraction.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "`p` is a fraction, not a percentage: {p}");
        match *self {
            Distribution::Constant { value } => value,
            Distribution::Exponential { mean } => -mean * (-p).ln_1p(),
            Distribution::Lognormal { median, sigma } if sigma > 0.0 => {
                median * (sigma * special::normal_quantile(p)).exp()
            }
            Distribution::Lognormal { median, .. } => median,
            Distribution::Bimodal { low, high, high_share } => {
                if p <= 1.0 - high_share {
                    low
                } else {
                    high
                }
            }
        }
    }

    /// The exact share of values that do not exceed `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let step = |value: f64| if x >= value { 1.0 } else { 0.0 };
        match *self {
            Distribution::Constant { value } => step(value),
            Distribution::Exponential { mean } if mean > 0.0 => -(-x.max(0.0) / mean).exp_m1(),
            Distribution::Exponential { .. } => step(0.0),
            Distribution::Lognormal { median, sigma } if sigma > 0.0 && median > 0.0 => {
                if x <= 0.0 {
                    return 0.0;
                }
                special::normal_cdf((x / median).ln() / sigma)
            }
            Distribution::Lognormal { median, .. } => step(median),
            Distribution::Bimodal { low, high, high_share } => (1.0 - high_share) * step(low) + high_share * step(high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [Distribution; 4] = [
        Distribution::Constant { value: 100.0 },
        Distribution::Exponential { mean: 100.0 },
        Distribution::Lognormal { median: 100.0, sigma: 0.5 },
        Distribution::Bimodal { low: 50.0, high: 1000.0, high_share: 0.05 },
    ];

    // scipy 1.17: st.expon(scale=100) and st.lognorm(s=0.5, scale=100), each .mean(), .ppf(0.99), .cdf(150)
    #[test]
    fn figures_match_scipy() {
        let table = [
            (LAWS[1], 100.0, 460.517_018_598_809_1, 0.776_869_839_851_570_2),
            (LAWS[2], 113.314_845_306_682_63, 320.007_400_794_296_2, 0.791_297_126_615_528_6),
        ];
        for (law, mean, p99, below_150) in table {
            assert!((law.mean() / mean - 1.0).abs() < 1e-12, "{law:?} mean {}", law.mean());
            assert!((law.quantile(0.99) / p99 - 1.0).abs() < 1e-12, "{law:?} p99 {}", law.quantile(0.99));
            assert!((law.cdf(150.0) / below_150 - 1.0).abs() < 1e-12, "{law:?} cdf {}", law.cdf(150.0));
        }
    }

    #[test]
    fn bimodal_by_hand() {
        let law = LAWS[3];
        assert_eq!(law.mean(), 97.5);
        assert_eq!([0.0, 0.5, 0.95, 0.9501, 1.0].map(|p| law.quantile(p)), [50.0, 50.0, 50.0, 1000.0, 1000.0]);
        assert_eq!([49.0, 50.0, 999.0, 1000.0].map(|x| law.cdf(x)), [0.0, 0.95, 0.95, 1.0]);
    }

    #[test]
    fn samples_follow_the_law() {
        for law in LAWS {
            let mut rng = Rng::new(7);
            let n = 40_000;
            let mut values = (0..n).map(|_| law.sample(&mut rng)).collect::<Vec<_>>();
            values.sort_by(f64::total_cmp);
            let mean = values.iter().sum::<f64>() / f64::from(n);
            assert!((mean / law.mean() - 1.0).abs() < 0.045, "{law:?}: mean {mean}");
            for p in [0.1, 0.5, 0.9, 0.99] {
                let x = law.quantile(p);
                let below = values.partition_point(|&value| value <= x) as f64 / f64::from(n);
                // 4 standard errors of a share.
                let allowed = 4.0 * (p * (1.0 - p) / f64::from(n)).sqrt();
                assert!((below - law.cdf(x)).abs() <= allowed, "{law:?}: {below} of {} at p = {p}", law.cdf(x));
            }
        }
    }

    #[test]
    fn quantile_inverts_cdf() {
        for law in &LAWS[1..3] {
            for p in [0.001, 0.3, 0.5, 0.999] {
                assert!((law.cdf(law.quantile(p)) - p).abs() < 1e-12, "{law:?} at {p}");
            }
        }
    }

    #[test]
    fn nonsense_is_not_valid() {
        assert!(LAWS.iter().all(Distribution::is_valid));
        let nonsense = [
            Distribution::Constant { value: -1.0 },
            Distribution::Exponential { mean: f64::NAN },
            Distribution::Lognormal { median: 1.0, sigma: f64::INFINITY },
            Distribution::Bimodal { low: 2.0, high: 1.0, high_share: 0.5 },
            Distribution::Bimodal { low: 1.0, high: 2.0, high_share: 1.5 },
        ];
        assert!(!nonsense.iter().any(Distribution::is_valid));
    }
}
