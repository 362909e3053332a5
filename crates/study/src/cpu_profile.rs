//! CPU profiles of servers: stacks sampled in a separate trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU profile of the server of one design point, from an additional trial besides the measured ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProfile {
    /// Index of the design point in the plan.
    pub point: usize,
    /// Why the profile or some samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The event counted between samples, `cycles` or `cpu-clock`; empty without samples.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// Requested samples per second and CPU.
    #[serde(default)]
    pub frequency_hz: u32,
    /// The sampled time, ns: the measured time of the trial.
    #[serde(default)]
    pub duration_ns: u64,
    /// Valid responses per second in that time, while sampling; `None` if the trial has no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Total number of samples.
    #[serde(default)]
    pub samples: u64,
    /// The functions in the stacks and those with the most samples, in descending order of samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<SampledFunction>,
    /// The stacks with the most samples, in descending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<SampledStack>,
    /// Samples of dropped stacks.
    #[serde(default)]
    pub other_samples: u64,
}

/// A function of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFunction {
    /// Its name; the object file in brackets, `[libc.so.6]`, if it has no symbols.
    pub name: String,
    /// Whether it belongs to the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
    /// Samples in the function itself, not in functions it calls.
    pub self_samples: u64,
}

/// A call stack of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledStack {
    /// Indices in [`CpuProfile::functions`], the outermost caller first.
    pub frames: Vec<u32>,
    /// Samples with exactly this stack.
    pub samples: u64,
}
