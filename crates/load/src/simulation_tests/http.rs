//! HTTP on the simulated network, with pipelines, closing connections and invalid responses.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::Measurement;
use study::spec::{Arrivals, Connection, Expect, Http2Settings, HttpRequest, LoadSpec, Stop, Target, Warmup};

use super::{MS, ROUND_TRIP, S, errors, latency, near, outcome_of};
use crate::check_spec::tests::spec;
use crate::coordinator::Outcome;
use crate::protocol::{Http, Values};

fn get(target: &str, weight: u32) -> HttpRequest {
    let headers = vec![("Host".to_owned(), "a".to_owned())];
    HttpRequest { weight, method: "GET".to_owned(), target: target.to_owned(), headers, body: Vec::new(), name: None }
}

pub(super) fn http() -> LoadSpec {
    let target = Target::Http {
        address: "a:80".to_owned(),
        tunnel_to: None,
        requests: vec![get("/", 1)],
        tls: None,
        http2: false,
        http2_settings: Http2Settings::default(),
        in_turn: false,
        expect: Box::new(Expect { status: None, body: Some(b"test".to_vec()), ..Expect::default() }),
        directory: String::new(),
    };
    LoadSpec { target, ..spec() }
}

pub(super) fn measure_on(network: Network, spec: &LoadSpec, serve: impl FnMut(u64) -> Answer + 'static) -> Measurement {
    let Target::Http { requests, expect, .. } = &spec.target else { unreachable!("all specs here load HTTP") };
    let protocol = Http::new(requests, expect, spec.connection, Values::new("", spec.seed)).unwrap();
    outcome_of(spec, protocol, network, serve).unwrap()
}

fn measure(spec: &LoadSpec, serve: impl FnMut(u64) -> Answer + 'static) -> Measurement {
    measure_on(Network::PERFECT, spec, serve)
}

pub(super) const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest";

struct Server<F> {
    script: F,
    seen: Vec<u8>,
    number: u64,
}

pub(super) fn server(script: impl FnMut(u64, &str, &mut Actions) + 'static) -> Answer {
    Server { script, seen: Vec::new(), number: 0 }.into()
}

impl<F: FnMut(u64, &str, &mut Actions)> Peer for Server<F> {
    fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
        self.seen.extend_from_slice(bytes);
        while let Some(end) = self.seen.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(self.seen.drain(..end + 4).collect()).unwrap();
            (self.script)(self.number, &head, to);
            self.number += 1;
        }
    }
}

struct Serial {
    seen: Vec<u8>,
    free_at: Nanos,
}

impl Peer for Serial {
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions) {
        self.seen.extend_from_slice(bytes);
        while let Some(end) = self.seen.windows(4).position(|four| four == b"\r\n\r\n") {
            self.seen.drain(..end + 4);
            self.free_at = self.free_at.max(now) + MS;
            to.send(self.free_at - now, GOOD);
        }
    }
}

#[test]
fn single_request_timing_is_exact() {
    let measurement = measure(&http(), |_| server(|_, _, to| to.send(MS, GOOD)));
    let trip = MS + ROUND_TRIP;
    near(measurement.requests as f64, (4 * S / trip) as f64, 0.002);
    assert_eq!((measurement.service.min, measurement.service.max), (Some(trip), Some(trip)));
    assert_eq!(errors(&measurement), []);
    assert_eq!(measurement.statuses, [(200, measurement.requests)].into());
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".len() as u64;
    near(measurement.sent_bytes as f64, (measurement.requests * request) as f64, 0.01);
    near(measurement.received_bytes as f64, (measurement.requests * GOOD.len() as u64) as f64, 0.01);
}

#[test]
fn pipeline_keeps_depth_and_times_each_request() {
    // The server takes 1 ms per response, so each of 16 requests waits 16 times as long.
    let serve = |_| Serial { seen: Vec::new(), free_at: 0 }.into();
    let spec = LoadSpec { pipeline: 16, warmup: Warmup::DurationNs(200 * MS), ..http() };
    let measurement = measure(&spec, serve);
    near(measurement.requests as f64, 4.0 * 1000.0, 0.01);
    near(latency(&measurement, 0.5), 16e6, 0.02);
    near(measurement.in_flight_mean, 64.0, 0.01);
    assert_eq!((errors(&measurement), measurement.unfinished), (vec![], 64));
}

#[test]
fn open_loop_uses_pipeline_as_capacity() {
    let serve = |_| Serial { seen: Vec::new(), free_at: 0 }.into();
    let arrivals = Arrivals::Constant { rate_per_s: 900.0 };
    let one = measure(&LoadSpec { clients: 1, arrivals, ..http() }, serve);
    let eight = measure(&LoadSpec { clients: 1, pipeline: 8, arrivals, ..http() }, serve);
    assert_eq!((errors(&one), errors(&eight)), (vec![], vec![]));
    near(one.requests as f64, 900.0, 0.01);
    near(eight.requests as f64, 900.0, 0.01);
    assert_eq!(eight.lag_connection.unwrap().max, Some(0));
}

#[test]
fn wrong_status_is_an_error_and_keeps_connection() {
    let measurement = measure(&http(), |_| {
        server(|number, _, to| {
            let wrong = b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno".as_slice();
            to.send(MS, if number % 10 == 9 { wrong } else { GOOD });
        })
    });
    let wrong = measurement.errors["status"];
    near(measurement.requests as f64, 9.0 * wrong as f64, 0.01);
    assert_eq!(measurement.service.count, measurement.requests);
    assert_eq!((measurement.reconnects, measurement.statuses[&503]), (0, wrong));
    assert_eq!(measurement.error_examples["status"], "status 503 (expected 2xx)");
}

#[test]
fn wrong_body_is_an_error() {
    for (body, bytes, words) in [
        ("tent", 4, "at offset 2, found `nt`, expected `st`"),
        ("tes", 3, "at offset 3, found the end, expected `t`"),
        ("test!", 5, "at offset 4, found `!`, expected the end"),
        ("", 0, "at offset 0, found the end, expected `test`"),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let measurement = measure(&http(), move |_| {
            let answer = answer.clone();
            server(move |_, _, to| to.send(MS, answer.as_bytes()))
        });
        assert_eq!((measurement.requests, measurement.errors.len()), (0, 1), "{body}");
        assert!(measurement.errors["body"] > 3000, "the connection stays open");
        assert_eq!(
            measurement.error_examples["body"],
            format!("status 200 with an unexpected body ({bytes} bytes, expected 4): {words}")
        );
    }
}

#[test]
fn bad_framing_closes_connection_with_explanation() {
    let table: [(&[u8], &str, &str); 5] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ntest", "framing", "Content-Length"),
        (b"HTTP/1.1 200 OK\rContent-Length: 4\r\n\r\ntest", "framing", "CR"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "framing", ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "framing", "chunk"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest\r\n", "framing", "unexpected bytes"),
    ];
    for (answer, kind, word) in table {
        let measurement = measure(&http(), move |_| server(move |_, _, to| to.send(MS, answer)));
        assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind]);
        let example = &measurement.error_examples[kind];
        assert!(example.to_lowercase().contains(&word.to_lowercase()), "{example}");
    }
}

#[test]
fn endless_head_is_cut_off() {
    let measurement = measure(&http(), |_| {
        server(|_, _, to| to.send(MS, [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'a'; 100_000]].concat()))
    });
    assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["head-too-large"]);
}

#[test]
fn end_within_response_is_truncated_before_is_closed() {
    for (answer, kind) in
        [(&GOOD[..GOOD.len() - 1], "truncated"), (&GOOD[..9], "truncated"), (b"".as_slice(), "closed")]
    {
        let measurement = measure(&http(), move |_| {
            server(move |_, _, to| {
                to.send(MS, answer);
                to.end_of_stream(MS);
            })
        });
        assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind]);
        assert_eq!(measurement.requests, 0);
    }
}

#[test]
fn end_of_stream_can_delimit_body() {
    let measurement = measure(&http(), |_| {
        server(|_, _, to| {
            to.send(MS, b"HTTP/1.0 200 OK\r\n\r\nte".as_slice());
            to.send(MS + 1, b"st".as_slice());
            to.end_of_stream(MS + 2);
        })
    });
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 3500, "{}", measurement.requests);
    near(measurement.reconnects as f64, measurement.requests as f64, 0.01);
}

#[test]
fn announced_close_is_not_an_error() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntest".as_slice();
    let measurement = measure(&http(), move |_| {
        server(move |number, _, to| {
            if number < 9 {
                return to.send(MS, GOOD);
            }
            to.send(MS, closing);
            to.end_of_stream(MS);
        })
    });
    assert_eq!(errors(&measurement), []);
    near(measurement.reconnects as f64, measurement.requests as f64 / 10.0, 0.02);
    // Each connection costs one additional round trip and no other pause.
    near(measurement.requests as f64, 4e9 / (1.01e6 + ROUND_TRIP as f64 * 0.2), 0.02);
}

pub(super) const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntest";

/// Closes after response number `last_number`, whose bytes are `last`, and ignores later requests.
pub(super) fn ends_after(last_number: u64, last: &'static [u8], answered: &Rc<Cell<u64>>) -> Answer {
    let answered = answered.clone();
    server(move |number, _, to| {
        if number > last_number {
            return;
        }
        answered.set(answered.get() + 1);
        if number < last_number {
            return to.send(MS, GOOD);
        }
        to.send(MS, last);
        to.end_of_stream(MS);
    })
}

/// Servers close after `close`, after HTTP/1.0 without `keep-alive`, or to end a body (RFC 9112, sections 6.3 and 9.6).
#[test]
fn requests_after_last_response_are_resent() {
    let old = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ntest".as_slice();
    let until_end = b"HTTP/1.1 200 OK\r\n\r\ntest".as_slice();
    let open = Arrivals::Constant { rate_per_s: 12_000.0 };
    for (last, arrivals) in [(LAST, Arrivals::closed(0)), (LAST, open), (old, open), (until_end, Arrivals::closed(0))] {
        let answered = Rc::new(Cell::new(0));
        let stop = Stop::Requests { requests: 5_000, max_ns: 60 * S };
        let spec = LoadSpec { pipeline: 16, arrivals, stop, ..http() };
        let counter = answered.clone();
        let measurement = measure(&spec, move |_| ends_after(9, last, &counter));
        assert_eq!((errors(&measurement), measurement.requests, measurement.unfinished), (vec![], 5_000, 0));
        assert_eq!(measurement.statuses, [(200, 5_000)].into());
        assert!(measurement.asked_again > 1_000, "{}", measurement.asked_again);
        assert_eq!(answered.get(), measurement.warmup_requests + 5_000);
        assert_eq!((measurement.warmup_errors.len(), measurement.unsent), (0, 0));
    }
}

#[test]
fn resent_requests_have_the_same_bytes() {
    let mut spec = LoadSpec { pipeline: 8, stop: Stop::Requests { requests: 1_000, max_ns: 60 * S }, ..http() };
    let Target::Http { requests, .. } = &mut spec.target else { unreachable!() };
    requests[0].target = "/{{seq}}/{{uuid}}/{{letters:20}}".to_owned();
    let heads = Rc::new(RefCell::new(BTreeMap::<String, BTreeSet<String>>::new()));
    let seen = heads.clone();
    let measurement = measure(&spec, move |_| {
        let seen = seen.clone();
        server(move |number, head, to| {
            let sequence = head.split('/').nth(1).unwrap().to_owned();
            seen.borrow_mut().entry(sequence).or_default().insert(head.to_owned());
            match number {
                ..3 => to.send(MS, GOOD),
                3 => {
                    to.send(MS, LAST);
                    to.end_of_stream(MS);
                }
                4.. => {}
            }
        })
    });
    assert!(measurement.asked_again > 500, "{}", measurement.asked_again);
    let heads = heads.borrow();
    assert!(heads.len() >= 1_000 && heads.values().all(|forms| forms.len() == 1), "{heads:?}");
}

#[test]
fn resent_requests_keep_intended_send_time() {
    // Five requests are sent again, after three more round trips to close, connect and send.
    let arrivals = Arrivals::Constant { rate_per_s: 1e6 };
    let stop = Stop::Requests { requests: 10, max_ns: 60 * S };
    let spec = LoadSpec { clients: 1, pipeline: 10, arrivals, stop, warmup: Warmup::DurationNs(0), ..http() };
    let answered = Rc::new(Cell::new(0));
    let measurement = measure(&spec, move |_| ends_after(4, LAST, &answered));
    assert_eq!((measurement.requests, measurement.asked_again), (10, 5));
    assert_eq!(measurement.service.max, Some(MS + ROUND_TRIP), "the write with a response");
    let response = measurement.response.unwrap().max.unwrap();
    assert!((2 * MS + 2 * ROUND_TRIP..2 * MS + 5 * ROUND_TRIP).contains(&response), "{response}");
    assert!(measurement.lag_connection.unwrap().max.unwrap() > MS);
}

#[test]
fn unannounced_end_fails_all_requests_in_flight() {
    for (first, kind) in [(0, "closed"), (10, "closed-between")] {
        let spec = LoadSpec { pipeline: 4, ..http() };
        let measurement = measure(&spec, move |_| {
            server(move |number, _, to| match number {
                _ if number < first => to.send(MS, GOOD),
                _ if number == first => to.end_of_stream(MS),
                _ => {}
            })
        });
        assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind]);
        assert_eq!(measurement.asked_again, 0);
        near(measurement.errors[kind] as f64, 4.0 * measurement.reconnects as f64, 0.05);
    }
}

#[test]
fn statuses_cover_measured_requests_only() {
    for stop in [Stop::Duration { duration_ns: S }, Stop::Requests { requests: 1_000, max_ns: S }] {
        for arrivals in [Arrivals::closed(0), Arrivals::Poisson { rate_per_s: 3_000.0 }] {
            // Responses are in transit at the start and at the end of measuring.
            let network = Network { delay_ns: 10_000..=400_000, ..Network::PERFECT };
            let spec = LoadSpec { stop, arrivals, pipeline: 3, ..http() };
            let measurement = measure_on(network, &spec, |_| {
                server(|number, _, to| {
                    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".as_slice();
                    to.send(0, if number % 7 == 6 { busy } else { GOOD });
                })
            });
            assert_eq!(measurement.statuses, [(200, measurement.requests), (503, measurement.errors["status"])].into());
            assert!(measurement.warmup_requests > 100 && measurement.warmup_errors["status"] > 10);
        }
    }
}

#[test]
fn connection_per_request_includes_connect_time() {
    let spec = LoadSpec { connection: Connection::PerRequest, ..http() };
    let measurement = measure(&spec, |_| {
        server(|number, head, to| {
            assert_eq!(number, 0);
            assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
            to.send(MS, GOOD);
            to.end_of_stream(MS);
        })
    });
    assert_eq!(errors(&measurement), []);
    assert_eq!(
        (measurement.service.min, measurement.service.max),
        (Some(MS + 2 * ROUND_TRIP), Some(MS + 2 * ROUND_TRIP))
    );
    assert!(measurement.connect.count > measurement.requests);
    assert!(measurement.requests > 3800, "{}", measurement.requests);
    assert_eq!(measurement.reconnects, 0);
}

#[test]
fn connection_per_request_works_in_open_loop_and_without_server_close() {
    let arrivals = Arrivals::Poisson { rate_per_s: 1000.0 };
    let spec = LoadSpec { connection: Connection::PerRequest, clients: 20, arrivals, ..http() };
    let measurement = measure(&spec, |_| server(|_, _, to| to.send(MS, GOOD)));
    assert_eq!(errors(&measurement), []);
    near(measurement.requests as f64, 1000.0, 0.1);
    assert_eq!(measurement.service.min, Some(MS + 2 * ROUND_TRIP));
}

#[test]
fn connection_ends_after_its_number_of_requests() {
    let (closed, think) = (Arrivals::closed(0), Arrivals::closed(MS));
    for arrivals in [closed, think, Arrivals::Poisson { rate_per_s: 1000.0 }] {
        let spec = LoadSpec { connection: Connection::Requests(5), clients: 20, arrivals, ..http() };
        let measurement = measure(&spec, |_| {
            server(|number, head, to| {
                assert!(number < 5, "request {number} on one connection");
                assert!(!head.contains("Connection:"), "{head}");
                to.send(MS, GOOD);
            })
        });
        assert_eq!(errors(&measurement), []);
        assert!(measurement.requests > 900, "{}", measurement.requests);
        let sent = measurement.sent;
        assert!(measurement.connect.count >= sent / 5, "{} connections, {sent} requests", measurement.connect.count);
        assert!(measurement.connect.count <= sent / 5 + 40, "{} connections", measurement.connect.count);
        assert_eq!((measurement.reconnects, measurement.asked_again), (0, 0));
        assert_eq!(measurement.service.min, Some(MS + ROUND_TRIP));
    }
}

#[test]
fn refused_connection_fails_its_request() {
    let spec = LoadSpec { connection: Connection::PerRequest, clients: 1, ..http() };
    let measurement = measure(&spec, |number| {
        if number > 0 && number % 5 == 0 { Answer::Refuse } else { server(|_, _, to| to.send(MS, GOOD)) }
    });
    let refused = measurement.errors["refused"];
    near(measurement.requests as f64, 4.0 * refused as f64, 0.05);
    assert_eq!(errors(&measurement).len(), 1);
}

#[test]
fn mix_is_sampled_by_weight() {
    let mut spec = http();
    let Target::Http { requests, expect, .. } = &mut spec.target else { unreachable!() };
    (*requests, expect.body) = (vec![get("/a", 3), get("/b", 1)], None);
    let measurement = measure(&spec, |_| {
        server(|_, head, to| {
            let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".as_slice();
            to.send(MS, if head.starts_with("GET /a ") { GOOD } else { missing });
        })
    });
    near(measurement.requests as f64, 3.0 * measurement.errors["status"] as f64, 0.1);
    let [a, b] = &measurement.by_request[..] else { panic!("{:?}", measurement.by_request) };
    assert_eq!((a.name.as_str(), a.requests, a.errors), ("GET /a", measurement.requests, 0));
    assert_eq!((b.name.as_str(), b.requests, b.errors), ("GET /b", 0, measurement.errors["status"]));
    assert_eq!((a.service.count, b.service.count), (measurement.requests, 0));
}

#[test]
fn first_byte_is_apart_from_the_last() {
    let measurement = measure(&http(), |_| {
        server(|number, _, to| {
            let (head, body) = GOOD.split_at(GOOD.len() - 2);
            if number % 2 == 0 {
                to.send(MS, head);
                to.send(3 * MS, body);
            } else {
                to.send(3 * MS, GOOD);
            }
        })
    });
    assert_eq!(errors(&measurement), []);
    let first = measurement.first_byte.unwrap();
    near(first.count as f64, measurement.requests as f64 / 2.0, 0.05);
    assert_eq!((first.min, first.max), (Some(MS + ROUND_TRIP), Some(MS + ROUND_TRIP)));
    let whole = measure(&http(), |_| server(|_, _, to| to.send(MS, GOOD)));
    assert_eq!(whole.first_byte, None);
}

#[test]
fn sampled_checks_find_their_share_of_planted_errors() {
    let mut spec = LoadSpec { clients: 40, ..http() };
    let Target::Http { expect, .. } = &mut spec.target else { unreachable!() };
    **expect = Expect { matches: Some("^test$".to_owned()), check_one_in: 10, ..Expect::default() };
    let measurement = measure(&spec, |connection| {
        server(move |number, _, to| {
            let wrong = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nTEST".as_slice();
            to.send(MS, if (number + connection).is_multiple_of(100) { wrong } else { GOOD });
        })
    });
    let all = (measurement.requests + measurement.errors["body"]) as f64;
    near(measurement.checked as f64, all / 10.0, 0.1);
    near(measurement.errors["body"] as f64, all / 1000.0, 0.5);
    assert!(measurement.error_examples["body"].contains("`TEST` does not match `^test$`"));
}

#[test]
fn rate_follows_its_shape() {
    let shape = study::load_shape::parse("500 for 500ms, 4k..0 over 500ms").unwrap();
    let arrivals = Arrivals::Constant { rate_per_s: study::load_shape::mean_per_s(&shape) };
    let stop = Stop::Duration { duration_ns: 1000 * MS };
    let spec = LoadSpec { arrivals, shape, stop, clients: 40, ..http() };
    let measurement = measure(&spec, |_| server(|_, _, to| to.send(MS, GOOD)));
    assert_eq!(errors(&measurement), []);
    let seen = measurement.windows.iter().map(|window| window.requests as f64).collect::<Vec<_>>();
    for (seen, expected) in seen.iter().zip([50.0, 50.0, 50.0, 50.0, 50.0, 360.0, 280.0, 200.0, 120.0, 40.0]) {
        assert!((seen - expected).abs() <= 6.0, "{seen}, expected {expected}");
    }
    near(measurement.warmup_requests as f64, 500.0 * measurement.warmup_ns as f64 / 1e9, 0.05);
}

#[test]
fn clients_follow_their_shape() {
    let shape = study::load_shape::parse_clients("2 for 200ms, 2..12 over 500ms, 4 for 300ms").unwrap();
    let (clients, stop) = (study::load_shape::clients_max(&shape), Stop::Duration { duration_ns: 1000 * MS });
    // The number of clients rises by 1 every 50 ms, and each client gets a response every 10 ms. With 2.5 clients on
    // average, the first window of the ramp has 25 responses. A client that stops still receives its last response.
    let alone = [20.0, 20.0, 25.0, 45.0, 65.0, 85.0, 105.0, 45.0, 40.0, 40.0];
    // The first of three workers has clients 1, 4, 7 and 10.
    let first_of_three = [10.0, 10.0, 10.0, 18.0, 24.0, 30.0, 40.0, 22.0, 20.0, 20.0];
    for (threads, warmup_ns, windows) in [(1, 0, alone), (1, 100 * MS, alone), (3, 100 * MS, first_of_three)] {
        let warmup = Warmup::DurationNs(warmup_ns);
        let spec = LoadSpec { shape: shape.clone(), stop, clients, threads, warmup, ..http() };
        let measurement = measure(&spec, |_| server(|_, _, to| to.send(10 * MS, GOOD)));
        assert_eq!(errors(&measurement), []);
        for (window, expected) in measurement.windows.iter().zip(windows) {
            let seen = window.requests as f64;
            assert!((seen - expected).abs() <= 3.0, "{threads} threads: {seen}, expected {expected}");
        }
        assert!(measurement.warmup_requests <= 20, "two clients: {}", measurement.warmup_requests);
    }
    // With a connection per request, a window's requests also follow the number of clients: 4 send twice as many as 2.
    let spec = LoadSpec { shape, stop, clients, connection: Connection::PerRequest, ..http() };
    let measurement = measure(&spec, |_| server(|_, _, to| to.send(10 * MS, GOOD)));
    assert_eq!(errors(&measurement), []);
    near(measurement.windows[9].requests as f64, 2.0 * measurement.windows[1].requests as f64, 0.1);
}

#[test]
fn slowest_responses_keep_their_trace_ids() {
    let mut spec = http();
    let Target::Http { requests, .. } = &mut spec.target else { unreachable!() };
    requests[0].headers.push(("traceparent".to_owned(), "{{trace}}".to_owned()));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (numbers, ids) = (Rc::new(Cell::new(0)), seen.clone());
    let measurement = measure(&spec, move |_| {
        let (numbers, ids) = (numbers.clone(), ids.clone());
        server(move |_, head, to| {
            let number = numbers.replace(numbers.get() + 1);
            let delay = if number % 100 == 99 { 2 * MS + number * 1000 } else { MS };
            let id = head.split("traceparent: 00-").nth(1).unwrap()[..32].to_owned();
            ids.borrow_mut().push((delay, id));
            to.send(delay, GOOD);
        })
    });
    assert_eq!(measurement.slowest.len(), 20);
    assert!(measurement.slowest.is_sorted_by(|one, next| one.latency_ns > next.latency_ns));
    let mut seen = seen.take();
    seen.sort();
    let mut expected = seen.iter().rev().map(|(_, id)| id.as_str());
    // The slowest request may have been in flight at the end of the load.
    let first = measurement.slowest[0].trace_id.as_str();
    let position = expected.by_ref().position(|id| id == first).unwrap();
    assert!(position <= 1, "{position}");
    for (slow, id) in measurement.slowest[1..].iter().zip(expected) {
        assert_eq!((slow.trace_id.as_str(), slow.request.as_str()), (id, "GET /"));
    }
}

#[test]
fn timeouts_count_by_request() {
    let arrivals = Arrivals::Poisson { rate_per_s: 400.0 };
    let mut spec = LoadSpec { timeout_ns: 50 * MS, arrivals, clients: 40, ..http() };
    let Target::Http { requests, expect, .. } = &mut spec.target else { unreachable!() };
    let named = |target, name: &str| HttpRequest { name: Some(name.to_owned()), ..get(target, 1) };
    (*requests, expect.body) = (vec![get("/a", 3), named("/b", "late"), named("/c", "late")], None);
    let measurement =
        measure(&spec, |_| server(|_, head, to| to.send(if head.starts_with("GET /a ") { MS } else { 80 * MS }, GOOD)));
    let [a, b] = &measurement.by_request[..] else { panic!("{:?}", measurement.by_request) };
    assert_eq!((a.name.as_str(), b.name.as_str()), ("GET /a", "late"));
    assert!(a.requests > 100 && b.errors > 50, "{measurement:?}");
    assert_eq!(a.requests + b.requests, measurement.requests);
    assert_eq!(a.errors + b.errors, measurement.errors.values().sum::<u64>());
    assert!(b.service.mean().unwrap() >= (80 * MS) as f64 && a.service.min.unwrap() >= MS);
}

#[test]
fn rows_sent_once_end_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids.csv");
    std::fs::write(&file, "id\n".to_owned() + &(1..=37).map(|id| format!("{id}\n")).collect::<String>()).unwrap();
    let run = |arrivals, warmup, connection, pipeline| {
        let mut spec = LoadSpec { arrivals, warmup: Warmup::DurationNs(warmup), connection, pipeline, ..http() };
        let Target::Http { requests, .. } = &mut spec.target else { unreachable!() };
        *requests = vec![get(&format!("/{{{{csv:{}:id:once}}}}", file.display()), 1)];
        let seen = Rc::new(RefCell::new(BTreeSet::new()));
        let ids = seen.clone();
        let Target::Http { requests, expect, .. } = &spec.target else { unreachable!() };
        let protocol = Http::new(requests, expect, spec.connection, Values::new("", spec.seed)).unwrap();
        let answer = move |_| {
            let ids = ids.clone();
            server(move |_, head, to| {
                let id = head["GET /".len()..head.find(" HTTP").unwrap()].parse::<u32>().unwrap();
                assert!(ids.borrow_mut().insert(id), "{id} was sent twice");
                to.send(MS, GOOD);
            })
        };
        let outcome = outcome_of(&spec, protocol, Network::PERFECT, answer);
        (outcome.map(|measurement| (measurement.requests, measurement.stop_reason)), seen.borrow().len())
    };
    let closed = Arrivals::closed(0);
    let all = (Ok((37, "the end of a file of which each row is sent once".to_owned())), 37);
    assert_eq!(run(closed, 0, Connection::KeepAlive, 1), all);
    assert_eq!(run(closed, 0, Connection::KeepAlive, 3), all);
    assert_eq!(run(closed, 0, Connection::PerRequest, 1), all);
    assert_eq!(run(Arrivals::Constant { rate_per_s: 1_000.0 }, 0, Connection::KeepAlive, 1), all);
    assert_eq!(run(closed, S, Connection::KeepAlive, 1), (Err(Outcome::InputEnded), 37));
}

#[test]
fn reassembles_responses_from_pieces() {
    let network = Network { segment_bytes: 1..=7, read_bytes: 1..=7, delay_ns: 1_000..=50_000, ..Network::PERFECT };
    let spec = LoadSpec { pipeline: 3, stop: Stop::Duration { duration_ns: 200 * MS }, ..http() };
    let measurement = measure_on(network, &spec, |_| server(|_, _, to| to.send(0, GOOD)));
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 100, "{}", measurement.requests);
}

#[test]
fn silent_server_causes_one_timeout_per_request() {
    let spec = LoadSpec { timeout_ns: 300 * MS, pipeline: 3, warmup: Warmup::DurationNs(0), ..http() };
    let measurement = measure(&spec, |_| server(|_, _, _| {}));
    assert_eq!((errors(&measurement), measurement.unfinished), (vec![("timeout", 12)], 12));
}

#[test]
fn same_seed_gives_same_measurement() {
    let network = Network { delay_ns: 10_000..=200_000, reset_share: 0.001, ..Network::PERFECT };
    let arrivals = Arrivals::Poisson { rate_per_s: 5000.0 };
    for connection in [Connection::KeepAlive, Connection::PerRequest] {
        let spec = LoadSpec { arrivals, clients: 16, connection, ..http() };
        let run = || measure_on(network.clone(), &spec, |_| server(|_, _, to| to.send(50_000, GOOD)));
        assert_eq!(run(), run());
    }
}
