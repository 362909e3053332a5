//! The hot path does not allocate: a longer load allocates more for windows, but not for requests.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use study::Measurement;
use study::spec::{
    Arrivals, Backend, Connection, Dialect, Expect, Http2Settings, HttpRequest, LoadSpec, SPEC_VERSION, Stop, Target,
    Warmup,
};
use wire::http2::{FRAME_HEAD_BYTES, FrameKind, PREFACE};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CLIENTS: u32 = 4;
const WINDOW_NS: u64 = 100_000_000;
/// Number of requests of the shorter load. A busy machine only prolongs the load.
const SHORT: u64 = 500;
const LONG: u64 = 4_000;
/// Maximum number of allocations per window, for a histogram in the record and a coarse sum in the coordinator.
const ALLOCATIONS_A_WINDOW: usize = 24;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: test\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\ntest";

/// Starts a server that sends the same response to every request. Allocates nothing after its threads have started.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = socket.read(&mut bytes) {
                    if bytes.starts_with(PREFACE) {
                        return serve_http2(&mut socket, &mut bytes, count);
                    }
                    let answer: &[u8] = match bytes[0] {
                        b's' if !bytes.starts_with(b"stats") => b"STORED\r\n",
                        b'g' | b's' => b"END\r\n",
                        _ => ANSWER,
                    };
                    if socket.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn serve_http2(socket: &mut TcpStream, bytes: &mut [u8], count: usize) {
    let (mut start, mut end) = (PREFACE.len(), count);
    let mut answer = *b"\0\0\x04\x01\x04\0\0\0\0\x88\x5c\x014\0\0\x04\0\x01\0\0\0\0test";
    let mut sent = socket.write_all(b"\0\0\0\x04\0\0\0\0\0");
    while sent.is_ok() {
        while let Some(head) = bytes[start..end].first_chunk::<FRAME_HEAD_BYTES>()
            && let frame_end = start + FRAME_HEAD_BYTES + usize::from(head[2])
            && frame_end <= end
        {
            let is_request = head[3] == FrameKind::HEADERS.0;
            for at in [5, 18] {
                answer[at..at + 4].copy_from_slice(&head[5..]);
            }
            start = frame_end;
            if is_request {
                sent = socket.write_all(&answer);
            }
        }
        bytes.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        match socket.read(&mut bytes[end..]) {
            Ok(count @ 1..) => end += count,
            _ => return,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Http1,
    Http2,
    Cache,
}

fn load(address: &str, kind: Kind, backend: Backend, arrivals: Arrivals, requests: u64) -> (Measurement, usize) {
    let request = HttpRequest {
        weight: 1,
        method: "GET".to_owned(),
        target: "/{{seq}}?{{uuid}}&{{zipf:1..1000}}".to_owned(),
        headers: vec![("Host".to_owned(), "localhost".to_owned())],
        body: Vec::new(),
        name: None,
    };
    let http = Target::Http {
        address: address.to_owned(),
        tunnel_to: None,
        requests: vec![request],
        tls: None,
        http2: kind == Kind::Http2,
        http2_settings: Http2Settings::default(),
        in_turn: false,
        expect: Box::new(Expect { status: Some(vec![200]), body: Some(b"test".to_vec()), ..Expect::default() }),
        directory: String::new(),
    };
    let mut workload = study::workload::preset("ycsb-a").unwrap();
    workload.keys.count = 1000;
    let memcached =
        Target::Cache { address: address.to_owned(), dialect: Dialect::Memcached, workload: Box::new(workload) };
    let spec = LoadSpec {
        version: SPEC_VERSION,
        target: if kind == Kind::Cache { memcached } else { http },
        clients: CLIENTS,
        pipeline: if kind == Kind::Http2 { 3 } else { 1 },
        connection: Connection::KeepAlive,
        threads: 1,
        cpus: Vec::new(),
        backend,
        arrivals,
        warmup: Warmup::Requests(200),
        stop: Stop::Requests { requests, max_ns: 60_000_000_000 },
        window_ns: WINDOW_NS,
        timeout_ns: 30_000_000_000,
        spin_ns: 0,
        seed: 1,
        part: None,
        gate: false,
        shape: Vec::new(),
        log_one_in: 0,
    };
    let region = Region::new(COUNTING);
    let measurement = load::run(&spec, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    let change = region.change();
    (measurement, change.allocations + change.reallocations)
}

#[test]
fn requests_do_not_allocate() {
    let address = serve();
    let mut backends = vec![Backend::Epoll];
    match net::probe() {
        Ok(()) => backends.push(Backend::IoUring),
        Err(reason) => println!("not checked on io_uring: {reason}"),
    }
    let open = Arrivals::Poisson { rate_per_s: 10_000.0 };
    let closed = Arrivals::closed(0);
    for backend in backends {
        let kinds = [Kind::Http1, Kind::Http2, Kind::Cache];
        for (kind, arrivals) in kinds.into_iter().flat_map(|kind| [(kind, closed), (kind, open)]) {
            load(&address, kind, backend, arrivals, SHORT); // This absorbs one-time allocations.
            let (short, few) = load(&address, kind, backend, arrivals, SHORT);
            let (long, many) = load(&address, kind, backend, arrivals, LONG);
            assert_eq!((short.errors_total(), long.errors_total()), (0, 0));
            assert!(long.requests > short.requests + 1_000, "{} and {}", short.requests, long.requests);
            // A load may last one more window.
            let windows = long.windows.len().saturating_sub(short.windows.len()) + 2;
            let more = many.saturating_sub(few);
            assert!(
                more <= windows * ALLOCATIONS_A_WINDOW,
                "{more} more allocations for {} more requests in {windows} more windows",
                long.requests - short.requests
            );
        }
    }
}
