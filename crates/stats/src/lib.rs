//! How sure is a number? Histograms, quantiles, intervals, steady state, stop rules, fits, random
//! numbers: values in, values out.

pub mod histogram;
pub mod interval;
pub mod order;
mod special;

pub use histogram::Histogram;
pub use interval::Estimate;
