//! How long processes waited for a CPU that another process had.

use study::record::{Record, SubjectUse};

/// Waits of server and proxies, ns. An unknown wait counts as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Waits because of other processes, over the whole trial.
    pub(crate) whole_ns: u64,
    /// Wait in progress when measuring ended.
    pub(crate) at_end_ns: u64,
}

impl Waits {
    pub(crate) fn of(record: &Record) -> Self {
        let used = || std::iter::once(&record.subject).chain(record.proxies.iter().map(|proxy| &proxy.used));
        let whole_ns = |used: &SubjectUse| (used.waiting_share().unwrap_or(0.0) * used.measured_ns as f64) as u64;
        let whole_ns = used().map(whole_ns).max().unwrap_or(0);
        Self { whole_ns, at_end_ns: used().filter_map(|used| used.waited_at_end_ns).max().unwrap_or(0) }
    }
}
