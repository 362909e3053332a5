//! Distributions in which only a lower bound of some values is known.

use crate::Histogram;

/// A number that is known exactly or only bounded from below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Value in the unit of the sample.
    pub value: f64,
    /// Whether the true value may be larger by an unknown amount.
    pub at_least: bool,
}

/// Largest relative change of a mean, if its part beyond the last value is doubled, at which the mean counts as known.
const MEAN_SHARE: f64 = 0.005;

/// Product-limit estimate of a distribution from complete and censored values, such as requests without a response when
/// measuring ended (Kaplan & Meier 1958). A value censored at `t` counts as longer than every complete value of `t`.
/// Without censored values, quantiles and mean equal those of [`Histogram`] to the last bit.
#[derive(Clone, Debug)]
pub struct ProductLimit<'a> {
    seen: &'a Histogram,
    /// Complete values with their mass; empty without censored values.
    steps: Vec<Step>,
    beyond: f64,
    len: u64,
    cut_max: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// Value that represents the bucket, as in [`Histogram::quantile`].
    value: f64,
    mass: f64,
    /// Total mass of larger values, from 0 to 1.
    above: f64,
}

impl<'a> ProductLimit<'a> {
    /// Creates the estimate from complete values and from the durations at which other values were censored.
    pub fn new(seen: &'a Histogram, cut: &Histogram) -> Self {
        let len = seen.len().saturating_add(cut.len());
        let mut found = Self { seen, steps: Vec::new(), beyond: 0.0, len, cut_max: cut.max() };
        if cut.is_empty() {
            return found;
        }
        let mut cuts = cut.iter_buckets().peekable();
        let mut at_risk = len;
        // Probability mass per value at risk. It changes only at censored values, so that ranks stay exact.
        let mut weight = 1.0 / len as f64;
        let mut above = 1.0;
        for (low, high, count) in seen.iter_buckets() {
            let mut gone = 0u64;
            while let Some((_, _, more)) = cuts.next_if(|&(cut_low, ..)| cut_low < low) {
                gone = gone.saturating_add(more);
            }
            if gone > 0 {
                // A censored value passes its mass on to longer values (Efron 1967).
                at_risk = at_risk.saturating_sub(gone).max(count);
                weight = above / at_risk as f64;
            }
            at_risk = at_risk.saturating_sub(count);
            above = weight * at_risk as f64;
            found.steps.push(Step { value: seen.value_of(low, high), mass: weight * count as f64, above });
        }
        found.beyond = above;
        found
    }

    /// Quantile `q`: the smallest complete value that at least a share `q` of all values does not exceed. If a share of
    /// more than `1 - q` is beyond the last complete value, the longest value is a lower bound. `None` without values.
    pub fn quantile(&self, q: f64) -> Option<Bound> {
        assert!((0.0..=1.0).contains(&q), "`q` is a fraction, not a percentage: {q}");
        let Some(cut_max) = self.cut_max else {
            return self.seen.quantile(q).map(|value| Bound { value, at_least: false });
        };
        // Allowance for rounding, in ranks, as in `Histogram::quantile`.
        let allowance = 1e-6 / self.len as f64;
        let found = self.steps.get(self.steps.partition_point(|step| step.above > 1.0 - q + allowance));
        let beyond = || Bound { value: cut_max.max(self.seen.max().unwrap_or(0)) as f64, at_least: true };
        Some(found.map_or_else(beyond, |step| Bound { value: step.value, at_least: false }))
    }

    /// Mean of the distribution; `None` for an empty sample. The share beyond the last complete value counts as the
    /// longest value (restricted mean, Irwin 1949). The mean is a lower bound if doubling that part would change it by
    /// more than 0.5 % and by more than a standard error of the complete values' mean.
    pub fn mean(&self) -> Option<Bound> {
        let Some(cut_max) = self.cut_max else {
            return self.seen.mean().map(|value| Bound { value, at_least: false });
        };
        let longest = cut_max.max(self.seen.max().unwrap_or(0)) as f64;
        let told = self.steps.iter().map(|step| step.mass * step.value).sum::<f64>();
        // The exact sum of complete values corrects the rounding of buckets.
        let blurred = self.seen.iter_buckets().zip(&self.steps).map(|((.., count), step)| count as f64 * step.value);
        let blurred = blurred.sum::<f64>();
        let exact = self.seen.mean().unwrap_or(0.0) * self.seen.len() as f64;
        let told = if blurred > 0.0 { told * (exact / blurred) } else { told };
        let rest = self.beyond * longest;
        let value = told + rest;
        // The mean counts as known if the part beyond the last value is small or within the sample's noise.
        let error = self.seen.stddev().unwrap_or(0.0) / (self.seen.len() as f64).sqrt().max(1.0);
        Some(Bound { value, at_least: rest > MEAN_SHARE * value && rest > error })
    }

    /// Longest value, which is a lower bound if it is censored; `None` for an empty sample.
    pub fn max(&self) -> Option<Bound> {
        let seen = self.seen.max();
        match self.cut_max {
            Some(cut) if seen.is_none_or(|seen| cut > seen) => Some(Bound { value: cut as f64, at_least: true }),
            _ => seen.map(|seen| Bound { value: seen as f64, at_least: false }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    fn exactly(value: f64) -> Option<Bound> {
        Some(Bound { value, at_least: false })
    }

    fn at_least(value: f64) -> Option<Bound> {
        Some(Bound { value, at_least: true })
    }

    // The remission times of 21 leukemia patients (Freireich et al. 1963, arm 6-MP). Python, lifelines 0.30:
    // T = [6,6,6,7,10,13,16,22,23, 6,9,10,11,17,19,20,25,32,32,34,35]; E = [1]*9 + [0]*12
    // k = KaplanMeierFitter().fit(T, E); k.survival_function_; k.percentile(0.8), k.percentile(0.5), k.percentile(0.4)
    // lifelines.utils.restricted_mean_survival_time(k, t=35)
    #[test]
    fn matches_lifelines_on_freireich_data() {
        let (seen, cut) = (of(&[6, 6, 6, 7, 10, 13, 16, 22, 23]), of(&[6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]));
        let found = ProductLimit::new(&seen, &cut);
        let expected = [
            (6.0, 0.857143),
            (7.0, 0.806723),
            (10.0, 0.752941),
            (13.0, 0.690196),
            (16.0, 0.627451),
            (22.0, 0.537815),
            (23.0, 0.448179),
        ];
        assert_eq!(found.steps.len(), expected.len());
        for (step, (value, survival)) in found.steps.iter().zip(expected) {
            assert!(step.value == value && (step.above - survival).abs() < 1e-6, "{step:?}");
        }
        assert_eq!(found.quantile(0.2), exactly(10.0), "0.8 survive 7 and not 10");
        assert_eq!(found.quantile(0.5), exactly(23.0));
        assert_eq!(found.quantile(0.6), at_least(35.0), "the end of the last 45 % is unknown");
        let mean = found.mean().unwrap();
        assert!((mean.value - 23.287_395).abs() < 1e-5 && mean.at_least, "{mean:?}");
        assert_eq!(found.max(), at_least(35.0));
    }

    #[test]
    fn ignores_values_censored_before_the_first_complete_one() {
        let seen = of(&[100, 200, 300, 400]);
        let found = ProductLimit::new(&seen, &of(&[1, 2, 50]));
        for (q, value) in [(0.25, 100.0), (0.5, 200.0), (0.75, 300.0), (1.0, 400.0)] {
            assert_eq!(found.quantile(q), exactly(value));
        }
        assert_eq!((found.mean(), found.max(), found.beyond), (exactly(250.0), exactly(400.0), 0.0));
    }

    #[test]
    fn without_complete_values_the_longest_wait_is_a_bound() {
        let seen = Histogram::new();
        let found = ProductLimit::new(&seen, &of(&[5, 70]));
        assert_eq!((found.quantile(0.01), found.mean(), found.max()), (at_least(70.0), at_least(70.0), at_least(70.0)));
        let none = ProductLimit::new(&seen, &seen);
        assert_eq!((none.quantile(0.5), none.mean(), none.max()), (None, None, None));
    }

    #[test]
    fn mean_is_a_bound_only_if_the_rest_matters() {
        let seen = of(&vec![1_000_000; 100_000]);
        let one = |wait: u64| ProductLimit::new(&seen, &of(&[wait])).mean().unwrap();
        assert!(!one(2_000_000).at_least, "2 ms of 100,000 times 1 ms");
        let few = of(&[1_000, 5_000, 9_000, 12_000, 3_000, 7_000, 2_000, 20_000, 4_000, 6_000].repeat(20));
        let longest = ProductLimit::new(&few, &of(&[21_000])).mean().unwrap();
        assert!(!longest.at_least, "a little longer than the longest of 200: {longest:?}");
        assert!(ProductLimit::new(&few, &of(&[21_000; 20])).mean().unwrap().at_least, "a tenth of them");
        assert!(one(4_000_000_000).at_least, "4 s: 40 us of 1 ms, and as much again for each 4 s more");
    }

    // Exponential durations are censored independently, so the estimate matches the true distribution (mean 1 ms).
    #[test]
    fn independent_cuts_do_not_bias() {
        let mut rng = crate::Rng::new(7);
        let (mut seen, mut cut) = (Histogram::new(), Histogram::new());
        for _ in 0..200_000 {
            let (life, end) = (rng.exponential(1e6), rng.exponential(2e6));
            if life <= end { seen.record(life as u64) } else { cut.record(end as u64) }
        }
        let found = ProductLimit::new(&seen, &cut);
        for q in [0.1, 0.5, 0.9, 0.99] {
            let truth = -(1.0f64 - q).ln() * 1e6;
            let value = found.quantile(q).unwrap();
            assert!(!value.at_least && (value.value / truth - 1.0).abs() < 0.03, "{q}: {value:?} of {truth}");
            assert!(seen.quantile(q).unwrap() < 0.75 * truth, "observed values alone would give far too little");
        }
        assert!((found.mean().unwrap().value / 1e6 - 1.0).abs() < 0.02);
    }

    proptest! {
        #[test]
        fn equals_the_histogram_without_censored_values(values in prop::collection::vec(0..10_000_000_000u64, 0..200), q in 0.0..=1.0f64) {
            let seen = of(&values);
            let found = ProductLimit::new(&seen, &Histogram::new());
            prop_assert_eq!(found.quantile(q).map(|bound| bound.value), seen.quantile(q));
            prop_assert_eq!(found.mean().map(|bound| bound.value), seen.mean());
            prop_assert!(found.quantile(q).is_none_or(|bound| !bound.at_least));
        }

        // Values censored at zero do not change the result, but make the code compute it from the steps.
        #[test]
        fn cuts_at_zero_change_no_quantile(values in prop::collection::vec(1..10_000_000_000u64, 1..200), q in 0.0..=1.0f64, n in 1..50usize) {
            let seen = of(&values);
            let cut = of(&vec![0; n]);
            let found = ProductLimit::new(&seen, &cut);
            prop_assert_eq!(found.quantile(q).map(|bound| bound.value), seen.quantile(q));
            let (mean, truth) = (found.mean().unwrap(), seen.mean().unwrap());
            prop_assert!(!mean.at_least && (mean.value / truth - 1.0).abs() < 1e-9, "{} of {}", mean.value, truth);
        }

        #[test]
        fn quantiles_ascend_and_are_at_least_uncorrected_ones(
            seen in prop::collection::vec(0..1_000_000u64, 0..60), cut in prop::collection::vec(0..1_000_000u64, 1..60),
        ) {
            let (seen, cut) = (of(&seen), of(&cut));
            let mut all = seen.clone();
            all.merge(&cut);
            let found = ProductLimit::new(&seen, &cut);
            let mut before = 0.0;
            for step in 0..=100 {
                let q = f64::from(step) / 100.0;
                let value = found.quantile(q).unwrap().value;
                prop_assert!(value >= before, "{} after {} at {}", value, before, q);
                // Values are equal only within a bucket, because each histogram clamps to its own extremes.
                let least = all.quantile(q).unwrap() * (1.0 - 1.0 / 1024.0);
                prop_assert!(value >= least, "censored values are lower bounds");
                before = value;
            }
        }
    }
}
