//! The only module of this crate that reads a clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[allow(clippy::disallowed_methods, reason = "an adapter times its own work on live calls; nothing here is simulated")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "reports carry the time of day, and entries outlive the process")]
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

pub(crate) fn unix_s() -> u64 {
    unix_ms() / 1000
}
