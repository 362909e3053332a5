//! Runs the bodies of the fuzz targets on seeds, mutated seeds and random bytes.

#[path = "../../../../fuzz/http2.rs"]
mod assertions;

use std::path::Path;

use proptest::prelude::*;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut paths = directory.read_dir().unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn mutated(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let change = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::sample::select(seeds(target)), change, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut seed, changes, end, is_cut)| {
            for (at, byte) in changes {
                if !seed.is_empty() {
                    let at = at.index(seed.len());
                    seed[at] = byte;
                }
            }
            if is_cut {
                seed.truncate(end.index(seed.len() + 1));
            }
            seed
        },
    )
}

#[test]
fn assertions_hold_for_the_seeds() {
    seeds("http2_frames").iter().for_each(|seed| assertions::frames(seed));
    seeds("http2_blocks").iter().for_each(|seed| assertions::blocks(seed));
}

proptest! {
    #[test]
    fn assertions_hold_for_any_frames(bytes in prop_oneof![mutated("http2_frames"), prop::collection::vec(any::<u8>(), 0..200)]) {
        assertions::frames(&bytes);
    }

    #[test]
    fn assertions_hold_for_any_blocks(bytes in prop_oneof![mutated("http2_blocks"), prop::collection::vec(any::<u8>(), 0..200)]) {
        assertions::blocks(&bytes);
    }
}
