//! Generators with the parts of a load send the same requests as one generator with the whole load, on real sockets.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use study::spec::{Arrivals, Backend, Connection, LoadSpec, Part, SPEC_VERSION, Stop, Target, Warmup};

#[derive(Default)]
struct Seen {
    words: Mutex<BTreeMap<SocketAddr, Vec<u32>>>,
    connections: Mutex<Vec<JoinHandle<()>>>,
}

const WORDS: usize = 100;

fn serve() -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::<Seen>::default();
    let log = seen.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, log) = (socket.unwrap(), log.clone());
            socket.set_nodelay(true).unwrap();
            let peer = socket.peer_addr().unwrap();
            let connections = log.clone();
            let connection = std::thread::spawn(move || {
                let mut bytes = [0; 4];
                while socket.read_exact(&mut bytes).is_ok() {
                    let word = u32::from_be_bytes(bytes);
                    if let Some(words) =
                        Some(log.words.lock().unwrap().entry(peer).or_default()).filter(|w| w.len() < WORDS)
                    {
                        words.push(word);
                    }
                    let _ = socket.write_all(&word.wrapping_add(1).to_be_bytes());
                }
            });
            connections.connections.lock().unwrap().push(connection);
        }
    });
    (address, seen)
}

fn spec(address: &str) -> LoadSpec {
    LoadSpec {
        version: SPEC_VERSION,
        target: Target::Pingpong { address: address.to_owned() },
        clients: 3,
        pipeline: 1,
        connection: Connection::KeepAlive,
        threads: 3,
        cpus: Vec::new(),
        backend: Backend::Auto,
        arrivals: Arrivals::closed(0),
        warmup: Warmup::DurationNs(20_000_000),
        stop: Stop::Duration { duration_ns: 300_000_000 },
        window_ns: 50_000_000,
        timeout_ns: 5_000_000_000,
        spin_ns: 0,
        seed: 7,
        part: None,
        gate: false,
        shape: Vec::new(),
        log_one_in: 0,
    }
}

/// Returns the words of each connection of the previous load, after all its connections have ended.
fn words(seen: &Seen) -> Vec<Vec<u32>> {
    for connection in std::mem::take(&mut *seen.connections.lock().unwrap()) {
        connection.join().unwrap();
    }
    let mut words = std::mem::take(&mut *seen.words.lock().unwrap()).into_values().collect::<Vec<_>>();
    words.sort_unstable();
    words
}

fn run(spec: &LoadSpec) {
    let measurement = load::run(spec, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    assert!(measurement.errors.is_empty(), "{:?}", measurement.errors);
}

#[test]
fn three_one_worker_generators_match_one_with_three() {
    let (address, seen) = serve();
    let whole = spec(&address);
    run(&whole);
    let expected = words(&seen);
    let parts = (0..3).map(|first| LoadSpec { threads: 1, part: Some(Part { first, of: 3 }), ..whole.clone() });
    for part in parts {
        run(&part);
    }
    let found = words(&seen);
    assert_eq!((expected.len(), found.len()), (3, 3));
    for (expected, found) in expected.iter().zip(&found) {
        let common = expected.len().min(found.len());
        assert!(common >= 20, "{common} words are too few");
        assert_eq!(found[..common], expected[..common]);
    }
    // If each generator had run the whole load, all would have sent the first worker's words.
    assert!(expected[0] != expected[1] && expected[1] != expected[2]);
}
