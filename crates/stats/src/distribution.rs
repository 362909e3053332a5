//! Distributions of delays and sizes, with exact quantiles and shares to compare samples with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::Rng;
use crate::special_functions;

/// A distribution in the unit of its parameters, which is bytes in a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// A single value.
    Constant {
        /// Value of every draw.
        #[serde(rename = "bytes")]
        value: f64,
    },
    /// Exponential distribution, which is memoryless.
    Exponential {
        /// Mean of the values, 1/λ.
        mean: f64,
    },
    /// Lognormal distribution: the logarithm of a value is normal.
    Lognormal {
        /// Median of the values, e^μ.
        median: f64,
        /// Standard deviation of the natural logarithm, σ.
        sigma: f64,
    },
    /// One of two values, such as the delays of a hit and a miss.
    Bimodal {
        /// The lower of the two values.
        low: f64,
        /// The higher of the two values.
        high: f64,
        /// Fraction of values that equal `high`.
        high_share: f64,
    },
    /// All values between two bounds, equally likely.
    Uniform {
        /// Lowest possible value.
        low: f64,
        /// Highest possible value.
        high: f64,
    },
    /// Gamma distribution; with shape 1, exponential with mean `scale`.
    Gamma {
        /// Shape α, without a unit.
        shape: f64,
        /// Scale θ, in the unit of the values: the mean is shape times scale.
        scale: f64,
    },
    /// Generalized extreme value distribution, for the largest of many values. Source: Jenkinson 1955. A positive shape
    /// gives a heavy upper tail, as for key sizes in Atikoglu et al. 2012; scipy's `genextreme` has the opposite sign.
    Gev {
        /// Location μ, in the unit of the values.
        location: f64,
        /// Scale σ, in the unit of the values.
        scale: f64,
        /// Shape ξ, without a unit.
        shape: f64,
    },
    /// Generalized Pareto distribution, for values beyond a threshold. Source: Pickands 1975.
    Pareto {
        /// Location μ, which is the threshold and the lowest value.
        location: f64,
        /// Scale σ, in the unit of the values.
        scale: f64,
        /// Shape ξ, without a unit. A positive shape means a heavy tail; 0 means an exponential tail.
        shape: f64,
    },
}

fn stretched(k: f64, t: f64) -> f64 {
    if k == 0.0 { t } else { (k * t).exp_m1() / k }
}

/// Returns ln(1 + k·z) / k, the inverse of [`stretched`]: z if k is 0, and infinite beyond the end of the support.
fn unstretched(k: f64, z: f64) -> f64 {
    if k == 0.0 {
        z
    } else if 1.0 + k * z <= 0.0 {
        if k > 0.0 { f64::NEG_INFINITY } else { f64::INFINITY }
    } else {
        (k * z).ln_1p() / k
    }
}

impl Distribution {
    /// Checks that all parameters are finite, divisors are positive, `low` is at most `high`, and shares are fractions.
    /// Only `location`, and the shape next to it, may be negative. Fails with the violated requirement.
    pub fn check(&self) -> Result<(), &'static str> {
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        let (is_valid, requirement) = match *self {
            Self::Constant { value } => (fine(value), "`bytes` must be 0 or more"),
            Self::Exponential { mean } => (fine(mean), "`mean` must be 0 or more"),
            Self::Lognormal { median, sigma } => {
                (fine(median) && fine(sigma), "`median` and `sigma` must be 0 or more")
            }
            Self::Bimodal { low, high, high_share } => (
                fine(low) && fine(high) && low <= high && fine(high_share) && high_share <= 1.0,
                "`low` must be 0 or more and not above `high`, `high_share` must be 0 to 1",
            ),
            Self::Uniform { low, high } => {
                (fine(low) && fine(high) && low <= high, "`low` must be 0 or more and not above `high`")
            }
            Self::Gamma { shape, scale } => {
                (fine(shape) && shape > 0.0 && fine(scale) && scale > 0.0, "`shape` and `scale` must be above 0")
            }
            Self::Gev { location, scale, shape } | Self::Pareto { location, scale, shape } => (
                location.is_finite() && shape.is_finite() && fine(scale) && scale > 0.0,
                "`scale` must be above 0, `location` and `shape` must be finite",
            ),
        };
        if is_valid { Ok(()) } else { Err(requirement) }
    }

    /// Exact mean, in the unit of the parameters; infinite if the upper tail is too heavy.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Exponential { mean } => mean,
            Self::Lognormal { median, sigma } => median * (0.5 * sigma * sigma).exp(),
            Self::Bimodal { low, high, high_share } => low + (high - low) * high_share,
            Self::Uniform { low, high } => 0.5 * (low + high),
            Self::Gamma { shape, scale } => shape * scale,
            Self::Gev { shape, .. } | Self::Pareto { shape, .. } if shape >= 1.0 => f64::INFINITY,
            // The constant of Euler and Mascheroni.
            Self::Gev { location, scale, shape: 0.0 } => location + scale * 0.577_215_664_901_532_9,
            Self::Gev { location, scale, shape } => {
                location + scale * (special_functions::ln_gamma(1.0 - shape).exp() - 1.0) / shape
            }
            Self::Pareto { location, scale, shape } => location + scale / (1.0 - shape),
        }
    }

    /// Draws one value, in the unit of the parameters.
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Exponential { mean } => rng.exponential(mean),
            Self::Lognormal { median, sigma } => median * (sigma * rng.normal()).exp(),
            Self::Bimodal { low, high, high_share } => [low, high][usize::from(rng.unit_f64() < high_share)],
            Self::Uniform { low, high } => low + (high - low) * rng.unit_f64(),
            _ => self.quantile(rng.open_f64()),
        }
    }

    /// Exact quantile `p`: the smallest value that at least a fraction `p` of all values does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "`p` is a fraction, not a percentage: {p}");
        match *self {
            Self::Constant { value } => value,
            Self::Exponential { mean } => -mean * (-p).ln_1p(),
            Self::Lognormal { median, sigma } if sigma > 0.0 => {
                median * (sigma * special_functions::normal_quantile(p)).exp()
            }
            Self::Lognormal { median, .. } => median,
            Self::Bimodal { low, high, high_share } => [low, high][usize::from(p > 1.0 - high_share)],
            Self::Uniform { low, high } => low + (high - low) * p,
            Self::Gamma { shape, scale } => scale * special_functions::gamma_quantile(shape, p),
            Self::Gev { location, scale, shape } => location + scale * stretched(shape, -(-p.ln()).ln()),
            Self::Pareto { location, scale, shape } => location + scale * stretched(shape, -(-p).ln_1p()),
        }
    }

    /// Exact fraction of values up to and including `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        let step = |value: f64| if x >= value { 1.0 } else { 0.0 };
        match *self {
            Self::Constant { value } => step(value),
            Self::Exponential { mean } if mean > 0.0 => -(-x.max(0.0) / mean).exp_m1(),
            Self::Exponential { .. } => step(0.0),
            Self::Lognormal { median, sigma } if sigma > 0.0 && median > 0.0 && x > 0.0 => {
                special_functions::normal_cdf((x / median).ln() / sigma)
            }
            Self::Lognormal { median, .. } => step(median),
            Self::Bimodal { low, high, high_share } => (1.0 - high_share) * step(low) + high_share * step(high),
            Self::Uniform { low, high } if high > low => ((x - low) / (high - low)).clamp(0.0, 1.0),
            Self::Uniform { low, .. } => step(low),
            Self::Gamma { shape, scale } => special_functions::incomplete_gamma(shape, x.max(0.0) / scale).0,
            Self::Gev { location, scale, shape } => (-(-unstretched(shape, (x - location) / scale)).exp()).exp(),
            Self::Pareto { location, scale, shape } => {
                -(-unstretched(shape, ((x - location) / scale).max(0.0))).exp_m1()
            }
        }
    }

    /// Exact fraction of values above `x`, precise even if it is small.
    pub fn upper(&self, x: f64) -> f64 {
        match *self {
            Self::Exponential { mean } if mean > 0.0 => (-x.max(0.0) / mean).exp(),
            Self::Gamma { shape, scale } => special_functions::incomplete_gamma(shape, x.max(0.0) / scale).1,
            Self::Gev { location, scale, shape } => -(-(-unstretched(shape, (x - location) / scale)).exp()).exp_m1(),
            Self::Pareto { location, scale, shape } => (-unstretched(shape, ((x - location) / scale).max(0.0))).exp(),
            _ => 1.0 - self.cdf(x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [Distribution; 15] = [
        Distribution::Constant { value: 100.0 },
        Distribution::Exponential { mean: 100.0 },
        Distribution::Lognormal { median: 100.0, sigma: 0.5 },
        Distribution::Bimodal { low: 50.0, high: 1000.0, high_share: 0.05 },
        Distribution::Uniform { low: 5.0, high: 20.0 },
        Distribution::Gamma { shape: 4.0, scale: 7.0 },
        Distribution::Gamma { shape: 1.0, scale: 200.0 },
        Distribution::Gamma { shape: 0.3, scale: 50.0 },
        Distribution::Gamma { shape: 1e5, scale: 2.0 },
        Distribution::Gev { location: 30.7984, scale: 8.20449, shape: 0.078688 },
        Distribution::Gev { location: 10.0, scale: 3.0, shape: 0.0 },
        Distribution::Gev { location: 30.0, scale: 3.0, shape: -0.2 },
        Distribution::Pareto { location: 15.0, scale: 214.476, shape: 0.348238 },
        Distribution::Pareto { location: 5.0, scale: 20.0, shape: 0.0 },
        Distribution::Pareto { location: 5.0, scale: 20.0, shape: -0.25 },
    ];

    #[test]
    fn means_are_integrals_of_quantiles() {
        for law in LAWS {
            // With equal steps of the cube root of 1 - p, few parts are enough for heavy tails.
            let parts = 10_000;
            let roots = (0..parts).map(|part| (f64::from(part) + 0.5) / f64::from(parts));
            let sum = roots.map(|root| 3.0 * root.powi(2) * law.quantile(1.0 - root.powi(3))).sum::<f64>();
            let (mean, expected) = (law.mean(), sum / f64::from(parts));
            assert!((mean / expected - 1.0).abs() < 1e-3, "{law:?}: {mean}, expected {expected}");
        }
        assert_eq!(Distribution::Pareto { location: 0.0, scale: 1.0, shape: 1.0 }.mean(), f64::INFINITY);
    }

    // scipy 1.17, each .ppf(0.5), .ppf(0.99), .ppf(0.001), .cdf(x): st.uniform(5, 15), st.gamma(shape,
    // scale=scale), st.genextreme(-shape, loc=location, scale=scale), st.genpareto(shape, loc=location, scale=scale)
    #[test]
    fn laws_of_sizes_match_scipy() {
        let table = [
            (4, 12.5, 19.85, 5.015, 9.0, 0.266_666_666_666_666_66),
            (5, 25.704_425_241_956_28, 70.315_822_603_821_32, 2.999_866_895_398_961, 30.0, 0.620_271_971_268_641_5),
            (6, 138.629_436_111_989_1, 921.034_037_197_618, 0.200_100_066_716_706_8, 30.0, 0.139_292_023_574_942_2),
            (
                7,
                3.656_556_793_347_599_3,
                131.970_457_853_526_63,
                3.486_349_548_391_672e-9,
                1.0,
                0.342_997_515_856_987_9,
            ),
            (
                8,
                199_999.333_333_728_4,
                201_474.252_193_565_66,
                198_051.263_781_001_85,
                199_000.0,
                0.056_741_823_212_792_26,
            ),
            (9, 33.849_233_407_535_11, 76.275_644_974_953_9, 16.088_857_577_302_704, 40.0, 0.710_792_759_906_155_4),
            (
                10,
                11.099_538_761_744_993,
                23.800_447_680_329_736,
                4.202_065_798_251_803_5,
                12.0,
                0.598_447_115_855_072_5,
            ),
            (11, 31.060_206_148_025_92, 39.022_392_790_205_69, 22.922_054_967_765_22, 31.0, 0.492_507_496_725_677_1),
            (12, 183.140_766_237_262_24, 2_460.923_012_421_118, 15.214_620_695_612_71, 300.0, 0.664_493_167_948_817_4),
            (13, 18.862_943_611_198_908, 97.103_403_719_761_8, 5.020_010_006_671_67, 30.0, 0.713_495_203_139_809_9),
            (14, 17.728_286_779_702_735, 59.701_778_718_654_96, 5.020_007_504_378_01, 30.0, 0.776_596_069_335_937_5),
        ];
        for (index, p50, p99, p001, x, below) in table {
            let law = LAWS[index];
            let found = [law.quantile(0.5), law.quantile(0.99), law.quantile(0.001), law.cdf(x)];
            for (found, expected) in found.into_iter().zip([p50, p99, p001, below]) {
                assert!((found / expected - 1.0).abs() < 1e-9, "{law:?}: {found:?}, expected {expected:?}");
            }
            assert!((law.upper(x) + law.cdf(x) - 1.0).abs() < 1e-12, "{law:?}");
        }
    }

    // In the model of Facebook's ETC pool, key sizes have p50 33.8, p90 51, p99 76 and p99.9 106 bytes.
    #[test]
    fn keys_of_etc_keep_their_distribution() {
        let keys = LAWS[9];
        let found = [keys.quantile(0.5), keys.quantile(0.9), keys.quantile(0.99), keys.quantile(0.999)];
        assert_eq!(found.map(|x| format!("{x:.1}")), ["33.8", "51.0", "76.3", "106.1"]);
        assert_eq!(format!("{:.1e}", keys.upper(250.0)), "5.6e-7");
    }

    // scipy 1.17: st.expon(scale=100) and st.lognorm(s=0.5, scale=100), each .ppf(0.99), .cdf(150)
    #[test]
    fn quantiles_match_scipy() {
        let table = [
            (LAWS[1], 460.517_018_598_809_1, 0.776_869_839_851_570_2),
            (LAWS[2], 320.007_400_794_296_2, 0.791_297_126_615_528_6),
        ];
        for (law, p99, below_150) in table {
            assert!((law.quantile(0.99) / p99 - 1.0).abs() < 1e-12, "{law:?} p99 {}", law.quantile(0.99));
            assert!((law.cdf(150.0) / below_150 - 1.0).abs() < 1e-12, "{law:?} cdf {}", law.cdf(150.0));
        }
    }

    #[test]
    fn bimodal_matches_hand_computed_values() {
        let law = LAWS[3];
        assert_eq!([0.0, 0.5, 0.95, 0.9501, 1.0].map(|p| law.quantile(p)), [50.0, 50.0, 50.0, 1000.0, 1000.0]);
        assert_eq!([49.0, 50.0, 999.0, 1000.0].map(|x| law.cdf(x)), [0.0, 0.95, 0.95, 1.0]);
    }

    #[test]
    fn samples_match_the_distribution() {
        let means = [
            100.0,
            100.0,
            113.314_845,
            97.5,
            12.5,
            28.0,
            200.0,
            15.0,
            200_000.0,
            36.223_050_048_673_75,
            11.731_646_994_704_6,
            31.227_468_864_003_59,
            344.071_041_269_665_95,
            25.0,
            21.0,
        ];
        for (law, expected) in LAWS.into_iter().zip(means) {
            let mut rng = Rng::new(7);
            let n = 40_000;
            let mut values = (0..n).map(|_| law.sample(&mut rng)).collect::<Vec<_>>();
            values.sort_by(f64::total_cmp);
            let mean = values.iter().sum::<f64>() / f64::from(n);
            assert!((mean / expected - 1.0).abs() < 0.045, "{law:?}: mean {mean}");
            for p in [0.1, 0.5, 0.9, 0.99] {
                let x = law.quantile(p);
                let below = values.partition_point(|&value| value <= x) as f64 / f64::from(n);
                // The allowance is 4 standard errors of a share.
                let allowed = 4.0 * (p * (1.0 - p) / f64::from(n)).sqrt();
                assert!((below - law.cdf(x)).abs() <= allowed, "{law:?}: {below} of {} at p = {p}", law.cdf(x));
            }
        }
    }

    #[test]
    fn quantile_inverts_cdf() {
        for law in
            LAWS.iter().filter(|law| !matches!(law, Distribution::Constant { .. } | Distribution::Bimodal { .. }))
        {
            for p in [0.001, 0.3, 0.5, 0.999] {
                assert!((law.cdf(law.quantile(p)) - p).abs() < 1e-10, "{law:?} at {p}");
            }
        }
    }

    #[test]
    fn rejects_invalid_parameters() {
        assert!(LAWS.iter().all(|law| law.check().is_ok()));
        let nonsense = [
            Distribution::Constant { value: -1.0 },
            Distribution::Exponential { mean: f64::NAN },
            Distribution::Lognormal { median: 1.0, sigma: f64::INFINITY },
            Distribution::Bimodal { low: 2.0, high: 1.0, high_share: 0.5 },
            Distribution::Bimodal { low: 1.0, high: 2.0, high_share: 1.5 },
            Distribution::Uniform { low: 2.0, high: 1.0 },
            Distribution::Gamma { shape: 0.0, scale: 1.0 },
            Distribution::Gamma { shape: 1.0, scale: -1.0 },
            Distribution::Gev { location: f64::NAN, scale: 1.0, shape: 0.0 },
            Distribution::Pareto { location: 0.0, scale: 0.0, shape: 0.1 },
        ];
        assert!(!nonsense.iter().any(|law| law.check().is_ok()));
    }
}
