//! `serve http` allocates nothing per request in steady state.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;

use servers::{Http, HttpLimits, Listen};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Requests of each kind before and during the count.
const WARM_UP: usize = 100;
const ROUNDS: usize = 500;

fn play(stream: &mut TcpStream, request: &[&[u8]], answer_bytes: usize, rounds: usize, buffer: &mut [u8]) {
    for _ in 0..rounds {
        for piece in request {
            stream.write_all(piece).unwrap();
        }
        stream.read_exact(&mut buffer[..answer_bytes]).unwrap();
        assert!(buffer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

/// Counts allocations of the process per kind of request. It must be the only test: other threads would allocate.
fn count(backend: net::Choice) -> Vec<(&'static str, usize)> {
    let requests: [(&str, &[&[u8]]); 9] = [
        ("root", &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]),
        ("plaintext", &[b"GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n"]),
        ("json, and a head unlike the one before", &[b"GET /json HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"]),
        ("16 at once", &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(16).leak()]),
        ("in two pieces", &[b"GET / HTTP/1.1\r\nHo", b"st: a\r\n\r\n"]),
        ("bytes", &[b"GET /bytes/10000 HTTP/1.1\r\nHost: a\r\n\r\n"]),
        ("many bytes", &[b"GET /bytes/300000 HTTP/1.1\r\nHost: a\r\n\r\n"]),
        ("chunks", &[b"GET /chunked/300000 HTTP/1.1\r\nHost: a\r\n\r\n"]),
        ("echo", &[b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"]),
    ];
    let listen = Listen {
        address: net::Address::Inet("127.0.0.1:0".parse().unwrap()),
        threads: 1,
        backend,
        connections: Some(16),
        drain_ns: 0,
    };
    let shutdown = servers::Shutdown::default();
    let (said, ready) = channel();
    std::thread::scope(|scope| {
        let limits = HttpLimits::DEFAULT;
        let shutdown = &shutdown;
        let server = scope.spawn(move || {
            let handler = |thread| Http::new(&limits, 1, thread, || 0);
            servers::serve(&listen, handler, shutdown, |address| said.send(address.clone()).unwrap()).unwrap();
        });
        let address = ready.recv().unwrap().inet().unwrap();
        let mut buffer = vec![0; 1 << 20];
        let mut counts = Vec::new();
        for (name, request) in requests {
            let connect = || {
                let stream = TcpStream::connect(address).unwrap();
                stream.set_nodelay(true).unwrap();
                stream
            };
            // The first response ends with the server's stream, which shows its size. Later ones have the same size.
            let mut first = connect();
            request.iter().for_each(|piece| first.write_all(piece).unwrap());
            first.shutdown(Shutdown::Write).unwrap();
            let bytes = first.read_to_end(&mut Vec::new()).unwrap();
            let mut stream = connect();
            let rounds = if bytes > 100_000 { ROUNDS / 10 } else { ROUNDS };
            play(&mut stream, request, bytes, WARM_UP, &mut buffer);
            let region = Region::new(ALLOCATOR);
            play(&mut stream, request, bytes, rounds, &mut buffer);
            let change = region.change();
            counts.push((name, change.allocations + change.reallocations));
        }
        shutdown.ask();
        server.join().unwrap();
        counts
    })
}

#[test]
fn allocates_nothing_in_steady_state() {
    let region = Region::new(ALLOCATOR);
    drop(std::hint::black_box(vec![1]));
    // The harness has its own thread, which may also allocate here.
    assert!(region.change().allocations >= 1, "the count counts");

    let mut backends = vec![net::Choice::Epoll];
    match net::probe() {
        Ok(()) => backends.push(net::Choice::IoUring),
        Err(reason) => println!("not checked: io_uring is not usable here: {reason}"),
    }
    for backend in backends {
        for (name, allocations) in count(backend) {
            // The buffer of a paused sender or a split head may be allocated on first use now.
            let allowed = if matches!(name, "many bytes" | "chunks" | "in two pieces") { 4 } else { 0 };
            assert!(allocations <= allowed, "{name}, {backend:?}: {allocations} allocations");
        }
    }
}
