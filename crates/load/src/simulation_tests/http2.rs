//! HTTP/2 on the simulated network, with responses in any order, limits, refused requests and GOAWAY.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::Measurement;
use study::spec::{Arrivals, Connection, Expect, Http2Settings, LoadSpec, Stop, Target, Warmup};
use wire::http2::hpack::{self, Decoder, Indexing};
use wire::http2::{
    ErrorCode, Event, FrameKind, Limits, Reader, RequestHead, Role, STREAM_MAX, Settings, WINDOW_MAX, flags, push_data,
    push_frame_head, push_go_away, push_headers, push_ping, push_reset, push_settings, push_settings_ack,
    push_window_update,
};

use super::{MS, ROUND_TRIP, S, errors, near, outcome_of};
use crate::coordinator::Outcome;
use crate::protocol::{Http2, Values};
use crate::recorder::Fault;

pub(super) fn http2() -> LoadSpec {
    let mut spec = super::http::http();
    let Target::Http { http2, .. } = &mut spec.target else { unreachable!() };
    *http2 = true;
    spec
}

fn outcome(spec: &LoadSpec, serve: impl FnMut(u64) -> Answer + 'static) -> Result<Measurement, Outcome> {
    let Target::Http { requests, expect, http2_settings, in_turn, .. } = &spec.target else {
        unreachable!("all specs here load HTTP")
    };
    let mut protocol = Http2::new(false, requests, expect, Values::new("", spec.seed)).unwrap();
    protocol.in_turn = *in_turn;
    protocol.settings = *http2_settings;
    outcome_of(spec, protocol, Network::PERFECT, serve)
}

pub(super) fn measure(spec: &LoadSpec, serve: impl FnMut(u64) -> Answer + 'static) -> Measurement {
    outcome(spec, serve).unwrap()
}

/// A request whose body is complete.
pub(super) struct Request {
    /// Number of the request on this connection, from 0.
    pub(super) number: u64,
    pub(super) stream: u32,
    path: String,
    /// Head of the request as in HTTP/1.1.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

type OnPiece = fn(u32, &[u8], &mut Actions);

struct Server<F> {
    script: F,
    /// Script for a body that has not ended, called with its bytes so far.
    on_piece: OnPiece,
    settings: Settings,
    reader: Reader,
    decoder: Decoder,
    head: RequestHead,
    open: BTreeMap<u32, Request>,
    number: u64,
    has_started: bool,
    /// Descriptions of the received frames other than requests.
    other: Rc<RefCell<Vec<String>>>,
}

fn server_with_pieces(
    settings: Settings,
    other: &Rc<RefCell<Vec<String>>>,
    on_piece: OnPiece,
    script: impl FnMut(Request, &mut Actions) + 'static,
) -> Answer {
    let mut decoder = Decoder::default();
    if settings.header_table_size < Settings::DEFAULT.header_table_size {
        decoder.allow_table(settings.header_table_size);
    }
    Server {
        script,
        on_piece,
        settings,
        reader: Reader::new(Role::Server, Limits::DEFAULT),
        decoder,
        head: RequestHead::default(),
        open: BTreeMap::new(),
        number: 0,
        has_started: false,
        other: other.clone(),
    }
    .into()
}

pub(super) fn server_with(
    settings: Settings,
    other: &Rc<RefCell<Vec<String>>>,
    script: impl FnMut(Request, &mut Actions) + 'static,
) -> Answer {
    server_with_pieces(settings, other, |_, _, _| {}, script)
}

pub(super) fn server(script: impl FnMut(Request, &mut Actions) + 'static) -> Answer {
    server_with(Settings::DEFAULT, &Rc::default(), script)
}

impl<F: FnMut(Request, &mut Actions)> Peer for Server<F> {
    /// Gives each request with a body five bytes of credit, a millisecond after the request.
    fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
        if !std::mem::replace(&mut self.has_started, true) {
            to.send(0, made(|out| push_settings(out, &self.settings)));
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (used, event) = self.reader.read(rest).unwrap();
            rest = &rest[used..];
            let complete = match event {
                Some(Event::Headers { stream, block, ends, .. }) => {
                    let mut fields = String::new();
                    let read = self.head.read(&mut self.decoder, block, &Limits::DEFAULT, |name, value| {
                        fields += &format!("{}: {}\r\n", name.escape_ascii(), String::from_utf8_lossy(value));
                    });
                    read.unwrap().unwrap();
                    let path = self.head.path().to_owned();
                    let head = format!("{} {path} HTTP/2\r\n{fields}\r\n", self.head.method());
                    self.open.insert(stream, Request { number: 0, stream, path, head, body: Vec::new() });
                    if !ends {
                        to.send(MS, made(|out| push_window_update(out, stream, 5)));
                    }
                    ends.then_some(stream)
                }
                Some(Event::Data { stream, data, ends, .. }) => {
                    if let Some(request) = self.open.get_mut(&stream) {
                        request.body.extend_from_slice(data);
                        if !ends {
                            (self.on_piece)(stream, &request.body, to);
                        }
                    }
                    ends.then_some(stream)
                }
                Some(other) => {
                    self.other.borrow_mut().push(format!("{other:?}"));
                    None
                }
                None => None,
            };
            if let Some(stream) = complete
                && let Some(request) = self.open.remove(&stream)
            {
                (self.script)(Request { number: self.number, ..request }, to);
                self.number += 1;
            }
        }
    }
}

pub(super) fn made(make: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    make(&mut out);
    out
}

pub(super) fn settings() -> Vec<u8> {
    made(|out| push_settings(out, &Settings::DEFAULT))
}

pub(super) fn headers(status: &str, stream: u32, ends: bool) -> Vec<u8> {
    let block = made(|out| hpack::push_field(out, b":status", status.as_bytes(), Indexing::Skip));
    made(|out| push_headers(out, stream, &block, ends, 16_384))
}

pub(super) fn good(stream: u32) -> Vec<u8> {
    [headers("200", stream, false), made(|out| push_data(out, stream, b"test", true))].concat()
}

pub(super) fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    made(|out| push_reset(out, stream, code))
}

pub(super) fn go_away(last: u32) -> Vec<u8> {
    made(|out| push_go_away(out, last, ErrorCode::NO_ERROR))
}

/// Checks Little's law: the number of requests in flight is the rate times the mean time.
fn check_in_flight(measurement: &Measurement, expect: f64) {
    near(measurement.in_flight_mean, expect, 0.001);
    let rate = measurement.requests as f64 / measurement.duration_ns as f64;
    near(rate * measurement.service.sum / measurement.service.count as f64, expect, 0.001);
}

#[test]
fn timing_of_each_request_is_exact() {
    let measurement = measure(&http2(), |_| server(|request, to| to.send(MS, good(request.stream))));
    let trip = MS + ROUND_TRIP;
    assert_eq!((measurement.service.min, measurement.service.max), (Some(trip), Some(trip)));
    assert_eq!(errors(&measurement), []);
    assert_eq!(measurement.statuses, [(200, measurement.requests)].into());
    near(measurement.requests as f64, (4 * S / trip) as f64, 0.002);
    assert_eq!(measurement.reconnects, 0);
}

/// A response body arrives in two pieces, the second `gap` ns after the first.
fn in_two_pieces(spec: &LoadSpec, gap: Nanos) -> (Measurement, Vec<String>) {
    let other = Rc::default();
    let frames = Rc::clone(&other);
    let measurement = measure(spec, move |_| {
        server_with(Settings::DEFAULT, &frames, move |request, to| {
            to.send(MS, headers("200", request.stream, false));
            to.send(MS, made(|out| push_data(out, request.stream, b"te", false)));
            to.send(MS + gap, made(|out| push_data(out, request.stream, b"st", true)));
        })
    });
    (measurement, other.take())
}

#[test]
fn windows_of_the_client_limit_the_server() {
    let mut spec = LoadSpec { clients: 1, ..http2() };
    let (measurement, frames) = in_two_pieces(&spec, 0);
    assert_eq!(errors(&measurement), []);
    let updates = |frames: &[String]| frames.iter().filter(|frame| frame.starts_with("WindowUpdate")).count();
    assert_eq!(updates(&frames), 1, "only the one that begins the connection: {frames:?}");

    let Target::Http { http2_settings, .. } = &mut spec.target else { unreachable!() };
    *http2_settings =
        Http2Settings { stream_window_bytes: 2, connection_window_bytes: 65_535, ..Http2Settings::default() };
    let (measurement, frames) = in_two_pieces(&spec, ROUND_TRIP);
    assert_eq!(errors(&measurement), []);
    assert!(frames[0].contains("initial_window_size: 2"), "{}", frames[0]);
    let credit = frames.iter().filter(|frame| frame.contains("bytes: 2 }")).count() as u64;
    assert!(credit.abs_diff(measurement.requests + measurement.warmup_requests) <= 1, "{credit}");

    let measurement = measure(&spec, |_| server(|request, to| to.send(MS, good(request.stream))));
    let faults = errors(&measurement).into_iter().map(|(fault, _)| fault).collect::<Vec<_>>();
    assert_eq!((measurement.requests, faults), (0, vec!["framing"]), "a piece of 4 bytes exceeds the window");
}

#[test]
fn servers_must_keep_to_the_header_table_of_the_client() {
    let mut spec = LoadSpec { clients: 1, ..http2() };
    let Target::Http { http2_settings, .. } = &mut spec.target else { unreachable!() };
    http2_settings.header_table_bytes = 0;
    for update in [&[0x20][..], &[]] {
        let measurement = measure(&spec, move |_| {
            server(move |request, to| {
                let update = if request.number == 0 { update } else { &[] };
                let block = made(|out| {
                    out.extend_from_slice(update);
                    hpack::push_field(out, b":status", b"200", Indexing::Skip);
                });
                to.send(0, made(push_settings_ack));
                to.send(MS, made(|out| push_headers(out, request.stream, &block, false, 16_384)));
                to.send(MS, made(|out| push_data(out, request.stream, b"test", true)));
            })
        });
        let expect = if update.is_empty() { vec!["framing"] } else { vec![] };
        let faults = errors(&measurement).into_iter().map(|(fault, _)| fault).collect::<Vec<_>>();
        assert_eq!((faults, measurement.requests == 0), (expect, update.is_empty()));
    }
}

#[test]
fn responses_in_any_order_belong_to_their_requests() {
    let stop = Stop::Duration { duration_ns: 20 * S };
    let spec = LoadSpec { pipeline: 16, stop, ..http2() };
    let measurement = measure(&spec, |_| {
        server(|request, to| to.send(if request.number % 3 == 0 { 7 * MS } else { 2 * MS }, good(request.stream)))
    });
    assert_eq!((errors(&measurement), measurement.asked_again), (vec![], 0));
    let (least, most) = (2 * MS + ROUND_TRIP, 7 * MS + ROUND_TRIP);
    assert_eq!((measurement.service.min, measurement.service.max), (Some(least), Some(most)));
    check_in_flight(&measurement, 64.0);
}

#[test]
fn interleaved_bodies_are_kept_apart() {
    // Responses of two requests arrive in pieces: `te` of the first, `te` of the second, then `st` of both.
    let spec = LoadSpec { pipeline: 2, ..http2() };
    let measurement = measure(&spec, |_| {
        let mut first = None;
        server(move |request, to| {
            let Some(other) = first.take() else {
                first = Some(request.stream);
                return;
            };
            let both = [request.stream, other];
            for (text, ends) in [(b"te", false), (b"st", true)] {
                for stream in both {
                    if !ends {
                        to.send(MS, headers("200", stream, false));
                    }
                    to.send(MS, made(|out| push_data(out, stream, text, ends)));
                }
            }
        })
    });
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 7_000, "{}", measurement.requests);
}

#[test]
fn server_limits_requests_in_flight() {
    for arrivals in [Arrivals::closed(0), Arrivals::Constant { rate_per_s: 1e6 }] {
        let (in_flight, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let spec = LoadSpec { clients: 1, pipeline: 16, arrivals, ..http2() };
        let (count, seen) = (in_flight.clone(), most.clone());
        let measurement = measure(&spec, move |_| {
            let (count, seen) = (count.clone(), seen.clone());
            let settings = Settings { max_concurrent_streams: 3, ..Settings::DEFAULT };
            server_with(settings, &Rc::default(), move |request, to| {
                count.set(count.get() + 1);
                seen.set(seen.get().max(count.get()));
                if count.get() == 3 {
                    count.set(0);
                    (0..3).for_each(|nth| to.send(MS, good(request.stream - 2 * nth)));
                }
            })
        });
        assert_eq!((errors(&measurement), most.get()), (vec![], 3), "{arrivals:?}");
        near(measurement.in_flight_mean, 3.0, 0.001);
        let streams = measurement.streams.unwrap();
        assert_eq!((streams.allowed, streams.goaways, streams.refused), (Some(3), 0, 0));
        assert!(streams.wait_own.is_none());
        assert_eq!(streams.wait_server.is_some(), arrivals.is_open());
    }
}

/// The limit changes at some requests. A request that crosses the new setting on its way is refused.
#[test]
fn server_may_change_its_limit_at_any_time() {
    for arrivals in [Arrivals::closed(0), Arrivals::Poisson { rate_per_s: 5_000.0 }] {
        let answered = Rc::new(Cell::new(0));
        let stop = Stop::Requests { requests: 5_000, max_ns: 60 * S };
        let spec = LoadSpec { clients: 2, pipeline: 8, arrivals, stop, ..http2() };
        let counter = answered.clone();
        let measurement = measure(&spec, move |_| {
            let counter = counter.clone();
            server(move |request, to| {
                let limit = |max_concurrent_streams| {
                    made(|out| push_settings(out, &Settings { max_concurrent_streams, ..Settings::DEFAULT }))
                };
                match request.number % 100 {
                    50 => to.send(0, limit(2)),
                    52..55 => return to.send(0, reset(request.stream, ErrorCode::REFUSED_STREAM)),
                    90 => to.send(0, limit(100)),
                    _ => {}
                }
                counter.set(counter.get() + 1);
                to.send(MS, good(request.stream));
            })
        });
        assert_eq!((errors(&measurement), measurement.requests, measurement.unfinished), (vec![], 5_000, 0));
        assert_eq!(answered.get(), measurement.warmup_requests + 5_000);
        assert!(measurement.asked_again > 100, "{}", measurement.asked_again);
    }
}

#[test]
#[ignore = "slow: every number of the last request"]
fn requests_that_a_leaving_server_did_not_process_are_resent() {
    let (closed, open) = (Arrivals::closed(0), Arrivals::Constant { rate_per_s: 9_000.0 });
    for last in 0..20 {
        for (arrivals, warns) in [(closed, false), (open, false), (closed, true), (open, true)] {
            let answered = Rc::new(Cell::new(0));
            let stop = Stop::Requests { requests: 1_000, max_ns: 60 * S };
            let spec = LoadSpec { pipeline: 8, arrivals, stop, ..http2() };
            let counter = answered.clone();
            let measurement = measure(&spec, move |_| {
                let counter = counter.clone();
                server(move |request, to| {
                    if request.number > last {
                        return;
                    }
                    counter.set(counter.get() + 1);
                    if request.number == last {
                        // RFC 9113, section 6.8: a server may first warn with the highest possible stream identifier.
                        to.send(0, if warns { go_away(STREAM_MAX) } else { Vec::new() });
                        to.send(MS / 2, go_away(request.stream));
                    }
                    to.send(MS, good(request.stream));
                })
            });
            assert_eq!((errors(&measurement), measurement.requests), (vec![], 1_000), "{last}, {arrivals:?}");
            assert_eq!((measurement.unfinished, measurement.warmup_errors.len()), (0, 0));
            assert_eq!(answered.get(), measurement.warmup_requests + 1_000, "each request has one response");
            assert!(measurement.asked_again > 0 || last % 8 == 7 || arrivals == open, "{last}");
        }
    }
}

#[test]
fn resent_requests_are_timed_from_when_they_were_due() {
    let arrivals = Arrivals::Constant { rate_per_s: 1e6 };
    let stop = Stop::Requests { requests: 10, max_ns: 60 * S };
    let spec = LoadSpec { clients: 1, pipeline: 10, arrivals, stop, warmup: Warmup::DurationNs(0), ..http2() };
    let measurement = measure(&spec, |connection| {
        server(move |request, to| match (connection, request.number) {
            (0, 5..) => {}
            (0, 4) => {
                to.send(MS, good(request.stream));
                to.send(MS, go_away(request.stream));
            }
            _ => to.send(MS, good(request.stream)),
        })
    });
    assert_eq!((measurement.requests, measurement.asked_again, errors(&measurement)), (10, 5, vec![]));
    assert_eq!(measurement.service.max, Some(MS + ROUND_TRIP), "the write with a response");
    // Closing, connecting, opening and sending take four round trips.
    let response = measurement.response.unwrap().max.unwrap();
    assert!((2 * MS + 2 * ROUND_TRIP..2 * MS + 6 * ROUND_TRIP).contains(&response), "{response}");
}

#[test]
fn resent_requests_have_the_same_values() {
    let mut spec = LoadSpec { pipeline: 8, stop: Stop::Requests { requests: 1_000, max_ns: 60 * S }, ..http2() };
    let Target::Http { requests, .. } = &mut spec.target else { unreachable!() };
    requests[0].target = "/{{seq}}/{{uuid}}/{{letters:20}}".to_owned();
    requests[0].method = "POST".to_owned();
    requests[0].body = br#"{"id": "{{uuid}}"}"#.to_vec();
    let paths = Rc::new(RefCell::new(BTreeMap::<String, BTreeSet<String>>::new()));
    let seen = paths.clone();
    let measurement = measure(&spec, move |_| {
        let seen = seen.clone();
        server(move |request, to| {
            let id = request.path.split('/').nth(2).unwrap();
            assert_eq!(request.body, format!(r#"{{"id": "{id}"}}"#).as_bytes());
            let sequence = request.path.split('/').nth(1).unwrap().to_owned();
            seen.borrow_mut().entry(sequence).or_default().insert(request.path);
            match request.number {
                ..3 => to.send(MS, good(request.stream)),
                3 => to.send(MS, [good(request.stream), go_away(request.stream)].concat()),
                4.. => {}
            }
        })
    });
    assert!(measurement.asked_again > 500, "{}", measurement.asked_again);
    let paths = paths.borrow();
    assert!(paths.len() >= 1_000 && paths.values().all(|forms| forms.len() == 1), "{paths:?}");
}

#[test]
fn a_request_is_not_resent_forever() {
    let measurement =
        measure(&http2(), |_| server(|request, to| to.send(MS, reset(request.stream, ErrorCode::REFUSED_STREAM))));
    assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["stream-reset"]);
    assert_eq!(measurement.requests, 0);
    let all = measurement.errors["stream-reset"] + measurement.warmup_errors["stream-reset"];
    near(measurement.asked_again as f64, 10.0 * all as f64, 0.05);
}

#[test]
fn a_reset_stream_is_an_error_and_keeps_the_connection() {
    let measurement = measure(&LoadSpec { pipeline: 4, ..http2() }, |_| {
        server(|request, to| match request.number % 10 {
            9 => to.send(MS, reset(request.stream, ErrorCode::INTERNAL_ERROR)),
            _ => to.send(MS, good(request.stream)),
        })
    });
    let resets = measurement.errors["stream-reset"];
    near(measurement.requests as f64, 9.0 * resets as f64, 0.01);
    assert_eq!((measurement.reconnects, errors(&measurement).len()), (0, 1));
    assert_eq!(measurement.error_examples["stream-reset"], "the server reset the stream with INTERNAL_ERROR");
}

#[test]
fn malformed_responses_are_errors_and_keep_the_connection() {
    let other = Rc::<RefCell<Vec<String>>>::default();
    let seen = other.clone();
    let measurement = measure(&http2(), move |_| {
        server_with(Settings::DEFAULT, &seen, |request, to| {
            to.send(
                MS,
                if request.number % 2 == 0 { headers("2x0", request.stream, false) } else { good(request.stream) },
            )
        })
    });
    let framing = measurement.errors["framing"];
    near(measurement.requests as f64, framing as f64, 0.01);
    assert_eq!((measurement.reconnects, errors(&measurement).len()), (0, 1));
    assert_eq!(measurement.error_examples["framing"], "a `:status` that is not three digits, or 101");
    let resets =
        other.borrow().iter().filter(|frame| frame.contains("Reset") && frame.contains("ErrorCode(1)")).count();
    assert!(resets as u64 >= framing, "{resets}");
}

#[test]
fn statuses_and_bodies_are_checked() {
    let measurement = measure(&http2(), |_| {
        server(|request, to| {
            let wrong_body =
                [headers("200", request.stream, false), made(|out| push_data(out, request.stream, b"tent", true))];
            match request.number % 3 {
                0 => to.send(MS, headers("503", request.stream, true)),
                1 => to.send(MS, wrong_body.concat()),
                _ => to.send(MS, [headers("103", request.stream, false), good(request.stream)].concat()),
            }
        })
    });
    near(measurement.errors["status"] as f64, measurement.requests as f64, 0.01);
    near(measurement.errors["body"] as f64, measurement.requests as f64, 0.01);
    assert_eq!(
        (measurement.reconnects, measurement.error_examples["status"].as_str()),
        (0, "status 503 (expected 2xx)")
    );
}

#[test]
fn a_grpc_call_needs_status_zero() {
    let mut spec = http2();
    let Target::Http { requests, expect, .. } = &mut spec.target else { unreachable!() };
    (requests[0].method, requests[0].target) = ("POST".to_owned(), "/a.B/C".to_owned());
    requests[0].body = b"\x0a\x01x".to_vec();
    requests[0] = study::grpc::prepare(requests[0].clone()).unwrap();
    (expect.grpc, expect.body) = (true, None);
    let fields = |fields: &[(&str, &str)]| {
        made(|out| {
            for (name, value) in fields {
                hpack::push_field(out, name.as_bytes(), value.as_bytes(), Indexing::Skip);
            }
        })
    };
    // A response has a head, then trailers. Without trailers, the head ends the response.
    let ok = [(":status", "200"), ("content-type", "application/grpc")];
    let not_found = [("grpc-status", "5"), ("grpc-message", "no such thing")];
    let head_only = [ok[0], ok[1], ("grpc-status", "12"), ("grpc-message", "what?")];
    for (head, trailers, kind, example) in [
        (&ok[..], &[("grpc-status", "0")][..], "", ""),
        (&ok, &not_found, "grpc-status", "grpc-status 5 (NOT_FOUND): no such thing"),
        (&ok, &[("grpc-status", "x")], "grpc-status", "a response without `grpc-status`"),
        (&ok, &[("x", "0")], "grpc-status", "a response without `grpc-status`"),
        (&head_only, &[], "grpc-status", "grpc-status 12 (UNIMPLEMENTED): what?"),
        (&[(":status", "503")], &[("grpc-status", "0")], "status", "503"),
    ] {
        let (head, trailers) = (fields(head), fields(trailers));
        let measurement = measure(&spec, move |_| {
            let (head, trailers) = (head.clone(), trailers.clone());
            server(move |request, to| {
                assert_eq!((request.path.as_str(), request.body.as_slice()), ("/a.B/C", &b"\0\0\0\0\x03\x0a\x01x"[..]));
                let stream = request.stream;
                let message = made(|out| {
                    push_headers(out, stream, &head, trailers.is_empty(), 16_384);
                    if !trailers.is_empty() {
                        push_data(out, stream, &[0, 0, 0, 0, 0], false);
                        push_headers(out, stream, &trailers, true, 16_384);
                    }
                });
                to.send(MS, message);
            })
        });
        if kind.is_empty() {
            assert!(errors(&measurement).is_empty() && measurement.requests > 100, "{measurement:?}");
        } else {
            assert!(measurement.requests == 0 && measurement.errors[kind] > 100, "{example}");
            let seen = &measurement.error_examples[kind];
            assert!(seen.contains(example), "{seen}, expected {example}");
        }
    }
}

#[test]
fn grpc_messages_are_checked_as_json() {
    const SCHEMA: &str = "syntax = \"proto3\"; package a; message In {} message Out { uint32 id = 1; } \
                          service B { rpc C(In) returns (Out); rpc D(In) returns (stream Out); }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.proto");
    std::fs::write(&path, SCHEMA).unwrap();
    let schema = grpc::Schema::read(&path).unwrap();
    for (method, path, status, messages, fault) in [
        ("C", "$.id", "0", &b"\0\0\0\0\x02\x08\x07"[..], ""),
        ("D", "$[1].id", "0", b"\0\0\0\0\0\0\0\0\0\x02\x08\x07", ""),
        ("C", "$.id", "0", b"\0\0\0\0\x02\x08\x08", "`$.id` is `8`, expected `7`"),
        ("C", "$.id", "0", b"\0\0\0\0\x02\x08", "the last message of the response is truncated"),
        ("C", "$.id", "5", b"", "grpc-status 5 (NOT_FOUND)"),
    ] {
        let mut spec = http2();
        let Target::Http { requests, expect, .. } = &mut spec.target else { unreachable!() };
        (requests[0].method, requests[0].target) = ("POST".to_owned(), format!("/a.B/{method}"));
        requests[0] = study::grpc::prepare(requests[0].clone()).unwrap();
        **expect = Expect {
            grpc: true,
            grpc_schema: Some(schema.encode()),
            json: vec![(path.to_owned(), "7".to_owned())],
            ..Expect::default()
        };
        let measurement = measure(&spec, move |_| {
            server(move |request, to| {
                let stream = request.stream;
                let message = made(|out| {
                    let fields = |name: &[u8], value: &str| {
                        made(|out| hpack::push_field(out, name, value.as_bytes(), Indexing::Skip))
                    };
                    push_headers(out, stream, &fields(b":status", "200"), false, 16_384);
                    push_data(out, stream, messages, false);
                    push_headers(out, stream, &fields(b"grpc-status", status), true, 16_384);
                });
                to.send(MS, message);
            })
        });
        if fault.is_empty() {
            assert!(errors(&measurement).is_empty() && measurement.requests > 100, "{measurement:?}");
        } else {
            let seen = measurement.error_examples.values().cloned().collect::<String>();
            assert!(measurement.requests == 0 && seen.contains(fault), "{seen}, expected {fault}");
        }
    }
}

#[test]
fn times_between_grpc_messages_are_exact() {
    let mut spec = http2();
    let Target::Http { requests, expect, .. } = &mut spec.target else { unreachable!() };
    (requests[0].method, requests[0].target) = ("POST".to_owned(), "/a.B/C".to_owned());
    requests[0] = study::grpc::prepare(requests[0].clone()).unwrap();
    **expect = Expect { grpc: true, ..Expect::default() };
    // A response has a message after 1 ms, two more 2 ms later, and its end 4 ms after them.
    let measurement = measure(&spec, |_| {
        server(|request, to| {
            let stream = request.stream;
            let field = |name: &[u8], value: &[u8]| made(|out| hpack::push_field(out, name, value, Indexing::Skip));
            let message = |count: usize| made(|out| push_data(out, stream, &[0; 5].repeat(count), false));
            let head = made(|out| push_headers(out, stream, &field(b":status", b"200"), false, 16_384));
            to.send(MS, [head, message(1)].concat());
            to.send(3 * MS, message(2));
            to.send(7 * MS, made(|out| push_headers(out, stream, &field(b"grpc-status", b"0"), true, 16_384)));
        })
    });
    assert!(errors(&measurement).is_empty() && measurement.requests > 100, "{measurement:?}");
    let streams = measurement.streams.as_ref().unwrap();
    assert_eq!((streams.responses, streams.messages), (measurement.requests, 3 * measurement.requests));
    let gap = streams.message_gap.as_ref().unwrap();
    assert_eq!((gap.count, gap.min, gap.max), (2 * measurement.requests, Some(0), Some(2 * MS)));
    near(gap.mean().unwrap(), MS as f64, 1e-9);
}

#[test]
fn grpc_messages_in_turn_wait_for_the_response() {
    let mut spec = http2();
    let Target::Http { requests, expect, in_turn, .. } = &mut spec.target else { unreachable!() };
    (requests[0].method, requests[0].target) = ("POST".to_owned(), "/a.B/C".to_owned());
    let messages = [b"one".to_vec(), Vec::new(), b"three".to_vec()];
    requests[0] = study::grpc::prepare_messages(requests[0].clone(), &messages).unwrap();
    (**expect, *in_turn) = (Expect { grpc: true, ..Expect::default() }, true);
    let bodies = Rc::new(RefCell::new(BTreeSet::new()));
    let seen = bodies.clone();
    let field = |name: &[u8], value: &[u8]| made(|out| hpack::push_field(out, name, value, Indexing::Skip));
    // Each message is answered after 1 ms, as an echo server does.
    let measurement = measure(&spec, move |_| {
        let seen = seen.clone();
        let on_piece = |stream, body: &[u8], to: &mut Actions| {
            let head = made(|out| hpack::push_field(out, b":status", b"200", Indexing::Skip));
            let is_first = body.len() == 8;
            assert!(is_first || body.len() == 13, "a message arrived too early: {body:?}");
            to.send(
                MS,
                made(|out| {
                    if is_first {
                        push_headers(out, stream, &head, false, 16_384);
                    }
                    push_data(out, stream, &[0; 5], false);
                }),
            );
        };
        server_with_pieces(Settings::DEFAULT, &Rc::default(), on_piece, move |request, to| {
            seen.borrow_mut().insert(request.body);
            to.send(
                MS,
                made(|out| {
                    push_data(out, request.stream, &[0; 5], false);
                    push_headers(out, request.stream, &field(b"grpc-status", b"0"), true, 16_384);
                }),
            );
        })
    });
    assert!(errors(&measurement).is_empty() && measurement.requests > 100, "{measurement:?}");
    let body = b"\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three".to_vec();
    assert_eq!(bodies.take(), BTreeSet::from([body]));
    let gap = measurement.streams.as_ref().unwrap().message_gap.as_ref().unwrap();
    assert_eq!((gap.count, gap.min, gap.max), (2 * measurement.requests, Some(MS + ROUND_TRIP), Some(MS + ROUND_TRIP)));
    near(measurement.service.mean().unwrap(), 3.0 * (MS + ROUND_TRIP) as f64, 1e-6);
}

#[test]
fn a_body_waits_for_credit() {
    let mut spec = LoadSpec { pipeline: 2, ..http2() };
    let Target::Http { requests, .. } = &mut spec.target else { unreachable!() };
    (requests[0].method, requests[0].body) = ("POST".to_owned(), b"0123456789abcde".to_vec());
    let settings = Settings { initial_window_size: 10, ..Settings::DEFAULT };
    let measurement = measure(&spec, move |_| {
        server_with(settings, &Rc::default(), |request, to| {
            assert_eq!(request.body, b"0123456789abcde");
            to.send(0, good(request.stream));
        })
    });
    assert_eq!(errors(&measurement), []);
    let trip = 2 * ROUND_TRIP + MS;
    assert_eq!((measurement.service.min, measurement.service.max), (Some(trip), Some(trip)));
    check_in_flight(&measurement, 8.0);
    let streams = measurement.streams.unwrap();
    assert_eq!(streams.stalled_uploads, streams.responses);
}

/// Responses arrive in pairs: the first has a head of one byte and a body of 1,000 bytes, the second only a head.
#[test]
fn bytes_ahead_are_those_of_other_responses() {
    let mut spec = LoadSpec { clients: 1, pipeline: 2, ..http2() };
    let Target::Http { expect, .. } = &mut spec.target else { unreachable!() };
    expect.body = None;
    let measurement = measure(&spec, |_| {
        let mut first = None;
        server(move |request, to| {
            let Some(other) = first.take() else {
                first = Some(request.stream);
                return;
            };
            let long = made(|out| push_data(out, request.stream, &[0; 1_000], true));
            to.send(MS, [headers("200", request.stream, false), long, headers("200", other, true)].concat());
        })
    });
    assert_eq!(errors(&measurement), []);
    let streams = measurement.streams.unwrap();
    assert_eq!((streams.responses, streams.header_bytes), (measurement.requests, measurement.requests));
    near(streams.bytes_ahead as f64, 1_001.0 * measurement.requests as f64 / 2.0, 0.002);
}

/// Of three requests per millisecond, only two get a place. In the last case, requests wait for a new connection.
#[test]
fn waits_for_a_place_have_their_reason() {
    for (pipeline, allowed, rate_per_s) in [(2, u32::MAX, 3_000.0), (8, 2, 3_000.0), (64, u32::MAX, 30_000.0)] {
        let leaves = pipeline == 64;
        let arrivals = Arrivals::Constant { rate_per_s };
        let spec = LoadSpec { clients: 1, pipeline, arrivals, warmup: Warmup::DurationNs(0), ..http2() };
        let measurement = measure(&spec, move |connection| {
            let settings = Settings { max_concurrent_streams: allowed, ..Settings::DEFAULT };
            server_with(settings, &Rc::default(), move |request, to| {
                match (leaves && connection == 0, request.number) {
                    (true, 10..) => {}
                    (true, 9) => to.send(MS, [good(request.stream), go_away(request.stream)].concat()),
                    _ => to.send(MS, good(request.stream)),
                }
            })
        });
        assert_eq!(errors(&measurement), []);
        let streams = measurement.streams.unwrap();
        assert_eq!((streams.goaways, measurement.asked_again > 20), (u64::from(leaves), leaves));
        let max = |waits: &Option<study::record::Histogram>| waits.as_ref().and_then(|waits| waits.max).unwrap_or(0);
        let waits = [&streams.wait_own, &streams.wait_server, &streams.wait_connection].map(max);
        let expect = [allowed > 2 && !leaves, allowed == 2, leaves];
        assert_eq!(waits.map(|waited| waited > MS / 2), expect, "{waits:?}");
        assert_eq!(measurement.lag_connection.unwrap().max, waits.into_iter().max());
    }
}

#[test]
fn pings_and_settings_are_acknowledged() {
    let other = Rc::<RefCell<Vec<String>>>::default();
    let seen = other.clone();
    let measurement = measure(&LoadSpec { clients: 1, ..http2() }, move |_| {
        server_with(Settings::DEFAULT, &seen, |request, to| {
            if request.number % 100 == 0 {
                to.send(0, made(|out| push_ping(out, [7; 8], false)));
                to.send(0, made(|out| push_settings(out, &Settings::DEFAULT)));
            }
            to.send(MS, good(request.stream));
        })
    });
    assert_eq!(errors(&measurement), []);
    let count = |text: &str| other.borrow().iter().filter(|frame| *frame == text).count() as u64;
    let pings = measurement.sent.div_ceil(100);
    assert_eq!(count("PingAck([7, 7, 7, 7, 7, 7, 7, 7])"), pings);
    assert_eq!(count("SettingsAck"), pings + 1);
}

#[test]
fn the_servers_table_is_never_exceeded() {
    for bytes in [0, 40, 100, 4096] {
        let settings = Settings { header_table_size: bytes, ..Settings::DEFAULT };
        let measurement = measure(&http2(), move |_| {
            server_with(settings, &Rc::default(), |request, to| to.send(MS, good(request.stream)))
        });
        assert_eq!(errors(&measurement), [], "{bytes}");
    }
}

#[test]
fn an_error_of_the_connection_fails_its_requests() {
    let spec = LoadSpec { pipeline: 4, ..http2() };
    let measurement = measure(&spec, |_| {
        server(|request, to| match request.number {
            ..9 => to.send(MS, good(request.stream)),
            _ => to.send(MS, made(|out| push_go_away(out, 0, ErrorCode::ENHANCE_YOUR_CALM))),
        })
    });
    assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["closed"]);
    assert_eq!(measurement.error_examples["closed"], "the server ended the connection with ENHANCE_YOUR_CALM");
    near(measurement.errors["closed"] as f64, 4.0 * measurement.reconnects as f64, 0.05);
}

#[test]
fn an_invalid_frame_ends_the_connection_with_its_code() {
    type Frames = fn(u32) -> Vec<u8>;
    let rows: [(Frames, u32, &str); 6] = [
        (|_| made(|out| push_window_update(out, 0, 0)), 1, "WINDOW_UPDATE of 0 bytes on stream 0"),
        // h2specd 4.2/2 and 4.2/3.
        (|stream| made(|out| push_data(out, stream, &[0; 16_385], true)), 6, "DATA of 16385 bytes, more than 16384"),
        (
            |stream| made(|out| push_headers(out, stream, &[0x88; 16_385], true, 16_385)),
            6,
            "HEADERS of 16385 bytes, more than 16384",
        ),
        // h2specd 5.1/5 and 5.1/7 to 5.1/9: frames after RST_STREAM or END_STREAM.
        (
            |stream| {
                let end = made(|out| push_data(out, stream, b"test", true));
                [headers("200", stream, false), reset(stream, ErrorCode::CANCEL), end].concat()
            },
            5,
            "a frame on stream 11, which is closed",
        ),
        (|stream| [good(stream), headers("200", stream, true)].concat(), 5, "a frame on stream 11, which is closed"),
        (
            |stream| {
                let rest = made(|out| push_frame_head(out, 1, FrameKind::CONTINUATION, flags::END_HEADERS, stream));
                [reset(stream, ErrorCode::CANCEL), rest, vec![0x88]].concat()
            },
            1,
            "CONTINUATION outside a field block",
        ),
    ];
    for ((frames, code, example), pipeline) in rows.into_iter().flat_map(|row| [(row, 1), (row, 2)]) {
        let other = Rc::<RefCell<Vec<String>>>::default();
        let seen = other.clone();
        let spec = LoadSpec { clients: 1, pipeline, ..http2() };
        let measurement = measure(&spec, move |_| {
            server_with(Settings::DEFAULT, &seen, move |request, to| match request.number {
                ..5 => to.send(MS, good(request.stream)),
                5 => to.send(MS, frames(request.stream)),
                _ => {}
            })
        });
        assert!(measurement.errors["framing"] >= measurement.reconnects, "{example}: {:?}", errors(&measurement));
        assert_eq!(measurement.error_examples["framing"], example);
        let go_away = format!("GoAway {{ last: 0, code: ErrorCode({code}), debug: [] }}");
        let count = other.borrow().iter().filter(|frame| **frame == go_away).count() as u64;
        assert!(count > 0 && count >= measurement.reconnects, "{example}: {count}");
    }
}

#[test]
fn a_window_that_overflows_resets_only_its_stream() {
    let other = Rc::<RefCell<Vec<String>>>::default();
    let seen = other.clone();
    let measurement = measure(&LoadSpec { pipeline: 2, ..http2() }, move |_| {
        server_with(Settings::DEFAULT, &seen, |request, to| match request.number % 10 {
            // h2specd 6.9.1/2.
            9 => to.send(MS, made(|out| push_window_update(out, request.stream, WINDOW_MAX))),
            _ => to.send(MS, good(request.stream)),
        })
    });
    let framing = measurement.errors["framing"];
    near(measurement.requests as f64, 9.0 * framing as f64, 0.01);
    assert_eq!((measurement.reconnects, errors(&measurement).len()), (0, 1));
    assert_eq!(measurement.error_examples["framing"], "a flow-control window above 2147483647 bytes");
    let resets =
        other.borrow().iter().filter(|frame| frame.contains("Reset") && frame.contains("ErrorCode(3)")).count();
    assert!(resets as u64 >= framing, "{resets}");
}

/// The server may have sent these frames before it received this client's reset (RFC 9113, section 5.1).
#[test]
fn frames_in_transit_at_a_reset_are_ignored() {
    let measurement = measure(&LoadSpec { pipeline: 2, ..http2() }, |_| {
        server(|request, to| {
            let stream = request.stream;
            let late = [made(|out| push_data(out, stream, b"late", false)), headers("200", stream, true)];
            let malformed = [&[headers("2x0", stream, false)][..], &late].concat().concat();
            let ended = made(|out| push_window_update(out, stream, 1));
            let ended = [good(stream), ended, reset(stream, ErrorCode::NO_ERROR)].concat();
            to.send(MS, if request.number % 2 == 0 { malformed } else { ended });
        })
    });
    assert_eq!((measurement.reconnects, errors(&measurement).len()), (0, 1));
    near(measurement.requests as f64, measurement.errors["framing"] as f64, 0.01);
}

#[test]
fn requests_in_flight_fail_when_the_connection_ends_without_goaway() {
    let spec = LoadSpec { pipeline: 4, ..http2() };
    let measurement = measure(&spec, |_| {
        server(|request, to| match request.number {
            ..9 => to.send(MS, good(request.stream)),
            9 => to.end_of_stream(MS),
            _ => {}
        })
    });
    assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["closed-between"]);
    assert_eq!(measurement.asked_again, 0);
}

#[test]
fn a_response_cut_off_by_the_end_of_the_connection_is_truncated() {
    let measurement = measure(&LoadSpec { pipeline: 2, ..http2() }, |_| {
        server(|request, to| match request.number {
            ..9 => to.send(MS, good(request.stream)),
            9 => {
                to.send(MS, [headers("200", request.stream, false), go_away(request.stream)].concat());
                to.end_of_stream(MS);
            }
            _ => {}
        })
    });
    assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["truncated"]);
    near(measurement.errors["truncated"] as f64, measurement.reconnects as f64, 0.02);
}

#[test]
fn a_silent_stream_times_out_and_the_others_continue() {
    let spec = LoadSpec { clients: 1, pipeline: 4, timeout_ns: 100 * MS, ..http2() };
    let measurement = measure(&spec, |_| {
        server(|request, to| match request.number {
            100 => {}
            200 => to.send(150 * MS, good(request.stream)),
            _ => to.send(MS, good(request.stream)),
        })
    });
    let timeouts = measurement.errors.get("timeout").copied().unwrap_or(0)
        + measurement.warmup_errors.get("timeout").copied().unwrap_or(0);
    assert_eq!((timeouts, measurement.reconnects), (2, 0));
    assert!(measurement.requests > 2_800, "{}", measurement.requests);
}

#[test]
fn a_connection_serves_its_number_of_requests() {
    for connection in [Connection::PerRequest, Connection::Requests(5)] {
        let spec = LoadSpec { connection, ..http2() };
        let most = if connection == Connection::PerRequest { 1 } else { 5 };
        let measurement = measure(&spec, move |_| {
            server(move |request, to| {
                assert!(request.number < most, "request {} on one connection", request.number);
                to.send(MS, good(request.stream));
            })
        });
        assert_eq!((errors(&measurement), measurement.reconnects), (vec![], 0), "{connection:?}");
        assert!(measurement.requests > 3_000, "{}", measurement.requests);
    }
}

#[test]
fn unprocessed_requests_with_their_own_connections_are_resent() {
    for leaves in [false, true] {
        for arrivals in [Arrivals::closed(0), Arrivals::Constant { rate_per_s: 1_000.0 }] {
            let stop = Stop::Requests { requests: 1_000, max_ns: 60 * S };
            let spec = LoadSpec { connection: Connection::PerRequest, arrivals, stop, ..http2() };
            let measurement = measure(&spec, move |connection| {
                server(move |request, to| match (connection % 3, leaves) {
                    (0, false) => to.send(MS, reset(request.stream, ErrorCode::REFUSED_STREAM)),
                    (0, true) => to.send(MS, go_away(0)),
                    _ => to.send(MS, good(request.stream)),
                })
            });
            assert_eq!((errors(&measurement), measurement.requests), (vec![], 1_000), "{leaves}, {arrivals:?}");
            assert!(measurement.asked_again > 100, "{}", measurement.asked_again);
        }
    }
}

#[test]
fn a_server_of_another_protocol_is_named() {
    let outcome = outcome(&http2(), |_| {
        super::http::server(|_, _, to| to.send(0, b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice()))
    });
    let expect = (Fault::Framing, "the server uses HTTP/1, not HTTP/2".to_owned());
    assert_eq!(outcome, Err(Outcome::Unreachable(Some(expect))));
}
