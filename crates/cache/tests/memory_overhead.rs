//! Tests the memory per item, and the use of memory when the sizes of values change.

use cache::{Cache, Config, Evictor, Meta, Mode};

fn fill(cache: &Cache, from: u64, items: u64, key_bytes: usize, value_bytes: usize) {
    let value = vec![7; value_bytes];
    for id in from..from + items {
        let key = format!("{id:0key_bytes$}");
        cache.hold(key.as_bytes()).store(Mode::Set, &value, Meta::default(), 0).unwrap();
    }
}

/// Uses keys of 28 bytes and values of 200 bytes. Overhead includes free space and bookkeeping.
#[test]
fn overhead_is_at_most_24_bytes_per_item() {
    let cache = Cache::new(Config::new(64 << 20)).unwrap();
    fill(&cache, 0, 600_000, 28, 200);
    cache.audit();
    let stats = cache.stats();
    assert_eq!(stats.memory_bytes(), 64 << 20);
    let overhead = (stats.memory_bytes() - stats.key_bytes - stats.value_bytes) as f64 / stats.items as f64;
    assert!(overhead <= 24.0, "{overhead:.2} bytes per item: {stats:?}");
}

/// Memory split for small items can be reused for large ones and vice versa.
#[test]
fn memory_adapts_to_changing_value_sizes() {
    for evictor in [Evictor::Fifo, Evictor::Lru, Evictor::S3Fifo, Evictor::Density] {
        let cache = Cache::new(Config { evictor, ..Config::new(4 << 20) }).unwrap();
        // Each size fills the cache three times, so that uses of the older items fade.
        for (phase, value_bytes) in [50usize, 5_000, 50].into_iter().enumerate() {
            let items = 3 * (4 << 20) / (value_bytes as u64 + 40);
            fill(&cache, phase as u64 * 1_000_000, items, 16, value_bytes);
            cache.audit();
            let stats = cache.stats();
            let share = stats.free_bytes as f64 / stats.memory_bytes() as f64;
            assert!(share < 0.03, "{evictor}, values of {value_bytes} bytes: {:.1} % free", 100.0 * share);
        }
    }
}
