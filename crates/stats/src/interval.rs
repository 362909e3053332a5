//! A number and how sure it is.

/// A point with its interval. A report shows all five, never the point alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Best single value.
    pub point: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Share of such intervals that hold the true value, 0.95 for example.
    pub level: f64,
    /// Independent values it rests on.
    pub n: u64,
}
