//! Findings about CPU profiles and their differences.

use schemars::JsonSchema;
use serde::Serialize;
use study::cpu_profile::{SampledFunction, SampledStack};

/// CPU profile of the server at one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileFinding {
    /// Label of the profiled design point.
    pub label: String,
    /// Why there is no profile, or why samples are missing; `None` for a complete profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Name of the event that triggered samples.
    pub event: String,
    /// Number of samples taken of the server.
    pub samples: u64,
    /// Number of samples whose stacks were dropped.
    pub other_samples: u64,
    /// Throughput of the profiled trial over the mean of the measured trials; `None` if either is unknown.
    pub rate_ratio: Option<f64>,
    /// Functions by number of self samples, largest first.
    pub functions: Vec<SampledFunction>,
    /// Stacks by number of samples, largest first; frames are indices into `functions`.
    pub stacks: Vec<SampledStack>,
    /// Summary in words: the size of the profile, and how much profiling disturbed the server.
    pub sentence: String,
}

impl ProfileFinding {
    /// Returns the self samples of a function as a fraction of all samples; `None` without samples.
    pub fn share(&self, function: &SampledFunction) -> Option<f64> {
        (self.samples > 0).then(|| function.self_samples as f64 / self.samples as f64)
    }
}

/// Differences between the CPU profiles of two contenders.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// Label of the first design point, which is the baseline if there is one.
    pub a: String,
    /// Label of the second design point.
    pub b: String,
    /// Functions whose share differs by more than sampling noise, largest difference first.
    pub functions: Vec<ShareDifference>,
    /// Summary in words of the shown differences.
    pub sentence: String,
}

/// Share of one function in two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareDifference {
    /// Name of the function.
    pub name: String,
    /// Whether the function belongs to the kernel.
    pub kernel: bool,
    /// Fraction of the samples of the first design point that were taken in the function.
    pub a: f64,
    /// Fraction of the samples of the second design point that were taken in the function.
    pub b: f64,
}
