//! Exports the raw files of Whip's benchmarks: `bytes`, `clientcalls`, `memory`, `times`.

use study::Calls;
use study::record::{ProxyUse, Record, Run};

use crate::label::label;

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
    let histograms = windows.filter_map(|window| crate::merge_histograms::from_record(&window.latency));
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
