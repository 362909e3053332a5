//! The latency of a measurement that ended before some requests had a response.

use stats::{Bound, ProductLimit};
use study::record::{Censored, Histogram, Measurement};

use crate::merge_histograms;

/// Latencies of the responses, and waiting times of the requests without a response.
pub struct Latency {
    /// Latencies of responses only.
    pub answered: stats::Histogram,
    waits: stats::Histogram,
}

impl Latency {
    /// Reads the latencies of a measurement; `None` if a stored histogram is invalid.
    pub fn of(measurement: &Measurement) -> Option<Latency> {
        Latency::from_parts(measurement.latency(), measurement.censored.as_deref())
    }

    /// Reads stored histograms of responses and of waiting requests; `None` if one of them is invalid.
    pub fn from_parts(answered: &Histogram, censored: Option<&Censored>) -> Option<Latency> {
        let none = Histogram { precision_bits: answered.precision_bits, ..Histogram::default() };
        let waits = match censored.filter(|censored| !censored.is_empty()) {
            None => merge_histograms::from_record(&none)?,
            Some(Censored { in_flight, unsent, .. }) => {
                let mut waits = merge_histograms::from_record(in_flight)?;
                waits.merge(&merge_histograms::from_record(unsent)?);
                waits
            }
        };
        Some(Latency { answered: merge_histograms::from_record(answered)?, waits })
    }

    /// Estimates quantiles, mean and maximum, and marks the values that are only lower bounds.
    pub fn estimate(&self) -> ProductLimit<'_> {
        ProductLimit::new(&self.answered, &self.waits)
    }

    /// Returns a quantile if enough responses support it. If it is a lower bound, waiting requests count too.
    pub(crate) fn quantile(&self, estimate: &ProductLimit<'_>, q: f64, level: f64) -> Option<Bound> {
        let bound = estimate.quantile(q)?;
        let waits = if bound.at_least { self.waits.len() } else { 0 };
        let known = self.answered.len().saturating_add(waits);
        (known >= stats::order_statistics::samples_needed(q, level)).then_some(bound)
    }
}

const SHOWN: f64 = 0.001;

/// Whether waiting requests change a value by more than 0.1 %, so that an interval from responses does not apply.
pub(crate) fn is_moved(bound: &Bound, answered: Option<f64>) -> bool {
    bound.at_least || answered.is_none_or(|answered| (bound.value - answered).abs() > SHOWN * answered.abs())
}

/// Mean latency, ns; `None` if it is unknown. Uses the exact sum rather than buckets if every request had a response.
pub fn mean(measurement: &Measurement) -> Option<Bound> {
    mean_of(measurement, || Latency::of(measurement)?.estimate().mean())
}

pub(crate) fn mean_of(measurement: &Measurement, estimated: impl FnOnce() -> Option<Bound>) -> Option<Bound> {
    match &measurement.censored {
        Some(censored) if !censored.is_empty() => estimated(),
        _ => measurement.latency().mean().map(|value| Bound { value, at_least: false }),
    }
}
