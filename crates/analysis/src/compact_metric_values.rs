//! Values of a trial by metric, stored compactly because a run can have 100,000 trials.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

/// Values of a trial, and the names of the metrics whose value is a lower bound.
pub(crate) type Values = (MetricValues, BTreeSet<&'static str>);

/// Values of one trial for the metrics of [`study::METRICS`], each in the unit of its metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricValues(Vec<(&'static str, f64)>);

impl MetricValues {
    /// Returns the value of `metric` in the metric's unit; `None` if the trial has no value.
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
    }

    /// Sets the value of `metric`, in the metric's unit.
    pub fn insert(&mut self, metric: &'static str, value: f64) {
        match self.0.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, known)) => *known = value,
            None => self.0.push((metric, value)),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

impl Serialize for MetricValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.iter().copied().collect::<BTreeMap<_, _>>().serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use study::METRICS;

    use super::*;

    #[test]
    fn agrees_with_a_map() {
        let (mut values, mut map) = (MetricValues::default(), BTreeMap::new());
        for step in 0..200 {
            let metric = METRICS[step * 7 % METRICS.len()].name;
            values.insert(metric, step as f64);
            map.insert(metric, step as f64);
            for known in METRICS {
                assert_eq!(values.get(known.name), map.get(known.name).copied());
            }
            assert_eq!(serde_json::to_string(&values).unwrap(), serde_json::to_string(&map).unwrap());
        }
        assert_eq!(values.get("unknown"), None);
    }
}
