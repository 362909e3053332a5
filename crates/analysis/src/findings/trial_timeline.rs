//! Timelines of single trials: responses, latencies, CPU and memory over the measured time.

use schemars::JsonSchema;
use serde::Serialize;

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
