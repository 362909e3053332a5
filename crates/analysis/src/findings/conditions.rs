//! What a run met of its machine.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::Probes;

/// What the absolute values of a run are of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scope {
    /// When the first trial began, UTC, RFC 3339.
    pub from: String,
    /// When the last one did.
    pub until: String,
    /// The fewest trials of a row that has any.
    pub starts_min: usize,
    /// Kinds of starts that come less often than this, a fraction, may be in none of so many trials, at the level of the intervals.
    pub unseen_share: f64,
    /// The times as a reader has them: `2026-11-20 21:05 to 21:31 UTC`.
    pub times: String,
    /// All of it in words.
    pub sentence: String,
}

/// Whether the machine changed its speed during the run, so that trials that ran one after the other are alike.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct States {
    /// Chance that neighbours are so alike where their order means nothing, over all trials in the order in which they ran.
    pub p: f64,
    /// Whether that is too small to be chance. That it is not proves nothing: spells longer than the run look like none.
    pub alarm: bool,
    /// In words.
    pub sentence: String,
}

/// What the fixed piece of work before and after each trial told of the processors. No value is adjusted by it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Probed {
    /// Median of its CPU time, all processors, ns: on the same model of processor another run's median tells which of the two met it faster.
    pub cpu_ns_median: f64,
    /// The trials that have it, in the order they ran.
    pub trials: Vec<ProbedTrial>,
    /// The median in words.
    pub sentence: String,
    /// How many of the trials ran beside others, in words; `None`: none was seen to.
    pub warning: Option<String>,
}

/// The probes of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbedTrial {
    /// Place in the order of the whole run, from 0.
    pub order: u32,
    /// Something else had a processor in use: wall time of a probe above 1.1 times its CPU time.
    pub contended: bool,
    /// The probes.
    pub probes: Probes,
}

impl ProbedTrial {
    /// Mean CPU time of its probes, ns; `None` without one.
    pub fn cpu_ns(&self) -> Option<f64> {
        let all = self.probes.all().map(|probe| probe.cpu_ns as f64).collect::<Vec<_>>();
        stats::interval::average(&all)
    }
}
