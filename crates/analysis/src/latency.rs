//! The latency of a measurement, with what is known of the requests that had no answer when it ended.

use stats::{Bound, ProductLimit};
use study::record::{Censored, Histogram, Measurement};

use crate::histogram;

/// What was answered, and how long the rest had waited.
pub struct Latency {
    answered: stats::Histogram,
    waits: stats::Histogram,
}

impl Latency {
    /// Of one measurement; `None` where a histogram cannot be.
    pub fn of(measurement: &Measurement) -> Option<Latency> {
        Latency::from_parts(measurement.latency(), measurement.censored.as_deref())
    }

    /// From what is stored.
    pub fn from_parts(answered: &Histogram, censored: Option<&Censored>) -> Option<Latency> {
        let waits = match censored.filter(|censored| !censored.is_empty()) {
            None => {
                histogram::from_record(&Histogram { precision_bits: answered.precision_bits, ..Histogram::default() })?
            }
            Some(Censored { in_flight, unsent, .. }) => {
                let mut waits = histogram::from_record(in_flight)?;
                waits.merge(&histogram::from_record(unsent)?);
                waits
            }
        };
        Some(Latency { answered: histogram::from_record(answered)?, waits })
    }

    /// Its distribution: quantiles, mean and maximum, each with whether it is only the least that it can be.
    pub fn estimate(&self) -> ProductLimit<'_> {
        ProductLimit::new(&self.answered, &self.waits)
    }

    /// What was answered alone.
    pub fn answered(&self) -> &stats::Histogram {
        &self.answered
    }

    /// Whether as many values as a quantile needs stand behind it: answers, or where it is only known to be at least something, waits too.
    pub(crate) fn is_enough(&self, bound: &Bound, needed: u64) -> bool {
        let there =
            if bound.at_least { self.answered.len().saturating_add(self.waits.len()) } else { self.answered.len() };
        there >= needed
    }
}

/// A change smaller than this share does not show.
const SHOWN: f64 = 0.001;

/// Whether requests without an answer change a number, so that an interval around the answered ones alone is none of it.
pub(crate) fn is_moved(bound: &Bound, answered: Option<f64>) -> bool {
    bound.at_least || answered.is_none_or(|answered| (bound.value - answered).abs() > SHOWN * answered.abs())
}

/// Mean latency, ns: from the exact sum, not from buckets, where nothing was left without an answer.
pub fn mean(measurement: &Measurement) -> Option<Bound> {
    if measurement.censored.as_deref().is_none_or(Censored::is_empty) {
        let latency = measurement.latency();
        return (latency.count > 0).then(|| Bound { value: latency.sum / latency.count as f64, at_least: false });
    }
    Latency::of(measurement)?.estimate().mean()
}
