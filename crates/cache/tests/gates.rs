//! The gates of hit ratio: a quick subset here, all of them by `cargo xtask hit-ratio`.

use cache::gates::{GATES, LRU_MARGIN};
use cache::replay::replay;
use cache::{Cache, Config, Evictor};

fn objects(gate: usize, evictor: Evictor) -> f64 {
    let gate = &GATES[gate];
    let cache = Cache::new(Config { evictor, ..Config::new(gate.capacity_bytes) }).unwrap();
    replay(&cache, gate.requests_of(1, gate.requests), gate.requests / 2).objects()
}

#[test]
fn density_passes_the_quick_gates() {
    for gate in [0, 2, 4, 6] {
        let ratio = objects(gate, Evictor::Density);
        assert!(ratio >= GATES[gate].least, "{}: {ratio:.4}, at least {}", GATES[gate].name, GATES[gate].least);
    }
    let (ours, lru) = (objects(5, Evictor::Density), objects(5, Evictor::Lru));
    assert!(ours >= lru - LRU_MARGIN, "H6: {ours:.4}, lru {lru:.4}");
}
