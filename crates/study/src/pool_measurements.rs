//! Pools the measurements of several generators into one for the whole load. Counts are added and histograms merged by
//! bucket, so that quantiles cover all requests. Nothing is averaged: the mean of three p99s is not a p99.

use std::collections::BTreeMap;

use crate::record::{
    Censored, Histogram, JourneyMeasurement, Measurement, OperationMeasurement, StreamsMeasurement, Window,
    keep_slowest,
};

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
    for part in rest {
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
        add(&mut all.errors, &part.errors);
        add(&mut all.warmup_errors, &part.warmup_errors);
        add(&mut all.statuses, &part.statuses);
        for (kind, example) in &part.error_examples {
            all.error_examples.entry(kind.clone()).or_insert_with(|| example.clone());
        }
        all.backend_note = all.backend_note.or_else(|| part.backend_note.clone());
    }
    all.service = merged(parts, "service time", |part| Some(&part.service))?.unwrap_or_default();
    all.connect = merged(parts, "connect time", |part| Some(&part.connect))?.unwrap_or_default();
    all.response = merged(parts, "response time", |part| part.response.as_ref())?;
    all.lag_thread = merged(parts, "lag of the thread", |part| part.lag_thread.as_ref())?;
    all.lag_connection = merged(parts, "lag for a connection", |part| part.lag_connection.as_ref())?;
    all.handshake = merged(parts, "handshake time", |part| part.handshake.as_ref())?;
    all.first_byte = merged(parts, "time to the first byte", |part| part.first_byte.as_ref())?;
    let window = |index: usize| {
        let latency = merged(parts, "window", |part| Some(&part.windows[index].latency))?.unwrap_or_default();
        let sum = |count: fn(&Window) -> u64| parts.iter().map(|part| count(&part.windows[index])).sum();
        Ok(Window { requests: sum(|window| window.requests), errors: sum(|window| window.errors), latency })
    };
    all.windows = (0..first.windows.len()).map(window).collect::<Result<_, String>>()?;
    all.slowest = parts.iter().flat_map(|part| part.slowest.iter().cloned()).collect();
    keep_slowest(&mut all.slowest);
    all.log.clear(); // A load of several machines has no log.
    add_operations(&mut all.by_request, parts, |part| &part.by_request)?;
    for (nth, journey) in all.journeys.iter_mut().enumerate() {
        add_operations(&mut journey.operations, parts, |part| {
            part.journeys.get(nth).map_or(&[], |journey| &journey.operations)
        })?;
        let of_parts = || parts.iter().filter_map(|part| part.journeys.get(nth));
        let sum = |count: fn(&JourneyMeasurement) -> u64| of_parts().map(count).sum();
        (journey.completed, journey.abandoned) = (sum(|part| part.completed), sum(|part| part.abandoned));
        journey.session = merged(parts, "session time", |part| part.journeys.get(nth)?.session.as_ref())?;
    }
    if let Some(streams) = &mut all.streams {
        **streams = self::streams(parts)?;
    }
    all.offered_per_s = offered_per_s(parts);
    all.censored = censored(parts)?.map(Box::new);
    Ok(all)
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

fn streams(parts: &[Measurement]) -> Result<StreamsMeasurement, String> {
    let of_parts = || parts.iter().filter_map(|part| part.streams.as_deref());
    let sum = |count: fn(&StreamsMeasurement) -> u64| of_parts().map(count).sum();
    let wait = |what, of: fn(&StreamsMeasurement) -> Option<&Histogram>| {
        merged(parts, what, |part| of(part.streams.as_deref()?))
    };
    Ok(StreamsMeasurement {
        allowed: of_parts().filter_map(|part| part.allowed).min(),
        goaways: sum(|part| part.goaways),
        refused: sum(|part| part.refused),
        responses: sum(|part| part.responses),
        header_bytes: sum(|part| part.header_bytes),
        bytes_ahead: sum(|part| part.bytes_ahead),
        stalled_uploads: sum(|part| part.stalled_uploads),
        messages: sum(|part| part.messages),
        message_gap: wait("time between messages", |part| part.message_gap.as_ref())?,
        wait_own: wait("wait for a place", |part| part.wait_own.as_ref())?,
        wait_server: wait("wait for the server's limit", |part| part.wait_server.as_ref())?,
        wait_connection: wait("wait for a connection", |part| part.wait_connection.as_ref())?,
    })
}

fn add_operations<'m>(
    all: &mut [OperationMeasurement],
    parts: &'m [Measurement],
    of: impl Fn(&'m Measurement) -> &'m [OperationMeasurement],
) -> Result<(), String> {
    for (nth, operation) in all.iter_mut().enumerate() {
        let of_parts = || parts.iter().filter_map(|part| of(part).get(nth));
        operation.requests = of_parts().map(|part| part.requests).sum();
        operation.errors = of_parts().map(|part| part.errors).sum();
        // A generator without requests of this name has no histogram.
        let service = |part| Some(&of(part).get(nth)?.service).filter(|service| service.count > 0);
        let service = merged(parts, "requests by name", service)?;
        operation.service = service.unwrap_or_default();
        operation.first_byte = merged(parts, "first byte by name", |part| of(part).get(nth)?.first_byte.as_ref())?;
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

fn censored(parts: &[Measurement]) -> Result<Option<Censored>, String> {
    let Some(each) = parts.iter().map(|part| part.censored.as_deref()).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let of = |what, part: fn(&Censored) -> &Histogram| {
        let merged = merged(parts, what, |measurement| measurement.censored.as_deref().map(part));
        merged.map(Option::unwrap_or_default)
    };
    Ok(Some(Censored {
        in_flight: of("unanswered requests", |censored| &censored.in_flight)?,
        unsent: of("unsent requests", |censored| &censored.unsent)?,
        unsent_overdue: each.iter().map(|censored| censored.unsent_overdue).sum(),
        connections: of("silent connections", |censored| &censored.connections)?,
        // The server was silent to all generators only since its last response to any generator.
        silent_ns: each.iter().map(|censored| censored.silent_ns).min().unwrap_or(0),
    }))
}

fn merged<'a>(
    parts: &'a [Measurement],
    what: &str,
    of: impl Fn(&'a Measurement) -> Option<&'a Histogram>,
) -> Result<Option<Histogram>, String> {
    let mut all: Option<stats::Histogram> = None;
    for (part, nth) in parts.iter().zip(1..) {
        let Some(stored) = of(part) else { continue };
        let one = live(stored, nth, what)?;
        match &mut all {
            None => all = Some(one),
            Some(all) => all.merge(&one),
        }
    }
    Ok(all.as_ref().map(Histogram::from))
}

fn add<K: Clone + Ord>(all: &mut BTreeMap<K, u64>, part: &BTreeMap<K, u64>) {
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
