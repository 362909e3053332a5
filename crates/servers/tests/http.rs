//! Tests `serve http` on real sockets, over both kernel interfaces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use net::{Address, Choice, Conn, Data, Driver};
use servers::{Handler, Http, HttpLimits, Listen, Shutdown, serve};

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs each test over both kernel interfaces. Skips io_uring with a message if it is unusable.
macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod epoll { $(#[test] fn $name() { super::$name(super::Choice::Epoll) })* }
        mod uring { $(#[test] fn $name() {
            match net::probe() {
                Ok(()) => super::$name(super::Choice::IoUring),
                Err(reason) => println!("not checked: io_uring is not usable here: {reason}"),
            }
        })* }
    };
}

suite!(
    connections_are_spread_evenly,
    one_too_many_is_refused,
    a_gibibyte_is_refused,
    a_million_fields_are_refused,
    garbage_is_answered,
    a_reader_at_its_own_pace_gets_all,
    an_echo_of_any_length,
    many_short_connections,
    slow_clients_do_not_hold_up_others,
    an_orderly_end_answers_what_was_asked,
    an_end_has_a_limit_and_can_be_forced,
    a_unix_socket,
);

struct Running {
    address: Address,
    shutdown: Arc<Shutdown>,
    thread: Option<JoinHandle<usize>>,
}

impl Running {
    fn start<H: Handler + Send + 'static>(listen: Listen, handler: impl Fn(u32) -> H + Send + Sync + 'static) -> Self {
        let shutdown = Arc::new(Shutdown::default());
        let (said, ready) = channel();
        let shared = Arc::clone(&shutdown);
        let run = move || {
            let ready = |address: &Address| said.send(address.clone()).unwrap();
            serve(&listen, handler, &shared, ready).unwrap().len()
        };
        let thread = Some(std::thread::spawn(run));
        Self { address: ready.recv_timeout(PATIENCE).expect("a server that is ready"), shutdown, thread }
    }

    fn http(listen: Listen, limits: HttpLimits) -> Self {
        Self::start(listen, move |thread| Http::new(&limits, 1, thread, || 0))
    }

    fn inet(&self) -> SocketAddr {
        self.address.inet().unwrap()
    }

    fn client(&self) -> TcpStream {
        let stream = TcpStream::connect(self.inet()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ended(&mut self) {
        let thread = self.thread.take().unwrap();
        eventually("the server ends", || thread.is_finished());
        thread.join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.force();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("did not happen: {what}");
}

fn listen(backend: Choice, threads: u32, connections: usize) -> Listen {
    let address = Address::Inet("127.0.0.1:0".parse().unwrap());
    Listen { address, threads, backend, connections: Some(connections), drain_ns: 20_000_000_000 }
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

fn answer(stream: &mut impl Read) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

fn is_served(stream: &mut (impl Read + Write)) {
    stream.write_all(&get("/")).unwrap();
    let (head, body) = answer(stream);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body == b"test", "{head}");
}

fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return bytes,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return bytes,
            Err(error) => panic!("{error}"),
        }
    }
}

struct Which {
    thread: u32,
    open: Arc<Vec<AtomicUsize>>,
}

impl Handler for Which {
    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.open[self.thread as usize].fetch_add(1, Ordering::SeqCst);
        driver.send(conn, &[self.thread as u8]).unwrap();
    }

    fn data<D: Driver>(&mut self, _: &mut D, _: Conn, _: Data) {}

    fn closed(&mut self, _: Conn) {
        self.open[self.thread as usize].fetch_sub(1, Ordering::SeqCst);
    }
}

fn connections_are_spread_evenly(backend: Choice) {
    const THREADS: usize = 3;
    let open: Arc<Vec<AtomicUsize>> = Arc::new((0..THREADS).map(|_| AtomicUsize::new(0)).collect());
    let shared = Arc::clone(&open);
    let handler = move |thread| Which { thread, open: Arc::clone(&shared) };
    let server = Running::start(listen(backend, THREADS as u32, 1000), handler);
    let connect = || {
        let mut stream = server.client();
        let mut which = [0];
        stream.read_exact(&mut which).unwrap();
        (stream, usize::from(which[0]))
    };
    let counts = |all: &[(TcpStream, usize)]| {
        let mut counts = [0; THREADS];
        all.iter().for_each(|(_, which)| counts[*which] += 1);
        counts
    };
    let all_open = || open.iter().map(|count| count.load(Ordering::SeqCst)).sum::<usize>();
    let is_even = |counts: [usize; THREADS]| counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1;

    // Short connections must not affect the distribution, so every other connection closes immediately.
    let mut staying = Vec::new();
    for _ in 0..40 {
        staying.push(connect());
        drop(connect());
        eventually("a connection that left is forgotten", || all_open() == staying.len());
    }
    assert!(is_even(counts(&staying)), "{:?}", counts(&staying));

    // A thread that lost its connections gets the next ones.
    staying.retain(|(_, which)| *which != 1);
    eventually("connections that left are forgotten", || all_open() == staying.len());
    assert_eq!(counts(&staying)[1], 0);
    while staying.len() < 50 {
        staying.push(connect());
    }
    assert!(is_even(counts(&staying)), "{:?}", counts(&staying));
}

fn one_too_many_is_refused(backend: Choice) {
    for threads in [1, 3] {
        let server = Running::http(listen(backend, threads, 5), HttpLimits::DEFAULT);
        let mut all: Vec<TcpStream> = (0..5).map(|_| server.client()).collect();
        all.iter_mut().for_each(is_served);
        let mut refused: Vec<TcpStream> = (0..20).map(|_| server.client()).collect();
        for stream in &mut refused {
            let said = String::from_utf8(rest(stream)).unwrap();
            assert!(said.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{said}");
        }
        drop(refused);
        all.iter_mut().for_each(is_served);
        all.pop();
        eventually("there is room again", || {
            let mut stream = server.client();
            stream.write_all(&get("/")).unwrap();
            answer(&mut stream).0.starts_with("HTTP/1.1 200")
        });
    }
}

fn flood(stream: &mut TcpStream, bytes: &[u8], most: usize) -> usize {
    let mut written = 0;
    while written < most {
        // A busy kernel may accept only a part of the bytes, so continue after that part.
        match stream.write(&bytes[written % bytes.len()..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => break,
            Err(error) => panic!("{error}"),
        }
    }
    written
}

fn a_gibibyte_is_refused(backend: Choice) {
    let server = Running::http(listen(backend, 1, 10), HttpLimits::DEFAULT);
    let mut other = server.client();
    // With `Content-Length`, the request is rejected before any of the body arrives.
    let mut stream = server.client();
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n").unwrap();
    let (head, _) = answer(&mut stream);
    assert!(head.starts_with("HTTP/1.1 413 ") && head.contains("Connection: close"), "{head}");
    // A chunked body is discarded up to the limit; then the server rejects the request and lingers.
    let mut stream = server.client();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let chunk = [b"10000\r\n", vec![b'x'; 0x10000].as_slice(), b"\r\n"].concat();
    flood(&mut stream, &chunk, 20 << 20);
    is_served(&mut other);
    let said = rest(&mut stream);
    assert!(said.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&said));
    is_served(&mut other);
}

fn a_million_fields_are_refused(backend: Choice) {
    let server = Running::http(listen(backend, 1, 10), HttpLimits::DEFAULT);
    let mut stream = server.client();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
    let fields = b"X-Field: a\r\n".repeat(1000);
    flood(&mut stream, &fields, fields.len() * 1000);
    let said = rest(&mut stream);
    assert!(said.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&said));
    is_served(&mut server.client());
}

fn garbage_is_answered(backend: Choice) {
    let server = Running::http(listen(backend, 1, 300), HttpLimits::DEFAULT);
    let mut other = server.client();
    let mut state = 1u64;
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..300)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        let mut stream = server.client();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let said = rest(&mut stream);
        assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
    }
    // The start of a TLS handshake, as from an `https` client.
    let mut stream = server.client();
    stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").unwrap();
    assert!(rest(&mut stream).starts_with(b"HTTP/1.1 400 "));
    is_served(&mut other);
}

fn a_reader_at_its_own_pace_gets_all(backend: Choice) {
    const BYTES: usize = 60_000_000;
    let server = Running::http(listen(backend, 1, 10), HttpLimits::DEFAULT);
    let mut stream = server.client();
    stream.write_all(&get(&format!("/bytes/{BYTES}"))).unwrap();
    let mut other = server.client();
    (0..100).for_each(|_| is_served(&mut other));
    let (_, body) = answer(&mut stream);
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    assert_eq!(body.len(), BYTES);
    assert!(body.chunks(64).all(|chunk| chunk == &letters[..chunk.len()]));
    is_served(&mut stream);
}

fn an_echo_of_any_length(backend: Choice) {
    const BYTES: usize = 12_000_000;
    let server = Running::http(listen(backend, 1, 10), HttpLimits::DEFAULT);
    let sent: Vec<u8> = (0..BYTES).map(|at| (at * 7 / 5) as u8).collect();
    let mut stream = server.client();
    let mut writer = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writer
                .write_all(format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n").as_bytes())
                .unwrap();
            writer.write_all(&sent).unwrap();
        });
        let (_, body) = answer(&mut stream);
        assert!(body == sent, "the echo differs from the request body");
    });
    is_served(&mut stream);
}

fn many_short_connections(backend: Choice) {
    let server = Running::http(listen(backend, 2, 100), HttpLimits::DEFAULT);
    for round in 0..2000 {
        let mut stream = server.client();
        let close: &[u8] = if round % 2 == 0 { b"Connection: close\r\n" } else { b"" };
        stream.write_all(&[b"GET / HTTP/1.1\r\nHost: a\r\n", close, b"\r\n"].concat()).unwrap();
        let (head, body) = answer(&mut stream);
        assert_eq!(body, b"test");
        assert_eq!(head.contains("Connection: close"), round % 2 == 0);
        if round % 2 == 0 {
            assert_eq!(rest(&mut stream), b"");
        }
    }
}

/// A hundred clients that stall after one byte get a timeout; other clients are still served.
fn slow_clients_do_not_hold_up_others(backend: Choice) {
    let limits = HttpLimits { head_ns: 300_000_000, ..HttpLimits::DEFAULT };
    let server = Running::http(listen(backend, 1, 200), limits);
    let mut slow: Vec<TcpStream> = (0..100).map(|_| server.client()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"G").unwrap());
    let mut other = server.client();
    (0..500).for_each(|_| is_served(&mut other));
    for stream in &mut slow {
        let said = String::from_utf8(rest(stream)).unwrap();
        assert!(
            said.starts_with("HTTP/1.1 408 ") && said.ends_with("the request head took longer than 0.3 s\n"),
            "{said}"
        );
    }
    is_served(&mut other);
}

fn an_orderly_end_answers_what_was_asked(backend: Choice) {
    let mut server = Running::http(listen(backend, 2, 200), HttpLimits::DEFAULT);
    let address = server.inet();
    let mut idle = server.client();
    is_served(&mut idle);
    let mut late: Vec<TcpStream> = (0..4).map(|_| server.client()).collect();
    for stream in &mut late {
        is_served(stream);
        stream.write_all(&get("/delay?mean=500ms")).unwrap();
    }
    let mut long = server.client();
    long.write_all(&get("/bytes/30000000")).unwrap();
    long.read_exact(&mut [0; 100]).unwrap();
    // One loop serves all clients, so these responses prove that the earlier requests were read.
    late.iter_mut().for_each(|stream| stream.set_nonblocking(true).unwrap());
    (0..4).for_each(|_| is_served(&mut server.client()));
    server.shutdown.ask();
    assert_eq!(rest(&mut idle), b"", "an idle connection is closed");
    for stream in &mut late {
        stream.set_nonblocking(false).unwrap();
        let (head, body) = answer(stream);
        assert!(head.contains("Connection: close\r\n") && body == b"test", "{head}");
        assert_eq!(rest(stream), b"");
    }
    eventually("nobody listens", || {
        TcpStream::connect(address).err().is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
    assert!(rest(&mut long).len() > 29_999_900);
    server.ended();
}

fn an_end_has_a_limit_and_can_be_forced(backend: Choice) {
    for force in [false, true] {
        let drain_ns = if force { 3_600_000_000_000 } else { 200_000_000 };
        let mut server = Running::http(Listen { drain_ns, ..listen(backend, 2, 200) }, HttpLimits::DEFAULT);
        let mut late: Vec<TcpStream> = (0..4).map(|_| server.client()).collect();
        late.iter_mut().for_each(|stream| stream.write_all(&get("/delay?mean=60s")).unwrap());
        (0..4).for_each(|_| is_served(&mut server.client()));
        server.shutdown.ask();
        if force {
            server.shutdown.ask(); // The second request has no effect.
            server.shutdown.force();
        }
        server.ended();
        assert!(late.iter_mut().all(|stream| rest(stream).is_empty()));
    }
}

fn a_unix_socket(backend: Choice) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let address = Address::Unix(path.clone());
    let mut server = Running::http(Listen { address, ..listen(backend, 2, 100) }, HttpLimits::DEFAULT);
    let mut all: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).unwrap()).collect();
    all.iter_mut().for_each(|stream| (0..10).for_each(|_| is_served(stream)));
    drop(all);
    server.shutdown.ask();
    server.ended();
    assert!(!path.exists(), "the path is left behind");
}
