//! How long a process waited for a processor that another one had.

use study::record::{Record, SubjectUse};

/// What others had of processors is told in ticks, most often of 10 ms, cut off at both ends: less than this on each is nothing.
const OTHERS_DOUBT_NS: u64 = 20_000_000;

/// Share of the measured time that the subject waited for a processor because another process had it, as far as it is sure: no more than it waited
/// at all, where its own threads may have waited for each other, and no more than others had of its processors. `None` where either is not known,
/// as where the generator shares these processors.
pub fn subject_waiting(record: &Record) -> Option<f64> {
    waited(&record.subject)
}

/// How long the subject waited for a processor that others had, ns. What is not known excuses nobody.
pub(crate) fn starved_ns(record: &Record) -> u64 {
    let share = subject_waiting(record).unwrap_or(0.0);
    (share * record.subject.measured_ns as f64) as u64
}

/// The same of a process that was looked at.
pub(crate) fn waited(used: &SubjectUse) -> Option<f64> {
    let doubt_ns = OTHERS_DOUBT_NS * used.cpus.len() as u64;
    let others_ns = used.others_ns.map(|ns| if ns > doubt_ns { ns } else { 0 })?;
    let waited_ns = used.run_queue_ns?.min(others_ns);
    (used.measured_ns > 0).then(|| (waited_ns as f64 / used.measured_ns as f64).min(1.0))
}
