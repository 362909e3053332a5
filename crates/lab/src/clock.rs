//! The clock of the lab: wall time for a reader, monotonic time for waiting. The only reader of either in this crate.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time now.
#[expect(clippy::disallowed_methods, reason = "this module owns the lab's clocks")]
pub fn now() -> Instant {
    Instant::now()
}

/// The moment at which the monotonic clock of this machine (`CLOCK_MONOTONIC`) shows so many ns: the clock of every process here.
pub fn at_monotonic(ns: u64) -> Instant {
    // Before the other clock, so that losing the processor between the two makes the moment earlier, never later than it was.
    let (now, wanted) = (now(), Duration::from_nanos(ns));
    let shown = Duration::from_nanos(monotonic_ns());
    if wanted >= shown { now + (wanted - shown) } else { now.checked_sub(shown - wanted).unwrap_or(now) }
}

/// What the monotonic clock of this machine (`CLOCK_MONOTONIC`) shows, ns.
pub fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanos(Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// Wall time now, seconds since 1970; 0 on a machine whose clock stands before that.
pub fn unix_seconds() -> u64 {
    unix_nanos() / 1_000_000_000
}

/// Wall time now, nanoseconds since 1970; 0 on a machine whose clock stands before that.
#[expect(clippy::disallowed_methods, reason = "this module owns the lab's clocks")]
pub fn unix_nanos() -> u64 {
    nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Wall time now, UTC, RFC 3339: `2026-11-20T21:05:00Z`.
pub fn rfc3339() -> String {
    format_rfc3339(unix_seconds())
}

/// Wall time now, UTC, as it stands in the name of a run: `20261120-210500`.
pub fn stamp() -> String {
    format_stamp(unix_seconds())
}

/// Nanoseconds of a span of time; saturates after 584 years.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds since 1970 as RFC 3339, UTC.
pub fn format_rfc3339(unix_seconds: u64) -> String {
    let (year, month, day) = civil(unix_seconds / 86_400);
    let (hour, minute, second) = time_of_day(unix_seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Seconds since 1970 as `YYYYMMDD-HHMMSS`, UTC.
pub fn format_stamp(unix_seconds: u64) -> String {
    let (year, month, day) = civil(unix_seconds / 86_400);
    let (hour, minute, second) = time_of_day(unix_seconds);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

fn time_of_day(unix_seconds: u64) -> (u64, u64, u64) {
    let second = unix_seconds % 86_400;
    (second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of the Gregorian calendar. Source: Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`, for days that are not negative.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468; // Days since 0000-03-01: leap days end a year that starts in March.
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_the_monotonic_clock() {
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
