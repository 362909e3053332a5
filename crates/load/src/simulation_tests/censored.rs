//! Servers that stop responding. Pending requests and latency estimates are compared with the truth.

use stats::{Bound, Histogram, ProductLimit};
use study::record::Censored;

use super::*;

const NEVER: u64 = 3600 * S;
const TRIP: u64 = MS + ROUND_TRIP;
const LENGTHS: [u64; 2] = [S / 2, 5 * S];

fn censored(measurement: &Measurement) -> &Censored {
    measurement.censored.as_deref().unwrap()
}

fn quantiles(measurement: &Measurement, qs: &[f64]) -> Vec<Bound> {
    let [mut cut, unsent] = [&censored(measurement).in_flight, &censored(measurement).unsent]
        .map(|stored| Histogram::try_from(stored).unwrap());
    cut.merge(&unsent);
    let seen = Histogram::try_from(measurement.latency()).unwrap();
    let found = ProductLimit::new(&seen, &cut);
    qs.iter().map(|q| found.quantile(*q).unwrap()).collect()
}

fn exactly(value: u64) -> Bound {
    Bound { value: value as f64, at_least: false }
}

fn at_least(value: u64) -> Bound {
    Bound { value: value as f64, at_least: true }
}

fn timed(duration_ns: u64, clients: u32, arrivals: Arrivals) -> LoadSpec {
    let stop = Stop::Duration { duration_ns };
    LoadSpec { clients, arrivals, stop, warmup: Warmup::DurationNs(0), timeout_ns: 30 * S, ..spec() }
}

const CLOSED: Arrivals = Arrivals::closed(0);

#[test]
fn in_flight_requests_do_not_change_healthy_quantiles() {
    let measurement = measure(&timed(S, 4, CLOSED), |_| ready_made_peers::ping_pong(|_| MS).into());
    let left = censored(&measurement);
    assert_eq!((left.in_flight.count, left.unsent.count, left.connections.count), (4, 0, 4));
    assert!(left.in_flight.max.unwrap() < TRIP && left.silent_ns < TRIP);
    let all = [0.001, 0.5, 0.99, 1.0];
    assert_eq!(quantiles(&measurement, &all), all.map(|_| exactly(TRIP)));
}

#[test]
fn hung_server_in_closed_loop() {
    for duration_ns in LENGTHS {
        let serve = |_| ready_made_peers::ping_pong(|request| if request.number < 75 { MS } else { NEVER }).into();
        let measurement = measure(&timed(duration_ns, 20, CLOSED), serve);
        // 20 clients get 75 responses each, then wait for the rest of the trial.
        let waited = duration_ns - 75 * TRIP;
        let left = censored(&measurement);
        assert_eq!((measurement.requests, left.in_flight.count, left.unsent.count), (1_500, 20, 0));
        assert_eq!((left.in_flight.min, left.in_flight.max), (Some(waited), Some(waited)));
        assert_eq!((left.connections.max, left.silent_ns), (Some(waited), waited));
        // 1,500 of 1,520 requests have a response, so quantiles above 0.98684 are unknown.
        let found = quantiles(&measurement, &[0.5, 0.986, 0.987, 0.99, 0.999, 1.0]);
        let [known, unknown] = [exactly(TRIP), at_least(waited)];
        assert_eq!(found, [known, known, unknown, unknown, unknown, unknown], "{duration_ns}");
    }
}

#[test]
fn hung_server_in_open_loop() {
    for duration_ns in LENGTHS {
        // The load offers 4,000 requests per second, and the server falls silent after a quarter of the trial.
        let gap = S / 4_000;
        let hangs_at = std::rc::Rc::new(std::cell::Cell::new(None));
        let serve = {
            let hangs_at = hangs_at.clone();
            move |_| {
                let hangs_at = hangs_at.clone();
                let delay = move |request: ready_made_peers::Request| {
                    let first = hangs_at.get().unwrap_or(request.at);
                    hangs_at.set(Some(first));
                    if request.at < first + duration_ns / 4 { MS } else { NEVER }
                };
                ready_made_peers::ping_pong(delay).into()
            }
        };
        let spec = timed(duration_ns, 20, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, serve);
        let left = censored(&measurement);
        let (all, answered) = (duration_ns / gap, duration_ns / 4 / gap);
        assert_eq!((measurement.requests, left.in_flight.count), (answered, 20));
        assert_eq!(left.unsent.count, all - answered - 20);
        assert_eq!((measurement.unfinished, measurement.unsent), (20, all - answered - 20));
        // The first request without a response was due when the silence started.
        let waited = duration_ns - answered * gap;
        assert_eq!(left.in_flight.max, Some(waited));
        // Requests written before the last response arrived do not count as silence.
        let last_sign_of_life = (answered - 1) * gap + TRIP;
        assert_eq!(left.silent_ns, duration_ns - last_sign_of_life.next_multiple_of(gap));
        assert_eq!((left.unsent.max, left.unsent.min), (Some(waited - 20 * gap), Some(gap)));
        // A request that had waited for less than the time of a response carries no information.
        let at_risk = all - TRIP / gap;
        let known = answered as f64 / at_risk as f64;
        let found = quantiles(&measurement, &[known - 1e-4, known + 1e-4, 0.5, 0.99]);
        assert_eq!(found, [exactly(TRIP), at_least(waited), at_least(waited), at_least(waited)], "{duration_ns}");
    }
}

#[test]
fn one_frozen_connection_in_closed_loop() {
    for duration_ns in LENGTHS {
        let serve = |number| {
            let frozen =
                move |request: ready_made_peers::Request| if number == 3 && request.number >= 10 { NEVER } else { MS };
            ready_made_peers::ping_pong(frozen).into()
        };
        let measurement = measure(&timed(duration_ns, 20, CLOSED), serve);
        let (left, waited) = (censored(&measurement), duration_ns - 10 * TRIP);
        assert_eq!((left.connections.count, left.connections.max), (20, Some(waited)));
        assert!(left.silent_ns < TRIP, "the others go on");
        // One request of 9,000 does not affect p99.9, only the maximum.
        assert!(measurement.requests > 9_000);
        assert_eq!(quantiles(&measurement, &[0.5, 0.999, 1.0]), [exactly(TRIP), exactly(TRIP), at_least(waited)]);
    }
}

#[test]
fn temporary_pause_in_closed_loop_leaves_nothing_censored() {
    for duration_ns in LENGTHS {
        let stopped = |_| {
            let mut first = None;
            let delay = move |request: ready_made_peers::Request| {
                let since = request.at - *first.get_or_insert(request.at);
                if (100 * MS..300 * MS).contains(&since) { 300 * MS - since + MS } else { MS }
            };
            ready_made_peers::ping_pong(delay).into()
        };
        let measurement = measure(&timed(duration_ns, 20, CLOSED), stopped);
        let (left, n) = (censored(&measurement), measurement.requests as f64);
        assert_eq!(left.in_flight.count, 20);
        assert!(left.silent_ns < TRIP && left.connections.max.unwrap() < TRIP);
        let slow = quantiles(&measurement, &[1.0 - 19.0 / n, 1.0]);
        assert!(slow.iter().all(|bound| !bound.at_least && bound.value > 199e6), "{slow:?}");
        assert_eq!(quantiles(&measurement, &[1.0 - 21.0 / n]), [exactly(TRIP)]);
    }
}

#[test]
fn one_frozen_connection_in_open_loop() {
    for duration_ns in LENGTHS {
        let serve = |number| {
            let frozen =
                move |request: ready_made_peers::Request| if number == 3 && request.number >= 10 { NEVER } else { MS };
            ready_made_peers::ping_pong(frozen).into()
        };
        let spec = timed(duration_ns, 20, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, serve);
        let left = censored(&measurement);
        // Every twentieth request uses the frozen connection, whose eleventh request is thus sent after about 50 ms.
        let waited = left.connections.max.unwrap();
        near((duration_ns - waited) as f64, 50e6, 0.1);
        assert_eq!((left.in_flight.max, left.unsent.count), (Some(waited), 0));
        assert!(left.connections.count <= 1 + (TRIP * 4_000 / S + 1), "the others go on");
        assert_eq!(quantiles(&measurement, &[0.5, 0.999, 1.0]), [exactly(TRIP), exactly(TRIP), at_least(waited)]);
    }
}

#[test]
fn open_loop_charges_pause_to_all_due_requests() {
    for duration_ns in LENGTHS {
        let gap = S / 4_000;
        // All connections pause from 100 ms to 300 ms after the first request.
        let first = std::rc::Rc::new(std::cell::Cell::new(None));
        let stopped = move |_| {
            let first = first.clone();
            let delay = move |request: ready_made_peers::Request| {
                let began = first.get().unwrap_or(request.at);
                first.set(Some(began));
                let since = request.at - began;
                if (100 * MS..300 * MS).contains(&since) { 300 * MS - since + MS } else { MS }
            };
            ready_made_peers::ping_pong(delay).into()
        };
        let spec = timed(duration_ns, 1_000, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, stopped);
        let left = censored(&measurement);
        assert_eq!((left.unsent.count, measurement.requests + left.in_flight.count), (0, duration_ns / gap));
        assert!(left.in_flight.max.unwrap() < TRIP);
        // Request k of the 800 sent during the pause waits until the pause ends; all other requests take one trip.
        let mut truth = vec![TRIP; measurement.requests as usize - 800];
        truth.extend((0..800).map(|k| 200 * MS - k * gap + TRIP));
        truth.sort_unstable();
        for (q, bound) in [0.5, 0.97, 0.99, 0.999].into_iter().zip(quantiles(&measurement, &[0.5, 0.97, 0.99, 0.999])) {
            let rank = (q * truth.len() as f64).ceil() as usize;
            assert!(!bound.at_least);
            near(bound.value, truth[rank - 1] as f64, 1.0 / 1024.0);
        }
    }
}

/// The server takes 200 ms on average, and a trial of half a second shows only its quick responses.
#[test]
fn estimates_slow_server_without_bias() {
    let law = stats::Distribution::Exponential { mean: 200e6 };
    for (duration_ns, arrivals, clients, share) in [
        (S / 2, Arrivals::Constant { rate_per_s: 8_000.0 }, 4_000, 0.05),
        (5 * S, Arrivals::Constant { rate_per_s: 2_000.0 }, 2_000, 0.05),
        (S / 2, CLOSED, 2_000, 0.08),
        (5 * S, CLOSED, 500, 0.05),
    ] {
        let rng = std::rc::Rc::new(std::cell::RefCell::new(stats::Rng::new(5)));
        let serve = move |_| {
            let rng = rng.clone();
            ready_made_peers::ping_pong(move |_| law.sample(&mut rng.borrow_mut()) as u64).into()
        };
        let measurement = measure(&timed(duration_ns, clients, arrivals), serve);
        for (q, bound) in [0.5, 0.75, 0.85].into_iter().zip(quantiles(&measurement, &[0.5, 0.75, 0.85])) {
            assert!(!bound.at_least);
            near(bound.value, -(1.0f64 - q).ln() * 200e6 + ROUND_TRIP as f64, share);
        }
        if duration_ns < S {
            assert!(latency(&measurement, 0.75) < 0.85 * 277e6, "responses in time alone give a too good latency");
            assert!(quantiles(&measurement, &[0.99])[0].at_least, "0.92 s of a trial of 0.5 s");
        }
    }
    // If latency exceeds the length of the trial, that length is the only known bound.
    let measurement = measure(&timed(S / 2, 4, CLOSED), |_| ready_made_peers::ping_pong(|_| 2 * S).into());
    assert_eq!(quantiles(&measurement, &[0.01, 0.5]), [at_least(S / 2), at_least(S / 2)]);
    assert_eq!((measurement.requests, censored(&measurement).silent_ns), (0, S / 2));
}

#[test]
fn warm_up_requests_are_censored_like_their_responses() {
    let spec = LoadSpec { warmup: Warmup::DurationNs(300 * MS), ..timed(S / 2, 4, CLOSED) };
    let measurement =
        measure(&spec, |_| ready_made_peers::ping_pong(|request| if request.number < 10 { MS } else { NEVER }).into());
    let waited = 800 * MS - 10 * TRIP;
    assert_eq!((measurement.requests, censored(&measurement).in_flight.max), (0, Some(waited)));
    assert_eq!(censored(&measurement).silent_ns, waited);
}

#[test]
fn request_limit_leaves_none_in_flight() {
    // No more requests than the limit are sent, so none is in flight after the last response.
    for requests in [1_000, 1_001] {
        let spec = LoadSpec { stop: Stop::Requests { requests, max_ns: 60 * S }, ..timed(S, 4, CLOSED) };
        let measurement = measure(&spec, |_| ready_made_peers::ping_pong(|_| MS).into());
        let found = censored(&measurement);
        assert_eq!((measurement.requests, found.in_flight.count, found.unsent.count), (requests, 0, 0));
        assert_eq!(quantiles(&measurement, &[0.5, 0.99]), [exactly(TRIP), exactly(TRIP)]);
    }
}

#[test]
fn pipeline_leaves_several_requests_per_connection() {
    let spec = LoadSpec { pipeline: 16, ..timed(S / 2, 4, CLOSED) };
    let measurement =
        measure(&spec, |_| ready_made_peers::ping_pong(|request| if request.number < 160 { MS } else { NEVER }).into());
    let left = censored(&measurement);
    assert_eq!((left.in_flight.count, left.connections.count), (64, 4));
    assert_eq!((left.in_flight.max, left.silent_ns), (left.connections.max, left.connections.max.unwrap()));
}

#[test]
fn overdue_requests_are_errors_or_counted_as_overdue() {
    let spec = LoadSpec { timeout_ns: 200 * MS, ..timed(S, 20, Arrivals::Constant { rate_per_s: 1_000.0 }) };
    let measurement = measure(&spec, |_| ready_made_peers::silent().into());
    let left = censored(&measurement);
    assert_eq!(errors(&measurement), [("timeout", 20)]);
    assert_eq!((left.in_flight.count, left.unsent.count), (20, 980));
    // Requests are intended at 0, 1, 2 ... ms, so all before 800 ms had waited longer than 200 ms.
    assert_eq!(left.unsent_overdue, 800 - 20);
}
