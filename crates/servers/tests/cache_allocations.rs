//! `serve cache` allocates nothing for a hit or an overwrite in steady state, in any protocol.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

use servers::{CacheLimits, CacheProtocol, CacheServer, CacheShared, Listen, Shutdown};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of writes of each kind before counting starts.
const WARM_UP: usize = 100;
const ROUNDS: usize = 300;
const VALUE_BYTES: usize = 200;

struct Kind {
    name: &'static str,
    request: Vec<u8>,
    begins: &'static str,
    /// Last bytes of the response, which occur nowhere else in the response.
    ends: Vec<u8>,
}

fn kinds() -> Vec<Kind> {
    let value = "v".repeat(VALUE_BYTES);
    let kind = |name, request: String, begins, ends: &str| Kind {
        name,
        request: request.into_bytes(),
        begins,
        ends: ends.as_bytes().to_vec(),
    };
    let http = |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    vec![
        // The first kind of write stores the value that all other kinds hit.
        kind("text set", format!("set key 0 0 {VALUE_BYTES}\r\n{value}\r\n"), "STORED", "\r\n"),
        kind("text get", "get key\r\n".to_owned(), "VALUE key 0 200\r\n", "END\r\n"),
        kind("text get of two", "get key key\r\n".to_owned(), "VALUE key 0 200\r\n", "END\r\n"),
        kind("resp get", "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n".to_owned(), "$200\r\n", &format!("{value}\r\n")),
        kind("resp set", format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$200\r\n{value}\r\n"), "+OK", "\r\n"),
        kind("http get", http("GET", "/key"), "HTTP/1.1 200 OK\r\n", &value),
        kind("http put", http("PUT", &format!("/key/{value}")), "HTTP/1.1 204 No Content\r\n", "\r\n\r\n"),
    ]
}

fn play(stream: &mut TcpStream, request: &[u8], begins: &str, answer: &mut [u8], rounds: usize) {
    for _ in 0..rounds {
        stream.write_all(request).unwrap();
        stream.read_exact(answer).unwrap();
        assert!(answer.starts_with(begins.as_bytes()), "{}", answer.escape_ascii());
    }
}

/// Counts the process's allocations per kind of write. The caller must be the only test; others would allocate too.
fn count(backend: net::Choice, evictor: cache::Evictor) -> Vec<(&'static str, usize, usize)> {
    let config = cache::Config { evictor, versions: true, ..cache::Config::new(4 << 20) };
    let shared =
        CacheShared::new(config, CacheProtocol::Auto, CacheLimits::DEFAULT, || 1_000_000_000_000_000_000).unwrap();
    let shared = Arc::new(shared);
    let listen = Listen {
        address: net::Address::Inet("127.0.0.1:0".parse().unwrap()),
        threads: 1,
        backend,
        connections: Some(16),
        drain_ns: 0,
    };
    let shutdown = Shutdown::default();
    let (said, ready) = channel();
    std::thread::scope(|scope| {
        let shutdown = &shutdown;
        let server = scope.spawn(move || {
            let handler = |_| CacheServer::new(Arc::clone(&shared));
            servers::serve(&listen, handler, shutdown, |address| said.send(address.clone()).unwrap()).unwrap();
        });
        let address = ready.recv().unwrap().inet().unwrap();
        let mut counts = Vec::new();
        for kind in kinds() {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            // The first store creates the key; the second response has the size of all later ones.
            let mut answer = Vec::new();
            for _ in 0..2 {
                answer.clear();
                stream.write_all(&kind.request).unwrap();
                let mut byte = [0];
                while !answer.ends_with(&kind.ends) {
                    stream.read_exact(&mut byte).unwrap();
                    answer.push(byte[0]);
                }
            }
            for depth in [1, 16] {
                let request = kind.request.repeat(depth);
                let mut answers = vec![0; answer.len() * depth];
                play(&mut stream, &request, kind.begins, &mut answers, WARM_UP);
                let region = Region::new(ALLOCATOR);
                play(&mut stream, &request, kind.begins, &mut answers, ROUNDS);
                let change = region.change();
                counts.push((kind.name, depth, change.allocations + change.reallocations));
            }
        }
        shutdown.ask();
        server.join().unwrap();
        counts
    })
}

#[test]
fn allocates_nothing_for_hits_and_overwrites() {
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
        for evictor in [cache::Evictor::Density, cache::Evictor::Lru] {
            for (name, depth, allocations) in count(backend, evictor) {
                assert_eq!(allocations, 0, "{name}, {depth} at once, {backend:?}, {evictor}");
            }
        }
    }
}
