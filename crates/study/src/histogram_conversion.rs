//! Converts between the stored [`Histogram`] and [`stats::Histogram`].

use stats::histogram::Parts;

use crate::buckets_as_text::Buckets;
use crate::record::Histogram;

impl From<&stats::Histogram> for Histogram {
    /// Converts without loss, except that the sums keep 53 bits, the precision of JSON numbers.
    fn from(histogram: &stats::Histogram) -> Self {
        let parts = histogram.to_parts();
        Histogram {
            precision_bits: parts.precision,
            buckets: Buckets::new(&parts.counts),
            count: histogram.len(),
            saturated: parts.saturated,
            min: histogram.min(),
            max: histogram.max(),
            sum: parts.sum as f64,
            sum_of_squares: parts.sum_sq as f64,
        }
    }
}

impl TryFrom<&Histogram> for stats::Histogram {
    type Error = String;

    fn try_from(stored: &Histogram) -> Result<Self, String> {
        let Histogram { count, min, max, .. } = *stored;
        if (min.is_some(), max.is_some()) != (count > 0, count > 0) {
            return Err(format!("histogram with {count} values has min {min:?} and max {max:?}"));
        }
        for (name, value) in [("sum", stored.sum), ("sum_of_squares", stored.sum_of_squares)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(format!("histogram `{name}` is {value}"));
            }
        }
        let parts = Parts {
            precision: stored.precision_bits,
            counts: stored.buckets.counts()?,
            saturated: stored.saturated,
            min: min.unwrap_or(0),
            max: max.unwrap_or(0),
            sum: stored.sum as u128,
            sum_sq: stored.sum_of_squares as u128,
        };
        let histogram = stats::Histogram::from_parts(parts)?;
        let held = histogram.len();
        if held != count {
            return Err(format!("histogram count is {count}, but its buckets and saturated values hold {held}"));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recorded(values: &[u64], precision: u8) -> stats::Histogram {
        let mut histogram = stats::Histogram::with_precision(precision);
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![0u64..3_000, 0u64..10_000_000, 0u64..=stats::histogram::HIGHEST_NS, any::<u64>()];
        prop::collection::vec(value, 0..60)
    }

    proptest! {
        #[test]
        fn survives_storing_and_reading(values in values(), precision in 1u8..=14) {
            let original = recorded(&values, precision);
            let stored = Histogram::from(&original);
            let read = stats::Histogram::try_from(&stored).unwrap();
            prop_assert_eq!(Histogram::from(&read), stored);
            let (mut parts, mut other) = (original.to_parts(), read.to_parts());
            prop_assert!((parts.sum as f64 - other.sum as f64).abs() <= parts.sum as f64 * f64::EPSILON);
            (parts.sum, parts.sum_sq, other.sum, other.sum_sq) = (0, 0, 0, 0);
            prop_assert_eq!(parts, other);
        }

        #[test]
        fn survives_json(values in values()) {
            let stored = Histogram::from(&recorded(&values, 10));
            let read = serde_json::from_str::<Histogram>(&serde_json::to_string(&stored).unwrap()).unwrap();
            prop_assert_eq!(read, stored);
        }

        #[test]
        fn rejects_random_input_without_panic(
            precision_bits: u8,
            buckets in prop::collection::btree_map(any::<u32>(), any::<u64>(), 0..5),
            saturated: u64, min: Option<u64>, max: Option<u64>, sum: f64, sum_of_squares: f64,
        ) {
            let count = buckets.values().fold(saturated, |sum, count| sum.wrapping_add(*count));
            let buckets = Buckets::new(&buckets.into_iter().collect::<Vec<_>>());
            let stored = Histogram { precision_bits, buckets, count, saturated, min, max, sum, sum_of_squares };
            let _ = stats::Histogram::try_from(&stored);
        }
    }

    #[test]
    fn accepts_sums_that_floats_round() {
        let mut histogram = recorded(&[1_500], 10);
        for _ in 0..53 {
            let same = histogram.clone();
            histogram.merge(&same);
        }
        histogram.record(1_501);
        let stored = Histogram::from(&histogram);
        let read = stats::Histogram::try_from(&stored).unwrap();
        assert_eq!(Histogram::from(&read), stored);
    }

    #[test]
    fn rejects_contradictory_histograms() {
        let good = Histogram::from(&recorded(&[5, 7, 7_000_000], 10));
        let refused = |change: fn(&mut Histogram)| {
            let mut stored = good.clone();
            change(&mut stored);
            stats::Histogram::try_from(&stored).unwrap_err()
        };
        assert_eq!(
            refused(|stored| stored.count = 4),
            "histogram count is 4, but its buckets and saturated values \
                                                        hold 3"
        );
        assert_eq!(refused(|stored| stored.sum = -1.0), "histogram `sum` is -1");
        assert_eq!(refused(|stored| stored.sum_of_squares = f64::NAN), "histogram `sum_of_squares` is NaN");
        assert_eq!(refused(|stored| stored.sum *= 1.1), "histogram sum or sum of squares contradicts its buckets");
        assert_eq!(refused(|stored| stored.min = None), "histogram with 3 values has min None and max Some(7000000)");
        assert_eq!(refused(|stored| stored.precision_bits = 40), "histogram precision 40 is outside 1 to 14");
        assert_eq!(
            refused(|stored| stored.buckets = Buckets::new(&[(u32::MAX, 3)])),
            "histogram bucket 4294967295 is out of order or out of range"
        );
    }
}
