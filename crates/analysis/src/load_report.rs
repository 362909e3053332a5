//! The report of a load without a study (`quintain load`), with intervals computed from the seconds of the load.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;
use stats::Bound;
use stats::batch_means::Batches;
use study::record::{Agent, Censored, Histogram, Limit, Measurement, SlowResponse, Verdict, Volley};
use study::spec::{Connection, Protocol};

use crate::censored_latency::{self, Latency};
use crate::findings::{AgentFinding, Clock, Estimate};
use crate::load_fail_if::LoadLimit;
use crate::load_report_parts::{
    self, CacheReport, JourneyReport, OperationReport, SpreadNs, StageReport, StreamsReport, known_quantile, spread,
};
use crate::value::{self, LOAD_LEVEL};
use crate::{cluster_generator_verdicts, hangs, merge_histograms, verdict};

/// Version of [`LoadReport`] that this build writes.
pub const LOAD_VERSION: u32 = 1;
/// Reported quantiles, each with its name and fraction.
pub const LOAD_QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// Output of `quintain load --json`. Scripts may rely on its keys; more may be added.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadReport {
    /// Format version of the report, [`LOAD_VERSION`].
    pub version: u32,
    /// Target of the load as the user named it.
    pub target: String,
    /// Resolved address: `ip:port`, or `unix:` and a path. For a journey, the first target as named.
    pub address: String,
    /// Protocol that the generator speaks to the target.
    pub protocol: Protocol,
    /// Name of the generator's I/O backend.
    pub backend: String,
    /// Number of connections.
    pub clients: u32,
    /// Number of threads of the generator.
    pub threads: u32,
    /// Maximum number of requests in flight per connection.
    pub pipeline: u32,
    /// Lifetime of a connection.
    pub connection: Connection,
    /// Number of requests with a valid response within the timeout while measuring.
    pub requests: u64,
    /// Number of requests with a valid response during the warm-up. Included in `sent`, but not in `requests`.
    pub warmup_requests: u64,
    /// Number of requests that were sent but had no response when measuring ended.
    pub unfinished: u64,
    /// Number of requests written during the load: `warmup_requests`, `requests`, `asked_again`, `left_in_flight`, and
    /// errors of warm-up and measurement that concern written requests.
    pub sent: u64,
    /// Number of requests resent because their connection closed after the response to an earlier request; not errors.
    pub asked_again: u64,
    /// Number of otherwise uncounted requests in flight when the load ended. The server may have received them.
    pub left_in_flight: u64,
    /// Number of errors while measuring, by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// The first error message of each kind of error that has one.
    pub error_examples: BTreeMap<String, String>,
    /// Number of responses by HTTP status, whether valid, late or counted as errors; empty for other protocols.
    pub statuses: BTreeMap<u16, u64>,
    /// Length of the measured time, s.
    pub duration_s: f64,
    /// Valid responses per second while measuring.
    pub rate_per_s: f64,
    /// Offered rate, requests per second; `null` for a closed loop.
    pub offered_per_s: Option<f64>,
    /// Bytes received while measuring.
    pub received_bytes: u64,
    /// Bytes received per second while measuring.
    pub transfer_bytes_per_s: f64,
    /// Latency of the requests, ns.
    pub latency_ns: LatencyNs,
    /// Time from requesting a connection until it is open, ns; includes connections opened before measuring.
    pub connect_ns: SpreadNs,
    /// Number of responses whose whole body was checked.
    #[serde(skip_serializing_if = "study::is_default")]
    pub checked: u64,
    /// The slowest responses, in descending order of latency; empty for requests without `{{trace}}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowResponse>,
    /// Time from the write of a request to the first part of its response, ns; `null` unless a response came in parts.
    pub first_byte_ns: Option<SpreadNs>,
    /// HTTP/2 results; `null` for other protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsReport>,
    /// Duration of TLS handshakes, ns; `null` without TLS.
    pub handshake_ns: Option<SpreadNs>,
    /// Number of TLS handshakes that resumed a session.
    pub resumed: u64,
    /// Number of connections reopened after the server closed them.
    pub reconnects: u64,
    /// Resources of the generator; for several machines, of all generators together.
    pub generator: Generator,
    /// Results per generator; empty unless the load came from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// Intervals by key, such as `rate_per_s`, from batch means or order statistics, for the seconds of this load only.
    pub intervals: BTreeMap<String, IntervalOrNote>,
    /// Number of responses after the timeout, which are errors of kind `timeout` but count in the quantiles.
    pub late_answers: u64,
    /// Number of scheduled requests that were never sent.
    pub unsent: u64,
    /// Requests that were due and had no response, valid or not, when measuring ended.
    pub censored: CensoredReport,
    /// Mean number of requests in flight over time, by counting.
    pub in_flight_mean: f64,
    /// Mean number, over time, of clients in back-off (the generator's pause before it reopens a lost connection).
    pub in_backoff_mean: f64,
    /// Mean number of requests in flight by Little's law, except failed ones: service time divided by measured time.
    pub in_flight_by_latency: f64,
    /// Why the load ended, in words.
    pub stop_reason: String,
    /// Closing line of Volley, computed by its own rule; `null` unless the load stops by that rule.
    pub volley: Option<Volley>,
    /// Hits per GET of a cache; `null` for other protocols and without GETs.
    pub hit_ratio: Option<f64>,
    /// Results of a cache workload; `null` for other loads.
    pub cache: Option<CacheReport>,
    /// Results of the journeys by operation; empty for other loads.
    pub journeys: Vec<JourneyReport>,
    /// Results of the requests of a mix, by method and target; empty for other loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<OperationReport>,
    /// Results per stage of a changing load; empty for other loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageReport>,
    /// Conditions of `--fail-if` and their outcomes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LoadLimit>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// Requests that were due and had no response when measuring ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CensoredReport {
    /// Number of unanswered requests that were sent. In a closed loop, nearly every client has one.
    pub in_flight: u64,
    /// Longest wait of the requests in flight, ns; `null` if there are none.
    pub in_flight_waited_ns: Option<u64>,
    /// Number of requests that were due but not sent; 0 in a closed loop.
    pub unsent: u64,
    /// Longest wait of the unsent requests, ns; `null` if there are none.
    pub unsent_waited_ns: Option<u64>,
    /// Whether the server stopped responding on all connections until the end of measuring.
    pub hung: bool,
}

/// Latency of a load, ns. A quantile with too few responses would only repeat the maximum and is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyNs {
    /// Mean latency, from the exact sum; `null` without responses.
    pub mean: Option<f64>,
    /// Standard deviation of the latency; `null` for fewer than two responses, or if the mean is a lower bound.
    pub stdev: Option<f64>,
    /// Median latency; `null` for too few responses.
    pub p50: Option<f64>,
    /// 90th percentile of the latency; `null` for too few responses.
    pub p90: Option<f64>,
    /// 95th percentile of the latency; `null` for too few responses.
    pub p95: Option<f64>,
    /// 99th percentile of the latency; `null` for too few responses.
    pub p99: Option<f64>,
    /// 99.9th percentile of the latency; `null` for too few responses.
    pub p999: Option<f64>,
    /// Maximum latency, exact; `null` without requests.
    pub max: Option<u64>,
    /// Keys of the values that are lower bounds because requests still waited when measuring ended, such as `p99`.
    pub at_least: BTreeSet<String>,
    /// Event at which a latency starts: `service` (the write) or `response` (the intended send time).
    pub clock: Clock,
}

/// Resources used by the generator, and whether it was the limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the generator's threads while measuring, s, including polling for the next send.
    pub cpu_s: f64,
    /// CPU time of the generator's process from start to end, s.
    pub process_cpu_s: f64,
    /// Maximum CPU utilization of a thread while measuring, from 0 to 1, excluding polling; `null` if unknown.
    pub busy: Option<f64>,
    /// Limit of the load; `subject` if clients waited for the unobserved server while the generator had spare CPU time.
    pub limited_by: Limit,
    /// Whether `subject` means the server or the path to it, because the path was not measured.
    pub path_unknown: bool,
    /// Reasons for the limit, in words.
    pub reasons: Vec<String>,
}

/// An interval, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum IntervalOrNote {
    /// Point, bounds and confidence level; `n` is the number of batches, or of effective samples for a quantile.
    Interval(Estimate),
    /// There is no interval for this value.
    Note {
        /// Why there is no interval, such as `not enough data for an interval: ...`.
        note: String,
    },
}

/// Reports a load without the limits of `--fail-if`. `agents` are its generators if it came from several machines.
pub fn load(measurement: &Measurement, agents: &[Agent], target: &str) -> LoadReport {
    let path_unknown = is_elsewhere(&measurement.address);
    let (verdict, agents, warnings) = cluster_generator_verdicts::of_load(measurement, agents);
    let Verdict { limited_by, mut reasons } = verdict;
    let is_cause_open = path_unknown && agents.is_empty() && limited_by == Limit::Subject;
    reasons.extend(is_cause_open.then(|| "the path to the server was not measured".to_owned()));
    let cpu_s = measurement.workers.iter().map(|worker| worker.cpu_ns).sum::<u64>() as f64 / 1e9;
    let (process_cpu_s, busy) = (measurement.process_cpu_ns as f64 / 1e9, verdict::generator_busy(measurement));
    let of_all = verdict::measurement_warnings(measurement, crate::hangs::Waits::default());
    let latency = Latency::of(measurement);
    let duration_s = measurement.duration_ns as f64 / 1e9;
    let a_second = |value: f64| if duration_s > 0.0 { value / duration_s } else { 0.0 };
    let by_latency = a_second((measurement.service.sum + load_report_parts::caused(measurement).0) / 1e9);
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
        checked: measurement.checked,
        slowest: measurement.slowest.clone(),
        first_byte_ns: measurement.first_byte.as_ref().map(spread),
        streams: measurement.streams.as_deref().map(load_report_parts::streams),
        handshake_ns: measurement.handshake.as_ref().map(spread),
        resumed: measurement.resumed,
        reconnects: measurement.reconnects,
        latency_ns: latency_ns(measurement, latency.as_ref()),
        generator: Generator { cpu_s, process_cpu_s, busy, limited_by, path_unknown, reasons },
        agents,
        intervals: intervals(measurement, latency.as_ref()),
        late_answers: measurement.late_answers,
        unsent: measurement.unsent,
        censored: censored(measurement),
        in_flight_mean: measurement.in_flight_mean,
        in_backoff_mean: measurement.in_backoff_mean,
        in_flight_by_latency: if by_latency.is_finite() { by_latency } else { 0.0 },
        stop_reason: measurement.stop_reason.clone(),
        volley: measurement.volley,
        hit_ratio: measurement.cache.as_ref().and_then(|cache| cache.counts.hit_ratio()),
        cache: measurement.cache.as_deref().map(load_report_parts::cache),
        journeys: measurement.journeys.iter().map(load_report_parts::journey).collect(),
        by_request: load_report_parts::operations(&measurement.by_request),
        stages: load_report_parts::stages(measurement),
        limits: Vec::new(),
        warnings: of_all.into_iter().map(|warning| warning.text).chain(warnings).collect(),
    }
}

/// Whether the form of an address shows that it leads to a different machine.
pub fn is_elsewhere(address: &str) -> bool {
    match address.parse::<SocketAddr>() {
        _ if address.is_empty() || address.starts_with("unix:") => false,
        Ok(address) => !address.ip().to_canonical().is_loopback(),
        Err(_) => address.rsplit_once(':').map_or(address, |(host, _)| host) != "localhost",
    }
}

fn latency_ns(measurement: &Measurement, latency: Option<&Latency>) -> LatencyNs {
    let found = latency.map(Latency::estimate);
    let mut at_least = BTreeSet::new();
    let mut told = |name: &str, bound: Option<Bound>| {
        at_least.extend(bound.filter(|bound| bound.at_least).map(|_| name.to_owned()));
        bound.map(|bound| bound.value).filter(|value| value.is_finite())
    };
    // Unlike a quantile, a lower bound from few responses does not just repeat the maximum.
    let mut quantile = |name: &str, q: f64| {
        let (latency, found) = latency.zip(found.as_ref())?;
        let known = known_quantile(&latency.answered, q).is_some();
        told(name, found.quantile(q).filter(|bound| known || bound.at_least))
    };
    let [p50, p90, p95, p99, p999] = LOAD_QUANTILES.map(|(name, q)| quantile(&name.replace('.', ""), q));
    let mean = told("mean", censored_latency::mean(measurement));
    let max = told("max", found.and_then(|found| found.max()));
    let stdev = stdev(measurement.latency()).filter(|_| !at_least.contains("mean"));
    let max = max.map(|max| max as u64).or(measurement.latency().max);
    LatencyNs { mean, stdev, p50, p90, p95, p99, p999, max, at_least, clock: value::clock(measurement) }
}

fn censored(measurement: &Measurement) -> CensoredReport {
    let longest = |part: fn(&Censored) -> &Histogram| part(measurement.censored.as_deref()?).max;
    let in_flight_waited_ns = longest(|censored| &censored.in_flight);
    let unsent_waited_ns = longest(|censored| &censored.unsent);
    let hung = hangs::hung(measurement, hangs::Waits::default()).is_some();
    let &Measurement { unfinished: in_flight, unsent, .. } = measurement;
    CensoredReport { in_flight, in_flight_waited_ns, unsent, unsent_waited_ns, hung }
}

fn stdev(stored: &Histogram) -> Option<f64> {
    let n = stored.count as f64;
    let variance = (stored.sum_of_squares - stored.sum * stored.sum / n) / (n - 1.0);
    (stored.count > 1 && variance.is_finite()).then(|| variance.max(0.0).sqrt())
}

fn intervals(measurement: &Measurement, latency: Option<&Latency>) -> BTreeMap<String, IntervalOrNote> {
    let windows = value::timed_windows(measurement).unwrap_or_else(|| {
        let window_s = measurement.window_ns as f64 / 1e9;
        value::whole_windows(measurement).iter().map(|window| (window, window_s)).collect()
    });
    // Windows contain only responses, so they give no interval if waiting requests change a value.
    let or_note = |found: Result<Batches, String>, is_moved: bool| {
        let note = match found {
            _ if !measurement.shape.is_empty() => "the load changed over time, so its seconds are not alike".to_owned(),
            _ if is_moved => {
                "not enough data for an interval: requests still waiting at the end would change it".to_owned()
            }
            Ok(batches) => return IntervalOrNote::Interval(batches.estimate),
            Err(note) => note,
        };
        IntervalOrNote::Note { note }
    };
    let is_moved =
        |bound: Option<Bound>, answered| bound.is_some_and(|bound| censored_latency::is_moved(&bound, answered));
    let counts = windows.iter().map(|(window, seconds)| (window.requests as f64, *seconds)).collect::<Vec<_>>();
    let sums = windows.iter().map(|(window, _)| (window.latency.sum, window.latency.count as f64)).collect::<Vec<_>>();
    let is_mean_moved = is_moved(censored_latency::mean(measurement), measurement.latency().mean());
    let mut intervals = BTreeMap::from([
        ("rate_per_s".to_owned(), or_note(stats::batch_means::ratio(&counts, LOAD_LEVEL), false)),
        ("latency_ns_mean".to_owned(), or_note(stats::batch_means::ratio(&sums, LOAD_LEVEL), is_mean_moved)),
    ]);
    let windows =
        windows.iter().map(|(window, _)| merge_histograms::from_record(&window.latency)).collect::<Option<Vec<_>>>();
    if let (Some(windows), Some(latency)) = (windows, latency) {
        let (whole, estimate) = (&latency.answered, latency.estimate());
        for (name, q) in LOAD_QUANTILES {
            let found = stats::batch_means::quantile(&windows, whole, q, LOAD_LEVEL);
            let found = or_note(found, is_moved(estimate.quantile(q), whole.quantile(q)));
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

    #[test]
    fn rate_interval_contains_the_rate() {
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
    fn deviation_is_the_sample_deviation() {
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
