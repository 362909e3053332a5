use schemars::JsonSchema;
use serde::Serialize;
use study::record::Probes;

/// Conditions that the absolute values of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scope {
    /// Start of the first trial, UTC, RFC 3339.
    pub from: String,
    /// Start of the last trial.
    pub until: String,
    /// Smallest number of trials of any row that has some.
    pub starts_min: usize,
    /// Kinds of starts rarer than this may be absent from `starts_min` trials, at the intervals' confidence level.
    pub unseen_share: f64,
    /// Period for display: `2026-11-20 21:05 to 21:31 UTC`.
    pub times: String,
    /// Summary in words.
    pub sentence: String,
}

/// Whether the machine's speed changed during the run, which makes consecutive trials similar.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct States {
    /// Probability that consecutive trials are so similar by chance, over all trials in execution order.
    pub p: f64,
    /// Whether `p` is too small to be chance. No alarm proves nothing: spells longer than the run go undetected.
    pub alarm: bool,
    /// Summary in words.
    pub sentence: String,
}

/// CPU speed measured by a fixed piece of work before and after each trial. Values are not adjusted by it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Probed {
    /// Median CPU time of a probe over all CPUs, ns. Comparable between runs on the same CPU model.
    pub cpu_ns_median: f64,
    /// Trials with probes, in execution order.
    pub trials: Vec<ProbedTrial>,
    /// The median in words.
    pub sentence: String,
    /// Number of trials disturbed by other processes, in words; `None` if no disturbance was detected.
    pub warning: Option<String>,
}

/// The probes of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbedTrial {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Whether another process used a CPU: the wall time of a probe exceeds 1.1 times its CPU time.
    pub contended: bool,
    /// Times of the fixed piece of work before and after the trial.
    pub probes: Probes,
}

impl ProbedTrial {
    /// Returns the mean CPU time of its probes, ns; `None` without probes.
    pub fn cpu_ns(&self) -> Option<f64> {
        let all = self.probes.all().map(|probe| probe.cpu_ns as f64).collect::<Vec<_>>();
        stats::interval::average(&all)
    }
}
