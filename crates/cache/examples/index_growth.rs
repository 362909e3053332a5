//! Measures the maximum and quantiles of the times of a million stores into an empty cache and a million overwrites.
//! Usage: `cargo run --release -p cache --example index_growth -- [ITEMS [VALUE_BYTES [THREADS]]]`. The defaults are
//! 1,000,000 items, values of 20 bytes, and shards for one thread. Times are CPU times, so other processes do not
//! affect them; they include part of a microsecond for the clock. Each is the shortest of five rounds.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use cache::{Cache, Config, Evictor, Meta, Mode};

const ROUNDS: usize = 5;

fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs all operations and lowers each entry of `least_ns` to the CPU time of its operation in ns, if that is less.
fn measure(least_ns: &mut [u32], mut operation: impl FnMut(usize)) {
    for (number, least) in least_ns.iter_mut().enumerate() {
        let start_ns = own_ns();
        operation(number);
        *least = (*least).min(u32::try_from(own_ns() - start_ns).unwrap_or(u32::MAX));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>().expect("numbers"));
    let mut next = |default| arguments.next().unwrap_or(default);
    let (items, value_bytes, threads) = (next(1_000_000), next(20), next(1));
    let value = vec![7; value_bytes];
    let capacity_bytes = items as u64 * (value_bytes as u64 + 80) + (4 << 20);
    println!("evictor     shards  what       p50 ns   p99.99 ns      max ns");
    for evictor in [Evictor::Density, Evictor::S3Fifo, Evictor::Lru] {
        let config = Config { evictor, threads, ..Config::new(capacity_bytes) };
        let (mut growing_ns, mut steady_ns) = (vec![u32::MAX; items], vec![u32::MAX; items]);
        let mut shards = 0;
        for _ in 0..ROUNDS {
            let cache = Cache::new(config.clone()).expect("a cache");
            shards = cache.shards();
            let set = |number: usize| {
                let key = (number as u64).to_le_bytes();
                cache.hold(&key).store(Mode::Set, &value, Meta::default(), 0).expect("it has room");
            };
            measure(&mut growing_ns, set);
            measure(&mut steady_ns, set);
            assert_eq!((cache.stats().items, cache.stats().evictions), (items as u64, 0), "it has room for all");
        }
        for (what, mut all_ns) in [("growing", growing_ns), ("steady", steady_ns)] {
            all_ns.sort_unstable();
            let (p50, p9999, most) = (all_ns[items / 2], all_ns[items - 1 - items / 10_000], all_ns[items - 1]);
            println!("{evictor:10} {shards:7}  {what:8} {p50:8} {p9999:11} {most:11}");
        }
    }
}
