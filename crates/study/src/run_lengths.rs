//! Histogram buckets in JSON: run lengths, half the size of `[[index, count], ...]`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::{Error as _, SerializeSeq, Serializer};

pub(crate) fn serialize<S: Serializer>(buckets: &[(u32, u64)], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(None)?;
    let mut next = 0;
    for &(index, count) in buckets {
        let index = i64::from(index);
        match next - index {
            0 => {}
            skip @ ..0 => list.serialize_element(&skip)?,
            _ => return Err(S::Error::custom("histogram buckets out of order")),
        }
        list.serialize_element(&count)?;
        next = index + 1;
    }
    list.end()
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u32, u64)>, D::Error> {
    let (mut buckets, mut next) = (Vec::new(), Some(0_u32));
    let too_high = || D::Error::custom("histogram bucket above 2^32 - 1");
    for element in Vec::<Element>::deserialize(from)? {
        match element {
            Element::Count(count) => {
                let index = next.ok_or_else(too_high)?;
                buckets.push((index, count));
                next = index.checked_add(1);
            }
            Element::Skip(skipped) => {
                next = Some(next.and_then(|next| next.checked_add(skipped)).ok_or_else(too_high)?);
            }
        }
    }
    Ok(buckets)
}

enum Element {
    Count(u64),
    Skip(u32),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl Visitor<'_> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a count or a negative number of empty buckets")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Element, E> {
        Ok(Element::Count(count))
    }

    fn visit_i64<E: Error>(self, skip: i64) -> Result<Element, E> {
        let empty = u32::try_from(skip.unsigned_abs());
        empty.map(Element::Skip).map_err(|_| E::custom(format!("{} empty buckets", skip.unsigned_abs())))
    }
}

#[cfg(test)]
mod tests {
    use crate::record::Histogram;

    fn with_buckets(buckets: &str) -> serde_json::Result<Histogram> {
        serde_json::from_str(&format!(
            r#"{{"precision_bits":10,"buckets":{buckets},"count":0,"saturated":0,"min":null,"max":null,"sum":0,"sum_of_squares":0}}"#
        ))
    }

    #[test]
    fn buckets_are_run_lengths_in_json() {
        for (buckets, json) in [
            (vec![], "[]"),
            (vec![(0, 3), (1, 2)], "[3,2]"),
            (vec![(5, 1), (7, 2), (8, 1), (2000, 3)], "[-5,1,-1,2,1,-1991,3]"),
            (vec![(u32::MAX, u64::MAX)], "[-4294967295,18446744073709551615]"),
        ] {
            let stored = Histogram { buckets: buckets.clone(), ..Histogram::default() };
            let text = serde_json::to_string(&stored).unwrap();
            assert!(text.contains(&format!("\"buckets\":{json},")), "{text}");
            assert_eq!(with_buckets(json).unwrap().buckets, buckets);
        }
    }

    #[test]
    fn rejects_malformed_buckets() {
        for (buckets, error) in [
            ("[-4294967295,1,1]", "histogram bucket above 2^32 - 1"),
            ("[-4294967295,-1,1]", "histogram bucket above 2^32 - 1"),
            ("[-4294967296,1]", "4294967296 empty buckets"),
            ("[[1,2]]", "invalid type: sequence"),
            ("[1.5]", "invalid type: floating point"),
            ("{}", "invalid type: map"),
        ] {
            let found = with_buckets(buckets).unwrap_err().to_string();
            assert!(found.contains(error), "{buckets}: {found}");
        }
    }
}
