//! Computes the value of each metric in [`study::METRICS`] for one trial.

use stats::{Bound, ProductLimit};
use study::Calls;
use study::plan::TrialRule;
use study::record::{CacheMeasurement, Measurement, MissCauses, ProxyUse, Record, StreamsMeasurement, Window};

use crate::censored_latency::{self, Latency};

use crate::findings::{Clock, Estimate, MetricValues, Row, Values};
use crate::merge_histograms;
use crate::number::{ratio, total};

/// Confidence level of the intervals and quantiles of one load.
pub const LOAD_LEVEL: f64 = 0.95;

/// Reader of each metric of [`study::METRICS`], in the same order.
const READERS: [(&str, Reader); 41] = [
    ("throughput", Exact(|t| (t.measurement.duration_ns > 0).then(|| t.measurement.rate_per_s()))),
    ("latency_mean", Bounded(|t| censored_latency::mean_of(t.measurement, || t.latency.as_ref()?.1.mean()))),
    ("latency_p50", Quantile(0.5)),
    ("latency_p90", Quantile(0.9)),
    ("latency_p95", Quantile(0.95)),
    ("latency_p99", Quantile(0.99)),
    ("latency_p999", Quantile(0.999)),
    ("transfer", Exact(|t| t.a_second(t.measurement.received_bytes))),
    ("handshake_mean", Exact(|t| t.measurement.handshake.as_ref()?.mean())),
    ("slot_wait_p99", Exact(|t| t.slot_wait_p99())),
    ("bytes_ahead_mean", Exact(|t| t.a_response(|streams| streams.bytes_ahead))),
    ("header_bytes_per_request", Exact(|t| t.a_response(|streams| streams.header_bytes))),
    ("hit_ratio", Exact(|t| t.cache()?.counts.hit_ratio())),
    ("byte_hit_ratio", Exact(|t| t.cache()?.counts.byte_hit_ratio())),
    ("miss_compulsory", Exact(|t| t.misses(|causes| causes.compulsory))),
    ("miss_capacity", Exact(|t| t.misses(|causes| causes.capacity))),
    ("miss_invalidation", Exact(|t| t.misses(|causes| causes.invalidation))),
    ("miss_expiry", Exact(|t| t.misses(|causes| causes.expiry))),
    ("miss_refused", Exact(|t| t.misses(|causes| causes.refused))),
    ("footprint", Exact(|t| t.cache().map(|cache| cache.footprint_bytes as f64).filter(|bytes| *bytes > 0.0))),
    ("refused_sets", Exact(|t| t.cache().map(|cache| cache.counts.refused_sets as f64))),
    ("fills", Exact(|t| t.a_second(t.cache()?.counts.fills))),
    ("get_latency_p99", Exact(|t| t.hits_p99())),
    ("errors", Exact(|t| Some(t.measurement.errors_total() as f64))),
    ("error_share", Exact(|t| error_share(t.measurement))),
    ("subject_cpu_per_request", Exact(|t| t.subject_cpu())),
    ("generator_cpu_per_request", Exact(|t| t.generator_cpu())),
    ("subject_rss", Exact(|t| t.record.subject.rss_max_bytes.map(|bytes| bytes as f64))),
    ("subject_memory", Exact(|t| t.memory())),
    ("proxy_cpu_per_request", Exact(|t| t.a_request(t.proxies()?.map(|proxy| proxy.used.cpu_ns()).sum()))),
    ("proxy_rss", Exact(|t| t.proxies()?.map(|proxy| Some(proxy.used.rss_max_bytes? as f64)).sum())),
    ("proxy_time_p50", Exact(|t| t.own_time(0.5))),
    ("proxy_time_p99", Exact(|t| t.own_time(0.99))),
    ("client_bytes_per_request", Exact(|t| t.client_bytes())),
    ("subject_bytes_per_request", Exact(|t| Some(t.client_bytes()? * t.byte_ratio()?))),
    ("m1a_bytes_per_request", Exact(|t| mean(t.metadata()?.m1a_bytes.iter().map(|bytes| *bytes as f64)))),
    ("m1b_bytes_per_request", Exact(|t| mean(t.metadata()?.m1b_bytes.iter().map(|bytes| *bytes as f64)))),
    ("m2_bytes_per_request", Exact(|t| mean(t.metadata()?.m2_bytes.iter().map(|bytes| *bytes as f64)))),
    ("m3_bytes_per_request", Exact(|t| mean(t.metadata()?.m3_bytes.iter().map(|bytes| *bytes as f64)))),
    ("entries_per_request", Exact(|t| ratio(*t.metadata()?.entries.last()? as f64, t.metadata()?.len() as f64))),
    ("store_bytes", Exact(|t| t.store())),
];

enum Reader {
    Exact(fn(&Trial) -> Option<f64>),
    /// Value that may be a lower bound because requests were still waiting when the trial ended.
    Bounded(fn(&Trial) -> Option<Bound>),
    Quantile(f64),
}
use Reader::{Bounded, Exact, Quantile};

pub(crate) fn quantile_of(metric: &str) -> Option<f64> {
    let (_, of) = READERS.iter().find(|(name, _)| *name == metric)?;
    if let Quantile(q) = of { Some(*q) } else { None }
}

/// Returns the confidence level of a rule, from 0 to 1; 0.95 if the stored level is out of range.
pub fn level(rule: &TrialRule) -> f64 {
    if rule.level > 0.0 && rule.level < 1.0 { rule.level } else { 0.95 }
}

/// Returns all values of a trial by metric name. Quantiles with too few responses and unmeasured metrics are absent.
pub fn values(record: &Record, level: f64) -> MetricValues {
    values_and_bounds(record, level).0
}

pub(crate) fn values_and_bounds(record: &Record, level: f64) -> Values {
    values_of(record, record.measurement().and_then(Latency::of).as_ref(), level)
}

pub(crate) fn values_of(record: &Record, latency: Option<&Latency>, level: f64) -> Values {
    let (mut values, mut at_least) = Values::default();
    let Some(measurement) = record.measurement() else { return (values, at_least) };
    let told = record.proxies.iter().filter_map(|proxy| proxy.calls.as_deref()).filter(|calls| !calls.is_empty());
    let told = told.collect::<Vec<_>>();
    let latency = latency.map(|latency| (latency, latency.estimate()));
    let calls = told.iter().map(|calls| calls.len()).min().unwrap_or(0);
    let own_ns = |at: usize| told.iter().map(|calls| calls.own_ns[at] as f64).sum();
    let mut own_ns = (0..calls).map(own_ns).collect::<Vec<f64>>();
    own_ns.sort_by(f64::total_cmp);
    let trial = Trial { record, measurement, latency, own_ns, told, level };
    for (name, of) in &READERS {
        let exactly = |value| Bound { value, at_least: false };
        let found = match of {
            Exact(of) => of(&trial).map(exactly),
            Bounded(of) => of(&trial),
            Quantile(q) => trial.latency.as_ref().and_then(|(latency, estimate)| latency.quantile(estimate, *q, level)),
        };
        let Some(Bound { value, at_least: bound }) = found.filter(|bound| bound.value.is_finite()) else { continue };
        values.insert(name, value);
        at_least.extend(bound.then_some(*name));
    }
    values.0.shrink_to_fit();
    (values, at_least)
}

struct Trial<'a> {
    record: &'a Record,
    measurement: &'a Measurement,
    latency: Option<(&'a Latency, ProductLimit<'a>)>,
    told: Vec<&'a Calls>,
    own_ns: Vec<f64>,
    level: f64,
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

impl Trial<'_> {
    fn a_request(&self, all: f64) -> Option<f64> {
        ratio(all, self.measurement.requests as f64)
    }

    fn a_second(&self, all: u64) -> Option<f64> {
        ratio(all as f64, self.measurement.duration_ns as f64 / 1e9)
    }

    fn cache(&self) -> Option<&CacheMeasurement> {
        self.measurement.cache.as_deref()
    }

    fn misses(&self, of: fn(&MissCauses) -> u64) -> Option<f64> {
        let counts = &self.cache()?.counts;
        ratio(of(&counts.causes) as f64, counts.hits.saturating_add(counts.misses) as f64)
    }

    fn slot_wait_p99(&self) -> Option<f64> {
        let streams = self.measurement.streams.as_deref()?;
        let mut all = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
        let parts = [&streams.wait_own, &streams.wait_server, &streams.wait_connection];
        parts.into_iter().flatten().filter_map(merge_histograms::from_record).for_each(|part| all.merge(&part));
        (all.len() >= stats::order_statistics::samples_needed(0.99, self.level)).then(|| all.quantile(0.99))?
    }

    fn a_response(&self, bytes: fn(&StreamsMeasurement) -> u64) -> Option<f64> {
        let streams = self.measurement.streams.as_deref()?;
        ratio(bytes(streams) as f64, streams.responses as f64)
    }

    fn hits_p99(&self) -> Option<f64> {
        let hits = merge_histograms::from_record(&self.cache()?.get_hit)?;
        (hits.len() >= stats::order_statistics::samples_needed(0.99, self.level)).then(|| hits.quantile(0.99))?
    }

    fn subject_cpu(&self) -> Option<f64> {
        let used = &self.record.subject;
        self.a_request(used.cpu_ns()).filter(|_| used.measured_ns > 0)
    }

    fn generator_cpu(&self) -> Option<f64> {
        let workers = &self.measurement.workers;
        let ns = total(workers.iter().map(|worker| worker.cpu_ns));
        self.a_request(ns as f64).filter(|_| !workers.is_empty())
    }

    fn memory(&self) -> Option<f64> {
        // The first sample is taken when the port accepts, before the load starts.
        let before = self.record.subject.samples.first()?.rss_bytes;
        Some(self.record.subject.rss_max_bytes?.saturating_sub(before) as f64)
    }

    fn proxies(&self) -> Option<std::slice::Iter<'_, ProxyUse>> {
        Some(self.record.proxies.iter()).filter(|proxies| proxies.len() > 0)
    }

    fn own_time(&self, q: f64) -> Option<f64> {
        let enough = self.own_ns.len() as u64 >= stats::order_statistics::samples_needed(q, self.level);
        stats::order_statistics::quantile(&self.own_ns, q).filter(|_| enough)
    }

    /// Payload bytes per request at the generator; `None` unless the study varies the proxies.
    fn client_bytes(&self) -> Option<f64> {
        let studied = self.record.factors.contains_key(study::process_plan::THROUGH);
        let bytes = self.measurement.sent_bytes.saturating_add(self.measurement.received_bytes) as f64;
        self.a_request(bytes).filter(|_| studied && bytes > 0.0)
    }

    /// Ratio of forwarded to received bytes, multiplied over the proxies; 1 without any, `None` if one has no counts.
    fn byte_ratio(&self) -> Option<f64> {
        let shares = self.record.proxies.iter().map(|proxy| {
            let wire = proxy.wire.filter(|wire| wire.front_bytes > 0)?;
            Some(wire.back_bytes as f64 / wire.front_bytes as f64)
        });
        shares.product()
    }

    /// Calls of the proxy next to the generator. The other proxies would count the same metadata again.
    fn metadata(&self) -> Option<&Calls> {
        self.told.first().copied()
    }

    fn store(&self) -> Option<f64> {
        let at_end = |calls: &&Calls| calls.memory.last().and_then(|look| look.store_size_bytes());
        let stores = self.told.iter().filter_map(|calls| at_end(calls).or(calls.store_bytes.last().copied()));
        stores.map(|bytes| bytes as f64).reduce(|sum, bytes| sum + bytes)
    }
}

/// Fraction of completed requests that failed or stayed unsent past the timeout; `None` without requests.
pub fn error_share(measurement: &Measurement) -> Option<f64> {
    let overdue = measurement.censored.as_deref().map_or(0, |censored| censored.unsent_overdue);
    let failed = measurement.errors_total().saturating_add(overdue);
    ratio(failed as f64, measurement.requests.saturating_add(failed) as f64)
}

/// Returns the event at which a measurement's latencies start.
pub fn clock(measurement: &Measurement) -> Clock {
    if measurement.response.is_some() { Clock::Response } else { Clock::Service }
}

pub(crate) fn whole_windows(measurement: &Measurement) -> &[Window] {
    let whole = measurement.duration_ns.checked_div(measurement.window_ns).unwrap_or(0);
    let windows = measurement.windows.as_slice();
    &windows[..windows.len().min(usize::try_from(whole).unwrap_or(usize::MAX))]
}

/// Returns all windows with their lengths, s; the last may be shorter. `None` if lengths are unknown (volley's rounds).
pub(crate) fn timed_windows(measurement: &Measurement) -> Option<Vec<(&Window, f64)>> {
    let window_ns = measurement.window_ns;
    let rest = u64::try_from(measurement.windows.len()).ok()?.checked_sub(1)?.checked_mul(window_ns)?;
    let last_ns = measurement.duration_ns.checked_sub(rest).filter(|ns| (1..=window_ns).contains(ns))?;
    let last = measurement.windows.len() - 1;
    let length_s = |index| if index == last { last_ns as f64 / 1e9 } else { window_ns as f64 / 1e9 };
    Some(measurement.windows.iter().enumerate().map(|(index, window)| (window, length_s(index))).collect())
}

/// Values of a metric in the complete windows; `None` if the values differ by design because the rate changes.
pub(crate) fn window_values(metric: &str, measurement: &Measurement) -> Option<Vec<f64>> {
    let windows = whole_windows(measurement).iter();
    let window_s = measurement.window_ns as f64 / 1e9;
    match metric {
        _ if !measurement.shape.is_empty() => None,
        "throughput" => Some(windows.map(|window| window.requests as f64 / window_s).collect()),
        "latency_mean" => windows.map(|window| window.latency.mean()).collect(),
        _ => None,
    }
}

/// Returns the mean latency per window, ns, or the throughput if a window is empty, to detect a steady state.
pub fn series(measurement: &Measurement) -> Vec<f64> {
    window_values("latency_mean", measurement).or_else(|| window_values("throughput", measurement)).unwrap_or_default()
}

/// Converts a metric's interval to a different confidence level by Student's t; `None` without an estimate.
pub fn estimate_at(row: &Row, metric: &str, level: f64) -> Option<Estimate> {
    let known = row.estimate(metric)?;
    if (known.level - level).abs() < 1e-9 || !(0.5..1.0).contains(&level) || known.n < 2 {
        return Some(*known);
    }
    let t = |level: f64| stats::interval::t_two_sided(level, (known.n - 1) as f64);
    let half_width = known.half_width() * t(level) / t(known.level);
    Some(Estimate { low: known.point - half_width, high: known.point + half_width, level, ..*known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use study::buckets_as_text::Buckets;
    use study::record::Outcome;

    fn measured() -> Record {
        example::volley().1.into_iter().find(|record| record.measurement().is_some()).unwrap()
    }

    fn edited(edit: impl FnOnce(&mut Measurement)) -> Record {
        let mut record = measured();
        let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        edit(measurement);
        record
    }

    #[test]
    fn every_metric_is_read() {
        assert_eq!(
            READERS.map(|(name, _)| name).to_vec(),
            study::METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn full_trial_has_every_metric() {
        let values = values(&measured(), 0.95);
        let names = study::METRICS.iter().map(|metric| metric.name).filter(|name| values.get(name).is_none());
        let of_caches = [
            "hit_ratio",
            "byte_hit_ratio",
            "miss_compulsory",
            "miss_capacity",
            "miss_invalidation",
            "miss_expiry",
            "miss_refused",
            "footprint",
            "refused_sets",
            "fills",
            "get_latency_p99",
        ];
        let of_proxies = study::METRICS.iter().map(|metric| metric.name).skip_while(|name| !name.starts_with("proxy_"));
        let missing = ["handshake_mean", "slot_wait_p99", "bytes_ahead_mean", "header_bytes_per_request"];
        let missing = missing.into_iter().chain(of_caches).chain(of_proxies).collect::<Vec<_>>();
        assert_eq!(names.collect::<Vec<_>>(), missing, "without TLS and HTTP/2, no cache, and nothing in between");
    }

    #[test]
    fn cache_trial_has_ratios() {
        use study::record::{CacheCounts, CacheMeasurement, MissCauses};
        let causes = MissCauses { compulsory: 4, capacity: 6, invalidation: 3, expiry: 2, refused: 5 };
        let mut latency = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
        (0..10_000).for_each(|ns| latency.record(ns));
        let counts = CacheCounts {
            hits: 80,
            misses: 20,
            hit_bytes: 30,
            requested_bytes: 120,
            causes,
            fills: 20,
            refused_sets: 7,
            ..CacheCounts::default()
        };
        let record = edited(|measurement| {
            let get_hit = study::record::Histogram::from(&latency);
            measurement.cache = Some(Box::new(CacheMeasurement { counts, get_hit, ..CacheMeasurement::default() }));
        });
        let values = values(&record, 0.95);
        let shares = ["hit_ratio", "byte_hit_ratio", "miss_compulsory", "miss_capacity", "miss_expiry", "refused_sets"];
        assert_eq!(shares.map(|name| values.get(name).unwrap()), [0.8, 0.25, 0.04, 0.06, 0.02, 7.0]);
        assert!(
            (values.get("get_latency_p99").unwrap() / 9_900.0 - 1.0).abs() < 0.02,
            "{}",
            values.get("get_latency_p99").unwrap()
        );
        let empty = edited(|measurement| measurement.cache = Some(Box::default()));
        assert!(super::values(&empty, 0.95).get("hit_ratio").is_none());
    }

    #[test]
    fn values_match_the_measurement() {
        let record = measured();
        let (values, measurement) = (values(&record, 0.95), record.measurement().unwrap());
        assert_eq!(values.get("throughput").unwrap(), measurement.requests as f64 / 0.25);
        assert_eq!(values.get("latency_mean").unwrap(), measurement.service.sum / measurement.requests as f64);
        let cpu_ns = (record.subject.user_ns + record.subject.system_ns) as f64;
        assert_eq!(values.get("subject_cpu_per_request").unwrap(), cpu_ns / measurement.requests as f64);
        // CPU readings that cover 90 % of the measured time are scaled up to the whole.
        let mut late = record.clone();
        late.subject.measured_share = Some(0.9);
        assert_eq!(
            super::values(&late, 0.95).get("subject_cpu_per_request").unwrap(),
            cpu_ns / 0.9 / measurement.requests as f64
        );
        assert!(
            values.get("latency_p50").unwrap() < values.get("latency_p99").unwrap()
                && values.get("latency_p99").unwrap() < values.get("latency_p999").unwrap()
        );
    }

    #[test]
    fn bytes_and_handshakes() {
        let record = edited(|measurement| {
            measurement.received_bytes = 1_000_000;
            let mut handshake = stats::Histogram::new();
            [1_000_000, 3_000_000].into_iter().for_each(|ns| handshake.record(ns));
            measurement.handshake = Some(study::record::Histogram::from(&handshake));
        });
        let values = values(&record, 0.95);
        assert_eq!(
            (values.get("transfer").unwrap(), values.get("handshake_mean").unwrap()),
            (4_000_000.0, 2_000_000.0)
        );
        let none = edited(|measurement| measurement.handshake = Some(study::record::Histogram::default()));
        assert!(self::values(&none, 0.95).get("handshake_mean").is_none());
    }

    #[test]
    fn memory_excludes_usage_before_the_load() {
        let mut record = measured();
        record.subject.rss_max_bytes = Some(10_000);
        let samples = [4_000, 9_000].map(|rss_bytes| study::record::Sample { rss_bytes, ..Default::default() });
        record.subject.samples = samples.to_vec();
        assert_eq!(
            (values(&record, 0.95).get("subject_rss").unwrap(), values(&record, 0.95).get("subject_memory").unwrap()),
            (10_000.0, 6_000.0)
        );
        record.subject.samples.clear();
        assert!(values(&record, 0.95).get("subject_memory").is_none(), "the value before is unknown");
    }

    #[test]
    fn too_few_responses_give_no_quantile() {
        let few = edited(|measurement| {
            let mut latency = stats::Histogram::new();
            (1..=100).for_each(|i| latency.record(i * 1_000));
            measurement.service = study::record::Histogram::from(&latency);
            measurement.requests = 100;
        });
        let values = values(&few, 0.95);
        assert!(values.get("latency_p95").is_some(), "72 are enough for p95");
        assert!(values.get("latency_p99").is_none(), "368 are needed for p99");
    }

    #[test]
    fn unknown_values_are_missing_not_zero() {
        let mut empty = edited(|measurement| {
            measurement.service = study::record::Histogram::default();
            measurement.requests = 0;
        });
        empty.subject.rss_max_bytes = None;
        empty.subject.samples.clear();
        let values = values(&empty, 0.95);
        let names = study::METRICS.iter().map(|metric| metric.name).filter(|name| values.get(name).is_some());
        assert_eq!(names.collect::<Vec<_>>(), ["throughput", "transfer", "errors"]);
        assert_eq!(values.get("throughput").unwrap(), 0.0);
    }

    #[test]
    fn invalid_histogram_has_no_quantiles() {
        let broken = edited(|measurement| measurement.service.buckets = Buckets::new(&[(u32::MAX, 3)]));
        assert!(values(&broken, 0.95).get("latency_p50").is_none());
    }

    #[test]
    fn incomplete_last_window_is_excluded() {
        let record = edited(|measurement| measurement.duration_ns -= 1);
        assert_eq!(whole_windows(record.measurement().unwrap()).len(), 49);
        let record = edited(|measurement| measurement.window_ns = 0);
        assert!(whole_windows(record.measurement().unwrap()).is_empty());
        assert_eq!(timed_windows(record.measurement().unwrap()), None);
    }

    #[test]
    fn windows_cover_the_measurement() {
        for shorter_ns in [0, 1, 4_999_999] {
            let record = edited(|measurement| measurement.duration_ns -= shorter_ns);
            let measurement = record.measurement().unwrap();
            let windows = timed_windows(measurement).unwrap();
            let seconds = windows.iter().map(|(_, seconds)| seconds).sum::<f64>();
            assert!((seconds - measurement.duration_ns as f64 / 1e9).abs() < 1e-9);
            assert_eq!(windows.iter().map(|(window, _)| window.requests).sum::<u64>(), measurement.requests);
        }
        let pauses = edited(|measurement| measurement.duration_ns /= 2);
        assert_eq!(timed_windows(pauses.measurement().unwrap()), None);
    }
}
