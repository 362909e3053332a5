//! What a cache made of its workload: hit ratios, why GETs missed, operations by what they came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use study::record::{CacheCounts, CacheMeasurement, Hello, Measurement, MissCauses, TraceReplay};

use crate::load::{SpreadNs, spread};
use crate::number::{percent, quantity};

/// A cache in the report of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What connections spoke that asked for RESP3; `null`: none asked.
    pub hello: Option<Hello>,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        hello: cache.hello,
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

/// What was replayed of a trace, in words.
fn replayed(trace: &TraceReplay) -> String {
    let end = if trace.ended { "to its end" } else { "not to its end" };
    let mut words = format!("{} operations of {}, {end}", trace.operations, trace.file);
    if let Some(mean) = trace.key_bytes_mean {
        words += &format!("; keys of {mean:.1} B on average");
        if let Some(recorded) = trace.key_bytes_recorded_mean.filter(|_| trace.keys_lengthened > 0) {
            words += &format!(", {recorded:.1} B as recorded: {} were too short to be unlike", trace.keys_lengthened);
        }
    }
    if trace.stalled_ns > 0 {
        words += &format!("; {} late because it was read too slowly", quantity(trace.stalled_ns as f64, "ns"));
    }
    words
}

/// For a person: names and texts of lines.
pub(crate) fn lines(cache: &CacheReport) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let counts = &cache.counts;
    let gets = counts.hits.saturating_add(counts.misses);
    let ratio = |ratio: Option<f64>| ratio.map_or("none".to_owned(), |ratio| format!("{ratio:.4}"));
    lines.push((
        "hit ratio",
        format!("{} of {gets} GETs, {} of their bytes", ratio(counts.hit_ratio()), ratio(cache.byte_hit_ratio)),
    ));
    if counts.misses > 0 {
        let causes = counts.causes.named().into_iter().filter(|(_, count)| *count > 0);
        let words = causes.map(|(name, count)| format!("{count} {name} ({})", percent(count as f64 / gets as f64)));
        lines.push(("  misses", words.collect::<Vec<_>>().join(", ")));
    }
    if let Some(mix) = cache.hit_ratio_of_mix {
        let words = "is what the mix tends to without fill, whatever the cache: set / (set + delete)";
        lines.push(("  of the mix", format!("{mix:.4} {words}")));
    }
    if counts.refused_sets > 0 {
        lines.push((
            "  refused",
            format!("{} SETs: the cache is full and evicts nothing for them", counts.refused_sets),
        ));
    }
    let limit = match (cache.limit_bytes, cache.footprint_over_limit) {
        (Some(limit), Some(over)) => {
            format!(", {over:.2} of the limit that the server tells, {}", quantity(limit as f64, "bytes"))
        }
        _ => String::new(),
    };
    lines.push((
        "footprint",
        format!(
            "{} keys, {} with their values{limit}",
            cache.footprint_keys,
            quantity(cache.footprint_bytes as f64, "bytes")
        ),
    ));
    if let Some(Hello { accepted, refused }) = cache.hello {
        let fallen = if refused > 0 { format!("; RESP2 on {refused}, which refused HELLO 3") } else { String::new() };
        lines.push(("spoken", format!("RESP3 on {accepted} connections{fallen}")));
    }
    if let Some(trace) = &cache.trace {
        lines.push(("trace", replayed(trace)));
    }
    for (key, spread) in &cache.operations {
        let name = match key.as_str() {
            "get_hit" => "  get hit",
            "get_miss" => "  get miss",
            "set" => "  set",
            "delete" => "  delete",
            "fill" => "  fill",
            _ => "  rewrite",
        };
        let quantile = |value: Option<f64>| value.map_or("not enough".to_owned(), |ns| quantity(ns, "ns"));
        lines.push((name, format!("{}, p50 {}, p99 {}", spread.count, quantile(spread.p50), quantile(spread.p99))));
    }
    if counts.fills + counts.rewrites > 0 {
        let words = "fills and rewrites are caused by answers: in no timetable, and not among the requests";
        lines.push(("", words.to_owned()));
    }
    if let Some(words) = &cache.steadiness {
        lines.push(("warm-up", words.clone()));
    }
    lines
}
