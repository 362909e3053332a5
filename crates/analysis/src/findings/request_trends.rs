use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// One series of one design point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverRequests {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// Name of the series, one of [`study::metric::OVER_REQUESTS`].
    pub what: String,
    /// Unit of its values.
    pub unit: String,
    /// Mean of the trials' growth per 1,000 requests, with its interval; `None` for fewer than two trials.
    pub slope_per_1000: Option<Estimate>,
    /// Growth per 1,000 requests, without an interval.
    pub slope_per_1000_mean: f64,
    /// Probability of such a large slope by chance, adjusted for all series (Holm); `None` for fewer than two trials.
    pub p_adjusted: Option<f64>,
    /// Whether growth or decline is shown.
    pub shown: bool,
    /// Whether the change over all requests of a trial is shown to be less than 5 % of the mean, in either direction.
    pub small: bool,
    /// Shape of the trend.
    pub trend: Trend,
    /// Slopes of the first and the second half of the requests, means over trials. Present if the trend is bent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halves_per_1000: Option<(f64, f64)>,
    /// Number of requests averaged per point.
    pub requests_a_point: f64,
    /// The series, mean over trials, up to the length of the shortest trial.
    pub points: Vec<RequestPoint>,
    /// Summary in words.
    pub sentence: String,
}

/// Shape of a series over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// Grows or shrinks linearly.
    Line,
    /// Grows or shrinks, but the slopes of the two halves differ, so the trend cannot be extrapolated.
    Bent,
    /// No growth is shown, and a change of 5 % or more over all requests is ruled out.
    Flat,
    /// Neither is shown: too few requests, too few trials or too much noise.
    #[default]
    Unclear,
}

/// One point of the series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestPoint {
    /// Number of requests since measuring began.
    pub requests: f64,
    /// Mean over the trials.
    pub mean: f64,
    /// Lower end of the interval; `None` for fewer than two trials.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}
