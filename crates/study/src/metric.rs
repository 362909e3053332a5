//! What is looked at in a trial: the metrics that a study may name.

/// One number that each trial has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in studies, tables and exports.
    pub name: &'static str,
    /// Its unit as stored: `1/s`, `ns`, `bytes`, `bytes/s`, `1`.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What it is, for a person.
    pub text: &'static str,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The more the better.
    Higher,
    /// The less the better.
    Lower,
}

/// Every metric, in the order of the tables.
pub const METRICS: &[Metric] = &[
    metric("throughput", "1/s", Better::Higher, "valid answers a second"),
    metric("latency_mean", "ns", Better::Lower, "mean latency"),
    metric("latency_p50", "ns", Better::Lower, "median latency"),
    metric("latency_p90", "ns", Better::Lower, "p90 of the latency"),
    metric("latency_p95", "ns", Better::Lower, "p95 of the latency"),
    metric("latency_p99", "ns", Better::Lower, "p99 of the latency"),
    metric("latency_p999", "ns", Better::Lower, "p99.9 of the latency"),
    metric("transfer", "bytes/s", Better::Higher, "bytes received a second"),
    metric("handshake_mean", "ns", Better::Lower, "mean time of a TLS handshake"),
    metric("hit_ratio", "1", Better::Higher, "hits over GETs of a cache"),
    metric("byte_hit_ratio", "1", Better::Higher, "bytes of hits over bytes asked for of a cache"),
    metric("miss_compulsory", "1", Better::Lower, "GETs before anything was stored under their key, over GETs"),
    metric("miss_capacity", "1", Better::Lower, "GETs of what the cache had let go, over GETs"),
    metric("miss_invalidation", "1", Better::Lower, "GETs of what was deleted, over GETs"),
    metric("miss_expiry", "1", Better::Lower, "GETs of what had lived its time, over GETs"),
    metric("miss_refused", "1", Better::Lower, "GETs of what the cache had refused to store, over GETs"),
    metric("footprint", "bytes", Better::Lower, "keys and values that a cache was asked for, each once"),
    metric("refused_sets", "1", Better::Lower, "SETs that the cache refused"),
    metric("fills", "1/s", Better::Lower, "SETs that misses caused, a second"),
    metric("get_latency_p99", "ns", Better::Lower, "p99 of the service time of GETs that hit, coarse"),
    metric("errors", "1", Better::Lower, "requests that went wrong, of any kind"),
    metric(
        "error_share",
        "1",
        Better::Lower,
        "share of requests that went wrong, or had waited longer than the timeout when it ended",
    ),
    metric("subject_cpu_per_request", "ns", Better::Lower, "CPU time of the subject a request"),
    metric("generator_cpu_per_request", "ns", Better::Lower, "CPU time of the generator a request"),
    metric("subject_rss", "bytes", Better::Lower, "peak resident set of the subject"),
    metric("subject_memory", "bytes", Better::Lower, "memory of the subject beyond what it had before the load"),
    metric("middle_cpu_per_request", "ns", Better::Lower, "CPU time of all middles a request"),
    metric("middle_rss", "bytes", Better::Lower, "peak resident set of all middles together"),
    metric("middle_time_p50", "ns", Better::Lower, "median of the time that middles took of a call for themselves"),
    metric("middle_time_p99", "ns", Better::Lower, "p99 of the time that middles took of a call for themselves"),
    metric("client_bytes_per_request", "bytes", Better::Lower, "payload a request at the generator, both ways"),
    metric("subject_bytes_per_request", "bytes", Better::Lower, "payload a request at the subject, both ways"),
    metric(
        "m1a_bytes_per_request",
        "bytes",
        Better::Lower,
        "metadata a call by the original's formula, no peer address",
    ),
    metric(
        "m1b_bytes_per_request",
        "bytes",
        Better::Lower,
        "metadata a call by the original's formula, with peer address",
    ),
    metric("m2_bytes_per_request", "bytes", Better::Lower, "own metadata on the wire a call, with its framing"),
    metric(
        "m3_bytes_per_request",
        "bytes",
        Better::Lower,
        "all that is sent between middles a call, less the original",
    ),
    metric("entries_per_request", "1", Better::Lower, "new service entries a call"),
    metric("store_bytes", "bytes", Better::Lower, "what is in the store of a middle at the end"),
];

/// What may be looked at over the requests of a trial: name, unit, and what it is in words.
pub const OVER_REQUESTS: [(&str, &str, &str); 5] = [
    ("latency", "ns", "latency, by window"),
    ("middle_time", "ns", "time that middles take of a call for themselves"),
    ("middle_rss", "bytes", "resident set of all middles"),
    ("middle_store", "bytes", "store of a middle"),
    ("subject_rss", "bytes", "resident set of the subject"),
];

const fn metric(name: &'static str, unit: &'static str, better: Better, text: &'static str) -> Metric {
    Metric { name, unit, better, text }
}

impl Metric {
    /// The metric of that name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }
}
