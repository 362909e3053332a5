//! The verdicts of a gate as JUnit XML.

use std::time::Duration;

use analysis::Findings;
use analysis::findings::{GateTest, GateVerdict};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use study::gate::{Bound, Condition, Undecided};

use crate::ReportError;

/// Renders one test case per candidate, metric and combination of the other factors. With `fail_if`, a case fails if
/// the candidate is worse, or if it is undecided and undecided candidates should fail. A case without a verdict is
/// skipped. Fails if there is no gate, or if XML cannot represent a string.
pub fn junit(findings: &Findings) -> Result<String, ReportError> {
    let no_gate = || format!("run `{}` has no baseline, so there is nothing that could pass or fail", findings.run);
    let found = findings.gate.as_ref().ok_or_else(|| ReportError(no_gate(), None))?;
    let mut suite = TestSuite::new(findings.study.as_str());
    suite.set_time(Duration::from_nanos(found.cost_ns));
    for test in &found.tests {
        let sentence = analysis::gate::test_sentence(found, test);
        let mut status = match (test.verdict, found.undecided) {
            (GateVerdict::Worse, _) | (GateVerdict::Undecided, Undecided::Fail) if found.fail_if.is_some() => {
                TestCaseStatus::non_success(NonSuccessKind::Failure)
            }
            (GateVerdict::NoVerdict, _) | (GateVerdict::Undecided, Undecided::Skip) => TestCaseStatus::skipped(),
            _ => TestCaseStatus::success(),
        };
        status.set_message(sentence.as_str());
        let mut case = TestCase::new(name(test), status);
        case.set_classname(format!("{}.{}", findings.study, test.candidate));
        case.set_system_out(sentence.as_str());
        suite.add_test_case(case);
    }
    let mut report = Report::new("quintain");
    report.add_test_suite(suite);
    report.to_string().map_err(|error| ReportError(format!("cannot write JUnit XML: {error}"), Some(error.into())))
}

fn name(test: &GateTest) -> String {
    let bound = test.bound.filter(|bound| !matches!(bound, Bound::Excess(_)));
    let condition = study::Metric::named(&test.metric).zip(bound);
    let name = condition.map_or(test.metric.clone(), |(metric, bound)| Condition { metric, bound }.to_string());
    if test.label.is_empty() { name } else { format!("{name} at {}", test.label) }
}
