//! What a proxy adds.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// What the requests of one design point pay for passing proxies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Added {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Index of the row at `direct` that it is held against.
    pub direct: usize,
    /// The proxies, as the study names them.
    pub through: String,
    /// Levels of the other factors, `clients 50`; empty: there are none that vary.
    pub place: String,
    /// By metric.
    pub metrics: Vec<AddedMetric>,
    /// What it comes to.
    pub sentence: String,
}

/// One metric of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AddedMetric {
    /// Its name.
    pub metric: String,
    /// Mean at `direct`, over the blocks that have both.
    pub direct: f64,
    /// Mean through the proxies, over the same blocks.
    pub through: f64,
    /// Through less direct: the typical difference of a block (Hodges & Lehmann) with the interval of the signed rank test; `None` below six
    /// blocks, which have none at 95 %.
    pub difference: Option<Estimate>,
    /// The typical ratio of through to direct, likewise; `None` also where a value is not above zero.
    pub ratio: Option<Estimate>,
    /// Probability of so clear a difference by chance (Wilcoxon's signed rank, exact), adjusted for all points held against `direct` in this
    /// metric, and in the metrics that sentences name together (Holm); `None` without a block that has both.
    pub p_adjusted: Option<f64>,
    /// Whether a difference is shown; never below 12 blocks.
    pub shown: bool,
    /// Blocks that have both.
    pub blocks: u64,
}

impl Added {
    /// What is known of a metric.
    pub fn metric(&self, name: &str) -> Option<&AddedMetric> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}
