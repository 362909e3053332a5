//! What analysis made of the records: everything that a renderer shows, and nothing that it must still work out.

mod agents;
mod conditions;
mod containers;
mod cpu_profile;
mod gate;
mod history;
mod miss_ratio;
mod operations;
mod proxy_overhead;
mod request_trends;
mod trial_timeline;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::WarningKind;
use study::plan::{Design, Figure, Level, Table};
use study::record::{
    Build, Calibration, Censored, FailureKind, Finding, Histogram, Host, IdlePolicy, Limit, NetworkCounters, Node,
    Purpose, RunState,
};

pub use stats::Estimate;
pub use stats::search::{Bound as SearchBound, End as SearchEnd, Rate as SearchRate, Verdict as SearchVerdict};

pub use self::agents::{AgentFinding, MedianRange};
pub use self::conditions::{Probed, ProbedTrial, Scope, States};
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
pub use self::trial_timeline::{Column, InsideTrial, Process, Role};

/// The version of [`Findings`] that this build writes.
pub const FINDINGS_VERSION: u32 = 2;

/// What a run has found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// [`FINDINGS_VERSION`].
    pub version: u32,
    /// Name of the run, unique in its store.
    pub run: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Name of the study.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// What is asked, in words: `which server is best`.
    pub asked: String,
    /// The answer, sentence by sentence, the most important first; says so when there is none.
    pub answer: Vec<Sentence>,
    /// A quick run: the intervals do not claim their level.
    pub quick: bool,
    /// `default`, `quick` or `full`.
    pub profile: String,
    /// Level of confidence of every interval, a fraction.
    pub level: f64,
    /// The metric that the stop rule of the trials looks at.
    pub metric: String,
    /// The command line that started the run.
    pub command: Vec<String>,
    /// Version of quintain that measured.
    pub quintain: String,
    /// Git revision of the study's folder, where known.
    pub revision: Option<String>,
    /// Git commit of the working directory, where servers were built, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When the run was imported from a file, UTC, RFC 3339; empty: it ran with the store that it is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// Seed of the order and of every trial.
    pub seed: u64,
    /// Text of the study file.
    pub study_text: String,
    /// The factors, in the order of the study.
    pub factors: Vec<Factor>,
    /// Where the run has not ended as it should: what is reported is what there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// The metrics that occur, in the order in which they should be shown.
    pub metrics: Vec<MetricInfo>,
    /// What was asked, by how many, and how: what all design points have in common, and what differs between them.
    pub load: String,
    /// The figures that the study asks for.
    pub figures: Vec<Figure>,
    /// The tables that it asks for.
    pub tables: Vec<Table>,
    /// One for every design point; two where a point was measured under both idle policies.
    pub rows: Vec<Row>,
    /// What was shown of contenders: by the metric that the study is about, then by others that it shows.
    pub comparisons: Vec<Comparison>,
    /// What was shown of candidates against a baseline; `None`: the study has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateFinding>,
    /// What the metric that the study is about does from the first to the last level of each factor of numbers.
    pub trends: Vec<Trend>,
    /// The searches for the capacities that the rates of other design points are shares of: no design points of the study.
    pub capacities: Vec<Row>,
    /// Scalability over a numeric factor, one for each series.
    pub scalability: Vec<Scalability>,
    /// What the factors do, and what each does differently at the levels of another: one for each metric that is asked for, and each idle
    /// policy. Empty where fewer than two factors vary.
    pub effects: Vec<Effects>,
    /// Servers in containers and companions, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosted: Vec<HostedFinding>,
    /// CPU profiles of the servers, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<ProfileFinding>,
    /// What differs between the profiles of two contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_differences: Vec<ProfileDifference>,
    /// Miss-ratio curves of caches, in the order of the figures that ask for them.
    pub miss_ratios: Vec<MissRatios>,
    /// What each operation took, for every row whose trials are journeys.
    pub operations: Vec<RowOperations>,
    /// What passing proxies adds to each design point, against the same at `direct`.
    pub added: Vec<Added>,
    /// What happens over the requests of a trial, where the study asks for it.
    pub over_requests: Vec<OverRequests>,
    /// One trial of each of the first rows, from the inside.
    pub inside: Vec<InsideTrial>,
    /// What the absolute values are of; `None`: nothing was measured.
    pub scope: Option<Scope>,
    /// Whether the machine changed its speed meanwhile; `None`: too few trials to tell.
    pub states: Option<States>,
    /// The fixed piece of work before and after each trial; `None`: there was none.
    pub probes: Option<Probed>,
    /// Counters of the network stack, all trials together.
    pub network: NetworkCounters,
    /// The machine; where the run had a cluster, that of the lab.
    pub machine: Host,
    /// The machines of its cluster, in a line; empty where the run had but one machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The same one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// What the generator can do on it against a null server, where that was measured.
    pub calibration: Option<Calibration>,
    /// Builds of the subjects.
    pub builds: Vec<Build>,
    /// What the doctor found when the run started.
    pub doctor: Vec<Finding>,
    /// How the numbers were made, a paragraph each.
    pub method: Vec<String>,
    /// What the reader should know of the run, a line each: what several rows warn of is one. Rows carry their own again.
    pub warnings: Vec<Warning>,
}

impl Findings {
    /// The answer as text, a line for each sentence.
    pub fn answer_text(&self) -> String {
        self.answer.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// What is known of the metric named so.
    pub fn metric_info(&self, name: &str) -> Option<&MetricInfo> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Unit of the metric named so; empty if no row has it.
    pub fn unit(&self, name: &str) -> &str {
        self.metric_info(name).map_or("", |info| &info.unit)
    }

    /// Every row there is, those of capacities first.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.capacities.iter().chain(&self.rows)
    }

    /// The rows that are searches, with what they found.
    pub fn searches(&self) -> impl Iterator<Item = (&Row, &SearchFinding)> {
        self.all_rows().filter_map(|row| Some((row, row.search.as_ref()?)))
    }
}

/// One thing that a study found, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sentence {
    /// Complete in itself.
    pub text: String,
    /// The part of the findings that it came from.
    pub from: Source,
}

impl std::fmt::Display for Sentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parts of the findings that sentences come from.
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

/// What was shown of contenders, by one metric, under one idle policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The metric.
    pub metric: String,
    /// Whether it is the metric that the study is about. Others are families of their own: of many, one in twenty shows something that is not so.
    pub headline: bool,
    /// The factor whose levels compete.
    pub factor: String,
    /// What idle processors did.
    pub idle: IdlePolicy,
    /// Each combination of the other factors at which two or more were measured.
    pub places: Vec<ComparedPlace>,
}

/// What was shown of contenders at one combination of the other factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPlace {
    /// Levels of the other factors that vary, `clients 40`; empty where none does.
    pub label: String,
    /// The contenders: indices of their rows among [`Findings::rows`], in the order of the plan.
    pub rows: Vec<usize>,
    /// Row of the one that is best by its typical ratios to the others, shown or not; `None`: no two have a block in common.
    pub best: Option<usize>,
    /// Whether it was shown to be better than each other one.
    pub leads: bool,
    /// Probability of so clear a lead by chance, adjusted for all places (Holm).
    pub p_lead: f64,
    /// Rows of those that were not shown to be beaten.
    pub may_be_best: Vec<usize>,
    /// Blocks that all pairs have in common at least.
    pub blocks: u64,
    /// Every pair of them.
    pub pairs: Vec<Difference>,
}

/// Two design points, block by block.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Row of the first.
    pub a: usize,
    /// Row of the second.
    pub b: usize,
    /// Blocks in which both have a value.
    pub blocks: u64,
    /// The typical ratio b/a (Hodges & Lehmann) with the interval of the signed rank test; `None`: too few blocks for one.
    pub ratio: Option<Estimate>,
    /// The ratio of geometric means b/a with Student's t interval of the pairs.
    pub mean_ratio: Option<Estimate>,
    /// Probability of so clear a difference by chance (Wilcoxon's signed rank, exact, two-sided).
    pub p: f64,
    /// The same, adjusted for all that is compared by this metric (Holm).
    pub p_adjusted: f64,
    /// Whether a difference is shown.
    pub shown: bool,
    /// A difference of about this size would have been shown, a fraction; `None`: not even that is known.
    pub could_show: Option<f64>,
    /// Whether the typical start and the mean tell different stories: then starts of one are of more than one kind.
    pub kinds_of_starts: bool,
}

/// What a metric does from the first to the last level of a factor of numbers, all else alike.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    /// The metric.
    pub metric: String,
    /// The factor.
    pub factor: String,
    /// Levels of the other factors that vary; empty where none does.
    pub label: String,
    /// The first level.
    pub from: Level,
    /// The last.
    pub to: Level,
    /// From the one to the other: `a` is the row at `from`.
    pub change: Difference,
}

/// A run that was interrupted, or goes on still.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unfinished {
    /// Which of the two.
    pub state: RunState,
    /// Trials that there are.
    pub trials: u64,
    /// Trials that the plan has at least.
    pub trials_min: u64,
    /// It in words: `interrupted after 5 of at least 15 trials`.
    pub sentence: String,
    /// The command line that goes on with it, for a shell; empty while it runs, and where it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resume: String,
}

/// A factor and its levels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels: numbers ascending, words in the order of the plan.
    pub levels: Vec<Level>,
    /// Whether every level is a number, so that it can be an axis.
    pub numeric: bool,
}

impl Factor {
    /// Whether it has more than one level: what is the same everywhere tells nothing apart.
    pub fn varies(&self) -> bool {
        self.levels.len() > 1
    }

    /// A level as a name: a word alone, a number with its factor.
    pub fn named(&self, level: &Level) -> String {
        match level {
            Level::Text(word) => word.clone(),
            number => format!("{} {number}", self.name),
        }
    }
}

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricInfo {
    /// Its name in studies, tables and CSV: `latency_p99`.
    pub name: String,
    /// Unit of its values: `ns`, `1/s`, `bytes`, `bytes/s`, `1` for a count or a share.
    pub unit: String,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// What it is called within a sentence: `p99 latency`.
    pub noun: String,
    /// What it is, a few words.
    pub text: String,
}

/// What is known of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Index of the design point in the plan.
    pub point: usize,
    /// Its levels in the order of the factors, `c-epoll, cores 1, clients 40`: words alone, numbers with their factor, of the factors
    /// that vary alone; of all where none varies.
    pub label: String,
    /// Levels of the factors, by name.
    pub factors: BTreeMap<String, Level>,
    /// Processors of the subject.
    pub cpus: u32,
    /// Processors it would have used, where this machine leaves it fewer; `None`: it has what the study asks for.
    pub cpus_wanted: Option<u32>,
    /// Idle policy in force; `None`: no trial ran.
    pub idle: Option<IdlePolicy>,
    /// What became of it.
    pub state: RowState,
    /// Trials with a measurement.
    pub n: usize,
    /// Trials without, by kind.
    pub failures: Vec<FailureCount>,
    /// Estimates over the trials, by name of the metric; a metric that no trial has is missing.
    pub metrics: BTreeMap<String, MetricFinding>,
    /// Who was the limit.
    pub limited_by: Option<LimitFinding>,
    /// What forbids to read the row as a statement about the subject.
    pub marks: Vec<Mark>,
    /// The generators one by one, where the load came from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// The search whose steps the trials were; the metrics above are then of the trials at its lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFinding>,
    /// Which clock the latencies are of.
    pub clock: Option<Clock>,
    /// Latencies of all trials merged, ns; for distributions.
    pub latency: Option<Histogram>,
    /// Requests that were due and had no answer when their trial ended, all trials: how many, and how long they had waited. `None`: the store
    /// is older than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub censored: Option<Box<Censored>>,
    /// Requests gone wrong, all trials, by kind.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each kind that has more to say.
    pub error_examples: BTreeMap<String, String>,
    /// Answers by HTTP status, right or wrong, all trials.
    pub statuses: BTreeMap<u16, u64>,
    /// TLS handshakes, all trials; 0 without TLS.
    pub handshakes: u64,
    /// Those of them that resumed an earlier session.
    pub handshakes_resumed: u64,
    /// Valid answers, all trials.
    pub requests: u64,
    /// The trials, in the order they ran.
    pub trials: Vec<TrialFinding>,
    /// Why no further trials were run, `target met: ±2.1 % after 9 trials`.
    pub stop_reason: String,
    /// Whether its trials had reached a steady state when measuring began; `None`: too few trials or windows to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyFinding>,
    /// Why it is not ranked although it was measured: it fails more of its requests than another contender of its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_errors: Option<String>,
    /// What the reader should know; `(3 of 8 trials)` where it does not hold for all.
    pub warnings: Vec<Warning>,
}

/// Whether the trials of a row had reached a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyFinding {
    /// `false`: the halves of its trials differ by more than 2 %, and by more than chance makes of all rows of the report.
    pub reached: bool,
    /// Mean latency of the second half of a trial over that of the first, over trials, with an interval that stands by itself.
    pub change: Estimate,
    /// Chance of so large a change where there is none, adjusted for all rows (Holm).
    pub p_adjusted: f64,
}

/// A line of warning: of a row, or of the whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The line, without full stop.
    pub text: String,
    /// Trials that it is of; 0 where it is not of trials.
    pub trials: usize,
    /// What it was put together from, a line each; empty where the line says all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Warning {
    /// One that needs no details.
    pub fn new(kind: WarningKind, text: impl Into<String>, trials: usize) -> Self {
        Warning { kind, text: text.into(), trials, details: Vec::new() }
    }
}

impl Row {
    /// The estimate of a metric, where there is one.
    pub fn estimate(&self, metric: &str) -> Option<&Estimate> {
        self.metrics.get(metric)?.estimate.as_ref()
    }

    /// The mean of a metric, where there are values.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }

    /// Requests gone wrong, all trials, all kinds.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether something forbids to compare it.
    pub fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether the numbers are about something else than the subject.
    pub fn is_about_others(&self) -> bool {
        self.marks.iter().any(|mark| *mark != Mark::Hung)
    }

    /// Trials in which the subject fell silent.
    pub fn hung(&self) -> usize {
        self.trials.iter().filter(|trial| trial.marks.contains(&Mark::Hung)).count()
    }

    /// Whether a metric is only known to be at least something.
    pub fn is_at_least(&self, metric: &str) -> bool {
        self.metrics.get(metric).is_some_and(|found| found.at_least)
    }
}

/// What became of a design point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RowState {
    /// All its trials are there.
    Measured,
    /// Some trials are there, some failed or are still to come.
    Partial {
        /// One sentence.
        reason: String,
    },
    /// This machine cannot run it.
    Unrunnable {
        /// One sentence.
        reason: String,
    },
    /// A toolchain is missing, or no trial has begun.
    Skipped {
        /// One sentence.
        reason: String,
    },
    /// Every trial failed, or the build did.
    Failed {
        /// One sentence.
        reason: String,
    },
}

impl RowState {
    /// Why it is not simply measured.
    pub fn reason(&self) -> Option<&str> {
        match self {
            RowState::Measured => None,
            RowState::Partial { reason }
            | RowState::Unrunnable { reason }
            | RowState::Skipped { reason }
            | RowState::Failed { reason } => Some(reason),
        }
    }

    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            RowState::Measured => "measured",
            RowState::Partial { .. } => "partial",
            RowState::Unrunnable { .. } => "unrunnable",
            RowState::Skipped { .. } => "skipped",
            RowState::Failed { .. } => "failed",
        }
    }
}

/// Trials that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureCount {
    /// What kind.
    pub kind: FailureKind,
    /// How many.
    pub count: usize,
    /// The first one's message.
    pub message: String,
}

/// A metric over the trials of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MetricFinding {
    /// Mean over the trials with its Student t interval; `None`: see `mean` and `note`.
    pub estimate: Option<Estimate>,
    /// Mean over the trials, where there are values, be there an interval or not.
    pub mean: Option<f64>,
    /// The mean is only the least that it can be: in some trial requests still waited at the end that could change it. There is no estimate
    /// then, and the row takes no part in a comparison of this metric.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Standard deviation of the values of the trials; `None` below two trials.
    pub stddev: Option<f64>,
    /// Standard deviation between trials, without what varies inside of them; `None` where the windows do not tell it.
    pub s_between: Option<f64>,
    /// Standard deviation of windows within a trial; `None` where the windows do not tell it.
    pub s_within: Option<f64>,
    /// The length of a trial that buys the narrowest interval for a given time, s; `None` where the two deviations are not
    /// both known.
    pub best_trial_s: Option<f64>,
    /// Whether the stop rule's target is met; `None`: the rule does not look at this metric.
    pub target_met: Option<bool>,
    /// Why there is no estimate, or what to beware of: `not enough samples`.
    pub note: Option<String>,
}

/// Who was the limit, over the trials of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitFinding {
    /// The limit of most trials; of equally frequent ones the one that speaks least about the subject.
    pub limit: Limit,
    /// How many trials have which.
    pub counts: BTreeMap<Limit, usize>,
    /// The reasons of the first trial that has it.
    pub reasons: Vec<String>,
    /// Whether `subject` means the server or the path to it: the path was not measured, and could do what speaks against the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub path_unknown: bool,
}

/// What forbids to read a row, or a trial, as a statement about the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The generator was the limit.
    GeneratorBound,
    /// The network between generators and subject was.
    NetworkBound,
    /// Subject and generator shared processors.
    Shared,
    /// The subject fell silent on all connections, and stayed so until the end.
    Hung,
}

impl Mark {
    /// A few words.
    pub fn text(self) -> &'static str {
        match self {
            Mark::GeneratorBound => "generator-bound",
            Mark::NetworkBound => "network-bound",
            Mark::Shared => "shared CPUs",
            Mark::Hung => "hung",
        }
    }
}

/// Where a latency starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// At the write (closed loop).
    Service,
    /// At the intended send time (open loop).
    Response,
}

impl Clock {
    /// The word in [`Findings`] and exports.
    pub fn word(self) -> &'static str {
        match self {
            Clock::Service => "service",
            Clock::Response => "response",
        }
    }
}

/// One trial of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialFinding {
    /// Place in the order of the whole run, from 0.
    pub order: u32,
    /// Block.
    pub block: u32,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Offered rate, per second; `None` in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Values, by name of the metric; empty for a failed trial.
    pub values: BTreeMap<&'static str, f64>,
    /// Those of them that are only the least that they can be, because requests still waited at the end.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub at_least: BTreeSet<&'static str>,
    /// Requests that were written and had no answer at the end.
    pub in_flight: u64,
    /// Requests that were to be sent and were not by the end.
    pub unsent: u64,
    /// Who was the limit.
    pub limited_by: Option<Limit>,
    /// What forbids to read it as a statement about the subject.
    pub marks: Vec<Mark>,
    /// Metrics in which it is an outlier: flagged, never removed.
    pub outlier_in: Vec<String>,
    /// Another process had a processor in use before or after it, as [`Findings::probes`] has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contended: bool,
    /// Why it has no values.
    pub failed: Option<String>,
}

impl TrialFinding {
    /// The value of a metric, where it is no mere lower bound.
    pub fn known(&self, metric: &str) -> Option<f64> {
        self.values.get(metric).copied().filter(|_| !self.at_least.contains(metric))
    }
}

/// What a search has found: the range from the largest offered rate confirmed to keep the objective to the smallest confirmed
/// to break it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchFinding {
    /// What must be kept, `p99 < 5ms and errors < 0.1%`.
    pub objective: String,
    /// The lower end: it holds.
    pub low: Option<SearchEnd>,
    /// The upper end: it fails.
    pub high: Option<SearchEnd>,
    /// Why there is no lower end.
    pub no_low: Option<String>,
    /// Why there is no upper end; `generator-limited from ...` is not the subject's answer.
    pub no_high: Option<String>,
    /// From this rate on the generator was the limit, per second.
    pub generator_from_per_s: Option<f64>,
    /// Rates between the ends that could not be decided, per second.
    pub undecided_per_s: Vec<f64>,
    /// Rates above the upper end that held all the same, per second.
    pub contradictions_per_s: Vec<f64>,
    /// Whether the search came to its end: both ends confirmed, or one shown to be out of reach.
    pub complete: bool,
    /// Why it ended.
    pub ended: String,
    /// What this answer is owed to.
    pub bound: SearchBound,
    /// The ends were to lie so far apart: upper over lower end, less one.
    pub resolution: f64,
    /// Trials, the pilot among them.
    pub trials: usize,
    /// All of it in words, `holds 41.2 k/s, fails at 43.0 k/s: p99 < 5ms; 14 trials`.
    pub sentence: String,
    /// The rates tried, ascending.
    pub rates: Vec<SearchRate>,
    /// The trials, in the order they ran.
    pub steps: Vec<SearchStep>,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchStep {
    /// Place in the order of the whole run, from 0.
    pub order: u32,
    /// What it was for.
    pub purpose: Purpose,
    /// Offered rate, per second; `None` for the pilot.
    pub rate_per_s: Option<f64>,
    /// What this trial alone says.
    pub verdict: SearchVerdict,
    /// What decided it, `p99 7.20 ms`.
    pub why: String,
    /// The values that the objective looks at, those there are.
    pub values: Vec<SearchValue>,
    /// The trial; `None` where it was none of a study's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialFinding>,
}

/// A value that a condition looks at, in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchValue {
    /// The metric.
    pub metric: String,
    /// The condition, `p99 < 5ms`.
    pub condition: String,
    /// Its bound, in the metric's unit.
    pub bound: f64,
    /// The value, likewise.
    pub value: f64,
    /// Lower bound of its 95 % interval from inside the trial; `None`: there is none.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
}

/// Throughput over a numeric factor, as the Universal Scalability Law has it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scalability {
    /// The factor on the axis.
    pub factor: String,
    /// The levels of all other factors.
    pub series: BTreeMap<String, Level>,
    /// The series in words.
    pub label: String,
    /// Every N that was measured, ascending.
    pub points: Vec<ScalabilityPoint>,
    /// The fit; `None`: the sentence says why not.
    pub fit: Option<UslFit>,
    /// The fitted law from the smallest to the largest N that was fitted, ascending; empty without a fit.
    pub curve: Vec<CurvePoint>,
    /// What it means.
    pub sentence: String,
}

/// Throughput at one N.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScalabilityPoint {
    /// The level of the factor.
    pub n: f64,
    /// Mean throughput of the trials, per second.
    pub rate_per_s: f64,
    /// Trials.
    pub trials: usize,
    /// What the fitted law has here, per second; `None` without a fit.
    pub fitted_per_s: Option<f64>,
    /// The mean over N times the fitted throughput of one: 1 where each does its full share; `None` without a fit.
    pub efficiency: Option<f64>,
    /// Why the law is fitted without it; `None`: it is not.
    pub left_out: Option<String>,
}

/// A place on a fitted law, with its interval: where the mean of many trials would lie if the law held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// N.
    pub n: f64,
    /// Throughput, per second.
    pub rate_per_s: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A fitted Universal Scalability Law: `X(N) = rate N / (1 + contention (N-1) + coherency N (N-1))`.
///
/// Source: Gunther 2007, Guerrilla Capacity Planning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UslFit {
    /// Throughput at `N = 1`, per second.
    pub rate_per_s: Estimate,
    /// Share of work that is serial.
    pub contention: Estimate,
    /// Cost of keeping copies coherent.
    pub coherency: Estimate,
    /// Where throughput is highest; `None`: nowhere, it only rises.
    pub peak: Option<f64>,
    /// Lower end of its interval; `None` where that is nowhere too.
    pub peak_low: Option<f64>,
    /// Upper end of its interval.
    pub peak_high: Option<f64>,
    /// Share of the variation that the fit explains.
    pub r_squared: f64,
}

/// What the factors of a study do to one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effects {
    /// The metric.
    pub metric: String,
    /// What idle processors did; trials under two policies are never mixed.
    pub idle: IdlePolicy,
    /// Which combinations of levels were measured.
    pub design: Design,
    /// The factors that vary, with the levels that have trials.
    pub factors: Vec<Factor>,
    /// Levels at which nothing was measured, `cores 8`: the rest is analysed.
    pub left_out: Vec<String>,
    /// Why there is no analysis; `None`: there is.
    pub refused: Option<String>,
    /// Why it is not about the subject alone; `None`: it is.
    pub marked: Option<String>,
    /// The analyses, that of the sentences first: of ratios where the metric has a zero that means none, and of differences.
    pub analyses: Vec<EffectAnalysis>,
    /// What it means: what was shown first, the largest share of the variation first.
    pub sentences: Vec<String>,
    /// How many of the sentences say something that was shown.
    pub shown: usize,
}

/// In which terms factors act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectScale {
    /// Effects multiply: the analysis is of logarithms, and every effect is a ratio of geometric means.
    Ratio,
    /// Effects add: every effect is a difference of means in the metric's own unit.
    Difference,
}

/// One analysis of variance with its effects (Jain 1991, chapters 17, 18, 22).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectAnalysis {
    /// In which terms.
    pub scale: EffectScale,
    /// Design points.
    pub points: usize,
    /// Trials.
    pub trials: usize,
    /// Whether every point has as many trials as every other; else sums of squares are of type III, and shares are of their sum.
    pub equal: bool,
    /// Standard deviation between trials of one point, pooled over all points: of logarithms, or in the metric's unit.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub error_df: usize,
    /// Blocks that were told apart from the error; 1: none were.
    pub blocks: usize,
    /// The chance of points that scatter so unlike where all scatter alike, at most; `None`: not known.
    pub uneven_p: Option<f64>,
    /// Where the variation comes from; the shares sum to 1.
    pub sources: Vec<EffectSource>,
    /// What each level does: mean over all levels of the other factors against the mean of all points. Empty for one-at-a-time designs.
    pub levels: Vec<LevelEffect>,
    /// What two levels do together beyond what each does. Empty for one-at-a-time designs.
    pub interactions: Vec<InteractionEffect>,
    /// What going from one level to another does: from the first level to each other, from the first to the last of numbers.
    pub changes: Vec<EffectChange>,
}

/// A line of an analysis of variance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectSource {
    /// What it is.
    pub kind: SourceKind,
    /// The factors: one for a main effect, two for an interaction, else none.
    pub factors: Vec<String>,
    /// Share of the variation, a fraction.
    pub share: f64,
    /// Sum of squares.
    pub squares: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// Mean square over that of the error; `None` for the error itself and where the error is zero.
    pub f: Option<f64>,
    /// p-value of the F test; `None` for the error itself.
    pub p: Option<f64>,
    /// The same, adjusted for the number of effects tested of this metric (Holm); `None` for what is not an effect of factors.
    pub p_adjusted: Option<f64>,
}

/// Kinds of [`EffectSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A factor by itself.
    Main,
    /// Two factors.
    Interaction,
    /// Three and more, all together.
    Higher,
    /// The design points of a one-at-a-time design, all together.
    Points,
    /// What blocks did to all points alike.
    Blocks,
    /// What differs between the trials of a point.
    Error,
}

impl SourceKind {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            SourceKind::Main => "main",
            SourceKind::Interaction => "interaction",
            SourceKind::Higher => "higher",
            SourceKind::Points => "points",
            SourceKind::Blocks => "blocks",
            SourceKind::Error => "error",
        }
    }
}

/// What a level does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelEffect {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: Level,
    /// Against the mean of all points.
    pub effect: Estimate,
}

/// What two levels do together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InteractionEffect {
    /// The two factors.
    pub factors: [String; 2],
    /// Their levels.
    pub levels: [Level; 2],
    /// Beyond what each does.
    pub effect: Estimate,
}

/// What going from one level to another does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectChange {
    /// The factor.
    pub factor: String,
    /// The level before.
    pub from: Level,
    /// The level after.
    pub to: Level,
    /// At this level of another factor; `None`: on average over all levels of all others (in a one-at-a-time design: at their first).
    pub at: Option<ChangeAt>,
    /// The change.
    pub change: Estimate,
    /// The smallest change that so many trials of such a spread would show in four of five attempts: a fraction of the value, or in the metric's unit.
    pub detectable: f64,
    /// In a one-at-a-time design: probability of a change as large if there were none, adjusted for all changes of the metric (Holm); `None` in
    /// others, where the sources of variation are tested.
    pub p_adjusted: Option<f64>,
}

/// A level of another factor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeAt {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: Level,
}
