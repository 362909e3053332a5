//! Runs of one study over time, and two runs side by side. They hint at changes but give no verdict.

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
    /// Name of the study whose runs are listed.
    pub study: String,
    /// The metric whose value in each run is listed.
    pub metric: &'static Metric,
    /// One entry per machine; the machine of the latest run comes first.
    pub machines: Vec<MachineHistory>,
}

/// Runs on one machine, or on one cluster with the same layout.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineHistory {
    /// The machine that all these runs have in common.
    pub machine: Machine,
    /// Median of [`RunHead::probe_ns`] over these runs, ns; `None` if no run has probes.
    pub probe_ns_median: Option<f64>,
    /// Runs on this machine, earliest start first.
    pub runs: Vec<HistoryRun>,
    /// Design points measured by at least one run.
    pub points: Vec<HistoryPoint>,
    /// Pairs of runs of different revisions whose intervals do not overlap.
    pub steps: Vec<Step>,
}

/// Properties of a machine. Results are comparable only if all fields match.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Machine {
    /// Host name of the machine.
    pub name: String,
    /// Model name of the CPU.
    pub cpu_model: String,
    /// Number of available CPUs.
    pub cpus: u64,
    /// Release and version of the kernel.
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

/// Name, start, revision and state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Name of the run, unique within its store.
    pub run: String,
    /// Name of the study that was run.
    pub study: String,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Git commit of the working directory (of the study in old runs), with `-dirty` if changed; `None` if not in Git.
    pub revision: Option<String>,
    /// Profile of the run: `default`, `quick` or `full`.
    pub profile: String,
    /// Whether this is a quick run. Its intervals claim no confidence level.
    pub quick: bool,
    /// State of the run; `None` if an older version of quintain stored it.
    pub state: Option<RunState>,
    /// Whether the run was imported from another machine.
    pub imported: bool,
    /// Median CPU time of the probes before and after the run's trials, ns; `None` without probes.
    pub probe_ns: Option<f64>,
}

/// A run in a history, with the machine's speed at the time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// Name, start, revision and state of the run.
    #[serde(flatten)]
    pub head: RunHead,
    /// Speed in the probes relative to the median of the machine's runs: 0.08 means 8 % faster. `None` without probes.
    pub speed: Option<f64>,
}

/// Values of a design point over the runs of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryPoint {
    /// Label of the design point in the latest run that has it.
    pub label: String,
    /// Level of each factor, by factor name.
    pub factors: BTreeMap<String, Level>,
    /// Idle policy of the CPUs in the trials.
    pub idle: IdlePolicy,
    /// Value in each run of [`MachineHistory::runs`]; `None` for a run that did not measure the design point.
    pub values: Vec<Option<PointValue>>,
}

/// Value of a metric at a design point in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointValue {
    /// Mean over the trials, in the metric's unit.
    pub mean: f64,
    /// Mean with its interval; `None` if it has no interval.
    pub estimate: Option<Estimate>,
    /// Whether the mean is a lower bound.
    pub at_least: bool,
    /// Number of trials with a measurement.
    pub n: u64,
    /// Reasons why the trials do not measure the server; empty if they do.
    pub marks: Vec<Mark>,
    /// Git commit of the server; `None` if it equals [`RunHead::revision`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl PointValue {
    /// Returns the revision of the measured server; `None` if unknown. `head` describes the run of this value.
    pub fn revision_in<'a>(&'a self, head: &'a RunHead) -> Option<&'a str> {
        self.revision.as_deref().or(head.revision.as_deref())
    }
}

/// Two runs of different revisions whose intervals do not overlap. Runs of the same server often differ as much.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Index of the design point in [`MachineHistory::points`].
    pub point: usize,
    /// Index of the earlier run in [`MachineHistory::runs`].
    pub from: usize,
    /// Index of the later run in [`MachineHistory::runs`].
    pub to: usize,
    /// The change between the two runs in words.
    pub sentence: String,
    /// Command that compares both revisions in one run; if `None`, `note` gives the reason.
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
    /// Common properties and differences of the runs in words: machine, study, revision.
    pub headline: String,
    /// The two runs, in the order in which their values are shown.
    pub runs: [RunHead; 2],
    /// Machines of the two runs, in the order of `runs`.
    pub machines: [Machine; 2],
    /// Metrics with a value in at least one run, in display order.
    pub metrics: Vec<&'static Metric>,
    /// Design points that at least one of the runs measured.
    pub points: Vec<SidePoint>,
    /// Why there is no verdict, and what the probes show about the machine, one reason per entry.
    pub reasons: Vec<String>,
    /// Command that would give a verdict; if `None`, `note` gives the reason.
    pub command: Option<String>,
    /// Note about the command, or why there is none; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Values of a design point in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SidePoint {
    /// Label of the design point, made of its levels.
    pub label: String,
    /// Values in both runs, by metric name; `None` for a run without a value.
    pub values: BTreeMap<String, [Option<PointValue>; 2]>,
}
