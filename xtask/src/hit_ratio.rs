//! `cargo xtask hit-ratio`: the hit ratios of all evictors on the gates' workloads.

mod gates;

use cache::replay::{HitRatio, clairvoyant, replay};
use cache::{Cache, Config, Evictor};

use gates::{GATES, Gate, LRU_MARGIN};

const HELP: &str = "\
The hit ratios of all evictors on the gates' workloads; fails where quintain's own misses its gate.

Usage: cargo xtask hit-ratio [GATE ...] [--evictor NAME] [--threads N] [--seed N] [--clairvoyant]

  GATE            H1 to H7; all of them unless named
  --evictor NAME  only this one
  --threads N     shards as for so many threads [default: 1]
  --shards N      so many shards
  --seed N        seed of the requests [default: 1]
  --clairvoyant   also Belady's, by next use and by next use times size, with 20 bytes an item; slow";

pub fn run(arguments: &[String]) -> Result<(), String> {
    let mut gates: Vec<Gate> = Vec::new();
    let mut evictors = Evictor::ALL.to_vec();
    let (mut threads, mut shards, mut seed, mut is_clairvoyant) = (1, None, 1, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("`{argument}` wants a value\n\n{HELP}"));
        match argument.as_str() {
            "--help" => {
                println!("{HELP}");
                return Ok(());
            }
            "--evictor" => evictors = vec![value()?.parse().map_err(|error| format!("{error}"))?],
            "--threads" => threads = value()?.parse().map_err(|error| format!("`--threads`: {error}"))?,
            "--shards" => shards = Some(value()?.parse().map_err(|error| format!("`--shards`: {error}"))?),
            "--seed" => seed = value()?.parse().map_err(|error| format!("`--seed`: {error}"))?,
            "--clairvoyant" => is_clairvoyant = true,
            name => gates.push(
                *GATES
                    .iter()
                    .find(|gate| gate.name == name)
                    .ok_or(format!("unknown gate or flag `{name}`\n\n{HELP}"))?,
            ),
        }
    }
    if gates.is_empty() {
        gates = GATES.to_vec();
    }
    let mut failed = Vec::new();
    for gate in gates {
        println!("{}: {}; {} requests, seed {seed}", gate.name, gate.about, gate.requests);
        println!("  evictor      objects   bytes    items  overhead/item  free   displaced/evicted");
        let mut objects = std::collections::BTreeMap::new();
        for &evictor in &evictors {
            let config = Config { evictor, threads, ..Config::new(gate.capacity_bytes) };
            let count = shards.unwrap_or(config.shards());
            let cache = Cache::with_shards(config, count).map_err(|error| error.to_string())?;
            let ratio = replay(&cache, gate.requests_of(seed, gate.requests), gate.requests / 2);
            let stats = cache.stats();
            println!(
                "  {evictor:10} {:9.4} {:8.4} {:8} {:11.1} B {:6.2} %  {}/{} moved {}",
                ratio.objects(),
                ratio.bytes(),
                stats.items,
                stats.overhead_bytes_per_item().unwrap_or(0.0),
                100.0 * stats.free_bytes as f64 / stats.memory_bytes() as f64,
                stats.displaced,
                stats.evictions,
                stats.moved
            );
            objects.insert(evictor.name(), ratio.objects());
        }
        if is_clairvoyant {
            let requests = gate.requests_of(seed, gate.requests).collect::<Vec<_>>();
            let line =
                |name: &str, ratio: HitRatio| println!("  {name:10} {:9.4} {:8.4}", ratio.objects(), ratio.bytes());
            line("belady", clairvoyant(&requests, gate.capacity_bytes, 20, false, gate.requests / 2));
            line("by size", clairvoyant(&requests, gate.capacity_bytes, 20, true, gate.requests / 2));
        }
        let least = if gate.least > 0.0 { Some(gate.least) } else { objects.get("lru").map(|lru| lru - LRU_MARGIN) };
        if let (Some(&ours), Some(least)) = (objects.get("density"), least) {
            println!("  gate {least:.4}: {}", if ours >= least { "reached" } else { "missed" });
            if ours < least {
                failed.push(format!("{}: {ours:.4}, the gate is {least:.4}", gate.name));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}
