use schemars::JsonSchema;
use serde::Serialize;
use study::record::Histogram;

use crate::histogram;

/// Durations of something other than requests, ns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpreadNs {
    /// Number of durations.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile; `null` for fewer than 100 durations.
    pub p99: Option<f64>,
    /// Maximum, exact.
    pub max: Option<u64>,
}

/// A quantile, unless there are so few values that it is the maximum.
pub(crate) fn known_quantile(histogram: &stats::Histogram, q: f64) -> Option<f64> {
    histogram.quantile(q).filter(|_| (1.0 - q) * histogram.len() as f64 >= 1.0 - 1e-9)
}

pub(crate) fn spread(stored: &Histogram) -> SpreadNs {
    let read = histogram::from_record(stored);
    let quantile = |q: f64| known_quantile(read.as_ref()?, q);
    let mean = stored.mean().filter(|mean| mean.is_finite());
    SpreadNs { count: stored.count, mean, p50: quantile(0.5), p99: quantile(0.99), max: stored.max }
}
