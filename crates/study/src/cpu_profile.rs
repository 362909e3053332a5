//! Where a server's CPU time goes: stacks that a profiler sampled in a trial of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU profile of the server of one design point, sampled in one further trial, which is not among the measured ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProfile {
    /// Index of the design point in the plan.
    pub point: usize,
    /// Why there is none, or why samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What was counted between samples, `cycles` or `cpu-clock`; empty without a sample.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// Samples that were asked for, per second on each CPU.
    #[serde(default)]
    pub frequency_hz: u32,
    /// The time that samples are of: that of the trial's measurement, ns.
    #[serde(default)]
    pub duration_ns: u64,
    /// Valid responses per second in that time, while samples were taken; `None`: the trial has no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Samples, all together.
    #[serde(default)]
    pub samples: u64,
    /// The functions of the stacks, and those in which most samples were taken; by samples, the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<SampledFunction>,
    /// The stacks with the most samples, the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<SampledStack>,
    /// Samples of stacks that are not kept.
    #[serde(default)]
    pub other_samples: u64,
}

/// A function of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFunction {
    /// Its name; the object file in brackets, `[libc.so.6]`, where it has no symbols.
    pub name: String,
    /// Whether it is the kernel's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
    /// Samples taken in it, not in what it calls.
    pub self_samples: u64,
}

/// A call stack of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledStack {
    /// Places among [`CpuProfile::functions`], the outermost caller first.
    pub frames: Vec<u32>,
    /// Samples with exactly this stack.
    pub samples: u64,
}
