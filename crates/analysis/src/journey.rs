//! What a journey's operations came to.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::JourneyMeasurement;

use crate::duration_summary::{SpreadNs, spread};

/// A journey in the report of one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JourneyReport {
    /// Its name.
    pub name: String,
    /// Journeys that were made to their end while measured.
    pub completed: u64,
    /// Journeys that ended at an error.
    pub abandoned: u64,
    /// Operations in the order of the journey.
    pub operations: Vec<OperationReport>,
}

/// One operation of a journey.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationReport {
    /// Its name.
    pub name: String,
    /// Calls that were answered as they must be.
    pub requests: u64,
    /// Calls that were not.
    pub errors: u64,
    /// Service times, ns.
    pub latency_ns: SpreadNs,
}

pub(crate) fn report(journey: &JourneyMeasurement) -> JourneyReport {
    let operations = journey.operations.iter().map(|operation| OperationReport {
        name: operation.name.clone(),
        requests: operation.requests,
        errors: operation.errors,
        latency_ns: spread(&operation.service),
    });
    JourneyReport {
        name: journey.name.clone(),
        completed: journey.completed,
        abandoned: journey.abandoned,
        operations: operations.collect(),
    }
}
