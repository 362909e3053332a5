use analysis::failed_requests::count_and_share;
use analysis::findings::{Findings, OperationFinding, OverTrials};
use analysis::number;

use crate::document::{Head, Table};

pub(crate) fn table(findings: &Findings) -> Option<Table> {
    let numbers = ["calls", "errors", "mean", "p50", "p99"].map(Head::number);
    let heads = ["design point", "operation"].map(Head::text).into_iter().chain(numbers);
    let label = |row: usize| findings.rows.get(row).map_or_else(String::new, |row| row.label.clone());
    let line = |(row, operation): (usize, &OperationFinding)| {
        let latencies = [&operation.latency_mean, &operation.latency_p50, &operation.latency_p99];
        let counts = [operation.requests.to_string(), count_and_share(operation.errors, operation.requests)];
        [label(row), operation.name.clone()].into_iter().chain(counts).chain(latencies.map(cell)).collect()
    };
    let all = findings.operations.iter().flat_map(|found| found.operations.iter().map(|one| (found.row, one)));
    Table::plain("Latency by operation", heads, all.map(line)).unless_empty()
}

fn cell(found: &OverTrials) -> String {
    let mean = || found.mean.map(|mean| number::quantity(mean, "ns"));
    let estimate = found.estimate.as_ref().map(|estimate| number::estimate(estimate, "ns"));
    estimate.or_else(mean).unwrap_or_else(|| "not enough".to_owned())
}
