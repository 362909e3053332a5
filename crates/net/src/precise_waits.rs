//! Makes waits end on time: sets the timer slack and splits a long wait in two.

use crate::driver::Nanos;

/// The length in ns of a first wait that covers most of `left`, so that the final wait is short. An epoll wait can be
/// late by 1/1,000 of its length, regardless of timer slack, or by 1/200 for a niced process
/// (`select_estimate_accuracy` in `fs/select.c`). A virtual CPU wakes up later after a long sleep: a wait of 10 ms
/// ended 45 to 55 us late, or 19 to 24 us late if split in two (io_uring, medians of 25).
pub(crate) fn approach(left: Nanos) -> Nanos {
    const SHORT_NS: Nanos = 20_000;
    if left > SHORT_NS { left - left / 128 } else { left }
}

/// Sets the timer slack to 1 ns. By default the kernel delays timers by up to 50 us to group them (prctl(2)).
pub(crate) fn precise_timers() {
    let slack = std::num::NonZeroU64::new(1);
    // A sandbox may forbid this. Late timers then show as send lag.
    let _ = rustix::thread::set_current_timer_slack(slack);
}
