//! The results of analyzing a run, complete enough that a renderer computes nothing itself.

mod request_trends;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use stats::Bound;
use study::cpu_profile::{SampledFunction, SampledStack};
use study::plan::{Design, Figure, Level, Table};
use study::record::{
    Build, Calibration, Censored, FailureKind, Finding, Histogram, Host, IdlePolicy, Limit, NetworkCounters, Node,
    Probes, Purpose, RunState,
};
use study::{Metric, WarningKind};

pub use stats::Estimate;
pub use stats::effects::{Scale as EffectScale, Source as SourceKind};
pub use stats::search::{Bound as SearchBound, End as SearchEnd, Rate as SearchRate, Verdict as SearchVerdict};

pub use self::request_trends::{OverRequests, RequestPoint, Trend as RequestTrend};

/// Format version of [`Findings`] that this build writes.
pub const FINDINGS_VERSION: u32 = 3;

/// Results of one run, as shown by the reports and written as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Findings {
    /// Format version of these findings, [`FINDINGS_VERSION`].
    pub version: u32,
    /// Name of the run, unique within its store.
    pub run: String,
    /// Start of the run, UTC, RFC 3339.
    pub started: String,
    /// Name of the study that was run.
    pub study: String,
    /// The study's question, as written in the study.
    pub question: String,
    /// The kind of question in words, such as `which server is best`.
    pub asked: String,
    /// The answer, one sentence per entry, most important first. If there is no answer, one entry says so.
    pub answer: Vec<Sentence>,
    /// Whether this is a quick run. Its intervals claim no confidence level.
    pub quick: bool,
    /// Profile of the run: `default`, `quick` or `full`.
    pub profile: String,
    /// Confidence level of every interval, as a fraction.
    pub level: f64,
    /// Name of the metric that the stop rule and the answer use.
    pub metric: String,
    /// Command line that started the run, one argument per entry.
    pub command: Vec<String>,
    /// Version of quintain that ran the trials.
    pub quintain: String,
    /// Git revision of the study's directory; `None` if unknown.
    pub revision: Option<String>,
    /// Git commit of the working directory in which servers were built; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Time at which the run was imported from a file, UTC, RFC 3339. Empty if the run was executed with this store.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub imported: String,
    /// Seed from which the order of trials and the seed of every trial derive.
    pub seed: u64,
    /// Content of the study file.
    pub study_text: String,
    /// Factors of the study, in its order.
    pub factors: Vec<Factor>,
    /// Why the run is incomplete; `None` if it ended normally. The findings cover the trials so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// Metrics with a value in at least one row or capacity, in display order.
    pub metrics: Vec<&'static Metric>,
    /// The load in words: the properties common to all design points, and how the points differ.
    pub load: String,
    /// Figures that the study requests, in its order.
    pub figures: Vec<Figure>,
    /// Tables that the study requests, in its order.
    pub tables: Vec<Table>,
    /// One row per design point; two if a point was measured under both idle policies.
    pub rows: Vec<Row>,
    /// Comparisons of contenders: first by the study's metric, then by the other metrics that the study shows.
    pub comparisons: Vec<Comparison>,
    /// Results of candidates relative to a baseline; `None` if the study has no gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateFinding>,
    /// Trend of the study's metric from the first to the last level of each numeric factor.
    pub trends: Vec<Trend>,
    /// Searches for the capacities from which design points derive their rates, one row per search.
    pub capacities: Vec<Row>,
    /// Scalability over a numeric factor, one entry per series; empty without a factor that counts resources.
    pub scalability: Vec<Scalability>,
    /// Effects and interactions of the factors by metric and idle policy; empty if fewer than two factors vary.
    pub effects: Vec<Effects>,
    /// Resource usage of servers in containers and of companions; empty if no trial had either.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosted: Vec<HostedFinding>,
    /// CPU profiles of the servers; empty unless requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_profiles: Vec<ProfileFinding>,
    /// Differences between the CPU profiles of two contenders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_differences: Vec<ProfileDifference>,
    /// Miss-ratio curves of caches, in the order of their figures.
    pub miss_ratios: Vec<MissRatios>,
    /// Results per operation, for each row with journeys, a mix of requests or stages.
    pub operations: Vec<RowOperations>,
    /// Overhead of proxies at each design point, relative to the same point without them (`direct`).
    pub added: Vec<Added>,
    /// Trends over the requests of a trial; empty unless the study requests them.
    pub over_requests: Vec<OverRequests>,
    /// Timeline of one trial for each of the first rows.
    pub inside: Vec<InsideTrial>,
    /// Conditions that the absolute values depend on; `None` if nothing was measured.
    pub scope: Option<Scope>,
    /// Whether the machine's speed changed during the run; `None` if there are too few trials to tell.
    pub states: Option<States>,
    /// CPU speed according to the probes before and after each trial; `None` without probes.
    pub probes: Option<Probed>,
    /// Counters of the network stack, summed over all trials.
    pub network: NetworkCounters,
    /// The machine that ran the trials; for a cluster, the machine that ran the lab.
    pub machine: Host,
    /// Machines of the cluster on one line; empty for a single machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Machines of the cluster, one per entry; empty for a single machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Maximum rates of the generator on this machine against a null server; `None` if not measured.
    pub calibration: Option<Calibration>,
    /// How each server was built, one entry per build.
    pub builds: Vec<Build>,
    /// Results of the checks of `quintain doctor` when the run started.
    pub doctor: Vec<Finding>,
    /// How the numbers were obtained, one paragraph per entry.
    pub method: Vec<String>,
    /// Warnings about the run and its rows. Warnings of several rows are merged here; rows also keep their own.
    pub warnings: Vec<Warning>,
}

impl Findings {
    /// Looks up a metric by name; `None` if no row or capacity has a value.
    pub fn metric_info(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name).copied()
    }

    /// Returns the unit of a metric, or an empty string if no row or capacity has a value.
    pub fn unit(&self, name: &str) -> &str {
        self.metric_info(name).map_or("", |metric| metric.unit)
    }

    /// Iterates over all rows, capacities first.
    pub fn all_rows(&self) -> impl Iterator<Item = &Row> + Clone {
        self.capacities.iter().chain(&self.rows)
    }

    /// Iterates over the rows that are searches, with the result of each search.
    pub fn searches(&self) -> impl Iterator<Item = (&Row, &SearchFinding)> {
        self.all_rows().filter_map(|row| Some((row, row.search.as_ref()?)))
    }
}

/// One finding in words, with the part of the findings that supports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sentence {
    /// Complete sentence that can be read on its own.
    pub text: String,
    /// Part of the findings that supports the sentence.
    pub from: Source,
}

/// Part of the findings that supports a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Results of design points, [`Findings::rows`].
    Rows,
    /// Comparisons of contenders, [`Findings::comparisons`].
    Comparisons,
    /// Results of a gate, [`Findings::gate`].
    Gate,
    /// Trends over numeric factors, [`Findings::trends`].
    Trends,
    /// Overhead of proxies, [`Findings::added`].
    Added,
    /// Results of searches, [`Findings::searches`].
    Searches,
    /// Scalability over numeric factors, [`Findings::scalability`].
    Scalability,
    /// Effects of the factors, [`Findings::effects`].
    Effects,
    /// Miss-ratio curves of caches, [`Findings::miss_ratios`].
    MissRatios,
    /// Trends over the requests of a trial, [`Findings::over_requests`].
    OverRequests,
}

/// A comparison of contenders by one metric under one idle policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Name of the metric by which contenders are compared.
    pub metric: String,
    /// Whether this is a comparison by the study's metric. Of the others, 1 in 20 shows a difference by chance.
    pub headline: bool,
    /// Factor whose levels are the contenders.
    pub factor: String,
    /// Idle policy of the CPUs in the compared trials.
    pub idle: IdlePolicy,
    /// Combinations of the other factors at which at least two contenders were measured.
    pub places: Vec<ComparedPlace>,
}

/// A comparison of contenders at one combination of the other factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPlace {
    /// Levels of the other factors that vary, such as `clients 40`; empty if none of them varies.
    pub label: String,
    /// Contenders as indices into [`Findings::rows`], in plan order.
    pub rows: Vec<usize>,
    /// Row with the best typical ratios to the other rows, even if it does not lead; `None` without common blocks.
    pub best: Option<usize>,
    /// Whether [`ComparedPlace::best`] was shown to be better than every other contender.
    pub leads: bool,
    /// Probability of such a clear lead by chance, adjusted for all places (Holm).
    pub p_lead: f64,
    /// Rows that were not shown to be worse than any other row.
    pub may_be_best: Vec<usize>,
    /// Smallest number of common blocks of any pair.
    pub blocks: u64,
    /// Comparisons of all pairs of contenders.
    pub pairs: Vec<Difference>,
}

/// A comparison of two design points, block by block.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Index of the first design point's row in [`Findings::rows`].
    pub a: usize,
    /// Index of the second design point's row in [`Findings::rows`].
    pub b: usize,
    /// Number of blocks in which both design points have a trial.
    pub blocks: u64,
    /// Typical ratio b/a (Hodges & Lehmann) with its signed rank interval; `None` if there are too few blocks.
    pub ratio: Option<Estimate>,
    /// Ratio of the geometric means b/a with the paired Student t interval; `None` if there are too few blocks.
    pub mean_ratio: Option<Estimate>,
    /// Probability of such a clear difference by chance (Wilcoxon's signed rank test, exact, two-sided).
    pub p: f64,
    /// `p` adjusted for all comparisons by this metric (Holm).
    pub p_adjusted: f64,
    /// Whether a difference is shown at the run's confidence level.
    pub shown: bool,
    /// Smallest difference that would probably have been shown, as a fraction; `None` if unknown.
    pub could_show: Option<f64>,
    /// Whether the typical ratio and the ratio of means disagree, which indicates that starts are of different kinds.
    pub kinds_of_starts: bool,
}

/// Change of a metric from the first to the last level of a numeric factor, with the other factors fixed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    /// Name of the metric that changes.
    pub metric: String,
    /// Name of the numeric factor whose level changes.
    pub factor: String,
    /// Levels of the other factors that vary; empty if none of them varies.
    pub label: String,
    /// First comparable level of the factor.
    pub from: Level,
    /// Last comparable level of the factor.
    pub to: Level,
    /// The change between the levels. Its row `a` is at `from`, its row `b` at `to`.
    pub change: Difference,
}

/// A run that was interrupted or is still in progress.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Unfinished {
    /// State of the run: interrupted or in progress.
    pub state: RunState,
    /// Number of trials that have ended.
    pub trials: u64,
    /// Minimum number of trials in the plan.
    pub trials_min: u64,
    /// State in words, such as `interrupted after 5 of at least 15 trials`.
    pub sentence: String,
    /// Shell command that resumes the run; empty while it is in progress or if the command is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resume: String,
}

/// A factor of the study with its levels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Factor {
    /// Name of the factor in the study.
    pub name: String,
    /// Levels of the factor: numbers ascending, strings in plan order.
    pub levels: Vec<Level>,
    /// Whether every level is a number, so that the factor can be an axis.
    pub numeric: bool,
}

impl Factor {
    /// Whether the factor has more than one level.
    pub fn varies(&self) -> bool {
        self.levels.len() > 1
    }

    /// Formats a level: a string unchanged, a number with the factor's name.
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
    /// Levels of the factors that vary, or of all factors if none do, such as `c-epoll, cores 1, clients 40`.
    pub label: String,
    /// Level of each factor, by factor name.
    pub factors: BTreeMap<String, Level>,
    /// Number of CPUs that the server could use.
    pub cpus: u32,
    /// Number of CPUs that the study requests; `None` if the server may use all of them.
    pub cpus_wanted: Option<u32>,
    /// Idle policy of the CPUs during the trials; `None` if no trial ran.
    pub idle: Option<IdlePolicy>,
    /// Whether the design point was measured, and if not, why.
    pub state: RowState,
    /// Number of trials with a measurement.
    pub n: usize,
    /// Numbers of trials without a measurement, by kind of failure.
    pub failures: Vec<FailureCount>,
    /// Estimates over the trials, by metric name; a metric without a value in any trial is absent.
    pub metrics: BTreeMap<String, MetricFinding>,
    /// The bottleneck of the trials; `None` without a measured trial.
    pub limited_by: Option<LimitFinding>,
    /// Reasons why the row does not measure the server.
    pub marks: Vec<Mark>,
    /// Results of each generator; empty unless the load came from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// Result of the search that the trials belong to, if any; `metrics` then covers only the trials at its lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFinding>,
    /// Event at which a latency starts; `None` without a measured trial.
    pub clock: Option<Clock>,
    /// Histogram of the latencies of all trials, ns; `None` without a measured trial.
    pub latency: Option<Histogram>,
    /// Requests that were due but had no response when their trial ended, with their waits; `None` in old stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub censored: Option<Box<Censored>>,
    /// Number of failed requests of all trials, by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// The first error message of each kind of error that has one.
    pub error_examples: BTreeMap<String, String>,
    /// Number of responses of all trials by HTTP status, valid or not.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of TLS handshakes of all trials; 0 without TLS.
    pub handshakes: u64,
    /// Number of TLS handshakes of all trials that resumed a session.
    pub handshakes_resumed: u64,
    /// Number of valid responses of all trials.
    pub requests: u64,
    /// Trials of the row, in execution order.
    pub trials: Vec<TrialFinding>,
    /// Why no further trials ran, such as `target met: ±2.1 % after 9 trials`.
    pub stop_reason: String,
    /// Whether trials were steady when measuring began; `None` if there are too few trials or windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyFinding>,
    /// Why the row is not ranked, if it fails a larger share of requests than a contender at its place; else `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_errors: Option<String>,
    /// Warnings about the row, with a count such as `(3 of 8 trials)` unless they apply to all of its trials.
    pub warnings: Vec<Warning>,
}

/// Whether the trials of a row had reached a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SteadyFinding {
    /// Whether a steady state was reached: a trial's halves differ by at most 2 %, or by no more than chance explains.
    pub reached: bool,
    /// Ratio of the mean latencies of a trial's second and first half, averaged over the trials, with its interval.
    pub change: Estimate,
    /// Probability of such a large change by chance, adjusted for all rows (Holm).
    pub p_adjusted: f64,
}

/// A warning about a row or the whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// Topic of the warning, by which warnings are merged.
    pub kind: WarningKind,
    /// The warning in one line without a full stop.
    pub text: String,
    /// Number of trials affected; 0 if the warning is not about trials.
    pub trials: usize,
    /// Texts of the warnings that were merged into this one, one line each; empty if `text` is complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Warning {
    /// Creates a warning without details, about `trials` trials.
    pub fn new(kind: WarningKind, text: impl Into<String>, trials: usize) -> Self {
        Warning { kind, text: text.into(), trials, details: Vec::new() }
    }
}

impl Row {
    /// Returns the estimate of a metric; `None` if it has no value or no interval.
    pub fn estimate(&self, metric: &str) -> Option<&Estimate> {
        self.metrics.get(metric)?.estimate.as_ref()
    }

    /// Returns the mean of a metric over the trials; `None` if it has no value.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric)?.mean
    }

    /// Number of failed requests over all trials and kinds of error.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether any mark shows that the row does not measure the server.
    pub fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether the row measures something other than the server: it has a mark other than [`Mark::Hung`].
    pub fn is_about_others(&self) -> bool {
        self.marks.iter().any(|mark| *mark != Mark::Hung)
    }

    /// Number of trials in which the server hung.
    pub fn hung(&self) -> usize {
        self.trials.iter().filter(|trial| trial.marks.contains(&Mark::Hung)).count()
    }

    /// Whether the mean of a metric is a lower bound.
    pub fn is_at_least(&self, metric: &str) -> bool {
        self.metrics.get(metric).is_some_and(|found| found.at_least)
    }

    /// Returns the marks that prevent comparing the row by a metric; `None` if no mark does. `is_broken` tells whether
    /// a test found that an absolute limit was exceeded, which other work on the CPUs may explain.
    pub(crate) fn forbidding(&self, metric: &Metric, is_broken: bool) -> Option<String> {
        let forbids = |mark: &&Mark| mark.forbids(metric) || **mark == Mark::Shared && is_broken && is_pace(metric);
        let marks = self.marks.iter().filter(forbids).map(|mark| mark.text()).collect::<Vec<_>>();
        (!marks.is_empty()).then(|| marks.join(", "))
    }
}

/// State of a design point, with the reason in one sentence unless all its trials are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", content = "reason", rename_all = "kebab-case")]
pub enum RowState {
    /// All trials of the design point are complete.
    Measured,
    /// Some trials are complete; others failed or have not run yet.
    Partial(String),
    /// This machine cannot run the design point, for example because it has too few CPUs.
    Unrunnable(String),
    /// A toolchain is missing, or no trial has started.
    Skipped(String),
    /// The server's build failed, or every trial failed.
    Failed(String),
}

impl RowState {
    /// Returns the reason for the state; `None` if all trials are complete.
    pub fn reason(&self) -> Option<&str> {
        match self {
            RowState::Measured => None,
            RowState::Partial(why) | RowState::Unrunnable(why) | RowState::Skipped(why) | RowState::Failed(why) => {
                Some(why)
            }
        }
    }

    /// Returns the state as one word, as in JSON.
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

/// Number of failed trials of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureCount {
    /// Kind of failure that these trials share.
    pub kind: FailureKind,
    /// Number of failed trials of this kind.
    pub count: usize,
    /// Message of the first failed trial of this kind.
    pub message: String,
}

/// Estimate of one metric over the trials of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MetricFinding {
    /// Mean over the trials with its Student t interval; `None` if `note` or `at_least` gives a reason.
    pub estimate: Option<Estimate>,
    /// Mean over the trials, with or without an interval; `None` if there are no values.
    pub mean: Option<f64>,
    /// Whether the mean is a lower bound, since requests still waited when a trial ended; `estimate` is then `None`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Standard deviation of the trials' values; `None` for fewer than two trials.
    pub stddev: Option<f64>,
    /// Standard deviation between trials, excluding variation within trials; `None` if it cannot be estimated.
    pub s_between: Option<f64>,
    /// Standard deviation of windows within a trial; `None` if it cannot be estimated.
    pub s_within: Option<f64>,
    /// Trial length, s, for the narrowest interval in a given total time; `None` without `s_between` or `s_within`.
    pub best_trial_s: Option<f64>,
    /// Whether the stop rule's target is met; `None` if the rule does not use this metric.
    pub target_met: Option<bool>,
    /// Why there is no estimate, or a caveat, such as `not enough samples`; `None` if there is neither.
    pub note: Option<String>,
}

/// The bottleneck of most trials of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LimitFinding {
    /// Limit of most trials. A tie goes to the limit that reveals least about the server.
    pub limit: Limit,
    /// Number of trials per limit.
    pub counts: BTreeMap<Limit, usize>,
    /// Reasons given by the first trial with this limit.
    pub reasons: Vec<String>,
    /// Whether `subject` includes the path to the server, which was not measured and could explain the evidence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub path_unknown: bool,
}

/// Reason not to read a row or a trial as a measurement of the server.
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
    /// Returns the mark of a limit; `None` if a trial with this limit still measures the server.
    pub fn of(limit: Limit) -> Option<Mark> {
        match limit {
            Limit::Generator => Some(Mark::GeneratorBound),
            Limit::Network => Some(Mark::NetworkBound),
            Limit::Shared => Some(Mark::Shared),
            Limit::Subject | Limit::Proxy | Limit::Neither | Limit::Latency => None,
        }
    }

    /// Returns a short description for tables, such as `generator-bound`.
    pub fn text(self) -> &'static str {
        match self {
            Mark::GeneratorBound => "generator-bound",
            Mark::NetworkBound => "network-bound",
            Mark::Shared => "shared CPUs",
            Mark::Hung => "hung",
        }
    }

    /// Whether the mark prevents comparing servers by this metric. A disturbance independent of the random order of the
    /// two sides of a block leaves values exchangeable (Fisher 1935) and costs only power. A limit common to both
    /// sides, such as a busy generator, determines throughput and latency, but not the server's CPU time per request.
    pub fn forbids(self, metric: &Metric) -> bool {
        match self {
            Mark::Shared => false,
            Mark::GeneratorBound | Mark::NetworkBound => is_pace(metric),
            Mark::Hung => {
                let is_size = metric.unit == "bytes" && !metric.name.ends_with("_per_request");
                !is_size && !matches!(metric.name, "errors" | "error_share")
            }
        }
    }
}

fn is_pace(metric: &Metric) -> bool {
    matches!(metric.unit, "1/s" | "bytes/s" | "ns") && !metric.name.ends_with("_cpu_per_request")
}

/// The event at which the latency of a request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Latency starts at the write of the request (closed loop).
    Service,
    /// Latency starts at the intended send time of the request (open loop).
    Response,
}

/// Results of one trial of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrialFinding {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Number of the block, from 0.
    pub block: u32,
    /// Start of the trial, UTC, RFC 3339.
    pub started: String,
    /// Offered rate, requests per second; `None` for a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Values by metric name; empty if the trial failed.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub values: MetricValues,
    /// Names of the metrics whose value is a lower bound because requests were still waiting at the end.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub at_least: BTreeSet<&'static str>,
    /// Number of requests that were sent but had no response at the end.
    pub in_flight: u64,
    /// Number of requests that were due but not sent by the end.
    pub unsent: u64,
    /// The bottleneck of the trial; `None` if the trial failed.
    pub limited_by: Option<Limit>,
    /// Reasons why the trial does not measure the server.
    pub marks: Vec<Mark>,
    /// Names of the metrics in which the trial is an outlier. Outliers are flagged, never removed.
    pub outlier_in: Vec<String>,
    /// Whether another process used a CPU before or after the trial; see [`Findings::probes`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contended: bool,
    /// Why the trial has no values; `None` if it succeeded.
    pub failed: Option<String>,
}

/// Values of a trial, and the names of the metrics whose value is a lower bound.
pub(crate) type Values = (MetricValues, BTreeSet<&'static str>);

/// Values of one trial for the metrics of [`study::METRICS`], each in the unit of its metric, stored compactly because a
/// run can have 100,000 trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricValues(pub(crate) Vec<(&'static str, f64)>);

impl MetricValues {
    /// Returns the value of `metric` in the metric's unit; `None` if the trial has no value.
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
    }

    /// Sets the value of `metric`, in the metric's unit.
    pub fn insert(&mut self, metric: &'static str, value: f64) {
        match self.0.iter_mut().find(|(name, _)| *name == metric) {
            Some((_, known)) => *known = value,
            None => self.0.push((metric, value)),
        }
    }
}

impl Serialize for MetricValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.iter().copied().collect::<BTreeMap<_, _>>().serialize(to)
    }
}

impl TrialFinding {
    /// Returns the value of a metric, which may be a lower bound; `None` if the trial has no value.
    pub fn bound(&self, metric: &str) -> Option<Bound> {
        Some(Bound { value: self.values.get(metric)?, at_least: self.at_least.contains(metric) })
    }

    /// Returns the value of a metric; `None` if it is a lower bound or absent.
    pub fn known(&self, metric: &str) -> Option<f64> {
        self.bound(metric).filter(|bound| !bound.at_least).map(|bound| bound.value)
    }
}

/// Result of a search: the range between the highest rate confirmed to meet the objective and the lowest that fails it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchFinding {
    /// The objective of the search, such as `p99 < 5ms and errors < 0.1%`.
    pub objective: String,
    /// Highest rate that meets the objective; if `None`, `no_low` gives the reason.
    pub low: Option<SearchEnd>,
    /// Lowest rate that fails the objective; if `None`, `no_high` gives the reason.
    pub high: Option<SearchEnd>,
    /// Why there is no lower end; `None` if there is one.
    pub no_low: Option<String>,
    /// Why there is no upper end; `None` if there is one. `generator-limited from ...`: the server's limit is higher.
    pub no_high: Option<String>,
    /// Lowest rate at which the generator was the limit, per second; `None` if it never was.
    pub generator_from_per_s: Option<f64>,
    /// Rates within the range that stayed undecided, per second.
    pub undecided_per_s: Vec<f64>,
    /// Rates above the upper end that still met the objective, per second.
    pub contradictions_per_s: Vec<f64>,
    /// Whether the search is complete: both ends are confirmed, or one is shown to be out of reach.
    pub complete: bool,
    /// Why the search ended, in words.
    pub ended: String,
    /// Whether the server or the measurement limits the result.
    pub bound: SearchBound,
    /// Target width of the range, as a fraction: the upper end divided by the lower end, minus one.
    pub resolution: f64,
    /// Number of trials, including the pilot.
    pub trials: usize,
    /// Result in words, such as `holds 41.2 k/s, fails at 43.0 k/s: p99 < 5ms; 14 trials`.
    pub sentence: String,
    /// Results per offered rate, ascending.
    pub rates: Vec<SearchRate>,
    /// Trials of the search, in execution order.
    pub steps: Vec<SearchStep>,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchStep {
    /// Position in the run's order of trials, from 0.
    pub order: u32,
    /// Purpose of the trial within the search.
    pub purpose: Purpose,
    /// Offered rate, requests per second; `None` for the pilot.
    pub rate_per_s: Option<f64>,
    /// Verdict of this trial on its rate.
    pub verdict: SearchVerdict,
    /// The value that decided the verdict, such as `p99 7.20 ms`.
    pub why: String,
    /// Values of the objective's conditions; a condition without a value in this trial is absent.
    pub values: Vec<SearchValue>,
    /// Values of the trial; `None` if it was not part of a study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialFinding>,
}

/// Value of one condition of an objective in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchValue {
    /// Name of the metric in the condition.
    pub metric: String,
    /// The condition as written, such as `p99 < 5ms`.
    pub condition: String,
    /// Bound that the condition states, in the metric's unit.
    pub bound: f64,
    /// Value of the metric in this trial, in the metric's unit.
    pub value: f64,
    /// Lower end of the value's 95 % interval within the trial; `None` if there is no interval.
    pub low: Option<f64>,
    /// Upper end of the value's 95 % interval within the trial; `None` if there is no interval.
    pub high: Option<f64>,
}

/// Throughput over a numeric factor, modeled by the Universal Scalability Law.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scalability {
    /// Name of the numeric factor, whose level is the N of the law.
    pub factor: String,
    /// Levels of all other factors, by factor name.
    pub series: BTreeMap<String, Level>,
    /// Levels of the series in words.
    pub label: String,
    /// Measured levels of the factor, ascending.
    pub points: Vec<ScalabilityPoint>,
    /// The fitted law; if `None`, `sentence` gives the reason.
    pub fit: Option<UslFit>,
    /// Fitted curve from the smallest to the largest N of the fit, ascending; empty without a fit.
    pub curve: Vec<CurvePoint>,
    /// Result in words, or why there is no fit.
    pub sentence: String,
}

/// Throughput at one level of the factor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScalabilityPoint {
    /// Level of the factor, which is the N of the law.
    pub n: f64,
    /// Mean throughput of the trials, per second.
    pub rate_per_s: f64,
    /// Number of trials at this level.
    pub trials: usize,
    /// Fitted throughput, per second; `None` without a fit.
    pub fitted_per_s: Option<f64>,
    /// Mean throughput divided by N times the fitted throughput at N = 1; 1 means linear scaling. `None` without a fit.
    pub efficiency: Option<f64>,
    /// Why this point is excluded from the fit; `None` if it is included.
    pub left_out: Option<String>,
}

/// A point on the fitted curve. Its interval covers the mean of many trials if the law holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// Level of the factor, which is the N of the law.
    pub n: f64,
    /// Fitted throughput, per second.
    pub rate_per_s: f64,
    /// Lower end of the interval, per second.
    pub low: f64,
    /// Upper end of the interval, per second.
    pub high: f64,
}

/// Fitted Universal Scalability Law, `X(N) = rate N / (1 + contention (N-1) + coherency N (N-1))` (Gunther 2007).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UslFit {
    /// Throughput at `N = 1`, per second.
    pub rate_per_s: Estimate,
    /// Share of the work that is serial, from 0 to 1: `contention` in the law.
    pub contention: Estimate,
    /// Cost of keeping copies coherent: `coherency` in the law.
    pub coherency: Estimate,
    /// N with the highest throughput; `None` if throughput rises without limit.
    pub peak: Option<f64>,
    /// Lower end of the peak's interval; `None` if the interval is unbounded.
    pub peak_low: Option<f64>,
    /// Upper end of the peak's interval; `None` if the interval is unbounded.
    pub peak_high: Option<f64>,
    /// Share of the variation that the fit explains, as a fraction.
    pub r_squared: f64,
}

/// Effects of a study's factors on one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effects {
    /// Name of the analyzed metric.
    pub metric: String,
    /// Idle policy of the CPUs. Trials under different policies are never mixed.
    pub idle: IdlePolicy,
    /// Which combinations of levels were measured.
    pub design: Design,
    /// Factors that vary, each with its levels that have trials.
    pub factors: Vec<Factor>,
    /// Levels without measurements, such as `cores 8`; the analysis covers the other levels.
    pub left_out: Vec<String>,
    /// Why there is no analysis; `None` if there is one.
    pub refused: Option<String>,
    /// Why the analysis does not measure only the server; `None` if it does.
    pub marked: Option<String>,
    /// Analyses of ratios (if all values are positive and none is a share) and of differences. Sentences use the first.
    pub analyses: Vec<EffectAnalysis>,
    /// Interpretation in sentences: shown effects first, sorted by share of the variation, largest first.
    pub sentences: Vec<String>,
    /// Number of sentences that state a shown effect.
    pub shown: usize,
}

/// One analysis of variance (Jain 1991, chapters 17, 18, 22).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectAnalysis {
    /// Whether effects are ratios or differences.
    pub scale: EffectScale,
    /// Number of design points in the analysis.
    pub points: usize,
    /// Number of trials in the analysis.
    pub trials: usize,
    /// Whether points have equal numbers of trials. If not, sums of squares are of type III; shares refer to their sum.
    pub equal: bool,
    /// Pooled standard deviation between trials of a point, in the metric's unit or, for ratios, of the logarithms.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub error_df: usize,
    /// Number of blocks separated from the error; 1 if none were.
    pub blocks: usize,
    /// Upper bound on the probability that points scatter so unequally by chance; `None` if unknown.
    pub uneven_p: Option<f64>,
    /// Sources of variation; their shares sum to 1.
    pub sources: Vec<EffectSource>,
    /// Effect of each level: its mean relative to the mean of all points. Empty for one-at-a-time designs.
    pub levels: Vec<LevelEffect>,
    /// Joint effects of two levels beyond their separate effects. Empty for one-at-a-time designs.
    pub interactions: Vec<InteractionEffect>,
    /// Changes from the first level of a factor to each other level, on average and at levels of the other factors.
    pub changes: Vec<EffectChange>,
}

/// One source of variation, a row of the analysis of variance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectSource {
    /// Kind of the source: effects, blocks or error.
    pub kind: SourceKind,
    /// Names of the factors: one for a main effect, two for an interaction, otherwise none.
    pub factors: Vec<String>,
    /// Share of the variation that this source explains, as a fraction.
    pub share: f64,
    /// Sum of squares of this source.
    pub squares: f64,
    /// Degrees of freedom of this source.
    pub df: usize,
    /// Mean square divided by the error's mean square; `None` for the error and if the error is zero.
    pub f: Option<f64>,
    /// p-value of the F test; `None` for the error.
    pub p: Option<f64>,
    /// p-value adjusted for all effects tested for this metric (Holm); `None` for blocks and the error.
    pub p_adjusted: Option<f64>,
}

/// Effect of one level, averaged over the other factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelEffect {
    /// Name of the factor that has this level.
    pub factor: String,
    /// Level whose effect this is.
    pub level: Level,
    /// Effect of the level relative to the mean of all points.
    pub effect: Estimate,
}

/// Joint effect of two levels of different factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InteractionEffect {
    /// Names of the two factors.
    pub factors: [String; 2],
    /// One level of each factor, in the order of `factors`.
    pub levels: [Level; 2],
    /// Effect of both levels together beyond their separate effects.
    pub effect: Estimate,
}

/// Effect of changing one factor from one level to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectChange {
    /// Name of the factor that changes.
    pub factor: String,
    /// Level of the factor before the change.
    pub from: Level,
    /// Level of the factor after the change.
    pub to: Level,
    /// Level of a second factor at which the effect applies. `None` means on average over the other factors, or at
    /// their first levels in a one-at-a-time design.
    pub at: Option<ChangeAt>,
    /// Effect of the change, on the scale of the analysis.
    pub change: Estimate,
    /// Smallest change shown with 80 % probability: a fraction for ratios, otherwise in the metric's unit.
    pub detectable: f64,
    /// Probability of such a large change by chance, adjusted for all changes of the metric (Holm). `None` unless the
    /// design is one-at-a-time; other designs test sources of variation.
    pub p_adjusted: Option<f64>,
}

/// The level of a second factor at which a change applies.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeAt {
    /// Name of the second factor.
    pub factor: String,
    /// Level of the second factor.
    pub level: Level,
}

/// Results of one generator of a cluster over the trials of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentFinding {
    /// Name of the generator's machine.
    pub node: String,
    /// Number of measured trials in which the generator took part.
    pub trials: usize,
    /// Median latency of a trial, ns; `null` if no trial has enough responses.
    pub latency_p50_ns: Option<MedianRange>,
    /// 99th percentile of the latency of a trial, ns; `null` if no trial has enough responses.
    pub latency_p99_ns: Option<MedianRange>,
    /// Rate of valid responses to this generator, per second; `null` if no trial has a value.
    pub rate_per_s: Option<MedianRange>,
    /// This generator's share of the valid responses of all generators, from 0 to 1; `null` if no trial has responses.
    pub share: Option<MedianRange>,
    /// CPU utilization of the generator's busiest worker, from 0 to 1; `null` if unknown.
    pub busy: Option<MedianRange>,
    /// Number of trials for each limit of this generator.
    pub limits: BTreeMap<Limit, usize>,
}

/// Median, minimum and maximum over the trials. Values are not averaged over generators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MedianRange {
    /// Median over the trials, in the unit of the summarized value.
    pub median: f64,
    /// Minimum over the trials, in the unit of the summarized value.
    pub min: f64,
    /// Maximum over the trials, in the unit of the summarized value.
    pub max: f64,
}

impl MedianRange {
    /// Summarizes values in any order; `None` if none of them is finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted = values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        Some(MedianRange { median: stats::quantile(&sorted, 0.5)?, min: *sorted.first()?, max: *sorted.last()? })
    }
}

/// Resource usage of a server or a companion over the trials of a row. A value that no trial has is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostedFinding {
    /// Label of the design point at which the program ran.
    pub label: String,
    /// Name of the companion; `None` if this is the server.
    pub companion: Option<String>,
    /// How the program runs: `process`, or the engine and the image of the container.
    pub runs_as: String,
    /// Time from start until the program listened, ns; `null` if unknown.
    pub ready_ns: Option<MedianRange>,
    /// CPU time of the program per request of the load, ns; `null` if unknown.
    pub cpu_per_request_ns: Option<MedianRange>,
    /// Peak resident memory of the program's processes, bytes; `null` if unknown.
    pub rss_max_bytes: Option<MedianRange>,
    /// Peak memory charged to the container's control group, bytes; `null` if unknown.
    pub charged_max_bytes: Option<MedianRange>,
    /// Block device reads and writes of the container's control group while measuring, bytes; `null` if unknown.
    pub io_bytes: Option<MedianRange>,
}

/// CPU profile of the server at one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileFinding {
    /// Label of the profiled design point.
    pub label: String,
    /// Why there is no profile, or why samples are missing; `None` for a complete profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Name of the event that triggered samples.
    pub event: String,
    /// Number of samples taken of the server.
    pub samples: u64,
    /// Number of samples whose stacks were dropped.
    pub other_samples: u64,
    /// Throughput of the profiled trial over the mean of the measured trials; `None` if either is unknown.
    pub rate_ratio: Option<f64>,
    /// Functions by number of self samples, largest first.
    pub functions: Vec<SampledFunction>,
    /// Stacks by number of samples, largest first; frames are indices into `functions`.
    pub stacks: Vec<SampledStack>,
    /// Summary in words: the size of the profile, and how much profiling disturbed the server.
    pub sentence: String,
}

/// Differences between the CPU profiles of two contenders.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// Label of the first design point, which is the baseline if there is one.
    pub a: String,
    /// Label of the second design point.
    pub b: String,
    /// Functions whose share differs by more than sampling noise, largest difference first.
    pub functions: Vec<ShareDifference>,
    /// Summary in words of the shown differences.
    pub sentence: String,
}

/// Share of one function in two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareDifference {
    /// Name of the function.
    pub name: String,
    /// Whether the function belongs to the kernel.
    pub kernel: bool,
    /// Fraction of the samples of the first design point that were taken in the function.
    pub a: f64,
    /// Fraction of the samples of the second design point that were taken in the function.
    pub b: f64,
}

/// Operations of one row. A row with several journeys has one entry per journey.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RowOperations {
    /// Index of the operations' row in `Findings::rows`.
    pub row: usize,
    /// Name of the journey; `null` for the requests of a mix and for stages.
    pub journey: Option<String>,
    /// Number of completed journeys over all trials.
    pub completed: u64,
    /// Number of journeys over all trials that ended early because of an error.
    pub abandoned: u64,
    /// Operations in the order of the journey or mix.
    pub operations: Vec<OperationFinding>,
}

/// Results of one operation over all trials.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Name of the operation, or method and target of the request, or number and rates of the stage.
    pub name: String,
    /// Number of calls with a valid response over all trials.
    pub requests: u64,
    /// Number of failed calls over all trials.
    pub errors: u64,
    /// Mean latency per trial, ns.
    pub latency_mean: OverTrials,
    /// Median latency per trial, ns.
    pub latency_p50: OverTrials,
    /// 99th percentile of the latency per trial, ns.
    pub latency_p99: OverTrials,
    /// Median of the time to the first part of a response, per trial, ns. Only responses in several parts count.
    pub first_byte_p50: OverTrials,
    /// Achieved requests per second in a stage of a changing rate; `null` for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<OverTrials>,
}

/// A value per trial, summarized over the trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverTrials {
    /// Mean over the trials; `null` if a trial has too few calls.
    pub mean: Option<f64>,
    /// Mean with its Student t interval; `null` for fewer than two trials.
    pub estimate: Option<Estimate>,
}

impl OverTrials {
    pub(crate) fn new(values: Option<Vec<f64>>, level: f64) -> Self {
        let values = values.unwrap_or_default();
        Self { mean: stats::interval::average(&values), estimate: stats::interval::mean(&values, level) }
    }
}

/// Overhead of proxies at one design point, compared with the same point without them (`direct`).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Added {
    /// Index of the row with proxies in `Findings::rows`.
    pub row: usize,
    /// Index of the row at `direct` in `Findings::rows`.
    pub direct: usize,
    /// The proxies as named in the study.
    pub through: String,
    /// Levels of the other factors, such as `clients 50`; empty if none of them varies.
    pub place: String,
    /// Overhead in each compared metric.
    pub metrics: Vec<AddedMetric>,
    /// Summary of the overhead in words.
    pub sentence: String,
}

/// Overhead of proxies in one metric, with values in the metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AddedMetric {
    /// Name of the compared metric.
    pub metric: String,
    /// Mean at `direct` over the common blocks.
    pub direct: f64,
    /// Mean through the proxies over the common blocks.
    pub through: f64,
    /// Typical difference per block, through minus direct (Hodges & Lehmann), with its signed rank interval. `None` for
    /// fewer than six blocks, which have no 95 % interval.
    pub difference: Option<Estimate>,
    /// Typical ratio of through to direct with its interval; `None` without a `difference`, or if a value is at most 0.
    pub ratio: Option<Estimate>,
    /// Probability of such a clear difference by chance (Wilcoxon's exact signed rank test), adjusted (Holm) for all
    /// points and, for a metric that sentences mention, for all such metrics. `None` without common blocks.
    pub p_adjusted: Option<f64>,
    /// Whether a difference is shown at the run's confidence level; requires at least 12 blocks.
    pub shown: bool,
    /// Number of blocks in which both rows have a trial.
    pub blocks: u64,
}

impl Added {
    /// Looks up the overhead in a metric by name; `None` if it was not compared.
    pub fn metric(&self, name: &str) -> Option<&AddedMetric> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}

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

/// Timeline of the measured time of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsideTrial {
    /// Index of the trial's row in `Findings::rows`.
    pub row: usize,
    /// Position of the trial in the run's order, from 0.
    pub order: u32,
    /// Number of the trial's block, from 0.
    pub block: u32,
    /// Metric by which the trial is the median of its row: `Findings::metric`, or `throughput` if no trial has a value.
    pub metric: String,
    /// Length of the measured time, ns.
    pub duration_ns: u64,
    /// Consecutive slices of the measured time, at most 120.
    pub columns: Vec<Column>,
    /// Server, proxies in the order in which requests pass them, and generator.
    pub processes: Vec<Process>,
}

/// A slice of the measured time, made of adjacent windows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Start of the slice, ns since measuring began.
    pub from_ns: u64,
    /// End of the slice, ns since measuring began.
    pub to_ns: u64,
    /// Number of valid responses in the slice.
    pub requests: u64,
    /// Number of errors of all kinds in the slice.
    pub errors: u64,
    /// Number of latencies in each non-empty band, ascending: band `b` covers 2^(b/4) ns to 2^((b+1)/4) ns.
    pub bands: Vec<(u16, u64)>,
    /// Median latency in the slice, ns; `None` without latencies.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the latency in the slice, ns; `None` for fewer than 100 latencies.
    pub p99_ns: Option<f64>,
}

/// Resource usage of a process during the trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Role of the process in the trial.
    pub role: Role,
    /// Name of a proxy; empty for the server and the generator, which are single processes.
    pub name: String,
    /// CPUs in use: pairs of time (ns since measuring began) and mean since the previous sample. Each time is the
    /// midpoint between the two samples. Empty if the process was not sampled.
    pub cpus: Vec<(f64, f64)>,
    /// Mean number of CPUs in use over the measured time; `None` if unknown.
    pub cpus_mean: Option<f64>,
    /// Resident set: pairs of time (ns since measuring began) and bytes. Empty if the process was not sampled.
    pub rss_bytes: Vec<(f64, f64)>,
}

/// Role of a process in the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The server under test.
    Server,
    /// A proxy before the server.
    Proxy,
    /// The load generator.
    Generator,
}

/// Miss-ratio curves of one panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatios {
    /// Index of the figure in `Findings::figures`.
    pub figure: usize,
    /// Factor whose levels are memory limits.
    pub x: String,
    /// Levels of the factors other than memory limit and series, such as `clients 50`; empty if none of them varies.
    pub panel: String,
    /// Measured curves, one per series.
    pub curves: Vec<MissRatioCurve>,
    /// Simulated curves of eviction policies.
    pub policies: Vec<CurvePolicy>,
    /// Results in words, one sentence per series: whether and where the measured curve deviates from its policy.
    pub sentences: Vec<String>,
    /// Descriptions of the policies, and reasons for missing curves.
    pub notes: Vec<String>,
}

/// A measured curve, which belongs to one series.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the series.
    pub label: String,
    /// Level of the factor that defines the series; `None` if the panel has only one series.
    pub series: Option<Level>,
    /// Policy that the curve is compared with; `None` if it was not simulated.
    pub policy: Option<String>,
    /// Whether the study declares this policy for the series.
    pub is_own: bool,
    /// Measured points by memory limit, ascending.
    pub points: Vec<MissRatioPoint>,
}

/// A measured point of a curve, at one memory limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioPoint {
    /// Index of the point's row in `Findings::rows`.
    pub row: usize,
    /// Memory limit as written in the study.
    pub capacity: Level,
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Memory limit divided by footprint (the bytes of all distinct requested keys and values); `None` if unknown.
    pub footprint_share: Option<f64>,
    /// Memory of the server above its usage before the load, bytes, mean over the trials; `None` if unknown.
    pub memory_bytes: Option<f64>,
    /// Misses per GET, from 0 to 1; mean over the trials.
    pub miss_ratio: f64,
    /// Miss ratio with its interval; `None` if it has no interval.
    pub estimate: Option<Estimate>,
    /// Mean miss ratio of the simulated policy for the operations of these trials; `None` if it was not simulated.
    pub simulated: Option<f64>,
    /// Mean over the trials of the measured minus the simulated miss ratio. `None` for fewer than two simulated trials.
    pub difference: Option<Estimate>,
    /// Probability of such a large difference by chance, adjusted for all points (Holm); `None` for a single trial.
    pub p_adjusted: Option<f64>,
    /// Whether the point deviates from the policy by more than chance and by more than 0.1 percentage points.
    pub strays: bool,
    /// Whether the difference is shown to be within ±0.1 percentage points (two one-sided tests, Holm).
    pub keeps: bool,
}

/// Simulated curve of an eviction policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePolicy {
    /// Name of the eviction policy.
    pub name: String,
    /// Description of the policy in words.
    pub text: String,
    /// Points by memory limit, ascending.
    pub points: Vec<PolicyPoint>,
}

/// A point on the curve of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyPoint {
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Misses per GET, from 0 to 1; mean over the replays.
    pub miss_ratio: f64,
    /// Number of trials whose operations were replayed.
    pub replays: usize,
}

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
    pub undecided: study::gate::Undecided,
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
    pub bound: Option<study::gate::Bound>,
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

    #[test]
    fn agrees_with_a_map() {
        let (mut values, mut map) = (MetricValues::default(), BTreeMap::new());
        for step in 0..200 {
            let metric = study::METRICS[step * 7 % study::METRICS.len()].name;
            values.insert(metric, step as f64);
            map.insert(metric, step as f64);
            for known in study::METRICS {
                assert_eq!(values.get(known.name), map.get(known.name).copied());
            }
            assert_eq!(serde_json::to_string(&values).unwrap(), serde_json::to_string(&map).unwrap());
        }
        assert_eq!(values.get("unknown"), None);
    }
}
