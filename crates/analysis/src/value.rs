//! The value that one trial has for each metric of [`study::METRICS`].

use std::collections::{BTreeMap, BTreeSet};

use stats::Bound;
use study::plan::TrialRule;
use study::record::{Measurement, Record, Window};

use crate::findings::{Clock, Estimate, Row};
use crate::histogram;
use crate::latency::{self, Latency};
use crate::number::total;

/// Quantiles among the metrics.
const QUANTILES: [(&str, f64); 5] =
    [("latency_p50", 0.5), ("latency_p90", 0.9), ("latency_p95", 0.95), ("latency_p99", 0.99), ("latency_p999", 0.999)];

/// The quantile behind a metric's name.
pub(crate) fn quantile_of(metric: &str) -> Option<f64> {
    QUANTILES.iter().find(|(name, _)| *name == metric).map(|(_, q)| *q)
}

/// Level of confidence of a rule; 95 % where a store holds one that cannot be.
pub fn level(rule: &TrialRule) -> f64 {
    if rule.level > 0.0 && rule.level < 1.0 { rule.level } else { 0.95 }
}

/// All values of a trial, by name of the metric. A quantile that its answers are too few for is missing, and so is
/// whatever was not measured: nothing is filled in.
pub fn values(record: &Record, level: f64) -> BTreeMap<String, f64> {
    values_and_bounds(record, level).0
}

/// The same, and the names of those that are only the least that they can be: requests still waited when the trial ended.
pub(crate) fn values_and_bounds(record: &Record, level: f64) -> (BTreeMap<String, f64>, BTreeSet<String>) {
    let (mut values, mut at_least) = (BTreeMap::new(), BTreeSet::new());
    let Some(measurement) = record.measurement() else { return (values, at_least) };
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            values.insert(name.to_owned(), value);
        }
    };
    let mut bound = |name: &str, bound: Option<Bound>| {
        if bound.is_some_and(|bound| bound.at_least) {
            at_least.insert(name.to_owned());
        }
        bound.map(|bound| bound.value)
    };
    let requests = measurement.requests as f64;
    let a_request = |ns: f64| (requests > 0.0).then(|| ns / requests);
    put("throughput", (measurement.duration_ns > 0).then(|| measurement.rate_per_s()));
    put("errors", Some(errors_total(measurement) as f64));
    put("error_share", error_share(measurement));
    put("latency_mean", bound("latency_mean", latency::mean(measurement)));
    if let Some(latency) = Latency::of(measurement) {
        let found = latency.estimate();
        for (name, q) in QUANTILES {
            let needed = stats::order::samples_needed(q, level);
            put(name, bound(name, found.quantile(q).filter(|value| latency.is_enough(value, needed))));
        }
    }
    let subject = &record.subject;
    put("subject_cpu_per_request", a_request(subject.cpu_ns()).filter(|_| subject.measured_ns > 0));
    let generator_cpu_ns = total(measurement.workers.iter().map(|worker| worker.cpu_ns));
    put("generator_cpu_per_request", a_request(generator_cpu_ns as f64).filter(|_| !measurement.workers.is_empty()));
    let seconds = measurement.duration_ns as f64 / 1e9;
    put("transfer", (seconds > 0.0).then(|| measurement.received_bytes as f64 / seconds));
    let handshake = measurement.handshake.as_ref().filter(|all| all.count > 0);
    put("handshake_mean", handshake.map(|all| all.sum / all.count as f64));
    if let Some(cache) = &measurement.cache {
        let counts = &cache.counts;
        let gets = counts.hits.saturating_add(counts.misses) as f64;
        put("hit_ratio", counts.hit_ratio());
        put("byte_hit_ratio", counts.byte_hit_ratio());
        for (cause, count) in counts.causes.named() {
            put(&format!("miss_{cause}"), (gets > 0.0).then(|| count as f64 / gets));
        }
        put("footprint", (cache.footprint_bytes > 0).then_some(cache.footprint_bytes as f64));
        put("refused_sets", Some(counts.refused_sets as f64));
        put("fills", (seconds > 0.0).then(|| counts.fills as f64 / seconds));
        let hits =
            histogram::read(&cache.get_hit).filter(|hits| hits.len() >= stats::order::samples_needed(0.99, level));
        put("get_latency_p99", hits.and_then(|hits| hits.quantile(0.99)));
    }
    put("subject_rss", subject.rss_max_bytes.map(|bytes| bytes as f64));
    let middle_cpu_ns = record.middles.iter().map(|middle| middle.used.cpu_ns()).sum();
    put("middle_cpu_per_request", a_request(middle_cpu_ns).filter(|_| !record.middles.is_empty()));
    let resident = record.middles.iter().map(|middle| middle.used.rss_max_bytes).sum::<Option<u64>>();
    put("middle_rss", resident.filter(|_| !record.middles.is_empty()).map(|bytes| bytes as f64));
    for (name, value) in of_calls(record, level).into_iter().chain(bytes(record, measurement)) {
        put(name, value);
    }
    // The first sample is taken when the port answers and the generator is just being started.
    let before = subject.samples.first().map(|sample| sample.rss_bytes);
    put("subject_memory", subject.rss_max_bytes.zip(before).map(|(peak, before)| peak.saturating_sub(before) as f64));
    (values, at_least)
}

/// What middles tell of their calls.
fn of_calls(record: &Record, level: f64) -> Vec<(&'static str, Option<f64>)> {
    let mut values = Vec::new();
    let told = record.middles.iter().filter_map(|middle| middle.calls.as_deref()).filter(|calls| !calls.is_empty());
    let told = told.collect::<Vec<_>>();
    let Some(first) = told.first() else { return values };
    // A call that passes several is the sum of what each took of it; they see calls in one order where one client asks.
    let calls = told.iter().map(|calls| calls.len()).min().unwrap_or(0);
    let mut own = (0..calls).map(|at| told.iter().map(|calls| calls.own_ns[at] as f64).sum()).collect::<Vec<f64>>();
    own.sort_by(f64::total_cmp);
    for (name, q) in [("middle_time_p50", 0.5), ("middle_time_p99", 0.99)] {
        let enough = own.len() as u64 >= stats::order::samples_needed(q, level);
        values.push((name, stats::order::quantile(&own, q).filter(|_| enough)));
    }
    // Metadata is counted once, at the middle next to the generator.
    let mean = |column: &[u64]| {
        (!column.is_empty()).then(|| column.iter().map(|value| *value as f64).sum::<f64>() / column.len() as f64)
    };
    values.push(("m1a_bytes_per_request", mean(&first.m1a_bytes)));
    values.push(("m1b_bytes_per_request", mean(&first.m1b_bytes)));
    values.push(("m2_bytes_per_request", mean(&first.m2_bytes)));
    let extra = &first.m3_bytes;
    let extra = (!extra.is_empty()).then(|| extra.iter().map(|bytes| *bytes as f64).sum::<f64>() / extra.len() as f64);
    values.push(("m3_bytes_per_request", extra));
    values.push(("entries_per_request", first.entries.last().map(|entries| *entries as f64 / first.len() as f64)));
    let at_end = |calls: &study::Calls| calls.memory.last().and_then(|look| look.store_bytes);
    let stores = told.iter().filter_map(|calls| at_end(calls).or(calls.store_bytes.last().copied()));
    let stores = stores.map(|bytes| bytes as f64);
    values.push(("store_bytes", stores.reduce(|sum, bytes| sum + bytes)));
    values
}

/// Payload a request at both ends. The generator counts to the byte; at the subject it is the same without middles, and with them what
/// they passed on for what they were sent.
fn bytes(record: &Record, measurement: &Measurement) -> [(&'static str, Option<f64>); 2] {
    let sent = measurement.sent_bytes.saturating_add(measurement.received_bytes) as f64;
    let client = (measurement.requests > 0 && sent > 0.0).then(|| sent / measurement.requests as f64);
    let passed_on = record.middles.iter().map(|middle| {
        middle.wire.filter(|wire| wire.front_bytes > 0).map(|wire| wire.back_bytes as f64 / wire.front_bytes as f64)
    });
    let passed_on = passed_on.product::<Option<f64>>();
    // Of interest where something may stand in between alone.
    let studied = record.factors.contains_key(study::middle::THROUGH);
    let (client, subject) = (client.filter(|_| studied), client.zip(passed_on).filter(|_| studied));
    [("client_bytes_per_request", client), ("subject_bytes_per_request", subject.map(|(bytes, share)| bytes * share))]
}

/// The value of the metric named so in one trial, in the metric's unit; `None` where the trial has none.
pub fn metric_value(record: &Record, metric: &str, level: f64) -> Option<f64> {
    values(record, level).remove(metric)
}

/// Requests gone wrong, of all kinds.
pub fn errors_total(measurement: &Measurement) -> u64 {
    total(measurement.errors.values().copied())
}

/// The share of requests that failed their user: those that went wrong, timeouts among them, and those that were never sent and had waited
/// longer than the timeout; of all that had an end. A late answer is one request, though it is counted as a timeout and as an answer.
pub fn error_share(measurement: &Measurement) -> Option<f64> {
    let overdue = measurement.censored.as_deref().map_or(0, |censored| censored.unsent_overdue);
    let failed = errors_total(measurement).saturating_add(overdue);
    let answered = measurement.requests.saturating_sub(measurement.late_answers);
    let all = answered.saturating_add(failed);
    (all > 0).then(|| failed as f64 / all as f64)
}

/// Where the latencies of a measurement start.
pub fn clock(measurement: &Measurement) -> Clock {
    if measurement.response.is_some() { Clock::Response } else { Clock::Service }
}

/// Whole windows: the last one may have been cut short.
pub(crate) fn whole_windows(measurement: &Measurement) -> &[Window] {
    let whole = measurement.duration_ns.checked_div(measurement.window_ns).unwrap_or(0);
    let windows = measurement.windows.as_slice();
    &windows[..windows.len().min(usize::try_from(whole).unwrap_or(usize::MAX))]
}

/// A metric by window; `None` for one that windows do not have, or where a window lacks it.
pub(crate) fn window_values(metric: &str, measurement: &Measurement) -> Option<Vec<f64>> {
    let windows = whole_windows(measurement).iter();
    let window_s = measurement.window_ns as f64 / 1e9;
    match metric {
        "throughput" => Some(windows.map(|window| window.requests as f64 / window_s).collect()),
        "latency_mean" => windows
            .map(|Window { latency, .. }| (latency.count > 0).then(|| latency.sum / latency.count as f64))
            .collect(),
        _ => None,
    }
}

/// The series that steadiness is read from: mean latency by window, or throughput where a window had no answer.
pub fn series(measurement: &Measurement) -> Vec<f64> {
    window_values("latency_mean", measurement).or_else(|| window_values("throughput", measurement)).unwrap_or_default()
}

/// The interval of a metric at the level that the figure asks for: widths at two levels are to each other as Student's t is.
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
    fn a_full_trial_has_every_metric() {
        let values = values(&measured(), 0.95);
        let names = study::METRICS.iter().map(|metric| metric.name).filter(|name| !values.contains_key(*name));
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
        let of_middles =
            study::METRICS.iter().map(|metric| metric.name).skip_while(|name| !name.starts_with("middle_"));
        let missing = ["handshake_mean"].into_iter().chain(of_caches).chain(of_middles).collect::<Vec<_>>();
        assert_eq!(names.collect::<Vec<_>>(), missing, "without TLS, no cache, and nothing in between");
    }

    #[test]
    fn a_cache_has_its_ratios() {
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
        assert_eq!(shares.map(|name| values[name]), [0.8, 0.25, 0.04, 0.06, 0.02, 7.0]);
        assert!((values["get_latency_p99"] / 9_900.0 - 1.0).abs() < 0.02, "{}", values["get_latency_p99"]);
        let empty = edited(|measurement| measurement.cache = Some(Box::default()));
        assert!(!super::values(&empty, 0.95).contains_key("hit_ratio"));
    }

    #[test]
    fn values_are_those_of_the_measurement() {
        let record = measured();
        let (values, measurement) = (values(&record, 0.95), record.measurement().unwrap());
        assert_eq!(values["throughput"], measurement.requests as f64 / 0.25);
        assert_eq!(values["latency_mean"], measurement.service.sum / measurement.requests as f64);
        let cpu_ns = (record.subject.user_ns + record.subject.system_ns) as f64;
        assert_eq!(values["subject_cpu_per_request"], cpu_ns / measurement.requests as f64);
        // A reading that came late missed a tenth of the requests, and what they cost.
        let mut late = record.clone();
        late.subject.measured_share = Some(0.9);
        assert_eq!(super::values(&late, 0.95)["subject_cpu_per_request"], cpu_ns / 0.9 / measurement.requests as f64);
        assert!(values["latency_p50"] < values["latency_p99"] && values["latency_p99"] < values["latency_p999"]);
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
        assert_eq!((values["transfer"], values["handshake_mean"]), (4_000_000.0, 2_000_000.0));
        let none = edited(|measurement| measurement.handshake = Some(study::record::Histogram::default()));
        assert!(!self::values(&none, 0.95).contains_key("handshake_mean"));
    }

    #[test]
    fn memory_is_counted_from_before_the_load() {
        let mut record = measured();
        record.subject.rss_max_bytes = Some(10_000);
        let samples = [4_000, 9_000].map(|rss_bytes| study::record::Sample { rss_bytes, ..Default::default() });
        record.subject.samples = samples.to_vec();
        assert_eq!(
            (values(&record, 0.95)["subject_rss"], values(&record, 0.95)["subject_memory"]),
            (10_000.0, 6_000.0)
        );
        record.subject.samples.clear();
        assert!(!values(&record, 0.95).contains_key("subject_memory"), "what it was before is not known");
    }

    #[test]
    fn too_few_answers_for_a_quantile() {
        let few = edited(|measurement| {
            let mut latency = stats::Histogram::new();
            (1..=100).for_each(|i| latency.record(i * 1_000));
            measurement.service = study::record::Histogram::from(&latency);
            measurement.requests = 100;
        });
        let values = values(&few, 0.95);
        assert!(values.contains_key("latency_p95"), "72 are enough for p95");
        assert!(!values.contains_key("latency_p99"), "368 are needed for p99");
    }

    #[test]
    fn nothing_answered_and_nothing_known_is_missing_not_zero() {
        let mut empty = edited(|measurement| {
            measurement.service = study::record::Histogram::default();
            measurement.requests = 0;
        });
        empty.subject.rss_max_bytes = None;
        empty.subject.samples.clear();
        let values = values(&empty, 0.95);
        assert_eq!(values.keys().collect::<Vec<_>>(), ["errors", "throughput", "transfer"]);
        assert_eq!(values["throughput"], 0.0);
    }

    #[test]
    fn a_histogram_that_cannot_be_has_no_quantiles() {
        let broken = edited(|measurement| measurement.service.buckets = vec![(u32::MAX, 3)]);
        assert!(!values(&broken, 0.95).contains_key("latency_p50"));
    }

    #[test]
    fn the_last_window_counts_only_when_whole() {
        let record = edited(|measurement| measurement.duration_ns -= 1);
        assert_eq!(whole_windows(record.measurement().unwrap()).len(), 49);
        let record = edited(|measurement| measurement.window_ns = 0);
        assert!(whole_windows(record.measurement().unwrap()).is_empty());
    }
}
