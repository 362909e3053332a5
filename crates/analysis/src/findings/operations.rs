//! What operations of journeys took.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// The operations of one row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowOperations {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// The journey's name.
    pub journey: String,
    /// Journeys that were made to their end, all trials together.
    pub completed: u64,
    /// Journeys that ended at an error, all trials together.
    pub abandoned: u64,
    /// Operations in the order of the journey.
    pub operations: Vec<OperationFinding>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Its name.
    pub name: String,
    /// Calls that were answered as they must be, all trials together.
    pub requests: u64,
    /// Calls that were not, all trials together.
    pub errors: u64,
    /// Mean latency, ns.
    pub latency_mean: OverTrials,
    /// Median latency, ns.
    pub latency_p50: OverTrials,
    /// 99th percentile of latency, ns.
    pub latency_p99: OverTrials,
}

/// A value of each trial, over the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverTrials {
    /// Mean over the trials; `null` where one of them has too few calls for the value.
    pub mean: Option<f64>,
    /// The same with its Student t interval; `null` below two trials.
    pub estimate: Option<Estimate>,
}

impl OverTrials {
    pub(crate) fn new(values: Option<Vec<f64>>, level: f64) -> Self {
        let values = values.unwrap_or_default();
        Self { mean: stats::interval::average(&values), estimate: stats::interval::mean(&values, level) }
    }
}
