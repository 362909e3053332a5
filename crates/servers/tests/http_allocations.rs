//! `serve http` allocates nothing per request in steady state.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;

use servers::{Http, HttpLimits, Listen};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use wire::http2::hpack::{Indexing, push_field};
use wire::http2::{self, FrameKind, PREFACE, Settings, WINDOW_MAX, flags};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of requests of each kind before counting starts.
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

/// A client of HTTP/2 that allocates nothing per request.
struct Http2Client {
    socket: TcpStream,
    stream: u32,
    sent: Vec<u8>,
    read: Vec<u8>,
}

impl Http2Client {
    fn new(socket: TcpStream) -> Self {
        let mut sent = PREFACE.to_vec();
        http2::push_settings(&mut sent, &Settings { initial_window_size: WINDOW_MAX, ..Settings::DEFAULT });
        http2::push_window_update(&mut sent, 0, WINDOW_MAX - Settings::DEFAULT.initial_window_size);
        Self { socket, stream: 1, sent, read: vec![0; 1 << 14] }
    }

    /// Sends a request, then reads up to the end of its response.
    fn play(&mut self, block: &[u8], body: &[u8], rounds: usize) {
        for _ in 0..rounds {
            http2::push_headers(&mut self.sent, self.stream, block, body.is_empty(), 16_384);
            if !body.is_empty() {
                http2::push_data(&mut self.sent, self.stream, body, true);
            }
            self.socket.write_all(&self.sent).unwrap();
            self.sent.clear();
            let mut head = [0; http2::FRAME_HEAD_BYTES];
            while head[5..] != self.stream.to_be_bytes() || head[4] & flags::END_STREAM == 0 {
                self.socket.read_exact(&mut head).unwrap();
                assert!(![FrameKind::GOAWAY.0, FrameKind::RST_STREAM.0].contains(&head[3]), "{head:?}");
                let bytes = usize::from(head[1]) << 8 | usize::from(head[2]);
                self.socket.read_exact(&mut self.read[..bytes]).unwrap();
            }
            self.stream += 2;
        }
    }
}

/// Counts the process's allocations per kind of request. The caller must be the only test; others would allocate too.
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
            // The server ends its stream after the first response, which shows the size of all responses of this kind.
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
        let http2: [(&str, &str, &str, &[u8]); 5] = [
            ("root over HTTP/2", "GET", "/", b""),
            ("bytes over HTTP/2", "GET", "/bytes/10000", b""),
            ("many bytes over HTTP/2", "GET", "/bytes/300000", b""),
            ("a delay over HTTP/2", "GET", "/delay?mean=10us", b""),
            ("echo over HTTP/2", "POST", "/echo", b"hello"),
        ];
        for (name, method, path, body) in http2 {
            let socket = TcpStream::connect(address).unwrap();
            socket.set_nodelay(true).unwrap();
            let mut client = Http2Client::new(socket);
            let mut block = Vec::new();
            for (field, value) in [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)] {
                push_field(&mut block, field.as_bytes(), value.as_bytes(), Indexing::Skip);
            }
            client.play(&block, body, WARM_UP);
            let region = Region::new(ALLOCATOR);
            client.play(&block, body, ROUNDS / 10);
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
            // The buffer of a paused sender or a split head may still be allocated on first use.
            let allowed = if matches!(name, "many bytes" | "chunks" | "in two pieces" | "many bytes over HTTP/2") {
                4
            } else {
                0
            };
            assert!(allocations <= allowed, "{name}, {backend:?}: {allocations} allocations");
        }
    }
}
