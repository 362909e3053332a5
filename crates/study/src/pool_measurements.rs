//! Pools the measurements of several generators into one for the whole load. Counts are added and histograms merged by
//! bucket, so that quantiles cover all requests. Nothing is averaged: the mean of three p99s is not a p99.

use std::collections::BTreeMap;

use crate::record::{Histogram, Measurement, OperationMeasurement, keep_slowest};

/// Pools the [parts](crate::spec::Part) of a load, in the order of their workers. Resident memory is the maximum. Error
/// examples and, because clocks differ, [`Measurement::began_ns`] are the first part's. Fails if times or loads differ.
pub fn pool(parts: &[Measurement]) -> Result<Measurement, String> {
    let [first, rest @ ..] = parts else { return Err("no measurements to pool".to_owned()) };
    for (part, nth) in rest.iter().zip(2..) {
        if let Some((what, first, other)) = difference(first, part) {
            return Err(format!("generators 1 and {nth} differ in {what}: {first} and {other}"));
        }
    }
    for (has, what) in [
        (parts.iter().any(|part| part.cache.is_some()), "cache results"),
        (parts.iter().any(|part| part.volley.is_some()), "rounds of volley's rule"),
    ] {
        if has {
            return Err(format!("a load of several generators has no {what}"));
        }
    }
    let mut all = first.clone();
    for (part, nth) in rest.iter().zip(2..) {
        add(&mut all, part, nth)?;
    }
    keep_slowest(&mut all.slowest);
    all.log.clear(); // A load of several machines has no log.
    all.offered_per_s = offered_per_s(parts);
    if parts.iter().any(|part| part.censored.is_none()) {
        all.censored = None;
    }
    Ok(all)
}

/// Adds the measurement of generator `nth` to the sum of the earlier ones.
fn add(all: &mut Measurement, part: &Measurement, nth: usize) -> Result<(), String> {
    all.clients += part.clients;
    all.threads += part.threads;
    all.warmup_requests += part.warmup_requests;
    all.requests += part.requests;
    all.late_answers += part.late_answers;
    all.reconnects += part.reconnects;
    all.in_backoff_mean += part.in_backoff_mean;
    all.sent += part.sent;
    all.asked_again += part.asked_again;
    all.left_in_flight += part.left_in_flight;
    all.unsent += part.unsent;
    all.unfinished += part.unfinished;
    all.in_flight_mean += part.in_flight_mean;
    all.resumed += part.resumed;
    all.checked += part.checked;
    all.process_cpu_ns += part.process_cpu_ns;
    all.process_rss_max_bytes = all.process_rss_max_bytes.max(part.process_rss_max_bytes);
    all.sent_bytes += part.sent_bytes;
    all.received_bytes += part.received_bytes;
    all.workers.extend(part.workers.iter().cloned());
    all.slowest.extend(part.slowest.iter().cloned());
    add_counts(&mut all.errors, &part.errors);
    add_counts(&mut all.warmup_errors, &part.warmup_errors);
    add_counts(&mut all.statuses, &part.statuses);
    for (kind, example) in &part.error_examples {
        all.error_examples.entry(kind.clone()).or_insert_with(|| example.clone());
    }
    all.backend_note = all.backend_note.take().or_else(|| part.backend_note.clone());
    merge(&mut all.service, &part.service, nth, "service time")?;
    merge(&mut all.connect, &part.connect, nth, "connect time")?;
    merge_optional(&mut all.response, &part.response, nth, "response time")?;
    merge_optional(&mut all.lag_thread, &part.lag_thread, nth, "lag of the thread")?;
    merge_optional(&mut all.lag_connection, &part.lag_connection, nth, "lag for a connection")?;
    merge_optional(&mut all.handshake, &part.handshake, nth, "handshake time")?;
    merge_optional(&mut all.first_byte, &part.first_byte, nth, "time to the first byte")?;
    for (all, part) in all.windows.iter_mut().zip(&part.windows) {
        all.requests += part.requests;
        all.errors += part.errors;
        merge(&mut all.latency, &part.latency, nth, "window")?;
    }
    add_operations(&mut all.by_request, &part.by_request, nth)?;
    for (all, part) in all.journeys.iter_mut().zip(&part.journeys) {
        all.completed += part.completed;
        all.abandoned += part.abandoned;
        merge_optional(&mut all.session, &part.session, nth, "session time")?;
        add_operations(&mut all.operations, &part.operations, nth)?;
    }
    if let Some((all, part)) = all.streams.as_mut().zip(part.streams.as_ref()) {
        all.add_counts(part);
        merge_optional(&mut all.message_gap, &part.message_gap, nth, "time between messages")?;
        merge_optional(&mut all.wait_own, &part.wait_own, nth, "wait for a place")?;
        merge_optional(&mut all.wait_server, &part.wait_server, nth, "wait for the server's limit")?;
        merge_optional(&mut all.wait_connection, &part.wait_connection, nth, "wait for a connection")?;
    }
    if let Some((all, part)) = all.censored.as_mut().zip(part.censored.as_ref()) {
        merge(&mut all.in_flight, &part.in_flight, nth, "unanswered requests")?;
        merge(&mut all.unsent, &part.unsent, nth, "unsent requests")?;
        merge(&mut all.connections, &part.connections, nth, "silent connections")?;
        all.unsent_overdue += part.unsent_overdue;
        // The server was silent to all generators only since its last response to any generator.
        all.silent_ns = all.silent_ns.min(part.silent_ns);
    }
    Ok(())
}

/// Mean offered rate, weighted by sessions, because each part's rate reflects the mean number of calls in its sessions.
fn offered_per_s(parts: &[Measurement]) -> Option<f64> {
    let first = parts.first()?.offered_per_s?;
    let sessions = |part: &Measurement| part.sessions() as f64;
    let all = parts.iter().map(sessions).sum::<f64>();
    if all == 0.0 || parts.iter().all(|part| part.offered_per_s == Some(first)) {
        return Some(first);
    }
    Some(parts.iter().map(|part| part.offered_per_s.unwrap_or(first) * sessions(part)).sum::<f64>() / all)
}

fn add_operations(all: &mut [OperationMeasurement], part: &[OperationMeasurement], nth: usize) -> Result<(), String> {
    for (all, part) in all.iter_mut().zip(part) {
        all.requests += part.requests;
        all.errors += part.errors;
        merge(&mut all.service, &part.service, nth, "requests by name")?;
        merge_optional(&mut all.first_byte, &part.first_byte, nth, "first byte by name")?;
    }
    Ok(())
}

/// Reduces the part of generator `nth` to coarse histograms. All parts have `workers` workers. Fails if a histogram is
/// malformed.
pub fn outline(part: &Measurement, nth: usize, workers: u32) -> Result<Measurement, String> {
    let coarse = |what, stored: &Histogram| {
        let fine = live(stored, nth, what)?;
        let mut coarse = stats::Histogram::with_precision(stats::Histogram::WINDOW_PRECISION);
        coarse.merge(&fine);
        Ok::<_, String>(Histogram::from(&coarse))
    };
    let optional = |what, stored: &Option<Histogram>| stored.as_ref().map(|stored| coarse(what, stored)).transpose();
    let mut outline = Measurement { windows: Vec::new(), by_request: Vec::new(), first_byte: None, ..part.clone() };
    (outline.journeys, outline.cache, outline.streams) = (Vec::new(), None, None);
    outline.service = coarse("service time", &part.service)?;
    outline.connect = coarse("connect time", &part.connect)?;
    outline.response = optional("response time", &part.response)?;
    outline.lag_thread = optional("lag of the thread", &part.lag_thread)?;
    outline.lag_connection = optional("lag for a connection", &part.lag_connection)?;
    outline.handshake = optional("handshake time", &part.handshake)?;
    outline.offered_per_s = part.offered_per_s.map(|rate| rate * f64::from(part.threads) / f64::from(workers.max(1)));
    Ok(outline)
}

/// Merges a histogram of generator `nth`. An empty one adds nothing, and has no precision if it was never used.
fn merge(all: &mut Histogram, part: &Histogram, nth: usize, what: &str) -> Result<(), String> {
    if part.count > 0 {
        let mut sum = live(part, nth, what)?;
        if all.count > 0 {
            sum.merge(&live(all, 1, what)?);
        }
        *all = Histogram::from(&sum);
    }
    Ok(())
}

fn merge_optional(all: &mut Option<Histogram>, part: &Option<Histogram>, nth: usize, what: &str) -> Result<(), String> {
    part.as_ref().map_or(Ok(()), |part| merge(all.get_or_insert_default(), part, nth, what))
}

fn add_counts<K: Clone + Ord>(all: &mut BTreeMap<K, u64>, part: &BTreeMap<K, u64>) {
    for (key, count) in part {
        *all.entry(key.clone()).or_default() += count;
    }
}

fn difference(first: &Measurement, other: &Measurement) -> Option<(&'static str, String, String)> {
    type Field = (&'static str, fn(&Measurement) -> String);
    const FIELDS: [Field; 11] = [
        ("version", |part| part.version.to_string()),
        ("protocol", |part| part.protocol.to_string()),
        ("I/O backend", |part| part.backend.clone()),
        ("`pipeline`", |part| part.pipeline.to_string()),
        ("`connection`", |part| format!("{:?}", part.connection)),
        ("the reason of the end", |part| part.stop_reason.clone()),
        ("the measured time", |part| part.duration_ns.to_string()),
        ("the warm-up", |part| part.warmup_ns.to_string()),
        ("the length of windows", |part| part.window_ns.to_string()),
        ("the number of windows", |part| part.windows.len().to_string()),
        ("the offered rate", |part| match part.journeys.len() {
            0 => format!("{:?}", part.offered_per_s),
            _ => String::new(),
        }),
    ];
    FIELDS.iter().map(|(what, value)| (*what, value(first), value(other))).find(|(_, first, other)| first != other)
}

fn live(stored: &Histogram, nth: usize, what: &str) -> Result<stats::Histogram, String> {
    stats::Histogram::try_from(stored).map_err(|error| format!("generator {nth}, {what}: {error}"))
}
