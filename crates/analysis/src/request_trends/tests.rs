//! Tests of trends over the requests of a trial.

use super::*;
use crate::example;

fn found(what: &str) -> OverRequests {
    let (run, records) = example::through();
    let findings = crate::analyze(&run, &records);
    findings.over_requests.into_iter().rfind(|found| found.what == what).unwrap()
}

#[test]
fn finds_a_growing_store() {
    let store = found("proxy_store");
    let slope = store.slope_per_1000.unwrap();
    assert!((slope.point - 100_000.0).abs() < 1e-3 && store.shown, "{slope:?}");
    assert!(store.sentence.contains("the proxy's store grows: +97.7 KiB per 1,000 requests"), "{}", store.sentence);
    assert!(store.points.windows(2).all(|pair| pair[0].mean < pair[1].mean));
}

#[test]
fn flat_time_and_memory_are_reported() {
    let time = found("proxy_time");
    assert!(
        !time.shown && time.sentence.contains("self time is flat, within ±5 % over 2000 requests: "),
        "{}",
        time.sentence
    );
    assert_eq!((time.requests_a_point, time.points.len()), (250.0, 8), "means of 250 of 2,000 calls");
    assert!(time.points.iter().all(|point| (5_000.0..5_011.0).contains(&point.mean)));
    let rss = found("proxy_rss");
    assert_eq!((rss.slope_per_1000_mean, rss.shown), (0.0, false));
    assert!(rss.points.iter().all(|point| point.mean == 9_000_000.0));
}

#[test]
fn rising_latency_is_reported() {
    let (run, mut records) = example::through();
    for record in &mut records {
        let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        for (at, window) in measurement.windows.iter_mut().enumerate() {
            window.latency.sum *= 1.0 + at as f64 / 10.0;
        }
    }
    let findings = crate::analyze(&run, &records);
    let latency = findings.over_requests.iter().find(|found| found.what == "latency").unwrap();
    assert!(latency.shown && latency.sentence.contains("latency grows: +"), "{}", latency.sentence);
}

#[test]
fn coarse_windows_cover_all_requests() {
    let series = |offset: f64| (0..20).map(|at| (offset + 480.0 * f64::from(at), 1.0)).collect::<Vec<_>>();
    let trials = [series(200.0), series(239.0), series(20.0)];
    let width = largest_gap(&trials);
    let points = points(&trials, 9_140.0, width, 0.95, false);
    assert!(width == 480.0 && points.len() >= 19 && points.last().unwrap().requests > 8_800.0, "{points:?}");
}

#[test]
fn series_in_only_one_trial_is_unclear() {
    let (run, mut records) = example::through();
    for record in records.iter_mut().filter(|record| record.block > 0) {
        let study::record::Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
        measurement.windows.truncate(1);
    }
    let findings = crate::analyze(&run, &records);
    let latency = findings.over_requests.iter().find(|found| found.what == "latency").unwrap();
    let of = records.iter().filter(|record| record.point == 0).count();
    let expected = format!("unclear whether latency grows: only 1 of {of} trials is long enough");
    assert!(of > 1 && latency.sentence.contains(&expected), "{}", latency.sentence);
}

#[test]
fn one_trial_has_no_interval() {
    let (run, mut records) = example::through();
    records.retain(|record| record.block == 0);
    let findings = crate::analyze(&run, &records);
    let time = findings.over_requests.iter().find(|found| found.what == "proxy_time").unwrap();
    assert_eq!((time.slope_per_1000, time.shown), (None, false));
    assert!(time.sentence.ends_with("from one trial"), "{}", time.sentence);
    records.retain(|record| record.point == 0);
    let findings = crate::analyze(&run, &records);
    assert!(findings.over_requests.iter().all(|found| !found.what.starts_with("proxy_")), "there is no proxy");
}

#[test]
fn requests_are_interpolated_within_a_window() {
    let (_, records) = example::through();
    let measurement = records[0].measurement().unwrap();
    let first = measurement.windows[0].requests as f64;
    assert_eq!(answered(measurement, 0), 0.0);
    assert_eq!(answered(measurement, measurement.window_ns / 2), first / 2.0);
    let all = measurement.windows.iter().map(|window| window.requests as f64).sum::<f64>();
    assert_eq!(answered(measurement, u64::MAX), all);
}

fn through_with_memory(rss: impl Fn(u32, u64) -> u64, every: u64, processes: usize) -> Findings {
    let (run, mut records) = example::through();
    for record in records.iter_mut().filter(|record| !record.proxies.is_empty()) {
        let calls = record.proxies[0].calls.as_mut().unwrap();
        let look = |calls: u64| MemoryAt {
            calls,
            at_ns: calls * 1_000,
            rss_bytes: rss(record.block, calls),
            store_bytes: Some(16 + 50 * calls),
            store_file_bytes: None,
        };
        calls.memory = (0..=2_000 / every).map(|at| look(at * every)).collect();
        let one = record.proxies[0].clone();
        record.proxies.extend(std::iter::repeat_n(one, processes - 1));
    }
    crate::analyze(&run, &records)
}

fn memory_of(findings: &Findings) -> &OverRequests {
    findings.over_requests.iter().rfind(|found| found.what == "proxy_rss").unwrap()
}

#[test]
fn memory_by_calls_covers_all_calls() {
    // Samples are as few as in a trial of one second, or as many as an adapter takes.
    for every in [20, 200, 1_000] {
        let findings = through_with_memory(|_, calls| 9_000_000 + 30 * calls, every, 1);
        let rss = memory_of(&findings);
        let ends = (rss.points[0].requests, rss.points.last().unwrap().requests);
        assert_eq!((rss.points.len(), ends), (40, (25.0, 1_975.0)), "every {every}");
        assert!((rss.slope_per_1000_mean - 30_000.0).abs() < 1e-3, "{rss:?}");
        assert_eq!(rss.trend, Trend::Line);
    }
    let both = through_with_memory(|_, calls| 9_000_000 + 30 * calls, 20, 2);
    assert!((memory_of(&both).slope_per_1000_mean - 60_000.0).abs() < 1e-3);
    assert!(memory_of(&both).points.iter().all(|point| point.mean >= 18_000_000.0));
}

#[test]
fn unclear_trends_are_not_called_flat() {
    let of = |rss: fn(u32, u64) -> u64| {
        let findings = through_with_memory(rss, 20, 1);
        let found = memory_of(&findings);
        (found.trend, found.sentence.clone())
    };
    let (trend, text) = of(|block, calls| 9_000_000 + if block % 2 == 0 { calls } else { 2_000 - calls });
    assert!(
        trend == Trend::Flat && text.contains("proxy's resident set is flat, within ±5 % over 2000 requests: "),
        "{text}"
    );
    let (trend, text) = of(|block, calls| 9_000_000 + (1_000 * calls).saturating_mul(u64::from(block == 1)));
    assert!(
        trend == Trend::Unclear
            && text.contains(": unclear whether the proxy's resident set grows over 2000 requests: +"),
        "{text}"
    );
    let (trend, text) = of(|_, calls| 9_000_000 + 2_000 * calls.min(300));
    assert_eq!(trend, Trend::Bent, "{text}");
    assert!(
        text.contains("grows, but not linearly: +")
            && text.contains(" in the second, so its course beyond them is unclear"),
        "{text}"
    );
}

#[test]
fn significance_is_adjusted_for_all_series() {
    // Each trial has one of these slopes, in thousands of bytes per call: t is 2.73, so p is 0.029 for eight trials.
    let slopes = [3i64, 1, 4, 1, 5, -1, 3, 0];
    let rss = |block: u32, calls: u64| {
        let grown = slopes[block as usize % slopes.len()] * 1_000 * i64::try_from(calls).unwrap();
        u64::try_from(11_000_000 + grown).unwrap()
    };
    let findings = through_with_memory(rss, 20, 1);
    let found = memory_of(&findings);
    let slope = found.slope_per_1000.unwrap();
    assert!(slope.low > 0.0 && slope.n == 8, "{slope:?}");
    assert!(!found.shown && found.p_adjusted.unwrap() > 0.05, "{found:?}");
    let series = findings.over_requests.len();
    assert!(found.sentence.ends_with(&format!(", not significant among {series} series")), "{}", found.sentence);
}

#[test]
fn small_growth_is_reported() {
    let findings = through_with_memory(|block, calls| 9_000_000 + calls * (50 + u64::from(block)), 20, 1);
    let found = memory_of(&findings);
    assert_eq!((found.trend, found.small), (Trend::Line, true));
    assert!(found.sentence.contains(" grows, by less than 5 % over 2000 requests: +"), "{}", found.sentence);
}

#[test]
fn two_proxies_are_summed_call_by_call() {
    let (_, mut records) = example::through();
    let record = records.iter_mut().find(|record| !record.proxies.is_empty()).unwrap();
    let one = series(record, "proxy_time").unwrap();
    let mut second = record.proxies[0].clone();
    second.calls.as_mut().unwrap().own_ns.truncate(500);
    record.proxies.push(second);
    let both = series(record, "proxy_time").unwrap();
    assert_eq!((both.len(), both[7].1), (500, 2.0 * one[7].1));
}
