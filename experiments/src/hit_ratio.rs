//! `experiments hit-ratio`: hit ratios of all evictors on seven workloads.

mod workloads;

use cache::replay::{Rules, clairvoyant, replay};
use cache::{Cache, Config, Evictor};
use clap::Args;

use workloads::{GATES, LRU_MARGIN};

/// Replay the gates' workloads against every evictor; fail if quintain's own evictor misses a gate
#[derive(Args)]
pub(crate) struct HitRatioArgs {
    /// Replay only these gates
    #[arg(value_parser = GATES.map(|gate| gate.name))]
    gates: Vec<String>,
    /// Replay against only this evictor
    #[arg(long)]
    evictor: Option<Evictor>,
    /// Use as many shards as for this number of threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Number of shards
    #[arg(long)]
    shards: Option<usize>,
    /// Seed of the requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also replay against Belady's evictor, by next use and by next use times size, with 20 bytes per item; slow
    #[arg(long)]
    clairvoyant: bool,
}

pub(crate) fn run(args: &HitRatioArgs) -> Result<(), String> {
    let seed = args.seed;
    let chosen = |gate: &&workloads::Gate| args.gates.is_empty() || args.gates.iter().any(|name| name == gate.name);
    let mut failed = Vec::new();
    for gate in GATES.iter().filter(chosen) {
        let rules = Rules::fill(gate.requests / 2);
        println!("{}: {}; {} requests, seed {seed}", gate.name, gate.about, gate.requests);
        println!("  evictor      objects   bytes    items  overhead/item  free   displaced/evicted");
        let mut objects = std::collections::BTreeMap::new();
        for &evictor in Evictor::ALL.iter().filter(|evictor| args.evictor.is_none_or(|only| only == **evictor)) {
            let config = Config { evictor, threads: args.threads, ..Config::new(gate.capacity_bytes) };
            let count = args.shards.unwrap_or(config.shards());
            let cache = Cache::with_shards(config, count).map_err(|error| error.to_string())?;
            let ratio = replay(&cache, gate.requests_of(seed, gate.requests), rules);
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
        if args.clairvoyant {
            for (name, by_size) in [("belady", false), ("by size", true)] {
                let requests = gate.requests_of(seed, gate.requests);
                let ratio = clairvoyant(requests, gate.capacity_bytes, 20, by_size, rules);
                println!("  {name:10} {:9.4} {:8.4}", ratio.objects(), ratio.bytes());
            }
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
