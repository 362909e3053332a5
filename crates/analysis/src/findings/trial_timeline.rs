//! One trial from the inside.

use schemars::JsonSchema;
use serde::Serialize;

/// One trial of a row from the beginning of its measured time to the end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsideTrial {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Place of the trial in the order of the whole run, from 0.
    pub order: u32,
    /// Its block.
    pub block: u32,
    /// Why this one, `Findings::metric` or what stood in for it: the trial has the median of its row's values.
    pub metric: String,
    /// Length of what was measured, ns.
    pub duration_ns: u64,
    /// The measured time in pieces, at most 120, in order.
    pub columns: Vec<Column>,
    /// Server, proxies in the order that a request passes them, and generator.
    pub processes: Vec<Process>,
}

/// A piece of the measured time: some windows side by side.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Its beginning, ns since measuring began.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// Valid answers.
    pub requests: u64,
    /// Errors of all kinds.
    pub errors: u64,
    /// Latencies by band, ascending, without those that are empty: band `b` reaches from 2^(b/4) ns to 2^((b+1)/4) ns.
    pub bands: Vec<(u16, u64)>,
    /// Median latency, ns; `None` without latencies.
    pub p50_ns: Option<f64>,
    /// The same, p99; `None` below 100 latencies.
    pub p99_ns: Option<f64>,
}

/// What a process used, meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Which it is.
    pub role: Role,
    /// Its name, where there can be several: that of a proxy.
    pub name: String,
    /// CPUs in use, each the mean since the look before, at the midpoint of the two: ns since measuring began, CPUs. Empty where it was
    /// not looked at.
    pub cpus: Vec<(f64, f64)>,
    /// CPUs in use, mean of the whole measured time; `None`: not known.
    pub cpus_mean: Option<f64>,
    /// Resident set: ns since measuring began, bytes.
    pub rss_bytes: Vec<(f64, f64)>,
}

/// Whose process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What is measured.
    Server,
    /// What stands before it.
    Proxy,
    /// What measures.
    Generator,
}
