use schemars::JsonSchema;
use serde::Serialize;
use study::cpu_profile::{SampledFunction, SampledStack};

/// The CPU profile of the server of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileFinding {
    /// The design point.
    pub label: String,
    /// Why there is no profile, or why samples are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Event that triggers samples.
    pub event: String,
    /// Number of samples.
    pub samples: u64,
    /// Samples whose stacks were dropped.
    pub other_samples: u64,
    /// Throughput of the profiled trial over the mean of the measured trials; `None` if either is unknown.
    pub rate_ratio: Option<f64>,
    /// Functions by self samples, most first.
    pub functions: Vec<SampledFunction>,
    /// Stacks by samples, most first; frames are indices into `functions`.
    pub stacks: Vec<SampledStack>,
    /// Summary in words: what the profile is based on and how much profiling disturbed the server.
    pub sentence: String,
}

impl ProfileFinding {
    /// Returns the self samples of a function as a fraction of all samples; `None` without samples.
    pub fn share(&self, function: &SampledFunction) -> Option<f64> {
        (self.samples > 0).then(|| function.self_samples as f64 / self.samples as f64)
    }
}

/// Difference between the CPU profiles of two contenders.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// First design point: the baseline, if there is one.
    pub a: String,
    /// Second design point.
    pub b: String,
    /// Functions whose share differs by more than sampling noise, largest difference first.
    pub functions: Vec<ShareDifference>,
    /// Summary in words.
    pub sentence: String,
}

/// Share of one function in two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareDifference {
    /// Name of the function.
    pub name: String,
    /// Whether the function belongs to the kernel.
    pub kernel: bool,
    /// Fraction of the samples of `a` taken in it.
    pub a: f64,
    /// Fraction of the samples of `b` taken in it.
    pub b: f64,
}
