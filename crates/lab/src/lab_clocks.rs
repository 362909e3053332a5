//! Clocks of the lab: wall time for users and monotonic time for waiting. No other module reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use time::UtcDateTime;

/// Current monotonic time, for deadlines and durations.
#[expect(clippy::disallowed_methods, reason = "this module owns the lab's clocks")]
pub fn now() -> Instant {
    Instant::now()
}

pub(crate) fn left(deadline: Instant) -> Timespec {
    let left = deadline.saturating_duration_since(now());
    Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
}

/// Converts `CLOCK_MONOTONIC` in ns, which all processes of this machine share, to an `Instant`.
pub fn at_monotonic(ns: u64) -> Instant {
    // In this order, a preemption between the two readings makes the result earlier, never later.
    let (now, wanted) = (now(), Duration::from_nanos(ns));
    let shown = Duration::from_nanos(monotonic_ns());
    if wanted >= shown { now + (wanted - shown) } else { now.checked_sub(shown - wanted).unwrap_or(now) }
}

/// Current `CLOCK_MONOTONIC` of this machine, ns.
pub fn monotonic_ns() -> u64 {
    nanos(read(ClockId::Monotonic))
}

pub(crate) fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Current wall time, seconds since 1970; 0 for earlier dates.
pub fn unix_seconds() -> u64 {
    unix_nanos() / 1_000_000_000
}

/// Current wall time, nanoseconds since 1970; 0 for earlier dates.
#[expect(clippy::disallowed_methods, reason = "this module owns the lab's clocks")]
pub fn unix_nanos() -> u64 {
    nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Current wall time in UTC, formatted by RFC 3339, such as `2026-11-20T21:05:00Z`.
pub fn rfc3339() -> String {
    format_rfc3339(unix_seconds())
}

/// Current wall time in UTC as in the name of a run, such as `20261120-210500`.
pub fn stamp() -> String {
    format_stamp(unix_seconds())
}

/// Converts a duration to nanoseconds; `u64::MAX` above 584 years.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats seconds since 1970 as RFC 3339 in UTC.
pub fn format_rfc3339(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    // Times after the year 9999 become its end.
    let at = UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX);
    format!("{}T{:02}:{:02}:{:02}Z", at.date(), at.hour(), at.minute(), at.second())
}

/// Formats seconds since 1970 as `YYYYMMDD-HHMMSS` in UTC.
pub fn format_stamp(unix_seconds: u64) -> String {
    format_rfc3339(unix_seconds).replace(['-', ':', 'Z'], "").replace('T', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_monotonic_time_to_an_instant() {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let shown = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
        let before = now();
        assert!(at_monotonic(shown) <= before, "it was read before");
        assert!(at_monotonic(shown + 3_600_000_000_000) > before);
        assert!(at_monotonic(0) <= before);
    }

    // Expected values: `date -u -d @SECONDS +%FT%TZ` (GNU coreutils 9.1).
    fn check(unix_seconds: u64, text: &str) {
        assert_eq!(format_rfc3339(unix_seconds), text);
    }

    #[test]
    fn the_epoch() {
        check(0, "1970-01-01T00:00:00Z");
    }
    #[test]
    fn last_second_before_a_leap_day() {
        check(951_782_399, "2000-02-28T23:59:59Z");
    }
    #[test]
    fn leap_day_of_a_century_that_has_one() {
        check(951_782_400, "2000-02-29T00:00:00Z");
    }
    #[test]
    fn day_after_february_of_a_century_that_has_none() {
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }
    #[test]
    fn an_evening() {
        check(1_795_208_700, "2026-11-20T21:05:00Z");
    }
    #[test]
    fn end_of_a_year() {
        check(1_798_761_599, "2026-12-31T23:59:59Z");
    }
    #[test]
    fn stamp_of_a_run() {
        assert_eq!(format_stamp(1_795_208_700), "20261120-210500");
    }
}
