//! Stored histograms: [`Histogram`] with [`Buckets`], and conversions from and to [`stats::Histogram`].

use std::fmt::Write;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use stats::histogram::Parts;

use crate::record::Histogram;

/// Bucket counts of a histogram, from bucket 0 up and separated by commas: a positive number is the count of the next
/// bucket, a negative one skips that many empty buckets, as HdrHistogram's V2 encoding does. `-5,1,2` has 1 value in
/// bucket 5 and 2 in bucket 6. Most readers need few histograms, so the numbers stay text until [`Buckets::counts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Buckets(Box<str>);

impl Buckets {
    /// Writes `(index, count)` of each non-empty bucket, ascending.
    pub fn new(counts: &[(u32, u64)]) -> Self {
        debug_assert!(counts.is_sorted_by(|one, next| one.0 < next.0), "buckets out of order");
        let (mut text, mut next) = (String::with_capacity(4 * counts.len()), 0);
        for &(index, count) in counts {
            let index = u64::from(index);
            if index > next {
                let _ = write!(text, "-{},", index - next);
            }
            let _ = write!(text, "{count},");
            next = index + 1;
        }
        text.pop();
        Self(text.into_boxed_str())
    }

    /// Reads `(index, count)` of each bucket. Fails with a message if the text is malformed.
    pub fn counts(&self) -> Result<Vec<(u32, u64)>, String> {
        let text = self.0.as_bytes();
        let (mut counts, mut next, mut at) = (Vec::with_capacity(text.len() / 2 + 1), 0_u64, 0);
        while at < text.len() {
            let is_skip = text[at] == b'-';
            at += usize::from(is_skip);
            let (start, mut number) = (at, 0_u64);
            while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
                number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
                at += 1;
            }
            if at == start || text.get(at).is_some_and(|byte| *byte != b',') {
                return Err(Self::misplaced(*text.get(at).unwrap_or(&b'-')));
            }
            if at - start > 19 {
                number = self.0[start..at].parse().map_err(|_| "histogram count above 2^64 - 1")?;
            }
            at += 1;
            // Without a branch, because the kind is hard to predict.
            counts.push((u32::try_from(next).map_err(|_| "histogram bucket above 2^32 - 1")?, number));
            counts.truncate(counts.len() - usize::from(is_skip));
            next = next.saturating_add(if is_skip { number } else { 1 });
        }
        Ok(counts)
    }

    fn checked(text: String) -> Result<Self, String> {
        let is_misplaced = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b',');
        // Unlike a search, a fold uses vector instructions.
        if text.as_bytes().iter().fold(false, |any, byte| any | is_misplaced(byte)) {
            return Err(Self::misplaced(text.bytes().find(is_misplaced).unwrap_or_default()));
        }
        Ok(Self(text.into()))
    }

    fn misplaced(byte: u8) -> String {
        format!("histogram buckets have `{}` in place of an integer", char::from(byte).escape_default())
    }
}

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::checked(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl From<&stats::Histogram> for Histogram {
    /// Lossless except for the sums, which keep 53 bits, as every JSON reader does.
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

    #[test]
    fn buckets_are_run_lengths() {
        for (counts, text) in [
            (vec![], ""),
            (vec![(0, 3), (1, 2)], "3,2"),
            (vec![(5, 1), (7, 2), (8, 1), (2000, 3)], "-5,1,-1,2,1,-1991,3"),
            (vec![(u32::MAX, u64::MAX)], "-4294967295,18446744073709551615"),
        ] {
            let buckets = Buckets::new(&counts);
            assert_eq!(serde_json::to_string(&buckets).unwrap(), format!("\"{text}\""));
            assert_eq!(buckets.counts().unwrap(), counts);
            assert_eq!(serde_json::from_str::<Buckets>(&format!("\"{text}\"")).unwrap(), buckets);
        }
    }

    #[test]
    fn rejects_malformed_buckets() {
        for (json, error) in [
            (r#""-4294967295,1,1""#, "histogram bucket above 2^32 - 1"),
            (r#""-4294967296,1""#, "histogram bucket above 2^32 - 1"),
            (r#""-18446744073709551616,1""#, "histogram count above 2^64 - 1"),
            (r#""1.5""#, "histogram buckets have `.`"),
            (r#""1, 2""#, "histogram buckets have ` `"),
            (r#""1,,2""#, "histogram buckets have `,`"),
            (r#""1,2-3""#, "histogram buckets have `-`"),
            (r#""1,-""#, "histogram buckets have `-`"),
            ("[1,2]", "expected a string"),
        ] {
            let found = serde_json::from_str::<Buckets>(json).map_err(|error| error.to_string());
            let found = found.and_then(|buckets| buckets.counts()).unwrap_err();
            assert!(found.contains(error), "{json}: {found}");
        }
    }
}
