//! Runs the bodies of the fuzz targets on stable Rust: on seeds, on truncated and mutated seeds, and on random bytes.

#[path = "../../../fuzz/assertions.rs"]
mod assertions;

use std::path::Path;

use proptest::prelude::*;

type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 23] = [
    ("study_parse", assertions::study_parse),
    ("objective", assertions::objective),
    ("pingpong", assertions::pingpong),
    ("histogram_from_parts", assertions::histogram_from_parts),
    ("load_spec_json", assertions::load_spec_json),
    ("http1_response", assertions::http1_response),
    ("http1_request", assertions::http1_request),
    ("url", assertions::url),
    ("request_file", assertions::request_file),
    ("request_values", assertions::request_values),
    ("csv_column", assertions::csv_column),
    ("load_shape", assertions::load_shape),
    ("memcached_request", assertions::memcached_request),
    ("memcached_response", assertions::memcached_response),
    ("resp_request", assertions::resp_request),
    ("resp_reply", assertions::resp_reply),
    ("cache_http", assertions::cache_http),
    ("detect_protocol", assertions::detect_protocol),
    ("workload_parse", assertions::workload_parse),
    ("har", assertions::har),
    ("journey_parse", assertions::journey_parse),
    ("cases_parse", assertions::cases_parse),
    ("workload_trace", assertions::workload_trace),
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths = files.map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds for {target}");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn every_fuzz_target_has_a_body_and_seeds() {
    let manifest =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml")).unwrap();
    let listed = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    // The tests of other crates run the targets with these prefixes.
    let elsewhere = |path: &&str| {
        ["http2_", "contract_", "metadata_", "cluster_", "run_file", "perf_", "thrift_", "soap", "wsdl", "json", "rest"]
            .iter()
            .any(|start| path.starts_with(start))
    };
    assert_eq!(listed.filter(|path| !elsewhere(path)).count(), TARGETS.len());
    for (target, body) in TARGETS {
        assert!(manifest.contains(&format!("fuzz_targets/{target}.rs")), "{target}");
        seeds(target).iter().for_each(|seed| body(seed));
    }
}

#[test]
fn some_seeds_are_valid_and_some_invalid() {
    let studies = seeds("study_parse");
    let good = studies.iter().filter(|seed| study::parse(str::from_utf8(seed).unwrap()).is_ok()).count();
    assert!(0 < good && good < studies.len());
    let read = |seed: &Vec<u8>| {
        let stored = serde_json::from_slice::<study::record::Histogram>(seed).unwrap();
        stats::Histogram::try_from(&stored).is_ok()
    };
    let histograms = seeds("histogram_from_parts");
    let good = histograms.iter().filter(|seed| read(seed)).count();
    assert!(0 < good && good < histograms.len());
    for seed in seeds("load_spec_json") {
        serde_json::from_slice::<study::LoadSpec>(&seed).unwrap();
    }
}

#[test]
fn bodies_accept_truncated_seeds() {
    for (target, body) in TARGETS {
        for seed in seeds(target) {
            (0..seed.len()).step_by(seed.len() / 200 + 1).for_each(|end| body(&seed[..end]));
        }
    }
}

fn bent() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let pieces = any::<[prop::sample::Index; 6]>();
    (0..TARGETS.len(), pieces, edits).prop_map(|(target, [one, other, start, end, from, to], edits)| {
        let seeds = seeds(TARGETS[target].0);
        let (mut bytes, donor) = (seeds[one.index(seeds.len())].clone(), &seeds[other.index(seeds.len())]);
        let range = |a: usize, b: usize| a.min(b)..a.max(b);
        let piece = range(from.index(donor.len() + 1), to.index(donor.len() + 1));
        let place = range(start.index(bytes.len() + 1), end.index(bytes.len() + 1));
        bytes.splice(place, donor[piece].iter().copied());
        for (at, byte) in edits {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        (target, bytes)
    })
}

proptest! {
    #[test]
    fn bodies_accept_mutated_seeds((target, bytes) in bent()) {
        TARGETS[target].1(&bytes);
    }

    #[test]
    fn bodies_accept_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        TARGETS.iter().for_each(|(_, body)| body(&bytes));
    }
}
