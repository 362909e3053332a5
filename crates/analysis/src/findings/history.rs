//! Runs of one study beside each other: over time, and two of them. They point, they do not judge.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::plan::Level;
use study::record::{IdlePolicy, RunState};

use super::{Estimate, Mark, MetricInfo};

/// The version of [`History`] and [`SideBySide`] that this build writes.
pub const HISTORY_VERSION: u32 = 1;

/// Runs of one study by time, each machine by itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// [`HISTORY_VERSION`].
    pub version: u32,
    /// The study.
    pub study: String,
    /// The metric.
    pub metric: MetricInfo,
    /// One for each machine, the one of the latest run first.
    pub machines: Vec<MachineHistory>,
}

/// Runs on one machine, or on one set of machines with one layout.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineHistory {
    /// What makes results comparable.
    pub machine: Machine,
    /// Median over its runs of [`RunHead::probe_ns`]; `None`: no run has probes.
    pub probe_ns_median: Option<f64>,
    /// The runs, the first to start first.
    pub runs: Vec<HistoryRun>,
    /// The design points that some run has measured.
    pub points: Vec<HistoryPoint>,
    /// Where two runs differ by more than their intervals beside a change of revision.
    pub steps: Vec<Step>,
}

/// A machine, by what makes results comparable. Nothing is compared between two that differ in any of it.
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
    /// The machines of the cluster with their roles; empty: all ran on one.
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

/// What is known of a run besides its values.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunHead {
    /// Its name.
    pub run: String,
    /// Its study.
    pub study: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Git commit of the working directory, of older runs that of the study's directory; ends in `-dirty` where files had changes. `None`: not in a checkout.
    pub revision: Option<String>,
    /// `default`, `quick` or `full`.
    pub profile: String,
    /// A quick run: its intervals have no stated confidence.
    pub quick: bool,
    /// Its state; `None`: stored by an older quintain.
    pub state: Option<RunState>,
    /// It ran elsewhere and was imported.
    pub imported: bool,
    /// Median CPU time of the fixed piece of work before and after its trials, ns; `None`: there was none.
    pub probe_ns: Option<f64>,
}

/// A run in a history.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// The run.
    #[serde(flatten)]
    pub head: RunHead,
    /// Speed of the machine in this run relative to the median of its runs here, by the probe: 0.08 is 8 % faster.
    pub speed: Option<f64>,
}

/// A design point over runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryPoint {
    /// Its label in the latest run that has it.
    pub label: String,
    /// Levels of the factors.
    pub factors: BTreeMap<String, Level>,
    /// What idle CPUs did.
    pub idle: IdlePolicy,
    /// Its value in each run of [`MachineHistory::runs`]; `None`: not measured there.
    pub values: Vec<Option<PointValue>>,
}

/// A metric of a design point in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointValue {
    /// Mean over its trials.
    pub mean: f64,
    /// The same with its interval, if it has one.
    pub estimate: Option<Estimate>,
    /// The mean is a lower bound.
    pub at_least: bool,
    /// Trials.
    pub n: u64,
    /// Why it does not measure the server alone.
    pub marks: Vec<Mark>,
    /// Git commit of the server; `None`: the same as [`RunHead::revision`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl PointValue {
    /// The measured revision, in a run with this head.
    pub fn revision_in<'a>(&'a self, head: &'a RunHead) -> Option<&'a str> {
        self.revision.as_deref().or(head.revision.as_deref())
    }
}

/// Two runs of a design point whose intervals lie apart, between which the revision changed. No verdict: separate runs of one server often do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Index among [`MachineHistory::points`].
    pub point: usize,
    /// Index of the earlier run among [`MachineHistory::runs`].
    pub from: usize,
    /// Index of the later one.
    pub to: usize,
    /// It in words.
    pub sentence: String,
    /// The command that compares both revisions in one run; `None`: see `note`.
    pub command: Option<String>,
    /// What to know of the command, or why there is none; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Two stored runs beside each other, without a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideBySide {
    /// [`HISTORY_VERSION`].
    pub version: u32,
    /// What the two have in common, and what not: machine, study, revision.
    pub headline: String,
    /// The runs.
    pub runs: [RunHead; 2],
    /// Their machines.
    pub machines: [Machine; 2],
    /// The metrics, in the order of the tables.
    pub metrics: Vec<MetricInfo>,
    /// The design points of either run.
    pub points: Vec<SidePoint>,
    /// Why there is no verdict, and what the probe says of the machine.
    pub reasons: Vec<String>,
    /// The command that would give one; `None`: see `note`.
    pub command: Option<String>,
    /// What to know of the command, or why there is none; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A design point in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SidePoint {
    /// Its label.
    pub label: String,
    /// Its values in both runs, by metric; `None`: that run has none.
    pub values: BTreeMap<String, [Option<PointValue>; 2]>,
}
