//! What happens over the requests of a trial.

use schemars::JsonSchema;
use serde::Serialize;

use super::Estimate;

/// One series of one design point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OverRequests {
    /// Index of its row among `Findings::rows`.
    pub row: usize,
    /// What it is, one of [`study::metric::OVER_REQUESTS`].
    pub what: String,
    /// Unit of its values.
    pub unit: String,
    /// How much it grows in 1,000 requests, mean over the slopes of the trials, with its interval; `None` below two trials.
    pub slope_per_1000: Option<Estimate>,
    /// The same without an interval.
    pub slope_per_1000_mean: f64,
    /// Chance of a slope so far from 0 where nothing grows, adjusted for all series of the report (Holm); `None` below two trials.
    pub p_adjusted: Option<f64>,
    /// Whether it is shown to grow or to shrink.
    pub shown: bool,
    /// Whether what it changes by over all requests of a trial is shown to be less than 5 % of its mean, either way.
    pub small: bool,
    /// What can be said of how it goes on.
    pub trend: Trend,
    /// The slopes of the first and of the second half of the requests, means over trials, where they are of a series that is bent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halves_per_1000: Option<(f64, f64)>,
    /// Requests that a point is the mean of.
    pub requests_a_point: f64,
    /// The series, mean over trials; as far as the shortest trial goes.
    pub points: Vec<RequestPoint>,
    /// What it comes to.
    pub sentence: String,
}

/// What can be said of a series over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// It grows or shrinks by its slope, in a line.
    Line,
    /// It grows or shrinks, and by the second half of requests not as by the first: nothing is said of more requests than there were.
    Bent,
    /// No growth is shown, and one that would have changed it by 5 % over all requests is shown not to be there.
    Flat,
    /// Neither is shown: too few requests, too few trials, or too much noise.
    #[default]
    Unclear,
}

/// One point of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestPoint {
    /// Requests before it, from the start of measuring.
    pub requests: f64,
    /// Mean over trials.
    pub mean: f64,
    /// Lower end of its interval; `None` below two trials.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}
