//! Nodes and intruders on loopback. All waits are bounded, and no assertion depends on timing.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use super::certificate::{NAME, fingerprint, trust};
use super::listener::HALF_OPEN_MAX;
use super::{Event, JoinError, Listener, REFUSALS_TOLD, Why, join};
use crate::json_lines::{Channel, Lines, Writer};
use crate::process_start_and_stop::wait_readable;

const LONG: Duration = Duration::from_secs(60);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));

#[derive(Clone)]
struct Known {
    address: SocketAddr,
    fingerprint: String,
    ticket: String,
}

impl Known {
    fn join(&self, rank: u32) -> Result<Channel, JoinError> {
        join(self.address, &self.fingerprint, rank, &self.ticket, LONG)
    }

    fn encrypted(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let tls = ClientConnection::new(trust(&self.fingerprint).unwrap(), ServerName::try_from(NAME).unwrap());
        let mut stream = StreamOwned::new(tls.unwrap(), TcpStream::connect(self.address).unwrap());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        stream
    }
}

/// Events of a listener, which a thread serves until this value is dropped.
struct Joining {
    events: mpsc::Receiver<Event>,
    _stop: mpsc::Sender<()>,
}

impl Joining {
    fn next(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }
}

fn lab(expected: &[IpAddr]) -> (Known, Joining) {
    let deadline = crate::lab_clocks::now() + LONG;
    let mut listener = Listener::bind((HERE, 0).into(), expected, deadline).unwrap();
    let known =
        Known { address: listener.address, fingerprint: listener.fingerprint.clone(), ticket: listener.ticket.clone() };
    let (sender, events) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            let Some(event) = listener.next(Duration::from_millis(10)) else { continue };
            let is_over = matches!(event, Event::Over(_));
            if sender.send(event).is_err() || is_over {
                break;
            }
        }
    });
    (known, Joining { events, _stop: stop })
}

fn next(joining: &Joining) -> Event {
    joining.next(LONG).expect("something happens")
}

fn joined(joining: &Joining) -> (u32, Channel) {
    match next(joining) {
        Event::Joined(rank, channel) => (rank, channel),
        other => panic!("{other:?}"),
    }
}

fn refused(joining: &Joining) -> Why {
    match next(joining) {
        Event::Refused(_, why) => why,
        other => panic!("{other:?}"),
    }
}

fn over(joining: &Joining) -> u64 {
    match next(joining) {
        Event::Over(refused) => refused,
        other => panic!("{other:?}"),
    }
}

fn pair() -> (Channel, Channel) {
    let (known, joining) = lab(&[HERE]);
    let node = known.join(0).unwrap();
    (joined(&joining).1, node)
}

fn line(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b' ' + (state >> 40) as u8 % 90
        })
        .collect()
}

/// Waits for lines; `None` at the end of the connection.
fn read_lines(input: &mut Lines) -> Option<Vec<Vec<u8>>> {
    loop {
        assert_eq!(wait_readable(&[input.handle()], LONG), [true]);
        let lines = input.read().unwrap()?;
        if !lines.is_empty() {
            return Some(lines);
        }
    }
}

fn is_at_its_end(mut input: Lines) -> bool {
    read_lines(&mut input).is_none()
}

fn fails(output: &Writer) -> bool {
    while output.line(&[b'x'; 4096]).is_ok() {}
    true
}

#[test]
fn passes_long_lines_in_both_directions() {
    let (lab, node) = pair();
    std::thread::scope(|scope| {
        for (side, mine, theirs) in [(lab, 1, 2), (node, 2, 1)] {
            let Channel { mut input, output } = side;
            scope.spawn(move || {
                for length in [1, 10_000_000, 7] {
                    output.line(&line(length, mine)).unwrap();
                }
                output
            });
            scope.spawn(move || {
                let mut lines = std::iter::from_fn(|| read_lines(&mut input)).flatten();
                for length in [1, 10_000_000, 7] {
                    assert!(
                        lines.next().unwrap().strip_suffix(b"\n").unwrap() == line(length, theirs),
                        "{length} bytes"
                    );
                }
            });
        }
    });
}

#[test]
fn dropping_one_side_ends_the_other() {
    for nodes_end in [false, true] {
        let (lab, node) = pair();
        let (gone, mut left) = if nodes_end { (node, lab) } else { (lab, node) };
        gone.output.line(b"bye").unwrap();
        drop(gone);
        assert_eq!(read_lines(&mut left.input).unwrap(), [b"bye\n"], "the last line written arrives");
        assert!(is_at_its_end(left.input) && fails(&left.output));
    }
}

#[test]
fn unread_data_does_not_keep_a_side_alive() {
    let (lab, mut node) = pair();
    let writer = std::thread::spawn(move || fails(&lab.output));
    read_lines(&mut node.input).unwrap();
    drop(node);
    assert!(writer.join().unwrap() && is_at_its_end(lab.input));
}

#[test]
fn lost_connection_ends_both_sides() {
    let (known, joining) = lab(&[HERE]);
    let relay = TcpListener::bind((HERE, 0)).unwrap();
    let through = Known { address: relay.local_addr().unwrap(), ..known.clone() };
    let node = std::thread::spawn(move || through.join(0).unwrap());
    let ends = [relay.accept().unwrap().0, TcpStream::connect(known.address).unwrap()];
    for (from, to) in [(0, 1), (1, 0)] {
        let (mut from, mut to) = (ends[from].try_clone().unwrap(), ends[to].try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    }
    let (lab, node) = (joined(&joining).1, node.join().unwrap());
    ends.iter().for_each(|end| end.shutdown(std::net::Shutdown::Both).unwrap());
    for side in [lab, node] {
        assert!(is_at_its_end(side.input) && fails(&side.output));
    }
}

/// Returns the lab's reason for refusing an intruder, and checks that a node can then join.
fn stranger<T>(knocks: impl FnOnce(&Known) -> T) -> Why {
    let (known, joining) = lab(&[HERE]);
    let held = knocks(&known);
    let why = refused(&joining);
    drop(held);
    let _node = known.join(0).unwrap();
    assert_eq!(joined(&joining).0, 0);
    assert_eq!(over(&joining), 1);
    // A process that another test is starting holds a copy of the socket until exec, so the port may close late.
    let deadline = crate::lab_clocks::now() + LONG;
    while TcpStream::connect(known.address).is_ok() {
        assert!(crate::lab_clocks::now() < deadline, "the port is closed");
        std::thread::sleep(Duration::from_millis(1));
    }
    why
}

fn says(known: &Known, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(known.address).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

#[test]
fn refuses_connections_without_tls() {
    for bytes in [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice(), &[0xff; 70_000], &[0; 5], b"{}\n"] {
        let why = stranger(|known| {
            let mut stream = TcpStream::connect(known.address).unwrap();
            let _ = stream.write_all(bytes);
            stream
        });
        assert!(matches!(why, Why::Tls(_)), "{why:?}");
    }
    assert_eq!(stranger(|known| drop(says(known, b""))), Why::Ended);
}

#[test]
fn refuses_older_tls_versions() {
    let why = stranger(|known| {
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let mut tls = ClientConnection::new(Arc::new(config), ServerName::try_from(NAME).unwrap()).unwrap();
        let mut stream = TcpStream::connect(known.address).unwrap();
        let told = std::iter::from_fn(|| Some(tls.complete_io(&mut stream))).find_map(Result::err).unwrap();
        assert!(told.to_string().contains("ProtocolVersion"), "{told}");
    });
    assert!(matches!(why, Why::Tls(_)), "{why:?}");
}

#[test]
fn node_joins_during_a_flood() {
    let (known, joining) = lab(&[HERE]);
    let flood = (0..300).map(|_| TcpStream::connect(known.address).unwrap()).collect::<Vec<_>>();
    let _node = known.join(0).unwrap();
    for _ in 0..REFUSALS_TOLD {
        assert_eq!(refused(&joining), Why::Slow);
    }
    assert_eq!(joined(&joining).0, 0);
    let refused = over(&joining);
    assert!(refused as usize >= flood.len() - HALF_OPEN_MAX, "{refused} refused");
}

#[test]
fn refuses_connections_that_stall() {
    let hello = |known: &Known| {
        let tls = ClientConnection::new(trust(&known.fingerprint).unwrap(), ServerName::try_from(NAME).unwrap());
        let mut bytes = Vec::new();
        tls.unwrap().write_tls(&mut bytes).unwrap();
        bytes
    };
    let writes = |bytes: &'static [u8]| {
        move |known: &Known| {
            let mut stream = known.encrypted();
            stream.write_all(bytes).unwrap();
            stream
        }
    };
    // The cases run in parallel, because each one waits for the timeout.
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(stranger(|known| says(known, b"")), Why::Slow));
        scope.spawn(|| assert_eq!(stranger(|known| says(known, &hello(known)[..50])), Why::Slow));
        scope.spawn(|| assert_eq!(stranger(|known| says(known, &hello(known))), Why::Slow, "it does not finish"));
        scope.spawn(|| assert_eq!(stranger(Known::encrypted), Why::Slow, "it sends nothing"));
        scope.spawn(|| assert_eq!(stranger(writes(b"{\"rank\":")), Why::Slow, "it does not finish its line"));
    });
    assert_eq!(stranger(writes(&[b'x'; 1024])), Why::Line);
    assert_eq!(stranger(writes(b"{\"rank\":0,\"ticket\":\"\",\"more\":1}\n")), Why::Line);
    assert_eq!(stranger(writes(b"{\"hello\":{}}\n")), Why::Line);
    assert_eq!(stranger(writes(b"{\"rank\":-1,\"ticket\":\"\"}\n")), Why::Line);
}

fn misled(change: impl FnOnce(&mut Known) -> u32) -> (String, Why) {
    let mut told = None;
    let why = stranger(|known| {
        let mut known = known.clone();
        let rank = change(&mut known);
        told = Some(known.join(rank).unwrap_err().to_string());
    });
    (told.unwrap(), why)
}

#[test]
fn refuses_wrong_tickets_and_ranks() {
    let (told, why) = misled(|known| {
        known.ticket = "0".repeat(64);
        0
    });
    assert!(told.ends_with("refused this node: wrong ticket"), "{told}");
    assert_eq!(why, Why::Ticket);
    let (told, why) = misled(|known| {
        known.ticket.truncate(63);
        9
    });
    assert!(
        told.ends_with("wrong ticket") && why == Why::Ticket,
        "unauthenticated peers do not learn the ranks: {told}"
    );
    let (told, why) = misled(|_| 1);
    assert!(told.ends_with("refused this node: no rank 1"), "{told}");
    assert_eq!(why, Why::Rank(1));
}

#[test]
fn a_rank_joins_once() {
    let (known, joining) = lab(&[HERE, HERE]);
    let mut first = known.join(0).unwrap();
    let (_, lab) = joined(&joining);
    for _ in 0..REFUSALS_TOLD + 2 {
        let told = known.join(0).unwrap_err().to_string();
        assert!(told.ends_with("refused this node: rank 0 has joined already"), "{told}");
        assert_eq!(refused(&joining), Why::Twice(0), "an intruder is always reported");
    }
    lab.output.line(b"!").unwrap();
    assert_eq!(read_lines(&mut first.input).unwrap(), [b"!\n"]);
    let _second = known.join(1).unwrap();
    assert_eq!(joined(&joining).0, 1);
    assert_eq!(over(&joining), REFUSALS_TOLD as u64 + 2);
    assert!(joining.next(LONG).is_none());
}

#[test]
fn node_joins_only_from_its_own_address() {
    let (known, joining) = lab(&[HERE, ELSEWHERE]);
    let told = known.join(1).unwrap_err().to_string();
    assert!(told.ends_with("no such node is expected from this address"), "{told}");
    assert_eq!(refused(&joining), Why::Address);
    // The lab closes connections from unexpected addresses before the handshake.
    let (known, joining) = lab(&[ELSEWHERE]);
    let late = join(known.address, &known.fingerprint, 0, &known.ticket, Duration::from_millis(300)).unwrap_err();
    assert!(late.to_string().contains(" within 300ms: "), "{late}");
    assert_eq!(refused(&joining), Why::Address);
}

#[test]
fn node_trusts_only_the_certificate_of_its_run() {
    let (other, _other) = lab(&[HERE]);
    let (told, why) = misled(|known| {
        known.fingerprint = other.fingerprint.clone();
        0
    });
    assert!(told.contains("does not match this run's"), "{told}");
    assert!(matches!(why, Why::Tls(_)), "{why:?}");
    for text in ["", "12", &"g".repeat(64), &"é".repeat(32)] {
        let error = join(other.address, text, 0, &other.ticket, LONG).unwrap_err();
        assert!(error.to_string().contains("is not a fingerprint"), "{error}");
    }
    let capital = Known { fingerprint: other.fingerprint.to_uppercase(), ..other };
    assert!(capital.join(0).is_ok());
}

/// An intruder that has seen the public certificate but uses its own key.
#[derive(Debug)]
struct Impostor(Arc<CertifiedKey>);

impl ResolvesServerCert for Impostor {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[test]
fn node_keeps_the_ticket_from_an_impostor() {
    let [real, own] = [0, 1].map(|_| rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let shown = Impostor(Arc::new(CertifiedKey::new(vec![real.cert.der().clone()], key)));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown));
    let socket = TcpListener::bind((HERE, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let impostor = std::thread::spawn(move || {
        let (stream, _) = socket.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        heard
    });
    let error = join(address, &fingerprint(real.cert.der()), 0, "secret", LONG).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot make a TLS connection") && error.to_string().contains("BadSignature"),
        "{error}"
    );
    assert_eq!(impostor.join().unwrap(), b"");
}

#[test]
fn node_rejects_a_server_without_tls() {
    let socket = TcpListener::bind((HERE, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = socket.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
        stream
    });
    let error = join(address, &"0".repeat(64), 0, "secret", LONG).unwrap_err();
    assert!(error.to_string().starts_with("cannot make a TLS connection"), "{error}");
    drop(server);
}

#[test]
fn node_retries_until_the_timeout() {
    let free = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap();
    let error = join(free, &"0".repeat(64), 0, "secret", Duration::from_millis(250)).unwrap_err();
    assert!(error.to_string().contains(" within 250ms: "), "{error}");
}

#[test]
fn port_is_closed_after_the_window() {
    let deadline = crate::lab_clocks::now() + Duration::from_millis(50);
    let mut listener = Listener::bind((HERE, 0).into(), &[HERE, HERE], deadline).unwrap();
    let known = listener.address;
    assert!(matches!(listener.next(LONG), Some(Event::Over(0))));
    drop(listener);
    assert!(TcpStream::connect(known).is_err());
}

#[test]
fn dropping_the_lab_closes_the_port() {
    let (known, joining) = lab(&[HERE]);
    drop(joining);
    while TcpStream::connect(known.address).is_ok() {}
}

#[test]
fn reports_first_refusals_and_counts_the_rest() {
    let (known, joining) = lab(&[HERE]);
    for _ in 0..20 {
        let told = Known { ticket: String::new(), ..known.clone() }.join(0).unwrap_err();
        assert!(told.to_string().contains("refused this node: wrong ticket"), "{told}");
    }
    let _node = known.join(0).unwrap();
    (0..REFUSALS_TOLD).for_each(|_| assert_eq!(refused(&joining), Why::Ticket));
    assert_eq!(joined(&joining).0, 0);
    assert_eq!(over(&joining), 20);
}
