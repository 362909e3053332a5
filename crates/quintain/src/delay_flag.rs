//! Delay distributions of servers, parsed from flags.

use config::Invalid;
use stats::Distribution;

/// A random delay, in ns; `None` for no delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law(pub(crate) Option<Distribution>);

/// Parses `null` or a law in the syntax of [`study::time_law::parse`].
pub(crate) fn law(text: &str) -> Result<Law, Invalid> {
    match text {
        "null" => Ok(Law(None)),
        _ => study::time_law::parse(text).map(|law| Law(Some(law))),
    }
}
