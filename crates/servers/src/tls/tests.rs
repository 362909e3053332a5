//! TLS on the simulated network, with rustls as the client.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use net::Config;
use net::sim::{Actions, Network, Peer, Sim};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;
use crate::event_loops;
use crate::{Http, HttpLimits};

const S: Nanos = 1_000_000_000;

#[derive(Debug, Default, PartialEq)]
struct Seen {
    bytes: Vec<u8>,
    protocol: Option<Vec<u8>>,
    /// Whether the server ended its stream with a notification, which shows that nothing was cut off.
    notified: bool,
    /// Whether the connection was reset, once it is closed.
    reset: Option<bool>,
}

/// A client that sends `request` once the handshake is complete.
struct Client {
    connection: ClientConnection,
    request: Option<Vec<u8>>,
    seen: Rc<RefCell<Seen>>,
}

impl Client {
    fn send(&mut self, to: &mut Actions) {
        if !self.connection.is_handshaking()
            && let Some(request) = self.request.take()
        {
            self.connection.writer().write_all(&request).unwrap();
        }
        let mut wire = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut wire).unwrap();
        }
        if !wire.is_empty() {
            to.send(0, wire);
        }
    }
}

impl Peer for Client {
    fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
        self.send(to);
    }

    fn on_data(&mut self, mut bytes: &[u8], _: Nanos, to: &mut Actions) {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes).unwrap();
            let state = self.connection.process_new_packets().unwrap();
            let mut seen = self.seen.borrow_mut();
            let mut reader = self.connection.reader();
            while let Ok(plain) = reader.fill_buf()
                && !plain.is_empty()
            {
                seen.bytes.extend_from_slice(plain);
                let count = plain.len();
                reader.consume(count);
            }
            seen.protocol = self.connection.alpn_protocol().map(<[u8]>::to_vec);
            seen.notified = state.peer_has_closed();
        }
        self.send(to);
    }

    fn on_closed(&mut self, reset: bool, _: Nanos) {
        self.seen.borrow_mut().reset = Some(reset);
    }
}

/// A client that does not speak TLS.
struct Plain(Rc<RefCell<Seen>>);

impl Peer for Plain {
    fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
        to.send(0, *b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }

    fn on_data(&mut self, bytes: &[u8], _: Nanos, _: &mut Actions) {
        self.0.borrow_mut().bytes.extend_from_slice(bytes);
    }

    fn on_closed(&mut self, reset: bool, _: Nanos) {
        self.0.borrow_mut().reset = Some(reset);
    }
}

struct World {
    driver: Sim,
    server: Tls<Http>,
    address: SocketAddr,
    client: Arc<ClientConfig>,
}

impl World {
    fn new(network: Network, protocol: &[u8]) -> Self {
        let provider = || Arc::new(rustls::crypto::ring::default_provider());
        let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
        let mut config = config.unwrap();
        config.alpn_protocols = http_protocols();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![protocol.to_vec()];
        let limits =
            Config { connections: 8, receive_bytes: 16_384, send_bytes_max: 262_144, pause_reads_above_bytes: 65_536 };
        let mut driver = Sim::new(7, &limits, network);
        let (_, address) = driver.listen(&"10.0.0.1:443".parse::<SocketAddr>().unwrap().into(), 64).unwrap();
        let server = Tls::new(Http::new(&HttpLimits::DEFAULT, 1, 0, || 784_111_777), Arc::new(config));
        Self { driver, server, address: address.inet().unwrap(), client: Arc::new(client) }
    }

    fn request(&mut self, request: &[u8]) -> Rc<RefCell<Seen>> {
        let seen = Rc::<RefCell<Seen>>::default();
        let connection = ClientConnection::new(Arc::clone(&self.client), ServerName::try_from("a").unwrap()).unwrap();
        let client = Client { connection, request: Some(request.to_vec()), seen: Rc::clone(&seen) };
        self.driver.client(self.address, 0, client);
        seen
    }

    fn run(&mut self, until: Nanos) {
        let mut wake = None;
        while self.driver.now() < until {
            let next = wake.map_or(until, |wake: Nanos| wake.min(until));
            let accept = |driver: &mut Sim, server: &mut Tls<Http>, conn| server.accepted(driver, conn);
            let turned = event_loops::turn(&mut self.driver, &mut self.server, Some(next), accept, || {}, |_, _| {});
            wake = turned.unwrap();
        }
    }
}

#[test]
fn http1_over_tls_is_served_in_any_pieces() {
    let tiny = Network { segment_bytes: 1..=1, ..Network::PERFECT };
    for network in [Network::PERFECT, Network::CHOPPY, tiny] {
        let mut world = World::new(network, b"http/1.1");
        let close = world.request(b"GET /bytes/200000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let kept = world.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        world.run(5 * S);
        let (close, kept) = (close.take(), kept.take());
        assert!(
            close.bytes.starts_with(b"HTTP/1.1 200 OK\r\n") && close.bytes.len() > 200_000,
            "{}",
            close.bytes.len()
        );
        assert_eq!(
            (close.protocol.as_deref(), close.notified, close.reset),
            (Some(&b"http/1.1"[..]), true, Some(false))
        );
        assert!(kept.bytes.ends_with(b"\r\n\r\ntest") && !kept.notified && kept.reset.is_none(), "{kept:?}");
    }
}

#[test]
fn http2_is_chosen_by_its_preface() {
    let mut world = World::new(Network::CHOPPY, b"h2");
    let seen = world.request(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    world.run(S);
    let seen = seen.take();
    assert_eq!((seen.protocol.as_deref(), seen.bytes.get(3)), (Some(&b"h2"[..]), Some(&4)), "a SETTINGS frame");
}

#[test]
fn clients_without_tls_get_an_alert() {
    let mut world = World::new(Network::PERFECT, b"h2");
    let seen = Rc::<RefCell<Seen>>::default();
    world.driver.client(world.address, 0, Plain(Rc::clone(&seen)));
    world.run(S);
    let seen = seen.take();
    assert_eq!((seen.bytes.first(), seen.reset), (Some(&21), Some(false)));
}
