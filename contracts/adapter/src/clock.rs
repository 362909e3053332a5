//! The one place where this crate asks what time it is.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now, on a clock that never goes back.
#[allow(clippy::disallowed_methods, reason = "an adapter times its own work on live calls; nothing here is simulated")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, for reports and expiry.
#[allow(clippy::disallowed_methods, reason = "reports carry the time of day, and entries outlive the process")]
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Seconds since 1970.
pub(crate) fn unix_s() -> u64 {
    unix_ms() / 1000
}
