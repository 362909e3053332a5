//! Runs of one study over time, and two runs side by side. They hint at changes without a verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::Metric;
use study::plan::Level;
use study::record::{IdlePolicy, RunState};

use super::{Estimate, Mark};

/// Version of [`History`] and [`SideBySide`] that this build writes.
pub const HISTORY_VERSION: u32 = 1;

/// Runs of one study over time, grouped by machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// Format version, [`HISTORY_VERSION`].
    pub version: u32,
    /// Name of the study.
    pub study: String,
    /// The metric whose values over runs are listed.
    pub metric: &'static Metric,
    /// One entry per machine; the machine of the latest run comes first.
    pub machines: Vec<MachineHistory>,
}

/// Runs on one machine, or on one set of machines with one layout.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineHistory {
    /// The machine, which must be the same for results to be comparable.
    pub machine: Machine,
    /// Median of [`RunHead::probe_ns`] over its runs; `None` if no run has probes.
    pub probe_ns_median: Option<f64>,
    /// Runs by start time, earliest first.
    pub runs: Vec<HistoryRun>,
    /// Design points measured by at least one run.
    pub points: Vec<HistoryPoint>,
    /// Pairs of runs whose intervals do not overlap and whose revisions differ.
    pub steps: Vec<Step>,
}

/// A machine. Results are comparable only if all fields match.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Machine {
    /// Host name.
    pub name: String,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs available.
    pub cpus: u64,
    /// Kernel release and version.
    pub kernel: String,
    /// Machines of the cluster with their roles; empty for a single machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine { name, cpu_model, cpus, kernel, cluster } = self;
        let plural = if *cpus == 1 { "" } else { "s" };
        write!(f, "{name} ({cpu_model}, {cpus} CPU{plural}, {kernel})")?;
        if cluster.is_empty() { Ok(()) } else { write!(f, ", {cluster}") }
    }
}

/// Description of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Name of the run.
    pub run: String,
    /// Name of its study.
    pub study: String,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// Git commit of the working directory (older runs: the study's), `-dirty` with changes; `None` outside a checkout.
    pub revision: Option<String>,
    /// Profile: `default`, `quick` or `full`.
    pub profile: String,
    /// Whether this is a quick run, whose intervals have no stated confidence.
    pub quick: bool,
    /// State; `None` if stored by an older quintain.
    pub state: Option<RunState>,
    /// Whether it was imported from another machine.
    pub imported: bool,
    /// Median CPU time of the probes before and after its trials, ns; `None` without probes.
    pub probe_ns: Option<f64>,
}

/// A run in a history, with the speed of its machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// Name, start, revision and state of the run.
    #[serde(flatten)]
    pub head: RunHead,
    /// Speed of the machine in this run relative to the median of its runs, by the probes: 0.08 is 8 % faster.
    pub speed: Option<f64>,
}

/// A design point over runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryPoint {
    /// Label in the latest run that has it.
    pub label: String,
    /// Levels of the factors.
    pub factors: BTreeMap<String, Level>,
    /// Idle policy of the CPUs.
    pub idle: IdlePolicy,
    /// Value in each run of [`MachineHistory::runs`]; `None` if not measured.
    pub values: Vec<Option<PointValue>>,
}

/// A metric of a design point in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointValue {
    /// Mean over its trials.
    pub mean: f64,
    /// Mean with its interval, if it has one.
    pub estimate: Option<Estimate>,
    /// Whether the mean is a lower bound.
    pub at_least: bool,
    /// Number of trials.
    pub n: u64,
    /// Reasons why the trials do not measure the server.
    pub marks: Vec<Mark>,
    /// Git commit of the server; `None` if equal to [`RunHead::revision`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl PointValue {
    /// Returns the measured revision, given the head of its run.
    pub fn revision_in<'a>(&'a self, head: &'a RunHead) -> Option<&'a str> {
        self.revision.as_deref().or(head.revision.as_deref())
    }
}

/// Runs of a design point with different revisions whose intervals do not overlap. Not a verdict: separate runs of the
/// same server often differ as much.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Index into [`MachineHistory::points`].
    pub point: usize,
    /// Index of the earlier run in [`MachineHistory::runs`].
    pub from: usize,
    /// Index of the later run.
    pub to: usize,
    /// Summary in words.
    pub sentence: String,
    /// Command that compares both revisions in one run; if `None`, see `note`.
    pub command: Option<String>,
    /// Note about the command, or why there is none; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Two stored runs side by side, without a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideBySide {
    /// Format version, [`HISTORY_VERSION`].
    pub version: u32,
    /// Common properties and differences of the runs: machine, study, revision.
    pub headline: String,
    /// The two runs, in the order of their values.
    pub runs: [RunHead; 2],
    /// Machines of the two runs, in the same order.
    pub machines: [Machine; 2],
    /// Metrics in display order.
    pub metrics: Vec<&'static Metric>,
    /// Design points of either run.
    pub points: Vec<SidePoint>,
    /// Why there is no verdict, and what the probes show about the machine.
    pub reasons: Vec<String>,
    /// Command that would give a verdict; if `None`, see `note`.
    pub command: Option<String>,
    /// Note about the command, or why there is none; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A design point in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SidePoint {
    /// Label of the design point: its levels.
    pub label: String,
    /// Values of both runs by metric; `None` if that run has none.
    pub values: BTreeMap<String, [Option<PointValue>; 2]>,
}
