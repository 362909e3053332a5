//! Results per operation of a journey, or per kind of request of a mix.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::{JourneyMeasurement, OperationMeasurement};

use crate::duration_summary::{SpreadNs, spread};

/// Journey results of one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JourneyReport {
    /// Name of the journey.
    pub name: String,
    /// Journeys completed while measuring.
    pub completed: u64,
    /// Journeys that ended at an error.
    pub abandoned: u64,
    /// Time of a completed journey, from when it was due, ns; `null` if none was completed.
    pub session_ns: Option<SpreadNs>,
    /// Operations in the order of the journey.
    pub operations: Vec<OperationReport>,
}

/// One operation of a journey, or one kind of request of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationReport {
    /// Its name.
    pub name: String,
    /// Calls with a valid response.
    pub requests: u64,
    /// Failed calls.
    pub errors: u64,
    /// Latency, ns.
    pub latency_ns: SpreadNs,
}

pub(crate) fn report(journey: &JourneyMeasurement) -> JourneyReport {
    JourneyReport {
        name: journey.name.clone(),
        completed: journey.completed,
        abandoned: journey.abandoned,
        session_ns: journey.session.as_ref().map(spread),
        operations: operations(&journey.operations),
    }
}

pub(crate) fn operations(measured: &[OperationMeasurement]) -> Vec<OperationReport> {
    let report = |operation: &OperationMeasurement| OperationReport {
        name: operation.name.clone(),
        requests: operation.requests,
        errors: operation.errors,
        latency_ns: spread(&operation.service),
    };
    measured.iter().map(report).collect()
}
