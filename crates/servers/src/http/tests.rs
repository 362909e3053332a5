//! Tests the whole server on a simulated network with exact times.

mod http2;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use net::sim::{Actions, Network, Peer, Sim};
use net::{Config, Driver, Nanos};
use proptest::prelude::*;
use wire::http1::{Memo, RequestMethod, ResponseReader};

use super::*;
use crate::event_loops::{self, Handler};

const S: Nanos = 1_000_000_000;
const MS: Nanos = 1_000_000;

#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    /// Arrival times in ns and sizes in bytes of the received pieces.
    came: Vec<(Nanos, usize)>,
    ended: Option<Nanos>,
    /// Time at which the connection closed, and whether a reset closed it.
    closed: Option<(Nanos, bool)>,
}

type Shared = Rc<RefCell<Seen>>;

/// A client's action and its time after the connect, in ns.
#[derive(Clone, Debug)]
enum Step {
    Send(Nanos, Vec<u8>),
    End(Nanos),
    Stall(Nanos, Nanos),
    Reset(Nanos),
    /// Sends the bytes repeatedly, at this interval in ns.
    Flood(Nanos, Vec<u8>),
}

struct Client {
    steps: Vec<Step>,
    seen: Shared,
    /// Whether the client ends its stream after the server has ended its own.
    is_polite: bool,
    flood: Option<(Nanos, Vec<u8>)>,
}

impl Peer for Client {
    fn on_connect(&mut self, now: Nanos, to: &mut Actions) {
        for step in self.steps.drain(..) {
            match step {
                Step::Send(after, bytes) => to.send(after, bytes),
                Step::End(after) => to.end_of_stream(after),
                Step::Stall(after, span) => to.stall(after, span),
                Step::Reset(after) => to.reset(after),
                Step::Flood(gap, bytes) => {
                    self.flood = Some((gap, bytes));
                    to.wake(gap);
                }
            }
        }
        let _ = now;
    }

    fn on_wake(&mut self, _: Nanos, to: &mut Actions) {
        if let Some((gap, bytes)) = &self.flood {
            to.send(0, bytes.clone());
            to.wake(*gap);
        }
    }

    fn on_data(&mut self, bytes: &[u8], now: Nanos, _: &mut Actions) {
        let mut seen = self.seen.borrow_mut();
        seen.bytes.extend_from_slice(bytes);
        seen.came.push((now, bytes.len()));
    }

    fn on_end_of_stream(&mut self, now: Nanos, to: &mut Actions) {
        self.seen.borrow_mut().ended = Some(now);
        if self.is_polite {
            to.end_of_stream(0);
        }
    }

    fn on_closed(&mut self, reset: bool, now: Nanos) {
        self.seen.borrow_mut().closed = Some((now, reset));
    }
}

struct World {
    driver: Sim,
    http: Http,
    listener: net::Listener,
    address: SocketAddr,
    wake: Option<Nanos>,
    connections: usize,
    largest_out: usize,
}

const SEED: u64 = 7;

impl World {
    fn new(network: Network, limits: &HttpLimits) -> Self {
        Self::seeded(network, limits, SEED)
    }

    fn seeded(network: Network, limits: &HttpLimits, seed: u64) -> Self {
        let config =
            Config { connections: 64, receive_bytes: 16_384, send_bytes_max: 262_144, pause_reads_above_bytes: 65_536 };
        let mut driver = Sim::new(seed, &config, network);
        let (listener, address) = driver.listen(&"10.0.0.1:80".parse::<SocketAddr>().unwrap().into(), 64).unwrap();
        // The clock always shows Sun, 06 Nov 1994 08:49:37 GMT.
        let http = Http::new(limits, 1, 0, || 784_111_777);
        let address = address.inet().unwrap();
        Self { driver, http, listener, address, wake: None, connections: 60, largest_out: 0 }
    }

    fn client(&mut self, steps: Vec<Step>) -> Shared {
        self.client_that(steps, true)
    }

    fn client_that(&mut self, steps: Vec<Step>, is_polite: bool) -> Shared {
        let seen = Shared::default();
        let client = Client { steps, seen: Rc::clone(&seen), is_polite, flood: None };
        self.driver.client(self.address, 0, client);
        seen
    }

    fn turn(&mut self, until: Nanos) {
        let wake = self.wake.map_or(until, |wake| wake.min(until));
        let connections = self.connections;
        let accept = |driver: &mut Sim, http: &mut Http, conn| {
            if http.connections.open < connections { http.accepted(driver, conn) } else { http.refused(driver, conn) }
        };
        let turned = event_loops::turn(&mut self.driver, &mut self.http, Some(wake), accept, || {}, |_, _| {});
        self.wake = turned.unwrap();
        self.largest_out = self.largest_out.max(self.http.core.out.capacity());
        assert!(self.http.core.out.is_empty() && self.http.core.undrawn.is_empty(), "responses are left over");
    }

    fn run(&mut self, until: Nanos) {
        while self.driver.now() < until {
            self.turn(until);
        }
    }

    /// Shuts the server down as an event loop does, and runs it until it is done or the time is `until`.
    fn end(&mut self, until: Nanos) {
        self.driver.stop_listening(self.listener);
        self.http.end(&mut self.driver);
        self.wake = Some(0);
        while self.driver.now() < until && !self.http.is_done() {
            self.turn(until);
        }
    }
}

/// Sends `pieces` 1 ms apart and renders the responses within a virtual second.
fn talk(network: Network, pieces: &[&[u8]]) -> String {
    let mut world = World::new(network, &HttpLimits::DEFAULT);
    let send = |(index, piece): (usize, &&[u8])| Step::Send(index as Nanos * MS, piece.to_vec());
    let seen = world.client(pieces.iter().enumerate().map(send).collect());
    world.run(S);
    let whole = pieces.concat();
    render(&whole, &seen.borrow())
}

/// Renders responses as `200 "test", 404 close "nothing..", end` with the client's codec, as a client would see them.
fn render(sent: &[u8], seen: &Seen) -> String {
    // The framing of responses depends on the request methods.
    let heads = sent
        .split(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b" HTTP/1.1\r") || line.ends_with(b" HTTP/1.0\r"));
    let mut asked =
        heads.map(
            |line| if line.windows(5).any(|word| word == b"HEAD ") { RequestMethod::Head } else { RequestMethod::Get },
        );
    let mut said = Vec::new();
    let mut rest = seen.bytes.as_slice();
    while rest.starts_with(b"HTTP/1.1 100 Continue\r\n\r\n") {
        said.push("100".to_owned());
        rest = &rest[25..];
    }
    let mut memo = Memo::default();
    while !rest.is_empty() {
        let mut reader = ResponseReader::new(wire::http1::Limits::DEFAULT);
        let mut body = Vec::new();
        let asked = asked.next().unwrap_or(RequestMethod::Get);
        let progress = reader.read(&mut memo, asked, rest, |piece| body.extend_from_slice(piece)).unwrap();
        let response = match progress {
            Some((used, response)) => {
                rest = &rest[used..];
                response
            }
            None => match reader.end() {
                Ok(Some(response)) => {
                    rest = &[];
                    response
                }
                other => {
                    said.push(format!("cut off within a response: {other:?}"));
                    break;
                }
            },
        };
        let close = if response.keep_alive { "" } else { " close" };
        let body = match body.len() {
            0..=60 => format!("{:?}", String::from_utf8_lossy(&body)),
            bytes => {
                let is_pattern =
                    body.iter().enumerate().all(|(at, &byte)| byte == prebuilt_responses::piece(at as u64, 1)[0]);
                format!("{bytes} {}bytes", if is_pattern { "" } else { "other " })
            }
        };
        said.push(format!("{}{close} {body}", response.status));
    }
    match (seen.closed, seen.ended) {
        (Some((_, true)), _) => said.push("reset".to_owned()),
        (_, Some(_)) => said.push("end".to_owned()),
        _ => {}
    }
    said.join(", ")
}

fn crlf(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\nHost: a\n\n")
}

/// Checks the responses to `text` sent at once, split at every byte, and byte by byte over a bad network.
#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    check_bytes(name, &crlf(text), expected);
}

#[track_caller]
fn check_bytes(name: &str, sent: &[u8], expected: &str) {
    assert_eq!(talk(Network::PERFECT, &[sent]), expected, "{name}");
    for at in 1..sent.len().min(400) {
        assert_eq!(talk(Network::PERFECT, &[&sent[..at], &sent[at..]]), expected, "{name}, cut at {at}");
    }
    let bytes: Vec<&[u8]> = sent.chunks(1).collect();
    if bytes.len() < 900 {
        assert_eq!(talk(Network::PERFECT, &bytes), expected, "{name}, byte by byte");
    }
    assert_eq!(talk(Network::CHOPPY, &[sent]), expected, "{name}, over a bad network");
}

const NOT_FOUND: &str = "404 82 other bytes";
const NOT_ALLOWED: &str = r#"405 "method not allowed here; see Allow\n""#;

#[test]
fn routes() {
    for (target, expected) in [
        ("/", r#"200 "test""#),
        ("/?query", r#"200 "test""#),
        ("http://a/", r#"200 "test""#),
        ("/plaintext", r#"200 "Hello, World!""#),
        ("/json", r#"200 "{\"message\":\"Hello, World!\"}""#),
        ("/health", r#"200 "ok\n""#),
        ("/bytes/0", r#"200 """#),
        ("/bytes/10", r#"200 "ABCDEFGHIJ""#),
        ("/bytes/16384", "200 16384 bytes"),
        ("/bytes/16385", "200 16385 bytes"),
        ("/bytes/200001", "200 200001 bytes"),
        ("/chunked/0", r#"200 """#),
        ("/chunked/10", r#"200 "ABCDEFGHIJ""#),
        ("/chunked/10?chunk=3", r#"200 "ABCDEFGHIJ""#),
        ("/chunked/10000?chunk=1", "200 10000 bytes"),
        ("/chunked/200001?chunk=65536", "200 200001 bytes"),
        ("/chunked/200001", "200 200001 bytes"),
        ("/delay?mean=0", r#"200 "test""#),
        ("/delay?mean=3ms", r#"200 "test""#),
        ("/nowhere", NOT_FOUND),
        ("/chunked/1?chunk=0", r#"400 "/chunked/N takes `chunk=BYTES`, 1 to 65536\n""#),
    ] {
        check(target, &get(target), expected);
    }
}

#[test]
fn methods() {
    for (name, text, expected) in [
        ("head", "HEAD / HTTP/1.1\nHost: a\n\n", r#"200 """#),
        ("head of bytes", "HEAD /bytes/1000000 HTTP/1.1\nHost: a\n\n", r#"200 """#),
        ("head of chunks", "HEAD /chunked/1000000 HTTP/1.1\nHost: a\n\n", r#"200 """#),
        ("head of a delay", "HEAD /delay?mean=1ms HTTP/1.1\nHost: a\n\n", r#"200 """#),
        ("head of nothing", "HEAD /nowhere HTTP/1.1\nHost: a\n\n", r#"404 """#),
        ("options", "OPTIONS * HTTP/1.1\nHost: a\n\n", r#"204 """#),
        ("options of one", "OPTIONS /echo HTTP/1.1\nHost: a\n\n", r#"204 """#),
        ("delete", "DELETE / HTTP/1.1\nHost: a\n\n", NOT_ALLOWED),
        ("trace", "TRACE / HTTP/1.1\nHost: a\n\n", NOT_ALLOWED),
        ("post without echo", "POST / HTTP/1.1\nHost: a\nContent-Length: 3\n\nabc", NOT_ALLOWED),
        ("get of echo", "GET /echo HTTP/1.1\nHost: a\n\n", NOT_ALLOWED),
        ("unknown", "BREW / HTTP/1.1\nHost: a\n\n", r#"501 close "unknown method\n", end"#),
        (
            "connect, and a tunnel that is none",
            "CONNECT a:443 HTTP/1.1\nHost: a:443\nContent-Length: 5\n\nhello",
            r#"501 close "unknown method\n", end"#,
        ),
    ] {
        check(name, text, expected);
    }
}

#[test]
fn bodies() {
    let big = "x".repeat(200_000);
    let echoed = |text: &str| format!("200 {text:?}");
    for (name, text, expected) in [
        ("echo", "POST /echo HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", echoed("hello")),
        ("put", "PUT /echo HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello", echoed("hello")),
        ("nothing", "POST /echo HTTP/1.1\nHost: a\nContent-Length: 0\n\n", echoed("")),
        ("no body", "POST /echo HTTP/1.1\nHost: a\n\n", echoed("")),
        (
            "chunks",
            "POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n5\nhello\n1;x=y\n!\n0\nA: b\n\n",
            echoed("hello!"),
        ),
        ("no chunks", "POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\n\n", echoed("")),
        ("an unexpected body", "GET / HTTP/1.1\nHost: a\nContent-Length: 3\n\nabc", r#"200 "test""#.into()),
        (
            "unexpected chunks",
            "GET /nowhere HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n",
            NOT_FOUND.into(),
        ),
        (
            "two echoes",
            "POST /echo HTTP/1.1\nHost: a\nContent-Length: 1\n\nxPOST /echo HTTP/1.1\nHost: a\nContent-Length: 1\n\ny",
            r#"200 "x", 200 "y""#.into(),
        ),
        ("echo to HTTP/1.0", "POST /echo HTTP/1.0\nContent-Length: 5\n\nhello", r#"200 close "hello", end"#.into()),
    ] {
        check(name, text, &expected);
    }
    let long = format!("POST /echo HTTP/1.1\nHost: a\nContent-Length: 200000\n\n{big}");
    assert_eq!(talk(Network::PERFECT, &[&crlf(&long)]), "200 200000 other bytes");
    let chunks = format!("POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n30d40\n{big}\n0\n\n");
    assert_eq!(talk(Network::PERFECT, &[&crlf(&chunks)]), "200 200000 other bytes");
}

#[test]
fn connections_stay_or_close() {
    for (name, text, expected) in [
        ("kept", "GET / HTTP/1.1\nHost: a\n\nGET / HTTP/1.1\nHost: a\n\n", r#"200 "test", 200 "test""#),
        ("closed as asked", "GET / HTTP/1.1\nHost: a\nConnection: close\n\n", r#"200 close "test", end"#),
        (
            "no response after that",
            "GET / HTTP/1.1\nHost: a\nConnection: close\n\nGET / HTTP/1.1\nHost: a\n\n",
            r#"200 close "test", end"#,
        ),
        ("1.0 closes", "GET / HTTP/1.0\n\n", r#"200 close "test", end"#),
        (
            "1.0 stays if asked",
            "GET /json HTTP/1.0\nConnection: keep-alive\n\n",
            r#"200 "{\"message\":\"Hello, World!\"}""#,
        ),
        ("1.0 has no chunks", "GET /chunked/10 HTTP/1.0\nConnection: keep-alive\n\n", r#"200 close "ABCDEFGHIJ", end"#),
        ("1.0, long", "GET /chunked/100000 HTTP/1.0\n\n", "200 close 100000 bytes, end"),
        (
            "closed after a long response",
            "GET /bytes/100000 HTTP/1.1\nHost: a\nConnection: close\n\n",
            "200 close 100000 bytes, end",
        ),
        (
            "closed after a late response",
            "GET /delay?mean=2ms HTTP/1.1\nHost: a\nConnection: close\n\n",
            r#"200 close "test", end"#,
        ),
        (
            "closed after an echo",
            "POST /echo HTTP/1.1\nHost: a\nConnection: close\nContent-Length: 2\n\nhi",
            r#"200 close "hi", end"#,
        ),
    ] {
        check(name, text, expected);
    }
}

#[test]
fn errors_get_their_status_and_a_close() {
    let long = "x".repeat(40_000);
    let fields: String = (0..101).map(|field| format!("F{field}: x\n")).collect();
    for (name, text, expected) in [
        ("no host", "GET / HTTP/1.1\n\n".to_owned(), 400),
        ("two hosts", "GET / HTTP/1.1\nHost: a\nHost: b\n\n".to_owned(), 400),
        ("garbage", "\u{1}\u{2}garbage\n\n".to_owned(), 400),
        ("a version of long ago", "GET /\n\n".to_owned(), 400),
        ("a version to come", "GET / HTTP/2.0\nHost: a\n\n".to_owned(), 505),
        ("a folded line", "GET / HTTP/1.1\nHost: a\nX: y\n z\n\n".to_owned(), 400),
        ("space before the colon", "GET / HTTP/1.1\nHost : a\n\n".to_owned(), 400),
        ("two lengths", "POST /echo HTTP/1.1\nHost: a\nContent-Length: 1\nContent-Length: 2\n\nxy".to_owned(), 400),
        (
            "length and chunks",
            "POST /echo HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: chunked\n\n0\n\n".to_owned(),
            400,
        ),
        ("another coding", "POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: gzip, chunked\n\n0\n\n".to_owned(), 501),
        ("a body too long", "POST /echo HTTP/1.1\nHost: a\nContent-Length: 1073741824\n\n".to_owned(), 413),
        ("a chunk that is none", "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\nxyz\n".to_owned(), 400),
        (
            "the first chunk of an echo",
            "POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\nxyz\n".to_owned(),
            400,
        ),
        ("too many fields", format!("GET / HTTP/1.1\nHost: a\n{fields}\n"), 431),
        ("a field too long", format!("GET / HTTP/1.1\nHost: a\nX: {long}\n\n"), 431),
        ("a target too long", format!("GET /{long} HTTP/1.1\nHost: a\n\n"), 414),
    ] {
        // In these cases, the first error does not depend on how the bytes are split.
        let sent = crlf(&text);
        let mut cuts = vec![talk(Network::PERFECT, &[&sent]), talk(Network::CHOPPY, &[&sent])];
        for at in (1..sent.len().min(200)).chain([sent.len() - 1]) {
            cuts.push(talk(Network::PERFECT, &[&sent[..at], &sent[at..]]));
        }
        for said in cuts {
            assert!(said.starts_with(&format!("{expected} close ")) && said.ends_with(", end"), "{name}: {said}");
        }
    }
    let lines = b"GET / HTTP/1.1\nHost: a\n\n";
    assert!(talk(Network::PERFECT, &[lines]).starts_with("400 close "), "lines that end only in LF");
}

#[test]
fn an_error_after_good_requests_is_answered_in_order() {
    let text = get("/") + &get("/plaintext") + "nonsense\n\n" + &get("/");
    let said = talk(Network::PERFECT, &[&crlf(&text)]);
    assert!(said.starts_with(r#"200 "test", 200 "Hello, World!", 400 close "#) && said.ends_with(", end"), "{said}");
}

#[test]
fn expectations() {
    let head = "POST /echo HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 5\n\n";
    assert_eq!(talk(Network::PERFECT, &[&crlf(head), b"hello"]), r#"100, 200 "hello""#);
    assert_eq!(talk(Network::PERFECT, &[&crlf(&format!("{head}hello"))]), r#"200 "hello""#, "it did not wait");
    let wrong = head.replace("/echo", "/nowhere");
    assert_eq!(talk(Network::PERFECT, &[&crlf(&wrong)]), "404 close 82 other bytes, end", "the final status at once");
    let large = head.replace("Length: 5", "Length: 99999999");
    assert_eq!(talk(Network::PERFECT, &[&crlf(&large)]), r#"413 close "a body of more than 16777216 bytes\n", end"#);
    let old = head.replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(talk(Network::PERFECT, &[&crlf(&old), b"hello"]), r#"200 close "hello", end"#, "1.0 has no 100");
    let other = "GET / HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 2\n\n";
    assert_eq!(talk(Network::PERFECT, &[&crlf(other), b"hi"]), r#"100, 200 "test""#);
}

#[test]
fn requests_from_one_read_are_answered_in_one_write() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let text = crlf(&[get("/"), get("/json"), get("/nowhere"), get("/bytes/100")].concat().repeat(10));
    let seen = world.client(vec![Step::Send(0, text.clone())]);
    world.run(MS);
    let seen = seen.borrow();
    assert_eq!(seen.came.len(), 1, "one write: {:?}", seen.came);
    assert_eq!(render(&text, &seen).matches("200").count(), 30);
}

/// Large responses need several writes. Reads pause for a client that does not read.
#[test]
fn pauses_reads_from_a_client_that_does_not_read() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let text = crlf(&get("/bytes/16000").repeat(2_000));
    let seen = world.client(vec![Step::Stall(0, 20 * S), Step::Send(0, text.clone())]);
    world.run(19 * S);
    assert_eq!(seen.borrow().bytes.len(), 0);
    let connection = &world.http.connections.slots[0];
    assert!(connection.blocked && connection.paused, "it waits");
    assert!(connection.input.len() < 65_536, "{} bytes wait", connection.input.len());
    assert!(world.largest_out <= 140_000, "{} bytes of responses at once", world.largest_out);
    world.run(25 * S);
    let said = render(&text, &seen.borrow());
    assert_eq!(said.matches("200 16000 bytes").count(), 2_000, "{}", &said[..said.len().min(200)]);
}

#[test]
fn delayed_response_holds_back_later_ones() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let text =
        crlf(&[get("/"), get("/delay?mean=30ms"), get("/plaintext"), get("/delay?mean=10ms"), get("/json")].concat());
    let seen = world.client(vec![Step::Send(0, text.clone())]);
    let other = world.client(vec![Step::Send(0, crlf(&get("/")))]);
    world.run(S);
    let said = r#"200 "test", 200 "test", 200 "Hello, World!", 200 "test", 200 "{\"message\":\"Hello, World!\"}""#;
    assert_eq!(render(&text, &seen.borrow()), said);
    // The requests arrived at 15 us: 10 to connect and 5 to travel. The second delay starts and ends with the first.
    let times: Vec<Nanos> = seen.borrow().came.iter().map(|&(at, _)| at).collect();
    assert_eq!(times[0], 20_000);
    assert!(times[1..].iter().all(|&at| at == 30_020_000), "{times:?}");
    assert_eq!(other.borrow().came[0].0, 20_000, "another connection is not held back");
    let log = world.http.service_ns();
    assert_eq!((log.len(), log.min(), log.max()), (2, Some(30_000_000), Some(30_000_000)));
}

#[test]
fn delays_follow_their_distribution_and_match_the_log() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let text = crlf(&get("/delay?mean=1ms&dist=exponential&seed=3"));
    let seen: Vec<Shared> = (0..50)
        .map(|_| world.client((0..40).map(|round| Step::Send(round * 100 * MS, text.clone())).collect()))
        .collect();
    world.run(10 * S);
    let log = world.http.service_ns();
    assert_eq!(log.len(), 2000);
    let mut latencies = Vec::new();
    for seen in &seen {
        for (round, &(at, _)) in seen.borrow().came.iter().enumerate() {
            latencies.push(at - (10_000 + round as Nanos * 100 * MS) - 10_000);
        }
    }
    // The network's delays are known, so clients measure exactly the times in the log.
    assert_eq!(latencies.iter().sum::<Nanos>() as f64 / 2000.0, log.mean().unwrap());
    assert_eq!(latencies.iter().max().copied(), log.max());
    // The tolerance is 5 standard errors of the mean of an exponential distribution.
    let mean = log.mean().unwrap();
    assert!((mean / 1e6 - 1.0).abs() < 5.0 / 2000f64.sqrt(), "{mean}");
}

#[test]
fn idle_connection_is_closed_without_a_response() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let never = world.client(vec![]);
    let once = world.client(vec![Step::Send(50 * S, crlf(&get("/")))]);
    world.run(200 * S);
    assert_eq!(never.borrow().closed, Some((60 * S + 10_000, false)));
    assert_eq!(never.borrow().bytes, b"");
    let closed = once.borrow().closed.unwrap().0;
    assert!((110 * S..110 * S + MS).contains(&closed), "{closed}");
}

#[test]
fn slow_head_times_out_without_delaying_others() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let head = crlf(&format!("GET / HTTP/1.1\nHost: a\nX: {}\n\n", "x".repeat(100)));
    let drip = || head.iter().enumerate().map(|(second, &byte)| Step::Send(second as Nanos * S, vec![byte])).collect();
    let slow: Vec<Shared> = (0..50).map(|_| world.client(drip())).collect();
    let ticks = 0..300;
    let other = world.client(ticks.map(|tick| Step::Send(tick * 100 * MS, crlf(&get("/")))).collect());
    world.run(40 * S);
    for seen in &slow {
        let seen = seen.borrow();
        assert_eq!(render(&head, &seen), r#"408 close "the request head took longer than 10 s\n", end"#);
        assert!((10 * S..10 * S + MS).contains(&seen.came[0].0), "{:?}", seen.came);
    }
    let other = other.borrow();
    assert_eq!(other.came.len(), 300);
    assert!(other.came.iter().enumerate().all(|(tick, &(at, _))| at == tick as Nanos * 100 * MS + 20_000));
    assert_eq!(world.http.connections.open, 1);
}

/// The limit applies to each head: two heads of 9 s each are both in time.
#[test]
fn each_head_has_its_own_timeout() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let head = crlf(&get("/"));
    let mut steps = Vec::new();
    for round in 0..5 {
        // The first half of each head arrives with the end of the previous head.
        steps.push(Step::Send(round * 9 * S, [if round > 0 { &head[10..] } else { &[] }, &head[..10]].concat()));
    }
    let seen = world.client(steps);
    world.run(44 * S);
    assert_eq!(render(&head.repeat(5), &seen.borrow()), [r#"200 "test""#; 4].join(", "));
    world.run(60 * S);
    let said = render(&head.repeat(5), &seen.borrow());
    assert!(said.contains("408 close"), "{said}");
    assert!((46 * S..46 * S + MS).contains(&seen.borrow().closed.unwrap().0));
}

#[test]
fn slow_body_times_out() {
    let post = |bytes: usize| crlf(&format!("GET /json HTTP/1.1\nHost: a\nContent-Length: {bytes}\n\n"));
    // 100 bytes per second are too slow; 2,000 are fast enough for any length.
    for (rate, is_fine) in [(100, false), (2_000, true)] {
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let mut steps = vec![Step::Send(0, post(40 * rate))];
        steps.extend((1..=40).map(|second| Step::Send(second * S, vec![b'x'; rate])));
        let seen = world.client(steps);
        world.run(60 * S);
        let said = render(&post(0), &seen.borrow());
        if is_fine {
            assert_eq!(said, r#"200 "{\"message\":\"Hello, World!\"}""#);
        } else {
            assert_eq!(said, r#"408 close "the request body took longer than 10 s at 1024 bytes/s\n", end"#);
            // The limit is 10 s plus the additional time for 1,000 bytes.
            let at = seen.borrow().came[0].0;
            assert!((10 * S + 900 * MS..11 * S).contains(&at), "{at}");
        }
    }
    // An echo that has begun can only be cut off.
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let echo = crlf("POST /echo HTTP/1.1\nHost: a\nContent-Length: 100\n\nxyz");
    let seen = world.client(vec![Step::Send(0, echo.clone())]);
    world.run(20 * S);
    assert!(seen.borrow().bytes.ends_with(b"\r\n\r\nxyz"));
    assert!(seen.borrow().closed.is_some_and(|(at, reset)| reset && at < 11 * S), "{:?}", seen.borrow().closed);
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let seen = world.client(vec![Step::Stall(MS, 1000 * S), Step::Send(0, crlf(&get("/bytes/1099511627776")))]);
    world.run(100 * S);
    let (at, reset) = seen.borrow().closed.unwrap();
    assert!(reset && (30 * S..30 * S + 2 * MS).contains(&at), "{at}");
    assert_eq!(world.http.connections.open, 0);
}

/// A client can be as slow as 31 KiB per `send_ns`.
#[test]
fn slow_reader_gets_everything() {
    let mut world = World::new(Network { window_bytes: 4096, ..Network::PERFECT }, &HttpLimits::DEFAULT);
    let mut steps = vec![Step::Send(0, crlf(&get("/chunked/300000")))];
    steps.extend((0..100).map(|second| Step::Stall(second * S, 900 * MS)));
    let seen = world.client(steps);
    world.run(200 * S);
    assert_eq!(render(&crlf(&get("/")), &seen.borrow()), "200 300000 bytes, end");
}

#[test]
fn sends_a_tebibyte_with_bounded_memory() {
    for target in ["/bytes/1099511627776", "/chunked/1099511627776"] {
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let seen = world.client(vec![Step::Send(0, crlf(&get(target))), Step::Reset(MS)]);
        world.run(S);
        let got = seen.borrow().bytes.len();
        assert!(got > 1_000_000, "{got} bytes");
        assert!(world.largest_out <= 140_000, "{}", world.largest_out);
        assert_eq!(world.http.connections.open, 0);
    }
}

#[test]
fn flood_of_garbage_is_bounded() {
    for (name, head, flood, expected) in [
        ("fields without end", "GET / HTTP/1.1\nHost: a\n", "X-Field: yes\n", "431 close"),
        ("a field without end", "GET / HTTP/1.1\nHost: a\nX: ", "xxxxxxxxxx", "431 close"),
        ("a target without end", "GET /", "xxxxxxxxxx", "414 close"),
        ("a method without end", "", "GETGETGETG", "414 close"),
        (
            "chunks without end",
            "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n",
            "a\n0123456789\n",
            "413 close",
        ),
        (
            "a chunk's size without end",
            "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n",
            "0000000000",
            "400 close",
        ),
        (
            "trailers without end",
            "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\n",
            "X-Field: yes\n",
            "431 close",
        ),
        ("zeros", "", "\0\0\0\0\0\0\0\0", "400 close"),
    ] {
        let limits = HttpLimits { body_bytes: 1 << 20, ..HttpLimits::DEFAULT };
        let mut world = World::new(Network::PERFECT, &limits);
        let flood = crlf(flood).repeat(1000);
        let seen = world.client(vec![Step::Send(0, crlf(head)), Step::Flood(100_000, flood)]);
        let other = world.client(vec![Step::Send(100 * MS, crlf(&get("/")))]);
        world.run(5 * S);
        let said = render(&crlf(&get("/")), &seen.borrow());
        assert!(said.starts_with(expected), "{name}: {said}");
        assert!(said.ends_with("reset") || said.ends_with("end"), "{name}: {said}");
        assert_eq!(render(b"", &other.borrow()), r#"200 "test""#, "{name}");
        assert_eq!(world.http.connections.open, 1, "{name}");
    }
}

/// Input after an error is discarded for a while, so that the client receives the response.
#[test]
fn lingering_ends() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let seen = world.client_that(vec![Step::Flood(100_000, vec![0; 10_000])], false);
    world.run(10 * S);
    let seen = seen.borrow();
    assert!(seen.bytes.starts_with(b"HTTP/1.1 400 "), "the response was seen");
    let (closed, reset) = seen.closed.unwrap();
    assert!(reset && (2 * S..2 * S + 2 * MS).contains(&closed), "{closed}");
    assert!(seen.ended.unwrap() < MS, "half of the connection was closed at once");
}

#[test]
fn client_that_ends_its_stream_gets_a_response() {
    for (name, text, expected) in [
        ("nothing asked", String::new(), "end"),
        ("one", get("/"), r#"200 "test", end"#),
        (
            "several, some late or long",
            [get("/delay?mean=5ms"), get("/bytes/100000"), get("/")].concat(),
            r#"200 "test", 200 100000 bytes, 200 "test", end"#,
        ),
        ("half a head", "GET / HT".to_owned(), r#"400 close "connection closed within the request head\n", end"#),
        (
            "one and a half",
            get("/") + "GET / HT",
            r#"200 "test", 400 close "connection closed within the request head\n", end"#,
        ),
        (
            "half a body",
            "POST / HTTP/1.1\nHost: a\nContent-Length: 9\n\nxyz".to_owned(),
            r#"400 close "connection closed within the request body\n", end"#,
        ),
    ] {
        for network in [Network::PERFECT, Network::CHOPPY] {
            let mut world = World::new(network, &HttpLimits::DEFAULT);
            let sent = crlf(&text);
            let seen = world.client(vec![Step::Send(0, sent.clone()), Step::End(0)]);
            world.run(S);
            assert_eq!(render(&sent, &seen.borrow()), expected, "{name}");
            assert_eq!(world.http.connections.open, 0, "{name}");
        }
    }
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let echo = crlf("POST /echo HTTP/1.1\nHost: a\nContent-Length: 9\n\nxyz");
    let seen = world.client(vec![Step::Send(0, echo), Step::End(MS)]);
    world.run(S);
    assert!(seen.borrow().closed.is_some_and(|(_, reset)| reset), "half an echo is incomplete");
}

#[test]
fn connection_over_the_limit_gets_an_error() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    world.connections = 2;
    let all: Vec<Shared> = (0..3).map(|_| world.client(vec![Step::Send(0, crlf(&get("/")))])).collect();
    world.run(MS);
    let said: Vec<String> = all.iter().map(|seen| render(b"", &seen.borrow())).collect();
    let refused = r#"503 close "connection limit reached\n", end"#;
    assert_eq!(said, [r#"200 "test""#, r#"200 "test""#, refused]);
    // Without a first byte, the protocol of the error is HTTP/1.1.
    let silent = world.client(vec![]);
    let ended = world.client_that(vec![Step::End(0)], false);
    world.run(3 * S);
    assert_eq!([silent, ended].map(|seen| render(b"", &seen.borrow())), [refused, refused]);
}

#[test]
fn shutdown_answers_started_requests() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let idle = world.client(vec![]);
    let kept = world.client(vec![Step::Send(0, crlf(&get("/")))]);
    let late = world.client(vec![Step::Send(0, crlf(&[get("/delay?mean=300ms"), get("/")].concat()))]);
    let long = world.client(vec![Step::Stall(15_000, 500 * MS), Step::Send(0, crlf(&get("/bytes/1000000")))]);
    let post = crlf("POST /echo HTTP/1.1\nHost: a\nContent-Length: 6\n\nabc");
    let upload = world.client(vec![Step::Send(0, post.clone()), Step::Send(200 * MS, b"def".to_vec())]);
    let half = world.client_that(vec![Step::Send(0, b"GET / HTTP".to_vec())], false);
    // This request arrives when the server shuts down.
    let just = world.client(vec![Step::Send(100 * MS - 12_000, crlf(&get("/health")))]);
    world.run(100 * MS);
    world.end(5 * S);
    assert!(world.http.is_done(), "{} are left", world.http.connections.open);
    assert!(world.driver.now() < 701 * MS, "{}", world.driver.now());
    world.run(S); // Deliver the packets in transit.
    assert_eq!(render(b"", &half.borrow()), r#"503 close "the server is shutting down\n", end"#);
    assert_eq!(render(b"", &idle.borrow()), "end");
    assert!((200 * MS..201 * MS).contains(&idle.borrow().ended.unwrap()));
    assert_eq!(render(b"", &kept.borrow()), r#"200 "test", end"#);
    // The response announces the close, and the next request is not executed.
    assert_eq!(render(b"", &late.borrow()), r#"200 close "test", end"#);
    assert_eq!(render(b"", &long.borrow()), "200 1000000 bytes, end");
    assert_eq!(render(&post, &upload.borrow()), r#"200 "abcdef", end"#);
    assert_eq!(render(b"", &just.borrow()), r#"503 close "the server is shutting down\n", end"#);
}

#[test]
fn reused_slot_starts_fresh() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    for round in 0..20u64 {
        let delayed = crlf(&get("/delay?mean=50ms"));
        let gone = world.client(vec![Step::Send(0, delayed), Step::Send(0, b"GET /ha".to_vec()), Step::Reset(10 * MS)]);
        world.run((round * 100 + 20) * MS);
        assert!(gone.borrow().bytes.is_empty());
        let next = world.client(vec![Step::Send(0, crlf(&get("/")))]);
        world.run((round * 100 + 99) * MS);
        assert_eq!(render(b"", &next.borrow()), r#"200 "test""#, "round {round}");
        world.run((round * 100 + 100) * MS);
    }
    assert_eq!(world.http.service_ns().len(), 0, "no client was left");
}

/// A request for the property below, and its response.
fn request() -> impl Strategy<Value = (String, String)> {
    let test = r#"200 "test""#;
    let fixed = move |text: String, expected: &str| Just((text, expected.to_owned()));
    prop_oneof![
        3 => fixed(get("/"), test),
        1 => fixed(get("/plaintext"), r#"200 "Hello, World!""#),
        1 => fixed("GET / HTTP/1.1\nHost: a\nAccept: */*\nUser-Agent: x\n\n".to_owned(), test),
        1 => fixed("HEAD /bytes/123456 HTTP/1.1\nHost: a\n\n".to_owned(), r#"200 """#),
        1 => fixed("DELETE / HTTP/1.1\nHost: a\nContent-Length: 2\n\nhi".to_owned(), NOT_ALLOWED),
        1 => fixed(get("/nowhere"), NOT_FOUND),
        1 => (61..100_000u64).prop_map(|bytes| (get(&format!("/bytes/{bytes}")), format!("200 {bytes} bytes"))),
        1 => (61..30_000u64, 1..3000u32).prop_map(|(bytes, chunk)| {
            (get(&format!("/chunked/{bytes}?chunk={chunk}")), format!("200 {bytes} bytes"))
        }),
        1 => (0..20_000u64).prop_map(move |us| (get(&format!("/delay?mean={us}us")), test.to_owned())),
        1 => "[a-z]{1,60}".prop_map(|body| {
            let head = format!("POST /echo HTTP/1.1\nHost: a\nContent-Length: {}\n\n", body.len());
            (head + &body, format!("200 {body:?}"))
        }),
        1 => ("[a-z]{1,30}", "[a-z]{1,30}").prop_map(|(one, two)| {
            let head = "POST /echo HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n";
            let chunks = format!("{:x}\n{one}\n{:X};x\n{two}\n0\n\n", one.len(), two.len());
            (head.to_owned() + &chunks, format!("200 {:?}", one + &two))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pipelined_requests_are_answered_in_order(
        requests in prop::collection::vec(request(), 1..40),
        seed in any::<u64>(),
        is_choppy in any::<bool>(),
        ends in any::<bool>(),
    ) {
        let (texts, mut expected): (Vec<String>, Vec<String>) = requests.into_iter().unzip();
        let sent = crlf(&texts.concat());
        let network = if is_choppy { Network::CHOPPY } else { Network::PERFECT };
        let mut world = World::seeded(network, &HttpLimits::DEFAULT, seed);
        let mut steps = vec![Step::Send(0, sent.clone())];
        if ends {
            steps.push(Step::End(0));
            expected.push("end".to_owned());
        }
        let seen = world.client(steps);
        world.run(50 * S);
        prop_assert_eq!(render(&sent, &seen.borrow()), expected.join(", "));
        prop_assert!(world.largest_out <= 262_144);
    }

    /// Random bytes cause at most an error response and a close.
    #[test]
    fn noise(pieces in prop::collection::vec(prop_oneof![
        any::<Vec<u8>>(),
        Just(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        Just(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        Just(b"5\r\nhello\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
    ], 1..20), seed in any::<u64>(), end in any::<bool>()) {
        let mut world = World::seeded(Network::CHOPPY, &HttpLimits::DEFAULT, seed);
        let mut steps: Vec<Step> = pieces.into_iter().map(|piece| Step::Send(0, piece)).collect();
        if end {
            steps.push(Step::End(0));
        }
        let seen = world.client(steps);
        let other = world.client(vec![Step::Send(MS, crlf(&get("/")))]);
        world.run(100 * S);
        prop_assert!(seen.borrow().closed.is_some());
        prop_assert_eq!(render(b"", &other.borrow()), r#"200 "test", end"#);
        prop_assert_eq!(world.http.connections.open, 0);
    }
}
