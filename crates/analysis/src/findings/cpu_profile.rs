//! Where servers spend their CPU time.

use schemars::JsonSchema;
use serde::Serialize;
use study::cpu_profile::{SampledFunction, SampledStack};

/// The CPU profile of the server of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileFinding {
    /// The design point.
    pub label: String,
    /// Why there is none, or why samples are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What was counted between samples.
    pub event: String,
    /// Samples.
    pub samples: u64,
    /// Samples of stacks that are not kept.
    pub other_samples: u64,
    /// Throughput of the profiled trial over the mean of the measured ones; `None`: one of them is not known.
    pub rate_ratio: Option<f64>,
    /// Functions, those with the most samples of their own first.
    pub functions: Vec<SampledFunction>,
    /// Stacks, those with the most samples first; frames are places among the functions.
    pub stacks: Vec<SampledStack>,
    /// It in words: on what it rests, and how much it disturbed.
    pub sentence: String,
}

impl ProfileFinding {
    /// Fraction of the samples that were taken in a function itself; `None` without samples.
    pub fn share(&self, function: &SampledFunction) -> Option<f64> {
        (self.samples > 0).then(|| function.self_samples as f64 / self.samples as f64)
    }
}

/// What differs between the profiles of two contenders.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileDifference {
    /// The first: the baseline, where there is one.
    pub a: String,
    /// The second.
    pub b: String,
    /// Functions whose share differs by more than samples scatter, the largest difference first.
    pub functions: Vec<ShareDifference>,
    /// It in words.
    pub sentence: String,
}

/// The share of one function in two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareDifference {
    /// Its name.
    pub name: String,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// Fraction of the samples of the first that were taken in it.
    pub a: f64,
    /// Of the second.
    pub b: f64,
}
