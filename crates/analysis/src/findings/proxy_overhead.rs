use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Overhead of proxies at one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Added {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Index of the row at `direct` that it is compared with.
    pub direct: usize,
    /// Proxies, as named in the study.
    pub through: String,
    /// Levels of the other factors, `clients 50`; empty if none vary.
    pub place: String,
    /// Overhead by metric.
    pub metrics: Vec<AddedMetric>,
    /// Summary in words.
    pub sentence: String,
}

/// Overhead in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AddedMetric {
    /// Name of the metric.
    pub metric: String,
    /// Mean at `direct`, over the common blocks.
    pub direct: f64,
    /// Mean through the proxies, over the common blocks.
    pub through: f64,
    /// Typical difference per block, through minus direct (Hodges & Lehmann), with the interval of the signed rank
    /// test. `None` for fewer than six blocks, which have no 95 % interval.
    pub difference: Option<Estimate>,
    /// Typical ratio of through to direct with its interval; also `None` if a value is not above zero.
    pub ratio: Option<Estimate>,
    /// Probability of such a clear difference by chance (Wilcoxon's signed rank, exact), adjusted (Holm) for all points
    /// compared with `direct` in this metric and those that sentences mention with it. `None` without common blocks.
    pub p_adjusted: Option<f64>,
    /// Whether a difference is shown; requires at least 12 blocks.
    pub shown: bool,
    /// Number of common blocks.
    pub blocks: u64,
}

impl Added {
    /// Looks up a metric by name.
    pub fn metric(&self, name: &str) -> Option<&AddedMetric> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}
