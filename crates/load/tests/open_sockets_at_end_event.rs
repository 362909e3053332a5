//! Events at the end of a load on real sockets. Connections must stay open until the caller has handled the events.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use load::Phase;
use study::generator_messages::Told;
use study::spec::{Arrivals, Backend, Connection, Identities, LoadSpec, SPEC_VERSION, Stop, Target, Warmup};

#[derive(Default)]
struct CacheOutcome {
    heard: AtomicBool,
    closed_before: AtomicU64,
    closed_after: AtomicU64,
}

fn serve(answer: Option<&'static [u8]>) -> (String, Arc<CacheOutcome>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(CacheOutcome::default());
    let shared = seen.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, seen) = (socket.unwrap(), shared.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                loop {
                    let count = match answer {
                        Some(_) => socket.read(&mut bytes).unwrap_or(0),
                        None => socket.read_exact(&mut bytes[..4]).map_or(0, |()| 4),
                    };
                    if count == 0 {
                        let closed = if seen.heard.load(SeqCst) { &seen.closed_after } else { &seen.closed_before };
                        closed.fetch_add(1, SeqCst);
                        return;
                    }
                    let word = u32::from_be_bytes(bytes[..4].try_into().unwrap()).wrapping_add(1).to_be_bytes();
                    let _ = socket.write_all(answer.unwrap_or(&word));
                }
            });
        }
    });
    (address, seen)
}

fn spec(target: Target, backend: Backend, stop: Stop) -> LoadSpec {
    LoadSpec {
        version: SPEC_VERSION,
        target,
        clients: 8,
        pipeline: 1,
        connection: Connection::KeepAlive,
        threads: 2,
        cpus: Vec::new(),
        backend,
        arrivals: Arrivals::closed(0),
        warmup: Warmup::DurationNs(20_000_000),
        stop,
        window_ns: 50_000_000,
        timeout_ns: 5_000_000_000,
        spin_ns: 0,
        seed: 1,
        part: None,
        gate: false,
        shape: Vec::new(),
        log_one_in: 0,
    }
}

fn check(spec: &LoadSpec, seen: &CacheOutcome) {
    let mut events = Vec::new();
    let measurement = load::run_with_events(
        spec,
        &mut |event| {
            let is_over = matches!(event, Told::Measured(_));
            events.push(event);
            if is_over {
                // Leave time for a connection to close by mistake.
                std::thread::sleep(Duration::from_millis(50));
                seen.heard.store(true, SeqCst);
            }
        },
        None,
        &AtomicBool::new(false),
    )
    .unwrap();
    let is_measuring = |event: &Told| matches!(event, Told::Progress(progress) if progress.phase == Phase::Measure);
    let announced = events.iter().position(|event| matches!(event, Told::Announced(_))).unwrap();
    assert!(events.iter().position(is_measuring).is_none_or(|measuring| announced < measuring), "{events:?}");
    let (Some(Told::Measured(span)), Told::Announced(moments)) = (events.last(), &events[announced]) else {
        panic!("{events:?}")
    };
    let spans = events.iter().filter(|event| matches!(event, Told::Announced(_) | Told::Measured(_))).count();
    assert_eq!((moments.from_ns, spans), (span.from_ns, 2));
    assert_eq!(span.until_ns - span.from_ns, measurement.duration_ns);
    let known = matches!(spec.stop, Stop::Duration { .. });
    assert_eq!(moments.until_ns, known.then_some(span.until_ns));
    assert!(measurement.requests > 0, "{measurement:?}");
    assert_eq!(seen.closed_before.load(SeqCst), 0, "connections are open until the caller has heard");
    for _ in 0..1_000 {
        if seen.closed_after.load(SeqCst) == 8 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} connections have closed", seen.closed_after.load(SeqCst));
}

#[test]
fn connections_stay_open_until_end_event_is_handled() {
    for backend in [Backend::Epoll, Backend::Auto] {
        for stop in
            [Stop::Duration { duration_ns: 100_000_000 }, Stop::Requests { requests: 500, max_ns: 60_000_000_000 }]
        {
            let (address, seen) = serve(None);
            check(&spec(Target::Pingpong { address }, backend, stop), &seen);
        }
    }
}

#[test]
fn journey_connections_stay_open_until_end_event_is_handled() {
    let (address, seen) = serve(Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
    let text = format!("name = \"j\"\ntargets = {{ a = \"http://{address}\" }}\n[[step]]\nurl = \"{{a}}/x\"\n");
    let journey = study::parse_journey(&text).unwrap();
    let target = Target::Journey {
        journeys: vec![study::spec::WeightedJourney { weight: 1, journey }],
        targets: Default::default(),
        resolve: None,
        insecure: false,
        ca_file: None,
        client: None,
        http2: false,
        is_traced: false,
        identities: Identities::Fresh,
    };
    check(&spec(target, Backend::Auto, Stop::Duration { duration_ns: 100_000_000 }), &seen);
}
