//! Hits and misses of a cache in the report of one load.

use schemars::JsonSchema;
use serde::Serialize;
use study::record::{CacheCounts, CacheMeasurement, Measurement, MissCauses, TraceReplay};

use crate::load_report_parts::{SpreadNs, spread};

/// Cache results of one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheReport {
    /// Bytes of hits per requested byte; `null` if no bytes were requested.
    pub byte_hit_ratio: Option<f64>,
    /// Counts of operations while measuring.
    pub counts: CacheCounts,
    /// Misses by cause as shares of GETs; `null` without GETs.
    pub miss_shares: Option<MissShares>,
    /// Counts of operations during the warm-up.
    pub warmup: CacheCounts,
    /// Number of distinct keys requested since the start of the load.
    pub footprint_keys: u64,
    /// Bytes of the distinct keys and their values.
    pub footprint_bytes: u64,
    /// Memory limit that the server reported, bytes by its own accounting; `null` if unknown.
    pub limit_bytes: Option<u64>,
    /// Footprint divided by memory limit; above 1, the cache cannot hold all items. `null` if the limit is unknown.
    pub footprint_over_limit: Option<f64>,
    /// Hit ratio that the mix of operations implies for a cache of any size; `null` if the mix does not imply one.
    pub hit_ratio_of_mix: Option<f64>,
    /// Seconds until the hit ratio was steady, or why it was not, in words; `null` for other warm-up rules.
    pub steadiness: Option<String>,
    /// The trace that was replayed; `null` if the workload was sampled.
    pub trace: Option<TraceReplay>,
    /// Length of a window of `transient`, s.
    pub transient_window_s: f64,
    /// Hit ratio in each window of the warm-up; `null` in a window without GETs.
    pub transient: Vec<Option<f64>>,
    /// Service times per operation, ns: `get_hit`, `get_miss`, `set`, `delete`, `fill` and `rewrite`, if any occurred.
    pub operations: std::collections::BTreeMap<String, SpreadNs>,
}

/// Misses by cause, as fractions of GETs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MissShares {
    /// Misses because the key was never stored.
    pub compulsory: f64,
    /// Misses because the cache had evicted the key.
    pub capacity: f64,
    /// Misses because the key had been deleted.
    pub invalidation: f64,
    /// Misses because the key had expired.
    pub expiry: f64,
    /// Misses because the cache had refused to store the value.
    pub refused: f64,
}

pub(crate) fn report(cache: &CacheMeasurement) -> CacheReport {
    let counts = cache.counts;
    let gets = counts.hits.saturating_add(counts.misses) as f64;
    let share = |count: u64| count as f64 / gets;
    let limit = cache.limit_bytes.filter(|limit| *limit > 0);
    let MissCauses { compulsory, capacity, invalidation, expiry, refused } = counts.causes;
    let CacheMeasurement { get_hit, get_miss, set, delete, fill, rewrite, .. } = cache;
    let classes = [("get_hit", get_hit), ("get_miss", get_miss), ("set", set), ("delete", delete), ("fill", fill)];
    let classes = classes.into_iter().chain([("rewrite", rewrite)]);
    let operations = classes.filter(|(_, histogram)| histogram.count > 0);
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
        footprint_over_limit: limit.map(|limit| cache.footprint_bytes as f64 / limit as f64),
        hit_ratio_of_mix: cache.hit_ratio_of_mix.filter(|ratio| ratio.is_finite()),
        steadiness: cache.steadiness.clone(),
        trace: cache.trace.clone(),
        transient_window_s: cache.transient_window_ns as f64 / 1e9,
        transient: cache.transient.iter().map(|&(hits, gets)| (gets > 0).then(|| hits as f64 / gets as f64)).collect(),
        operations: operations.map(|(name, histogram)| (name.to_owned(), spread(histogram))).collect(),
    }
}

/// Total service time, ns, and number of fills and rewrites, which are in flight but do not count as requests.
pub(crate) fn caused(measurement: &Measurement) -> (f64, u64) {
    let cache = measurement.cache.as_ref();
    cache.map_or((0.0, 0), |cache| (cache.fill.sum + cache.rewrite.sum, cache.fill.count + cache.rewrite.count))
}
