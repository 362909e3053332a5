//! Results per operation of a journey, kind of request of a mix, or stage of a rate that changes.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Operations of one row, or of one journey of a row that has several.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowOperations {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Name of the journey; `null` for the requests of a mix, and for stages.
    pub journey: Option<String>,
    /// Completed journeys, over all trials.
    pub completed: u64,
    /// Journeys that ended at an error, over all trials.
    pub abandoned: u64,
    /// Operations in the order of the journey or mix.
    pub operations: Vec<OperationFinding>,
}

/// Results of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Name of the operation, method and target of the request, or number and rates of the stage.
    pub name: String,
    /// Calls with a valid response, over all trials.
    pub requests: u64,
    /// Failed calls, over all trials.
    pub errors: u64,
    /// Mean latency, ns.
    pub latency_mean: OverTrials,
    /// Median latency, ns.
    pub latency_p50: OverTrials,
    /// 99th percentile of latency, ns.
    pub latency_p99: OverTrials,
    /// Median time to the first part of responses that arrived in several, ns.
    pub first_byte_p50: OverTrials,
    /// Achieved requests per second, of a stage of a rate that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<OverTrials>,
}

/// A value per trial, summarized over the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverTrials {
    /// Mean over the trials; `null` if one of them has too few calls.
    pub mean: Option<f64>,
    /// Mean with its Student t interval; `null` for fewer than two trials.
    pub estimate: Option<Estimate>,
}

impl OverTrials {
    pub(crate) fn new(values: Option<Vec<f64>>, level: f64) -> Self {
        let values = values.unwrap_or_default();
        Self { mean: stats::interval::average(&values), estimate: stats::interval::mean(&values, level) }
    }
}
