//! One load without a study (`quintain load`) and a search of loads (`quintain load --find`), as text for a terminal.

use analysis::enum_words_and_lists::{SERVER_OR_PATH, limit_word};
use analysis::failed_requests::{FailedRequests, count_and_share, explanation};
use analysis::findings::{AgentFinding, Clock, MedianRange, SearchEnd};
use analysis::number::{self, percent, quantity};
use analysis::search::{FindReport, rate};
use analysis::{
    CacheReport, IntervalOrNote, JourneyReport, LOAD_LEVEL, LOAD_QUANTILES, LoadLimitOutcome, LoadReport,
    OperationReport, SpreadNs, StageReport, StreamsReport, hangs, verdict,
};
use study::record::{Limit, TraceReplay};
use study::spec::Connection;

use crate::terminal_style_and_wrap::{Lines, Style, wrap};

/// Number of slow responses that a terminal shows. The JSON has up to [`study::record::SLOWEST_MAX`].
const SLOWEST_SHOWN: usize = 5;

/// Renders the load for a terminal: wrk's lines in wrk's order, then quantiles, errors, connections, limit,
/// warnings and results of `--fail-if`. Without valid responses, it starts with the reason and shows no latency.
pub fn load_terminal(report: &LoadReport, style: &Style) -> String {
    let measurement = &report.measurement;
    let failed = FailedRequests::from(measurement);
    let mut told = failed.sentence().into_iter().collect::<Vec<_>>();
    let mut out = String::new();
    let has_results = measurement.requests > 0;
    if !has_results {
        told.extend(verdict::silence_warning(measurement));
        let reason = told.first().map_or("no valid response", String::as_str);
        let of_journey = Some("`--trace-session` shows a whole journey".to_owned());
        let hint = if report.journeys.is_empty() { hint(&failed, &report.target) } else { of_journey };
        let hint = hint.map_or(String::new(), |hint| format!("  = help: {hint}\n"));
        out = wrap(&format!("{}\n{hint}\n", style.bad(reason)), style.width, 2);
    }
    let mut lines = Lines::new(style);
    lines.add("load", [load_words(report)]);
    if has_results {
        rate_and_latency_lines(report, style, &mut lines);
    }
    stage_lines(&report.stages, measurement.offered_per_s.is_some(), &mut lines);
    if let Some(cache) = &report.cache {
        cache_lines(cache, &mut lines);
    }
    let journey = |journey| journey_words(journey, report.journeys.len() == 1);
    lines.add("journeys", report.journeys.iter().flat_map(journey));
    let (time, received) =
        (quantity(report.duration_s * 1e9, "ns"), quantity(measurement.received_bytes as f64, "bytes"));
    let valid = match failed.count() {
        _ if !has_results => ", none valid",
        0 => ", no errors",
        _ => "",
    };
    lines.add("requests", [format!("{} in {time}, {received} received{valid}", measurement.requests)]);
    let all = measurement.requests.saturating_add(failed.count());
    let checked = Some(measurement.checked).filter(|checked| *checked > 0);
    lines.add("checked", checked.map(|checked| format!("the body of {checked} of {all} responses")));
    lines.add("by request", operation_words(&report.by_request, true));
    let slowest =
        measurement.slowest.iter().take(SLOWEST_SHOWN).map(|slow| {
            format!("{} trace {}, {}", quantity(slow.latency_ns as f64, "ns"), slow.trace_id, slow.request)
        });
    lines.add("slowest", slowest);
    lines.add("unanswered", measurement.censored.as_deref().and_then(hangs::counted));
    let warmup = number::count(measurement.warmup_requests, "request");
    lines.add("warm-up", (measurement.warmup_requests > 0).then(|| format!("{warmup}, not counted")));
    let statuses = measurement.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect::<Vec<_>>();
    lines.add("statuses", (!statuses.is_empty()).then(|| statuses.join(", ")));
    // Without results, the first line already names a single kind of error.
    if let Some(share) = failed.share().filter(|_| has_results || measurement.errors.len() > 1) {
        let kinds = measurement.errors.iter().map(|(kind, count)| {
            let words = measurement.error_examples.get(kind).map_or(explanation(kind), String::as_str);
            let words = if words.is_empty() { String::new() } else { format!(": {words}") };
            format!("{count} {kind}{}", style.dim(&words))
        });
        lines.add("errors", [style.bad(&share)].into_iter().chain(kinds));
    }
    let first_byte = report.first_byte_ns.as_ref();
    lines.add("first byte", first_byte.map(|spread| spread_words(spread, "response") + " in several parts"));
    lines.add("streams", report.streams.iter().flat_map(stream_words));
    lines.add("connect", (report.connect_ns.count > 0).then(|| spread_words(&report.connect_ns, "connection")));
    let handshake = |spread| format!("{}, {} resumed", spread_words(spread, "handshake"), measurement.resumed);
    lines.add("TLS", report.handshake_ns.as_ref().map(handshake));
    let volley = measurement.volley.as_ref().map(|volley| (volley.mean_us, volley.stddev_us, volley.samples));
    lines.add("volley", volley.map(|(mean, stddev, samples)| format!("{mean:.2}us {stddev:.2}us {samples}")));
    let limit = match (report.generator.limited_by, report.generator.path_unknown) {
        (Limit::Subject, true) => style.bold(SERVER_OR_PATH),
        (Limit::Generator, _) => style.bad(&limit_word(Limit::Generator)),
        (limit, _) => style.bold(&limit_word(limit)),
    };
    lines.add("limited by", [format!("{limit}: {}", report.generator.reasons.join("; "))]);
    lines.add("generators", report.agents.iter().map(agent_words));
    let cpu_ns = report.generator.cpu_s * 1e9;
    let per_request = format!(", {} per request", quantity(cpu_ns / measurement.requests as f64, "ns"));
    let per_request = if has_results { per_request.as_str() } else { "" };
    lines.add("generator", [format!("{}, CPU {}{per_request}", measurement.backend, quantity(cpu_ns, "ns"))]);
    lines.add("in flight", [in_flight_words(report)]);
    lines.add("ended", [measurement.stop_reason.clone()]);
    lines.add("intervals", has_results.then(|| about_intervals(report)));
    for warning in report.warnings.iter().filter(|warning| !told.contains(warning)) {
        lines.add("warning", [style.warn(warning)]);
    }
    let limits = report.limits.iter().map(|limit| match limit.outcome {
        LoadLimitOutcome::Passes => limit.to_string(),
        _ => style.bad(&limit.to_string()),
    });
    lines.add("limits", limits);
    out + &wrap(&lines.text, style.width, 15)
}

fn hint(failed: &FailedRequests, target: &str) -> Option<String> {
    let status = failed.only_status()?;
    let advice = match status {
        401 | 403 => "send credentials, for example `-H 'Authorization: Bearer TOKEN'`",
        404 | 410 => &format!("check the path of `{target}`"),
        405 => "choose another method with `-X METHOD`",
        411 | 415 | 422 => "send a body that the server accepts: `--body TEXT -H 'Content-Type: TYPE'`",
        300..=399 => "redirects are not followed: load the URL in its `Location`",
        _ => {
            // The version of HTTP, or an address, may follow the URL.
            let url = target.split([' ', ',']).next().unwrap_or_default().to_owned();
            &format!("`curl -i {}` shows the response", study::shell_words::join(&[url]))
        }
    };
    Some(format!("{advice}; `--expect-status {status}` counts it as valid"))
}

fn quantity_or(missing: &str, value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| missing.to_owned(), |value| quantity(value, unit))
}

fn rate_and_latency_lines(report: &LoadReport, style: &Style, lines: &mut Lines<'_>) {
    let is_bound = |name: &str| report.latency_ns.at_least.contains(name.trim_start_matches("latency_ns_"));
    let noted = |shown: String, note: &str| format!("{shown:<10}  {}", style.dim(note));
    let with_interval = |name: &str, value: Option<f64>, unit: &str| match (report.intervals.get(name), value) {
        (_, None) => "not enough samples".to_owned(),
        (_, Some(value)) if is_bound(name) => {
            noted(number::at_least(value, unit), "requests were still waiting at the end")
        }
        (Some(IntervalOrNote::Interval(found)), _) if name == "rate_per_s" || name.ends_with("mean") => {
            style.bold(&number::estimate(found, unit))
        }
        (Some(IntervalOrNote::Interval(found)), Some(value)) => {
            noted(quantity(value, unit), &format!("{} to {}", quantity(found.low, unit), quantity(found.high, unit)))
        }
        (_, Some(value)) => noted(quantity(value, unit), "no interval"),
    };
    let latency = &report.latency_ns;
    let max = latency.max.map(|max| max as f64);
    let bound = max.filter(|_| is_bound("max")).map(|max| number::at_least(max, "ns"));
    lines.add("requests/s", [with_interval("rate_per_s", Some(report.rate_per_s), "1/s")]);
    lines.add("transfer/s", [format!("{}/s", quantity(report.transfer_bytes_per_s, "bytes"))]);
    lines.add("latency", [clock_words(report).to_owned()]);
    lines.add("  mean", [with_interval("latency_ns_mean", latency.mean, "ns")]);
    lines.add("  stdev", [quantity_or("none", latency.stdev, "ns")]);
    lines.add("  max", [bound.unwrap_or_else(|| quantity_or("none", max, "ns"))]);
    let points = [latency.p50, latency.p90, latency.p95, latency.p99, latency.p999];
    for ((name, _), point) in LOAD_QUANTILES.iter().zip(points) {
        let key = format!("latency_ns_{}", name.replace('.', ""));
        lines.add(&format!("  {name}"), [with_interval(&key, point, "ns")]);
    }
}

fn load_words(report: &LoadReport) -> String {
    let measurement = &report.measurement;
    let mut words = vec![
        report.target.clone(),
        number::count(measurement.clients.into(), "client"),
        number::count(measurement.threads.into(), "thread"),
    ];
    let open = |offered| format!("open loop, {} offered", quantity(offered, "1/s"));
    words.push(measurement.offered_per_s.map_or("closed loop".to_owned(), open));
    let depth = measurement.pipeline;
    words.extend((depth > 1).then(|| format!("up to {depth} requests in flight on each connection")));
    let after = |requests: u32| format!("a new connection after {}", number::count(requests.into(), "request"));
    words.extend(match measurement.connection {
        Connection::KeepAlive => None,
        Connection::PerRequest => Some("a connection per request".to_owned()),
        Connection::Requests(requests) => Some(after(requests)),
    });
    words.join(", ")
}

fn clock_words(report: &LoadReport) -> &'static str {
    match (report.latency_ns.clock, report.measurement.connection) {
        (Clock::Response, _) => "response time: from intended send time to response",
        (Clock::Service, Connection::KeepAlive | Connection::Requests(_)) => "service time: from write to response",
        (Clock::Service, Connection::PerRequest) => "service time: from connect to response",
    }
}

fn spread_words(spread: &SpreadNs, noun: &str) -> String {
    let points =
        [("mean", spread.mean), ("p50", spread.p50), ("p99", spread.p99), ("max", spread.max.map(|max| max as f64))];
    let points = points.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", quantity(value?, "ns"))));
    format!("{} of {}", points.collect::<Vec<_>>().join(", "), number::count(spread.count, noun))
}

fn stream_words(streams: &StreamsReport) -> Vec<String> {
    let [heads, ahead] =
        [streams.header_bytes_mean, streams.bytes_ahead_mean].map(|mean| quantity_or("none", mean, "bytes"));
    let mut words = vec![format!("heads of {heads} per response as sent, {ahead} of other responses before it")];
    if let Some(gap) = &streams.message_gap_ns {
        let mean = streams.messages_per_response.map_or(String::new(), |mean| quantity(mean, ""));
        words.push(format!("{mean} messages per response, time between them: {}", spread_words(gap, "message")));
    }
    let waits = [
        ("own limit", &streams.wait_own_ns),
        ("server's limit", &streams.wait_server_ns),
        ("new connection", &streams.wait_connection_ns),
    ];
    for (reason, wait) in waits {
        let waited = wait.as_ref().filter(|wait| wait.max.is_some_and(|max| max > 0));
        words.extend(waited.map(|wait| format!("wait for a place ({reason}): {}", spread_words(wait, "request"))));
    }
    for (count, noun, what) in [
        (streams.goaways, "connection", "ended by the server with GOAWAY"),
        (streams.refused, "request", "refused by the server, and resent"),
        (streams.stalled_uploads, "request", "with a body that waited for the server's credit"),
    ] {
        words.extend((count > 0).then(|| format!("{} {what}", number::count(count, noun))));
    }
    words
}

/// Describes a generator: `l1: 500 /s, 33 % of the requests, p50 28.0 µs, p99 71.0 µs, 20 % busy, limited by network`.
fn agent_words(agent: &AgentFinding) -> String {
    let median = |found: &Option<MedianRange>| found.map(|found| found.median);
    let share = |found: &Option<MedianRange>| median(found).map_or("unknown".to_owned(), percent);
    let rate = quantity_or("none", median(&agent.rate_per_s), "1/s");
    let limits = agent.limits.keys().map(|limit| limit_word(*limit)).collect::<Vec<_>>().join(", ");
    let latency = quantiles(median(&agent.latency_p50_ns), median(&agent.latency_p99_ns));
    let (node, part, busy) = (&agent.node, share(&agent.share), share(&agent.busy));
    format!("{node}: {rate}, {part} of the requests, {latency}, {busy} busy, limited by {limits}")
}

/// Describes requests in flight: measured, maximum, and implied by rate and latency. The implied number may exceed the
/// maximum, because requests that began before measuring count with their whole latency.
fn in_flight_words(report: &LoadReport) -> String {
    let measurement = &report.measurement;
    let most = match (measurement.offered_per_s, measurement.pipeline) {
        (Some(_), _) => String::new(),
        (None, 1) => format!(" of {}", number::count(measurement.clients.into(), "client")),
        (None, depth) => format!(" of {} x {depth}", number::count(measurement.clients.into(), "client")),
    };
    let but = if measurement.errors.is_empty() { "" } else { "; failed requests have no latency" };
    let (counted, implied) = (measurement.in_flight_mean, report.in_flight_by_latency);
    format!("{counted:.1}{most} counted, {implied:.1} by rate x mean latency{but}")
}

/// Confidence level of the intervals, and the first reason for missing intervals. Other reasons differ only in numbers.
fn about_intervals(report: &LoadReport) -> String {
    let found = report.intervals.values();
    let notes = found.filter_map(|found| if let IntervalOrNote::Note { note } = found { Some(note) } else { None });
    let notes = notes.collect::<Vec<_>>();
    let (level, time) = (percent(LOAD_LEVEL), quantity(report.duration_s * 1e9, "ns"));
    let claim = format!("{level}, for these {time} only: another period or another start of the server may differ");
    match (notes.first(), notes.len() == report.intervals.len()) {
        (None, _) => claim,
        (Some(why), true) => format!("none: {why}; measure longer with `-d`"),
        (Some(why), false) => format!("{claim}; {} declined: {why}", number::count(notes.len() as u64, "interval")),
    }
}

fn replayed(trace: &TraceReplay) -> String {
    let end = if trace.ended { "to its end" } else { "stopped early" };
    let lengthened =
        |recorded| format!(", {recorded:.1} B as recorded: {} lengthened to stay distinct", trace.keys_lengthened);
    let recorded =
        trace.key_bytes_recorded_mean.filter(|_| trace.keys_lengthened > 0).map(lengthened).unwrap_or_default();
    let keys = trace.key_bytes_mean.map(|mean| format!("; keys of {mean:.1} B on average{recorded}"));
    let stalled = quantity(trace.stalled_ns as f64, "ns");
    let late = (trace.stalled_ns > 0).then(|| format!("; {stalled} late because the trace was read too slowly"));
    let (keys, late) = (keys.unwrap_or_default(), late.unwrap_or_default());
    format!("{} operations of {}, {end}{keys}{late}", trace.operations, trace.file)
}

fn cache_lines(cache: &CacheReport, lines: &mut Lines<'_>) {
    let counts = &cache.counts;
    let gets = counts.hits.saturating_add(counts.misses);
    let ratio = |ratio: Option<f64>| ratio.map_or("none".to_owned(), |ratio| format!("{ratio:.4}"));
    let [hits, bytes] = [counts.hit_ratio(), cache.byte_hit_ratio].map(ratio);
    lines.add("hit ratio", [format!("{hits} of {gets} GETs, {bytes} of their bytes")]);
    let causes = counts.causes.named().into_iter().filter(|(_, count)| *count > 0);
    let causes = causes.map(|(name, count)| format!("{count} {name} ({})", percent(count as f64 / gets as f64)));
    lines.add("  misses", (counts.misses > 0).then(|| causes.collect::<Vec<_>>().join(", ")));
    let words = "is the limit of the mix without fill, for any cache: set / (set + delete)";
    lines.add("  of the mix", cache.hit_ratio_of_mix.map(|mix| format!("{mix:.4} {words}")));
    let refused = format!("{} SETs rejected: cache full, no eviction", counts.refused_sets);
    lines.add("  refused", (counts.refused_sets > 0).then_some(refused));
    let limit = cache.limit_bytes.zip(cache.footprint_over_limit).map_or(String::new(), |(limit, over)| {
        format!(", {over:.2} of the limit reported by the server, {}", quantity(limit as f64, "bytes"))
    });
    let (keys, bytes) = (cache.footprint_keys, quantity(cache.footprint_bytes as f64, "bytes"));
    lines.add("footprint", [format!("{keys} keys, {bytes} with their values{limit}")]);
    lines.add("trace", cache.trace.as_ref().map(replayed));
    for (key, spread) in &cache.operations {
        lines.add(&format!("  {}", key.replace('_', " ")), [format!("{}, {}", spread.count, p50_and_p99(spread))]);
    }
    let words = "fills and rewrites follow responses; they are not scheduled and not counted as requests";
    lines.add("", (counts.fills + counts.rewrites > 0).then(|| words.to_owned()));
    lines.add("warm-up", cache.steadiness.clone());
}

/// Writes a line per stage, or per part of a single stage: the rate in an open loop, otherwise the number of clients.
fn stage_lines(stages: &[StageReport], is_open: bool, lines: &mut Lines<'_>) {
    let shown = if let [one] = stages { one.over_time.as_slice() } else { stages };
    let unit = if is_open { "offered" } else { "clients" };
    let value = |value: f64| if is_open { quantity(value, "1/s") } else { format!("{value:.0}") };
    let stage = |stage: &StageReport| {
        let to = if stage.from == stage.to { String::new() } else { format!(" to {}", value(stage.to)) };
        let latency = [("p50", stage.p50_ns), ("p95", stage.p95_ns), ("p99", stage.p99_ns)];
        let latency = latency.into_iter().filter_map(|(name, ns)| Some(format!(", {name} {}", quantity(ns?, "ns"))));
        let (answered, latency) = (quantity(stage.rate_per_s, "1/s"), latency.collect::<String>());
        let errors = errors_words(stage.errors, stage.requests);
        format!("{}{to} {unit}: {answered} answered{latency}{errors}", value(stage.from))
    };
    lines.add("stages", shown.iter().map(stage));
    let words = "responses count in the stage in which they arrive; stages of one load are not repetitions";
    lines.add("", (!stages.is_empty()).then(|| words.to_owned()));
}

fn errors_words(errors: u64, requests: u64) -> String {
    if errors == 0 { String::new() } else { format!(", errors: {}", count_and_share(errors, requests)) }
}

fn p50_and_p99(spread: &SpreadNs) -> String {
    quantiles(spread.p50, spread.p99)
}

fn quantiles(p50: Option<f64>, p99: Option<f64>) -> String {
    format!("p50 {}, p99 {}", quantity_or("not enough", p50, "ns"), quantity_or("not enough", p99, "ns"))
}

fn journey_words(journey: &JourneyReport, is_alone: bool) -> Vec<String> {
    let JourneyReport { name, completed, abandoned, session_ns, operations, .. } = journey;
    let time = session_ns.as_ref().map_or_else(String::new, |time| format!(", {}", p50_and_p99(time)));
    let abandoned = if *abandoned == 0 { String::new() } else { format!(", {abandoned} abandoned at an error") };
    let name = if is_alone { String::new() } else { format!("{name}: ") };
    let first = format!("{name}{completed} to the end{time}{abandoned}");
    // The operations of a journey have equal shares, which are omitted.
    [first].into_iter().chain(operation_words(operations, false)).collect()
}

fn operation_words(operations: &[OperationReport], has_shares: bool) -> impl Iterator<Item = String> {
    let width = operations.iter().map(|operation| operation.name.chars().count()).max().unwrap_or(0);
    let asked = |operation: &OperationReport| operation.requests.saturating_add(operation.errors);
    let all = number::total(operations.iter().map(asked)).max(1);
    operations.iter().map(move |operation| {
        let errors = errors_words(operation.errors, operation.requests);
        let latency = p50_and_p99(&operation.latency_ns);
        let first_byte = operation.first_byte_ns.as_ref();
        let first_byte = first_byte.map_or_else(String::new, |spread| format!(", first byte {}", p50_and_p99(spread)));
        let share = format!(" ({})", percent(asked(operation) as f64 / all as f64));
        let share = if has_shares { share.as_str() } else { "" };
        format!("{:<width$}  {}{share}, {latency}{first_byte}{errors}", operation.name, operation.requests)
    })
}

/// Renders the report for a terminal: the range, its trials and each rate.
pub fn find_terminal(report: &FindReport, style: &Style) -> String {
    let search = &report.search;
    let mut lines = Lines::new(style);
    let end = |end: Option<SearchEnd>, missing: &Option<String>| match end {
        Some(end) => {
            let trials = number::count(end.trials as u64, "trial");
            let sure = if end.confirmed { "" } else { ", not confirmed" };
            format!("{}  {}", style.bold(&rate(end.rate_per_s)), style.dim(&format!("{trials}{sure}")))
        }
        None => missing.clone().unwrap_or_else(|| "unknown".to_owned()),
    };
    lines.add("load", [format!("{}, open loop", report.target)]);
    lines.add("objective", [search.objective.clone()]);
    lines.add("holds", [end(search.low, &search.no_low)]);
    lines.add("fails at", [end(search.high, &search.no_high)]);
    lines.add("ended", [format!("{}; {}", search.ended, number::count(search.trials as u64, "trial"))]);
    let rates = search.rates.iter().map(|tried| {
        let (offered, verdict) = (rate(tried.rate_per_s), tried.verdict.text());
        let kept = format!("{} of {} met it", tried.kept, tried.trials);
        let kept = if tried.trials == 0 { "" } else { kept.as_str() };
        format!("{offered:>10}  {verdict:<18}{}", style.dim(kept)).trim_end().to_owned()
    });
    lines.add("rates", rates);
    for warning in &report.warnings {
        lines.add("warning", [style.warn(warning)]);
    }
    lines.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{FIND_VERSION, Search, load};
    use fixtures as example;
    use insta::assert_snapshot;
    use std::collections::BTreeMap;
    use study::record::{Agent, Measurement, StreamsMeasurement, Volley};
    use study::spec::Protocol;

    fn shown(measurement: &Measurement, agents: &[Agent], target: &str, style: &Style) -> String {
        load_terminal(&load(measurement, agents, target), style)
    }

    fn measurement(edit: impl FnOnce(&mut Measurement)) -> Measurement {
        let records = example::volley().1;
        let mut measurement = records.iter().find(|record| record.point == 0).unwrap().measurement().unwrap().clone();
        edit(&mut measurement);
        measurement
    }

    const PLAIN: Style = Style { colour: false, width: 100 };

    #[test]
    fn has_the_keys_that_scripts_rely_on() {
        let text = serde_json::to_string_pretty(&load(&measurement(|_| ()), &[], "pingpong://127.0.0.1:7000")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let numbers = ["requests", "duration_s", "rate_per_s", "received_bytes", "transfer_bytes_per_s", "resumed"];
        for key in numbers.into_iter().chain(["reconnects", "pipeline"]) {
            assert!(value[key].is_number(), "{key}");
        }
        for key in ["statuses", "error_examples", "connect_ns"] {
            assert!(value[key].is_object(), "{key}");
        }
        assert!(value["handshake_ns"].is_null());
        for key in ["mean", "p50", "p90", "p95", "p99", "p999", "max"] {
            assert!(value["latency_ns"][key].is_number(), "{key}");
        }
        assert_eq!(value["latency_ns"]["clock"], "service");
        assert!(value["errors"].is_object() && value["generator"]["cpu_s"].is_number());
        assert_eq!(value["generator"]["limited_by"], "subject");
    }

    /// A slow link looks like a slow server to the generator.
    #[test]
    fn does_not_blame_a_remote_server_for_its_network() {
        for (address, is_elsewhere) in [
            ("127.0.0.1:80", false),
            ("127.3.2.1:80", false),
            ("[::1]:80", false),
            ("[::ffff:127.0.0.1]:80", false),
            ("unix:/run/x", false),
            ("localhost:80", false),
            ("", false),
            ("10.0.0.2:80", true),
            ("[2001:db8::1]:443", true),
            ("shop.example:80", true),
        ] {
            let measurement = measurement(|measurement| measurement.address = address.to_owned());
            let report = load(&measurement, &[], "x");
            assert_eq!((report.generator.path_unknown, report.measurement.address.as_str()), (is_elsewhere, address));
            assert_eq!(report.generator.limited_by, Limit::Subject);
            let text = shown(&measurement, &[], "x", &Style::PLAIN);
            let blamed = if is_elsewhere { "limited by   server or the path to it: " } else { "limited by   server: " };
            assert!(text.contains(blamed), "{address}: {text}");
            assert_eq!(text.contains("the path to the server was not measured"), is_elsewhere);
        }
    }

    #[test]
    fn generators_on_several_machines() {
        let record = example::cluster().1.swap_remove(0);
        let text = shown(record.measurement().unwrap(), &record.agents, "pingpong://10.0.0.11:7000", &PLAIN);
        let lines = text.lines().skip_while(|line| !line.contains("limited by"));
        let lines = lines.take_while(|line| !line.contains("in flight")).collect::<Vec<_>>();
        assert_snapshot!(lines.join("\n"), @"
        limited by   server or the path to it: 60 clients waited for responses while the generator had CPU
                     to spare; the generator's busiest worker was 40 % busy; the path to the server was
                     not measured
        generators   l1: 23.6 k/s, 33 % of the requests, p50 791 µs, p99 1.827 ms, 40 % busy, limited by
                     server
                     l2: 23.8 k/s, 33 % of the requests, p50 774 µs, p99 1.860 ms, 40 % busy, limited by
                     server
                     l3: 23.9 k/s, 34 % of the requests, p50 774 µs, p99 1.860 ms, 40 % busy, limited by
                     server
        generator    io_uring, CPU 300 ms, 16.81 µs per request
        ");
        let one = load(record.measurement().unwrap(), &[], "x");
        assert!(one.agents.is_empty() && !serde_json::to_string(&one).unwrap().contains("\"agents\""));
    }

    #[test]
    fn every_interval_holds_its_point() {
        let report = load(&measurement(|_| ()), &[], "x");
        assert_eq!(report.intervals.len(), 7);
        for (name, found) in &report.intervals {
            if let IntervalOrNote::Interval(found) = found {
                assert!(
                    found.low <= found.point && found.point <= found.high && found.level == 0.95,
                    "{name}: {found:?}"
                );
            }
        }
        let IntervalOrNote::Interval(mean) = &report.intervals["latency_ns_mean"] else {
            panic!("50 windows are enough")
        };
        assert!((mean.point / report.latency_ns.mean.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_responses_have_no_high_quantiles() {
        let few = measurement(|measurement| {
            let mut latency = stats::Histogram::new();
            (1..=99).for_each(|i| latency.record(i * 1_000));
            measurement.service = study::record::Histogram::from(&latency);
        });
        let latency = load(&few, &[], "x").latency_ns;
        assert!(latency.p95.is_some());
        assert_eq!((latency.p99, latency.p999), (None, None), "99 responses: p99 would be the largest");
    }

    #[test]
    fn no_responses_have_no_latency() {
        let report = load(
            &measurement(|measurement| {
                measurement.service = study::record::Histogram::default();
                measurement.requests = 0;
                measurement.windows.clear();
                measurement.errors.insert("refused".to_owned(), 40);
            }),
            &[],
            "x",
        );
        assert_eq!((report.latency_ns.mean, report.latency_ns.p50, report.latency_ns.max), (None, None, None));
        assert_eq!(report.warnings, ["all 40 requests failed: connection refused on reconnect"]);
    }

    #[test]
    fn load_without_valid_response_starts_with_the_reason_and_shows_no_latency() {
        let none = |edit: &dyn Fn(&mut Measurement)| {
            let measurement = http(|measurement| {
                measurement.service = study::record::Histogram::default();
                measurement.requests = 0;
                measurement.windows.clear();
                measurement.statuses.clear();
                edit(measurement);
            });
            shown(&measurement, &[], "http://127.0.0.1:8080/", &PLAIN)
        };
        let unauthorized = none(&|measurement| {
            measurement.errors.insert("status".to_owned(), 18_254);
            measurement.statuses.insert(401, 18_254);
            let example = "status 401 (expected 2xx)".to_owned();
            measurement.error_examples.insert("status".to_owned(), example);
        });
        assert_snapshot!(unauthorized, @"
        all 18,254 requests failed: status 401 (expected 2xx)
          = help: send credentials, for example `-H 'Authorization: Bearer TOKEN'`; `--expect-status 401`
          counts it as valid

          load         http://127.0.0.1:8080/, 40 clients, 1 thread, closed loop
          requests     0 in 250 ms, 2.58 MiB received, none valid
          warm-up      18041 requests, not counted
          statuses     401: 18254
          connect      mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40 connections
          limited by   server: 40 clients waited for responses while the generator had CPU to spare; the
                       generator's busiest worker was 71 % busy
          generator    io_uring, CPU 177.5 ms
          in flight    40.0 of 40 clients counted, 0.0 by rate x mean latency; failed requests have no
                       latency
          ended        250 ms measured
        ");
        let refused = none(&|measurement| {
            measurement.errors.insert("refused".to_owned(), 40);
        });
        assert!(refused.starts_with("all 40 requests failed: connection refused on reconnect\n\n"), "{refused}");
        let silent = none(&|measurement| measurement.unfinished = 40);
        assert!(silent.starts_with("no response in the 0.250 s measured: 40 requests still waiting at the end\n\n"));
        assert_eq!(silent.matches("no response in the").count(), 1, "{silent}");
        for text in [unauthorized, refused, silent] {
            assert!(!text.contains("latency  ") && !text.contains("p99") && !text.contains("requests/s"), "{text}");
        }
    }

    #[test]
    fn hints_name_a_flag_for_the_status() {
        for (status, flag) in
            [(401, "-H "), (404, "path"), (405, "-X"), (415, "--body"), (301, "Location"), (500, "curl")]
        {
            let measurement = http(|measurement| {
                measurement.requests = 0;
                measurement.errors.insert("status".to_owned(), 3);
                measurement.statuses = BTreeMap::from([(status, 3)]);
            });
            let hint = hint(&FailedRequests::from(&measurement), "http://h/").unwrap();
            assert!(hint.contains(flag) && hint.contains(&format!("--expect-status {status}")), "{hint}");
        }
    }

    #[test]
    fn for_a_person() {
        assert_snapshot!(shown(&measurement(|_| ()), &[], "pingpong://127.0.0.1:7000", &PLAIN), @"
        load         pingpong://127.0.0.1:7000, 40 clients, 1 thread, closed loop
        requests/s   72.2 ±0.5 k/s
        transfer/s   282 KiB/s
        latency      service time: from write to response
          mean       554 ±4 µs
          stdev      226 µs
          max        3.18 ms
          p50        515 µs      512 µs to 519 µs
          p90        813 µs      807 µs to 820 µs
          p95        931 µs      918 µs to 943 µs
          p99        1.259 ms    1.217 ms to 1.305 ms
          p99.9      2.33 ms     2.24 ms to 2.41 ms
        requests     18041 in 250 ms, 70.5 KiB received, no errors
        warm-up      18041 requests, not counted
        connect      mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40 connections
        limited by   server: 40 clients waited for responses while the generator had CPU to spare; the
                     generator's busiest worker was 71 % busy
        generator    io_uring, CPU 177.5 ms, 9.84 µs per request
        in flight    40.0 of 40 clients counted, 40.0 by rate x mean latency
        ended        250 ms measured
        intervals    95 %, for these 250 ms only: another period or another start of the server may differ
        ");
    }

    fn http(edit: impl FnOnce(&mut Measurement)) -> Measurement {
        measurement(|measurement| {
            measurement.protocol = Protocol::Http;
            measurement.statuses = BTreeMap::from([(200, 18_041)]);
            measurement.received_bytes = 18_041 * 150;
            edit(measurement);
        })
    }

    #[test]
    fn https_with_everything_for_a_person() {
        let everything = http(|measurement| {
            measurement.protocol = Protocol::Https;
            measurement.pipeline = 16;
            measurement.in_flight_mean *= 16.0;
            measurement.statuses.insert(503, 12);
            measurement.errors = BTreeMap::from([("status".to_owned(), 12), ("timeout".to_owned(), 3)]);
            let example = "503 Service Unavailable on GET /orders";
            measurement.error_examples = BTreeMap::from([("status".to_owned(), example.to_owned())]);
            measurement.handshake = Some(measurement.connect.clone());
            (measurement.resumed, measurement.reconnects) = (7, 8);
        });
        assert_snapshot!(shown(&everything, &[], "https://127.0.0.1:8443/", &PLAIN), @"
        load         https://127.0.0.1:8443/, 40 clients, 1 thread, closed loop, up to 16 requests in
                     flight on each connection
        requests/s   72.2 ±0.5 k/s
        transfer/s   10.32 MiB/s
        latency      service time: from write to response
          mean       554 ±4 µs
          stdev      226 µs
          max        3.18 ms
          p50        515 µs      512 µs to 519 µs
          p90        813 µs      807 µs to 820 µs
          p95        931 µs      918 µs to 943 µs
          p99        1.259 ms    1.217 ms to 1.305 ms
          p99.9      2.33 ms     2.24 ms to 2.41 ms
        requests     18041 in 250 ms, 2.58 MiB received
        warm-up      18041 requests, not counted
        statuses     200: 18041, 503: 12
        errors       15 of 18,056 requests failed (0.083 %)
                     12 status: 503 Service Unavailable on GET /orders
                     3 timeout: no response in time
        connect      mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40 connections
        TLS          mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40 handshakes, 7 resumed
        limited by   server: 40 clients waited for responses while the generator had CPU to spare; the
                     generator's busiest worker was 71 % busy
        generator    io_uring, CPU 177.5 ms, 9.84 µs per request
        in flight    640.0 of 40 clients x 16 counted, 40.0 by rate x mean latency; failed requests have
                     no latency
        ended        250 ms measured
        intervals    95 %, for these 250 ms only: another period or another start of the server may differ
        warning      8 connections had to be reopened
        ");
        let per_request = http(|measurement| measurement.connection = Connection::PerRequest);
        let text = shown(&per_request, &[], "http://127.0.0.1:8080/", &PLAIN);
        assert!(text.contains("a connection per request") && text.contains("from connect to response"), "{text}");
    }

    #[test]
    fn streams_of_http2_for_a_person() {
        let http2 = http(|measurement| {
            let waits = |ns: u64| {
                let mut waits = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
                (0..200).for_each(|nth| waits.record(nth * ns));
                Some(study::record::Histogram::from(&waits))
            };
            measurement.streams = Some(Box::new(StreamsMeasurement {
                allowed: Some(128),
                goaways: 18,
                refused: 1,
                responses: 18_041,
                header_bytes: 18_041 * 40,
                bytes_ahead: 18_041 * 2048,
                stalled_uploads: 0,
                messages: 18_041 * 3,
                message_gap: waits(1_000),
                wait_own: waits(0),
                wait_server: waits(1_000),
                wait_connection: None,
            }));
        });
        let text = shown(&http2, &[], "http://127.0.0.1:8080/ over HTTP/2", &PLAIN);
        let lines = text.lines().skip_while(|line| !line.starts_with("  streams"));
        let lines = lines.take_while(|line| !line.starts_with("  connect")).collect::<Vec<_>>();
        assert_snapshot!(lines.join("\n"), @"
        streams      heads of 40.0 B per response as sent, 2.00 KiB of other responses before it
                     3.00 messages per response, time between them: mean 99.5 µs, p50 98.8 µs, p99 197.6
                     µs, max 199.0 µs of 200 messages
                     wait for a place (server's limit): mean 99.5 µs, p50 98.8 µs, p99 197.6 µs, max 199.0
                     µs of 200 requests
                     18 connections ended by the server with GOAWAY
                     1 request refused by the server, and resent
        ");
    }

    #[test]
    fn littles_law_is_a_sum_over_a_time() {
        let report = load(&measurement(|_| ()), &[], "x");
        let mean = report.latency_ns.mean.unwrap();
        assert!((report.in_flight_by_latency - mean / 1e9 * report.rate_per_s).abs() < 1e-6);
        assert!((report.in_flight_by_latency / 40.0 - 1.0).abs() < 0.02, "{}", report.in_flight_by_latency);
        let open = measurement(|measurement| {
            measurement.offered_per_s = Some(80_000.0);
            measurement.response = Some(measurement.service.clone());
        });
        let text = shown(&open, &[], "x", &PLAIN);
        assert!(text.contains("open loop, 80.0 k/s offered") && text.contains("40.0 counted"), "{text}");
    }

    #[test]
    fn impossible_numbers_are_still_valid_json() {
        let broken = http(|measurement| {
            measurement.duration_ns = 0;
            measurement.service.sum = f64::INFINITY;
            measurement.connect.sum = f64::NAN;
        });
        let report = load(&broken, &[], "x");
        assert_eq!(
            (report.transfer_bytes_per_s, report.in_flight_by_latency, report.connect_ns.mean),
            (0.0, 0.0, None)
        );
    }

    #[test]
    fn for_a_person_with_trouble() {
        let trouble = measurement(|measurement| {
            measurement.windows.truncate(3);
            measurement.duration_ns = 15_000_000;
            measurement.errors.insert("timeout".to_owned(), 12);
            measurement.workers[0].cpu_ns = measurement.workers[0].wall_ns;
            measurement.volley = Some(Volley { mean_us: 571.1, stddev_us: 220.4, samples: 17_000, rounds: 2 });
        });
        assert_snapshot!(shown(&trouble, &[], "pingpong://[::1]:7000", &Style { colour: false, width: 60 }), @"
        load         pingpong://[::1]:7000, 40 clients, 1 thread,
                     closed loop
        requests/s   1.203 M/s   no interval
        transfer/s   4.59 MiB/s
        latency      service time: from write to response
          mean       554 µs      no interval
          stdev      226 µs
          max        3.18 ms
          p50        515 µs      no interval
          p90        813 µs      no interval
          p95        931 µs      no interval
          p99        1.259 ms    no interval
          p99.9      2.33 ms     no interval
        requests     18041 in 15.00 ms, 70.5 KiB received
        warm-up      18041 requests, not counted
        errors       12 of 18,053 requests failed (0.066 %)
                     12 timeout: no response in time
        connect      mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40
                     connections
        volley       571.10us 220.40us 17000
        limited by   generator: it was busy, and the server's
                     spare CPU is unknown; the generator's busiest
                     worker was 100 % busy
        generator    io_uring, CPU 250 ms, 13.86 µs per request
        in flight    40.0 of 40 clients counted, 666.5 by rate x
                     mean latency; failed requests have no latency
        ended        250 ms measured
        intervals    none: not enough data for an interval: 3
                     windows, 20 needed; measure longer with `-d`
        ");
    }

    #[test]
    fn reports_a_server_that_fell_silent() {
        use fixtures::{MS, leave};
        let hung = measurement(|measurement| {
            measurement.offered_per_s = Some(100_000.0);
            measurement.response = Some(measurement.service.clone());
            leave(measurement, &[200 * MS; 40], &[150 * MS; 7_000], 200 * MS);
            measurement.in_flight_mean += 40.0 * 200.0 / 250.0;
        });
        let report = load(&hung, &[], "x");
        assert!(report.censored.hung && report.latency_ns.p99 == Some(200e6));
        assert_eq!((report.censored.in_flight, report.censored.unsent), (40, 7_000));
        assert_snapshot!(shown(&hung, &[], "pingpong://127.0.0.1:7000", &PLAIN), @"
        load         pingpong://127.0.0.1:7000, 40 clients, 1 thread, open loop, 100.0 k/s offered
        requests/s   72.2 ±0.5 k/s
        transfer/s   282 KiB/s
        latency      response time: from intended send time to response
          mean       ≥ 56.5 ms   requests were still waiting at the end
          stdev      none
          max        ≥ 200 ms
          p50        615 µs      no interval
          p90        ≥ 200 ms    requests were still waiting at the end
          p95        ≥ 200 ms    requests were still waiting at the end
          p99        ≥ 200 ms    requests were still waiting at the end
          p99.9      ≥ 200 ms    requests were still waiting at the end
        requests     18041 in 250 ms, 70.5 KiB received, no errors
        unanswered   40 still in flight, for up to 200 ms; 7000 not sent, for up to 150.0 ms
        warm-up      18041 requests, not counted
        connect      mean 47.2 µs, p50 25.7 µs, max 199.7 µs of 40 connections
        limited by   server: no response for the last 200 ms, while 40 of 40 connections waited; the
                     generator's busiest worker was 71 % busy
        generator    io_uring, CPU 177.5 ms, 9.84 µs per request
        in flight    72.0 counted, 40.0 by rate x mean latency
        ended        250 ms measured
        intervals    95 %, for these 250 ms only: another period or another start of the server may
                     differ; 6 intervals declined: not enough data for an interval: requests still waiting
                     at the end would change it
        warning      hung: no response for the last 200 ms, while 40 of 40 connections waited
        warning      7000 intended requests could not be sent before the end: no connection was free, for
                     up to 150.0 ms
        ");
    }

    /// Replays the first steps of the example's search as a search without a study.
    fn search(steps: usize) -> Search {
        let (run, records) = example::capacity();
        let plan = run.plan.points.last().and_then(|point| point.load.search.clone()).unwrap();
        let mut search = Search::new(plan);
        for record in records.iter().filter(|record| record.point + 1 == run.plan.points.len()).take(steps) {
            assert_eq!(search.next(), record.step, "the same decisions as in a study");
            search.measured(record.step.unwrap(), record.measurement().unwrap().clone());
        }
        search
    }

    #[test]
    fn decides_like_a_study_and_reports_the_range() {
        let search = search(usize::MAX);
        assert_eq!(search.next(), None);
        let report = FindReport {
            version: FIND_VERSION,
            target: "http://localhost:8080/".to_owned(),
            search: search.finding(),
            warnings: vec!["one server for all trials".to_owned()],
        };
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        64.1 k/s  5 trials
        fails at     69.9 k/s  3 trials
        ended        both ends confirmed; 12 trials
        rates          34.9 k/s  holds             1 of 1 met it
                       49.4 k/s  holds             1 of 1 met it
                       58.8 k/s  holds             1 of 1 met it
                       64.1 k/s  holds             5 of 5 met it
                       69.9 k/s  fails             0 of 3 met it
        warning      one server for all trials
        ");
    }

    #[test]
    fn interrupted_searches_report_partial_results() {
        let search = search(4);
        let report = FindReport {
            version: FIND_VERSION,
            target: "http://localhost:8080/".to_owned(),
            search: search.finding(),
            warnings: Vec::new(),
        };
        insta::assert_snapshot!(find_terminal(&report, &Style::PLAIN), @"
        load         http://localhost:8080/, open loop
        objective    p99 < 5ms and errors < 0.1%
        holds        49.4 k/s  1 trial, not confirmed
        fails at     69.9 k/s  1 trial, not confirmed
        ended        stopped early; 4 trials
        rates          34.9 k/s  holds             1 of 1 met it
                       49.4 k/s  holds             1 of 1 met it
                       69.9 k/s  fails             0 of 1 met it
        ");
    }
}
