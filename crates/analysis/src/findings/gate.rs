//! Findings of a gate: verdicts and tests.

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
    /// Level that is the baseline.
    pub base: String,
    /// Conditions that fail a candidate; `None` if the study asks only whether candidates differ.
    pub fail_if: Option<String>,
    /// Share of requests, from 0 to 1, that a candidate may fail in addition to the share that the baseline fails.
    pub allow_errors: f64,
    /// Outcome for a candidate that is shown neither to fail nor to pass.
    pub undecided: Undecided,
    /// Overall verdict, the worst of `tests`.
    pub verdict: GateVerdict,
    /// Tests of conditions and failed requests per candidate and combination of other factors, at a joint error level.
    pub tests: Vec<GateTest>,
    /// Tests of other metrics on the same pairs, each with its own error level: about 1 in 20 is significant by chance.
    pub also: Vec<GateTest>,
    /// Tests of the baseline against itself (`--null`). Any difference shown here is a false alarm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<GateTest>,
    /// Median difference between the values of a pair of baseline trials, as a fraction; `None` without `--null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_scatter: Option<f64>,
    /// Total time of all trials, ns, without builds.
    pub cost_ns: u64,
}

/// Verdict on one candidate or on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// The candidate is shown to meet the condition or, if the study has none, to be better than the baseline.
    NotWorse,
    /// The pairs so far show neither outcome.
    Undecided,
    /// There are no pairs of trials, or they allow no verdict; the test gives the reason.
    NoVerdict,
    /// The candidate is shown to fail the condition or, if the study has none, to be worse than the baseline.
    Worse,
}

/// Test of one candidate by one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateTest {
    /// Levels of the other factors that vary, such as `clients 40`; empty if none of them varies.
    pub label: String,
    /// Level that is the candidate.
    pub candidate: String,
    /// Name of the tested metric.
    pub metric: String,
    /// Bound that the candidate must meet; `None` if any difference counts.
    pub bound: Option<Bound>,
    /// Verdict of this test on its candidate.
    pub verdict: GateVerdict,
    /// Why there is no verdict; `None` if there is one, or if more pairs may still decide.
    pub reason: Option<String>,
    /// Whether more pairs of trials may follow.
    pub open: bool,
    /// Number of pairs of trials that the test uses.
    pub pairs: u64,
    /// One-sided p-value of the outcome that is closer to being shown; `None` if the pairs were not tested.
    pub p: Option<f64>,
    /// Significance level of the test at this number of pairs; `None` if the pairs were not tested.
    pub level: Option<f64>,
    /// Typical ratio candidate/baseline (Hodges & Lehmann) with its interval, which excludes 1 or the bound if an
    /// outcome is shown. `None` for an absolute bound, for failed requests, or for too few pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// Typical value of the candidate in the metric's unit, with its interval; `None` unless the bound is absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Estimate>,
    /// Share of failed requests, candidate minus baseline, with its interval; `None` in tests of other metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Estimate>,
    /// Typical value of the baseline in the metric's unit, or its mean share of failed requests; `None` if not tested.
    pub base_value: Option<f64>,
    /// Typical value of the candidate, defined like `base_value`; exactly `base_value` times `ratio`, if there is one.
    pub candidate_value: Option<f64>,
    /// Most frequent failure of the baseline and of the candidate, such as `status 503`; empty if no request failed.
    #[serde(skip_serializing_if = "study::is_default")]
    pub failed_by: [String; 2],
    /// Number of additional pairs that would probably decide; `None` if decided or unknown.
    pub more_pairs: Option<u64>,
    /// Time that the additional pairs would take, ns; `None` if `more_pairs` is `None`.
    pub more_ns: Option<u64>,
}

impl GateTest {
    /// Whether the test compares shares of failed requests.
    pub fn is_about_errors(&self) -> bool {
        Metric::named(&self.metric).is_some_and(Metric::is_error_share)
    }
}
