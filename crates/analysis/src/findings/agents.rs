//! What the generators of a cluster did, one by one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use study::record::Limit;

/// One generator over the trials of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentFinding {
    /// Name of its machine.
    pub node: String,
    /// Trials that it took part in, those that failed not counted.
    pub trials: usize,
    /// Median latency of a trial, ns; `null` where no trial has responses enough, as all below where no trial has a value.
    pub latency_p50_ns: Option<MedianRange>,
    /// 99th percentile of the latency of a trial, ns.
    pub latency_p99_ns: Option<MedianRange>,
    /// Valid responses, per second.
    pub rate_per_s: Option<MedianRange>,
    /// Its valid responses over those of all generators, a fraction.
    pub share: Option<MedianRange>,
    /// Fraction of its CPU that its busiest worker used.
    pub busy: Option<MedianRange>,
    /// Its own bottleneck: how many trials have which.
    pub limits: BTreeMap<Limit, usize>,
}

/// Values of trials: the one in the middle, the least and the largest. Values of generators are not averaged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MedianRange {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl MedianRange {
    /// Of values in any order; `None` without one that is finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted = values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        Some(MedianRange { median: stats::quantile(&sorted, 0.5)?, min: *sorted.first()?, max: *sorted.last()? })
    }
}
