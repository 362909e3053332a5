//! Subjects that fall silent: what is left without an answer, and what can be said of latency then, against what is known of it.

use stats::{Bound, Histogram, ProductLimit};
use study::record::Censored;

use super::*;

const NEVER: u64 = 3600 * S;
const TRIP: u64 = MS + ROUND_TRIP;
/// A trial of half a second and one of five.
const LENGTHS: [u64; 2] = [S / 2, 5 * S];

fn censored(measurement: &Measurement) -> &Censored {
    measurement.censored.as_deref().unwrap()
}

/// Latency by the product-limit estimate, at each of these quantiles.
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

const CLOSED: Arrivals = Arrivals::Closed { think_ns: 0 };

#[test]
fn a_closed_loop_on_a_healthy_subject_leaves_what_is_in_flight_and_changes_nothing() {
    let measurement = measure(&timed(S, 4, CLOSED), |_| peers::ping_pong(|_| MS).into());
    let left = censored(&measurement);
    assert_eq!((left.in_flight.count, left.unsent.count, left.connections.count), (4, 0, 4));
    assert!(left.in_flight.max.unwrap() < TRIP && left.silent_ns < TRIP);
    let all = [0.001, 0.5, 0.99, 1.0];
    assert_eq!(quantiles(&measurement, &all), all.map(|_| exactly(TRIP)));
}

/// From its `from`-th request on, each connection waits for ever.
#[test]
fn a_hung_subject_in_the_closed_loop() {
    for duration_ns in LENGTHS {
        let serve = |_| peers::ping_pong(|request| if request.number < 75 { MS } else { NEVER }).into();
        let measurement = measure(&timed(duration_ns, 20, CLOSED), serve);
        // 20 clients with 75 answers each, and as long as is left of the trial after those.
        let waited = duration_ns - 75 * TRIP;
        let left = censored(&measurement);
        assert_eq!((measurement.requests, left.in_flight.count, left.unsent.count), (1_500, 20, 0));
        assert_eq!((left.in_flight.min, left.in_flight.max), (Some(waited), Some(waited)));
        assert_eq!((left.connections.max, left.silent_ns), (Some(waited), waited));
        // 1,500 of 1,520: beyond the share 0.98684 nothing is known.
        let found = quantiles(&measurement, &[0.5, 0.986, 0.987, 0.99, 0.999, 1.0]);
        let [known, unknown] = [exactly(TRIP), at_least(waited)];
        assert_eq!(found, [known, known, unknown, unknown, unknown, unknown], "{duration_ns}");
    }
}

#[test]
fn a_hung_subject_in_the_open_loop() {
    for duration_ns in LENGTHS {
        // 4,000 a second; silent from a quarter of the trial on.
        let gap = S / 4_000;
        let hangs_at = std::rc::Rc::new(std::cell::Cell::new(None));
        let serve = {
            let hangs_at = hangs_at.clone();
            move |_| {
                let hangs_at = hangs_at.clone();
                let delay = move |request: peers::Request| {
                    let first = hangs_at.get().unwrap_or(request.at);
                    hangs_at.set(Some(first));
                    if request.at < first + duration_ns / 4 { MS } else { NEVER }
                };
                peers::ping_pong(delay).into()
            }
        };
        let spec = timed(duration_ns, 20, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, serve);
        let left = censored(&measurement);
        let (all, answered) = (duration_ns / gap, duration_ns / 4 / gap);
        assert_eq!((measurement.requests, left.in_flight.count), (answered, 20));
        assert_eq!(left.unsent.count, all - answered - 20);
        assert_eq!((measurement.unfinished, measurement.unsent), (20, all - answered - 20));
        // The first that is not answered is intended when the silence begins.
        let waited = duration_ns - answered * gap;
        assert_eq!(left.in_flight.max, Some(waited));
        // Meanwhile the last answer was on its way; what was written until it came was written before it.
        let heard_at = (answered - 1) * gap + TRIP;
        assert_eq!(left.silent_ns, duration_ns - heard_at.next_multiple_of(gap));
        assert_eq!((left.unsent.max, left.unsent.min), (Some(waited - 20 * gap), Some(gap)));
        // Those that had not waited as long as an answer takes say nothing.
        let at_risk = all - TRIP / gap;
        let known = answered as f64 / at_risk as f64;
        let found = quantiles(&measurement, &[known - 1e-4, known + 1e-4, 0.5, 0.99]);
        assert_eq!(found, [exactly(TRIP), at_least(waited), at_least(waited), at_least(waited)], "{duration_ns}");
    }
}

#[test]
fn one_frozen_connection_of_twenty() {
    for duration_ns in LENGTHS {
        let serve = |number| {
            let frozen = move |request: peers::Request| if number == 3 && request.number >= 10 { NEVER } else { MS };
            peers::ping_pong(frozen).into()
        };
        let measurement = measure(&timed(duration_ns, 20, CLOSED), serve);
        let (left, waited) = (censored(&measurement), duration_ns - 10 * TRIP);
        assert_eq!((left.connections.count, left.connections.max), (20, Some(waited)));
        assert!(left.silent_ns < TRIP, "the others go on");
        // One of so many: p99.9 is none of its business, the largest of all is.
        assert!(measurement.requests > 9_000);
        assert_eq!(quantiles(&measurement, &[0.5, 0.999, 1.0]), [exactly(TRIP), exactly(TRIP), at_least(waited)]);
    }
}

#[test]
fn a_subject_that_stops_for_a_while_and_goes_on_has_answered_all() {
    for duration_ns in LENGTHS {
        let stopped = |_| {
            let mut first = None;
            let delay = move |request: peers::Request| {
                let since = request.at - *first.get_or_insert(request.at);
                // Stopped from 100 ms to 300 ms.
                if (100 * MS..300 * MS).contains(&since) { 300 * MS - since + MS } else { MS }
            };
            peers::ping_pong(delay).into()
        };
        let measurement = measure(&timed(duration_ns, 20, CLOSED), stopped);
        let (left, n) = (censored(&measurement), measurement.requests as f64);
        assert_eq!(left.in_flight.count, 20);
        assert!(left.silent_ns < TRIP && left.connections.max.unwrap() < TRIP);
        // One answer a client took longer.
        let slow = quantiles(&measurement, &[1.0 - 19.0 / n, 1.0]);
        assert!(slow.iter().all(|bound| !bound.at_least && bound.value > 199e6), "{slow:?}");
        assert_eq!(quantiles(&measurement, &[1.0 - 21.0 / n]), [exactly(TRIP)]);
    }
}

#[test]
fn one_frozen_connection_of_twenty_in_the_open_loop() {
    for duration_ns in LENGTHS {
        let serve = |number| {
            let frozen = move |request: peers::Request| if number == 3 && request.number >= 10 { NEVER } else { MS };
            peers::ping_pong(frozen).into()
        };
        let spec = timed(duration_ns, 20, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, serve);
        let left = censored(&measurement);
        // Its turn comes with every twentieth request: at 4,000 a second the eleventh is asked after some 50 ms.
        let waited = left.connections.max.unwrap();
        near((duration_ns - waited) as f64, 50e6, 0.1);
        assert_eq!((left.in_flight.max, left.unsent.count), (Some(waited), 0));
        assert!(left.connections.count <= 1 + (TRIP * 4_000 / S + 1), "the others go on");
        assert_eq!(quantiles(&measurement, &[0.5, 0.999, 1.0]), [exactly(TRIP), exactly(TRIP), at_least(waited)]);
    }
}

#[test]
fn a_subject_that_stops_for_a_while_is_charged_for_all_that_was_due_meanwhile() {
    for duration_ns in LENGTHS {
        let gap = S / 4_000;
        // Stopped from 100 ms to 300 ms of its life, for all connections; each request has one of its own.
        let first = std::rc::Rc::new(std::cell::Cell::new(None));
        let stopped = move |_| {
            let first = first.clone();
            let delay = move |request: peers::Request| {
                let began = first.get().unwrap_or(request.at);
                first.set(Some(began));
                let since = request.at - began;
                if (100 * MS..300 * MS).contains(&since) { 300 * MS - since + MS } else { MS }
            };
            peers::ping_pong(delay).into()
        };
        let spec = timed(duration_ns, 1_000, Arrivals::Constant { rate_per_s: 4_000.0 });
        let measurement = measure(&spec, stopped);
        let left = censored(&measurement);
        assert_eq!((left.unsent.count, measurement.requests + left.in_flight.count), (0, duration_ns / gap));
        assert!(left.in_flight.max.unwrap() < TRIP);
        // What is known of it: request k of those 800 that came meanwhile waits for the end, the others take one trip.
        let mut truth = vec![TRIP; measurement.requests as usize - 800];
        truth.extend((0..800).map(|k| 200 * MS - k * gap + TRIP));
        truth.sort_unstable();
        for (q, bound) in [0.5, 0.97, 0.99, 0.999].into_iter().zip(quantiles(&measurement, &[0.5, 0.97, 0.99, 0.999])) {
            let rank = (q * truth.len() as f64).ceil() as usize;
            assert!(!bound.at_least);
            // As exact as the buckets are.
            near(bound.value, truth[rank - 1] as f64, 1.0 / 1024.0);
        }
    }
}

/// Answers take 200 ms on average, by an exponential law. In half a second only the quick ones are seen, and the truth is known.
#[test]
fn a_late_subject_is_as_late_as_it_is() {
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
            peers::ping_pong(move |_| law.sample(&mut rng.borrow_mut()) as u64).into()
        };
        let measurement = measure(&timed(duration_ns, clients, arrivals), serve);
        for (q, bound) in [0.5, 0.75, 0.85].into_iter().zip(quantiles(&measurement, &[0.5, 0.75, 0.85])) {
            assert!(!bound.at_least);
            near(bound.value, -(1.0f64 - q).ln() * 200e6 + ROUND_TRIP as f64, share);
        }
        if duration_ns < S {
            assert!(latency(&measurement, 0.75) < 0.85 * 277e6, "what was answered in time is too good");
            assert!(quantiles(&measurement, &[0.99])[0].at_least, "0.92 s of a trial of 0.5 s");
        }
    }
    // Later than the trial is long: all that is known is that.
    let measurement = measure(&timed(S / 2, 4, CLOSED), |_| peers::ping_pong(|_| 2 * S).into());
    assert_eq!(quantiles(&measurement, &[0.01, 0.5]), [at_least(S / 2), at_least(S / 2)]);
    assert_eq!((measurement.requests, censored(&measurement).silent_ns), (0, S / 2));
}

#[test]
fn what_was_sent_before_measuring_began_counts_where_its_answer_would() {
    let spec = LoadSpec { warmup: Warmup::DurationNs(300 * MS), ..timed(S / 2, 4, CLOSED) };
    let measurement =
        measure(&spec, |_| peers::ping_pong(|request| if request.number < 10 { MS } else { NEVER }).into());
    let waited = 800 * MS - 10 * TRIP;
    assert_eq!((measurement.requests, censored(&measurement).in_flight.max), (0, Some(waited)));
    assert_eq!(censored(&measurement).silent_ns, waited);
}

#[test]
fn a_number_of_requests_leaves_none_awaited() {
    // No more than the number are sent, so that nothing is in flight when the last one is answered.
    for requests in [1_000, 1_001] {
        let spec = LoadSpec { stop: Stop::Requests { requests, max_ns: 60 * S }, ..timed(S, 4, CLOSED) };
        let measurement = measure(&spec, |_| peers::ping_pong(|_| MS).into());
        let found = censored(&measurement);
        assert_eq!((measurement.requests, found.in_flight.count, found.unsent.count), (requests, 0, 0));
        assert_eq!(quantiles(&measurement, &[0.5, 0.99]), [exactly(TRIP), exactly(TRIP)]);
    }
}

#[test]
fn a_pipeline_has_many_in_flight_on_a_connection() {
    let spec = LoadSpec { pipeline: 16, ..timed(S / 2, 4, CLOSED) };
    let measurement =
        measure(&spec, |_| peers::ping_pong(|request| if request.number < 160 { MS } else { NEVER }).into());
    let left = censored(&measurement);
    assert_eq!((left.in_flight.count, left.connections.count), (64, 4));
    assert_eq!((left.in_flight.max, left.silent_ns), (left.connections.max, left.connections.max.unwrap()));
}

#[test]
fn what_waited_longer_than_the_timeout_is_an_error_or_counted_apart() {
    let spec = LoadSpec { timeout_ns: 200 * MS, ..timed(S, 20, Arrivals::Constant { rate_per_s: 1_000.0 }) };
    let measurement = measure(&spec, |_| peers::silent().into());
    let left = censored(&measurement);
    assert_eq!(errors(&measurement), [("timeout", 20)]);
    assert_eq!((left.in_flight.count, left.unsent.count), (20, 980));
    // Intended at 0, 1, 2 ... ms: those before 800 ms had waited longer than 200 ms.
    assert_eq!(left.unsent_overdue, 800 - 20);
}
