//! A baseline and its candidates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::gate::Undecided;

use super::Estimate;

/// What was shown of candidates against their baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateFinding {
    /// The factor whose levels are compared.
    pub factor: String,
    /// The level that is the baseline.
    pub base: String,
    /// What fails a candidate; `None`: nothing does, and what is asked is whether they differ.
    pub fail_if: Option<String>,
    /// What is made of a candidate of which neither was shown.
    pub undecided: Undecided,
    /// All together: the worst of what was asked of the candidates.
    pub verdict: GateVerdict,
    /// What was asked of each candidate, at each combination of the other factors.
    pub tests: Vec<GateTest>,
    /// What was also looked at, by the same pairs, each metric with the error of a single question: of many, one in twenty shows something that is not so.
    pub also: Vec<GateTest>,
    /// The baseline held against itself (`--null`): what is shown here is a false alarm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<GateTest>,
    /// How far the two values of half of the pairs of the baseline with itself are apart at least: the noise of a single pair, a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_scatter: Option<f64>,
    /// What it took: time of all trials, without builds, ns.
    pub cost_ns: u64,
}

/// What pairs say of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateTest {
    /// Levels of the other factors that vary, `clients 40`; empty where none does.
    pub label: String,
    /// The candidate's level.
    pub candidate: String,
    /// The metric.
    pub metric: String,
    /// The ratio candidate/baseline beyond which the candidate is worse; 1: any difference counts.
    pub bound: f64,
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
    /// The typical ratio candidate/baseline (Hodges & Lehmann) with the interval that belongs to the look.
    pub ratio: Option<Estimate>,
    /// The ratio of geometric means with Student's t interval of the pairs.
    pub mean_ratio: Option<Estimate>,
    /// Mean of the baseline's trials, in the unit of the metric.
    pub base_mean: Option<f64>,
    /// Mean of the candidate's.
    pub candidate_mean: Option<f64>,
    /// So many more pairs would likely decide; `None`: it is decided, or nobody can tell.
    pub more_pairs: Option<u64>,
    /// The time they would take, ns.
    pub more_ns: Option<u64>,
}
