//! Builds the [`Measurement`] from the results of all workers.

use std::collections::BTreeMap;

use stats::Histogram;
use study::Workload;
use study::record::{
    self, CacheCounts, CacheMeasurement, LoggedRequest, Measurement, MissCauses, OperationMeasurement, SlowResponse,
    StreamsMeasurement, Window, keep_slowest,
};
use study::spec::{Arrivals, LoadSpec, SPEC_VERSION, Target};

use crate::censored_waits;
use crate::coordinator::{Ended, add_windows};
use crate::protocol::{Class, Shared, operations};
use crate::recorder::{Fault, Faults, Log, OpenLoop, Operation, Recorder, Wait};
use crate::worker::Done;

/// Merges the results of all workers. The caller adds the backend and the resource use of the process.
pub(crate) fn build_measurement(spec: &LoadSpec, ended: Ended, done: &[Done], shared: Option<&Shared>) -> Measurement {
    let cache = shared.zip(if let Target::Cache { workload, .. } = &spec.target { Some(workload) } else { None });
    let cache = cache.map(|(shared, workload)| Box::new(cached(spec, &ended, done, shared, workload)));
    let sum = |value: fn(&Done) -> u64| done.iter().map(value).sum::<u64>();
    let histogram = |part: fn(&Recorder) -> &Histogram| merged(done.iter().map(|worker| part(&worker.recorder)));
    let open_loops = || done.iter().filter_map(|worker| worker.recorder.open_loop.as_deref());
    let open = |part: fn(&OpenLoop) -> &Histogram| merged(open_loops().map(part));
    let flight_integral = done.iter().map(|worker| worker.flight_integral).sum::<u128>();
    let backoff_integral = done.iter().map(|worker| worker.backoff_integral).sum::<u128>();
    let last_sign_of_life = done.iter().filter_map(|worker| worker.recorder.last_sign_of_life()).max();
    let censored = censored_waits::merged(done.iter().map(|worker| &worker.waits), last_sign_of_life);
    Measurement {
        version: SPEC_VERSION,
        protocol: spec.target.protocol(),
        address: spec.target.address().to_owned(),
        backend: String::new(),
        backend_note: None,
        clients: spec.own_clients(),
        threads: done.len() as u32,
        pipeline: spec.pipeline,
        connection: spec.connection,
        began_ns: ended.from,
        duration_ns: ended.duration_ns,
        warmup_ns: ended.warmup_ns,
        warmup_requests: sum(|worker| worker.recorder.warmup_requests),
        requests: sum(|worker| worker.recorder.requests),
        errors: named(done, |worker| &worker.recorder.faults),
        error_examples: examples(done),
        statuses: statuses(done),
        warmup_errors: named(done, |worker| &worker.recorder.warmup_faults),
        late_answers: sum(|worker| worker.recorder.late_answers),
        reconnects: sum(|worker| worker.recorder.reconnects),
        in_backoff_mean: backoff_integral as f64 / ((ended.until - ended.from) as f64).max(1.0),
        think_ns: spec.arrivals.think().mean_ns(),
        sent: sum(|worker| worker.recorder.sent),
        asked_again: sum(|worker| worker.recorder.asked_again),
        left_in_flight: sum(|worker| worker.recorder.left_in_flight),
        offered_per_s: match spec.arrivals {
            Arrivals::Recorded => Some(sum(|worker| worker.due) as f64 / (ended.duration_ns as f64 / 1e9).max(1e-9)),
            arrivals => arrivals.offered_per_s(),
        },
        unsent: censored.unsent.count,
        unfinished: censored.in_flight.count,
        censored: Some(Box::new(censored)),
        in_flight_mean: flight_integral as f64 / (ended.duration_ns as f64).max(1.0),
        service: histogram(|recorder| &recorder.service).unwrap_or_default(),
        response: open(|open| &open.response),
        lag_thread: open(|open| &open.lag_thread),
        lag_connection: open(|open| &open.lag_connection),
        connect: histogram(|recorder| &recorder.connect).unwrap_or_default(),
        handshake: merged(done.iter().filter_map(|worker| worker.recorder.handshake.as_deref())),
        slowest: slowest(done),
        log: logged(done),
        log_left_out: logs(done).map(|log| log.left_out).sum(),
        checked: sum(|worker| worker.recorder.checked),
        first_byte: histogram(|recorder| &recorder.first_byte).filter(|first_byte| first_byte.count > 0),
        resumed: sum(|worker| worker.recorder.resumed),
        window_ns: spec.window_ns,
        windows: windows(done, (ended.until - ended.from).div_ceil(spec.window_ns) as usize),
        workers: done.iter().map(|worker| worker.resources.clone()).collect(),
        process_cpu_ns: 0,
        process_rss_max_bytes: 0,
        sent_bytes: sum(|worker| worker.recorder.sent_bytes),
        received_bytes: sum(|worker| worker.recorder.received_bytes),
        stop_reason: ended.reason,
        volley: ended.volley,
        cache,
        journeys: Vec::new(),
        by_request: by_request(spec, done),
        shape: spec.shape.clone(),
        streams: streams(done),
    }
}

fn streams(done: &[Done]) -> Option<Box<StreamsMeasurement>> {
    let parts = done.iter().map(|worker| worker.recorder.streams.as_deref()).collect::<Option<Vec<_>>>()?;
    let wait = |wait: Wait| {
        let waits = merged(parts.iter().map(|part| &*part.slot_wait[wait as usize]));
        waits.filter(|waits| waits.count > 0)
    };
    let mut all = StreamsMeasurement {
        message_gap: merged(parts.iter().filter_map(|part| part.message_gap.as_deref())),
        wait_own: wait(Wait::Own),
        wait_server: wait(Wait::Server),
        wait_connection: wait(Wait::Connection),
        ..StreamsMeasurement::default()
    };
    parts.iter().for_each(|part| all.add_counts(&part.counts));
    all.allowed = all.allowed.filter(|allowed| *allowed < u32::MAX);
    Some(Box::new(all))
}

fn slowest(done: &[Done]) -> Vec<SlowResponse> {
    let of_workers = done.iter().filter_map(|worker| worker.recorder.slowest.as_ref());
    let mut all = of_workers.flat_map(|slowest| slowest.responses.iter().cloned()).collect();
    keep_slowest(&mut all);
    all
}

fn logs(done: &[Done]) -> impl Iterator<Item = &Log> {
    done.iter().filter_map(|worker| worker.recorder.log.as_deref())
}

fn logged(done: &[Done]) -> Vec<LoggedRequest> {
    let mut all = logs(done).flat_map(|log| log.entries.iter().cloned()).collect::<Vec<_>>();
    all.sort_by_key(|entry| entry.ended_ns);
    all
}

fn by_request(spec: &LoadSpec, done: &[Done]) -> Vec<OperationMeasurement> {
    let Target::Http { requests, .. } = &spec.target else { return Vec::new() };
    let measured = |(nth, name): (usize, String)| {
        operation(name, || done.iter().filter_map(|worker| worker.recorder.operations.get(nth)))
    };
    operations(requests).into_iter().enumerate().map(measured).collect()
}

/// Merges the results of an operation. `parts` has one entry per worker and step with this name.
pub(crate) fn operation<'a, I: Iterator<Item = &'a Operation>>(
    name: String,
    parts: impl Fn() -> I,
) -> OperationMeasurement {
    OperationMeasurement {
        name,
        requests: parts().map(|operation| operation.requests).sum(),
        errors: parts().map(|operation| operation.errors).sum(),
        service: merged(parts().map(|operation| &*operation.latency)).unwrap_or_default(),
        first_byte: merged(parts().filter_map(|operation| operation.first_byte.as_deref())),
    }
}

fn cached(spec: &LoadSpec, ended: &Ended, done: &[Done], shared: &Shared, workload: &Workload) -> CacheMeasurement {
    let parts = || done.iter().filter_map(|worker| worker.recorder.cache.as_deref());
    let class = |class: Class| merged(parts().map(|part| &*part.classes[class as usize])).unwrap_or_default();
    let mut transient = vec![(0, 0); parts().map(|part| part.transient.len()).max().unwrap_or(0)];
    parts().for_each(|part| add_windows(&mut transient, &part.transient));
    let (footprint_keys, footprint_bytes) = shared.footprint();
    CacheMeasurement {
        counts: parts().fold(CacheCounts::default(), |all, part| added(all, part.counts)),
        warmup: parts().fold(CacheCounts::default(), |all, part| added(all, part.warmup)),
        get_hit: class(Class::GetHit),
        get_miss: class(Class::GetMiss),
        set: class(Class::Set),
        delete: class(Class::Delete),
        fill: class(Class::Fill),
        rewrite: class(Class::Rewrite),
        footprint_keys,
        footprint_bytes,
        limit_bytes: None,
        hit_ratio_of_mix: workload.hit_ratio_of_mix(),
        transient_window_ns: spec.window_ns,
        transient,
        steadiness: ended.steadiness.clone(),
        trace: shared.replayed.as_ref().zip(workload.trace.as_ref()).map(|(seen, trace)| seen.to_record(trace)),
    }
}

fn added(a: CacheCounts, b: CacheCounts) -> CacheCounts {
    CacheCounts {
        hits: a.hits + b.hits,
        misses: a.misses + b.misses,
        hit_bytes: a.hit_bytes + b.hit_bytes,
        requested_bytes: a.requested_bytes + b.requested_bytes,
        causes: MissCauses {
            compulsory: a.causes.compulsory + b.causes.compulsory,
            invalidation: a.causes.invalidation + b.causes.invalidation,
            expiry: a.causes.expiry + b.causes.expiry,
            refused: a.causes.refused + b.causes.refused,
            capacity: a.causes.capacity + b.causes.capacity,
        },
        sets: a.sets + b.sets,
        deletes: a.deletes + b.deletes,
        fills: a.fills + b.fills,
        rewrites: a.rewrites + b.rewrites,
        refused_sets: a.refused_sets + b.refused_sets,
    }
}

pub(crate) fn merged<'a>(mut parts: impl Iterator<Item = &'a Histogram>) -> Option<record::Histogram> {
    let mut all = parts.next()?.clone();
    parts.for_each(|part| all.merge(part));
    Some(record::Histogram::from(&all))
}

fn examples(done: &[Done]) -> BTreeMap<String, String> {
    let example = |(index, name): (usize, &str)| {
        let text = done.iter().find_map(|worker| worker.recorder.examples[index].clone())?;
        Some((name.to_owned(), text))
    };
    Fault::NAMES.into_iter().enumerate().filter_map(example).collect()
}

fn statuses(done: &[Done]) -> BTreeMap<u16, u64> {
    let mut all = BTreeMap::new();
    for &(status, count) in done.iter().flat_map(|worker| &worker.recorder.statuses) {
        *all.entry(status).or_default() += count;
    }
    all
}

fn named(done: &[Done], faults: fn(&Done) -> &Faults) -> BTreeMap<String, u64> {
    let total = |index: usize| done.iter().map(|worker| faults(worker)[index]).sum::<u64>();
    let all = Fault::NAMES.into_iter().enumerate().map(|(index, name)| (name.to_owned(), total(index)));
    all.filter(|&(_, count)| count > 0).collect()
}

fn windows(done: &[Done], count: usize) -> Vec<Window> {
    let mut latency = Histogram::with_precision(Histogram::WINDOW_PRECISION);
    (0..count)
        .map(|index| {
            let (mut requests, mut errors) = (0, 0);
            latency.reset();
            for slice in done.iter().filter_map(|worker| worker.recorder.slices.get(index)) {
                errors += slice.errors;
                requests += slice.valid;
                latency.merge(&slice.latency);
            }
            Window { requests, errors, latency: record::Histogram::from(&latency) }
        })
        .collect()
}
