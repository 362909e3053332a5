//! Runs fuzz targets on their seeds and on truncated and mutated seeds, on stable Rust.

#[path = "../../../fuzz/cluster.rs"]
mod cluster;
#[path = "../../../fuzz/perf_script.rs"]
mod perf;

use std::path::Path;

use lab::cluster::file::{STUDY, parse, short};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn seeds_cover_every_outcome() {
    let seeds = seeds("cluster_file");
    let texts = seeds.iter().map(|seed| str::from_utf8(seed).unwrap()).collect::<Vec<_>>();
    let files = texts.iter().filter(|text| parse(text, STUDY).is_ok()).count();
    let lists = texts.iter().filter(|text| short(text, STUDY).is_ok()).count();
    assert!(files >= 2 && lists >= 1 && files + lists < texts.len(), "{files} {lists}");
}

#[test]
fn truncated_and_changed_seeds_pass() {
    type Body = fn(&[u8]);
    for (target, body) in [("cluster_file", cluster::cluster_file as Body), ("perf_script", perf::perf_script)] {
        for seed in seeds(target) {
            for at in 0..=seed.len() {
                body(&seed[..at]);
                for byte in [0, b'"', b'\n', b'-', b'=', b'[', b'9', 0xff] {
                    let mut bent = seed.clone();
                    if let Some(place) = bent.get_mut(at) {
                        *place = byte;
                    }
                    body(&bent);
                }
            }
        }
    }
}
