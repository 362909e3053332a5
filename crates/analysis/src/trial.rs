//! The position of a trial in the plan and its values: all that most of the analysis uses, so that
//! histograms and windows need not be kept.

use std::collections::{BTreeMap, BTreeSet};

use study::Metric;
use study::record::{Agent, IdlePolicy, Record};

use crate::findings::Clock;
use crate::value;

/// Values by metric, and the names of those that are lower bounds.
pub(crate) type Values = (BTreeMap<&'static str, f64>, BTreeSet<&'static str>);

/// A trial, with its record in memory or not.
#[derive(Clone, Copy)]
pub(crate) struct Trial<'a> {
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) elapsed_ns: u64,
    pub(crate) is_measured: bool,
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Record(&'a Record),
    Kept(&'a Kept),
}

impl Trial<'_> {
    /// For a record they are computed on each call.
    pub(crate) fn values(&self, level: f64) -> Values {
        match self.source {
            Source::Record(record) => value::values_and_bounds(record, level),
            Source::Kept(kept) => kept.values(),
        }
    }
}

impl<'a> From<&'a Record> for Trial<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            point: record.point,
            block: record.block,
            elapsed_ns: record.elapsed_ns,
            is_measured: record.measurement().is_some(),
            source: Source::Record(record),
        }
    }
}

/// The part of a record that is kept after building the row of its design point.
pub(crate) struct Kept {
    pub(crate) point: usize,
    pub(crate) block: u32,
    pub(crate) order: u32,
    pub(crate) idle: IdlePolicy,
    pub(crate) is_measured: bool,
    pub(crate) clock: Option<Clock>,
    pub(crate) hit_ratio: Option<f64>,
    pub(crate) agents: Vec<Agent>,
    elapsed_ns: u64,
    /// Index in [`study::METRICS`], whether the value is a lower bound, and the value.
    values: Box<[(u8, bool, f64)]>,
}

impl Kept {
    pub(crate) fn new(record: &Record, (values, at_least): &Values) -> Self {
        let place = |name: &str| study::METRICS.iter().position(|metric| metric.name == name);
        let value = |(name, value): (&&str, &f64)| Some((place(name)? as u8, at_least.contains(name), *value));
        let measurement = record.measurement();
        Self {
            point: record.point,
            block: record.block,
            order: record.order,
            idle: record.idle,
            is_measured: measurement.is_some(),
            clock: measurement.map(value::clock),
            hit_ratio: measurement.and_then(|measurement| measurement.cache.as_ref()?.counts.hit_ratio()),
            agents: record.agents.clone(),
            elapsed_ns: record.elapsed_ns,
            values: values.iter().filter_map(value).collect(),
        }
    }

    pub(crate) fn trial(&self) -> Trial<'_> {
        let Self { point, block, elapsed_ns, is_measured, .. } = *self;
        Trial { point, block, elapsed_ns, is_measured, source: Source::Kept(self) }
    }

    fn values(&self) -> Values {
        let named = |place: u8| study::METRICS.get(usize::from(place)).map(|metric: &Metric| metric.name);
        let values = self.values.iter().filter_map(|(place, _, value)| Some((named(*place)?, *value)));
        let at_least = self.values.iter().filter(|(_, at_least, _)| *at_least);
        (values.collect(), at_least.filter_map(|(place, ..)| named(*place)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn kept_trials_have_the_values_of_their_records() {
        for record in example::volley().1 {
            let kept = Kept::new(&record, &value::values_and_bounds(&record, 0.95));
            assert_eq!(kept.trial().values(0.95), Trial::from(&record).values(0.95));
            assert_eq!(kept.trial().is_measured, record.measurement().is_some());
        }
    }
}
