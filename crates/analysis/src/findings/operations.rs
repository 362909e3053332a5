//! Results per operation of a journey, kind of request of a mix, or stage of a changing rate.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Operations of one row. A row with several journeys has one entry per journey.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowOperations {
    /// Index of the operations' row in `Findings::rows`.
    pub row: usize,
    /// Name of the journey; `null` for the requests of a mix and for stages.
    pub journey: Option<String>,
    /// Number of completed journeys over all trials.
    pub completed: u64,
    /// Number of journeys over all trials that ended early because of an error.
    pub abandoned: u64,
    /// Operations in the order of the journey or mix.
    pub operations: Vec<OperationFinding>,
}

/// Results of one operation over all trials.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Name of the operation, or method and target of the request, or number and rates of the stage.
    pub name: String,
    /// Number of calls with a valid response over all trials.
    pub requests: u64,
    /// Number of failed calls over all trials.
    pub errors: u64,
    /// Mean latency per trial, ns.
    pub latency_mean: OverTrials,
    /// Median latency per trial, ns.
    pub latency_p50: OverTrials,
    /// 99th percentile of the latency per trial, ns.
    pub latency_p99: OverTrials,
    /// Median of the time to the first part of a response, per trial, ns. Only responses in several parts count.
    pub first_byte_p50: OverTrials,
    /// Achieved requests per second in a stage of a changing rate; `null` for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<OverTrials>,
}

/// A value per trial, summarized over the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverTrials {
    /// Mean over the trials; `null` if a trial has too few calls.
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
