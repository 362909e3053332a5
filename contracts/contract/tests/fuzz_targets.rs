//! Runs the fuzz targets of contracts on whole, truncated and mutated seeds and random bytes.

#[path = "../../../fuzz/contract.rs"]
mod contracts;

use std::path::Path;

use proptest::prelude::*;

type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 3] = [
    ("contract_parse", contracts::contract_parse),
    ("contract_eval", contracts::contract_eval),
    ("metadata_block", contracts::metadata_block),
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut paths = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds for {target}");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn seeds_pass() {
    for (target, body) in TARGETS {
        seeds(target).iter().for_each(|seed| body(seed));
    }
}

#[test]
fn seeds_reach_both_ends() {
    let known = contract::metadata::CallContext { receiver: "r", service: "S", sender: "a" };
    let blocks = seeds("metadata_block");
    let read = blocks.iter().filter(|block| contract::metadata::decode_request(block, known).is_some()).count();
    assert!(0 < read && read < blocks.len());
    let contracts = seeds("contract_parse");
    let texts = contracts.iter().map(|seed| str::from_utf8(seed).unwrap());
    let usable = texts.filter(|text| contract::check(text, None).contract.is_some()).count();
    assert!(0 < usable && usable < contracts.len());
}

proptest! {
    #[test]
    fn bent_seeds_pass(which in 0..TARGETS.len(), seed in any::<usize>(), cut in any::<usize>(), bends in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6)) {
        let (target, body) = TARGETS[which];
        let seeds = seeds(target);
        let mut bytes = seeds[seed % seeds.len()].clone();
        bytes.truncate(cut % (bytes.len() + 1));
        for (at, byte) in bends.into_iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        body(&bytes);
    }

    #[test]
    fn random_bytes_pass(which in 0..TARGETS.len(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        TARGETS[which].1(&bytes);
    }
}
