//! Findings about the overhead of proxies.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Overhead of proxies at one design point, compared with the same point without them (`direct`).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Added {
    /// Index of the row with proxies in `Findings::rows`.
    pub row: usize,
    /// Index of the row at `direct` in `Findings::rows`.
    pub direct: usize,
    /// The proxies as named in the study.
    pub through: String,
    /// Levels of the other factors, such as `clients 50`; empty if none of them varies.
    pub place: String,
    /// Overhead in each compared metric.
    pub metrics: Vec<AddedMetric>,
    /// Summary of the overhead in words.
    pub sentence: String,
}

/// Overhead of proxies in one metric, with values in the metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AddedMetric {
    /// Name of the compared metric.
    pub metric: String,
    /// Mean at `direct` over the common blocks.
    pub direct: f64,
    /// Mean through the proxies over the common blocks.
    pub through: f64,
    /// Typical difference per block, through minus direct (Hodges & Lehmann), with its signed rank interval. `None` for
    /// fewer than six blocks, which have no 95 % interval.
    pub difference: Option<Estimate>,
    /// Typical ratio of through to direct with its interval; `None` without a `difference`, or if a value is at most 0.
    pub ratio: Option<Estimate>,
    /// Probability of such a clear difference by chance (Wilcoxon's exact signed rank test), adjusted (Holm) for all
    /// points and, for a metric that sentences mention, for all such metrics. `None` without common blocks.
    pub p_adjusted: Option<f64>,
    /// Whether a difference is shown at the run's confidence level; requires at least 12 blocks.
    pub shown: bool,
    /// Number of blocks in which both rows have a trial.
    pub blocks: u64,
}

impl Added {
    /// Looks up the overhead in a metric by name; `None` if it was not compared.
    pub fn metric(&self, name: &str) -> Option<&AddedMetric> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}
