//! Findings about trends over the requests of a trial.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// Trend of one series of one design point over the requests of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverRequests {
    /// Index of the series' row in `Findings::rows`.
    pub row: usize,
    /// Name of the series, one of [`study::metric::OVER_REQUESTS`].
    pub what: String,
    /// Unit of the series' values.
    pub unit: String,
    /// Growth per 1,000 requests, mean over the trials with its interval; `None` for fewer than two trials.
    pub slope_per_1000: Option<Estimate>,
    /// Growth per 1,000 requests, mean over the trials without an interval.
    pub slope_per_1000_mean: f64,
    /// Probability of such a large slope by chance, adjusted for all series (Holm); `None` for fewer than two trials.
    pub p_adjusted: Option<f64>,
    /// Whether growth or decline is shown.
    pub shown: bool,
    /// Whether the change over all requests of a trial is shown to be less than 5 % of the mean, in either direction.
    pub small: bool,
    /// Shape of the trend over the requests.
    pub trend: Trend,
    /// Growth per 1,000 requests in each half of the requests, mean over the trials; `None` unless the trend is bent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halves_per_1000: Option<(f64, f64)>,
    /// Number of requests averaged per point.
    pub requests_a_point: f64,
    /// The series as the mean over the trials, up to the length of the shortest trial.
    pub points: Vec<RequestPoint>,
    /// Summary of the trend in words.
    pub sentence: String,
}

/// Shape of a series over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// The series grows or shrinks linearly.
    Line,
    /// The series grows or shrinks, but its halves have different slopes, so the trend cannot be extrapolated.
    Bent,
    /// No growth is shown, and a change of 5 % or more over all requests is ruled out.
    Flat,
    /// Neither a trend nor its absence is shown: too few requests, too few trials or too much noise.
    #[default]
    Unclear,
}

/// One point of a series over requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestPoint {
    /// Number of requests since measuring began.
    pub requests: f64,
    /// Mean of the series over the trials.
    pub mean: f64,
    /// Lower end of the mean's interval; `None` for fewer than two trials.
    pub low: Option<f64>,
    /// Upper end of the mean's interval; `None` for fewer than two trials.
    pub high: Option<f64>,
}
