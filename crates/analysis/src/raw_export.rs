//! Exports the raw files of two other benchmarks: volley's plot data (`server clients cores mean stddev num_samples`, with
//! times in µs) and Whip's `bytes`, `clientcalls`, `memory` and `times`.

use study::Calls;
use study::plan::Level;
use study::record::{Measurement, ProxyUse, Record, Run};

use crate::label::label;
use crate::merge_histograms;

/// Returns one line per measured design point, in plan order, with its trials combined. With volley's own stop rule,
/// the numbers match volley's output; otherwise they are the mean and deviation of all latencies.
pub fn volley(run: &Run, records: &[Record]) -> String {
    let mut out = String::new();
    for point in 0..run.plan.points.len() {
        let trials = records.iter().filter(|record| record.point == point);
        let trials = trials.filter_map(|record| Some((record, record.measurement()?))).collect::<Vec<_>>();
        let Some((record, measurement)) = trials.first() else { continue };
        let all = trials.iter().map(|(_, measurement)| *measurement);
        let Some((mean_us, stddev_us, samples)) = together(all) else { continue };
        let server = server(run, point);
        let (clients, cores) = (measurement.clients, record.subject.cpus.len());
        out += &format!("{server} {clients} {cores} {mean_us:.2} {stddev_us:.2} {samples}\n");
    }
    out
}

/// Combines measurements: means weighted by samples, and variances pooled by samples, as volley pools its clients.
fn together<'a>(measurements: impl Iterator<Item = &'a Measurement> + Clone) -> Option<(f64, f64, u64)> {
    let Some(parts) = measurements.clone().map(|measurement| measurement.volley).collect::<Option<Vec<_>>>() else {
        let all = merge_histograms::merge(measurements.map(|measurement| measurement.latency()))?;
        return Some((all.mean()? / 1e3, all.stddev()? / 1e3, all.len()));
    };
    let samples = crate::number::total(parts.iter().map(|part| part.samples));
    let weighted = |value: fn(&study::record::Volley) -> f64| {
        parts.iter().map(|part| value(part) * part.samples as f64).sum::<f64>() / samples as f64
    };
    let (mean_us, variance) = (weighted(|part| part.mean_us), weighted(|part| part.stddev_us.powi(2)));
    (samples > 0).then(|| (mean_us, variance.sqrt(), samples))
}

/// Names the server of a point in a single word, since spaces separate the columns.
fn server(run: &Run, point: usize) -> String {
    let factors = &run.plan.points[point].factors;
    let words =
        run.plan.factors.iter().filter_map(|name| factors.get(name)).find(|level| matches!(level, Level::Text(_)));
    let server = factors.get("server").or(words).map_or(run.plan.study.clone(), Level::to_string);
    server.split_whitespace().collect::<Vec<_>>().join("-")
}

/// Returns the path and content of each file, in a directory per design point and block, for trials without a proxy or
/// with a proxy that reports calls. Data that the proxy does not report has no file.
/// - `bytes`: metadata per call by Whip's formula without peer addresses (M1a), bytes.
/// - `clientcalls`: milliseconds per call, self time plus wait of the proxy next to the generator. Without a proxy,
///   the values are from the generator's histograms, by window and ascending within a window.
/// - `times`: milliseconds that the proxy waited for the next hop.
/// - `memory`: `seconds,rss_kB,store_kB,requests` per sample. Either the proxy sampled itself, at fixed intervals of
///   calls and after the last store write, or the lab sampled the proxy.
pub fn raw_whip(run: &Run, records: &[Record]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for record in records {
        let folder = format!("{}/block-{}", slug(&label(&run.plan.factors, &record.factors)), record.block);
        let mut put = |name: &str, text: String| {
            if !text.is_empty() {
                files.push((format!("{folder}/{name}"), text));
            }
        };
        if record.proxies.is_empty() {
            put("clientcalls", lines(direct_ns(record).map(ms)));
        }
        let told = record.proxies.iter().find_map(|proxy| Some((proxy, proxy.calls.as_deref()?)));
        let Some((proxy, calls)) = told else { continue };
        put("bytes", lines(calls.m1a_bytes.iter().map(u64::to_string)));
        let waited = || calls.waited_ns.iter();
        let whole = calls.own_ns.iter().zip(waited()).map(|(own, waited)| ms(own.saturating_add(*waited)));
        put("clientcalls", lines(whole));
        put("times", lines(waited().map(|waited| ms(*waited))));
        put("memory", memory(record, proxy, calls));
    }
    files
}

fn direct_ns(record: &Record) -> impl Iterator<Item = u64> {
    let windows = record.measurement().into_iter().flat_map(|measurement| &measurement.windows);
    let histograms = windows.filter_map(|window| merge_histograms::from_record(&window.latency));
    histograms.flat_map(|histogram| {
        let buckets = histogram.iter_buckets().collect::<Vec<_>>();
        buckets.into_iter().flat_map(|(low, high, count)| {
            std::iter::repeat_n(low.midpoint(high), usize::try_from(count).unwrap_or(usize::MAX))
        })
    })
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.map(|line| line + "\n").collect()
}

fn ms(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e6)
}

/// Formats sizes with three decimals, so that a store of a few bytes does not appear as 0 kB.
fn memory(record: &Record, proxy: &ProxyUse, calls: &Calls) -> String {
    let kib = |bytes: u64| format!("{:.3}", bytes as f64 / 1024.0);
    if !calls.memory.is_empty() {
        let of_look = |look: &study::proxy_call_log::MemoryAt| {
            let store = look.store_size_bytes().map_or(String::new(), kib);
            format!("{:.6},{},{store},{}", look.at_ns as f64 / 1e9, look.rss_bytes / 1024, look.calls)
        };
        return lines(calls.memory.iter().map(of_look));
    }
    let Some(measurement) = record.measurement() else { return String::new() };
    let of_sample = |sample: &study::record::Sample| {
        let at_ns = sample.at_ns.checked_sub(proxy.used.measured_from_ns)?;
        let requests = crate::request_trends::answered(measurement, at_ns).round();
        let store = calls.store_bytes.get((requests as usize).min(calls.len()).saturating_sub(1)).copied().unwrap_or(0);
        Some(format!("{:.3},{},{},{requests}", at_ns as f64 / 1e9, sample.rss_bytes / 1024, kib(store)))
    };
    lines(proxy.used.samples.iter().filter_map(of_sample))
}

fn slug(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '-' };
    let mut slug = label.chars().map(plain).collect::<String>();
    while slug.contains("--") {
        slug = slug.replace("--", "-");
    }
    slug.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use insta::assert_snapshot;
    use study::record::{Outcome, Volley};

    #[test]
    fn one_line_per_measured_point() {
        let (run, records) = example::volley();
        assert_snapshot!(volley(&run, &records), @r"
        c-epoll 40 1 572.59 229.57 139668
        c-epoll 80 1 1100.17 439.06 145293
        c-epoll 40 2 357.94 144.09 223425
        c-epoll 80 2 696.85 279.67 229492
        go 40 1 776.61 315.83 90083
        go 80 1 1503.66 607.35 106302
        go 40 2 486.97 196.64 164219
        rust-tokio 40 1 714.70 293.24 111869
        rust-tokio 80 1 1364.26 546.58 117153
        rust-tokio 40 2 438.60 175.71 182330
        ");
    }

    #[test]
    fn volleys_own_numbers_are_pooled() {
        let (run, mut records) = example::volley();
        records.retain(|record| record.point == 0);
        records.truncate(2);
        for (record, (mean_us, stddev_us, samples)) in records.iter_mut().zip([(10.0, 3.0, 1_000), (13.0, 6.0, 2_000)])
        {
            let Outcome::Measured(measurement) = &mut record.outcome else { unreachable!() };
            measurement.volley = Some(Volley { mean_us, stddev_us, samples, rounds: 1 });
        }
        // (10 + 2·13)/3 = 12; sqrt((9 + 2·36)/3) = 5.196
        assert_eq!(volley(&run, &records), "c-epoll 40 1 12.00 5.20 3000\n");
    }

    #[test]
    fn server_is_one_word() {
        let (mut run, records) = example::volley();
        run.plan.points[0].factors.insert("server".to_owned(), Level::Text("my server\n".to_owned()));
        assert!(volley(&run, &records).starts_with("my-server 40 1 "));
    }

    #[test]
    fn directories_have_plain_names() {
        for (label, name) in [("evernote, a + b, ops 1000", "evernote-a-b-ops-1000"), ("../x", "x"), ("a/b", "a-b")] {
            assert_eq!(slug(label), name);
        }
    }

    #[test]
    fn trial_through_a_proxy_has_four_files() {
        let (run, records) = crate::example::through();
        let files = raw_whip(&run, &records);
        let is_told = |record: &&Record| record.proxies.iter().any(|proxy| proxy.calls.is_some());
        let told = records.iter().filter(is_told).count();
        let direct = records.iter().filter(|record| record.proxies.is_empty()).collect::<Vec<_>>();
        assert!(told > 0 && !direct.is_empty());
        assert_eq!(files.len(), 4 * told + direct.len());
        let counted = |record: &Record| {
            let windows = &record.measurement().unwrap().windows;
            windows.iter().map(|window| window.latency.count - window.latency.saturated).sum::<u64>()
        };
        let calls = files.iter().filter(|(path, _)| path.starts_with("direct/") && path.ends_with("/clientcalls"));
        let calls = calls.map(|(_, text)| text.lines().count() as u64).collect::<Vec<_>>();
        assert_eq!(calls, direct.into_iter().map(counted).collect::<Vec<_>>());
        let is_it = |path: &str, name: &str| path.starts_with("adapter/") && path.ends_with(name);
        let text = |name: &str| &files.iter().find(|(path, _)| is_it(path, name)).unwrap().1;
        assert!(files.iter().any(|(path, _)| path.starts_with("adapter/block-")));
        assert_eq!(text("/bytes").lines().take(3).collect::<Vec<_>>(), ["118", "17", "118"]);
        assert_eq!(text("/times").lines().next(), Some("0.100000"));
        assert_eq!(text("/clientcalls").lines().next(), Some("0.105000"));
        let first = text("/memory").lines().next().unwrap();
        assert_eq!(first.split(',').count(), 4, "{first}");
        assert!(raw_whip(&run, &records[..0]).is_empty());
    }

    #[test]
    fn memory_is_listed_by_calls() {
        let (run, mut records) = crate::example::through();
        let look = |calls: u64, at_ns: u64, store: u64| study::proxy_call_log::MemoryAt {
            calls,
            at_ns,
            rss_bytes: 9 << 20,
            store_bytes: Some(store / 2),
            store_file_bytes: Some(store),
        };
        for proxy in records.iter_mut().flat_map(|record| &mut record.proxies) {
            proxy.calls.as_mut().unwrap().memory =
                vec![look(1, 0, 16), look(1_000, 250_000_000, 40_000), look(2_000, 500_000_000, 81_920)];
        }
        let files = raw_whip(&run, &records);
        let memory = &files.iter().find(|(path, _)| path.ends_with("/memory")).unwrap().1;
        assert_eq!(memory, "0.000000,9216,0.016,1\n0.250000,9216,39.062,1000\n0.500000,9216,80.000,2000\n");
    }
}
