//! A number with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The mean.
    pub point: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Level of confidence, a fraction.
    pub level: f64,
    /// Independent values it rests on.
    pub n: u64,
}

impl Estimate {
    /// The same of the inverse ratio.
    pub fn inverse(&self) -> Estimate {
        Estimate { point: 1.0 / self.point, low: 1.0 / self.high, high: 1.0 / self.low, ..*self }
    }

    /// Half the width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half the width over the point; `None` at zero.
    pub fn relative(&self) -> Option<f64> {
        (self.point != 0.0).then(|| self.half_width() / self.point.abs())
    }
}

impl From<stats::Estimate> for Estimate {
    fn from(from: stats::Estimate) -> Self {
        Self { point: from.point, low: from.low, high: from.high, level: from.level, n: from.n }
    }
}
