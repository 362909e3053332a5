//! Counters and duration buckets of an adapter, as text for Prometheus.

use std::fmt;

use config::printable;
use contract::monitor::{Counts, Tallies, VERDICTS};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::unchecked_and_refusal_reasons::{UNCHECKED, Unchecked};

/// The reason why a call was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    Unlisted,
    /// The body exceeds `limits.body`.
    Size,
    /// `limits.bodies` was used up.
    Memory,
    /// The body did not arrive completely in time, or never ends.
    Slow,
    Unreadable,
    Sample,
    Encrypted,
    Failed,
    /// Another adapter responded instead of its service.
    Peer,
}

impl Skip {
    /// Returns the reason to reject a message that could not be read completely.
    pub(crate) fn unread(self) -> Unchecked {
        match self {
            Skip::Slow => Unchecked::Slow,
            Skip::Memory => Unchecked::Memory,
            _ => Unchecked::Size,
        }
    }
}

/// Names of [`Skip`] in metrics and in the call log, in the order of its variants.
pub(crate) const SKIPS: [&str; Skip::Peer as usize + 1] =
    ["unlisted", "size", "memory", "slow", "unreadable", "sample", "encrypted", "failed", "peer"];

/// Upper bounds of the histogram of own time, in µs.
const BOUNDS_US: [u64; 16] = [2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 150, 250, 500, 1_000, 10_000, 100_000];

/// Counters of an adapter. Each is exact, but together they are not a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) calls: Counter,
    pub(crate) refused_calls: Counter,
    pub(crate) connections: Counter,
    pub(crate) connections_now: Gauge,
    pub(crate) connections_over: Counter,
    pub(crate) upstream_failed: Counter,
    pub(crate) peers_failed: Counter,
    pub(crate) timeouts: Counter,
    /// Metadata rejected because it was unreadable or its sender was not allowed to send any.
    pub(crate) metadata_refused: Counter,
    pub(crate) dials_refused: Counter,
    /// Bodies that exceed `limits.body` once decoded.
    pub(crate) decoded_over: Counter,
    /// Requested endpoints that got no listener because of `limits.listeners`.
    pub(crate) listeners_over: Counter,
    /// Learned endpoints that cannot be found by URL, because there was no room for their routes.
    pub(crate) routes_over: Counter,
    pub(crate) metadata_bytes: Counter,
    pub(crate) reports: Counter,
    pub(crate) reports_left_out: Counter,
    pub(crate) panics: Counter,
    pub(crate) store_dropped: Counter,
    pub(crate) store_written: Counter,
    pub(crate) store_bytes: Gauge,
    pub(crate) store_file_bytes: Gauge,
    skipped: [Counter; SKIPS.len()],
    refused_unchecked: [Counter; UNCHECKED.len()],
    own: [Counter; BOUNDS_US.len() + 1],
    own_sum_ns: Counter,
}

/// Counts an event and returns whether to report it. To avoid a flood, only counts that are powers of two are reported.
pub(crate) fn is_notable(counter: &Counter) -> bool {
    let before = counter.inc();
    before == 0 || before.is_power_of_two()
}

impl Metrics {
    pub(crate) fn skip(&self, skip: Skip) {
        self.skipped[skip as usize].inc();
    }

    pub(crate) fn refuse(&self, why: Unchecked) {
        self.refused_calls.inc();
        self.refused_unchecked[why as usize].inc();
    }

    pub(crate) fn call(&self, own_ns: u64) {
        self.calls.inc();
        let at = BOUNDS_US.iter().position(|bound| own_ns <= bound * 1_000).unwrap_or(BOUNDS_US.len());
        self.own[at].inc();
        self.own_sum_ns.inc_by(own_ns);
    }

    /// Formats all metrics as text. Source: OpenMetrics 1.0.0, which Prometheus reads.
    pub(crate) fn text(&self, counts: Counts, tallies: &Tallies) -> String {
        // The registry ends each help text with a full stop.
        let mut to = Registry::with_prefix("quintain_adapter");
        let label = |name: &'static str, value: &str| (name, printable::line(value).into_owned());
        let all = VERDICTS.into_iter().zip(tallies.total());
        let all = all.map(|(verdict, count)| (vec![label("verdict", verdict)], count));
        let by_clause = tallies.clauses.iter().flat_map(|((operation, clause), tally)| {
            VERDICTS.into_iter().zip(*tally).map(|(verdict, count)| {
                (vec![label("operation", operation), label("clause", clause), label("verdict", verdict)], count)
            })
        });
        let blamed = tallies.blamed.iter().map(|((operation, clause, blamed), count)| {
            (vec![label("operation", operation), label("clause", clause), label("blamed", blamed)], *count)
        });
        let by_reason = |reason, count: &Counter| (vec![label("reason", reason)], count.get());
        let skipped = SKIPS.iter().zip(&self.skipped).map(|(name, count)| by_reason(name, count));
        let skipped = skipped.chain([(vec![label("reason", "conflict")], counts.bypassed)]);
        let refused = UNCHECKED.iter().zip(&self.refused_unchecked);
        let refused = refused.map(|((name, ..), count)| by_reason(name, count));
        let own_s = BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let own_s = own_s.zip(self.own.iter().map(Counter::get)).collect();
        to.register("calls", "Calls forwarded", self.calls.clone());
        to.register("verdicts", "Clause verdicts", Rows(all.collect()));
        to.register("clause_verdicts", "Verdicts by clause", Rows(by_clause.collect()));
        to.register("blamed", "Failed clauses by blamed party", Rows(blamed.collect()));
        to.register("unchecked", "Calls and tunnels not checked", Rows(skipped.collect()));
        let help = "Calls and tunnels refused because of `enforce`";
        to.register("refused_calls", help, self.refused_calls.clone());
        let help = "Calls and tunnels refused because they could not be checked";
        to.register("refused_unchecked", help, Rows(refused.collect()));
        to.register("connections", "Connections accepted", self.connections.clone());
        to.register("connections_open", "Open connections", self.connections_now.clone());
        let help = "Connections that waited for another one to close";
        to.register("connections_over", help, self.connections_over.clone());
        to.register("upstream_failed", "Services that could not be reached", self.upstream_failed.clone());
        let help = "Adapters that could not be reached; their services were called without metadata";
        to.register("peers_failed", help, self.peers_failed.clone());
        to.register("timeouts", "Timeouts", self.timeouts.clone());
        let metadata_refused = self.metadata_refused.get() + counts.refused;
        to.register("metadata_refused", "Metadata rejected", ConstCounter::new(metadata_refused));
        let help = "Connections not made because no rule in `allow` matches";
        to.register("dials_refused", help, self.dials_refused.clone());
        to.register("decoded_over", "Bodies over `limits.body` when decoded", self.decoded_over.clone());
        let help = "Endpoint lookups resolved to the endpoint itself because `limits.listeners` is reached";
        to.register("listeners_over", help, self.listeners_over.clone());
        let help = "Learned endpoints not checked because too many are known";
        to.register("routes_over", help, self.routes_over.clone());
        let help = "Bytes of metadata sent to and received from other adapters";
        to.register_with_unit("metadata", help, Unit::Bytes, self.metadata_bytes.clone());
        to.register("reports", "Reports written", self.reports.clone());
        let help = "Reports suppressed as repeats or by the rate limit";
        to.register("reports_left_out", help, self.reports_left_out.clone());
        to.register("entries", "New service entries", ConstCounter::new(counts.entries));
        let help = "Service entries that left the store, expired, were not written, or had no room for their names";
        to.register("entries_forgotten", help, ConstCounter::new(counts.forgotten));
        let help = "Service entries written to the store's file, counted again each time one changes";
        to.register("store_written", help, self.store_written.clone());
        let help = "Service entries not written because the store was behind";
        to.register("store_dropped", help, self.store_dropped.clone());
        let help = "Keys, entries and names in the store, including those waiting to be written";
        to.register_with_unit("store", help, Unit::Bytes, self.store_bytes.clone());
        to.register_with_unit("store_file", "Size of the store's file", Unit::Bytes, self.store_file_bytes.clone());
        to.register("panics", "Internal panics caught", self.panics.clone());
        let help = "The adapter's self time per call, without waiting for the service";
        let own = Histogram { buckets: own_s, sum: self.own_sum_ns.get() as f64 / 1e9 };
        to.register_with_unit("own", help, Unit::Seconds, own);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &to);
        text
    }
}

/// A counter with labels, in the order of its rows.
#[derive(Debug)]
struct Rows(Vec<(Vec<(&'static str, String)>, u64)>);

impl EncodeMetric for Rows {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(labels, count)| ConstCounter::new(*count).encode(encoder.encode_family(labels)?))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

#[derive(Debug)]
struct Histogram {
    /// Upper bound and number of values of each bucket.
    buckets: Vec<(f64, u64)>,
    sum: f64,
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let count = self.buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.sum, count, &self.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let metrics = Metrics::default();
        for own_ns in [1_000, 2_000, 2_001, 1_000_000_000] {
            metrics.call(own_ns);
        }
        metrics.skip(Skip::Encrypted);
        let text = metrics.text(Counts { bypassed: 2, ..Counts::default() }, &Tallies::default());
        for line in [
            "quintain_adapter_calls_total 4",
            "quintain_adapter_own_seconds_bucket{le=\"0.000002\"} 2",
            "quintain_adapter_own_seconds_bucket{le=\"0.000005\"} 3",
            "quintain_adapter_own_seconds_bucket{le=\"0.1\"} 3",
            "quintain_adapter_own_seconds_bucket{le=\"+Inf\"} 4",
            "quintain_adapter_own_seconds_count 4",
            "quintain_adapter_own_seconds_sum 1.000005001",
            "quintain_adapter_verdicts_total{verdict=\"fails\"} 0",
            "quintain_adapter_unchecked_total{reason=\"encrypted\"} 1",
            "quintain_adapter_unchecked_total{reason=\"conflict\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    /// Checks the metric names, on which dashboards rely. `.ci/adapter_clients.py` checks the text with a scraper.
    #[test]
    fn text_is_valid_open_metrics() {
        let mut tallies = Tallies::default();
        let odd = "a\\b\"c\nd\r\u{1b}".to_owned();
        let tally = [5, 2, 1, 0];
        tallies.clauses.insert(("Any.GET /".to_owned(), "Any.GET /.fine".to_owned()), tally);
        tallies.blamed.insert(("Any.GET /".to_owned(), "Any.GET /.fine".to_owned(), odd), 2);
        let text = Metrics::default().text(Counts::default(), &tallies);
        for line in [
            "quintain_adapter_clause_verdicts_total{operation=\"Any.GET /\",clause=\"Any.GET /.fine\",verdict=\"fails\"} 2",
            r#"quintain_adapter_blamed_total{operation="Any.GET /",clause="Any.GET /.fine",blamed="a\\b\"c\\nd\\r\\x1b"} 2"#,
            "# TYPE quintain_adapter_calls counter",
            "# TYPE quintain_adapter_connections_open gauge",
            "# UNIT quintain_adapter_own_seconds seconds",
            "# UNIT quintain_adapter_metadata_bytes bytes",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        let families = text.lines().filter(|line| line.starts_with("# TYPE ")).collect::<Vec<_>>();
        let distinct = families.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(distinct.len(), families.len(), "one family of a name: {text}");
    }
}
