//! Tests of the overhead of proxies in simulated blocks.

use super::*;
use crate::example;

fn findings() -> Findings {
    let (run, records) = example::through_in(18);
    crate::analyze(&run, &records)
}

fn estimate(point: f64, low: f64, high: f64) -> Estimate {
    Estimate { point, low, high, level: 0.95, n: 8 }
}

#[test]
fn block_effects_cancel() {
    let findings = findings();
    let [found] = findings.added.as_slice() else { panic!("{:?}", findings.added) };
    assert_eq!((found.through.as_str(), found.place.as_str(), found.row, found.direct), ("adapter", "", 1, 0));
    let mean = found.metric("latency_mean").unwrap();
    let difference = mean.difference.unwrap();
    assert!(difference.low > 15_000.0 && difference.high < 25_000.0, "{difference:?}");
    let spread = findings.rows[0].estimate("latency_mean").unwrap().half_width();
    assert!(difference.half_width() < spread / 5.0, "{difference:?} beside {spread}");
    assert!(mean.shown && mean.blocks == 18 && mean.p_adjusted.is_some_and(|p| p < 0.001), "{mean:?}");
    let ratio = mean.ratio.unwrap();
    assert!(ratio.low > 1.0 && ratio.high < 1.1, "{ratio:?}");
    let bytes = found.metric("subject_bytes_per_request").unwrap();
    assert!((bytes.through / bytes.direct - 1.1).abs() < 1e-9, "it passes on a tenth more: {bytes:?}");
    let sentence = &found.sentence;
    assert!(sentence.starts_with("adapter adds ") && sentence.contains("] at the mean (18 blocks)"), "{sentence}");
}

#[test]
fn equal_latencies_show_no_overhead() {
    let (run, mut records) = example::through_in(18);
    let direct = records.iter().filter(|record| record.point == 0).cloned().collect::<Vec<_>>();
    for (at, record) in records.iter_mut().filter(|record| record.point == 1).enumerate() {
        // Taking the outcome of a different block gives differences of either sign.
        record.outcome = direct[(at + 3) % direct.len()].outcome.clone();
    }
    let findings = crate::analyze(&run, &records);
    let mean = findings.added[0].metric("latency_mean").unwrap();
    let difference = mean.difference.unwrap();
    assert!(!mean.shown && difference.low < 0.0 && difference.high > 0.0, "{mean:?}");
    let sentence = &findings.added[0].sentence;
    assert!(sentence.starts_with("no difference shown through adapter at p50 ("), "{sentence}");
}

#[test]
fn explains_unadjusted_intervals_that_exclude_zero() {
    let findings = findings();
    let mut found = findings.added[0].clone();
    let mean = found.metrics.iter_mut().find(|metric| metric.metric == "latency_mean").unwrap();
    mean.shown = false;
    let words = sentence(&findings, &found, 27);
    assert!(words.contains("; no difference shown through adapter at the mean (+"), "{words}");
    assert!(words.contains("], not significant among 27 tests)"), "{words}");
}

#[test]
fn only_blocks_with_both_count() {
    let (run, mut records) = example::through_in(18);
    records.retain(|record| (record.point, record.block) != (0, 2) && (record.point, record.block) != (1, 5));
    assert_eq!(crate::analyze(&run, &records).added[0].metrics[0].blocks, 16);
    records.retain(|record| record.block == 0);
    let findings = crate::analyze(&run, &records);
    let mean = findings.added[0].metric("latency_mean").unwrap();
    assert_eq!((mean.blocks, mean.difference, mean.p_adjusted, mean.shown), (1, None, Some(1.0), false));
    assert!(findings.added[0].sentence.contains("(1 block, too few for a claim)"), "{}", findings.added[0].sentence);
    records.retain(|record| record.point == 1);
    assert!(crate::analyze(&run, &records).added.is_empty(), "nothing to compare with");
}

#[test]
fn formats_changes_with_intervals() {
    for (value, unit, text) in [
        (estimate(18_200.0, 17_100.0, 19_300.0), "ns", "+18.2 µs [17.1, 19.3]"),
        (estimate(-850.0, -900.0, -800.0), "ns", "-850 ns [-900, -800]"),
        (estimate(0.0, -2.0, 2.0), "bytes", "+0.00 B [-2.00, 2.00]"),
        (estimate(40.0, 39.0, 41.0), "1", "+40.0 [39.0, 41.0]"),
    ] {
        assert_eq!(change(&value, unit, false), text);
    }
    assert_eq!(change(&estimate(18_200.0, 0.0, 0.0), "ns", true), "+18.2 µs");
    let slope = estimate(100.0, -200.0, 400.0);
    assert_eq!(change_per(&slope, "ns", " per 1,000 requests", false), "+100 ns per 1,000 requests [-200, 400]");
}
