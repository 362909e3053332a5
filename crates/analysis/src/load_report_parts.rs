//! Parts of the report of one load: durations, HTTP/2, operations of a journey or mix, stages of a changing rate, and
//! hits and misses of a cache.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use study::record::{
    CacheCounts, CacheMeasurement, Histogram, JourneyMeasurement, Measurement, OperationMeasurement,
    StreamsMeasurement, TraceReplay, Window,
};
use study::spec::Stage;

use crate::merge_histograms;
use crate::number::total;

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

/// Total service time, ns, and number of fills and rewrites, which are in flight but do not count as requests.
pub(crate) fn caused(measurement: &Measurement) -> (f64, u64) {
    let cache = measurement.cache.as_ref();
    cache.map_or((0.0, 0), |cache| (cache.fill.sum + cache.rewrite.sum, cache.fill.count + cache.rewrite.count))
}

#[cfg(test)]
mod tests {
    use super::*;

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
