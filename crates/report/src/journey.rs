//! What a journey's operations came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::record::JourneyMeasurement;

use crate::load::{SpreadNs, spread};
use crate::number::quantity;

/// A journey in the report of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// For a person: names and texts of lines.
pub(crate) fn lines(journey: &JourneyReport) -> Vec<(&'static str, String)> {
    let abandoned = match journey.abandoned {
        0 => String::new(),
        abandoned => format!(", {abandoned} abandoned at an error"),
    };
    let mut lines = vec![("journeys", format!("{} to the end{abandoned}", journey.completed))];
    let width = journey.operations.iter().map(|operation| operation.name.chars().count()).max().unwrap_or(0);
    for operation in &journey.operations {
        let quantile = |value: Option<f64>| value.map_or("not enough".to_owned(), |ns| quantity(ns, "ns"));
        let (p50, p99) = (quantile(operation.latency_ns.p50), quantile(operation.latency_ns.p99));
        let errors = match operation.errors {
            0 => String::new(),
            1 => ", 1 error".to_owned(),
            errors => format!(", {errors} errors"),
        };
        lines.push(("", format!("{:<width$}  {}, p50 {p50}, p99 {p99}{errors}", operation.name, operation.requests)));
    }
    lines
}
