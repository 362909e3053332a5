//! Sessions over HTTP/2: GOAWAY, refused and reset streams, flow control, and frames on connections that rest.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use net::sim::{Actions, Answer, Network};
use study::Measurement;
use study::spec::{Arrivals, Connection, LoadSpec, Stop};
use wire::http2::{ErrorCode, Settings, push_ping, push_settings};

use super::http2::{Request, go_away, headers, made, reset, server, server_with};
use super::sessions::{SHOP, frames, journey_of, measure, over_http2, reply, shop, two_servers};
use super::{MS, S, errors};

const REQUESTS: u64 = 600;

fn requests(spec: LoadSpec) -> LoadSpec {
    over_http2(&LoadSpec { stop: Stop::Requests { requests: REQUESTS, max_ns: 60 * S }, ..spec })
}

/// The response to any call of the shop.
fn good(stream: u32) -> Vec<u8> {
    frames(stream, &reply(r#"{"token": "t", "items": [1, 2]}"#))
}

/// Runs a load and checks that the shop processed each order once. `script` returns whether it processed a request.
fn check(
    spec: &LoadSpec,
    context: &str,
    script: impl FnMut(u64, &Request, &mut Actions) -> bool + Clone + 'static,
) -> Measurement {
    let orders = Rc::new(RefCell::new(BTreeMap::<String, u32>::new()));
    let seen = orders.clone();
    let measurement = measure(spec, Network::PERFECT, move |connection| -> Answer {
        let (mut script, seen) = (script.clone(), seen.clone());
        server(move |request: Request, to: &mut Actions| {
            let is_processed = script(connection, &request, to);
            if let (true, Some((_, rest))) = (is_processed, request.head.split_once(" /order/")) {
                *seen.borrow_mut().entry(rest.split(' ').next().unwrap().to_owned()).or_default() += 1;
            }
        })
    });
    let context = format!("{context}, {:?}, {:?}", spec.connection, spec.arrivals);
    assert_eq!((errors(&measurement), measurement.requests), (vec![], REQUESTS), "{context}");
    assert_eq!((measurement.journeys[0].completed, measurement.unfinished), (REQUESTS / 3, 0), "{context}");
    assert_eq!(measurement.stop_reason, format!("{} journeys", REQUESTS / 3), "{context}");
    let orders = orders.borrow();
    assert_eq!(orders.len() as u64, REQUESTS / 3, "{context}");
    assert!(orders.values().all(|count| *count == 1), "{context}: {orders:?}");
    measurement
}

/// All ways to use connections to one or two servers.
fn specs() -> Vec<LoadSpec> {
    let mut specs = Vec::new();
    for spec in [shop(), two_servers()] {
        for connection in [Connection::KeepAlive, Connection::Requests(4), Connection::PerRequest] {
            for arrivals in [Arrivals::closed(0), Arrivals::Constant { rate_per_s: 700.0 }] {
                specs.push(requests(LoadSpec { connection, arrivals, ..spec.clone() }));
            }
        }
    }
    specs
}

#[test]
fn sessions_survive_goaway_at_each_request() {
    for spec in specs() {
        for last in 0..4 {
            // The server answers the last request after GOAWAY.
            check(&spec, &format!("answers {last}"), move |_, request, to| {
                if request.number == last {
                    to.send(MS / 2, go_away(request.stream));
                }
                to.send(MS, good(request.stream));
                true
            });
            // The server does not process the request that crosses GOAWAY.
            let measurement = check(&spec, &format!("drops {last}"), move |connection, request, to| {
                let drops = request.number == last && connection % 3 == 0;
                to.send(MS, if drops { go_away(request.stream.saturating_sub(2)) } else { good(request.stream) });
                !drops
            });
            let is_reached = match spec.connection {
                Connection::PerRequest => last == 0,
                Connection::KeepAlive | Connection::Requests(_) => true,
            };
            assert_eq!(measurement.asked_again > 0, is_reached, "{last}, {:?}", spec.connection);
        }
    }
}

#[test]
fn refused_calls_are_resent() {
    for spec in specs() {
        let measurement = check(&spec, "refuses", move |connection, request, to| {
            let is_refused = (connection + request.number) % 5 == 1;
            to.send(
                MS,
                if is_refused { reset(request.stream, ErrorCode::REFUSED_STREAM) } else { good(request.stream) },
            );
            !is_refused
        });
        assert!(measurement.asked_again > 20, "{spec:?}");
    }
}

#[test]
fn a_reset_stream_ends_only_its_session() {
    let measurement = measure(&requests(shop()), Network::PERFECT, |_| {
        server(|request, to| {
            let is_reset = request.number % 50 == 4;
            to.send(MS, if is_reset { reset(request.stream, ErrorCode::CANCEL) } else { good(request.stream) });
        })
    });
    let journey = &measurement.journeys[0];
    assert_eq!(errors(&measurement), [("stream-reset", journey.abandoned)]);
    assert_eq!((journey.completed + journey.abandoned, measurement.reconnects), (REQUESTS / 3, 0));
    assert!(journey.abandoned > 5, "{journey:?}");
    assert_eq!(measurement.error_examples["stream-reset"], "the server reset the stream with CANCEL");
}

#[test]
fn a_body_waits_for_credit_and_interim_heads_are_skipped() {
    let text = SHOP.replace(r#"{"user": "{number}"}"#, "0123456789abcde");
    let measurement = measure(&requests(journey_of(&text)), Network::PERFECT, |_| {
        let settings = Settings { initial_window_size: 10, max_concurrent_streams: 1, ..Settings::DEFAULT };
        server_with(settings, &Rc::default(), |request, to| {
            assert!(!request.head.starts_with("POST /login") || request.body == b"0123456789abcde");
            to.send(0, headers("103", request.stream, false));
            to.send(MS, good(request.stream));
        })
    });
    assert_eq!((errors(&measurement), measurement.requests), (vec![], REQUESTS));
    let streams = measurement.streams.unwrap();
    assert_eq!((streams.stalled_uploads, streams.allowed), (REQUESTS / 3, Some(1)));
}

/// While a client calls one server, the other one sends PING and SETTINGS on its connection, and later GOAWAY.
#[test]
fn connections_that_rest_are_served() {
    for leaves in [false, true] {
        let other = Rc::<RefCell<Vec<String>>>::default();
        let seen = other.clone();
        let measurement = measure(&requests(two_servers()), Network::PERFECT, move |_| {
            server_with(Settings::DEFAULT, &seen, move |request, to| {
                to.send(MS, good(request.stream));
                if request.head.starts_with("POST /login") {
                    to.send(MS + MS / 2, made(|out| push_ping(out, [7; 8], false)));
                    to.send(MS + MS / 2, made(|out| push_settings(out, &Settings::DEFAULT)));
                    if leaves {
                        to.send(2 * MS, go_away(request.stream));
                    }
                }
            })
        });
        assert_eq!((errors(&measurement), measurement.requests), (vec![], REQUESTS));
        let count = |text: &str| other.borrow().iter().filter(|frame| *frame == text).count() as u64;
        assert_eq!(count("PingAck([7, 7, 7, 7, 7, 7, 7, 7])"), REQUESTS / 3);
        let connections = measurement.connect.count;
        assert_eq!(count("SettingsAck"), REQUESTS / 3 + connections);
        let ended = count("GoAway { last: 0, code: ErrorCode(0), debug: [] }");
        assert!(connections == 8 && !leaves || connections > 100 && ended > connections - 9, "{connections}, {ended}");
    }
}

#[test]
fn a_journey_that_http2_cannot_carry_is_refused() {
    let problem = |text: &str| crate::check(&over_http2(&journey_of(text))).join("; ");
    let text = SHOP.replace("Authorization", "Keep-Alive");
    let expected =
        "step `list` (line 13): `keep-alive` is a header of HTTP/1.1 connections: drop it, HTTP/2 forbids it";
    assert!(problem(&text).starts_with(expected), "{}", problem(&text));
    assert_eq!(problem(SHOP), "");
}
