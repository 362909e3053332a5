//! What is to be run: every design point with its concrete commands and loads, and the order of the trials.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objective::Objective;
pub use crate::proxy::ProxyPlan;
use crate::proxy::THROUGH;
use crate::spec::{Arrivals, Backend, Connection, Expect, Identities, Protocol, Stop, Tls, Warmup};
use crate::workload::Workload;

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Level {
    /// A whole number.
    Integer(i64),
    /// A fraction.
    Number(f64),
    /// A word.
    Text(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Integer(value) => value.fmt(f),
            Level::Number(value) => value.fmt(f),
            Level::Text(value) => value.fmt(f),
        }
    }
}

impl Level {
    /// As a number, for an axis.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Level::Integer(value) => Some(*value as f64),
            Level::Number(value) => Some(*value),
            Level::Text(_) => None,
        }
    }
}

/// A study, expanded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name of the study, the stem of its file.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// Its text, so that a record can be understood without the file.
    pub text: String,
    /// Seed of the order and of every trial.
    pub seed: u64,
    /// Names of the factors, in the order of the file.
    pub factors: Vec<String>,
    /// The design points.
    pub points: Vec<Point>,
    /// When there are trials enough.
    pub trials: TrialRule,
    /// Figures to draw.
    pub figures: Vec<Figure>,
    /// Tables to show beside the one that every report has.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Which combinations of levels the design points are, and what the effects of the factors are looked for in.
    #[serde(default)]
    pub effects: EffectsPlan,
    /// What is looked at over the requests of a trial, by its name in [`crate::metric::OVER_REQUESTS`]: whether it grows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes: Vec<String>,
    /// What is asked, as far as the study says so; [`Plan::asked`] knows the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Asked>,
}

/// What a study asks, so that the first sentence of its answer can answer it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// What kind of question it is.
    pub kind: AskedKind,
    /// The factor that it is about: contenders, ways through a proxy, or a number that something grows with; `None`: all of them, or none.
    pub factor: Option<String>,
}

/// Kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskedKind {
    /// Which level of the factor is best?
    Best,
    /// What do proxies add to what is asked directly?
    Added,
    /// How does it grow with the factor, a number?
    Growth,
    /// How much can it take: which rate is borne?
    Capacity,
    /// Which factors matter, and how do they act together?
    Effects,
    /// What are the values?
    Values,
}

/// Which combinations of levels the design points are, and what the effects of the factors are looked for in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectsPlan {
    /// Which combinations of levels are design points.
    pub design: Design,
    /// The metrics whose effects are reported; `None`: that of the stop rule and those of the figures.
    pub metrics: Option<Vec<String>>,
}

/// Which combinations of levels are design points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All of them: effects and interactions can be told apart.
    #[default]
    Full,
    /// The first level of every factor, and from there each other level of one factor at a time: few points, and blind to interactions.
    OneAtATime,
}

impl Design {
    /// The word in a study.
    pub fn word(self) -> &'static str {
        match self {
            Design::Full => "full",
            Design::OneAtATime => "one-at-a-time",
        }
    }
}

/// One design point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Levels of the factors, by name.
    pub factors: BTreeMap<String, Level>,
    /// The subject.
    pub subject: SubjectPlan,
    /// What stands between generator and subject, the generator's neighbour first; empty: nothing.
    #[serde(default, alias = "middles", skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ProxyPlan>,
    /// Processors kept for proxies, here and in every other point, so that nothing else differs between them.
    #[serde(default)]
    pub proxy_cpus: u32,
    /// The load.
    pub load: LoadPlan,
    /// Why this machine cannot run it; `None`: it can.
    pub unrunnable: Option<String>,
}

/// How to build and start a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectPlan {
    /// Build command, run once before the first trial.
    pub build: Option<String>,
    /// Command; `{port}` and `{second_port}` are the only templates left in it.
    pub command: String,
    /// Working directory, relative to the folder that `run` was started in.
    pub directory: Option<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// Processors it gets.
    pub cpus: u32,
    /// Processors it would have used, where this machine leaves it fewer (`cpus = { up_to = 8 }`); `None`: it has what the study asks
    /// for.
    #[serde(default)]
    pub cpus_wanted: Option<u32>,
    /// The port; `None`: a free one.
    pub port: Option<u16>,
    /// It must answer on its port within this, ns.
    pub ready_timeout_ns: u64,
    /// It must end within this after SIGTERM, ns.
    pub stop_timeout_ns: u64,
}

/// What to load it with; the lab makes a [`crate::spec::LoadSpec`] of it when the port and the processors are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPlan {
    /// What is spoken.
    pub protocol: Protocol,
    /// What is asked over HTTP; `None`: another protocol.
    #[serde(default)]
    pub http: Option<HttpPlan>,
    /// What a cache is asked; `None`: another protocol, or nothing said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// What journey its users make; `None`: another protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journey: Option<JourneyPlan>,
    /// Connections.
    pub clients: u32,
    /// Requests in flight on one connection at most.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// How long a connection is used.
    #[serde(default)]
    pub connection: Connection,
    /// Workers; `None`: one for each processor of the generator.
    pub threads: Option<u32>,
    /// Processors of the generator; `None`: all that the subject leaves.
    pub cpus: Option<u32>,
    /// Whether subject and generator may share processors where there are not enough.
    pub share_cpus: bool,
    /// Backend of the generator.
    pub backend: Backend,
    /// When requests are sent. With [`LoadPlan::search`] or [`LoadPlan::share`] the law of arrivals alone counts: the rate is
    /// found out while the run goes on, and stands in the [`Step`] of each record.
    pub arrivals: Arrivals,
    /// Search for the highest rate that keeps an objective: the trials of the point are its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// The rate is a share of what a search has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<CapacityShare>,
    /// Before measuring.
    pub warmup: Warmup,
    /// End of measuring.
    pub stop: Stop,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Timeout of a request, ns.
    pub timeout_ns: u64,
}

fn one() -> u32 {
    1
}

/// What is asked over HTTP. The subject's port, and with it the `Host` header, is known to the lab alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpPlan {
    /// The mix, one request at least.
    pub requests: Vec<HttpRequestPlan>,
    /// With it, the connection is encrypted.
    pub tls: Option<Tls>,
    /// Which answers are right.
    pub expect: Expect,
}

/// A journey of several operations. The file is read, and ports are filled in, by the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyPlan {
    /// A preset's name, or a file relative to the folder that `run` was started in.
    pub source: String,
    /// URLs of its targets by name. In them the lab fills in `{port}`, where the generator's connections go, and `{subject_port}`, where the subject listens;
    /// the two are one where nothing stands between. A target that is not here is `{port}`.
    pub targets: BTreeMap<String, String>,
    /// Whom to ask where endpoints are to be dialled, `http://host:port`. `{admin_port}` in it is that of the first proxy; at `direct` nobody is asked.
    pub resolve: Option<String>,
    /// https: any certificate is right.
    pub insecure: bool,
    /// https: the roots to trust, PEM.
    pub ca_file: Option<String>,
    /// Whether the times of every call are kept in the record.
    pub keep_calls: bool,
    /// Who the users are.
    #[serde(default)]
    pub identities: Identities,
}

/// One request of a mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRequestPlan {
    /// Share of it among all requests of the mix, in proportion.
    pub weight: u32,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header fields, in the order they are sent; `Host` is added where it is not given.
    pub headers: Vec<(String, String)>,
    /// Body; `None`: none.
    pub body: Option<BodyPlan>,
}

/// Where a body comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyPlan {
    /// The study.
    Text(String),
    /// A file, relative to the folder that `run` was started in; read when a trial begins.
    File(String),
}

impl LoadPlan {
    /// The load of one trial: with the rate of its step, where it has one.
    pub fn at(&self, step: Option<Step>) -> LoadPlan {
        let mut load = self.clone();
        match (step.map(|step| step.rate_per_s), load.arrivals) {
            (None, _) => {}
            (Some(Some(rate_per_s)), Arrivals::Constant { .. }) => load.arrivals = Arrivals::Constant { rate_per_s },
            (Some(Some(rate_per_s)), _) => load.arrivals = Arrivals::Poisson { rate_per_s },
            (Some(None), _) => {
                load.arrivals = Arrivals::Closed { think_ns: 0 };
                if let Some(search) = &load.search {
                    load.stop = Stop::Duration { duration_ns: search.pilot_ns };
                }
            }
        }
        load
    }
}

/// A search for the highest offered rate that keeps an objective (`stats::search` has the method).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPlan {
    /// What must be kept.
    pub objective: Objective,
    /// The lowest rate tried, where the search begins, per second; `None`: it begins where a short closed loop says.
    pub from_per_s: Option<f64>,
    /// The highest rate tried, per second; `None`: without limit.
    pub to_per_s: Option<f64>,
    /// The ends of the answer may lie so far apart: upper over lower end, less one.
    pub resolution: f64,
    /// So many fresh trials must keep the objective at the lower end, each of them.
    pub confirm: u32,
    /// Length of the closed loop that says where to begin, ns.
    pub pilot_ns: u64,
    /// At most so many trials.
    pub trials_max: u32,
    /// No further trial of the point begins after this, ns; `None`: without limit.
    pub max_ns: Option<u64>,
    /// Whether other points have shares of what is found, so that it is run before them.
    pub first: bool,
}

impl SearchPlan {
    /// A search as it is where nothing but the objective is said; its trials measure so long.
    pub fn new(objective: Objective, trial_ns: u64) -> Self {
        /// The pilot takes no longer than this: it need not be exact.
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

/// A trial whose rate was decided by the trials before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What for.
    pub purpose: Purpose,
    /// Offered rate, per second; `None`: a closed loop.
    pub rate_per_s: Option<f64>,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Search: a closed loop, to know where to begin.
    Pilot,
    /// Search: a rate beyond all that were tried.
    Bracket,
    /// Search: a rate between one that holds and one that fails.
    Bisect,
    /// Search: a rate again that could not be judged.
    Repeat,
    /// Search: an end of the answer again.
    Confirm,
    /// No search: a share of a capacity that was found before.
    Share,
}

impl Point {
    /// The levels of every factor but `through`: what a point through proxies has in common with the point at `direct` that it is held
    /// against.
    pub fn besides_through(&self) -> BTreeMap<&str, &Level> {
        let rest = self.factors.iter().filter(|(name, _)| *name != THROUGH);
        rest.map(|(name, level)| (name.as_str(), level)).collect()
    }
}

/// A rate in terms of what the subject can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityShare {
    /// Share of the capacity: of the lower end of what the search has found. A fraction; above 1 is beyond the capacity.
    pub share: f64,
    /// Index of the design point whose search finds the capacity.
    pub point: usize,
}

/// When there are trials enough of a design point, and of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRule {
    /// Half-width over the estimate that is tight enough for the value of each point, a fraction. With neither this nor `comparison` there are
    /// `min` trials and no more.
    pub relative: Option<f64>,
    /// Half-width of the typical ratio of each contender to the best of its place that is tight enough, a fraction; where there is nothing to
    /// compare, that of the values themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<f64>,
    /// Level of confidence, a fraction.
    pub level: f64,
    /// The metric whose interval is looked at, by its name in the report.
    pub metric: String,
    /// At least so many blocks: trials of each point.
    pub min: u32,
    /// At most so many.
    pub max: u32,
    /// No further block begins after this, for the whole run, ns; `None`: without limit.
    pub max_ns: Option<u64>,
    /// Whether this is a quick run, whose intervals do not claim their level.
    pub quick: bool,
}

/// A figure that the study asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What kind.
    pub kind: FigureKind,
    /// Factor on the horizontal axis; for distributions unused.
    pub x: Option<String>,
    /// Metric on the vertical axis.
    pub y: Option<String>,
    /// Further metrics on it; each metric is then a series of its own.
    #[serde(default)]
    pub y_more: Vec<String>,
    /// Factor that makes the series.
    pub series: Option<String>,
    /// Factor that makes the facets.
    pub facet: Option<String>,
    /// Level of the intervals drawn.
    pub interval: f64,
    /// Title; `None`: made of the rest.
    pub title: Option<String>,
    /// Of a miss-ratio curve: the policies ([`POLICIES`]) whose misses are worked out for the same operations; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Of a miss-ratio curve: bytes that 1 of a number on `x` stands for; `None`: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit_bytes: Option<u64>,
}

/// The policies that a miss-ratio curve may name, and what each is: quintain's own evictors, and two clairvoyants, who know what will be
/// asked for.
pub const POLICIES: [(&str, &str); 9] = [
    ("lru", "the evictor `lru`"),
    ("density", "the evictor `density`"),
    ("fifo", "the evictor `fifo`"),
    ("clock", "the evictor `clock`"),
    ("sieve", "the evictor `sieve`"),
    ("s3-fifo", "the evictor `s3-fifo`"),
    ("none", "no eviction: a full cache refuses"),
    ("belady", "a clairvoyant that lets go what is read last (Belady 1966), without overhead"),
    ("belady-size", "a clairvoyant that lets go what has most time until its next read times bytes, without overhead"),
];

impl Figure {
    /// The bytes that a level of `x` of a miss-ratio curve stands for: a number in its unit, or a word such as `250kB`.
    pub fn capacity_bytes(&self, level: &Level) -> Option<u64> {
        let bytes = match level {
            Level::Text(word) => crate::units::bytes(word).ok()?,
            number => (number.as_f64()? * self.x_unit_bytes.unwrap_or(1) as f64).round() as u64,
        };
        (bytes > 0).then_some(bytes)
    }

    /// The policy that a series says it has: the level is its name, or ends with it after a hyphen, as in `redis-lru`.
    pub fn policy_of(&self, series: Option<&Level>) -> Option<&str> {
        let Some(Level::Text(word)) = series else { return None };
        let named = |policy: &&String| {
            word.strip_suffix(policy.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('-'))
        };
        self.policies.iter().filter(named).max_by_key(|policy| policy.len()).map(String::as_str)
    }
}

/// A table that the study asks for: every design point, with these metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// What its columns are.
    pub kind: TableKind,
    /// Metrics: one for [`TableKind::Statistics`], any number for [`TableKind::Metrics`].
    pub metrics: Vec<String>,
    /// Title; `None`: made of the rest.
    pub title: Option<String>,
}

/// Kinds of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Of one metric: sample mean, sample standard deviation, interval, trials.
    Statistics,
    /// A column for each metric: mean and half of its interval.
    Metrics,
}

/// Kinds of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines with error bars.
    Line,
    /// Points, one a trial.
    Scatter,
    /// Lines with error bars over the levels of one factor, numbers or words, one for each level of another: where they are not parallel,
    /// the effect of one factor depends on the other.
    Interaction,
    /// Cumulative distribution of latency.
    Ecdf,
    /// Latency over quantile, on a log axis.
    Quantiles,
    /// Trials in the order they ran.
    Timeline,
    /// Misses over GETs of a cache over its capacity, with what policies would have made of the same operations.
    MissRatio,
    /// What points through proxies add to those at `direct`, block by block.
    Added,
    /// Resident set, and store where there is one, over requests.
    #[serde(rename = "memorychart")]
    MemoryChart,
    /// Time a request over requests, means of 250.
    #[serde(rename = "throughputchart")]
    ThroughputChart,
    /// Bytes a request that a proxy adds.
    #[serde(rename = "networkchart")]
    NetworkChart,
}
