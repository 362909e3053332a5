//! Request limits that a load reaches only because errors count, and clients in back-off.

use std::cell::Cell;
use std::rc::Rc;

use net::Nanos;
use net::sim::{Answer, Network, ready_made_peers};
use study::Measurement;
use study::spec::{Arrivals, LoadSpec, Stop, Warmup};

use super::{MS, ROUND_TRIP, S, errors, measure, near, outcome};
use crate::check_spec::tests::spec;

const N: u64 = 200;
const TIMEOUT: Nanos = 300 * MS;

fn number() -> LoadSpec {
    LoadSpec {
        timeout_ns: TIMEOUT,
        warmup: Warmup::DurationNs(0),
        stop: Stop::Requests { requests: N, max_ns: 600 * S },
        ..spec()
    }
}

fn ended(measurement: &Measurement) -> u64 {
    measurement.requests + measurement.errors_total()
}

#[test]
fn invalid_responses_count_towards_request_limit() {
    let serve = |_| ready_made_peers::wrong_every(10).into();
    let some = measure(&number(), serve);
    assert_eq!((ended(&some), some.stop_reason.as_str()), (N, "200 requests"));
    assert!(some.errors["wrong-answer"] >= N / 20 && some.requests >= N * 8 / 10, "{:?}", some.errors);

    let all = measure(&number(), |_| ready_made_peers::wrong_every(1).into());
    assert_eq!((all.requests, errors(&all), all.stop_reason.as_str()), (0, vec![("wrong-answer", N)], "200 requests"));
    // Four clients send about ten requests per second each, and invalid responses count toward the limit.
    assert!((4 * S..6 * S).contains(&all.duration_ns), "{}", all.duration_ns);
}

#[test]
fn lost_requests_count_towards_request_limit() {
    let lost = measure(&number(), |_| ready_made_peers::end_after(0).into());
    assert_eq!((ended(&lost), lost.requests), (N, 0));
    let some = measure(&number(), |_| ready_made_peers::reset_after(10).into());
    assert_eq!(ended(&some), N);
    assert!(some.requests > 0 && some.errors["reset"] > 0);
}

#[test]
fn gives_up_request_limit_without_responses() {
    let silent = measure(&number(), |_| ready_made_peers::silent().into());
    assert_eq!((silent.requests, errors(&silent), silent.unfinished), (0, vec![("timeout", 4)], 4));
    assert_eq!(silent.stop_reason, "requests: gave up, no response for 0.6 s");
    near(silent.duration_ns as f64, 2.0 * TIMEOUT as f64, 0.05);

    let spec = LoadSpec { warmup: Warmup::Requests(50), ..number() };
    let silent = measure(&spec, |_| ready_made_peers::silent().into());
    assert!(silent.stop_reason.ends_with("no response for 0.6 s; the warm-up was cut short"), "{silent:?}");
    let wrong = measure(&spec, |_| ready_made_peers::wrong_every(1).into());
    assert_eq!((wrong.warmup_requests, errors(&wrong)), (0, vec![("wrong-answer", N)]));
    assert!(wrong.warmup_errors["wrong-answer"] >= 50 && wrong.warmup_ns < 10 * S, "{:?}", wrong.warmup_errors);
}

#[test]
fn gives_up_request_limit_when_server_is_gone() {
    let serve = |connection| match connection {
        0..4 => ready_made_peers::reset_after(20).into(),
        _ => Answer::Refuse,
    };
    let gone = measure(&number(), serve);
    assert_eq!((gone.requests, gone.errors["reset"]), (80, 4));
    assert!(gone.errors["refused"] > 4, "{:?}", gone.errors);
    assert!(gone.stop_reason.starts_with("requests: gave up"), "{}", gone.stop_reason);
    assert!(gone.duration_ns < S, "{}", gone.duration_ns);
}

#[test]
fn waits_for_slow_responses_and_rare_requests() {
    let late = measure(&number(), |_| ready_made_peers::ping_pong(|_| TIMEOUT * 3 / 2).into());
    assert_eq!((late.requests, late.stop_reason.as_str()), (0, "200 requests"));
    assert_eq!((errors(&late), late.late_answers, late.service.count), (vec![("timeout", N)], N, N));
    // Every third request gets no response, so the clients are lost one by one.
    let rare = LoadSpec {
        clients: 100,
        arrivals: Arrivals::Constant { rate_per_s: 2.0 },
        stop: Stop::Requests { requests: 40, max_ns: 600 * S },
        ..number()
    };
    let asked = Rc::new(Cell::new(0));
    let measurement = measure(&rare, move |_| {
        let asked = asked.clone();
        let delay = move |_| {
            asked.set(asked.get() + 1);
            if asked.get() % 3 == 0 { 1_000 * S } else { MS }
        };
        ready_made_peers::ping_pong(delay).into()
    });
    // All 40 requests were sent, and the wait for the 13 missing responses is limited.
    assert_eq!((measurement.requests, errors(&measurement)), (27, vec![("timeout", 13)]));
    assert!(measurement.stop_reason.starts_with("requests: gave up"), "{}", measurement.stop_reason);
    assert!((20 * S..60 * S).contains(&measurement.duration_ns), "{}", measurement.duration_ns);
}

#[test]
fn counts_clients_in_back_off() {
    let well = measure(&spec(), |_| ready_made_peers::ping_pong(|_| MS).into());
    assert_eq!(well.in_backoff_mean, 0.0);

    // Two of four clients lose their first connection and cannot reconnect.
    let serve = |connection| match connection {
        0 | 1 => ready_made_peers::reset_after(1).into(),
        2 | 3 => ready_made_peers::ping_pong(|_| MS).into(),
        _ => Answer::Refuse,
    };
    let half = outcome(&spec(), Network::PERFECT, serve).unwrap();
    // A refused connect takes one round trip in every tenth of a second.
    near(half.in_backoff_mean, 2.0, 0.005);
    near(half.in_flight_mean, 2.0, 0.005);

    // The time outside of back-off is one round trip to connect and one for the request.
    let wrong = LoadSpec { stop: Stop::Duration { duration_ns: 10 * S }, ..spec() };
    let wrong = measure(&wrong, |_| ready_made_peers::wrong_every(1).into());
    let trips = wrong.errors["wrong-answer"] as f64 * (2 * ROUND_TRIP) as f64 / 10e9;
    near(wrong.in_backoff_mean, 4.0 - trips, 0.001);
}
