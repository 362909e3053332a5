//! CPU profiles of servers: stacks sampled in a separate trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU profile of the server at one design point, sampled in an additional trial after the measured ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProfile {
    /// Index of the design point in the plan.
    pub point: usize,
    /// Why the profile or some samples are missing; `None` if nothing is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The event that triggers samples, `cycles` or `cpu-clock`; empty without samples.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// Requested samples per second and CPU.
    #[serde(default)]
    pub frequency_hz: u32,
    /// Length of the sampled time, which is the measured time of the trial, ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Valid responses per second during sampling; `None` if the trial has no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Total number of samples.
    #[serde(default)]
    pub samples: u64,
    /// The functions on the stored stacks, and the functions with the most samples, in descending order of samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<SampledFunction>,
    /// The stacks with the most samples, in descending order of samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<SampledStack>,
    /// Number of samples on stacks that were dropped.
    #[serde(default)]
    pub other_samples: u64,
}

/// A function of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFunction {
    /// Name of the function or, if it has no symbol, of its object file in brackets, such as `[libc.so.6]`.
    pub name: String,
    /// Whether the function belongs to the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
    /// Number of samples in the function itself, without the functions it calls.
    pub self_samples: u64,
}

/// A call stack of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledStack {
    /// Indices into [`CpuProfile::functions`], the outermost caller first.
    pub frames: Vec<u32>,
    /// Number of samples with exactly this stack.
    pub samples: u64,
}
