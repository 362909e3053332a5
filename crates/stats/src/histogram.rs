//! Counts of durations, in buckets whose width grows with the value.

use crate::interval::Estimate;
use crate::order_statistics;

/// Largest value with a bucket, one hour in ns. Larger values count as saturated.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A log-linear histogram of nanoseconds, after Tene's HDR Histogram (<https://hdrhistogram.org>).
///
/// Every octave from `2^k` to `2^(k+1)` is divided into `2^precision` buckets of equal width; below `2^(precision+1)`,
/// each integer has its own bucket. A bucket is thus never wider than `2^-precision` of its values, and its midpoint is
/// off by at most half of that. Count, minimum, maximum, sum and sum of squares are exact. [`Histogram::new`] allocates
/// all buckets, so recording never allocates. A histogram read from a file lists its used buckets until it grows.
#[derive(Clone, Debug)]
pub struct Histogram {
    precision: u8,
    /// Counts of all buckets; empty if `listed` has them.
    counts: Box<[u64]>,
    /// Index and count of each used bucket, ascending; empty if `counts` has them.
    listed: Vec<(u32, u64)>,
    len: u64,
    saturated: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_sq: u128,
}

/// Content of a [`Histogram`] for file formats. `sum` and `sum_sq` exceed the precision of JSON numbers, so write them
/// as decimal strings, or as floats, whose rounding [`Histogram::from_parts`] tolerates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Binary logarithm of the number of buckets per octave.
    pub precision: u8,
    /// Index and count of each non-empty bucket, ascending.
    pub counts: Vec<(u32, u64)>,
    /// Number of values above [`HIGHEST_NS`], which have no bucket.
    pub saturated: u64,
    /// Smallest value in ns; 0 if empty.
    pub min: u64,
    /// Largest value in ns; 0 if empty.
    pub max: u64,
    /// Sum of all values in ns.
    pub sum: u128,
    /// Sum of the squares of all values in ns².
    pub sum_sq: u128,
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.to_parts() == other.to_parts()
    }
}

impl Eq for Histogram {}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// Precision of three significant digits: buckets are at most 1/1024 of their value wide and take 270 KiB.
    pub const PRECISION: u8 = 10;
    /// Precision of window histograms: buckets are at most 1/64 of their value wide and take 19 KiB.
    pub const WINDOW_PRECISION: u8 = 6;
    /// Precisions that [`Histogram::with_precision`] supports.
    pub const PRECISIONS: std::ops::RangeInclusive<u8> = 1..=14;

    /// Creates an empty histogram with three significant digits ([`Histogram::PRECISION`]).
    pub fn new() -> Self {
        Histogram::with_precision(Histogram::PRECISION)
    }

    /// Creates an empty histogram with `2^bits` buckets per octave. Panics if [`Histogram::PRECISIONS`] lacks `bits`.
    pub fn with_precision(bits: u8) -> Self {
        assert!(Histogram::PRECISIONS.contains(&bits), "no histogram with precision {bits}");
        Histogram {
            precision: bits,
            counts: vec![0; index_of(HIGHEST_NS, bits) + 1].into_boxed_slice(),
            listed: Vec::new(),
            len: 0,
            saturated: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_sq: 0,
        }
    }

    /// Counts one value in ns; a value above [`HIGHEST_NS`] counts as saturated.
    pub fn record(&mut self, ns: u64) {
        if ns > HIGHEST_NS {
            self.saturated += 1;
        } else {
            let index = index_of(ns, self.precision);
            match self.counts.get_mut(index) {
                Some(count) => *count += 1,
                None => {
                    self.widen();
                    self.counts[index] += 1;
                }
            }
        }
        self.len += 1;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
        // Only durations of centuries reach the limit. The standard deviation is then a lower bound.
        self.sum_sq = self.sum_sq.saturating_add(u128::from(ns) * u128::from(ns));
    }

    /// Allocates all buckets of a histogram that was read from a file.
    #[cold]
    fn widen(&mut self) {
        self.counts = vec![0; index_of(HIGHEST_NS, self.precision) + 1].into_boxed_slice();
        std::mem::take(&mut self.listed).into_iter().for_each(|(index, count)| self.counts[index as usize] = count);
    }

    fn used(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        let index = |ns: u64| index_of(ns.min(HIGHEST_NS), self.precision);
        let first = index(self.min);
        let counts = self.counts.get(first..=index(self.max)).unwrap_or_default();
        let listed = self.listed.iter().map(|&(index, count)| (index as usize, count));
        let all = (first..first + counts.len()).zip(counts.iter().copied());
        listed.chain(all.filter(|(_, count)| *count > 0))
    }

    /// Adds the values of `other`. The result has the lower of the two precisions; fine buckets lie inside coarse ones.
    pub fn merge(&mut self, other: &Histogram) {
        if other.precision < self.precision {
            let fine = std::mem::replace(self, Histogram::with_precision(other.precision));
            self.merge(&fine);
        }
        if self.counts.is_empty() {
            self.widen();
        }
        for (index, count) in other.used() {
            let index = index_of(low_of(index, other.precision), self.precision);
            self.counts[index] = self.counts[index].saturating_add(count);
        }
        // Only forged counts in a file reach the limit.
        self.len = self.len.saturating_add(other.len);
        self.saturated = self.saturated.saturating_add(other.saturated);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_sq = self.sum_sq.saturating_add(other.sum_sq);
    }

    /// Returns a copy that stores only the used buckets, to save memory.
    pub fn listed(&self) -> Histogram {
        let mut listed = self.used().map(|(index, count)| (index as u32, count)).collect::<Vec<_>>();
        listed.shrink_to_fit();
        Histogram { counts: Box::default(), listed, ..*self }
    }

    /// Adds the counts to wider `classes`. Each of the ascending `bounds`, in ns, is the inclusive end of a class. A
    /// bucket that contains a bound counts as below it. Panics unless there is exactly one more class than bounds.
    pub fn classify(&self, bounds: &[u64], classes: &mut [u64]) {
        assert_eq!(classes.len(), bounds.len() + 1, "one class for each bound, and one for the rest");
        let mut class = 0;
        for (index, count) in self.used() {
            let low = low_of(index, self.precision);
            while bounds.get(class).is_some_and(|bound| *bound < low) {
                class += 1;
            }
            classes[class] += count;
        }
        classes[bounds.len()] += self.saturated;
    }

    /// Removes all values and keeps the allocated memory.
    pub fn reset(&mut self) {
        self.counts.fill(0);
        self.listed.clear();
        (self.len, self.saturated) = (0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        (self.sum, self.sum_sq) = (0, 0);
    }

    /// Number of values, including saturated ones.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Smallest value in ns, exact; `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.len > 0).then_some(self.min)
    }

    /// Largest value in ns, exact; `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.len > 0).then_some(self.max)
    }

    /// Sum of all values in ns, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Arithmetic mean in ns, exact up to rounding; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.len > 0).then(|| self.sum as f64 / self.len as f64)
    }

    /// Sample standard deviation in ns (divisor `n - 1`), exact up to rounding. `None` for fewer than two values.
    pub fn stddev(&self) -> Option<f64> {
        if self.len < 2 {
            return None;
        }
        // n·Σx² − (Σx)² is exact in integers. If it overflows, floats suffice unless spread / mean is below 1e-7.
        let n = u128::from(self.len);
        let centred = match (self.sum_sq.checked_mul(n), self.sum.checked_mul(self.sum)) {
            (Some(scaled), Some(square)) => scaled.saturating_sub(square) as f64,
            _ => (self.sum_sq as f64 * n as f64 - (self.sum as f64).powi(2)).max(0.0),
        };
        Some((centred / (n as f64 * (n - 1) as f64)).sqrt())
    }

    /// Quantile `q` in ns: the value at rank `⌈q·n⌉`, not interpolated (Hyndman & Fan 1996, definition 1). Returns the
    /// midpoint of the value's bucket within the exact extremes, or the maximum for a saturated value. `None` if empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        assert!((0.0..=1.0).contains(&q), "`q` is a fraction, not a percentage: {q}");
        // 0.07 · 100 is 7.000000000000001 in binary, whose rank would be 8 without the allowance.
        let rank = (q * self.len as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
        self.value_at_rank(rank.max(1))
    }

    /// Returns the distribution-free interval of quantile `q`, in ns, from [`order_statistics::ranks`]. `effective_n`
    /// is the number of independent values that the histogram is worth: [`Histogram::len`], or less if neighbors are
    /// correlated. Fails with a message if so few values cannot bound the quantile on both sides.
    pub fn quantile_interval(&self, q: f64, level: f64, effective_n: u64) -> Result<Estimate, String> {
        let effective_n = effective_n.min(self.len);
        let (low, high) = order_statistics::ranks(effective_n, q, level)?;
        let value = |rank: u64| {
            let scaled = (u128::from(rank) * u128::from(self.len)).div_ceil(u128::from(effective_n));
            self.value_at_rank(scaled as u64).expect("ranks exist only in a sample that is not empty")
        };
        let point = self.quantile(q).expect("as above");
        Ok(Estimate { point, low: value(low), high: value(high), level, n: effective_n })
    }

    /// Iterates over the used buckets, ascending, as `(lowest value, highest value, count)` in ns, both inclusive.
    /// Saturated values come last, as one bucket from above [`HIGHEST_NS`] to the maximum.
    pub fn iter_buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let bucket = move |(index, count)| {
            let (low, high) = self.bounds(index);
            (low, high, count)
        };
        let saturated = (self.saturated > 0).then_some((HIGHEST_NS + 1, self.max, self.saturated));
        self.used().map(bucket).chain(saturated)
    }

    fn bounds(&self, index: usize) -> (u64, u64) {
        (low_of(index, self.precision), (low_of(index + 1, self.precision) - 1).min(HIGHEST_NS))
    }

    /// Number of values at or below `ns`, or in the bucket of `ns`.
    pub fn count_at_or_below(&self, ns: u64) -> u64 {
        if ns > HIGHEST_NS {
            return self.len;
        }
        let last = index_of(ns, self.precision);
        self.used().take_while(|(index, _)| *index <= last).fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    fn value_at_rank(&self, rank: u64) -> Option<f64> {
        let above = self.len.saturating_sub(rank);
        let Some(above) = above.checked_sub(self.saturated) else { return Some(self.max as f64) };
        let mut left = rank.min(above + 1);
        let has_it = |(_, count): &(usize, u64)| {
            let is_here = left <= *count;
            left = left.saturating_sub(*count);
            is_here
        };
        let (index, _) = if rank <= above { self.used().find(has_it) } else { self.used().rev().find(has_it) }?;
        let (low, high) = self.bounds(index);
        Some(self.value_of(low, high))
    }

    /// Value in ns that represents a bucket (see [`Histogram::quantile`]).
    pub(crate) fn value_of(&self, low: u64, high: u64) -> f64 {
        if low > HIGHEST_NS {
            return self.max as f64;
        }
        let midpoint = low as f64 + (high - low) as f64 / 2.0;
        midpoint.clamp(self.min as f64, self.max as f64)
    }

    /// Exports the content of the histogram for a file format.
    pub fn to_parts(&self) -> Parts {
        Parts {
            precision: self.precision,
            counts: self.used().map(|(index, count)| (index as u32, count)).collect(),
            saturated: self.saturated,
            min: self.min().unwrap_or(0),
            max: self.max,
            sum: self.sum,
            sum_sq: self.sum_sq,
        }
    }

    /// Imports untrusted content. Fails with a message if recorded values cannot produce these numbers.
    pub fn from_parts(parts: Parts) -> Result<Histogram, String> {
        if !Histogram::PRECISIONS.contains(&parts.precision) {
            let (least, most) = Histogram::PRECISIONS.into_inner();
            return Err(format!("histogram precision {} is outside {least} to {most}", parts.precision));
        }
        let end = index_of(HIGHEST_NS, parts.precision);
        let mut len = parts.saturated;
        let mut next = 0;
        let mut lows = [0.0; 2];
        for &(index, count) in &parts.counts {
            if index < next || index as usize > end {
                return Err(format!("histogram bucket {index} is out of order or out of range"));
            }
            if count == 0 {
                return Err(format!("histogram bucket {index} is listed with count 0"));
            }
            next = index + 1;
            len = len.checked_add(count).ok_or("histogram counts add up to more than 2^64")?;
            let low = low_of(index as usize, parts.precision) as f64;
            let all = low * count as f64;
            lows = [lows[0] + all, lows[1] + all * low];
        }
        let bucket_of = |ns: u64| (ns <= HIGHEST_NS).then(|| index_of(ns, parts.precision) as u32);
        let first = parts.counts.first().map(|(index, _)| *index);
        // Saturated values have no bucket.
        let last = parts.counts.last().map(|(index, _)| *index).filter(|_| parts.saturated == 0);
        let is_in_range = match len {
            0 => (parts.min, parts.max, parts.sum, parts.sum_sq) == (0, 0, 0, 0),
            _ => parts.min <= parts.max && (bucket_of(parts.min), bucket_of(parts.max)) == (first, last),
        };
        if !is_in_range {
            return Err("histogram minimum or maximum contradicts its buckets".to_owned());
        }
        let histogram = Histogram {
            precision: parts.precision,
            counts: Box::default(),
            listed: parts.counts,
            len,
            saturated: parts.saturated,
            min: if len > 0 { parts.min } else { u64::MAX },
            max: parts.max,
            sum: parts.sum,
            sum_sq: parts.sum_sq,
        };
        if !histogram.has_possible_sums(lows) {
            return Err("histogram sum or sum of squares contradicts its buckets".to_owned());
        }
        Ok(histogram)
    }

    /// Whether the stored sums are possible, given the sum and the sum of squares of the buckets' lowest values.
    fn has_possible_sums(&self, [sum, squares]: [f64; 2]) -> bool {
        let (count, low, high) = (self.saturated as f64, (HIGHEST_NS + 1).max(self.min) as f64, self.max as f64);
        // The highest value of a bucket exceeds its lowest by at most this factor.
        let width = 1.0 + (-f64::from(self.precision)).exp2();
        // Sums that were stored as floats are rounded, as are the sums of this function.
        let is_within = |sum: u128, low: f64, high: f64| {
            low.min(u128::MAX as f64) * (1.0 - 1e-9) <= sum as f64 && sum as f64 <= high * (1.0 + 1e-9)
        };
        is_within(self.sum, sum + low * count, sum * width + high * count)
            && is_within(self.sum_sq, squares + low * low * count, squares * width * width + high * high * count)
    }
}

/// Index of a value's bucket: its highest `precision + 1` bits, shifted up by one octave for each dropped bit.
fn index_of(ns: u64, precision: u8) -> usize {
    let top_bit = 63 - (ns | 1 << precision).leading_zeros();
    let dropped = top_bit - u32::from(precision);
    ((u64::from(dropped) << precision) + (ns >> dropped)) as usize
}

/// Lowest value of a bucket in ns; the inverse of [`index_of`].
fn low_of(index: usize, precision: u8) -> u64 {
    let index = index as u64;
    let dropped = (index >> precision).saturating_sub(1);
    (index - (dropped << precision)) << dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn empty_has_no_numbers() {
        let empty = Histogram::new();
        assert_eq!((empty.len(), empty.min(), empty.max()), (0, None, None));
        assert_eq!((empty.mean(), empty.stddev(), empty.quantile(0.5)), (None, None, None));
        assert_eq!(empty.iter_buckets().count(), 0);
        assert!(empty.quantile_interval(0.5, 0.95, 100).is_err());
    }

    #[test]
    fn zero_is_a_value() {
        let histogram = of(&[0, 0, 0]);
        assert_eq!((histogram.len(), histogram.min(), histogram.quantile(0.9)), (3, Some(0), Some(0.0)));
    }

    #[test]
    fn read_histograms_grow_when_values_are_added() {
        let (low, high) = ([5, 900, 901], [7, 40_000_000, HIGHEST_NS, HIGHEST_NS + 1]);
        let read = |values: &[u64]| Histogram::from_parts(of(values).to_parts()).unwrap();
        assert_eq!((read(&low).counts.len(), read(&low).listed.len()), (0, 3));
        for (one, other) in [(&low[..], &high[..]), (&high, &low), (&low, &low)] {
            let all = of(&[one, other].concat());
            let (mut merged, mut recorded) = (read(one), read(one));
            merged.merge(&read(other));
            other.iter().for_each(|ns| recorded.record(*ns));
            assert_eq!((&merged, &recorded), (&all, &all));
            assert_eq!(merged.quantile(0.6), all.quantile(0.6));
            assert_eq!(
                [4, 5, 900, 50_000_000].map(|ns| merged.count_at_or_below(ns)),
                [4, 5, 900, 50_000_000].map(|ns| all.count_at_or_below(ns))
            );
        }
        let mut coarse = Histogram::with_precision(Histogram::WINDOW_PRECISION);
        coarse.merge(&read(&high));
        let mut fine = read(&low);
        fine.merge(&coarse);
        assert_eq!((fine.precision, fine.len()), (Histogram::WINDOW_PRECISION, 7));
    }

    #[test]
    fn saturated_values_are_counted_and_bound_the_quantile() {
        let histogram = of(&[10, HIGHEST_NS, HIGHEST_NS + 1, 2 * HIGHEST_NS]);
        assert_eq!((histogram.len(), histogram.saturated), (4, 2));
        assert_eq!(histogram.max(), Some(2 * HIGHEST_NS));
        assert_eq!(histogram.quantile(1.0), Some(2.0 * HIGHEST_NS as f64));
        assert!(histogram.quantile(0.5).unwrap() <= HIGHEST_NS as f64);
        assert_eq!(histogram.iter_buckets().last(), Some((HIGHEST_NS + 1, 2 * HIGHEST_NS, 2)));
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let mut histogram = of(&[u64::MAX; 3]);
        histogram.merge(&histogram.clone());
        assert_eq!((histogram.len(), histogram.max()), (6, Some(u64::MAX)));
        assert!(histogram.stddev().unwrap().is_finite());
    }

    // numpy 2: a = [55800, 53500, 57600, 75800, 76300, 1000000]; a.mean(), a.std(ddof=1)
    #[test]
    fn classes_are_wider_buckets() {
        let mut histogram = Histogram::new();
        [0, 999, 1_000, 1_001, 5_000, 5_000_000, u64::MAX].into_iter().for_each(|ns| histogram.record(ns));
        let mut classes = [10, 0, 0, 0];
        histogram.classify(&[1_000, 2_000, 5_000], &mut classes);
        assert_eq!(classes, [13, 1, 1, 2]);
        Histogram::new().classify(&[], &mut [0]);
    }

    #[test]
    fn moments_match_numpy() {
        let histogram = of(&[55_800, 53_500, 57_600, 75_800, 76_300, 1_000_000]);
        assert_eq!(histogram.mean(), Some(219_833.333_333_333_34));
        assert!((histogram.stddev().unwrap() - 382_335.144_430_467_8).abs() < 1e-6);
    }

    #[test]
    fn small_spread_around_a_large_mean_keeps_its_digits() {
        let histogram = of(&[1_000_000_000_001, 1_000_000_000_002, 1_000_000_000_003]);
        assert_eq!(histogram.stddev(), Some(1.0));
    }

    #[test]
    fn rank_of_a_decimal_fraction_is_not_rounded_up() {
        let histogram = of(&(1..=100).collect::<Vec<_>>());
        for percent in 1..=100u64 {
            assert_eq!(histogram.quantile(percent as f64 / 100.0), Some(percent as f64));
        }
    }

    #[test]
    fn ranks_are_the_same_from_both_ends() {
        let values = [1, 1, 2, 3, 3, 3, 9, 9, HIGHEST_NS + 1, 2 * HIGHEST_NS];
        let expected = [1, 1, 2, 3, 3, 3, 9, 9, 2 * HIGHEST_NS, 2 * HIGHEST_NS].map(|ns| Some(ns as f64));
        let (dense, listed) = (of(&values), of(&values).listed());
        for (rank, value) in (1..).zip(expected) {
            assert_eq!((dense.value_at_rank(rank), listed.value_at_rank(rank)), (value, value), "rank {rank}");
        }
    }

    #[test]
    fn accepts_counts_above_half_of_the_largest() {
        let mut histogram = of(&[3]);
        for _ in 0..63 {
            histogram.merge(&histogram.clone());
        }
        assert_eq!(Histogram::from_parts(histogram.to_parts()), Ok(histogram));
    }

    #[test]
    fn reset_equals_new() {
        let mut histogram = of(&[1, 1_000_000, u64::MAX]);
        histogram.reset();
        assert_eq!(histogram, Histogram::new());
    }

    #[test]
    fn interval_maps_ranks_of_the_effective_sample() {
        let histogram = of(&(1..=1000).collect::<Vec<_>>());
        let all = histogram.quantile_interval(0.5, 0.95, 1000).unwrap();
        // scipy.stats.binom.ppf(0.025, 1000, .5) = 469; by symmetry: ranks 469 and 532
        assert_eq!((all.low, all.point, all.high), (469.0, 500.0, 532.0));
        let fewer = histogram.quantile_interval(0.5, 0.95, 100).unwrap();
        assert_eq!((fewer.low, fewer.high, fewer.n), (400.0, 610.0, 100));
        assert_eq!(histogram.quantile_interval(0.99, 0.95, 367).unwrap_err(), "not enough samples: 367 of 368");
    }

    #[test]
    fn parts_of_any_origin_are_checked() {
        let good = of(&[5, 5000, 5_000_000]).to_parts();
        let check = |change: &dyn Fn(&mut Parts), expected: &str| {
            let mut parts = good.clone();
            change(&mut parts);
            let error = Histogram::from_parts(parts).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(&|p| p.precision = 0, "precision 0 is outside");
        check(&|p| p.precision = 40, "precision 40 is outside");
        check(&|p| p.counts[1].0 = u32::MAX, "bucket 4294967295 is out of");
        check(&|p| p.counts[1].0 = 5, "bucket 5 is out of");
        check(&|p| p.counts[0].1 = 0, "bucket 5 is listed");
        check(&|p| p.counts[0].1 = u64::MAX, "more than 2^64");
        check(&|p| p.min = 6, "minimum or maximum");
        check(&|p| p.max = u64::MAX, "minimum or maximum");
        check(&|p| p.saturated = 1, "minimum or maximum");
        check(&|p| p.counts.clear(), "minimum or maximum");
        check(&|p| p.sum = 0, "sum or sum of squares");
        check(&|p| p.sum_sq = u128::MAX, "sum or sum of squares");
    }

    #[test]
    fn parts_may_have_been_floats() {
        let mut parts = of(&[1_234_567_890_123; 7]).to_parts();
        parts.sum = parts.sum as f64 as u128;
        parts.sum_sq = parts.sum_sq as f64 as u128;
        assert!(Histogram::from_parts(parts).is_ok());
    }

    fn durations() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![0..5000u64, 0..100_000_000u64, 0..2 * HIGHEST_NS, any::<u64>()];
        prop::collection::vec(value, 1..200)
    }

    proptest! {
        #[test]
        fn buckets_tile_the_range(ns in 0..=HIGHEST_NS, bits in Histogram::PRECISIONS) {
            let index = index_of(ns, bits);
            let (low, next) = (low_of(index, bits), low_of(index + 1, bits));
            prop_assert!(low <= ns && ns < next);
            prop_assert!(next - low <= 1 + (low >> bits), "wider than the precision allows");
            prop_assert_eq!(index_of(low, bits), index);
            prop_assert_eq!(index_of(next, bits), index + 1);
        }

        #[test]
        fn quantile_is_within_half_a_bucket_of_the_sample(mut values in durations(), q in 0.0..=1.0f64) {
            values.retain(|&ns| ns <= HIGHEST_NS);
            prop_assume!(!values.is_empty());
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            prop_assert!((histogram.quantile(q).unwrap() - exact).abs() <= exact / 2048.0);
        }

        #[test]
        fn merging_is_recording_together(a in durations(), b in durations(), bits in 4..=10u8) {
            let mut both = Histogram::with_precision(bits);
            a.iter().chain(&b).for_each(|&ns| both.record(ns));
            let mut coarse = Histogram::with_precision(bits);
            b.iter().for_each(|&ns| coarse.record(ns));
            let mut fine = of(&a);
            fine.merge(&coarse);
            prop_assert_eq!(&fine, &both);
            coarse.merge(&of(&a));
            prop_assert_eq!(&coarse, &both);
        }

        #[test]
        fn parts_round_trip(values in durations()) {
            let histogram = of(&values);
            prop_assert_eq!(&histogram.listed(), &histogram);
            prop_assert_eq!(Histogram::from_parts(histogram.to_parts()), Ok(histogram));
        }

        #[test]
        fn hostile_parts_never_panic(
            precision: u8,
            counts in prop::collection::vec((0..50_000u32, any::<u64>()), 0..6),
            numbers: (u64, u64, u64, u128, u128),
        ) {
            let (saturated, min, max, sum, sum_sq) = numbers;
            if let Ok(histogram) =
                Histogram::from_parts(Parts { precision, counts, saturated, min, max, sum, sum_sq })
            {
                histogram.quantile(0.5);
                histogram.stddev();
                let mut twice = histogram.clone();
                twice.merge(&histogram);
                let _ = twice.quantile_interval(0.5, 0.95, twice.len());
            }
        }
    }
}
