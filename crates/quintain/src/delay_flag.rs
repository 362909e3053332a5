//! Distributions of delays, parsed from flags of servers.

use config::Invalid;
use stats::Distribution;

/// Distribution of a random delay in ns; `None` for no delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law(pub(crate) Option<Distribution>);

/// Parses `null` (no delay) or a distribution in the syntax of [`study::time_law::parse`].
pub(crate) fn law(text: &str) -> Result<Law, Invalid> {
    match text {
        "null" => Ok(Law(None)),
        _ => study::time_law::parse(text).map(|law| Law(Some(law))),
    }
}
