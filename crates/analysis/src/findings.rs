//! The results of analyzing a run: everything a renderer shows, with nothing left to compute.

mod agents;
mod containers;
mod cpu_profile;
mod gate;
mod history;
mod miss_ratio;
mod operations;
mod proxy_overhead;
mod request_trends;
mod run_conditions;
mod trial_timeline;

use std::collections::{BTreeMap, BTreeSet};

use crate::compact_metric_values::MetricValues;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Bound;
use study::plan::{Design, Figure, Level, Table};
use study::record::{
    Build, Calibration, Censored, FailureKind, Finding, Histogram, Host, IdlePolicy, Limit, NetworkCounters, Node,
    Purpose, RunState,
};
use study::{Metric, WarningKind};

pub use stats::Estimate;
pub use stats::effects::{Scale as EffectScale, Source as SourceKind};
pub use stats::search::{Bound as SearchBound, End as SearchEnd, Rate as SearchRate, Verdict as SearchVerdict};

pub use self::agents::{AgentFinding, MedianRange};
pub use self::containers::HostedFinding;
pub use self::cpu_profile::{ProfileDifference, ProfileFinding, ShareDifference};
pub use self::gate::{GateFinding, GateTest, GateVerdict};
pub use self::history::{
    HISTORY_VERSION, History, HistoryPoint, HistoryRun, Machine, MachineHistory, PointValue, RunHead, SideBySide,
    SidePoint, Step,
};
pub use self::miss_ratio::{CurvePolicy, MissRatioCurve, MissRatioPoint, MissRatios, PolicyPoint};
pub use self::operations::{OperationFinding, OverTrials, RowOperations};
pub use self::proxy_overhead::{Added, AddedMetric};
pub use self::request_trends::{OverRequests, RequestPoint, Trend as RequestTrend};
pub use self::run_conditions::{Probed, ProbedTrial, Scope, States};
pub use self::trial_timeline::{Column, InsideTrial, Process, Role};

/// Version of [`Findings`] that this build writes.
pub const FINDINGS_VERSION: u32 = 3;

/// The findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// Format version, [`FINDINGS_VERSION`].
    pub version: u32,
    /// Name of the run, unique within its store.
    pub run: String,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Name of the study.
    pub study: String,
    /// The study's question.
    pub question: String,
    /// The kind of question, in words: `which server is best`.
    pub asked: String,
    /// The answer, one sentence per entry, most important first. A sentence states if there is no answer.
    pub answer: Vec<Sentence>,
    /// Whether this is a quick run, whose intervals claim no confidence level.
    pub quick: bool,
    /// Profile: `default`, `quick` or `full`.
    pub profile: String,
    /// Confidence level of every interval, a fraction.
    pub level: f64,
    /// Metric of the stop rule.
    pub metric: String,
    /// Command line that started the run.
    pub command: Vec<String>,
    /// Version of quintain that ran the trials.
    pub quintain: String,
    /// Git revision of the study's directory, if known.
    pub revision: Option<String>,
    /// Git commit of the working directory in which servers were built, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Time at which the run was imported from a file, UTC, RFC 3339. Empty if the run was executed with this store.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// Seed of the trial order and of every trial.
    pub seed: u64,
    /// Text of the study file.
    pub study_text: String,
    /// Factors, in the order of the study.
    pub factors: Vec<Factor>,
    /// Present if the run did not end normally; the findings cover the trials so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// Metrics that occur, in display order.
    pub metrics: Vec<&'static Metric>,
    /// The load in words: what all design points share and how they differ.
    pub load: String,
    /// Figures requested by the study.
    pub figures: Vec<Figure>,
    /// Tables requested by the study.
    pub tables: Vec<Table>,
    /// One row per design point; two if a point was measured under both idle policies.
    pub rows: Vec<Row>,
    /// Comparisons of contenders: first by the study's metric, then by other metrics it shows.
    pub comparisons: Vec<Comparison>,
    /// Candidates compared with a baseline; `None` if the study has no gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateFinding>,
    /// Trend of the study's metric over each numeric factor, from its first to its last level.
    pub trends: Vec<Trend>,
    /// Searches for the capacities from which design points derive their rates; not design points of the study.
    pub capacities: Vec<Row>,
    /// Scalability over a numeric factor, one entry per series.
    pub scalability: Vec<Scalability>,
    /// Effects and interactions of the factors by metric and idle policy; empty unless two or more factors vary.
    pub effects: Vec<Effects>,
    /// Servers in containers, and companions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosted: Vec<HostedFinding>,
    /// CPU profiles of the servers, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<ProfileFinding>,
    /// Differences between the CPU profiles of two contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_differences: Vec<ProfileDifference>,
    /// Miss-ratio curves of caches, in the order of their figures.
    pub miss_ratios: Vec<MissRatios>,
    /// Results per operation, for each row whose trials are journeys.
    pub operations: Vec<RowOperations>,
    /// Overhead of proxies at each design point, relative to the same point at `direct`.
    pub added: Vec<Added>,
    /// Trends over the requests of a trial, if the study requests them.
    pub over_requests: Vec<OverRequests>,
    /// Timeline of one trial for each of the first rows.
    pub inside: Vec<InsideTrial>,
    /// Conditions that the absolute values depend on; `None` if nothing was measured.
    pub scope: Option<Scope>,
    /// Whether the machine's speed changed during the run; `None` if there are too few trials to tell.
    pub states: Option<States>,
    /// Probes: a fixed piece of work before and after each trial; `None` if there were none.
    pub probes: Option<Probed>,
    /// Network stack counters, summed over all trials.
    pub network: NetworkCounters,
    /// The machine; for a cluster, the machine that ran the lab.
    pub machine: Host,
    /// Machines of the cluster on one line; empty for a single machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Machines of the cluster, one per entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Limits of the generator on this machine against a null server, if measured.
    pub calibration: Option<Calibration>,
    /// Builds of the servers.
    pub builds: Vec<Build>,
    /// Findings of `quintain doctor` when the run started.
    pub doctor: Vec<Finding>,
    /// How the numbers were obtained, one paragraph per entry.
    pub method: Vec<String>,
    /// Warnings about the run. Warnings shared by several rows are merged here; rows also keep their own.
    pub warnings: Vec<Warning>,
}

impl Findings {
    /// Looks up a metric by name.
    pub fn metric_info(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name).copied()
    }

    /// Returns the unit of a metric, or an empty string if no row has it.
    pub fn unit(&self, name: &str) -> &str {
        self.metric_info(name).map_or("", |metric| metric.unit)
    }

    /// Iterates over all rows, capacities first.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.capacities.iter().chain(&self.rows)
    }

    /// Iterates over the rows that are searches, with their results.
    pub fn searches(&self) -> impl Iterator<Item = (&Row, &SearchFinding)> {
        self.all_rows().filter_map(|row| Some((row, row.search.as_ref()?)))
    }
}

/// One finding in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sentence {
    /// Text that can be read on its own.
    pub text: String,
    /// Part of the findings that supports it.
    pub from: Source,
}

impl std::fmt::Display for Sentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parts of the findings that can support a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// [`Findings::rows`].
    Rows,
    /// [`Findings::comparisons`].
    Comparisons,
    /// [`Findings::gate`].
    Gate,
    /// [`Findings::trends`].
    Trends,
    /// [`Findings::added`].
    Added,
    /// [`Findings::searches`].
    Searches,
    /// [`Findings::scalability`].
    Scalability,
    /// [`Findings::effects`].
    Effects,
    /// [`Findings::miss_ratios`].
    MissRatios,
    /// [`Findings::over_requests`].
    OverRequests,
}

/// A comparison of contenders by one metric under one idle policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Name of the compared metric.
    pub metric: String,
    /// Whether this is the study's metric. In other metrics, about one comparison in twenty differs by chance.
    pub headline: bool,
    /// Factor whose levels compete.
    pub factor: String,
    /// Idle policy of the CPUs.
    pub idle: IdlePolicy,
    /// Combinations of the other factors at which at least two contenders were measured.
    pub places: Vec<ComparedPlace>,
}

/// A comparison of contenders at one combination of the other factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPlace {
    /// Levels of the other factors that vary, `clients 40`; empty if none do.
    pub label: String,
    /// Contenders as indices into [`Findings::rows`], in plan order.
    pub rows: Vec<usize>,
    /// Row with the best typical ratios to the others, whether it leads or not; `None` without common blocks.
    pub best: Option<usize>,
    /// Whether it was shown to be better than every other contender.
    pub leads: bool,
    /// Probability of such a clear lead by chance, adjusted for all places (Holm).
    pub p_lead: f64,
    /// Rows that were not shown to be worse than another.
    pub may_be_best: Vec<usize>,
    /// Minimum number of common blocks over all pairs.
    pub blocks: u64,
    /// All pairs of contenders.
    pub pairs: Vec<Difference>,
}

/// A comparison of two design points, block by block.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Row of the first design point.
    pub a: usize,
    /// Row of the second design point.
    pub b: usize,
    /// Number of common blocks.
    pub blocks: u64,
    /// Typical ratio b/a (Hodges & Lehmann) with its signed rank interval; `None` for too few blocks.
    pub ratio: Option<Estimate>,
    /// Ratio of the geometric means b/a with the paired Student t interval.
    pub mean_ratio: Option<Estimate>,
    /// Probability of such a clear difference by chance (Wilcoxon's signed rank, exact, two-sided).
    pub p: f64,
    /// `p` adjusted for all comparisons by this metric (Holm).
    pub p_adjusted: f64,
    /// Whether a difference is shown.
    pub shown: bool,
    /// Smallest difference that would probably have been shown, a fraction; `None` if unknown.
    pub could_show: Option<f64>,
    /// Whether the typical ratio and the ratio of means disagree, which indicates different kinds of starts.
    pub kinds_of_starts: bool,
}

/// Change of a metric from the first to the last level of a numeric factor, with the other factors fixed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    /// Name of the metric that changes.
    pub metric: String,
    /// Name of the numeric factor.
    pub factor: String,
    /// Levels of the other factors that vary; empty if none do.
    pub label: String,
    /// The first level.
    pub from: Level,
    /// The last level.
    pub to: Level,
    /// The change; `a` is the row at `from`.
    pub change: Difference,
}

/// A run that was interrupted or is still in progress.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unfinished {
    /// Whether it was interrupted or is in progress.
    pub state: RunState,
    /// Number of trials so far.
    pub trials: u64,
    /// Minimum number of trials in the plan.
    pub trials_min: u64,
    /// State in words: `interrupted after 5 of at least 15 trials`.
    pub sentence: String,
    /// Shell command that resumes the run; empty while it is in progress and if the command is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resume: String,
}

/// A factor and its levels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Factor {
    /// Name in the study.
    pub name: String,
    /// Levels: numbers ascending, text in plan order.
    pub levels: Vec<Level>,
    /// Whether every level is a number, so that the factor can be an axis.
    pub numeric: bool,
}

impl Factor {
    /// Whether the factor has more than one level.
    pub fn varies(&self) -> bool {
        self.levels.len() > 1
    }

    /// Names a level: text unchanged, a number with its factor.
    pub fn named(&self, level: &Level) -> String {
        match level {
            Level::Text(word) => word.clone(),
            number => format!("{} {number}", self.name),
        }
    }
}

/// Results of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Index of the design point in the plan.
    pub point: usize,
    /// Levels in factor order, `c-epoll, cores 1, clients 40`, of the factors that vary, or of all if none do.
    pub label: String,
    /// Levels by factor name.
    pub factors: BTreeMap<String, Level>,
    /// CPUs of the server.
    pub cpus: u32,
    /// CPUs that the study requests; `None` if the server has all of them.
    pub cpus_wanted: Option<u32>,
    /// Idle policy in force; `None` if no trial ran.
    pub idle: Option<IdlePolicy>,
    /// Whether it was measured.
    pub state: RowState,
    /// Number of trials with a measurement.
    pub n: usize,
    /// Trials without a measurement, by kind.
    pub failures: Vec<FailureCount>,
    /// Estimates over the trials, by metric name; metrics without a value in any trial are absent.
    pub metrics: BTreeMap<String, MetricFinding>,
    /// The bottleneck.
    pub limited_by: Option<LimitFinding>,
    /// Reasons why the row does not measure the server.
    pub marks: Vec<Mark>,
    /// Results of each generator, if the load came from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// The search whose steps are these trials; `metrics` then covers the trials at its lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFinding>,
    /// Which clock the latencies use.
    pub clock: Option<Clock>,
    /// Latencies of all trials merged, ns. Used for distributions.
    pub latency: Option<Histogram>,
    /// Requests that were due but had no response when their trial ended: number and wait, over all
    /// trials. `None` in old stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub censored: Option<Box<Censored>>,
    /// Failed requests of all trials, by kind.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each kind that carries a message.
    pub error_examples: BTreeMap<String, String>,
    /// Responses by HTTP status over all trials, valid or not.
    pub statuses: BTreeMap<u16, u64>,
    /// TLS handshakes of all trials; 0 without TLS.
    pub handshakes: u64,
    /// TLS handshakes that resumed a session.
    pub handshakes_resumed: u64,
    /// Valid responses of all trials.
    pub requests: u64,
    /// Trials in execution order.
    pub trials: Vec<TrialFinding>,
    /// Why no further trials ran, `target met: ±2.1 % after 9 trials`.
    pub stop_reason: String,
    /// Whether trials were steady when measuring began; `None` for too few trials or windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyFinding>,
    /// Why a measured row is not ranked: it fails a larger share of requests than another contender at its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_errors: Option<String>,
    /// Warnings, with `(3 of 8 trials)` if they do not apply to all.
    pub warnings: Vec<Warning>,
}

/// Whether the trials of a row had reached a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyFinding {
    /// `false` if the halves of its trials differ by more than 2 % and by more than chance explains in this report.
    pub reached: bool,
    /// Mean latency of the second half of a trial over that of the first, over trials, with this row's own interval.
    pub change: Estimate,
    /// Probability of such a large change by chance, adjusted for all rows (Holm).
    pub p_adjusted: f64,
}

/// A warning about a row or the whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// Topic.
    pub kind: WarningKind,
    /// One line without a full stop.
    pub text: String,
    /// Number of trials affected; 0 if it is not about trials.
    pub trials: usize,
    /// Warnings that were merged into it, one line each; empty if `text` is complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Warning {
    /// Creates a warning without details.
    pub fn new(kind: WarningKind, text: impl Into<String>, trials: usize) -> Self {
        Warning { kind, text: text.into(), trials, details: Vec::new() }
    }
}

impl Row {
    /// Returns the estimate of a metric, if any.
    pub fn estimate(&self, metric: &str) -> Option<&Estimate> {
        self.metrics.get(metric)?.estimate.as_ref()
    }

    /// Returns the mean of a metric, if it has values.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }

    /// Counts failed requests over all trials and kinds.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether the row must not be compared with others.
    pub fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether the row measures something other than the server.
    pub fn is_about_others(&self) -> bool {
        self.marks.iter().any(|mark| *mark != Mark::Hung)
    }

    /// Counts trials in which the server hung.
    pub fn hung(&self) -> usize {
        self.trials.iter().filter(|trial| trial.marks.contains(&Mark::Hung)).count()
    }

    /// Whether the value of a metric is a lower bound.
    pub fn is_at_least(&self, metric: &str) -> bool {
        self.metrics.get(metric).is_some_and(|found| found.at_least)
    }

    /// Returns the marks that prevent comparing the row by a metric. `is_broken` is whether an
    /// absolute limit is claimed to be exceeded, which other work on the CPUs may explain.
    pub(crate) fn forbidding(&self, metric: &Metric, is_broken: bool) -> Option<String> {
        let forbids = |mark: &&Mark| mark.forbids(metric) || **mark == Mark::Shared && is_broken && is_pace(metric);
        let marks = self.marks.iter().filter(forbids).map(|mark| mark.text()).collect::<Vec<_>>();
        (!marks.is_empty()).then(|| marks.join(", "))
    }
}

/// State of a design point, with its reason in one sentence unless all trials are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", content = "reason", rename_all = "kebab-case")]
pub enum RowState {
    /// All trials are complete.
    Measured,
    /// Some trials are complete; others failed or have not run yet.
    Partial(String),
    /// This machine cannot run the design point.
    Unrunnable(String),
    /// A toolchain is missing, or no trial has started.
    Skipped(String),
    /// The build or every trial failed.
    Failed(String),
}

impl RowState {
    /// Returns the reason, unless all trials are complete.
    pub fn reason(&self) -> Option<&str> {
        match self {
            RowState::Measured => None,
            RowState::Partial(why) | RowState::Unrunnable(why) | RowState::Skipped(why) | RowState::Failed(why) => {
                Some(why)
            }
        }
    }

    /// Returns the state as one word.
    pub fn word(&self) -> &'static str {
        match self {
            RowState::Measured => "measured",
            RowState::Partial(_) => "partial",
            RowState::Unrunnable(_) => "unrunnable",
            RowState::Skipped(_) => "skipped",
            RowState::Failed(_) => "failed",
        }
    }
}

/// Failed trials of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureCount {
    /// Kind that these failures share.
    pub kind: FailureKind,
    /// Number of failed trials of this kind.
    pub count: usize,
    /// Message of the first such trial.
    pub message: String,
}

/// One metric over the trials of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MetricFinding {
    /// Mean over the trials with its Student t interval; if `None`, see `mean` and `note`.
    pub estimate: Option<Estimate>,
    /// Mean over the trials, if there are values, with or without an interval.
    pub mean: Option<f64>,
    /// Whether the mean is a lower bound because requests that could change it still waited when a trial ended. The
    /// metric then has no estimate and the row is not compared by it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Standard deviation of the trials' values; `None` for fewer than two trials.
    pub stddev: Option<f64>,
    /// Standard deviation between trials, excluding variation within trials; `None` if the windows do not show it.
    pub s_between: Option<f64>,
    /// Standard deviation of windows within a trial; `None` if the windows do not show it.
    pub s_within: Option<f64>,
    /// Trial length with the narrowest interval for a fixed total time, s; `None` without `s_between` or `s_within`.
    pub best_trial_s: Option<f64>,
    /// Whether the stop rule's target is met; `None` if the rule does not use this metric.
    pub target_met: Option<bool>,
    /// Why there is no estimate, or a caveat: `not enough samples`.
    pub note: Option<String>,
}

/// The bottleneck over the trials of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitFinding {
    /// Limit of most trials. A tie goes to the limit that says least about the server.
    pub limit: Limit,
    /// Number of trials per limit.
    pub counts: BTreeMap<Limit, usize>,
    /// Reasons given by the first trial with this limit.
    pub reasons: Vec<String>,
    /// Whether `subject` means the server or the path to it, which was not measured and could explain the evidence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub path_unknown: bool,
}

/// Reasons not to read a row or a trial as a measurement of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The generator was the limit.
    GeneratorBound,
    /// The network between generators and server was the limit.
    NetworkBound,
    /// Server and generator shared CPUs.
    Shared,
    /// The server stopped responding on all connections until the end of the trial.
    Hung,
}

impl Mark {
    /// The mark of a trial that was limited by something other than the server.
    pub fn of(limit: Limit) -> Option<Mark> {
        match limit {
            Limit::Generator => Some(Mark::GeneratorBound),
            Limit::Network => Some(Mark::NetworkBound),
            Limit::Shared => Some(Mark::Shared),
            Limit::Subject | Limit::Proxy | Limit::Neither | Limit::Latency => None,
        }
    }

    /// Returns a short description.
    pub fn text(self) -> &'static str {
        match self {
            Mark::GeneratorBound => "generator-bound",
            Mark::NetworkBound => "network-bound",
            Mark::Shared => "shared CPUs",
            Mark::Hung => "hung",
        }
    }

    /// Whether the mark prevents comparing servers by this metric. The order of both sides of a block is random. A
    /// disturbance that ignores the side (another process on the CPUs) leaves values exchangeable (Fisher 1935): the
    /// signed-rank test keeps its error and only loses power. A limit common to both sides, a busy generator,
    /// determines throughput and latency, but not the server's CPU time per request.
    pub fn forbids(self, metric: &Metric) -> bool {
        match self {
            Mark::Shared => false,
            Mark::GeneratorBound | Mark::NetworkBound => is_pace(metric),
            Mark::Hung => !is_size(metric) && !matches!(metric.name, "errors" | "error_share"),
        }
    }
}

/// Whether a metric is a speed: a rate, or a time other than CPU time.
fn is_pace(metric: &Metric) -> bool {
    matches!(metric.unit, "1/s" | "bytes/s" | "ns") && !metric.name.ends_with("_cpu_per_request")
}

fn is_size(metric: &Metric) -> bool {
    metric.unit == "bytes" && !metric.name.ends_with("_per_request")
}

/// The point at which the latency of a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The write of the request (closed loop).
    Service,
    /// The intended send time (open loop).
    Response,
}

/// One trial of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialFinding {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Number of the block, from 0.
    pub block: u32,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// Offered rate, per second; `None` for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Values by metric name; empty if the trial failed.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub values: MetricValues,
    /// Metrics whose value is a lower bound because requests were still waiting at the end.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub at_least: BTreeSet<&'static str>,
    /// Requests that were sent but had no response at the end.
    pub in_flight: u64,
    /// Requests that were due but not sent by the end.
    pub unsent: u64,
    /// The bottleneck.
    pub limited_by: Option<Limit>,
    /// Reasons why the trial does not measure the server.
    pub marks: Vec<Mark>,
    /// Metrics in which it is an outlier. Outliers are flagged, never removed.
    pub outlier_in: Vec<String>,
    /// Whether another process used a CPU before or after it; see [`Findings::probes`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contended: bool,
    /// Reason why the trial has no values.
    pub failed: Option<String>,
}

impl TrialFinding {
    /// Returns the value of a metric, which may be a lower bound.
    pub fn bound(&self, metric: &str) -> Option<Bound> {
        Some(Bound { value: self.values.get(metric)?, at_least: self.at_least.contains(metric) })
    }

    /// Returns the value of a metric unless it is a lower bound.
    pub fn known(&self, metric: &str) -> Option<f64> {
        self.bound(metric).filter(|bound| !bound.at_least).map(|bound| bound.value)
    }
}

/// Result of a search: the range from the highest rate confirmed to meet the objective to the lowest that fails.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchFinding {
    /// The objective, `p99 < 5ms and errors < 0.1%`.
    pub objective: String,
    /// Lower end of the range, which meets the objective.
    pub low: Option<SearchEnd>,
    /// Upper end of the range, which fails it.
    pub high: Option<SearchEnd>,
    /// Why there is no lower end.
    pub no_low: Option<String>,
    /// Why there is no upper end; `generator-limited from ...` means that the server's limit was not reached.
    pub no_high: Option<String>,
    /// Lowest rate at which the generator was the limit, per second.
    pub generator_from_per_s: Option<f64>,
    /// Undecided rates within the range, per second.
    pub undecided_per_s: Vec<f64>,
    /// Rates above the upper end that still met the objective, per second.
    pub contradictions_per_s: Vec<f64>,
    /// Whether the search is complete: both ends are confirmed, or one is shown to be out of reach.
    pub complete: bool,
    /// Why the search ended.
    pub ended: String,
    /// Limit of the result.
    pub bound: SearchBound,
    /// Target width of the range: upper over lower end, minus one.
    pub resolution: f64,
    /// Number of trials, including the pilot.
    pub trials: usize,
    /// Result in words, `holds 41.2 k/s, fails at 43.0 k/s: p99 < 5ms; 14 trials`.
    pub sentence: String,
    /// Rates tried, ascending.
    pub rates: Vec<SearchRate>,
    /// Trials in execution order.
    pub steps: Vec<SearchStep>,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchStep {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Purpose of the trial.
    pub purpose: Purpose,
    /// Offered rate, per second; `None` for the pilot.
    pub rate_per_s: Option<f64>,
    /// Verdict of this trial.
    pub verdict: SearchVerdict,
    /// The deciding value, `p99 7.20 ms`.
    pub why: String,
    /// Values that the objective uses, if they exist.
    pub values: Vec<SearchValue>,
    /// The trial; `None` if it was not part of a study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialFinding>,
}

/// Value of a condition in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchValue {
    /// Name of the metric in the condition.
    pub metric: String,
    /// The condition, `p99 < 5ms`.
    pub condition: String,
    /// Bound of the condition, in the metric's unit.
    pub bound: f64,
    /// Value in this trial, in the metric's unit.
    pub value: f64,
    /// Lower end of its 95 % interval within the trial; `None` if there is no interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// Throughput over a numeric factor, modeled by the Universal Scalability Law.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scalability {
    /// The factor on the axis.
    pub factor: String,
    /// Levels of all other factors.
    pub series: BTreeMap<String, Level>,
    /// The series in words.
    pub label: String,
    /// Measured levels, ascending.
    pub points: Vec<ScalabilityPoint>,
    /// The fit; if `None`, `sentence` gives the reason.
    pub fit: Option<UslFit>,
    /// Fitted curve from the smallest to the largest N used for the fit, ascending; empty without a fit.
    pub curve: Vec<CurvePoint>,
    /// Result in words, or why there is no fit.
    pub sentence: String,
}

/// Throughput at one N.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScalabilityPoint {
    /// Level of the factor: the N of the law.
    pub n: f64,
    /// Mean throughput of the trials, per second.
    pub rate_per_s: f64,
    /// Number of trials.
    pub trials: usize,
    /// Fitted throughput, per second; `None` without a fit.
    pub fitted_per_s: Option<f64>,
    /// Mean over N times the fitted throughput at 1: 1 is linear scaling; `None` without a fit.
    pub efficiency: Option<f64>,
    /// Why this point is excluded from the fit; `None` if it is included.
    pub left_out: Option<String>,
}

/// A point on the fitted curve. The interval covers the mean of many trials if the law holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// Level of the factor: the N of the law.
    pub n: f64,
    /// Throughput, per second.
    pub rate_per_s: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Fitted Universal Scalability Law, `X(N) = rate N / (1 + contention (N-1) + coherency N (N-1))` (Gunther 2007).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UslFit {
    /// Throughput at `N = 1`, per second.
    pub rate_per_s: Estimate,
    /// Share of work that is serial.
    pub contention: Estimate,
    /// Cost of coherency between copies.
    pub coherency: Estimate,
    /// N with the highest throughput; `None` if throughput only rises.
    pub peak: Option<f64>,
    /// Lower end of the peak's interval; `None` if it is unbounded.
    pub peak_low: Option<f64>,
    /// Upper end of the peak's interval.
    pub peak_high: Option<f64>,
    /// Share of the variation explained by the fit.
    pub r_squared: f64,
}

/// Effects of a study's factors on one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effects {
    /// Name of the analyzed metric.
    pub metric: String,
    /// Idle policy of the CPUs; trials under two policies are never mixed.
    pub idle: IdlePolicy,
    /// Which combinations of levels were measured.
    pub design: Design,
    /// Factors that vary, with the levels that have trials.
    pub factors: Vec<Factor>,
    /// Levels without measurements, `cores 8`; the analysis covers the others.
    pub left_out: Vec<String>,
    /// Why there is no analysis; `None` if there is one.
    pub refused: Option<String>,
    /// Why it does not measure only the server; `None` if it does.
    pub marked: Option<String>,
    /// Analyses of ratios, if zero means none in this metric, and of differences. The sentences use
    /// the first one.
    pub analyses: Vec<EffectAnalysis>,
    /// Interpretation: shown effects first, sorted by share of the variation, largest first.
    pub sentences: Vec<String>,
    /// Number of sentences that state a shown effect.
    pub shown: usize,
}

/// One analysis of variance (Jain 1991, chapters 17, 18, 22).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectAnalysis {
    /// Whether effects are ratios or differences.
    pub scale: EffectScale,
    /// Number of design points.
    pub points: usize,
    /// Number of trials.
    pub trials: usize,
    /// Whether all points have equally many trials. If not, sums of squares are of type III, and
    /// shares refer to their total.
    pub equal: bool,
    /// Standard deviation between trials of one point, pooled over all points: of logarithms, or in the metric's unit.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub error_df: usize,
    /// Number of blocks separated from the error; 1 if none were.
    pub blocks: usize,
    /// Upper bound on the probability of such unequal scatter between points by chance; `None` if unknown.
    pub uneven_p: Option<f64>,
    /// Sources of variation; their shares sum to 1.
    pub sources: Vec<EffectSource>,
    /// Effect of each level: its mean relative to the mean of all points. Empty for one-at-a-time designs.
    pub levels: Vec<LevelEffect>,
    /// Joint effects of two levels beyond their separate effects. Empty for one-at-a-time designs.
    pub interactions: Vec<InteractionEffect>,
    /// Changes between levels: from the first level to each other one; for numbers from the first to the last.
    pub changes: Vec<EffectChange>,
}

/// A row of the analysis of variance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectSource {
    /// Source of the variation: effects, blocks or error.
    pub kind: SourceKind,
    /// Factors: one for a main effect, two for an interaction, otherwise none.
    pub factors: Vec<String>,
    /// Share of the variation, a fraction.
    pub share: f64,
    /// Sum of squares.
    pub squares: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// Mean square divided by the error's mean square; `None` for the error and if the error is zero.
    pub f: Option<f64>,
    /// p-value of the F test; `None` for the error.
    pub p: Option<f64>,
    /// p-value adjusted for all effects tested for this metric (Holm); `None` for sources that are not factors.
    pub p_adjusted: Option<f64>,
}

/// Effect of a level, averaged over the other factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelEffect {
    /// Name of the factor.
    pub factor: String,
    /// Level whose effect this is.
    pub level: Level,
    /// Effect relative to the mean of all points.
    pub effect: Estimate,
}

/// Joint effect of two levels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InteractionEffect {
    /// Names of the two factors.
    pub factors: [String; 2],
    /// Their levels, in the same order.
    pub levels: [Level; 2],
    /// Effect beyond the separate effects.
    pub effect: Estimate,
}

/// Effect of changing from one level to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectChange {
    /// Name of the factor that changes.
    pub factor: String,
    /// Level before the change.
    pub from: Level,
    /// Level after the change.
    pub to: Level,
    /// Level of another factor at which it applies. `None` means on average, or at the others'
    /// first levels in a one-at-a-time design.
    pub at: Option<ChangeAt>,
    /// Effect of the change, on the scale of the analysis.
    pub change: Estimate,
    /// Smallest change that these trials would show with 80 % probability: a fraction, or in the metric's unit.
    pub detectable: f64,
    /// Probability of such a large change by chance in a one-at-a-time design, adjusted for all changes of the metric
    /// (Holm). `None` in other designs, which test sources of variation.
    pub p_adjusted: Option<f64>,
}

/// A level of another factor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeAt {
    /// Name of the other factor.
    pub factor: String,
    /// Level of that factor.
    pub level: Level,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_forbid_the_metrics_they_determine() {
        let forbidden = |mark: Mark| {
            let names =
                ["throughput", "latency_p99", "subject_cpu_per_request", "subject_rss", "error_share", "hit_ratio"];
            names.into_iter().filter(|name| mark.forbids(Metric::named(name).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(forbidden(Mark::Shared), [""; 0]);
        assert_eq!(forbidden(Mark::GeneratorBound), ["throughput", "latency_p99"]);
        assert_eq!(forbidden(Mark::NetworkBound), ["throughput", "latency_p99"]);
        assert_eq!(forbidden(Mark::Hung), ["throughput", "latency_p99", "subject_cpu_per_request", "hit_ratio"]);
    }
}
