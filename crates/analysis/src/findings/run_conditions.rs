//! Findings about the conditions of a run: its period, speed states and CPU probes.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::Probes;

/// Conditions that the absolute values of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scope {
    /// Start of the first trial, UTC, RFC 3339.
    pub from: String,
    /// Start of the last trial, UTC, RFC 3339.
    pub until: String,
    /// Smallest number of trials of a row, ignoring rows without trials.
    pub starts_min: usize,
    /// Largest share, from 0 to 1, of a rare kind of start that `starts_min` trials may miss at the intervals' level.
    pub unseen_share: f64,
    /// Period of the run for display, such as `2026-11-20 21:05 to 21:31 UTC`.
    pub times: String,
    /// Summary in words of the period and the trials per row.
    pub sentence: String,
}

/// Whether the machine's speed changed during the run, which makes consecutive trials similar.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct States {
    /// Probability that consecutive trials are so similar by chance, over all trials in execution order.
    pub p: f64,
    /// Whether `p` is at most 0.05. The test misses spells of different speed that are longer than the run.
    pub alarm: bool,
    /// Result of the test in words.
    pub sentence: String,
}

/// CPU speed measured by a fixed piece of work before and after each trial. No results are adjusted for it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Probed {
    /// Median CPU time of the probes on all CPUs, ns. Comparable between runs on the same CPU model.
    pub cpu_ns_median: f64,
    /// Trials with probes, in execution order.
    pub trials: Vec<ProbedTrial>,
    /// The median CPU time in words.
    pub sentence: String,
    /// Number of trials that other processes disturbed, in words; `None` if no disturbance was detected.
    pub warning: Option<String>,
}

/// The probes of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbedTrial {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Whether another process used a CPU: the wall time of a probe exceeds 1.1 times its CPU time.
    pub contended: bool,
    /// Times of the probes before and after the trial.
    pub probes: Probes,
}

impl ProbedTrial {
    /// Returns the mean CPU time of the trial's probes, ns; `None` without probes.
    pub fn cpu_ns(&self) -> Option<f64> {
        let all = self.probes.all().map(|probe| probe.cpu_ns as f64).collect::<Vec<_>>();
        stats::interval::average(&all)
    }
}
