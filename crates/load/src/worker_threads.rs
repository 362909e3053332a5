//! Runs the workers on pinned threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::Nanos;
use study::generator_messages::{Phase, Progress, Span, Told};
use study::record::keep_slowest;
use study::spec::Target;

pub use crate::coordinator::Gate;
use crate::coordinator::{Control, Coordinator, Ended, Outcome, SENT_ONCE};
use crate::coordinator_exchange::Usage;
use crate::recorder::Fault;
use crate::worker::Done;

const STEP: Duration = Duration::from_millis(5);
const PROGRESS_NS: Nanos = 200_000_000;

/// Reasons why a load has no measurement.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The specification is invalid, for these reasons.
    #[error("invalid load: {}", .0.join("; "))]
    Spec(Vec<String>),
    /// The address of the server could not be resolved.
    #[error("cannot resolve `{address}`: {source}")]
    Resolve {
        /// Address as given in the specification.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// TLS could not be set up, for this reason.
    #[error("{0}")]
    Tls(String),
    /// The trace cannot be replayed, for this reason.
    #[error("{0}")]
    Trace(String),
    /// A trace, or a file whose rows are sent once, ended before anything was measured.
    #[error("{0} ended during the warm-up")]
    InputEnded(String),
    /// No connection was established in time.
    #[error("cannot open any of {clients} connections to {address}: {reason}")]
    Unreachable {
        /// Address of the server, as given or resolved.
        address: String,
        /// Number of connections that were attempted.
        clients: u32,
        /// Reason why the connections failed, in a few words.
        reason: String,
        /// Whether the server responded, but not with valid TLS or HTTP/2.
        has_responded: bool,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Kernel {
        /// Name of the operation that failed.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The worker with this index panicked, which is a bug.
    #[error("worker {0} panicked")]
    Panicked(u32),
    /// The gate was not opened in time.
    #[error("connected, but got no start message within 60 s")]
    NotStarted,
    /// `abort` was set before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

/// Runs each job on a thread and steps the coordinator to the end, or until `abort` or a failing worker's `failed` is
/// set. Then the connections close. Returns the jobs' results if the load was measured.
pub(crate) fn run_workers(
    mut coordinator: Coordinator<'_>,
    control: &Control,
    address: &str,
    (abort, failed): (&AtomicBool, &AtomicBool),
    jobs: Vec<impl FnOnce() -> Result<Done, LoadError> + Send>,
) -> Result<(Ended, Vec<Done>), LoadError> {
    std::thread::scope(|scope| {
        let threads = jobs.into_iter().zip(0u32..).map(|(job, index)| {
            let thread = std::thread::Builder::new().name(format!("worker {index}"));
            thread.spawn_scoped(scope, move || {
                let done = catch_unwind(AssertUnwindSafe(job));
                if !matches!(done, Ok(Ok(_))) {
                    failed.store(true, Ordering::Relaxed);
                }
                done.unwrap_or(Err(LoadError::Panicked(index)))
            })
        });
        let threads = threads.collect::<Vec<_>>();
        if threads.iter().any(Result::is_err) {
            failed.store(true, Ordering::Relaxed);
        }
        let is_aborted = || abort.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let outcome = watch(&mut coordinator, control, &is_aborted);
        let done = threads.into_iter().zip(0..).map(|(thread, index)| {
            let thread = thread.map_err(|source| kernel(&format!("start worker {index}"), source))?;
            thread.join().map_err(|_| LoadError::Panicked(index))?
        });
        let done = done.collect::<Result<Vec<_>, _>>()?;
        let spec = coordinator.spec;
        Err(match outcome {
            Outcome::Measured(ended) => return Ok((ended, done)),
            Outcome::Unreachable(refusal) => {
                let (fault, reason) = refusal.unwrap_or_else(|| (Fault::ConnectTimeout, "timed out".to_owned()));
                let has_responded = matches!(fault, Fault::Tls | Fault::Framing | Fault::HeadTooLarge);
                let (address, clients) = (address.to_owned(), spec.own_clients());
                LoadError::Unreachable { address, clients, reason, has_responded }
            }
            Outcome::InputEnded => {
                let trace = if let Target::Cache { workload, .. } = &spec.target { &workload.trace } else { &None };
                let named = trace.as_ref().map(|trace| format!("the trace `{}`", trace.file));
                LoadError::InputEnded(named.unwrap_or_else(|| SENT_ONCE.to_owned()))
            }
            Outcome::NotStarted => LoadError::NotStarted,
            Outcome::Interrupted => LoadError::Interrupted,
        })
    })
}

fn watch(coordinator: &mut Coordinator<'_>, control: &Control, is_aborted: &dyn Fn() -> bool) -> Outcome {
    let mut told_phase = None;
    let mut told_at = 0;
    loop {
        let now = net::thread_and_process::monotonic_ns();
        if let Some(outcome) = coordinator.step(now, is_aborted()) {
            if let Outcome::Measured(ended) = &outcome {
                (coordinator.tell)(Told::Measured(Span { from_ns: ended.from, until_ns: ended.until }));
            }
            control.release();
            return outcome;
        }
        let phase = coordinator.phase(now);
        if told_phase != Some(phase) || now >= told_at + PROGRESS_NS {
            (told_phase, told_at) = (Some(phase), now);
            (coordinator.tell)(Told::Progress(report(phase, now.saturating_sub(coordinator.from), control)));
        }
        let left = coordinator.next_moment(now).saturating_sub(net::thread_and_process::monotonic_ns());
        std::thread::sleep(STEP.min(Duration::from_nanos(left)));
    }
}

fn report(phase: Phase, elapsed_ns: Nanos, control: &Control) -> Progress {
    const RECENT_WINDOWS: usize = 5;
    let mut seen =
        Progress { phase, elapsed_ns, cpu_ns: net::thread_and_process::process_cpu_ns(), ..Progress::default() };
    let (mut sum, mut count) = (0.0, 0.0);
    for gauge in &control.gauges {
        let live = gauge.live();
        seen.requests += live.requests;
        for (name, count) in Fault::NAMES.into_iter().zip(live.faults).filter(|(_, count)| *count > 0) {
            seen.errors += count;
            *seen.errors_by_kind.entry(name.to_owned()).or_default() += count;
        }
        seen.latencies.add(&live.latencies);
        seen.slowest.extend_from_slice(&live.slowest);
        let recent = &live.windows[live.windows.len().saturating_sub(RECENT_WINDOWS)..];
        let span_s = recent.len() as f64 * control.window_ns as f64 / 1e9;
        let answers = recent.iter().map(|window| window.1).sum::<f64>();
        if span_s > 0.0 {
            seen.rate_per_s += answers / span_s;
        }
        count += answers;
        sum += recent.iter().map(|window| window.0).sum::<f64>();
    }
    keep_slowest(&mut seen.slowest);
    seen.latency_mean_ns = Some(sum / count).filter(|mean| *mean > 0.0 && mean.is_finite());
    seen
}

pub(crate) fn pin(cpu: Option<u32>, thread: &str) -> Result<(), LoadError> {
    let Some(cpu) = cpu else { return Ok(()) };
    net::thread_and_process::set_affinity(&[cpu])
        .map_err(|source| kernel(&format!("pin {thread} to CPU {cpu}"), source))
}

pub(crate) fn kernel(what: &str, source: io::Error) -> LoadError {
    LoadError::Kernel { what: what.to_owned(), source }
}

pub(crate) fn usage() -> Usage {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let run_queue_ns = schedstat.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok());
    Usage { cpu_ns: net::thread_and_process::thread_cpu_ns(), run_queue_ns }
}
