//! Findings about miss-ratio curves.

use schemars::JsonSchema;
use serde::Serialize;
use study::plan::Level;

use super::Estimate;

/// Miss-ratio curves of one panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatios {
    /// Index of the figure in `Findings::figures`.
    pub figure: usize,
    /// Factor whose levels are memory limits.
    pub x: String,
    /// Levels of the factors other than memory limit and series, such as `clients 50`; empty if none of them varies.
    pub panel: String,
    /// Measured curves, one per series.
    pub curves: Vec<MissRatioCurve>,
    /// Simulated curves of eviction policies.
    pub policies: Vec<CurvePolicy>,
    /// Results in words, one sentence per series: whether and where the measured curve deviates from its policy.
    pub sentences: Vec<String>,
    /// Descriptions of the policies, and reasons for missing curves.
    pub notes: Vec<String>,
}

/// A measured curve, which belongs to one series.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the series.
    pub label: String,
    /// Level of the factor that defines the series; `None` if the panel has only one series.
    pub series: Option<Level>,
    /// Policy that the curve is compared with; `None` if it was not simulated.
    pub policy: Option<String>,
    /// Whether the study declares this policy for the series.
    pub is_own: bool,
    /// Measured points by memory limit, ascending.
    pub points: Vec<MissRatioPoint>,
}

/// A measured point of a curve, at one memory limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioPoint {
    /// Index of the point's row in `Findings::rows`.
    pub row: usize,
    /// Memory limit as written in the study.
    pub capacity: Level,
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Memory limit divided by footprint (the bytes of all distinct requested keys and values); `None` if unknown.
    pub footprint_share: Option<f64>,
    /// Memory of the server above its usage before the load, bytes, mean over the trials; `None` if unknown.
    pub memory_bytes: Option<f64>,
    /// Misses per GET, from 0 to 1; mean over the trials.
    pub miss_ratio: f64,
    /// Miss ratio with its interval; `None` if it has no interval.
    pub estimate: Option<Estimate>,
    /// Mean miss ratio of the simulated policy for the operations of these trials; `None` if it was not simulated.
    pub simulated: Option<f64>,
    /// Mean over the trials of the measured minus the simulated miss ratio. `None` for fewer than two simulated trials.
    pub difference: Option<Estimate>,
    /// Probability of such a large difference by chance, adjusted for all points (Holm); `None` for a single trial.
    pub p_adjusted: Option<f64>,
    /// Whether the point deviates from the policy by more than chance and by more than 0.1 percentage points.
    pub strays: bool,
    /// Whether the difference is shown to be within ±0.1 percentage points (two one-sided tests, Holm).
    pub keeps: bool,
}

/// Simulated curve of an eviction policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePolicy {
    /// Name of the eviction policy.
    pub name: String,
    /// Description of the policy in words.
    pub text: String,
    /// Points by memory limit, ascending.
    pub points: Vec<PolicyPoint>,
}

/// A point on the curve of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyPoint {
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Misses per GET, from 0 to 1; mean over the replays.
    pub miss_ratio: f64,
    /// Number of trials whose operations were replayed.
    pub replays: usize,
}
