//! The metrics that a study can name.

use config::{Invalid, units};
use schemars::JsonSchema;
use serde::Serialize;

/// A number measured in each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Metric {
    /// Name in studies, tables and exports, such as `latency_p99`.
    pub name: &'static str,
    /// Unit of stored values: `1/s`, `ns`, `bytes`, `bytes/s`, or `1` for a pure number.
    pub unit: &'static str,
    /// Whether higher values are better.
    pub higher_is_better: bool,
    /// Heading of the metric's column in tables.
    #[serde(skip)]
    pub heading: &'static str,
    /// Noun for use within a sentence, such as `p99 latency`.
    pub noun: &'static str,
    /// Description in docs/reference/study.md.
    pub text: &'static str,
    /// Short names in flags and conditions. `errors` is the share of failed requests, comparable between all loads.
    #[serde(skip)]
    pub short_names: &'static [&'static str],
    /// Whether values are fractions from 0 to 1, which may be written as percentages.
    #[serde(skip)]
    pub is_share: bool,
}

const HIGHER: bool = true;
const LOWER: bool = false;

/// Every metric, in the order of the tables.
pub const METRICS: &[Metric] = &[
    metric("throughput", "1/s", HIGHER, "throughput", "throughput").text("valid responses per second"),
    time("latency_mean", "mean latency", "mean latency").short(&["mean"]),
    time("latency_p50", "p50", "median latency").short(&["p50"]),
    time("latency_p90", "p90", "p90 latency").short(&["p90"]),
    time("latency_p95", "p95", "p95 latency").short(&["p95"]),
    time("latency_p99", "p99", "p99 latency").short(&["p99"]),
    time("latency_p999", "p99.9", "p99.9 latency").short(&["p99.9", "p999"]),
    metric("transfer", "bytes/s", HIGHER, "transfer", "transfer").text("bytes received per second"),
    time("handshake_mean", "TLS handshake", "mean TLS handshake time"),
    time("slot_wait_p99", "slot wait p99", "p99 wait for a place in flight")
        .text("HTTP/2, open loop: p99 of the time until a connection has a place for a request"),
    bytes("bytes_ahead_mean", "bytes ahead", "bytes ahead of a response")
        .text("HTTP/2: bytes of other responses on the connection before the first byte of a response"),
    bytes("header_bytes_per_request", "header bytes per response", "header bytes per response")
        .text("HTTP/2: encoded heads and trailers per response"),
    share("hit_ratio", HIGHER, "hit ratio", "hit ratio").text("hit ratio (hits / GETs)"),
    share("byte_hit_ratio", HIGHER, "byte hit ratio", "byte hit ratio")
        .text("byte hit ratio (bytes of hits / bytes requested)"),
    share("miss_compulsory", LOWER, "compulsory misses", "compulsory miss ratio")
        .text("compulsory miss ratio (key never stored)"),
    share("miss_capacity", LOWER, "capacity misses", "capacity miss ratio").text("capacity miss ratio (key evicted)"),
    share("miss_invalidation", LOWER, "invalidation misses", "invalidation miss ratio")
        .text("invalidation miss ratio (key deleted)"),
    share("miss_expiry", LOWER, "expiry misses", "expiry miss ratio").text("expiry miss ratio (TTL elapsed)"),
    share("miss_refused", LOWER, "rejection misses", "rejection miss ratio")
        .text("rejection miss ratio (SET was rejected)"),
    bytes("footprint", "footprint", "footprint").text("footprint: bytes of all distinct keys and values requested"),
    metric("refused_sets", "1", LOWER, "rejected SETs", "number of rejected SETs").text("SETs rejected by the cache"),
    metric("fills", "1/s", LOWER, "fills", "fill rate").text("fills per second (SETs after misses)"),
    time("get_latency_p99", "GET hit p99", "p99 GET hit latency").text("p99 GET hit latency (1.6 % resolution)"),
    metric("errors", "1", LOWER, "errors", "number of failed requests").text("failed requests, all kinds"),
    share("error_share", LOWER, "error share", "fraction of failed requests")
        .text("fraction of requests that failed or had waited longer than the timeout at the end")
        .short(&["errors"]),
    time("subject_cpu_per_request", "server CPU per request", "server CPU time per request").short(&["cpu"]),
    time("generator_cpu_per_request", "generator CPU per request", "generator CPU time per request"),
    bytes("subject_rss", "server RSS", "peak server RSS").short(&["rss"]),
    bytes("subject_memory", "server memory", "server memory growth")
        .text("server memory growth (peak RSS minus RSS before load)"),
    time("proxy_cpu_per_request", "proxy CPU per request", "CPU time of all proxies per request"),
    bytes("proxy_rss", "proxy RSS", "peak RSS of all proxies").text("peak RSS of all proxies together"),
    time("proxy_time_p50", "proxy time p50", "median self time of the proxies")
        .text("median self time of the proxies per call"),
    time("proxy_time_p99", "proxy time p99", "p99 self time of the proxies")
        .text("p99 self time of the proxies per call"),
    bytes("client_bytes_per_request", "client bytes per request", "payload per request at the generator")
        .text("payload per request at the generator, both directions"),
    bytes("subject_bytes_per_request", "server bytes per request", "payload per request at the server")
        .text("payload per request at the server, both directions"),
    bytes("m1a_bytes_per_request", "M1a bytes per request", "metadata per call (M1a)")
        .text("metadata per call by the original's formula, no peer address"),
    bytes("m1b_bytes_per_request", "M1b bytes per request", "metadata per call (M1b)")
        .text("metadata per call by the original's formula, with peer address"),
    bytes("m2_bytes_per_request", "M2 bytes per request", "metadata per call (M2)")
        .text("own metadata per call on the wire, with framing"),
    bytes("m3_bytes_per_request", "M3 bytes per request", "extra bytes per call (M3)")
        .text("all bytes between proxies per call, less the original"),
    metric("entries_per_request", "1", LOWER, "entries per request", "new service entries per call"),
    bytes("store_bytes", "store", "store size").text("size of a proxy's store file at the end of the trial"),
];

/// Name, unit and description of each series that is recorded over the requests of a trial.
pub const OVER_REQUESTS: [(&str, &str, &str); 5] = [
    ("latency", "ns", "latency, by window"),
    ("proxy_time", "ns", "self time of the proxies per call"),
    ("proxy_rss", "bytes", "RSS of all proxies"),
    ("proxy_store", "bytes", "store size of a proxy"),
    ("subject_rss", "bytes", "RSS of the server"),
];

type Text = &'static str;

const fn metric(name: Text, unit: Text, higher_is_better: bool, heading: Text, noun: Text) -> Metric {
    Metric { name, unit, higher_is_better, heading, noun, text: noun, short_names: &[], is_share: false }
}

const fn time(name: Text, heading: Text, noun: Text) -> Metric {
    metric(name, "ns", LOWER, heading, noun)
}

const fn bytes(name: Text, heading: Text, noun: Text) -> Metric {
    metric(name, "bytes", LOWER, heading, noun)
}

const fn share(name: Text, higher_is_better: bool, heading: Text, noun: Text) -> Metric {
    Metric { is_share: true, ..metric(name, "1", higher_is_better, heading, noun) }
}

impl Metric {
    const fn text(self, text: &'static str) -> Metric {
        Metric { text, ..self }
    }

    const fn short(self, short_names: &'static [&'static str]) -> Metric {
        Metric { short_names, ..self }
    }

    /// Finds a metric by its full name; `None` if unknown.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Finds a metric by full or short name, ignoring case; `None` if unknown.
    pub fn find(name: &str) -> Option<&'static Metric> {
        let name = name.to_ascii_lowercase();
        let is_short = |metric: &&Metric| metric.short_names.contains(&name.as_str());
        METRICS.iter().find(is_short).or_else(|| Metric::named(&name))
    }

    /// Every name that [`Metric::find`] accepts, short ones first.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        let short = METRICS.iter().flat_map(|metric| metric.short_names).copied();
        short.chain(METRICS.iter().map(|metric| metric.name))
    }

    /// Whether only a run measures the metric, because it describes processes that quintain starts.
    pub fn needs_run(&self) -> bool {
        const OF_PROCESSES: [&str; 8] = ["subject_", "proxy_", "client_", "m1", "m2", "m3", "entries_", "store_"];
        OF_PROCESSES.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// The first short name; the full name if there is none.
    pub fn short_name(&self) -> &'static str {
        self.short_names.first().copied().unwrap_or(self.name)
    }

    /// Parses a value in the metric's unit, such as `5ms`, `64MiB` or `0.1%`. `None` for metrics in other units.
    pub(crate) fn read_value(&self, text: &str) -> Option<Result<f64, Invalid>> {
        Some(match self.unit {
            "ns" => units::duration_ns(text).map(|ns| ns as f64),
            "bytes" => units::bytes(text).map(|bytes| bytes as f64),
            "bytes/s" => units::bytes(text.strip_suffix("/s").unwrap_or(text)).map(|bytes| bytes as f64),
            "1/s" => units::rate_per_s(text),
            _ if self.is_share => units::fraction(text),
            _ => return None,
        })
    }

    pub(crate) fn value_text(&self, value: f64) -> String {
        match self.unit {
            "ns" => time_text(value as u64),
            "bytes" => memory_text(value as u64),
            "bytes/s" => format!("{}/s", memory_text(value as u64)),
            "1/s" => format!("{value}/s"),
            _ => share_text(value),
        }
    }

    /// Whether the metric is the share of failed requests, which is usually 0 in a baseline.
    pub fn is_error_share(&self) -> bool {
        self.name == "error_share"
    }

    /// The noun of the metric called `name`, for use within a sentence; `name` itself if unknown.
    pub fn noun_of(name: &str) -> &str {
        Metric::named(name).map_or(name, |metric| metric.noun)
    }

    /// The column heading of the metric called `name`; `name` itself if unknown.
    pub fn heading_of(name: &str) -> &str {
        Metric::named(name).map_or(name, |metric| metric.heading)
    }
}

/// Formats a time without rounding, in the largest unit in which it is at least 1.
pub fn time_text(ns: u64) -> String {
    let units = [("s", 9usize), ("ms", 6), ("us", 3)];
    for (unit, digits) in units {
        let size = 10u64.pow(digits as u32);
        if ns >= size {
            let rest = format!("{:0digits$}", ns % size);
            let rest = rest.trim_end_matches('0');
            let point = if rest.is_empty() { "" } else { "." };
            return format!("{}{point}{rest}{unit}", ns / size);
        }
    }
    format!("{ns}ns")
}

pub(crate) fn memory_text(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let whole = units.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{}{unit}", bytes / size))
}

pub(crate) fn share_text(share: f64) -> String {
    let percent = format!("{}%", (share * 1e12).round() / 1e10);
    if units::fraction(&percent) == Ok(share) { percent } else { format!("{share}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_short_names() {
        assert_eq!(Metric::find("P99").map(Metric::short_name), Some("p99"));
        assert_eq!(Metric::find("p999").map(Metric::short_name), Some("p99.9"));
        assert_eq!(Metric::find("errors").map(|metric| metric.name), Some("error_share"));
        assert_eq!(Metric::find("hit_ratio").map(Metric::short_name), Some("hit_ratio"));
        assert_eq!(Metric::find("p98"), None);
    }
}
