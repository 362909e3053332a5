//! One load without a study (`quintain load`): its numbers, with intervals that are of its own seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;
use stats::Bound;
use study::record::{Agent, Censored, Histogram, Limit, Measurement, Volley};
use study::spec::{Connection, Protocol};

use crate::cache::{self, CacheReport};
use crate::duration_summary::{SpreadNs, known_quantile, spread};
use crate::failed_requests::FailedRequests;
use crate::findings::{AgentFinding, Clock, Estimate};
use crate::journey::{self, JourneyReport};
use crate::latency::{self, Latency};
use crate::{agents, hangs, histogram, value, verdict};

/// The version of [`LoadReport`].
pub const LOAD_VERSION: u32 = 1;
/// Level of confidence of its intervals.
pub const LOAD_LEVEL: f64 = 0.95;
/// The quantiles that are shown: name and fraction.
pub const LOAD_QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// What `quintain load --json` prints. Scripts may rely on these keys; more may come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadReport {
    /// [`LOAD_VERSION`].
    pub version: u32,
    /// What was loaded, as it was named.
    pub target: String,
    /// What it was resolved to: `ip:port`, or `unix:` and a path; of a journey its first target as it was named.
    pub address: String,
    /// What was spoken.
    pub protocol: Protocol,
    /// Backend of `net` that was used.
    pub backend: String,
    /// Connections.
    pub clients: u32,
    /// Workers.
    pub threads: u32,
    /// Requests in flight on one connection at most.
    pub pipeline: u32,
    /// How long a connection was used.
    pub connection: Connection,
    /// Completed and valid within the timeout, while measured.
    pub requests: u64,
    /// Completed and valid in the warm-up; in no other figure here.
    pub warmup_requests: u64,
    /// Sent and not answered when measuring ended.
    pub unfinished: u64,
    /// Written from the start of the load to its end, what the server was asked: `warmup_requests`, `requests`, the errors of both that are
    /// of written requests, `asked_again` and `left_in_flight`.
    pub sent: u64,
    /// Sent once more on another connection, because the one before had ended behind an answer to an earlier one; no errors.
    pub asked_again: u64,
    /// In flight when the load ended and in no other count here; the server may have seen them or not.
    pub left_in_flight: u64,
    /// What went wrong while measured, by kind.
    pub errors: BTreeMap<String, u64>,
    /// The first error of each kind that has more to say, in words.
    pub error_examples: BTreeMap<String, String>,
    /// HTTP status of the responses that are among `requests`, `errors` or `late_answers`; empty for other protocols.
    pub statuses: BTreeMap<u16, u64>,
    /// Length of what was measured, s.
    pub duration_s: f64,
    /// Valid answers a second.
    pub rate_per_s: f64,
    /// Offered rate, per second; `null` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Bytes received while measured.
    pub received_bytes: u64,
    /// The same a second.
    pub transfer_bytes_per_s: f64,
    /// Latency, ns.
    pub latency_ns: LatencyNs,
    /// From asking for a connection to having it, ns; all connections, those before measuring too.
    pub connect_ns: SpreadNs,
    /// TLS handshakes, ns; `null` without TLS.
    pub handshake_ns: Option<SpreadNs>,
    /// TLS handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections opened again after an end that was not ours.
    pub reconnects: u64,
    /// The generator; of a load from several machines, all together.
    pub generator: Generator,
    /// The generators one by one, of a load from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// Intervals by batch means or order statistics, by name: `rate_per_s`, `latency_ns_mean`, `latency_ns_p99` and so on. They are of the
    /// seconds of this load: another stretch of this machine, or another start of the server, may differ.
    pub intervals: BTreeMap<String, IntervalOrNote>,
    /// Responses that came after the timeout: errors of kind `timeout` whose latency is in the quantiles.
    pub late_answers: u64,
    /// Intended sends that were never written.
    pub unsent: u64,
    /// Requests that were due and had no answer, right or wrong, when measuring ended.
    pub censored: CensoredReport,
    /// Requests in flight as counted, mean over time.
    pub in_flight_mean: f64,
    /// Clients in the generator's own pause before it opens a lost connection again (its back-off), mean over time.
    pub in_backoff_mean: f64,
    /// The same by Little's law: service times, summed up, over the time measured. Requests that went wrong are not in it.
    pub in_flight_by_latency: f64,
    /// Why it ended.
    pub stop_reason: String,
    /// Volley's closing line, under its own rule.
    pub volley: Option<Volley>,
    /// Hits over GETs of a cache; `null` for what is none, and where nothing was read.
    pub hit_ratio: Option<f64>,
    /// What a cache made of its workload; `null` for what is none.
    pub cache: Option<CacheReport>,
    /// What a journey's operations came to; `null` for what is none.
    pub journey: Option<JourneyReport>,
    /// What the reader should know, one sentence each.
    pub warnings: Vec<String>,
}

impl<'a> From<&'a LoadReport> for FailedRequests<'a> {
    fn from(of: &'a LoadReport) -> Self {
        Self { valid: of.requests, errors: &of.errors, statuses: &of.statuses, examples: &of.error_examples }
    }
}

/// Requests that were due and had no answer when measuring ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CensoredReport {
    /// Written, and not answered. In a closed loop nearly every client has one.
    pub in_flight: u64,
    /// The longest of them had waited so long, ns.
    pub in_flight_waited_ns: Option<u64>,
    /// To be sent, and not written; open loop only.
    pub unsent: u64,
    /// The longest of them had waited so long, ns.
    pub unsent_waited_ns: Option<u64>,
    /// The subject fell silent on all connections, and stayed so until the end.
    pub hung: bool,
}

/// Latency of a load, ns. What too few answers cannot tell is `null`: a quantile above all of them would be their
/// maximum in disguise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyNs {
    /// Mean, from the exact sum.
    pub mean: Option<f64>,
    /// Standard deviation over requests.
    pub stdev: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// p90.
    pub p90: Option<f64>,
    /// p95.
    pub p95: Option<f64>,
    /// p99.
    pub p99: Option<f64>,
    /// p99.9.
    pub p999: Option<f64>,
    /// The largest, exact.
    pub max: Option<u64>,
    /// Which of the above are only the least that they can be, `p99`, because requests still waited when measuring ended.
    pub at_least: BTreeSet<String>,
    /// Where it starts: `service` (at the write) or `response` (at the intended send time).
    pub clock: Clock,
}

/// What a load cost the generator, and whether it was the limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Generator {
    /// CPU time of its workers while measuring, polling for the next send included, s; over `requests` it is the cost of one.
    pub cpu_s: f64,
    /// CPU time of its whole process, start to end, s.
    pub process_cpu_s: f64,
    /// Share of its processor that the busiest worker used while measuring, a fraction; without polling for the next send.
    pub busy: Option<f64>,
    /// The limit. `subject` where responses were waited for while the generator had time to spare: the server's CPUs are not observed here.
    pub limited_by: Limit,
    /// Whether the server is reached by a network that was not measured, so that `subject` means the server or the path to it.
    pub path_unknown: bool,
    /// Why we think so.
    pub reasons: Vec<String>,
}

/// An interval, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum IntervalOrNote {
    /// Its point, bounds and level; `n` is the number of batches, or of effective samples for a quantile.
    Interval(Estimate),
    /// Why not.
    Note {
        /// `not enough data for an interval: ...`.
        note: String,
    },
}

/// The numbers of a load. `agents` are its generators one by one where it came from several machines; `target` is how its user named it.
pub fn load(measurement: &Measurement, agents: &[Agent], target: &str) -> LoadReport {
    let of_all = verdict::judge_load(measurement);
    let path_unknown = is_elsewhere(&measurement.address);
    let agents::OfLoad { mut verdict, agents, warnings } = agents::of_load(of_all, measurement, agents);
    if path_unknown && agents.is_empty() && verdict.limited_by == Limit::Subject {
        verdict.reasons.push("the path to the server was not measured".to_owned());
    }
    let of_all = verdict::measurement_warnings(measurement, crate::cpu_waits::Waits::default());
    let latency = Latency::of(measurement);
    let duration_s = measurement.duration_ns as f64 / 1e9;
    let a_second = |value: f64| if duration_s > 0.0 { value / duration_s } else { 0.0 };
    LoadReport {
        version: LOAD_VERSION,
        target: target.to_owned(),
        address: measurement.address.clone(),
        protocol: measurement.protocol,
        backend: measurement.backend.clone(),
        clients: measurement.clients,
        threads: measurement.threads,
        pipeline: measurement.pipeline,
        connection: measurement.connection,
        requests: measurement.requests,
        warmup_requests: measurement.warmup_requests,
        unfinished: measurement.unfinished,
        sent: measurement.sent,
        asked_again: measurement.asked_again,
        left_in_flight: measurement.left_in_flight,
        errors: measurement.errors.clone(),
        error_examples: measurement.error_examples.clone(),
        statuses: measurement.statuses.clone(),
        duration_s,
        rate_per_s: measurement.rate_per_s(),
        offered_per_s: measurement.offered_per_s,
        received_bytes: measurement.received_bytes,
        transfer_bytes_per_s: a_second(measurement.received_bytes as f64),
        connect_ns: spread(&measurement.connect),
        handshake_ns: measurement.handshake.as_ref().map(spread),
        resumed: measurement.resumed,
        reconnects: measurement.reconnects,
        latency_ns: latency_ns(measurement, latency.as_ref()),
        generator: Generator {
            cpu_s: measurement.workers.iter().map(|worker| worker.cpu_ns).sum::<u64>() as f64 / 1e9,
            process_cpu_s: measurement.process_cpu_ns as f64 / 1e9,
            busy: verdict::generator_busy(measurement),
            limited_by: verdict.limited_by,
            path_unknown,
            reasons: verdict.reasons,
        },
        agents,
        intervals: intervals(measurement, latency.as_ref()),
        late_answers: measurement.late_answers,
        unsent: measurement.unsent,
        censored: censored(measurement),
        in_flight_mean: measurement.in_flight_mean,
        in_backoff_mean: measurement.in_backoff_mean,
        in_flight_by_latency: Some(a_second((measurement.service.sum + crate::cache::caused(measurement).0) / 1e9))
            .filter(|n| n.is_finite())
            .unwrap_or(0.0),
        stop_reason: measurement.stop_reason.clone(),
        volley: measurement.volley,
        hit_ratio: measurement.cache.as_ref().and_then(|cache| cache.counts.hit_ratio()),
        cache: measurement.cache.as_deref().map(cache::report),
        journey: measurement.journey.as_deref().map(journey::report),
        warnings: of_all.into_iter().chain(warnings).map(|warning| warning.text).collect(),
    }
}

/// Whether an address leads out of this machine, as far as it can tell.
pub fn is_elsewhere(address: &str) -> bool {
    if address.is_empty() || address.starts_with("unix:") {
        return false;
    }
    match address.parse::<SocketAddr>() {
        Ok(address) => !address.ip().to_canonical().is_loopback(),
        Err(_) => address.rsplit_once(':').map_or(address, |(host, _)| host) != "localhost",
    }
}

/// The latencies, and which of them are lower bounds.
fn latency_ns(measurement: &Measurement, latency: Option<&Latency>) -> LatencyNs {
    let found = latency.map(Latency::estimate);
    let mut at_least = BTreeSet::new();
    let mut told = |name: &str, bound: Option<Bound>| {
        if bound.is_some_and(|bound| bound.at_least) {
            at_least.insert(name.to_owned());
        }
        bound.map(|bound| bound.value).filter(|value| value.is_finite())
    };
    // Neither is a lower bound a maximum in disguise, nor hides one behind it.
    let mut quantile = |name: &str, q: f64| {
        let (latency, found) = latency.zip(found.as_ref())?;
        let known = known_quantile(latency.answered(), q).is_some();
        told(name, found.quantile(q).filter(|bound| known || bound.at_least))
    };
    let [p50, p90, p95, p99, p999] = LOAD_QUANTILES.map(|(name, q)| quantile(&name.replace('.', ""), q));
    let mean = told("mean", latency::mean(measurement));
    let max = told("max", found.and_then(|found| found.max()));
    let stdev = stdev(measurement.latency()).filter(|_| !at_least.contains("mean"));
    let max = max.map(|max| max as u64).or(measurement.latency().max);
    LatencyNs { mean, stdev, p50, p90, p95, p99, p999, max, at_least, clock: value::clock(measurement) }
}

fn censored(measurement: &Measurement) -> CensoredReport {
    let longest = |part: fn(&Censored) -> &Histogram| part(measurement.censored.as_deref()?).max;
    CensoredReport {
        in_flight: measurement.unfinished,
        in_flight_waited_ns: longest(|censored| &censored.in_flight),
        unsent: measurement.unsent,
        unsent_waited_ns: longest(|censored| &censored.unsent),
        hung: hangs::hung(measurement, crate::cpu_waits::Waits::default()).is_some(),
    }
}

/// Standard deviation of a sample, from its exact sums; `None` below two values.
fn stdev(stored: &Histogram) -> Option<f64> {
    let n = stored.count as f64;
    let variance = (stored.sum_of_squares - stored.sum * stored.sum / n) / (n - 1.0);
    (stored.count > 1 && variance.is_finite()).then(|| variance.max(0.0).sqrt())
}

fn intervals(measurement: &Measurement, latency: Option<&Latency>) -> BTreeMap<String, IntervalOrNote> {
    let or_note = |found: Result<stats::batch::Batches, stats::batch::Declined>,
                   n: fn(&stats::batch::Batches) -> u64| match found {
        Ok(batches) => {
            let estimate = stats::Estimate { n: n(&batches), ..batches.estimate };
            IntervalOrNote::Interval(estimate)
        }
        Err(declined) => IntervalOrNote::Note { note: declined.to_string() },
    };
    // The same windows as the estimates: all of them.
    let windows = value::timed_windows(measurement).unwrap_or_else(|| {
        let window_s = measurement.window_ns as f64 / 1e9;
        value::whole_windows(measurement).iter().map(|window| (window, window_s)).collect()
    });
    let counts = windows.iter().map(|(window, seconds)| (window.requests as f64, *seconds)).collect::<Vec<_>>();
    let sums = windows.iter().map(|(window, _)| (window.latency.sum, window.latency.count as f64)).collect::<Vec<_>>();
    let mut intervals = BTreeMap::new();
    let batches = |found: &stats::batch::Batches| found.batches as u64;
    intervals.insert("rate_per_s".to_owned(), or_note(stats::batch::ratio(&counts, LOAD_LEVEL), batches));
    // Windows know answers alone: where requests without one change a number, they cannot say how sure it is.
    let or_moved = |bound: Option<Bound>, answered: Option<f64>, found: IntervalOrNote| match bound {
        Some(bound) if latency::is_moved(&bound, answered) => {
            let note = "not enough data for an interval: requests still waiting at the end would change it".to_owned();
            IntervalOrNote::Note { note }
        }
        _ => found,
    };
    let stored = measurement.latency();
    let answered = Some(stored.sum / stored.count as f64).filter(|_| stored.count > 0);
    let mean = or_note(stats::batch::ratio(&sums, LOAD_LEVEL), batches);
    intervals.insert("latency_ns_mean".to_owned(), or_moved(latency::mean(measurement), answered, mean));
    let histograms =
        windows.iter().map(|(window, _)| histogram::from_record(&window.latency)).collect::<Option<Vec<_>>>();
    if let (Some(windows), Some(latency)) = (histograms, latency) {
        let (whole, estimate) = (latency.answered(), latency.estimate());
        for (name, q) in LOAD_QUANTILES {
            let found = or_note(stats::batch::quantile(&windows, whole, q, LOAD_LEVEL), |found| found.estimate.n);
            let found = or_moved(estimate.quantile(q), whole.quantile(q), found);
            intervals.insert(format!("latency_ns_{}", name.replace('.', "")), found);
        }
    }
    intervals
}

#[cfg(test)]
mod tests {
    use study::record::{Outcome, Window};

    use super::*;
    use crate::example;

    /// Windows of equal rates but for one, and a last one that was cut short.
    #[test]
    fn the_interval_of_the_rate_is_about_the_rate() {
        let mut record = example::volley().1.into_iter().find(|record| record.measurement().is_some()).unwrap();
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        let window = |requests| Window { requests, errors: 0, latency: Histogram::default() };
        measurement.window_ns = 100_000_000;
        measurement.windows = [vec![window(25); 3], vec![window(0)], vec![window(25); 35], vec![window(13)]].concat();
        measurement.duration_ns = 3_950_000_000;
        measurement.requests = 38 * 25 + 13;
        let report = load(measurement, &[], "");
        let IntervalOrNote::Interval(found) = &report.intervals["rate_per_s"] else { panic!("{:?}", report.intervals) };
        assert!((found.point - report.rate_per_s).abs() < 1e-9, "{found:?} beside {}", report.rate_per_s);
        assert!(found.low < report.rate_per_s - 1.0 && report.rate_per_s + 1.0 < found.high, "{found:?}");
    }

    #[test]
    fn a_deviation_is_that_of_the_sample() {
        let mut histogram = stats::Histogram::new();
        // numpy.std([2, 4, 4, 4, 5, 5, 7, 9], ddof=1) is 2.138089935299395.
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|value| histogram.record(value));
        let stored = study::record::Histogram::from(&histogram);
        assert!((stdev(&stored).unwrap() - 2.138_089_935_299_395).abs() < 1e-12);
        assert_eq!(stdev(&study::record::Histogram::default()), None);
        let broken = study::record::Histogram { sum: f64::NAN, ..stored };
        assert_eq!(stdev(&broken), None);
    }
}
