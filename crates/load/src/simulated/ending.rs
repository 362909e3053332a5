//! Numbers of requests that are never answered as they should be, and clients in back-off.

use std::cell::Cell;
use std::rc::Rc;

use net::Nanos;
use net::sim::{Answer, Network, peers};
use study::Measurement;
use study::spec::{Arrivals, LoadSpec, Stop, Warmup};

use super::{MS, ROUND_TRIP, S, errors, measure, near, outcome};
use crate::check::tests::spec;

const N: u64 = 200;
const TIMEOUT: Nanos = 300 * MS;

/// [`N`] requests without a warm-up; ten minutes at most.
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
fn wrong_answers_are_requests_too() {
    let serve = |_| peers::wrong_every(10).into();
    let some = measure(&number(), serve);
    assert_eq!((ended(&some), some.stop_reason.as_str()), (N, "200 requests"));
    assert!(some.errors["wrong-answer"] >= N / 20 && some.requests >= N * 8 / 10, "{:?}", some.errors);

    let all = measure(&number(), |_| peers::wrong_every(1).into());
    assert_eq!((all.requests, errors(&all), all.stop_reason.as_str()), (0, vec![("wrong-answer", N)], "200 requests"));
    // Four clients ask some ten times a second each: the time is that of the last answer, wrong as it is.
    assert!((4 * S..6 * S).contains(&all.duration_ns), "{}", all.duration_ns);
}

#[test]
fn requests_that_are_lost_with_their_connections_are_requests_too() {
    let lost = measure(&number(), |_| peers::end_after(0).into());
    assert_eq!((ended(&lost), lost.requests), (N, 0));
    let some = measure(&number(), |_| peers::reset_after(10).into());
    assert_eq!(ended(&some), N);
    assert!(some.requests > 0 && some.errors["reset"] > 0);
}

#[test]
fn a_number_of_requests_is_given_up_where_no_answer_comes() {
    let silent = measure(&number(), |_| peers::silent().into());
    assert_eq!((silent.requests, errors(&silent), silent.unfinished), (0, vec![("timeout", 4)], 4));
    assert_eq!(silent.stop_reason, "requests: gave up, no response for 0.6 s");
    near(silent.duration_ns as f64, 2.0 * TIMEOUT as f64, 0.05);

    // A number of requests to warm up with is no trap either.
    let spec = LoadSpec { warmup: Warmup::Requests(50), ..number() };
    let silent = measure(&spec, |_| peers::silent().into());
    assert!(silent.stop_reason.ends_with("no response for 0.6 s; the warm-up was cut short"), "{silent:?}");
    let wrong = measure(&spec, |_| peers::wrong_every(1).into());
    assert_eq!((wrong.warmup_requests, errors(&wrong)), (0, vec![("wrong-answer", N)]));
    assert!(wrong.warmup_errors["wrong-answer"] >= 50 && wrong.warmup_ns < 10 * S, "{:?}", wrong.warmup_errors);
}

#[test]
fn a_number_of_requests_is_given_up_where_the_server_has_gone() {
    let serve = |connection| match connection {
        0..4 => peers::reset_after(20).into(),
        _ => Answer::Refuse,
    };
    let gone = measure(&number(), serve);
    assert_eq!((gone.requests, gone.errors["reset"]), (80, 4));
    assert!(gone.errors["refused"] > 4, "{:?}", gone.errors);
    assert!(gone.stop_reason.starts_with("requests: gave up"), "{}", gone.stop_reason);
    assert!(gone.duration_ns < S, "{}", gone.duration_ns);
}

#[test]
fn slow_answers_and_rare_requests_are_waited_for() {
    // Each answer is late, and comes.
    let late = measure(&number(), |_| peers::ping_pong(|_| TIMEOUT * 3 / 2).into());
    assert_eq!((late.requests, late.stop_reason.as_str()), (0, "200 requests"));
    assert_eq!((errors(&late), late.late_answers, late.service.count), (vec![("timeout", N)], N, N));
    // Two requests a second, of which every third is never answered: their clients are lost, one by one.
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
        peers::ping_pong(delay).into()
    });
    // All 40 were sent, and the 13 that nobody answers are not waited for for ever.
    assert_eq!((measurement.requests, errors(&measurement)), (27, vec![("timeout", 13)]));
    assert!(measurement.stop_reason.starts_with("requests: gave up"), "{}", measurement.stop_reason);
    assert!((20 * S..60 * S).contains(&measurement.duration_ns), "{}", measurement.duration_ns);
}

#[test]
fn clients_in_back_off_are_counted() {
    let well = measure(&spec(), |_| peers::ping_pong(|_| MS).into());
    assert_eq!(well.in_backoff_mean, 0.0);

    // Two of four clients lose their first connection, and get no other.
    let serve = |connection| match connection {
        0 | 1 => peers::reset_after(1).into(),
        2 | 3 => peers::ping_pong(|_| MS).into(),
        _ => Answer::Refuse,
    };
    let half = outcome(&spec(), Network::PERFECT, serve).unwrap();
    // A connect that is refused takes a round trip of each tenth of a second.
    near(half.in_backoff_mean, 2.0, 0.005);
    near(half.in_flight_mean, 2.0, 0.005);

    // Each answer is wrong and costs its connection: what is no pause is a round trip to connect and one to ask.
    let wrong = LoadSpec { stop: Stop::Duration { duration_ns: 10 * S }, ..spec() };
    let wrong = measure(&wrong, |_| peers::wrong_every(1).into());
    let trips = wrong.errors["wrong-answer"] as f64 * (2 * ROUND_TRIP) as f64 / 10e9;
    near(wrong.in_backoff_mean, 4.0 - trips, 0.001);
}
