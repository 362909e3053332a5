//! Unsolicited bytes in every protocol. The time of their arrival must not change the result.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::Measurement;
use study::spec::{Arrivals, Expect, HttpRequest, LoadSpec, Stop};
use study::workload::{Operations, preset};

use super::{MS, S, errors, outcome_with};
use crate::check_spec::tests::spec;
use crate::protocol::{Cache, Codec, Http, HttpCache, Memcached, Pingpong, Protocol, Redis, Shared, Values};

/// Responds to each request after [`MS`] and sends [`JUNK`] `junk_after` ns later.
struct Littering {
    serve: Serve,
    junk_after: Nanos,
    bytes: Vec<u8>,
    asked: Rc<Cell<u64>>,
}

type Serve = fn(&[u8]) -> Option<(Vec<u8>, usize)>;

const JUNK: &[u8] = b"JUNK";

impl Peer for Littering {
    fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
        self.bytes.extend_from_slice(bytes);
        while let Some((mut answer, used)) = (self.serve)(&self.bytes) {
            self.bytes.drain(..used);
            self.asked.set(self.asked.get() + 1);
            if self.junk_after == 0 {
                answer.extend_from_slice(JUNK);
                to.send(MS, answer);
            } else {
                to.send(MS, answer);
                to.send(MS + self.junk_after, JUNK);
            }
        }
    }
}

fn pingpong(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (word, used) = wire::pingpong::parse(bytes)?;
    Some((wire::pingpong::compose(wire::pingpong::answer(word)).to_vec(), used))
}

fn lines(bytes: &[u8], lines: usize, answer: &[u8]) -> Option<(Vec<u8>, usize)> {
    let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(lines - 1)?;
    Some((answer.to_vec(), end.0 + 1))
}

fn http(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    lines(bytes, 3, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest")
}

fn http_cache(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    lines(bytes, 3, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
}

fn memcached(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    lines(bytes, 1, b"END\r\n")
}

fn redis(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    lines(bytes, 5, b"$-1\r\n")
}

fn measure(
    spec: &LoadSpec,
    protocol: impl Protocol,
    shared: Option<&Shared>,
    serve: Serve,
    junk_after: Nanos,
) -> (Measurement, u64) {
    let asked = Rc::new(Cell::new(0));
    let counter = asked.clone();
    let littering =
        move |_| -> Answer { Littering { serve, junk_after, bytes: Vec::new(), asked: counter.clone() }.into() };
    (outcome_with(spec, protocol, Network::PERFECT, littering, shared).unwrap(), asked.get())
}

fn cache(codec: impl Codec, spec: &LoadSpec, serve: Serve, junk_after: Nanos) -> (Measurement, u64) {
    let mut workload = preset("ycsb-c").unwrap();
    workload.operations = Operations { get: 1.0, set: 0.0, delete: 0.0, read_modify_write: 0.0 };
    (workload.keys.count, workload.fill) = (100, false);
    let shared = Arc::new(Shared::new(&workload, spec.seed, 0).unwrap());
    let protocol = Cache::new(codec, &workload, shared.clone(), (spec.seed, 0, 1), None).unwrap();
    measure(spec, protocol, Some(&shared), serve, junk_after)
}

/// Each connection gets one valid response before the junk, so its next request fails.
#[test]
fn unsolicited_bytes_fail_one_request_at_any_time() {
    let think = Arrivals::closed;
    for (arrivals, junk_after) in [
        (think(0), 0),
        (think(0), 1),
        (think(0), MS / 2),
        (think(5 * MS), 0),
        (think(5 * MS), MS),
        (Arrivals::Constant { rate_per_s: 100.0 }, 0),
        (Arrivals::Constant { rate_per_s: 100.0 }, MS),
    ] {
        let stop = Stop::Requests { requests: 400, max_ns: 60 * S };
        let spec = LoadSpec { arrivals, stop, warmup: study::spec::Warmup::DurationNs(0), ..spec() };
        let check = |name: &str, kind: &str, (measurement, asked): (Measurement, u64)| {
            let context = format!("{name}, {arrivals:?}, junk after {junk_after} ns");
            assert_eq!(errors(&measurement).iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind], "{context}");
            let wrong = measurement.errors[kind];
            assert_eq!((measurement.requests + wrong, measurement.asked_again, asked), (400, 0, 400), "{context}");
            // The last connection of each of the four clients may lack its failing request.
            assert!((200 - 4..=200).contains(&wrong), "{wrong}: {context}");
            assert!(!measurement.error_examples[kind].is_empty());
        };
        let request = HttpRequest {
            weight: 1,
            method: "GET".to_owned(),
            target: "/".to_owned(),
            headers: vec![("Host".to_owned(), "a".to_owned())],
            body: Vec::new(),
            name: None,
        };
        let expect = Expect { status: None, body: Some(b"test".to_vec()), ..Expect::default() };
        let of_http = Http::new(&[request], &expect, spec.connection, Values::new("", 1)).unwrap();
        check("ping-pong", "wrong-answer", measure(&spec, Pingpong::default(), None, pingpong, junk_after));
        check("http", "framing", measure(&spec, of_http, None, http, junk_after));
        check("memcached", "framing", cache(Memcached::new(1000), &spec, memcached, junk_after));
        check("redis", "framing", cache(Redis::new(1000), &spec, redis, junk_after));
        check("http-cache", "framing", cache(HttpCache::new("a"), &spec, http_cache, junk_after));
    }
}

#[test]
fn bytes_before_orderly_end_fail_no_request() {
    // Sends `408 Request Timeout` on an idle connection and closes it, which loses no request.
    struct Timeout;
    impl Peer for Timeout {
        fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
            if let Some((answer, _)) = http(bytes) {
                to.send(MS, answer);
                to.send(2 * MS, b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n".as_slice());
                to.end_of_stream(2 * MS);
            }
        }
    }
    let request = HttpRequest {
        weight: 1,
        method: "GET".to_owned(),
        target: "/".to_owned(),
        headers: vec![("Host".to_owned(), "a".to_owned())],
        body: Vec::new(),
        name: None,
    };
    let spec = LoadSpec { arrivals: Arrivals::closed(5 * MS), ..spec() };
    let protocol = Http::new(
        &[request],
        &Expect { status: None, body: None, ..Expect::default() },
        spec.connection,
        Values::new("", 1),
    )
    .unwrap();
    let measurement = outcome_with(&spec, protocol, Network::PERFECT, |_| Timeout.into(), None).unwrap();
    assert_eq!(errors(&measurement), []);
    assert!(measurement.requests > 400, "{}", measurement.requests);
}
