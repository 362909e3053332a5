//! Measures, for each policy on one thread, the time in ns of a get that hits and of a set that evicts.
//! Usage: `cargo run --release -p cache --example speed [-- POLICY...]`. The cache has 10 MiB, keys of 28 bytes and
//! values of 200 bytes. Prints the median of 1,400 rounds of 1,000 operations, including hashing the key and copying
//! the value. Rounds are short so that most are not interrupted.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::hint::black_box;
use std::time::Instant;

use cache::{Cache, Config, Evictor, Meta, Mode};

const ROUNDS: usize = 1_400;
const OPERATIONS: usize = 1_000;

/// Median over rounds of the time per operation in ns. `operation` receives the number of the call.
fn median_ns(mut operation: impl FnMut(usize)) -> f64 {
    let mut rounds_ns = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let start = Instant::now();
        (0..OPERATIONS).for_each(|number| operation(round * OPERATIONS + number));
        rounds_ns.push(start.elapsed().as_nanos() as f64 / OPERATIONS as f64);
    }
    rounds_ns.sort_by(f64::total_cmp);
    rounds_ns[ROUNDS / 2]
}

fn main() {
    let keys: Vec<[u8; 28]> = (0..ROUNDS * OPERATIONS + 100_000)
        .map(|number| format!("{number:028}").into_bytes().try_into().expect("28 digits"))
        .collect();
    let value = [7; 200];
    println!("evictor     get hit  set and evict");
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for evictor in Evictor::ALL {
        if !wanted.is_empty() && !wanted.contains(&evictor.to_string()) {
            continue;
        }
        let cache = Cache::new(Config { evictor, ..Config::new(10 << 20) }).expect("a cache of 10 MiB");
        let set = |key: &[u8; 28]| cache.hold(key).store(Mode::Set, &value, Meta::default(), 0);
        for key in &keys[..20_000] {
            set(key).expect("20,000 items fit");
        }
        let mut into = Vec::with_capacity(200);
        let get_ns = median_ns(|number| {
            let key = &keys[number * 7_919 % 20_000];
            into.clear();
            into.extend_from_slice(cache.hold(key).get(0).expect("it was stored").value);
            black_box(&into);
        });
        for key in &keys[20_000..100_000] {
            let _ = set(key);
        }
        // With the policy `none`, this is the time of a refused store.
        let set_ns = median_ns(|number| {
            let _ = black_box(set(&keys[100_000 + number]));
        });
        println!("{evictor:10} {get_ns:6.0} ns {set_ns:11.0} ns");
    }
}
