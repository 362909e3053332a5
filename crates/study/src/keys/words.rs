//! The closed sets that a study names: their words, and what each stands for.

use crate::container::EngineChoice;
use crate::gate::{self, Undecided};
use crate::metric::{METRICS, OVER_REQUESTS};
use crate::plan::{AskedKind, Design, FigureKind, POLICIES};
use crate::spec::{Backend, Connection, Identities, Protocol};
use crate::workload::trace::Format;
use crate::workload::{Gaps, NewKey, ValueLength};

/// Of each set the words with what they stand for, and the words alone.
macro_rules! sets {
    ($($set:ident, $words:ident: $meaning:ty = $pairs:expr;)*) => {$(
        /// Its words, each with what it stands for.
        pub const $set: &[(&str, $meaning)] = &$pairs;
        pub(crate) fn $words() -> Vec<&'static str> {
            $set.iter().map(|(word, _)| *word).collect()
        }
    )*};
}

sets! {
    ALL_CPUS, all_cpus: () = [("all", ())];
    ARRIVALS, arrivals: bool = [("poisson", true), ("constant", false)];
    BACKENDS, backends: Backend = [("auto", Backend::Auto), ("epoll", Backend::Epoll), ("io_uring", Backend::IoUring)];
    CONNECTIONS, connections: Connection = [("keep-alive", Connection::KeepAlive), ("per-request", Connection::PerRequest)];
    CPUS_OF_SUBJECT, cpus_of_subject: () = [("subject", ())];
    DESIGNS, designs: Design = [("full", Design::Full), ("one-at-a-time", Design::OneAtATime)];
    ENGINES, engines: EngineChoice =
        [("auto", EngineChoice::Auto), ("podman", EngineChoice::Podman), ("docker", EngineChoice::Docker)];
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
    FORMATS, formats: Format = [
        ("twitter", Format::Twitter),
        ("meta-kv", Format::MetaKv),
        ("oracle-general", Format::OracleGeneral),
        ("plain", Format::Plain),
    ];
    GAPS, gaps: Gaps = [("none", Gaps::None), ("recorded", Gaps::Recorded)];
    IDENTITIES, identities: Identities = [("fresh", Identities::Fresh), ("reused", Identities::Reused)];
    // The parameters of each.
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
    // Whether it is open.
    LOOPS, loops: bool = [("closed", false), ("open", true)];
    NEW_KEYS, new_keys: NewKey = [("any", NewKey::Any), ("set", NewKey::Set)];
    POPULARITIES, popularities: &str =
        [("uniform", "uniform"), ("zipf", "zipf"), ("recency", "recency"), ("hot-set", "hot-set"), ("loop", "loop")];
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

/// What may be spoken.
pub(crate) fn protocols() -> Vec<&'static str> {
    Protocol::all().map(Protocol::name).collect()
}

/// Every metric.
pub(crate) fn metrics() -> Vec<&'static str> {
    METRICS.iter().map(|metric| metric.name).collect()
}

/// What may be looked at over the requests of a trial.
pub(crate) fn over_requests() -> Vec<&'static str> {
    OVER_REQUESTS.iter().map(|(name, ..)| *name).collect()
}

/// What may be simulated beside a miss-ratio curve.
pub(crate) fn policies() -> Vec<&'static str> {
    POLICIES.iter().map(|(name, _)| *name).collect()
}

/// The laws of lengths beyond those of an empirical one.
pub(crate) fn laws_of_tails() -> Vec<&'static str> {
    laws().into_iter().filter(|name| *name != "empirical").collect()
}

/// The keys that choose a rule in `load.stop`, each with those that may stand beside it.
pub(crate) const STOP_RULES: [(&str, &[&str]); 4] = [
    ("duration", &[]),
    ("requests", &["max_time"]),
    ("relative", &["level", "max_time"]),
    ("rule", &["round", "half_width", "max_time"]),
];
/// Likewise of `load.warmup`.
pub(crate) const WARMUP_RULES: [&str; 4] = ["duration", "requests", "share", "steady"];

/// Whether `key` of `load.stop` or `load.warmup` chooses a rule, so that setting it unsets the others.
pub(crate) fn chooses(table: &str, key: &str) -> bool {
    match table {
        "stop" => STOP_RULES.iter().any(|(rule, _)| *rule == key),
        "warmup" => WARMUP_RULES.contains(&key),
        _ => false,
    }
}
