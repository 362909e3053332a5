//! A baseline and its candidates.

use schemars::JsonSchema;
use serde::Serialize;
use study::Metric;
use study::gate::{Bound, Undecided};

use super::Estimate;

/// What was shown of candidates against their baseline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateFinding {
    /// The factor whose levels are compared.
    pub factor: String,
    /// The level that is the baseline.
    pub base: String,
    /// What fails a candidate; `None`: nothing does, and what is asked is whether they differ.
    pub fail_if: Option<String>,
    /// The share of its requests that a candidate may fail beyond those that the baseline fails.
    pub allow_errors: f64,
    /// What is made of a candidate of which neither was shown.
    pub undecided: Undecided,
    /// All together: the worst of what was asked of the candidates.
    pub verdict: GateVerdict,
    /// What was asked of each candidate, at each combination of the other factors, all with one error. Failed requests are among it.
    pub tests: Vec<GateTest>,
    /// Metrics beside those that were asked for, by the same pairs, each with its own error: of twenty, one differs by chance.
    pub also: Vec<GateTest>,
    /// The baseline held against itself (`--null`): what is shown here is a false alarm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<GateTest>,
    /// How far the two values of half of the pairs of the baseline with itself are apart at least: the noise of a single pair, a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_scatter: Option<f64>,
    /// What it took: time of all trials, without builds, ns.
    pub cost_ns: u64,
}

/// What pairs say of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// Better than what fails it; where nothing does, better than the baseline.
    NotWorse,
    /// Neither was shown.
    Undecided,
    /// The pairs are not about the candidate or there are none.
    NoVerdict,
    /// Worse than what it is held to.
    Worse,
}

/// One candidate, one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateTest {
    /// Levels of the other factors that vary, `clients 40`; empty where none does.
    pub label: String,
    /// The candidate's level.
    pub candidate: String,
    /// The metric.
    pub metric: String,
    /// What the candidate is held against; `None`: any difference counts.
    pub bound: Option<Bound>,
    /// What was shown.
    pub verdict: GateVerdict,
    /// Why there is no verdict; `None`: there is, or there may be one yet.
    pub reason: Option<String>,
    /// Whether more pairs may come.
    pub open: bool,
    /// Pairs that it rests on.
    pub pairs: u64,
    /// One-sided p-value, of the side that is nearer to being shown.
    pub p: Option<f64>,
    /// The level that it was held against at this look.
    pub level: Option<f64>,
    /// The typical ratio candidate/baseline (Hodges & Lehmann), with the interval of the test: it excludes 1, or the bound, if that is
    /// shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// The candidate's typical value with the interval of the test, for absolute bounds, in the unit of the metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Estimate>,
    /// The candidate's share less the baseline's with the interval of the test, for failed requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Estimate>,
    /// Typical value of the baseline in these pairs, in the unit of the metric; of failed requests the mean share.
    pub base_value: Option<f64>,
    /// Typical value of the candidate. It is the baseline's times the ratio.
    pub candidate_value: Option<f64>,
    /// How requests of baseline and candidate failed, the most frequent kind, such as `status 503`; empty if none did.
    #[serde(skip_serializing_if = "no_failures")]
    pub failed_by: [String; 2],
    /// So many more pairs would likely decide; `None`: it is decided, or nobody can tell.
    pub more_pairs: Option<u64>,
    /// The time they would take, ns.
    pub more_ns: Option<u64>,
}

impl GateTest {
    /// Whether it compares shares of failed requests.
    pub fn is_about_errors(&self) -> bool {
        Metric::named(&self.metric).is_some_and(Metric::is_error_share)
    }
}

fn no_failures(failed_by: &[String; 2]) -> bool {
    failed_by.iter().all(String::is_empty)
}
