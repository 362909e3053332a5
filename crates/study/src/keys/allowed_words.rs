//! Sets of words that a study may use, with their meanings.

use crate::gate::{self, Undecided};
use crate::metric::{METRICS, OVER_REQUESTS};
use crate::plan::{self, AskedKind, Design, FigureKind, POLICIES};
use crate::process_plan::{self, EngineChoice};
use crate::spec::{Backend, Connection, Identities, Protocol};
use crate::workload::trace::{self, Format};
use crate::workload::{Gaps, NewKey, ValueLength};

/// Defines each set as words with meanings, and a function that returns the words.
macro_rules! sets {
    ($($set:ident, $words:ident: $meaning:ty = $pairs:expr;)*) => {$(
        /// Words with their meanings.
        pub const $set: &[(&str, $meaning)] = &$pairs;
        pub(crate) fn $words() -> Vec<&'static str> {
            config::keys::words($set)
        }
    )*};
}

sets! {
    ALL_CPUS, all_cpus: () = [("all", ())];
    ARRIVALS, arrivals: bool = [("poisson", true), ("constant", false)];
    BACKENDS, backends: Backend = [("auto", Backend::Auto), ("epoll", Backend::Epoll), ("io_uring", Backend::IoUring)];
    CONNECTIONS, connections: Connection = [("keep-alive", Connection::KeepAlive), ("per-request", Connection::PerRequest)];
    CPUS_OF_SUBJECT, cpus_of_subject: () = [("subject", ())];
    DESIGNS, designs: Design = plan::DESIGNS;
    ENGINES, engines: EngineChoice = process_plan::ENGINES;
    GRPC_MESSAGES, grpc_messages: bool = [("at-once", false), ("in-turn", true)];
    HTTP_VERSIONS, http_versions: bool = [("1.1", false), ("2", true)];
    FIGURES, figures: FigureKind = [
        ("line", FigureKind::Line),
        ("scatter", FigureKind::Scatter),
        ("interaction", FigureKind::Interaction),
        ("ecdf", FigureKind::Ecdf),
        ("quantiles", FigureKind::Quantiles),
        ("timeline", FigureKind::Timeline),
        ("miss-ratio", FigureKind::MissRatio),
        ("added", FigureKind::Added),
        ("memorychart", FigureKind::MemoryChart),
        ("throughputchart", FigureKind::ThroughputChart),
        ("networkchart", FigureKind::NetworkChart),
    ];
    FORMATS, formats: Format = trace::FORMATS;
    GAPS, gaps: Gaps = [("none", Gaps::None), ("recorded", Gaps::Recorded)];
    IDENTITIES, identities: Identities = [("fresh", Identities::Fresh), ("reused", Identities::Reused)];
    LAWS, laws: &[&str] = [
        ("constant", &["bytes"]),
        ("uniform", &["low", "high"]),
        ("exponential", &["mean"]),
        ("lognormal", &["median", "sigma"]),
        ("bimodal", &["low", "high", "high_share"]),
        ("gamma", &["shape", "scale"]),
        ("gev", &["location", "scale", "shape"]),
        ("pareto", &["location", "scale", "shape"]),
        ("empirical", &[]),
    ];
    LENGTHS, lengths: ValueLength = [("per-key", ValueLength::PerKey), ("per-set", ValueLength::PerSet)];
    LOOPS, loops: bool = [("closed", false), ("open", true)];
    NEW_KEYS, new_keys: NewKey = [("any", NewKey::Any), ("set", NewKey::Set)];
    QUESTIONS, questions: AskedKind = [
        ("best", AskedKind::Best),
        ("added", AskedKind::Added),
        ("growth", AskedKind::Growth),
        ("capacity", AskedKind::Capacity),
        ("effects", AskedKind::Effects),
        ("values", AskedKind::Values),
    ];
    RULES, rules: () = [("volley", ())];
    STEADY, steady: () = [("steady", ())];
    UNDECIDED, undecided: Undecided = gate::UNDECIDED;
}

pub(crate) fn popularities() -> Vec<&'static str> {
    vec!["uniform", "zipf", "recency", "hot-set", "loop"]
}

pub(crate) fn protocols() -> Vec<&'static str> {
    Protocol::all().map(Protocol::name).collect()
}

pub(crate) fn metrics() -> Vec<&'static str> {
    METRICS.iter().map(|metric| metric.name).collect()
}

pub(crate) fn over_requests() -> Vec<&'static str> {
    OVER_REQUESTS.iter().map(|(name, ..)| *name).collect()
}

pub(crate) fn policies() -> Vec<&'static str> {
    POLICIES.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn laws_of_tails() -> Vec<&'static str> {
    laws().into_iter().filter(|name| *name != "empirical").collect()
}

/// Keys that choose a rule in `load.stop`, each with the keys allowed next to it.
pub(crate) const STOP_RULES: [(&str, &[&str]); 4] = [
    ("duration", &[]),
    ("requests", &["max_time"]),
    ("relative", &["level", "max_time"]),
    ("rule", &["round", "half_width", "max_time"]),
];
pub(crate) const WARMUP_RULES: [&str; 4] = ["duration", "requests", "share", "steady"];

/// Whether `key` of `load.stop` or `load.warmup` chooses a rule. Setting such a key unsets the others.
pub(crate) fn chooses(table: &str, key: &str) -> bool {
    match table {
        "stop" => STOP_RULES.iter().any(|(rule, _)| *rule == key),
        "warmup" => WARMUP_RULES.contains(&key),
        _ => false,
    }
}
