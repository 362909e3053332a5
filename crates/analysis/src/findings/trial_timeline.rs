//! Timelines of single trials.

use schemars::JsonSchema;
use serde::Serialize;

/// The measured time of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsideTrial {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Position of the trial in the run's order, from 0.
    pub order: u32,
    /// Number of the block of the trial.
    pub block: u32,
    /// Metric by which the trial is the median of its row: `Findings::metric` or a substitute.
    pub metric: String,
    /// Length of the measured time, ns.
    pub duration_ns: u64,
    /// Consecutive slices of the measured time, at most 120.
    pub columns: Vec<Column>,
    /// Server, proxies in the order that requests pass them, and generator.
    pub processes: Vec<Process>,
}

/// A slice of the measured time, made of adjacent windows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Start of the slice, ns since measuring began.
    pub from_ns: u64,
    /// End of the slice, ns since measuring began.
    pub to_ns: u64,
    /// Valid responses.
    pub requests: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Number of latencies per non-empty band, ascending: band `b` covers 2^(b/4) ns to 2^((b+1)/4) ns.
    pub bands: Vec<(u16, u64)>,
    /// Median latency, ns; `None` without latencies.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the latency, ns; `None` below 100 latencies.
    pub p99_ns: Option<f64>,
}

/// Resource usage of a process during the trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Role of the process.
    pub role: Role,
    /// Name, if there can be several processes with this role: only for proxies.
    pub name: String,
    /// CPUs in use as pairs of time (ns since measuring began) and mean since the previous sample. The time is the
    /// midpoint of the two samples. Empty if the process was not sampled.
    pub cpus: Vec<(f64, f64)>,
    /// CPUs in use, mean over the measured time; `None` if unknown.
    pub cpus_mean: Option<f64>,
    /// Resident set: pairs of time (ns since measuring began) and bytes.
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
