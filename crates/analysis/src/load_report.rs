//! The report of a load without a study (`quintain load`), with intervals computed from the seconds of the load.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;
use stats::Bound;
use stats::batch_means::Batches;
use study::record::{
    Agent, CacheCounts, CacheMeasurement, Censored, Histogram, JourneyMeasurement, Limit, Measurement,
    OperationMeasurement, SlowResponse, StreamsMeasurement, TraceReplay, Verdict, Volley, Window,
};
use study::spec::{Connection, Protocol, Stage};

use crate::censored_latency::{self, Latency};
use crate::findings::{AgentFinding, Clock, Estimate};
use crate::load_fail_if::LoadLimit;
use crate::number::total;
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
    /// The measurement, whose facts in [`MeasuredFacts`] are keys of the report.
    #[serde(flatten, with = "MeasuredFacts")]
    pub measurement: Measurement,
    /// Length of the measured time, s.
    pub duration_s: f64,
    /// Valid responses per second while measuring.
    pub rate_per_s: f64,
    /// Bytes received per second while measuring.
    pub transfer_bytes_per_s: f64,
    /// Latency of the requests, ns.
    pub latency_ns: LatencyNs,
    /// Time from requesting a connection until it is open, ns; includes connections opened before measuring.
    pub connect_ns: SpreadNs,
    /// Time from the write of a request to the first part of its response, ns; `null` unless a response came in parts.
    pub first_byte_ns: Option<SpreadNs>,
    /// HTTP/2 results; `null` for other protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsReport>,
    /// Duration of TLS handshakes, ns; `null` without TLS.
    pub handshake_ns: Option<SpreadNs>,
    /// Resources of the generator; for several machines, of all generators together.
    pub generator: Generator,
    /// Results per generator; empty unless the load came from several machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFinding>,
    /// Intervals by key, such as `rate_per_s`, from batch means or order statistics, for the seconds of this load only.
    pub intervals: BTreeMap<String, IntervalOrNote>,
    /// Requests that were due and had no response, valid or not, when measuring ended.
    pub censored: CensoredReport,
    /// Mean number of requests in flight by Little's law, except failed ones: service time divided by measured time.
    pub in_flight_by_latency: f64,
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

/// Facts of a [`Measurement`] that the report shows as they are.
#[derive(Serialize, JsonSchema)]
#[serde(remote = "Measurement")]
struct MeasuredFacts {
    /// Resolved address: `ip:port`, or `unix:` and a path. For a journey, the first target as named.
    address: String,
    /// Protocol that the generator speaks to the target.
    protocol: Protocol,
    /// Name of the generator's I/O backend.
    backend: String,
    /// Number of connections.
    clients: u32,
    /// Number of threads of the generator.
    threads: u32,
    /// Maximum number of requests in flight per connection.
    pipeline: u32,
    /// Lifetime of a connection.
    connection: Connection,
    /// Number of requests with a valid response within the timeout while measuring.
    requests: u64,
    /// Number of requests with a valid response during the warm-up. Included in `sent`, but not in `requests`.
    warmup_requests: u64,
    /// Number of requests that were sent but had no response when measuring ended.
    unfinished: u64,
    /// Number of requests written during the load: `warmup_requests`, `requests`, `asked_again`, `left_in_flight`, and
    /// errors of warm-up and measurement that concern written requests.
    sent: u64,
    /// Number of requests resent because their connection closed after the response to an earlier request; not errors.
    asked_again: u64,
    /// Number of otherwise uncounted requests in flight when the load ended. The server may have received them.
    left_in_flight: u64,
    /// Number of errors while measuring, by kind of error.
    errors: BTreeMap<String, u64>,
    /// The first error message of each kind of error that has one.
    error_examples: BTreeMap<String, String>,
    /// Number of responses by HTTP status, whether valid, late or counted as errors; empty for other protocols.
    statuses: BTreeMap<u16, u64>,
    /// Offered rate, requests per second; `null` for a closed loop.
    offered_per_s: Option<f64>,
    /// Bytes received while measuring.
    received_bytes: u64,
    /// Number of responses whose whole body was checked.
    #[serde(skip_serializing_if = "study::is_default")]
    checked: u64,
    /// The slowest responses, in descending order of latency; empty for requests without `{{trace}}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slowest: Vec<SlowResponse>,
    /// Number of TLS handshakes that resumed a session.
    resumed: u64,
    /// Number of connections reopened after the server closed them.
    reconnects: u64,
    /// Number of responses after the timeout, which are errors of kind `timeout` but count in the quantiles.
    late_answers: u64,
    /// Number of scheduled requests that were never sent.
    unsent: u64,
    /// Mean number of requests in flight over time, by counting.
    in_flight_mean: f64,
    /// Mean number, over time, of clients in back-off (the generator's pause before it reopens a lost connection).
    in_backoff_mean: f64,
    /// Why the load ended, in words.
    stop_reason: String,
    /// Closing line of Volley, computed by its own rule; `null` unless the load stops by that rule.
    volley: Option<Volley>,
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
    let by_latency = a_second((measurement.service.sum + verdict::caused(measurement).0) / 1e9);
    LoadReport {
        version: LOAD_VERSION,
        target: target.to_owned(),
        measurement: measurement.clone(),
        duration_s,
        rate_per_s: measurement.rate_per_s(),
        transfer_bytes_per_s: a_second(measurement.received_bytes as f64),
        connect_ns: spread(&measurement.connect),
        first_byte_ns: measurement.first_byte.as_ref().map(spread),
        streams: measurement.streams.as_deref().map(streams),
        handshake_ns: measurement.handshake.as_ref().map(spread),
        latency_ns: latency_ns(measurement, latency.as_ref()),
        generator: Generator { cpu_s, process_cpu_s, busy, limited_by, path_unknown, reasons },
        agents,
        intervals: intervals(measurement, latency.as_ref()),
        censored: censored(measurement),
        in_flight_by_latency: if by_latency.is_finite() { by_latency } else { 0.0 },
        hit_ratio: measurement.cache.as_ref().and_then(|cache| cache.counts.hit_ratio()),
        cache: measurement.cache.as_deref().map(cache),
        journeys: measurement.journeys.iter().map(journey).collect(),
        by_request: operations(&measurement.by_request),
        stages: stages(measurement),
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

/// Durations of one kind of event, ns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpreadNs {
    /// Number of durations that the statistics cover.
    pub count: u64,
    /// Mean duration; `null` if there are no durations.
    pub mean: Option<f64>,
    /// Median duration; `null` if there are too few durations.
    pub p50: Option<f64>,
    /// 99th percentile of the durations; `null` for fewer than 100 durations.
    pub p99: Option<f64>,
    /// Longest duration, exact; `null` if there are no durations.
    pub max: Option<u64>,
}

/// Returns a quantile; `None` if there are so few values that it would be the maximum.
pub(crate) fn known_quantile(histogram: &stats::Histogram, q: f64) -> Option<f64> {
    histogram.quantile(q).filter(|_| (1.0 - q) * histogram.len() as f64 >= 1.0 - 1e-9)
}

pub(crate) fn spread(stored: &Histogram) -> SpreadNs {
    let read = merge_histograms::from_record(stored);
    let quantile = |q: f64| known_quantile(read.as_ref()?, q);
    let mean = stored.mean().filter(|mean| mean.is_finite());
    SpreadNs { count: stored.count, mean, p50: quantile(0.5), p99: quantile(0.99), max: stored.max }
}

/// Use of HTTP/2 streams in one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamsReport {
    /// Smallest number of requests in flight that the server allowed per connection; `null` without a limit.
    pub allowed: Option<u32>,
    /// Number of connections that the server ended with GOAWAY.
    pub goaways: u64,
    /// Number of requests that the server refused to process and that were resent.
    pub refused: u64,
    /// Mean number of bytes of encoded heads and trailers per response; `null` without responses.
    pub header_bytes_mean: Option<f64>,
    /// Mean number of bytes of other responses between a request and its first response byte; `null` without responses.
    pub bytes_ahead_mean: Option<f64>,
    /// Number of requests whose body waited for flow-control credit from the server.
    pub stalled_uploads: u64,
    /// Mean number of gRPC messages per response; `null` without messages.
    pub messages_per_response: Option<f64>,
    /// Time between consecutive messages of one gRPC response, ns; `null` if no response had two.
    pub message_gap_ns: Option<SpreadNs>,
    /// Time from when a request was due until a connection had room for it, ns, in an open loop. Covers the requests
    /// limited by the load's own stream limit; `null` if there are none.
    pub wait_own_ns: Option<SpreadNs>,
    /// Like `wait_own_ns`, for requests limited by the server's stream limit; `null` if there are none.
    pub wait_server_ns: Option<SpreadNs>,
    /// Like `wait_own_ns`, for requests that waited for a connection or were resent; `null` if there are none.
    pub wait_connection_ns: Option<SpreadNs>,
}

pub(crate) fn streams(measured: &StreamsMeasurement) -> StreamsReport {
    let per_response = |sum: u64| (measured.responses > 0).then(|| sum as f64 / measured.responses as f64);
    StreamsReport {
        allowed: measured.allowed,
        goaways: measured.goaways,
        refused: measured.refused,
        header_bytes_mean: per_response(measured.header_bytes),
        bytes_ahead_mean: per_response(measured.bytes_ahead),
        stalled_uploads: measured.stalled_uploads,
        messages_per_response: per_response(measured.messages).filter(|mean| *mean > 0.0),
        message_gap_ns: measured.message_gap.as_ref().map(spread),
        wait_own_ns: measured.wait_own.as_ref().map(spread),
        wait_server_ns: measured.wait_server.as_ref().map(spread),
        wait_connection_ns: measured.wait_connection.as_ref().map(spread),
    }
}

/// Results of one journey in one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JourneyReport {
    /// Name of the journey.
    pub name: String,
    /// Number of journeys completed while measuring.
    pub completed: u64,
    /// Number of journeys that ended early because of an error.
    pub abandoned: u64,
    /// Duration of a completed journey from when it was due, ns; `null` if none was completed.
    pub session_ns: Option<SpreadNs>,
    /// Results of the operations, in the order of the journey.
    pub operations: Vec<OperationReport>,
}

/// Results of one operation of a journey, or of one kind of request of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationReport {
    /// Name of the operation, or method and target of the request.
    pub name: String,
    /// Number of calls with a valid response.
    pub requests: u64,
    /// Number of calls with an error instead of a valid response.
    pub errors: u64,
    /// Latency of the calls, ns.
    pub latency_ns: SpreadNs,
    /// Time from the write of a request to the first part of its response, ns; `null` unless a response came in parts.
    pub first_byte_ns: Option<SpreadNs>,
}

pub(crate) fn journey(journey: &JourneyMeasurement) -> JourneyReport {
    let (name, operations) = (journey.name.clone(), operations(&journey.operations));
    let session_ns = journey.session.as_ref().map(spread);
    let &JourneyMeasurement { completed, abandoned, .. } = journey;
    JourneyReport { name, completed, abandoned, session_ns, operations }
}

pub(crate) fn operations(measured: &[OperationMeasurement]) -> Vec<OperationReport> {
    let report = |operation: &OperationMeasurement| OperationReport {
        name: operation.name.clone(),
        requests: operation.requests,
        errors: operation.errors,
        latency_ns: spread(&operation.service),
        first_byte_ns: operation.first_byte.as_ref().map(spread),
    };
    measured.iter().map(report).collect()
}

/// Results of one stage of a changing load. Responses and errors count in the stage in which they end, so a queue from
/// one stage counts in the next. There are no intervals, because the stages of a load are not repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageReport {
    /// Value at the start of the stage: offered requests per second, or clients in a closed loop.
    pub from: f64,
    /// Value at the end of the stage, in the unit of `from`.
    pub to: f64,
    /// Length of the stage, s; shorter than planned if the load was cut off.
    pub duration_s: f64,
    /// Number of valid responses in the stage.
    pub requests: u64,
    /// Number of errors of all kinds in the stage.
    pub errors: u64,
    /// Valid responses per second in the stage.
    pub rate_per_s: f64,
    /// Median latency, ns; `null` without responses.
    pub p50_ns: Option<f64>,
    /// 95th percentile of the latency, ns; `null` for too few responses.
    pub p95_ns: Option<f64>,
    /// 99th percentile of the latency, ns; `null` for too few responses.
    pub p99_ns: Option<f64>,
    /// Results of shorter parts of the stage, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<StageReport>,
}

const PARTS_MAX: usize = 20;

pub(crate) fn stages(measurement: &Measurement) -> Vec<StageReport> {
    let report = |(stage, windows): (Stage, &[Window])| {
        let over_time = stage_parts(stage, windows, PARTS_MAX).map(|(stage, windows)| part(windows, stage)).collect();
        StageReport { over_time, ..part(windows, stage) }
    };
    stage_windows(measurement).into_iter().map(report).collect()
}

/// Stages that had begun when the load ended, with their windows.
pub(crate) fn stage_windows(measurement: &Measurement) -> Vec<(Stage, &[Window])> {
    let mut rest = measurement.windows.as_slice();
    let window_ns = measurement.window_ns.max(1);
    let own = |stage: &Stage| {
        let count = usize::try_from(stage.duration_ns / window_ns).unwrap_or(usize::MAX).min(rest.len());
        let (own, later) = rest.split_at(count);
        rest = later;
        // The last stage of a load that ended early is shorter than planned.
        let planned = (stage.duration_ns / window_ns).max(1) as f64;
        (!own.is_empty()).then(|| (stage.between(0.0, count as f64 / planned), own))
    };
    measurement.shape.iter().map_while(own).collect()
}

pub(crate) fn stage_parts(stage: Stage, windows: &[Window], most: usize) -> impl Iterator<Item = (Stage, &[Window])> {
    let length = windows.len().div_ceil(most).max(1);
    let count = windows.len() as f64;
    windows.chunks(length).enumerate().map(move |(at, part)| {
        let from = (at * length) as f64;
        (stage.between(from / count, (from + part.len() as f64) / count), part)
    })
}

fn part(windows: &[Window], stage: Stage) -> StageReport {
    let latency = merge_histograms::merge(windows.iter().map(|window| &window.latency)).unwrap_or_default();
    let requests = total(windows.iter().map(|window| window.requests));
    let duration_s = stage.duration_ns as f64 / 1e9;
    let errors = total(windows.iter().map(|window| window.errors));
    let rate_per_s = requests as f64 / duration_s;
    let [p50_ns, p95_ns, p99_ns] = [0.5, 0.95, 0.99].map(|q| known_quantile(&latency, q));
    let (Stage { from, to, .. }, over_time) = (stage, Vec::new());
    StageReport { from, to, duration_s, requests, errors, rate_per_s, p50_ns, p95_ns, p99_ns, over_time }
}

/// Cache results of one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheReport {
    /// Bytes of hits per requested byte; `null` if no bytes were requested.
    pub byte_hit_ratio: Option<f64>,
    /// Counts of operations while measuring.
    pub counts: CacheCounts,
    /// Misses by cause as shares of GETs; `null` without GETs.
    pub miss_shares: Option<MissShares>,
    /// Counts of operations during the warm-up.
    pub warmup: CacheCounts,
    /// Number of distinct keys requested since the start of the load.
    pub footprint_keys: u64,
    /// Bytes of the distinct keys and their values.
    pub footprint_bytes: u64,
    /// Memory limit that the server reported, bytes by its own accounting; `null` if unknown.
    pub limit_bytes: Option<u64>,
    /// Footprint divided by memory limit; above 1, the cache cannot hold all items. `null` if the limit is unknown.
    pub footprint_over_limit: Option<f64>,
    /// Hit ratio that the mix of operations implies for a cache of any size; `null` if the mix does not imply one.
    pub hit_ratio_of_mix: Option<f64>,
    /// Seconds until the hit ratio was steady, or why it was not, in words; `null` for other warm-up rules.
    pub steadiness: Option<String>,
    /// The trace that was replayed; `null` if the workload was sampled.
    pub trace: Option<TraceReplay>,
    /// Length of a window of `transient`, s.
    pub transient_window_s: f64,
    /// Hit ratio in each window of the warm-up; `null` in a window without GETs.
    pub transient: Vec<Option<f64>>,
    /// Service times per operation, ns: `get_hit`, `get_miss`, `set`, `delete`, `fill` and `rewrite`, if any occurred.
    pub operations: BTreeMap<String, SpreadNs>,
}

/// Misses by cause, as fractions of GETs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissShares {
    /// Misses because the key was never stored.
    pub compulsory: f64,
    /// Misses because the cache had evicted the key.
    pub capacity: f64,
    /// Misses because the key had been deleted.
    pub invalidation: f64,
    /// Misses because the key had expired.
    pub expiry: f64,
    /// Misses because the cache had refused to store the value.
    pub refused: f64,
}

pub(crate) fn cache(cache: &CacheMeasurement) -> CacheReport {
    let counts = cache.counts;
    let gets = counts.hits.saturating_add(counts.misses) as f64;
    let shares = counts.causes.named().map(|(_, count)| count as f64 / gets);
    let [compulsory, capacity, invalidation, expiry, refused] = shares;
    let miss_shares = MissShares { compulsory, capacity, invalidation, expiry, refused };
    let limit = cache.limit_bytes.filter(|limit| *limit > 0);
    let CacheMeasurement { get_hit, get_miss, set, delete, fill, rewrite, .. } = cache;
    let classes = [("get_hit", get_hit), ("get_miss", get_miss), ("set", set), ("delete", delete), ("fill", fill)];
    let classes = classes.into_iter().chain([("rewrite", rewrite)]);
    let operations = classes.filter(|(_, histogram)| histogram.count > 0);
    CacheReport {
        byte_hit_ratio: counts.byte_hit_ratio(),
        counts,
        miss_shares: Some(miss_shares).filter(|_| gets > 0.0),
        warmup: cache.warmup,
        footprint_keys: cache.footprint_keys,
        footprint_bytes: cache.footprint_bytes,
        limit_bytes: cache.limit_bytes,
        footprint_over_limit: limit.map(|limit| cache.footprint_bytes as f64 / limit as f64),
        hit_ratio_of_mix: cache.hit_ratio_of_mix.filter(|ratio| ratio.is_finite()),
        steadiness: cache.steadiness.clone(),
        trace: cache.trace.clone(),
        transient_window_s: cache.transient_window_ns as f64 / 1e9,
        transient: cache.transient.iter().map(|&(hits, gets)| (gets > 0).then(|| hits as f64 / gets as f64)).collect(),
        operations: operations.map(|(name, histogram)| (name.to_owned(), spread(histogram))).collect(),
    }
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

    #[test]
    fn windows_belong_to_the_stage_in_which_they_end() {
        let window = |requests, ns: u64| {
            let mut latency = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
            (0..requests).for_each(|_| latency.record(ns));
            Window { requests, errors: 1, latency: (&latency).into() }
        };
        let stage = |from, to, duration_ns| Stage { from, to, duration_ns };
        let (_, records) = fixtures::volley();
        let mut measurement = records.iter().find_map(|record| record.measurement()).unwrap().clone();
        assert_eq!(stages(&measurement), []);
        measurement.window_ns = 100_000_000;
        measurement.windows = (0..30).map(|at| window(at * 10 + 10, if at < 20 { 1_000 } else { 9_000 })).collect();
        measurement.shape = vec![stage(0.0, 2000.0, 2_000_000_000), stage(3000.0, 3000.0, 2_000_000_000)];
        let found = stages(&measurement);
        let [ramp, step] = &found[..] else { panic!("{found:?}") };
        assert_eq!((ramp.requests, ramp.errors, ramp.duration_s, ramp.rate_per_s), (2100, 20, 2.0, 1050.0));
        assert_eq!((ramp.over_time.len(), ramp.over_time[19].to), (20, 2000.0));
        assert_eq!((ramp.over_time[10].from, ramp.over_time[10].requests), (1000.0, 110));
        assert_eq!((step.requests, step.errors, step.duration_s), (2550, 10, 1.0), "the load was cut off");
        assert!(ramp.p99_ns.unwrap() < 1_100.0 && step.p50_ns.unwrap() > 8_000.0);
        assert_eq!(ramp.over_time.iter().map(|part| part.requests).sum::<u64>(), 2100);
    }
}
