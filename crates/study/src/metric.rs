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
    /// What stands above its column.
    pub heading: &'static str,
    /// What it is called within a sentence: `p99 latency`.
    pub noun: &'static str,
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
    metric("throughput", "1/s", Better::Higher, "throughput", "throughput", "valid responses per second"),
    metric("latency_mean", "ns", Better::Lower, "mean latency", "mean latency", "mean latency"),
    metric("latency_p50", "ns", Better::Lower, "p50", "median latency", "median latency"),
    metric("latency_p90", "ns", Better::Lower, "p90", "p90 latency", "p90 latency"),
    metric("latency_p95", "ns", Better::Lower, "p95", "p95 latency", "p95 latency"),
    metric("latency_p99", "ns", Better::Lower, "p99", "p99 latency", "p99 latency"),
    metric("latency_p999", "ns", Better::Lower, "p99.9", "p99.9 latency", "p99.9 latency"),
    metric("transfer", "bytes/s", Better::Higher, "transfer", "transfer", "bytes received per second"),
    metric(
        "handshake_mean",
        "ns",
        Better::Lower,
        "TLS handshake",
        "mean TLS handshake time",
        "mean TLS handshake time",
    ),
    metric("hit_ratio", "1", Better::Higher, "hit ratio", "hit ratio", "hit ratio (hits / GETs)"),
    metric(
        "byte_hit_ratio",
        "1",
        Better::Higher,
        "byte hit ratio",
        "byte hit ratio",
        "byte hit ratio (bytes of hits / bytes requested)",
    ),
    metric(
        "miss_compulsory",
        "1",
        Better::Lower,
        "compulsory misses",
        "compulsory miss ratio",
        "compulsory miss ratio (key never stored)",
    ),
    metric(
        "miss_capacity",
        "1",
        Better::Lower,
        "capacity misses",
        "capacity miss ratio",
        "capacity miss ratio (key evicted)",
    ),
    metric(
        "miss_invalidation",
        "1",
        Better::Lower,
        "invalidation misses",
        "invalidation miss ratio",
        "invalidation miss ratio (key deleted)",
    ),
    metric("miss_expiry", "1", Better::Lower, "expiry misses", "expiry miss ratio", "expiry miss ratio (TTL elapsed)"),
    metric(
        "miss_refused",
        "1",
        Better::Lower,
        "rejection misses",
        "rejection miss ratio",
        "rejection miss ratio (SET was rejected)",
    ),
    metric(
        "footprint",
        "bytes",
        Better::Lower,
        "footprint",
        "footprint",
        "footprint: bytes of all distinct keys and values requested",
    ),
    metric(
        "refused_sets",
        "1",
        Better::Lower,
        "rejected SETs",
        "number of rejected SETs",
        "SETs rejected by the \
                                                                                            cache",
    ),
    metric("fills", "1/s", Better::Lower, "fills", "fill rate", "fills per second (SETs after misses)"),
    metric(
        "get_latency_p99",
        "ns",
        Better::Lower,
        "GET hit p99",
        "p99 GET hit latency",
        "p99 GET hit latency (1.6 % resolution)",
    ),
    metric("errors", "1", Better::Lower, "errors", "number of failed requests", "failed requests, all kinds"),
    metric(
        "error_share",
        "1",
        Better::Lower,
        "error share",
        "fraction of failed requests",
        "fraction of requests that failed or had waited longer than the timeout at the end",
    ),
    metric(
        "subject_cpu_per_request",
        "ns",
        Better::Lower,
        "server CPU per request",
        "server CPU time per request",
        "server CPU time per request",
    ),
    metric(
        "generator_cpu_per_request",
        "ns",
        Better::Lower,
        "generator CPU per request",
        "generator CPU time per request",
        "generator CPU time per request",
    ),
    metric("subject_rss", "bytes", Better::Lower, "server RSS", "peak server RSS", "peak server RSS"),
    metric(
        "subject_memory",
        "bytes",
        Better::Lower,
        "server memory",
        "server memory growth",
        "server memory growth (peak RSS minus RSS before load)",
    ),
    metric(
        "proxy_cpu_per_request",
        "ns",
        Better::Lower,
        "proxy CPU per request",
        "CPU time of all proxies per request",
        "CPU time of all proxies per request",
    ),
    metric(
        "proxy_rss",
        "bytes",
        Better::Lower,
        "proxy RSS",
        "peak RSS of all proxies",
        "peak RSS of all proxies together",
    ),
    metric(
        "proxy_time_p50",
        "ns",
        Better::Lower,
        "proxy time p50",
        "median self time of the proxies",
        "median self time of the proxies per call",
    ),
    metric(
        "proxy_time_p99",
        "ns",
        Better::Lower,
        "proxy time p99",
        "p99 self time of the proxies",
        "p99 self time of the proxies per call",
    ),
    metric(
        "client_bytes_per_request",
        "bytes",
        Better::Lower,
        "client bytes per request",
        "payload per request at the generator",
        "payload per request at the generator, both directions",
    ),
    metric(
        "subject_bytes_per_request",
        "bytes",
        Better::Lower,
        "server bytes per request",
        "payload per request at the server",
        "payload per request at the server, both directions",
    ),
    metric(
        "m1a_bytes_per_request",
        "bytes",
        Better::Lower,
        "M1a bytes per request",
        "metadata per call (M1a)",
        "metadata per call by the original's formula, no peer address",
    ),
    metric(
        "m1b_bytes_per_request",
        "bytes",
        Better::Lower,
        "M1b bytes per request",
        "metadata per call (M1b)",
        "metadata per call by the original's formula, with peer address",
    ),
    metric(
        "m2_bytes_per_request",
        "bytes",
        Better::Lower,
        "M2 bytes per request",
        "metadata per call (M2)",
        "own metadata per call on the wire, with framing",
    ),
    metric(
        "m3_bytes_per_request",
        "bytes",
        Better::Lower,
        "M3 bytes per request",
        "extra bytes per call (M3)",
        "all bytes between proxies per call, less the original",
    ),
    metric(
        "entries_per_request",
        "1",
        Better::Lower,
        "entries per request",
        "new service entries per call",
        "new service entries per call",
    ),
    metric(
        "store_bytes",
        "bytes",
        Better::Lower,
        "store",
        "store size",
        "size of a proxy's store file at the end of the trial",
    ),
];

/// Short names that flags and conditions take beside the full ones. `errors` is the share, which compares loads of any length.
pub const SHORT_NAMES: [(&str, &str); 10] = [
    ("mean", "latency_mean"),
    ("p50", "latency_p50"),
    ("p90", "latency_p90"),
    ("p95", "latency_p95"),
    ("p99", "latency_p99"),
    ("p99.9", "latency_p999"),
    ("p999", "latency_p999"),
    ("errors", "error_share"),
    ("cpu", "subject_cpu_per_request"),
    ("rss", "subject_rss"),
];

/// Metrics that are fractions between 0 and 1, so that a percentage is a value of them.
const SHARES: [&str; 8] = [
    "error_share",
    "hit_ratio",
    "byte_hit_ratio",
    "miss_compulsory",
    "miss_capacity",
    "miss_invalidation",
    "miss_expiry",
    "miss_refused",
];

/// What may be looked at over the requests of a trial: name, unit, and what it is in words.
pub const OVER_REQUESTS: [(&str, &str, &str); 5] = [
    ("latency", "ns", "latency, by window"),
    ("proxy_time", "ns", "self time of the proxies per call"),
    ("proxy_rss", "bytes", "RSS of all proxies"),
    ("proxy_store", "bytes", "store size of a proxy"),
    ("subject_rss", "bytes", "RSS of the server"),
];

const fn metric(
    name: &'static str,
    unit: &'static str,
    better: Better,
    heading: &'static str,
    noun: &'static str,
    text: &'static str,
) -> Metric {
    Metric { name, unit, better, heading, noun, text }
}

impl Metric {
    /// The metric of that name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The metric of that full or short name, in any case.
    pub fn find(name: &str) -> Option<&'static Metric> {
        let name = name.to_ascii_lowercase();
        let full = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name.as_str(), |(_, full)| full);
        Metric::named(full)
    }

    /// Every name that [`Metric::find`] knows, short ones first.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        SHORT_NAMES.iter().map(|(short, _)| *short).chain(METRICS.iter().map(|metric| metric.name))
    }

    /// Its short name; the full one if there is none.
    pub fn short(&self) -> &'static str {
        SHORT_NAMES.iter().find(|(_, full)| *full == self.name).map_or(self.name, |(short, _)| short)
    }

    /// Whether it is a fraction between 0 and 1.
    pub fn is_share(&self) -> bool {
        SHARES.contains(&self.name)
    }

    /// Whether it is the share of failed requests, of which a baseline has usually none.
    pub fn is_error_share(&self) -> bool {
        self.name == "error_share"
    }

    /// What the metric of that name is called within a sentence; the name itself where there is no such metric.
    pub fn noun_of(name: &str) -> &str {
        Metric::named(name).map_or(name, |metric| metric.noun)
    }

    /// What stands above the column of the metric of that name; the name itself where there is no such metric.
    pub fn heading_of(name: &str) -> &str {
        Metric::named(name).map_or(name, |metric| metric.heading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_those_of_metrics() {
        for (short, full) in SHORT_NAMES {
            assert_eq!(Metric::find(short).map(|metric| metric.name), Some(full));
        }
        assert!(SHARES.iter().all(|name| Metric::named(name).is_some_and(|metric| metric.unit == "1")));
        assert_eq!(Metric::find("P99").map(Metric::short), Some("p99"));
        assert_eq!(Metric::find("hit_ratio").map(Metric::short), Some("hit_ratio"));
        assert_eq!(Metric::find("p98"), None);
    }
}
