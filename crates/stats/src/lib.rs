//! Statistics of measurements as pure functions: histograms, quantiles, intervals, steady state, stop rules, fits and
//! random numbers. They panic if a `level` or `error` is not strictly between 0 and 1, if a quantile `q` or `p` is not
//! a fraction, or if an index, such as the level of a factor, does not exist.
//! ```
//! let latency_ms_of_trials = [1.21, 1.17, 1.24, 1.19, 1.20, 1.22, 1.18, 1.23];
//! let estimate = stats::interval::mean(&latency_ms_of_trials, 0.95).unwrap();
//! assert_eq!(format!("{:.3} [{:.3}, {:.3}]", estimate.point, estimate.low, estimate.high), "1.205 [1.185, 1.225]");
//! ```

#[cfg(not(feature = "schema"))]
extern crate no_schema as schemars;

pub mod adjust_p_values;
pub mod batch_means;
pub mod distribution;
pub mod effects;
pub mod gate;
pub mod goodness_of_fit;
pub mod growth_in_trials;
pub mod histogram;
pub mod interval;
pub mod item_sizes;
pub mod littles_law;
pub mod mann_kendall;
pub mod mixture_distribution;
pub mod order_statistics;
pub mod outliers;
pub mod pairs;
pub mod popularity;
pub mod product_limit;
pub mod random;
pub mod ranking;
pub mod search;
mod special_functions;
pub mod speed_change_test;
pub mod steady_start_test;
pub mod stop_rule;
pub mod usl;
pub mod variance_components;
pub mod volley_stop_rule;
pub mod zipf_ranks;

pub use distribution::Distribution;
pub use histogram::Histogram;
pub use interval::Estimate;
pub use item_sizes::Sizes;
pub use mixture_distribution::{Empirical, Piece};
pub use order_statistics::quantile;
pub use popularity::{Permutation, Zipf};
pub use product_limit::{Bound, ProductLimit};
pub use random::Rng;
pub use zipf_ranks::ZipfRanks;
