//! Findings about the generators of a cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use study::record::Limit;

/// Results of one generator of a cluster over the trials of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentFinding {
    /// Name of the generator's machine.
    pub node: String,
    /// Number of measured trials in which the generator took part.
    pub trials: usize,
    /// Median latency of a trial, ns; `null` if no trial has enough responses.
    pub latency_p50_ns: Option<MedianRange>,
    /// 99th percentile of the latency of a trial, ns; `null` if no trial has enough responses.
    pub latency_p99_ns: Option<MedianRange>,
    /// Rate of valid responses to this generator, per second; `null` if no trial has a value.
    pub rate_per_s: Option<MedianRange>,
    /// This generator's share of the valid responses of all generators, from 0 to 1; `null` if no trial has responses.
    pub share: Option<MedianRange>,
    /// CPU utilization of the generator's busiest worker, from 0 to 1; `null` if unknown.
    pub busy: Option<MedianRange>,
    /// Number of trials for each limit of this generator.
    pub limits: BTreeMap<Limit, usize>,
}

/// Median, minimum and maximum over the trials. Values are not averaged over generators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MedianRange {
    /// Median over the trials, in the unit of the summarized value.
    pub median: f64,
    /// Minimum over the trials, in the unit of the summarized value.
    pub min: f64,
    /// Maximum over the trials, in the unit of the summarized value.
    pub max: f64,
}

impl MedianRange {
    /// Summarizes values in any order; `None` if none of them is finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted = values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        Some(MedianRange { median: stats::quantile(&sorted, 0.5)?, min: *sorted.first()?, max: *sorted.last()? })
    }
}
