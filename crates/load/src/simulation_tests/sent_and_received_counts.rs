//! Compares the load's count of sent requests with the server's count of received requests.

use std::cell::Cell;
use std::rc::Rc;

use net::sim::{Answer, Network, ready_made_peers};
use study::Measurement;
use study::spec::{Arrivals, LoadSpec, Stop, Warmup};

use super::http::{self, GOOD, LAST, http, measure_on, server};
use super::{MS, S, errors, near, outcome};
use crate::check_spec::tests::spec;

fn sum(measurement: &Measurement) -> u64 {
    let failed = measurement.errors_total() + measurement.warmup_errors.values().sum::<u64>();
    let answered = measurement.warmup_requests + measurement.requests;
    answered + failed + measurement.asked_again + measurement.left_in_flight
}

fn loads() -> Vec<LoadSpec> {
    let mut all = Vec::new();
    for arrivals in [Arrivals::closed(0), Arrivals::Poisson { rate_per_s: 2_000.0 }] {
        for stop in [Stop::Duration { duration_ns: S }, Stop::Requests { requests: 1_000, max_ns: 2 * S }] {
            for pipeline in [1, 4] {
                let warmup = Warmup::DurationNs(100 * MS);
                all.push(LoadSpec { arrivals, stop, pipeline, warmup, timeout_ns: 50 * MS, ..spec() });
            }
        }
    }
    all
}

#[test]
fn each_sent_request_is_counted_once() {
    type Delay = fn(ready_made_peers::Request) -> u64;
    let behaviours: [(&str, Delay, u64); 5] = [
        ("healthy", |_| MS, u64::MAX),
        ("late", |request| if request.number % 20 == 7 { 70 * MS } else { MS }, u64::MAX),
        ("wrong", |_| MS, 9),
        ("wrong and late", |request| if request.number % 5 == 4 { 70 * MS } else { MS }, 5),
        ("silent", |request| if request.number < 30 { MS } else { 100 * S }, u64::MAX),
    ];
    for spec in loads() {
        for (name, delay, wrong_every) in behaviours {
            let seen = Rc::new(Cell::new(0));
            let counter = seen.clone();
            let serve = move |_| -> Answer {
                let (counter, mut last) = (counter.clone(), 0);
                ready_made_peers::word_server(move |request, to| {
                    counter.set(counter.get() + 1);
                    last = (request.at + delay(request)).max(last);
                    let wrong = (request.number + 1).is_multiple_of(wrong_every);
                    to.send(last - request.at, if wrong { [0; 4] } else { request.answer() });
                })
                .into()
            };
            let measurement = outcome(&spec, Network::PERFECT, serve).unwrap();
            let context = format!("{name}: {:?} {:?} {}", spec.arrivals, spec.stop, spec.pipeline);
            assert_eq!(measurement.sent, sum(&measurement), "{context} {measurement:?}");
            let (seen, sent) = (seen.get(), measurement.sent);
            let least = sent - measurement.left_in_flight - measurement.asked_again;
            assert!((least..=sent).contains(&seen), "{context}: {seen} of {sent}");
            let timed = measurement.requests + measurement.late_answers;
            assert_eq!(measurement.service.count, timed, "{context}");
            let windows = measurement.windows.iter().map(|window| window.requests).sum::<u64>();
            assert_eq!(windows, measurement.requests, "{context}");
            if let Stop::Requests { requests, .. } = spec.stop {
                let ended = measurement.requests + measurement.errors_total();
                assert!(ended == requests || !measurement.stop_reason.ends_with(" requests"), "{context}");
            }
        }
    }
}

#[test]
fn resent_requests_are_counted_separately() {
    for (last, spec) in [9, 0].into_iter().flat_map(|last| loads().into_iter().map(move |spec| (last, spec))) {
        let spec = LoadSpec { target: http().target, ..spec };
        let answered = Rc::new(Cell::new(0));
        let counter = answered.clone();
        let measurement = measure_on(Network::PERFECT, &spec, move |_| http::ends_after(last, LAST, &counter));
        assert_eq!(errors(&measurement), [], "{:?}", spec.arrivals);
        assert_eq!(measurement.sent, sum(&measurement), "{:?} {:?} {}", spec.arrivals, spec.stop, spec.pipeline);
        let ended = measurement.warmup_requests + measurement.requests;
        assert!((ended..=ended + measurement.left_in_flight).contains(&answered.get()));
    }
}

#[test]
fn in_flight_count_covers_measured_requests() {
    for last in [0, 4] {
        let spec = LoadSpec { pipeline: 8, stop: Stop::Duration { duration_ns: 4 * S }, ..http() };
        let answered = Rc::new(Cell::new(0));
        let measurement = measure_on(Network::PERFECT, &spec, move |_| http::ends_after(last, LAST, &answered));
        assert!(measurement.asked_again > measurement.requests / 2);
        near(measurement.in_flight_mean, measurement.service.sum / measurement.duration_ns as f64, 0.01);
    }
}

/// A server may wait for the client to close (RFC 9112, section 9.6).
#[test]
fn client_closes_after_last_response() {
    let measurement = measure_on(Network::PERFECT, &http(), |_| {
        server(|number, _, to| {
            to.send(MS, if number < 9 { GOOD } else { LAST });
            to.end_of_stream(200 * MS);
        })
    });
    assert_eq!(errors(&measurement), []);
    near(measurement.reconnects as f64, measurement.requests as f64 / 10.0, 0.02);
    near(measurement.requests as f64, 4e9 / (1.01e6 + super::ROUND_TRIP as f64 * 0.2), 0.02);
}
