//! Determines the bottleneck of a whole load or of one generator's part.

use study::record::{Calibration, Limit, Measurement, Record, SubjectUse, Verdict, Worker};

use crate::censored_latency::Latency;
use crate::hangs::Waits;
use crate::number::{count, percent, quantity};
use crate::{hangs, merge_histograms};

/// Share of a worker's time spent waiting for a CPU, above which another process counts as sharing the CPU.
pub(crate) const RUN_QUEUE_SHARE: f64 = 0.05;
/// Share of clients in back-off, from 0 to 1, up to which back-off is not reported.
const BACKOFF_SHARE: f64 = 0.01;
/// Utilization, from 0 to 1, above which a worker or server counts as busy.
pub const BUSY: f64 = 0.8;
/// Share of a worker's time spent waiting for a CPU, above which the generator limits the load.
const KEPT_SHARE: f64 = 0.3;
/// Minimum pause of a generator, in ns and as a share of the trial, that makes it the limit of the load.
const STALLED: (f64, f64) = (50e6, 0.01);
/// Largest harmless ratio of the generator's lag to the latency, both at p99.
const LAG_SHARE: f64 = 0.1;
/// Relative shortfall up to which an offered load counts as met.
const RATE_TOLERANCE: f64 = 0.01;
/// Tolerated shortfall of an offered load, in standard deviations of a Poisson count, if above `RATE_TOLERANCE`.
const RATE_SIGMAS: f64 = 3.0;
/// Share of the calibrated maximum rate above which the generator is near its limit.
const NEAR_PEAK: f64 = 0.9;

/// Judges a load whose server was not observed (`quintain load`).
pub fn judge_load(measurement: &Measurement) -> Verdict {
    limit(measurement, None, None, Waits::default())
}

pub(crate) fn of_agent(part: &Measurement, record: &Record) -> Verdict {
    // A load without a study has no server metrics.
    let subject = (record.subject.measured_ns > 0).then(|| subject_busy(&record.subject));
    limit(part, subject, None, Waits::of(record))
}

pub(crate) fn is_occupied(measurement: &Measurement) -> bool {
    generator_wanting(measurement).is_some_and(|share| share > BUSY) || own_lag(measurement).is_some()
}

/// Utilization of the server's CPUs, from 0 to 1; at most one CPU per thread counts. `None` if not measured.
pub fn subject_busy(subject: &SubjectUse) -> Option<f64> {
    let cpus = subject.cpus.len() as f64;
    let usable = if subject.threads_max > 0 { cpus.min(f64::from(subject.threads_max)) } else { cpus };
    let available = subject.measured_ns as f64 * usable;
    (available > 0.0).then(|| subject.user_ns.saturating_add(subject.system_ns) as f64 / available)
}

/// CPU utilization of the busiest worker, from 0 to 1, excluding polling for the next send; `None` if unknown.
pub fn generator_busy(measurement: &Measurement) -> Option<f64> {
    running_workers(measurement).map(ran).max_by(f64::total_cmp)
}

fn running_workers(measurement: &Measurement) -> impl Iterator<Item = &Worker> {
    measurement.workers.iter().filter(|worker| worker.wall_ns > 0)
}

fn ran(worker: &Worker) -> f64 {
    worker.cpu_ns.saturating_sub(worker.spin_ns) as f64 / worker.wall_ns as f64
}

/// Largest share of the time in which a worker was ready while another process had its CPU.
pub(crate) fn generator_waiting(measurement: &Measurement) -> f64 {
    measurement.workers.iter().map(waiting).fold(0.0, f64::max)
}

pub(crate) fn waiting(worker: &Worker) -> f64 {
    worker.run_queue_ns.unwrap_or(0) as f64 / (worker.wall_ns as f64).max(1.0)
}

pub(crate) fn stalled(measurement: &Measurement) -> Option<String> {
    let stalled_ns = measurement.workers.iter().map(|worker| worker.stalled_ns).max()? as f64;
    let measured_ns = measurement.duration_ns as f64;
    (stalled_ns >= STALLED.0 && stalled_ns >= STALLED.1 * measured_ns).then(|| {
        let (stalled, measured) = (quantity(stalled_ns, "ns"), quantity(measured_ns, "ns"));
        format!("the generator did not run for {stalled} of {measured}")
    })
}

fn cpu_wait(measurement: &Measurement) -> Option<String> {
    let share = generator_waiting(measurement);
    (share > KEPT_SHARE).then(|| format!("one worker of the generator waited for a CPU {} of the time", percent(share)))
}

/// Largest share of its time in which a worker ran or waited for a CPU: near 1 without spare time. `None` if unknown.
fn generator_wanting(measurement: &Measurement) -> Option<f64> {
    running_workers(measurement).map(|worker| ran(worker) + waiting(worker)).max_by(f64::total_cmp)
}

pub(crate) fn verdict(limited_by: Limit, reason: String) -> Verdict {
    Verdict { limited_by, reasons: vec![reason] }
}

/// Determines a load's limit. `subject` is `None` for an unobserved server, `Some(None)` for an unknown utilization.
pub(crate) fn limit(
    measurement: &Measurement,
    subject: Option<Option<f64>>,
    calibration: Option<&Calibration>,
    waits: Waits,
) -> Verdict {
    let busy = subject.flatten();
    let mut verdict = match measurement.offered_per_s {
        // Clients wait for a silent server, however busy the generator was before the silence.
        _ if let Some(ns) = hangs::hung(measurement, waits) => {
            verdict(Limit::Subject, hangs::hang_text(measurement, ns))
        }
        _ if let Some(held_up) = stalled(measurement) => verdict(Limit::Generator, held_up),
        Some(offered) => open(measurement, offered, busy),
        None => closed(measurement, subject, calibration),
    };
    let waiting = Some(generator_waiting(measurement)).filter(|share| *share > RUN_QUEUE_SHARE).map(percent);
    let waited = waiting.map_or(String::new(), |share| format!(", one worker waited for a CPU {share} of the time"));
    verdict.reasons.push(match generator_busy(measurement) {
        Some(share) => format!("the generator's busiest worker was {} busy{waited}", percent(share)),
        None => "the generator's CPU time is unknown".to_owned(),
    });
    verdict.reasons.extend(subject.map(|busy| match busy {
        Some(share) => format!("the server was {} busy", percent(share)),
        None => "the server's CPU time is unknown".to_owned(),
    }));
    verdict
}

fn p99(stored: &Option<study::record::Histogram>) -> f64 {
    let histogram = stored.as_ref().and_then(merge_histograms::from_record);
    histogram.and_then(|histogram| histogram.quantile(0.99)).unwrap_or(0.0)
}

/// Describes the ratio of the generator's lag to the latency, both at p99; `None` up to `LAG_SHARE`.
fn own_lag(measurement: &Measurement) -> Option<String> {
    let latency = Latency::of(measurement).and_then(|latency| latency.estimate().quantile(0.99))?.value;
    let lag = p99(&measurement.lag_thread);
    let text = format!("its own send lag at p99 is {} of the p99 latency", percent(lag / latency));
    (lag > LAG_SHARE * latency).then_some(text)
}

fn open(measurement: &Measurement, offered: f64, subject: Option<f64>) -> Verdict {
    let asked = offered * (measurement.duration_ns as f64 / 1e9);
    let least = asked - allowed_shortfall(asked);
    let answered = measurement.requests as f64;
    let share = percent(answered / asked.max(1.0));
    let missed = |why: &str| format!("only {share} of the offered load was answered, {why}");
    let room = u64::from(measurement.clients).saturating_mul(u64::from(measurement.pipeline));
    let (limit, reason) = match () {
        () if let Some(lag) = own_lag(measurement) => (Limit::Generator, lag),
        () if answered >= least => (Limit::Neither, format!("{share} of the offered load was answered")),
        () if answered + measurement.errors_total() as f64 >= least => (Limit::Subject, missed("the rest failed")),
        () if subject.is_some_and(|share| share > BUSY) => (Limit::Subject, missed("its CPUs were busy")),
        () if let Some(clients) = mostly_backing_off(measurement) => (Limit::Subject, missed(&clients)),
        () if let Some(wait) = cpu_wait(measurement) => (Limit::Generator, missed(&wait)),
        () if p99(&measurement.lag_connection) > p99(&measurement.lag_thread) => {
            (Limit::Subject, missed("no connection was free: it was slow to respond"))
        }
        () if measurement.unsent > 0 && measurement.unfinished >= room => {
            (Limit::Subject, missed("every connection was waiting for a response at the end"))
        }
        () => (Limit::Generator, missed("and the server was not saturated")),
    };
    verdict(limit, reason)
}

/// Number of scheduled requests that may be missing: a share, or the variation of a Poisson count if that is larger.
pub(crate) fn allowed_shortfall(asked: f64) -> f64 {
    (RATE_TOLERANCE * asked).max(RATE_SIGMAS * asked.sqrt())
}

fn closed(measurement: &Measurement, subject: Option<Option<f64>>, calibration: Option<&Calibration>) -> Verdict {
    let (watched, subject) = (subject.is_some(), subject.flatten());
    let is_busy = |share: Option<f64>| share.is_some_and(|share| share > BUSY);
    let rate = measurement.rate_per_s();
    // A rate that the null server limited does not bound the generator.
    let near = calibration.filter(|calibration| {
        rate > NEAR_PEAK * calibration.rate_max_per_s && calibration.generator_busy.is_none_or(|share| share > BUSY)
    });
    let all = f64::from(measurement.clients);
    let thinking = thinking(measurement);
    let rests = backing_off(measurement).is_some() || thinking > 0.0;
    let waiting = on_average(all - measurement.in_backoff_mean - thinking, measurement);
    let clients = if rests { waiting } else { count(u64::from(measurement.clients), "client") };
    let (limit, reason) = match () {
        () if is_busy(subject) => (Limit::Subject, "its CPUs were busy".to_owned()),
        () if is_busy(generator_wanting(measurement)) => {
            let reason = match (is_busy(generator_busy(measurement)), watched && subject.is_some()) {
                (false, _) => "it had no CPU of its own",
                (true, true) => "it was saturated while the server had spare CPU",
                (true, false) => "it was busy, and the server's spare CPU is unknown",
            };
            (Limit::Generator, reason.to_owned())
        }
        () if let Some(wait) = cpu_wait(measurement) => (Limit::Generator, wait),
        () if let Some(near) = near => {
            let share = percent(rate / near.rate_max_per_s);
            let server = if near.server.is_empty() { "a null server" } else { &near.server };
            let reason = format!("the rate is {share} of its maximum here over {} against {server}", near.protocol);
            (Limit::Generator, reason)
        }
        () if let Some(clients) = mostly_backing_off(measurement) => (Limit::Subject, clients),
        () if thinking > all / 2.0 => {
            (Limit::Neither, format!("{} were in their think time", on_average(thinking, measurement)))
        }
        // If the server was not observed, latency is certain to be the limit only with at most one client per worker.
        () if watched || measurement.clients <= measurement.threads => {
            (Limit::Latency, format!("nothing was saturated: {clients} waited for responses"))
        }
        () => (Limit::Subject, format!("{clients} waited for responses while the generator had CPU to spare")),
    };
    verdict(limit, reason)
}

fn on_average(mean: f64, measurement: &Measurement) -> String {
    let mean = if mean < 10.0 { format!("{mean:.1}") } else { format!("{mean:.0}") };
    format!("on average {} of {}", mean.trim_end_matches(".0"), count(u64::from(measurement.clients), "client"))
}

/// Mean number of clients in think time by Little's law, limited to the clients neither waiting nor in back-off.
fn thinking(measurement: &Measurement) -> f64 {
    let ended = measurement.requests as f64 + measurement.errors_total() as f64;
    let by_rate = ended * measurement.think_ns as f64 / (measurement.duration_ns as f64).max(1.0);
    let waiting = measurement.in_flight_mean / f64::from(measurement.pipeline.max(1));
    let free = f64::from(measurement.clients) - waiting - measurement.in_backoff_mean;
    by_rate.min(free).max(0.0)
}

pub(crate) fn backing_off(measurement: &Measurement) -> Option<String> {
    let mean = measurement.in_backoff_mean;
    let pause = match measurement.journeys.is_empty() {
        false => "paused after a journey that failed",
        true => "were in the generator's back-off after lost connections",
    };
    (mean > BACKOFF_SHARE * f64::from(measurement.clients))
        .then(|| format!("{} {pause}", on_average(mean, measurement)))
}

fn mostly_backing_off(measurement: &Measurement) -> Option<String> {
    let clients = backing_off(measurement)?;
    let why = if !measurement.journeys.is_empty() { "its responses failed journeys" } else { "it lost connections" };
    (measurement.in_backoff_mean > f64::from(measurement.clients) / 2.0).then(|| format!("{why}: {clients}"))
}
