//! Histogram buckets as a string of run lengths, half the size of `[[index, count], ...]` in JSON.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Bucket counts of a histogram, from bucket 0 up and separated by commas. A positive number is the count of the next
/// bucket; a negative one skips that many empty buckets, as in HdrHistogram's V2 encoding. `-5,1,2` means 1 value in
/// bucket 5 and 2 in bucket 6. [`Buckets::counts`] decodes on demand, since most readers need few histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Buckets(Box<str>);

impl Buckets {
    /// Encodes the index and count of each non-empty bucket, in ascending order.
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

    /// Decodes the index and count of each non-empty bucket. Fails with a message if the string is malformed.
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
            // A branch would be slow, because the kind of the next number is hard to predict.
            counts.push((u32::try_from(next).map_err(|_| "histogram bucket above 2^32 - 1")?, number));
            counts.truncate(counts.len() - usize::from(is_skip));
            next = next.saturating_add(if is_skip { number } else { 1 });
        }
        Ok(counts)
    }

    fn checked(text: String) -> Result<Self, String> {
        let is_misplaced = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b',');
        // A fold compiles to vector instructions; a search does not.
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

#[cfg(test)]
mod tests {
    use super::Buckets;

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
