use super::*;
use crate::{analyze, example};
use study::record::{CacheCounts, CacheMeasurement, Outcome};

/// Caches of 1, 2 and 4 MiB: the factors of a study of volleys with other names. GETs and misses of the replays are those of a cache that
/// halves its misses with each doubling; `measured` says how many more of a hundred thousand a trial misses, by server, place and block.
fn curves(measured: impl Fn(&str, usize, u32) -> i64) -> Findings {
    let (mut run, mut records) = example::volley();
    let servers = run.plan.points.iter().map(|point| point.factors["server"].clone()).collect::<Vec<_>>();
    let names = |level: &Level| match level {
        Level::Text(word) if word == "c-epoll" => "ours-lru",
        Level::Text(word) if word == "go" => "redis-lru",
        _ => "memcached",
    };
    // Two cores and two numbers of clients: three capacities, of which one twice.
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    for (point, server) in run.plan.points.iter_mut().zip(&servers) {
        let place = seen.entry(server.to_string()).or_insert(-1);
        *place += 1;
        let factors = [
            ("server".to_owned(), Level::Text(names(server).to_owned())),
            ("cap".to_owned(), Level::Integer(1 << *place)),
        ];
        point.factors = factors.into_iter().collect();
    }
    run.plan.factors = ["server", "cap"].map(str::to_owned).to_vec();
    run.plan.figures = vec![Figure {
        kind: FigureKind::MissRatio,
        x: Some("cap".to_owned()),
        y: None,
        y_more: Vec::new(),
        series: Some("server".to_owned()),
        facet: None,
        interval: 0.95,
        title: None,
        policies: ["lru", "belady"].map(str::to_owned).to_vec(),
        x_unit_bytes: Some(1 << 20),
    }];
    for record in &mut records {
        let factors = &run.plan.points[record.point].factors;
        let Level::Integer(cap) = factors["cap"] else { unreachable!() };
        let server = factors["server"].to_string();
        let Outcome::Measured(measurement) = &mut record.outcome else { continue };
        // The luck of a trial, which both have.
        let luck = u64::from(record.block * 7919 % 13) * 300;
        let simulated = 50_000 / cap as u64 + luck;
        let misses = (simulated as i64 + measured(&server, cap.trailing_zeros() as usize, record.block)) as u64;
        let counts = CacheCounts { hits: 100_000 - misses, misses, ..CacheCounts::default() };
        measurement.cache =
            Some(Box::new(CacheMeasurement { counts, footprint_bytes: 8 << 20, ..CacheMeasurement::default() }));
        let reference = |policy: &str, misses| Reference {
            policy: policy.to_owned(),
            point: record.point,
            block: record.block,
            capacity_bytes: (cap as u64) << 20,
            gets: 100_000,
            misses,
            problem: None,
        };
        run.references.push(reference("lru", simulated));
        run.references.push(reference("belady", simulated / 2));
    }
    analyze(&run, &records)
}

/// Chance, without a side: some ten of a hundred thousand.
fn noise(block: u32) -> i64 {
    i64::from(block * 31 % 7) * 4 - 12
}

#[test]
fn who_does_as_it_says_keeps_to_its_policy_and_who_does_not_is_flagged() {
    let findings = curves(|server, place, block| {
        let off = match (server, place) {
            ("redis-lru", 0) => 2_000,
            ("redis-lru", 2) => 900,
            // Sure, and too small to matter.
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
fn the_pair_tells_what_the_curves_alone_cannot() {
    // Half a point more than its policy: far less than trials differ among each other.
    let findings = curves(|_, place, block| if place == 0 { 500 } else { 0 } + noise(block));
    let point = &findings.miss_ratios[0].curves[0].points[0];
    let (alone, pair) = (point.estimate.unwrap(), point.difference.unwrap());
    assert!(alone.low < point.simulated.unwrap() && point.simulated.unwrap() < alone.high, "{alone:?}");
    assert!(pair.low > 0.004 && pair.high < 0.006 && point.strays, "{pair:?}");
}

#[test]
fn every_form_has_the_curves() {
    let findings = curves(|_, _, block| noise(block));
    let page = crate::html(&findings).unwrap();
    for words in ["belady, simulated", "keeps to the simulated lru", "id=\"miss-ratio\"", "of the footprint"] {
        assert!(page.contains(words), "{words}");
    }
    let text = crate::markdown(&findings);
    assert!(text.contains("## Miss ratio") && text.contains("| ours-lru | 1 MiB | 12 % |"), "{text}");
    assert!(crate::terminal(&findings, &crate::Style::PLAIN).contains("keeps to the simulated lru"));
    let rows = crate::csv_miss_ratios(&findings);
    assert_eq!(rows.lines().count(), 1 + 10 + 8);
    assert!(rows.lines().all(|line| line.split(',').count() == 18), "{rows}");
    let again: Findings = serde_json::from_str(&crate::json(&findings).unwrap()).unwrap();
    assert_eq!(again.miss_ratios, findings.miss_ratios);
}

#[test]
fn without_replays_the_measured_curves_stand_alone() {
    let (mut run, records) = example::volley();
    run.references.clear();
    assert!(analyze(&run, &records).miss_ratios.is_empty(), "no figure asks for them");
    let mut findings = curves(|_, _, block| noise(block));
    findings.miss_ratios.iter_mut().for_each(|found| found.policies.clear());
    assert!(crate::html(&findings).unwrap().contains("Misses over cap"));
}
