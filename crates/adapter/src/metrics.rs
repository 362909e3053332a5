//! What an adapter counts, as Prometheus reads it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::monitor::{Counts, Tallies};

/// What became of a call besides being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// The contract does not speak of it.
    Unlisted,
    /// It was too long to be looked at.
    Size,
    /// It did not come as a whole in time, or is one that never does.
    Slow,
    /// It could not be read.
    Unreadable,
    /// It was not drawn into the sample.
    Sample,
    /// It passed encrypted, within a tunnel.
    Encrypted,
    /// The adapter itself failed.
    Failed,
}

impl Skip {
    /// As lines of calls and metrics name it.
    pub(crate) fn name(self) -> &'static str {
        [
            "skipped:unlisted",
            "skipped:size",
            "skipped:slow",
            "skipped:unreadable",
            "skipped:sample",
            "skipped:encrypted",
            "skipped:failed",
        ][self as usize]
    }
}

const SKIPS: [Skip; 7] =
    [Skip::Unlisted, Skip::Size, Skip::Slow, Skip::Unreadable, Skip::Sample, Skip::Encrypted, Skip::Failed];

/// Upper bounds of the histogram of own time, microseconds.
const BOUNDS_US: [u64; 16] = [2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 150, 250, 500, 1_000, 10_000, 100_000];

/// Counters. Each is true by itself; together they are no snapshot.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) calls: AtomicU64,
    pub(crate) refused_calls: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_now: AtomicU64,
    pub(crate) connections_over: AtomicU64,
    pub(crate) upstream_failed: AtomicU64,
    pub(crate) peers_failed: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    /// Metadata that was not believed: from who may not send any, or that could not be read.
    pub(crate) metadata_refused: AtomicU64,
    pub(crate) dials_refused: AtomicU64,
    /// Bodies that are too long to be looked at once they are decoded.
    pub(crate) decoded_over: AtomicU64,
    /// Endpoints that were asked for and have no listener, for want of room.
    pub(crate) listeners_over: AtomicU64,
    /// Endpoints that were learned and are not known by their URL, for want of room.
    pub(crate) routes_over: AtomicU64,
    pub(crate) metadata_bytes: AtomicU64,
    pub(crate) reports: AtomicU64,
    pub(crate) reports_left_out: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) store_dropped: AtomicU64,
    pub(crate) store_written: AtomicU64,
    pub(crate) store_bytes: AtomicU64,
    pub(crate) store_file_bytes: AtomicU64,
    skipped: [AtomicU64; SKIPS.len()],
    own: [AtomicU64; BOUNDS_US.len() + 1],
    own_sum_ns: AtomicU64,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Metrics {
    pub(crate) fn skip(&self, skip: Skip) {
        count(&self.skipped[skip as usize]);
    }

    /// A call and the adapter's own time in it.
    pub(crate) fn call(&self, own_ns: u64) {
        count(&self.calls);
        let at = BOUNDS_US.iter().position(|bound| own_ns <= bound * 1_000).unwrap_or(BOUNDS_US.len());
        count(&self.own[at]);
        self.own_sum_ns.fetch_add(own_ns, Ordering::Relaxed);
    }

    /// All of it as text. Source: OpenMetrics 1.0.0, which Prometheus reads.
    pub(crate) fn text(&self, counts: Counts, tallies: &Tallies) -> String {
        let mut out = String::new();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut put = |name: &str, kind: &str, help: &str, rows: &[(&str, u64)]| {
            // The samples of a counter end in `_total`, and its family's name does not.
            let family = if kind == "counter" { name.strip_suffix("_total").unwrap_or(name) } else { name };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# TYPE quintain_adapter_{family} {kind}");
            if let Some(unit) = ["bytes", "seconds"].iter().find(|unit| family.ends_with(&format!("_{unit}"))) {
                let _ = writeln!(out, "# UNIT quintain_adapter_{family} {unit}");
            }
            let _ = writeln!(out, "# HELP quintain_adapter_{family} {help}");
            for (label, value) in rows {
                let _ = writeln!(out, "quintain_adapter_{name}{label} {value}");
            }
        };
        put("calls_total", "counter", "Calls forwarded.", &[("", read(&self.calls))]);
        let verdicts = [
            ("{verdict=\"holds\"}", counts.holds),
            ("{verdict=\"fails\"}", counts.fails),
            ("{verdict=\"unknown\"}", counts.unknown),
            ("{verdict=\"error\"}", counts.errors),
        ];
        put("verdicts_total", "counter", "Clause verdicts.", &verdicts);
        let mut rows = Vec::new();
        for ((operation, clause), tally) in &tallies.clauses {
            let (operation, clause) = (escaped(operation), escaped(clause));
            let by =
                [("holds", tally.holds), ("fails", tally.fails), ("unknown", tally.unknown), ("error", tally.errors)];
            rows.extend(by.map(|(verdict, count)| {
                (format!("{{operation=\"{operation}\",clause=\"{clause}\",verdict=\"{verdict}\"}}"), count)
            }));
        }
        let rows = rows.iter().map(|(label, count)| (label.as_str(), *count)).collect::<Vec<_>>();
        put("clause_verdicts_total", "counter", "Verdicts by clause.", &rows);
        let rows = tallies.blamed.iter().map(|((operation, clause, label), count)| {
            let (operation, clause, label) = (escaped(operation), escaped(clause), escaped(label));
            (format!("{{operation=\"{operation}\",clause=\"{clause}\",blamed=\"{label}\"}}"), *count)
        });
        let rows = rows.collect::<Vec<_>>();
        let rows = rows.iter().map(|(label, count)| (label.as_str(), *count)).collect::<Vec<_>>();
        put("blamed_total", "counter", "Failed clauses by blamed party.", &rows);
        let labels = SKIPS.map(|skip| format!("{{reason=\"{}\"}}", skip.name().trim_start_matches("skipped:")));
        let mut rows = SKIPS
            .iter()
            .zip(&labels)
            .map(|(skip, label)| (label.as_str(), read(&self.skipped[*skip as usize])))
            .collect::<Vec<_>>();
        rows.push(("{reason=\"conflict\"}", counts.bypassed));
        put("unchecked_total", "counter", "Calls and tunnels not checked.", &rows);
        for (name, kind, help, value) in [
            ("refused_calls_total", "counter", "Calls refused because of `enforce`.", read(&self.refused_calls)),
            ("connections_total", "counter", "Connections accepted.", read(&self.connections)),
            ("connections_open", "gauge", "Open connections.", read(&self.connections_now)),
            (
                "connections_over_total",
                "counter",
                "Connections that waited for another one to close.",
                read(&self.connections_over),
            ),
            ("upstream_failed_total", "counter", "Services that could not be reached.", read(&self.upstream_failed)),
            (
                "peers_failed_total",
                "counter",
                "Adapters that could not be reached; their services were called without metadata.",
                read(&self.peers_failed),
            ),
            ("timeouts_total", "counter", "Timeouts.", read(&self.timeouts)),
            ("metadata_refused_total", "counter", "Metadata rejected.", read(&self.metadata_refused) + counts.refused),
            (
                "dials_refused_total",
                "counter",
                "Connections not made because no rule in `allow` matches.",
                read(&self.dials_refused),
            ),
            ("decoded_over_total", "counter", "Bodies over `limits.body` when decoded.", read(&self.decoded_over)),
            (
                "listeners_over_total",
                "counter",
                "Endpoint lookups resolved to the endpoint itself because `limits.listeners` is reached.",
                read(&self.listeners_over),
            ),
            (
                "routes_over_total",
                "counter",
                "Learned endpoints not checked because too many are known.",
                read(&self.routes_over),
            ),
            (
                "metadata_bytes_total",
                "counter",
                "Bytes of metadata sent to and received from other adapters.",
                read(&self.metadata_bytes),
            ),
            ("reports_total", "counter", "Reports written.", read(&self.reports)),
            (
                "reports_left_out_total",
                "counter",
                "Reports suppressed as repeats or by the rate limit.",
                read(&self.reports_left_out),
            ),
            ("entries_total", "counter", "New service entries.", counts.entries),
            ("entries_forgotten_total", "counter", "Service entries dropped for lack of names.", counts.forgotten),
            (
                "store_written_total",
                "counter",
                "Service entries written to the store's file, counted again each time one changes.",
                read(&self.store_written),
            ),
            (
                "store_dropped_total",
                "counter",
                "Service entries not written because the store was behind.",
                read(&self.store_dropped),
            ),
            (
                "store_bytes",
                "gauge",
                "Keys, entries and names in the store, including those waiting to be written.",
                read(&self.store_bytes),
            ),
            ("store_file_bytes", "gauge", "Size of the store's file.", read(&self.store_file_bytes)),
            ("panics_total", "counter", "Internal panics caught.", read(&self.panics)),
        ] {
            put(name, kind, help, &[("", value)]);
        }
        let mut below = 0;
        let rows = BOUNDS_US.iter().zip(&self.own).map(|(bound, counter)| {
            below += read(counter);
            (format!("_bucket{{le=\"{}\"}}", *bound as f64 / 1e6), below)
        });
        let mut rows = rows.collect::<Vec<_>>();
        let all = below + read(&self.own[BOUNDS_US.len()]);
        rows.push(("_bucket{le=\"+Inf\"}".to_owned(), all));
        rows.push(("_count".to_owned(), all));
        let rows = rows.iter().map(|(label, value)| (label.as_str(), *value)).collect::<Vec<_>>();
        put("own_seconds", "histogram", "The adapter's self time per call, without waiting for the service.", &rows);
        let _ = writeln!(out, "quintain_adapter_own_seconds_sum {}", read(&self.own_sum_ns) as f64 / 1e9);
        out.push_str("# EOF\n");
        out
    }
}

/// A text as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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
        let text = metrics.text(Counts { fails: 3, bypassed: 2, ..Counts::default() }, &Tallies::default());
        for line in [
            "quintain_adapter_calls_total 4",
            "quintain_adapter_own_seconds_bucket{le=\"0.000002\"} 2",
            "quintain_adapter_own_seconds_bucket{le=\"0.000005\"} 3",
            "quintain_adapter_own_seconds_bucket{le=\"0.1\"} 3",
            "quintain_adapter_own_seconds_bucket{le=\"+Inf\"} 4",
            "quintain_adapter_own_seconds_count 4",
            "quintain_adapter_own_seconds_sum 1.000005001",
            "quintain_adapter_verdicts_total{verdict=\"fails\"} 3",
            "quintain_adapter_unchecked_total{reason=\"encrypted\"} 1",
            "quintain_adapter_unchecked_total{reason=\"conflict\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    /// The rules of OpenMetrics 1.0.0 that a scraper trips over: one family of a name, in one piece, its samples named by its kind, its unit at
    /// its name's end, labels escaped, an end.
    #[test]
    fn a_scraper_of_open_metrics_can_read_it() {
        let mut tallies = Tallies::default();
        let odd = "a\\b\"c\nd".to_owned();
        let tally = contract::monitor::Tally { holds: 5, fails: 2, unknown: 1, errors: 0 };
        tallies.clauses.insert(("Any.GET /".to_owned(), "Any.GET /.fine".to_owned()), tally);
        tallies.blamed.insert(("Any.GET /".to_owned(), "Any.GET /.fine".to_owned(), odd), 2);
        let text = Metrics::default().text(Counts::default(), &tallies);
        for line in [
            "quintain_adapter_clause_verdicts_total{operation=\"Any.GET /\",clause=\"Any.GET /.fine\",verdict=\"fails\"} 2",
            r#"quintain_adapter_blamed_total{operation="Any.GET /",clause="Any.GET /.fine",blamed="a\\b\"c\nd"} 2"#,
            "# TYPE quintain_adapter_calls counter",
            "# TYPE quintain_adapter_connections_open gauge",
            "# UNIT quintain_adapter_own_seconds seconds",
            "# UNIT quintain_adapter_metadata_bytes bytes",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        let mut families = std::collections::BTreeSet::new();
        let mut now = ("", "");
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                now = declared.split_once(' ').unwrap();
                assert!(!now.0.ends_with("_total") && families.insert(now.0), "{line}");
                continue;
            }
            if let Some(about) = line.strip_prefix("# ") {
                let (_, rest) = about.split_once(' ').unwrap();
                assert_eq!(rest.split(' ').next(), Some(now.0), "{line}");
                continue;
            }
            let name = line.split(['{', ' ']).next().unwrap();
            let ends: &[&str] = match now.1 {
                "counter" => &["_total"],
                "gauge" => &[""],
                _ => &["_bucket", "_count", "_sum"],
            };
            assert!(ends.iter().any(|end| name == format!("{}{end}", now.0)), "{line} in {now:?}");
        }
    }
}
