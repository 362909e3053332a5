//! Miss-ratio curves beside those of policies.

use schemars::JsonSchema;
use serde::Serialize;
use study::plan::Level;

use super::Estimate;

/// The curves of one panel of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatios {
    /// Index of the figure among `Findings::figures`.
    pub figure: usize,
    /// The factor whose levels are capacities.
    pub x: String,
    /// Levels of the factors that are neither capacity nor series, `clients 50`; empty: there are none that vary.
    pub panel: String,
    /// What was measured, one a series.
    pub curves: Vec<MissRatioCurve>,
    /// What policies would have missed.
    pub policies: Vec<CurvePolicy>,
    /// Where measured curves stray from policies, or that they do not; one sentence a series.
    pub sentences: Vec<String>,
    /// What the policies are, and what could not be worked out.
    pub notes: Vec<String>,
}

/// A measured curve.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the series.
    pub label: String,
    /// Level of the factor that makes the series.
    pub series: Option<Level>,
    /// The policy that it is held against; `None`: none was worked out.
    pub policy: Option<String>,
    /// Whether the series says that this is its own policy.
    pub is_own: bool,
    /// By capacity, ascending.
    pub points: Vec<MissRatioPoint>,
}

/// A measured point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissRatioPoint {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// The capacity as the study has it.
    pub capacity: Level,
    /// The same, bytes.
    pub capacity_bytes: u64,
    /// Capacity over footprint, a fraction; the footprint is the bytes of the keys and values that were asked for, each once.
    pub footprint_share: Option<f64>,
    /// Memory of the server beyond what it had before the load, bytes, mean over trials.
    pub memory_bytes: Option<f64>,
    /// Misses over GETs, mean over trials.
    pub miss_ratio: f64,
    /// The same with its interval.
    pub estimate: Option<Estimate>,
    /// What the policy of the curve missed of the operations of these trials, mean.
    pub simulated: Option<f64>,
    /// Measured less simulated, over trials, each with its own operations.
    pub difference: Option<Estimate>,
    /// Probability of a difference as large if there were none, adjusted for all capacities of all curves (Holm); `None` below two trials.
    pub p_adjusted: Option<f64>,
    /// Whether it strays: the difference is more than chance, and more than a tenth of a point.
    pub strays: bool,
    /// Whether the difference is shown to be less than a tenth of a point, either way (two one-sided tests, Holm as above).
    pub keeps: bool,
}

/// The curve of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePolicy {
    /// Its name.
    pub name: String,
    /// What it is.
    pub text: String,
    /// By capacity, ascending.
    pub points: Vec<PolicyPoint>,
}

/// A point of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PolicyPoint {
    /// Bytes.
    pub capacity_bytes: u64,
    /// Misses over GETs, mean over replays.
    pub miss_ratio: f64,
    /// Replays that it rests on.
    pub replays: usize,
}
