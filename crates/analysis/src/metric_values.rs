//! Values of a trial by metric in a few bytes, because a run can have 100,000 trials.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use serde::{Serialize, Serializer};
use study::METRICS;

/// A set of metrics of [`study::METRICS`], one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricSet(u64);

const _: () = assert!(METRICS.len() <= 64);

fn bit(metric: &str) -> u64 {
    METRICS.iter().position(|known| known.name == metric).map_or(0, |index| 1 << index)
}

impl MetricSet {
    /// Whether the set has this metric.
    pub fn contains(self, metric: &str) -> bool {
        self.0 & bit(metric) != 0
    }

    /// Whether the set has no metric.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Names in the order of [`study::METRICS`].
    pub fn iter(self) -> impl Iterator<Item = &'static str> + Clone {
        METRICS.iter().enumerate().filter(move |(index, _)| self.0 >> index & 1 == 1).map(|(_, metric)| metric.name)
    }

    pub(crate) fn insert(&mut self, metric: &str) {
        self.0 |= bit(metric);
    }
}

impl Serialize for MetricSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeSet<_>>().serialize(to)
    }
}

/// Values of a trial, and which of them are lower bounds.
pub(crate) type Values = (MetricValues, MetricSet);

/// Values by metric of [`study::METRICS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricValues {
    known: MetricSet,
    /// In the order of [`study::METRICS`].
    values: Vec<f64>,
}

impl MetricValues {
    /// Returns the value of a metric.
    pub fn get(&self, metric: &str) -> Option<&f64> {
        self.known.contains(metric).then(|| &self.values[self.place(bit(metric))])
    }

    /// Whether a metric has a value.
    pub fn contains_key(&self, metric: &str) -> bool {
        self.known.contains(metric)
    }

    /// Sets the value of a metric. Ignores unknown metrics.
    pub fn insert(&mut self, metric: &str, value: f64) {
        let bit = bit(metric);
        let place = self.place(bit);
        if self.known.contains(metric) {
            self.values[place] = value;
        } else if bit != 0 {
            self.known.0 |= bit;
            self.values.insert(place, value);
        }
    }

    #[cfg(test)]
    pub(crate) fn metrics(&self) -> MetricSet {
        self.known
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
    }

    fn place(&self, bit: u64) -> usize {
        (self.known.0 & bit.wrapping_sub(1)).count_ones() as usize
    }
}

impl Index<&str> for MetricValues {
    type Output = f64;

    fn index(&self, metric: &str) -> &f64 {
        self.get(metric).unwrap_or_else(|| panic!("no value of {metric}"))
    }
}

impl Serialize for MetricValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.known.iter().zip(&self.values).collect::<BTreeMap<_, _>>().serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_map() {
        let (mut values, mut map) = (MetricValues::default(), BTreeMap::new());
        for step in 0..200 {
            let metric = METRICS[step * 7 % METRICS.len()].name;
            values.insert(metric, step as f64);
            map.insert(metric, step as f64);
            for known in METRICS {
                assert_eq!(values.get(known.name), map.get(known.name));
            }
            assert_eq!(serde_json::to_string(&values).unwrap(), serde_json::to_string(&map).unwrap());
        }
        values.insert("unknown", 1.0);
        assert_eq!((values.get("unknown"), values.known.contains("unknown")), (None, false));
    }
}
