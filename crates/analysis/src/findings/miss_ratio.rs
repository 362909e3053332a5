use schemars::JsonSchema;
use serde::Serialize;
use study::plan::Level;

use super::Estimate;

/// The curves of one panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatios {
    /// Index of the figure among `Findings::figures`.
    pub figure: usize,
    /// Factor whose levels are memory limits.
    pub x: String,
    /// Levels of the factors that are neither memory limit nor series, `clients 50`; empty if none vary.
    pub panel: String,
    /// Measured curves, one per series.
    pub curves: Vec<MissRatioCurve>,
    /// Simulated curves of eviction policies.
    pub policies: Vec<CurvePolicy>,
    /// Whether and where measured curves deviate from their policies, one sentence per series.
    pub sentences: Vec<String>,
    /// Descriptions of the policies, and reasons for missing curves.
    pub notes: Vec<String>,
}

/// A measured curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the series.
    pub label: String,
    /// Level of the factor that defines the series.
    pub series: Option<Level>,
    /// Policy that the curve is compared with; `None` if it was not simulated.
    pub policy: Option<String>,
    /// Whether the study declares this policy for the series.
    pub is_own: bool,
    /// Points by memory limit, ascending.
    pub points: Vec<MissRatioPoint>,
}

/// A measured point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioPoint {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Memory limit as in the study.
    pub capacity: Level,
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Memory limit over footprint, a fraction. The footprint counts the bytes of each requested key and value once.
    pub footprint_share: Option<f64>,
    /// Memory of the server above its usage before the load, bytes, mean over trials.
    pub memory_bytes: Option<f64>,
    /// Misses over GETs, mean over trials.
    pub miss_ratio: f64,
    /// Miss ratio with its interval.
    pub estimate: Option<Estimate>,
    /// Miss ratio of the policy for the operations of these trials, mean.
    pub simulated: Option<f64>,
    /// Measured minus simulated miss ratio, over trials, each with its own operations.
    pub difference: Option<Estimate>,
    /// Probability of such a large difference by chance, adjusted for all points (Holm); `None` for a single trial.
    pub p_adjusted: Option<f64>,
    /// Whether the point deviates: the difference exceeds chance and a tenth of a percentage point.
    pub strays: bool,
    /// Whether the difference is shown to be below 0.1 percentage points either way (two one-sided tests, Holm).
    pub keeps: bool,
}

/// Curve of an eviction policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePolicy {
    /// Name of the policy.
    pub name: String,
    /// Description.
    pub text: String,
    /// Points by memory limit, ascending.
    pub points: Vec<PolicyPoint>,
}

/// A point on the curve of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyPoint {
    /// Memory limit, bytes.
    pub capacity_bytes: u64,
    /// Misses over GETs, mean over replays.
    pub miss_ratio: f64,
    /// Number of replays.
    pub replays: usize,
}
