//! The gates of hit ratio that are quick to replay; all of them by `cargo xtask hit-ratio`.

use cache::gates::{GATES, LRU_MARGIN};
use cache::replay::replay;
use cache::{Cache, Config, Evictor};

fn objects(name: &str, evictor: Evictor) -> f64 {
    let gate = GATES.iter().find(|gate| gate.name == name).unwrap();
    let cache = Cache::new(Config { evictor, ..Config::new(gate.capacity_bytes) }).unwrap();
    replay(&cache, gate.requests_of(1, gate.requests), gate.requests / 2).objects()
}

fn check(name: &str) {
    let least = GATES.iter().find(|gate| gate.name == name).unwrap().least;
    let ratio = objects(name, Evictor::Density);
    assert!(ratio >= least, "{name}: {ratio:.4}, the gate is {least}");
}

#[test]
fn h1_zipf() {
    check("H1");
}

#[test]
fn h3_one_hit() {
    check("H3");
}

#[test]
fn h5_recency() {
    check("H5");
}

#[test]
fn h6_shift_is_near_lru() {
    let (ours, lru) = (objects("H6", Evictor::Density), objects("H6", Evictor::Lru));
    assert!(ours >= lru - LRU_MARGIN, "H6: {ours:.4}, lru {lru:.4}");
}

#[test]
fn h7_loop() {
    check("H7");
}
