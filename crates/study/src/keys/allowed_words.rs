//! Sets of words that a study may use, with their meanings.

use crate::spec::{Backend, Connection, Identities};
use crate::workload::Gaps;

/// Arrival processes, each with whether it is random.
pub const ARRIVALS: &[(&str, bool)] = &[("poisson", true), ("constant", false)];
/// I/O backends of the generator.
pub const BACKENDS: &[(&str, Backend)] =
    &[("auto", Backend::Auto), ("epoll", Backend::Epoll), ("io_uring", Backend::IoUring)];
/// Uses of a connection.
pub const CONNECTIONS: &[(&str, Connection)] =
    &[("keep-alive", Connection::KeepAlive), ("per-request", Connection::PerRequest)];
/// Designs, by their names in JSON.
pub const DESIGNS: [&str; 2] = ["full", "one-at-a-time"];
/// When a gRPC call sends its messages, each with whether it waits for responses.
pub const GRPC_MESSAGES: &[(&str, bool)] = &[("at-once", false), ("in-turn", true)];
/// HTTP versions, each with whether it is HTTP/2.
pub const HTTP_VERSIONS: &[(&str, bool)] = &[("1.1", false), ("2", true)];
/// Kinds of figures, by their names in JSON.
pub const FIGURES: [&str; 11] = [
    "line",
    "scatter",
    "interaction",
    "ecdf",
    "quantiles",
    "timeline",
    "miss-ratio",
    "added",
    "memorychart",
    "throughputchart",
    "networkchart",
];
/// Rules for the times of a trace's operations.
pub const GAPS: &[(&str, Gaps)] = &[("none", Gaps::None), ("recorded", Gaps::Recorded)];
/// Whether journeys have new users.
pub const IDENTITIES: &[(&str, Identities)] = &[("fresh", Identities::Fresh), ("reused", Identities::Reused)];
/// Distributions of lengths, each with its parameters.
pub const LAWS: &[(&str, &[&str])] = &[
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
/// When the length of a value is drawn, by the names in JSON.
pub const LENGTHS: [&str; 2] = ["per-key", "per-set"];
/// Loops, each with whether it is open.
pub const LOOPS: &[(&str, bool)] = &[("closed", false), ("open", true)];
/// Operations on a new key, by their names in JSON.
pub const NEW_KEYS: [&str; 2] = ["any", "set"];
/// Kinds of questions, by their names in JSON.
pub const QUESTIONS: [&str; 6] = ["best", "added", "growth", "capacity", "effects", "values"];

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
