use schemars::JsonSchema;
use serde::Serialize;
use study::Metric;
use study::gate::{Bound, Undecided};

use super::Estimate;

/// Results of candidates relative to their baseline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateFinding {
    /// The factor whose levels are compared.
    pub factor: String,
    /// Level of the baseline.
    pub base: String,
    /// Conditions that fail a candidate; `None` if the study only asks whether they differ.
    pub fail_if: Option<String>,
    /// Share of requests that a candidate may fail beyond the share that the baseline fails.
    pub allow_errors: f64,
    /// How undecided candidates are treated.
    pub undecided: Undecided,
    /// Overall verdict, the worst of `tests`.
    pub verdict: GateVerdict,
    /// A test per candidate, condition, combination of other factors, and failed requests. They share an error level.
    pub tests: Vec<GateTest>,
    /// Other metrics of the same pairs, each with its own error level: about one in twenty differs by chance.
    pub also: Vec<GateTest>,
    /// The baseline compared with itself (`--null`). Any difference shown here is a false alarm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<GateTest>,
    /// Noise of a single pair: median difference between a pair's values of the baseline with itself, a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_scatter: Option<f64>,
    /// Total time of all trials, without builds, ns.
    pub cost_ns: u64,
}

/// Verdict on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// Shown to meet the condition; without one, shown to be better than the baseline.
    NotWorse,
    /// Neither outcome was shown.
    Undecided,
    /// There are no pairs, or they do not measure the candidate.
    NoVerdict,
    /// Shown to fail the condition; without one, shown to be worse than the baseline.
    Worse,
}

/// Test of one candidate by one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateTest {
    /// Levels of the other factors that vary, `clients 40`; empty if none do.
    pub label: String,
    /// Level of the candidate.
    pub candidate: String,
    /// Name of the tested metric.
    pub metric: String,
    /// Bound for the candidate; `None` if any difference counts.
    pub bound: Option<Bound>,
    /// Verdict of the test.
    pub verdict: GateVerdict,
    /// Why there is no verdict; `None` if there is one or more pairs may still decide.
    pub reason: Option<String>,
    /// Whether more pairs may follow.
    pub open: bool,
    /// Number of pairs used.
    pub pairs: u64,
    /// One-sided p-value of the side closer to being shown.
    pub p: Option<f64>,
    /// Significance level at this look.
    pub level: Option<f64>,
    /// Typical ratio candidate/baseline (Hodges & Lehmann) with its interval, on one side of 1 or the bound if shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// Typical value of the candidate with the interval of the test, for absolute bounds, in the metric's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Estimate>,
    /// Share of failed requests, candidate minus baseline, with the interval of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Estimate>,
    /// Typical value of the baseline in these pairs, in the metric's unit; the mean share for failed requests.
    pub base_value: Option<f64>,
    /// Typical value of the candidate: the baseline's value times the ratio.
    pub candidate_value: Option<f64>,
    /// Most frequent kind of failed request for baseline and candidate, such as `status 503`; empty if none failed.
    #[serde(skip_serializing_if = "study::is_default")]
    pub failed_by: [String; 2],
    /// Number of additional pairs that would probably decide; `None` if decided or unknown.
    pub more_pairs: Option<u64>,
    /// Time for the additional pairs, ns.
    pub more_ns: Option<u64>,
}

impl GateTest {
    /// Whether it compares shares of failed requests.
    pub fn is_about_errors(&self) -> bool {
        Metric::named(&self.metric).is_some_and(Metric::is_error_share)
    }
}
