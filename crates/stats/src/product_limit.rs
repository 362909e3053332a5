//! What is known of a quantity of which some values are only known to be at least something.

use crate::Histogram;

/// A number, or the least that it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// In the unit of the sample.
    pub value: f64,
    /// It may be more: the sample cannot say how much.
    pub at_least: bool,
}

/// A mean is read as "at least" where it would grow by more than this share if what is beyond the last value took as long again.
const MEAN_SHARE: f64 = 0.005;

/// The product-limit estimate of a distribution from values that were seen to their end and values that were cut off, as requests
/// are that have no answer when measuring ends. Source: Kaplan & Meier 1958, *Nonparametric Estimation from Incomplete Observations*.
///
/// What was cut off at `t` counts as longer than anything seen at `t`. With nothing cut off it is the distribution of what was seen,
/// and its quantiles and mean are those of [`Histogram`], to the last bit.
#[derive(Clone, Debug)]
pub struct ProductLimit<'a> {
    seen: &'a Histogram,
    /// Empty where nothing was cut off.
    steps: Vec<Step>,
    /// Of all, the share that is beyond what can be told.
    beyond: f64,
    /// Values, seen and cut off.
    len: u64,
    /// The longest that was cut off.
    cut_max: Option<u64>,
}

/// Where the distribution has mass.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// As [`Histogram::quantile`] reads the bucket.
    value: f64,
    /// Its own mass.
    mass: f64,
    /// The mass above it.
    above: f64,
}

impl<'a> ProductLimit<'a> {
    /// The estimate from what was seen to its end and from how long the rest had lasted when it was cut off.
    pub fn new(seen: &'a Histogram, cut: &Histogram) -> Self {
        let len = seen.len().saturating_add(cut.len());
        let mut found = Self { seen, steps: Vec::new(), beyond: 0.0, len, cut_max: cut.max() };
        if cut.is_empty() {
            return found;
        }
        let mut cuts = cut.iter_buckets().peekable();
        let mut at_risk = len;
        // The share of each of those; it changes only where some are cut off, so that ranks stay exact.
        let mut weight = 1.0 / len as f64;
        let mut above = 1.0;
        for (low, high, count) in seen.iter_buckets() {
            let mut gone = 0u64;
            while let Some((_, _, more)) = cuts.next_if(|&(cut_low, ..)| cut_low < low) {
                gone = gone.saturating_add(more);
            }
            if gone > 0 {
                // What was cut off leaves its share to those that lasted longer (Efron 1967).
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

    /// Values, those that were cut off among them.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The share of all that lasts longer than what can be told, a fraction.
    pub fn beyond(&self) -> f64 {
        self.beyond
    }

    /// Quantile `q`: the smallest value seen that at least the share `q` does not exceed. Where the share beyond the last value seen is
    /// larger than `1 - q`, all that is known is that the quantile is at least the longest that was cut off.
    ///
    /// `None` for an empty sample.
    ///
    /// # Panics
    /// When `q` is not a fraction.
    pub fn quantile(&self, q: f64) -> Option<Bound> {
        assert!((0.0..=1.0).contains(&q), "`q` is a fraction, not a percentage: {q}");
        let Some(cut_max) = self.cut_max else {
            return self.seen.quantile(q).map(|value| Bound { value, at_least: false });
        };
        // Ranks in a sample of this size, with the allowance of `Histogram::quantile` and for the sums of this one.
        let allowance = 1e-6 / self.len as f64;
        let found = self.steps.iter().find(|step| step.above <= 1.0 - q + allowance);
        let beyond = || Bound { value: cut_max.max(self.seen.max().unwrap_or(0)) as f64, at_least: true };
        Some(found.map_or_else(beyond, |step| Bound { value: step.value, at_least: false }))
    }

    /// The mean. Where a share lasts longer than can be told, it is counted as long as the longest of all (the restricted mean, Irwin
    /// 1949), and the mean is "at least" that where as long again would change it by more than 0.5 % and by more than a standard error of the
    /// mean of what was seen.
    ///
    /// `None` for an empty sample.
    pub fn mean(&self) -> Option<Bound> {
        let Some(cut_max) = self.cut_max else {
            return self.seen.mean().map(|value| Bound { value, at_least: false });
        };
        let longest = cut_max.max(self.seen.max().unwrap_or(0)) as f64;
        let told = self.steps.iter().map(|step| step.mass * step.value).sum::<f64>();
        // Buckets blur; the exact sum of what was seen takes that out again.
        let blurred = self.seen.iter_buckets().zip(&self.steps).map(|((.., count), step)| count as f64 * step.value);
        let blurred = blurred.sum::<f64>();
        let exact = self.seen.mean().unwrap_or(0.0) * self.seen.len() as f64;
        let told = if blurred > 0.0 { told * (exact / blurred) } else { told };
        let rest = self.beyond * longest;
        let value = told + rest;
        // What is within the noise of the sample itself needs no telling.
        let error = self.seen.stddev().unwrap_or(0.0) / (self.seen.len() as f64).sqrt().max(1.0);
        Some(Bound { value, at_least: rest > MEAN_SHARE * value && rest > error })
    }

    /// The longest of all, at least where it was cut off.
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

    // The remission times of 21 leukaemia patients (Freireich et al. 1963, arm 6-MP). Python, lifelines 0.30:
    //   T = [6,6,6,7,10,13,16,22,23, 6,9,10,11,17,19,20,25,32,32,34,35]; E = [1]*9 + [0]*12
    //   k = KaplanMeierFitter().fit(T, E); k.survival_function_; k.percentile(0.8), k.percentile(0.5), k.percentile(0.4)
    //   lifelines.utils.restricted_mean_survival_time(k, t=35)
    #[test]
    fn the_textbook_s_patients_match_lifelines() {
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
        assert_eq!(found.quantile(0.6), at_least(35.0), "nobody knows when the last 45 % end");
        let mean = found.mean().unwrap();
        assert!((mean.value - 23.287_395).abs() < 1e-5 && mean.at_least, "{mean:?}");
        assert_eq!(found.max(), at_least(35.0));
    }

    #[test]
    fn cut_off_before_anything_was_seen_says_nothing() {
        let seen = of(&[100, 200, 300, 400]);
        let found = ProductLimit::new(&seen, &of(&[1, 2, 50]));
        for (q, value) in [(0.25, 100.0), (0.5, 200.0), (0.75, 300.0), (1.0, 400.0)] {
            assert_eq!(found.quantile(q), exactly(value));
        }
        assert_eq!((found.mean(), found.max(), found.beyond()), (exactly(250.0), exactly(400.0), 0.0));
    }

    #[test]
    fn nothing_seen_is_at_least_the_longest_wait() {
        let seen = Histogram::new();
        let found = ProductLimit::new(&seen, &of(&[5, 70]));
        assert_eq!((found.quantile(0.01), found.mean(), found.max()), (at_least(70.0), at_least(70.0), at_least(70.0)));
        let none = ProductLimit::new(&seen, &seen);
        assert_eq!((none.quantile(0.5), none.mean(), none.max()), (None, None, None));
    }

    #[test]
    fn a_mean_is_at_least_only_where_the_rest_could_matter() {
        let seen = of(&vec![1_000_000; 100_000]);
        let one = |wait: u64| ProductLimit::new(&seen, &of(&[wait])).mean().unwrap();
        assert!(!one(2_000_000).at_least, "2 ms of 100,000 times 1 ms");
        let few = of(&[1_000, 5_000, 9_000, 12_000, 3_000, 7_000, 2_000, 20_000, 4_000, 6_000].repeat(20));
        let longest = ProductLimit::new(&few, &of(&[21_000])).mean().unwrap();
        assert!(!longest.at_least, "a little longer than the longest of 200: {longest:?}");
        assert!(ProductLimit::new(&few, &of(&[21_000; 20])).mean().unwrap().at_least, "a tenth of them");
        assert!(one(4_000_000_000).at_least, "4 s: 40 us of 1 ms, and as much again for each 4 s more");
    }

    // Exponential lives of mean 1 ms, cut off at times that do not depend on them: the estimate is the law's own.
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
            assert!(seen.quantile(q).unwrap() < 0.75 * truth, "of what was seen alone it would be far too little");
        }
        assert!((found.mean().unwrap().value / 1e6 - 1.0).abs() < 0.02);
    }

    proptest! {
        #[test]
        fn with_nothing_cut_off_it_is_the_histogram(values in prop::collection::vec(0..10_000_000_000u64, 0..200), q in 0.0..=1.0f64) {
            let seen = of(&values);
            let found = ProductLimit::new(&seen, &Histogram::new());
            prop_assert_eq!(found.quantile(q).map(|bound| bound.value), seen.quantile(q));
            prop_assert_eq!(found.mean().map(|bound| bound.value), seen.mean());
            prop_assert!(found.quantile(q).is_none_or(|bound| !bound.at_least));
        }

        // Cut off at nothing: it must not matter, but goes through the steps.
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
        fn quantiles_ascend_and_lie_above_those_of_all_as_they_are(
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
                // Within a bucket: each is kept within the extremes of its own histogram.
                let least = all.quantile(q).unwrap() * (1.0 - 1.0 / 1024.0);
                prop_assert!(value >= least, "what was cut off lasts at least as long as it did");
                before = value;
            }
        }
    }
}
