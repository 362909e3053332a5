//! Tests of miss-ratio curves with simulated noise and deviations.

use super::*;
use crate::{analyze, example};

fn curves(measured: impl Fn(&str, usize, u32) -> i64) -> Findings {
    let (run, records) = example::curves(measured);
    analyze(&run, &records)
}

fn noise(block: u32) -> i64 {
    i64::from(block * 31 % 7) * 4 - 12
}

#[test]
fn deviations_from_the_policy_are_flagged() {
    let findings = curves(|server, place, block| {
        let off = match (server, place) {
            ("redis-lru", 0) => 2_000,
            ("redis-lru", 2) => 900,
            ("ours-lru", 1) => 50,
            ("memcached", 1..) => -1_500,
            _ => 0,
        };
        off + noise(block)
    });
    let [found] = findings.miss_ratios.as_slice() else { panic!("one panel: {:?}", findings.miss_ratios) };
    let strays = |label: &str| {
        let curve = found.curves.iter().find(|curve| curve.label == label).unwrap();
        (curve.is_own, curve.points.iter().map(|point| point.strays).collect::<Vec<_>>())
    };
    assert_eq!(strays("ours-lru"), (true, vec![false; 4]));
    assert_eq!(strays("redis-lru"), (true, vec![true, false, true]));
    assert_eq!(strays("memcached").1, [false, true, true]);
    insta::assert_snapshot!(found.sentences.join("\n"));
}

#[test]
fn pairs_detect_smaller_deviations_than_curves() {
    // The curve is half a percentage point above its policy, far less than the spread between trials.
    let findings = curves(|_, place, block| if place == 0 { 500 } else { 0 } + noise(block));
    let point = &findings.miss_ratios[0].curves[0].points[0];
    let (alone, pair) = (point.estimate.unwrap(), point.difference.unwrap());
    assert!(alone.low < point.simulated.unwrap() && point.simulated.unwrap() < alone.high, "{alone:?}");
    assert!(pair.low > 0.004 && pair.high < 0.006 && point.strays, "{pair:?}");
}

#[test]
fn measured_curves_remain_without_replays() {
    let (mut run, records) = example::volley();
    run.references.clear();
    assert!(analyze(&run, &records).miss_ratios.is_empty(), "no figure needs them");
    let mut findings = curves(|_, _, block| noise(block));
    findings.miss_ratios.iter_mut().for_each(|found| found.policies.clear());
    assert_eq!(findings.miss_ratios[0].policies.len(), 0);
}
