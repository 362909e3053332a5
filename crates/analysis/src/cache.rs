//! What a cache made of its workload: hit ratios, why GETs missed, operations by what they came to.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::{CacheCounts, CacheMeasurement, Measurement, MissCauses, TraceReplay};

use crate::duration_summary::{SpreadNs, spread};

/// A cache in the report of one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheReport {
    /// Bytes of hits over bytes asked for; `null` where nothing was.
    pub byte_hit_ratio: Option<f64>,
    /// What was answered while measured.
    pub counts: CacheCounts,
    /// Misses by cause as shares of GETs; `null` without a GET.
    pub miss_shares: Option<MissShares>,
    /// The same counts before measuring began.
    pub warmup: CacheCounts,
    /// Distinct keys asked for, from the start of the load.
    pub footprint_keys: u64,
    /// Bytes of these keys and their values.
    pub footprint_bytes: u64,
    /// What the server said its limit is, bytes of its own accounting.
    pub limit_bytes: Option<u64>,
    /// Footprint over limit; above 1 the cache cannot hold all.
    pub footprint_over_limit: Option<f64>,
    /// The hit ratio that the mix of operations decides by itself, however large the cache; `null`: it does not.
    pub hit_ratio_of_mix: Option<f64>,
    /// Whether the hit ratio had come to rest before measuring, in words; `null`: another rule of warm-up.
    pub steadiness: Option<String>,
    /// The trace that was replayed; `null`: the workload was drawn.
    pub trace: Option<TraceReplay>,
    /// Length of a window of the transient, s.
    pub transient_window_s: f64,
    /// The hit ratio in each window of the warm-up; `null` in one without a GET.
    pub transient: Vec<Option<f64>>,
    /// Operations with their service times, ns: `get_hit`, `get_miss`, `set`, `delete`, `fill`, `rewrite`; those that there were.
    pub operations: std::collections::BTreeMap<String, SpreadNs>,
}

/// Misses by cause, over GETs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissShares {
    /// Nothing was ever stored under the key.
    pub compulsory: f64,
    /// The cache had let go of it.
    pub capacity: f64,
    /// It was deleted.
    pub invalidation: f64,
    /// It had lived its time.
    pub expiry: f64,
    /// The cache had refused to store it.
    pub refused: f64,
}

pub(crate) fn report(cache: &CacheMeasurement) -> CacheReport {
    let counts = cache.counts;
    let gets = counts.hits.saturating_add(counts.misses) as f64;
    let share = |count: u64| count as f64 / gets;
    let MissCauses { compulsory, capacity, invalidation, expiry, refused } = counts.causes;
    let operations = classes(cache).into_iter().filter(|(_, histogram)| histogram.count > 0);
    CacheReport {
        byte_hit_ratio: counts.byte_hit_ratio(),
        counts,
        miss_shares: (gets > 0.0).then(|| MissShares {
            compulsory: share(compulsory),
            capacity: share(capacity),
            invalidation: share(invalidation),
            expiry: share(expiry),
            refused: share(refused),
        }),
        warmup: cache.warmup,
        footprint_keys: cache.footprint_keys,
        footprint_bytes: cache.footprint_bytes,
        limit_bytes: cache.limit_bytes,
        footprint_over_limit: cache
            .limit_bytes
            .filter(|limit| *limit > 0)
            .map(|limit| cache.footprint_bytes as f64 / limit as f64),
        hit_ratio_of_mix: cache.hit_ratio_of_mix.filter(|ratio| ratio.is_finite()),
        steadiness: cache.steadiness.clone(),
        trace: cache.trace.clone(),
        transient_window_s: cache.transient_window_ns as f64 / 1e9,
        transient: cache.transient.iter().map(|&(hits, gets)| (gets > 0).then(|| hits as f64 / gets as f64)).collect(),
        operations: operations.map(|(name, histogram)| (name.to_owned(), spread(histogram))).collect(),
    }
}

/// Service times of what misses and reads of read-modify-write have caused, summed up, ns, and how many there were: they are in
/// flight, and no requests.
pub(crate) fn caused(measurement: &Measurement) -> (f64, u64) {
    let cache = measurement.cache.as_ref();
    cache.map_or((0.0, 0), |cache| (cache.fill.sum + cache.rewrite.sum, cache.fill.count + cache.rewrite.count))
}

fn classes(cache: &CacheMeasurement) -> [(&'static str, &study::record::Histogram); 6] {
    [
        ("get_hit", &cache.get_hit),
        ("get_miss", &cache.get_miss),
        ("set", &cache.set),
        ("delete", &cache.delete),
        ("fill", &cache.fill),
        ("rewrite", &cache.rewrite),
    ]
}
