//! The plan of a run: every design point with its commands and loads, and the order of trials.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::search::Step;

use crate::gate::Gate;
pub use crate::level::Level;
use crate::load_shape::Stage;
use crate::objective::Objective;
pub use crate::process_plan::{CompanionPlan, ContainerPlan, EngineChoice, ProcessPlan, ProxyPlan};
use crate::spec::{
    Arrivals, Backend, ClientCertificate, Connection, Expect, Http2Settings, Identities, Protocol, Stop, Tls, Warmup,
};
use crate::workload::Workload;

/// An expanded study, with everything that a run needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name of the study, the stem of its file.
    pub study: String,
    /// The question of the study, in its author's words.
    pub question: String,
    /// Content of the study file, so that a record can be understood without the file.
    pub text: String,
    /// Random seed from which the order and the seeds of the trials derive.
    pub seed: u64,
    /// Names of the factors, in the order of the study.
    pub factors: Vec<String>,
    /// The design points, including points that this machine cannot run.
    pub points: Vec<Point>,
    /// Rule that decides when there are enough trials.
    pub trials: TrialRule,
    /// Figures of the report.
    pub figures: Vec<Figure>,
    /// Tables of the report in addition to the standard one.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Combinations of levels that are design points, and metrics whose effects are reported.
    #[serde(default)]
    pub effects: EffectsPlan,
    /// Series whose trend over the requests of a trial is reported, by their names in [`crate::metric::OVER_REQUESTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes: Vec<String>,
    /// The question that the study states; `None` if it states none and [`Plan::asked`] infers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Asked>,
    /// Baseline, and limits for the candidates that are compared with it; `None` for no gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// The question of a study, which the first sentence of the report answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Kind of question, such as which level is best.
    pub kind: AskedKind,
    /// The factor in question, whose levels are contenders, routes through proxies or numbers; `None` if there is none.
    pub factor: Option<String>,
}

/// Kinds of questions that a study can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedKind {
    /// Which level of the factor is best?
    Best,
    /// What do proxies add to the direct route?
    Added,
    /// How does the metric grow with the factor, whose levels are numbers?
    Growth,
    /// What is the highest rate that meets the objective?
    Capacity,
    /// Which factors matter, and how do they interact?
    Effects,
    /// What are the values of the metrics?
    Values,
    /// Is a candidate worse than its baseline? Asked by every study with a [`Plan::gate`].
    Gate,
}

/// Combinations of levels that are design points, and metrics whose effects are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectsPlan {
    /// Rule that selects the combinations of levels.
    pub design: Design,
    /// The metrics whose effects are reported; `None` for the metrics of the stop rule and the figures.
    pub metrics: Option<Vec<String>>,
}

/// Rule that selects which combinations of levels are design points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All combinations, which separate effects from interactions.
    #[default]
    Full,
    /// The first level of every factor, then each other level of one factor at a time. Interactions cannot be found.
    OneAtATime,
}

/// One design point: a combination of levels with its processes and load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Levels of the factors, by name.
    pub factors: BTreeMap<String, Level>,
    /// Server under test at these levels.
    pub subject: SubjectPlan,
    /// Proxies between generator and server, starting with the one next to the generator; empty without proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ProxyPlan>,
    /// CPUs reserved for proxies, the same at every point, so that points differ only in their factors.
    #[serde(default)]
    pub proxy_cpus: u32,
    /// Companions of the server, in the order in which they are started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionPlan>,
    /// CPUs reserved for companions, the same at every point.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub companion_cpus: u32,
    /// Load at these levels.
    pub load: LoadPlan,
    /// Why this machine cannot run the point; `None` if it can.
    pub unrunnable: Option<String>,
}

impl Point {
    /// Plans of the processes of the point: the server, then proxies and companions.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessPlan> {
        let proxies = self.proxies.iter().map(|proxy| &proxy.process);
        let companions = self.companions.iter().map(|companion| &companion.process);
        std::iter::once(&self.subject.process).chain(proxies).chain(companions)
    }
}

/// The server under test. Its command may contain only templates that the lab fills in, such as `{port}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectPlan {
    /// How the server is built, started and stopped.
    #[serde(flatten)]
    pub process: ProcessPlan,
    /// Git commit of the worktree in `directory`; `None` unless `quintain compare` made the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Number of CPUs that the server uses.
    pub cpus: u32,
    /// Number of CPUs that the server would use (`cpus = { up_to = 8 }`) if this machine had enough; `None` if it has.
    pub cpus_wanted: Option<u32>,
    /// Verification of the server's contract before its trials; `None` if disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyPlan>,
}

/// Verification of a server before its trials, in addition to the cases of its protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyPlan {
    /// A case file, relative to the working directory of `quintain run`; `None` to check only the protocol's cases.
    pub cases: Option<String>,
}

impl SubjectPlan {
    /// Creates the plan of a server from a command. Fails if the command is invalid or has no `{port}`.
    pub fn of_command(command: &str) -> Result<SubjectPlan, String> {
        crate::shell_words::check(command).map_err(|mistake| mistake.to_string())?;
        if !crate::factor_placeholders::names(command).contains(&crate::factor_placeholders::PORT) {
            return Err(format!("`{command}` has no `{{port}}`"));
        }
        let (command, ready_timeout_ns, stop_timeout_ns) = (command.to_owned(), 10_000_000_000, 2_000_000_000);
        let process = ProcessPlan { command, ready_timeout_ns, stop_timeout_ns, ..ProcessPlan::default() };
        Ok(SubjectPlan { process, ..SubjectPlan::default() })
    }
}

/// The planned load. The lab turns it into a [`crate::spec::LoadSpec`] once the port and the CPUs are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPlan {
    /// Protocol of the requests; `http`, `workload` or `journey` holds their details.
    pub protocol: Protocol,
    /// HTTP requests; `None` for other protocols.
    pub http: Option<HttpPlan>,
    /// Cache workload; `None` for other protocols, or if the study has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// User journey; `None` for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journey: Option<JourneyPlan>,
    /// Number of clients, each with a connection.
    pub clients: u32,
    /// Maximum number of requests in flight per connection.
    #[serde(default = "crate::one")]
    pub pipeline: u32,
    /// How long a connection is used.
    #[serde(default)]
    pub connection: Connection,
    /// Number of workers; `None` for one per CPU of the generator.
    pub threads: Option<u32>,
    /// Number of CPUs of the generator; `None` for all CPUs that the server leaves.
    pub cpus: Option<u32>,
    /// Whether server and generator may share CPUs if there are not enough.
    pub share_cpus: bool,
    /// I/O backend of the generator.
    pub backend: Backend,
    /// Arrival process. With `search` or `share`, its rate is a placeholder; each record's [`Step`] has the real rate.
    pub arrivals: Arrivals,
    /// The stages of a changing load, as in [`LoadSpec::shape`](crate::spec::LoadSpec::shape); empty if constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<Stage>,
    /// Search for the highest rate that meets an objective; its steps are the point's trials. `None` for no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// The rate as a fraction of the capacity that a search finds; `None` if the rate does not depend on a capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<CapacityShare>,
    /// Warm-up before measuring.
    pub warmup: Warmup,
    /// Rule that ends measuring.
    pub stop: Stop,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Timeout of a request, ns.
    pub timeout_ns: u64,
}

/// HTTP requests. The lab adds the `Host` header once the server's port is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpPlan {
    /// The requests of the mix, at least one.
    pub requests: Vec<HttpRequestPlan>,
    /// TLS settings; `None` if the connection is not encrypted.
    pub tls: Option<Tls>,
    /// Whether the load uses HTTP/2 instead of HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// Windows and table of HTTP/2 connections.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub http2_settings: Http2Settings,
    /// Conditions of a valid response.
    pub expect: Expect,
    /// Schema file of gRPC calls, whose bodies are then JSON; `None` for encoded bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    /// Whether a gRPC call sends each further message only after a message of the response.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// Named values for body files. In all other strings, each name has been replaced by the form of its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
}

/// One of the journeys of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JourneySource {
    /// A preset's name, or a file relative to the study's directory.
    pub source: String,
    /// Relative frequency among the journeys.
    pub weight: u32,
}

/// Journeys of several operations. The lab reads the files and fills in the ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyPlan {
    /// The journeys, at least one.
    pub journeys: Vec<JourneySource>,
    /// URLs of the targets by name. Unlisted ones use `{port}`, the port under load. `{subject_port}` bypasses proxies.
    pub targets: BTreeMap<String, String>,
    /// URL of the endpoint resolver, unused at `direct`; `None` without one. `{admin_port}` is the first proxy's port.
    pub resolve: Option<String>,
    /// Whether https connections accept any certificate.
    pub insecure: bool,
    /// PEM file with the trusted root certificates for https; `None` trusts the public ones.
    pub ca_file: Option<String>,
    /// Certificate for https servers that request one; `None` sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// Whether the load uses HTTP/2 instead of HTTP/1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// Whether the record includes the timing of every call.
    pub keep_calls: bool,
    /// Whether each journey has a new user or each client keeps one.
    #[serde(default)]
    pub identities: Identities,
}

/// One request of a mix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRequestPlan {
    /// Relative frequency in the mix.
    pub weight: u32,
    /// HTTP method, such as `GET`.
    pub method: String,
    /// Path and query of the request target.
    pub path: String,
    /// Headers in the order they are sent; `Host` is added if missing.
    pub headers: Vec<(String, String)>,
    /// Body of the request; `None` for no body.
    pub body: Option<BodyPlan>,
    /// Name of the request in reports; `None` to show method and path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Source of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyPlan {
    /// This string, given in the study.
    Text(String),
    /// A file, relative to the study's directory, which is read when a trial starts.
    File(String),
}

impl LoadPlan {
    /// The path and query of the first HTTP request; `/` if there is none.
    pub fn path(&self) -> &str {
        let first = self.http.as_ref().and_then(|http| http.requests.first());
        first.map_or("/", |request| request.path.as_str())
    }

    /// The load of one trial: at the rate of `step`, or unchanged if `step` is `None`.
    pub fn at(&self, step: Option<Step>) -> LoadPlan {
        let mut load = self.clone();
        match step.map(|step| step.rate_per_s) {
            None => {}
            Some(Some(rate_per_s)) => load.arrivals = load.arrivals.at(rate_per_s),
            Some(None) => {
                load.arrivals = Arrivals::closed(0);
                if let Some(search) = &load.search {
                    load.stop = Stop::Duration { duration_ns: search.pilot_ns };
                }
            }
        }
        load
    }
}

/// A search for the highest offered rate that meets an objective (method: `stats::search`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPlan {
    /// Objective that the rate must meet.
    pub objective: Objective,
    /// Lowest rate to try, at which the search starts, per second; `None` if a short closed loop finds the start.
    pub from_per_s: Option<f64>,
    /// Highest rate to try, per second; `None` for no limit.
    pub to_per_s: Option<f64>,
    /// Relative width of the range at which the search stops: its upper end divided by its lower end, minus 1.
    pub resolution: f64,
    /// Number of fresh trials that must all meet the objective at the lower end of the range.
    pub confirm: u32,
    /// Length of the closed loop that finds the starting rate, ns.
    pub pilot_ns: u64,
    /// Maximum number of trials.
    pub trials_max: u32,
    /// Time after which no further trial of the point starts, ns; `None` for no limit.
    pub max_ns: Option<u64>,
    /// Whether other points use fractions of the result, so that the search runs before them.
    pub first: bool,
}

impl SearchPlan {
    /// A search with default settings, whose trials measure for `trial_ns`.
    pub fn new(objective: Objective, trial_ns: u64) -> Self {
        /// Maximum length of the pilot, ns, which is short because its result need not be exact.
        const PILOT_NS: u64 = 1_000_000_000;
        Self {
            objective,
            from_per_s: None,
            to_per_s: None,
            resolution: 0.05,
            confirm: 3,
            pilot_ns: trial_ns.min(PILOT_NS),
            trials_max: 60,
            max_ns: None,
            first: false,
        }
    }
}

/// A rate relative to the capacity of the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityShare {
    /// Fraction of the capacity, the lower end of the range that the search finds. Values above 1 mean overload.
    pub share: f64,
    /// Index of the design point whose search finds the capacity.
    pub point: usize,
}

/// Rule that decides when each design point, and the whole run, has enough trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRule {
    /// Target relative half-width of each point's interval. Without this and `comparison`, each point has `min` trials.
    pub relative: Option<f64>,
    /// Target relative half-width of the intervals of contenders' ratios to the best, or of values if nothing competes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<f64>,
    /// Confidence level, from 0 to 1.
    pub level: f64,
    /// The metric whose interval is checked, by its name in the report.
    pub metric: String,
    /// Minimum number of blocks, each with one trial per point.
    pub min: u32,
    /// Maximum number of blocks, each with one trial per point.
    pub max: u32,
    /// Time after which no further block of the run starts, ns; `None` for no limit.
    pub max_ns: Option<u64>,
    /// Whether this is a quick run, whose intervals claim no confidence level.
    pub quick: bool,
}

/// A figure of the report, with its axes, series and facets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Kind of figure, which determines the axes.
    pub kind: FigureKind,
    /// Factor on the horizontal axis; `None` if the kind of figure has none.
    pub x: Option<String>,
    /// Metric on the vertical axis; `None` if the kind of figure determines it.
    pub y: Option<String>,
    /// Further metrics on the vertical axis, each drawn as a series; empty for one metric.
    #[serde(default)]
    pub y_more: Vec<String>,
    /// Factor with one series per level; `None` for a single series.
    pub series: Option<String>,
    /// Factor with one facet per level; `None` for a single facet.
    pub facet: Option<String>,
    /// Confidence level of the intervals drawn, from 0 to 1.
    pub interval: f64,
    /// Title of the figure; `None` to generate one.
    pub title: Option<String>,
    /// Policies ([`POLICIES`]) that a miss-ratio curve simulates on the same operations; empty for other figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Bytes per unit of the numbers on `x` of a miss-ratio curve; `None` for 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit_bytes: Option<u64>,
}

/// The policies that a miss-ratio curve may name, each with a description. Two of them are clairvoyant.
pub const POLICIES: [(&str, &str); 9] = [
    ("lru", "eviction policy `lru`"),
    ("density", "eviction policy `density`"),
    ("fifo", "eviction policy `fifo`"),
    ("clock", "eviction policy `clock`"),
    ("sieve", "eviction policy `sieve`"),
    ("s3-fifo", "eviction policy `s3-fifo`"),
    ("none", "no eviction: a full cache rejects"),
    ("belady", "clairvoyant: evicts the item read furthest in the future (Belady 1966), without overhead"),
    ("belady-size", "clairvoyant: evicts the item with the largest time to next read times bytes, without overhead"),
];

impl Figure {
    /// Bytes that a level of `x` stands for: a number of units, or a word such as `250kB`. `None` for anything else.
    pub fn capacity_bytes(&self, level: &Level) -> Option<u64> {
        let bytes = match level {
            Level::Text(word) => config::units::bytes(word).ok()?,
            number => (number.as_f64()? * self.x_unit_bytes.unwrap_or(1) as f64).round() as u64,
        };
        (bytes > 0).then_some(bytes)
    }

    /// The policy that a level of `series` names, possibly after a hyphen, as in `redis-lru`; `None` if there is none.
    pub fn policy_of(&self, series: Option<&Level>) -> Option<&str> {
        let Some(Level::Text(word)) = series else { return None };
        let named = |policy: &&String| {
            word.strip_suffix(policy.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('-'))
        };
        self.policies.iter().filter(named).max_by_key(|policy| policy.len()).map(String::as_str)
    }
}

/// A table with one row per design point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Kind of table, which determines the columns.
    pub kind: TableKind,
    /// Names of the metrics: one for [`TableKind::Statistics`], any number for [`TableKind::Metrics`].
    pub metrics: Vec<String>,
    /// Title of the table; `None` to generate one.
    pub title: Option<String>,
}

/// Kinds of table that a report can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Sample mean, sample standard deviation, interval and number of trials of one metric.
    Statistics,
    /// One column per metric with its mean and the half-width of the interval.
    Metrics,
}

/// Kinds of figure that a report can contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines with error bars, one line per level of the series.
    #[default]
    Line,
    /// Points, one per trial.
    Scatter,
    /// Lines with error bars over one factor, one line per level of a second. Parallel lines mean no interaction.
    Interaction,
    /// Cumulative distribution function of latency.
    Ecdf,
    /// Quantiles of latency on a logarithmic axis.
    Quantiles,
    /// Trials in the order they ran.
    Timeline,
    /// Miss ratio of a cache over its memory limit, with policies simulated on the same operations.
    MissRatio,
    /// Difference between points with proxies and the point at `direct`, block by block.
    Added,
    /// RSS over the number of requests, and the store size if there is a store.
    #[serde(rename = "memorychart")]
    MemoryChart,
    /// Time per request over the number of requests; each point is the mean of 250 requests.
    #[serde(rename = "throughputchart")]
    ThroughputChart,
    /// Bytes that a proxy adds to each request.
    #[serde(rename = "networkchart")]
    NetworkChart,
}
