//! HTTP through tunnels of a simulated proxy.

use net::Nanos;
use net::sim::{Actions, Answer, Network, Peer};
use study::spec::{Connection, LoadSpec, Target};

use super::http::{GOOD, http, measure_on, server};
use super::{MS, errors, http2, outcome_of};
use crate::coordinator::Outcome;
use crate::protocol::{Http, Values};
use crate::recorder::Fault;

const CONNECT: &[u8] = b"CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n";

/// A proxy whose tunnels lead to `server`. The greeting arrives with the response to CONNECT.
struct Proxy {
    server: Box<dyn Peer>,
    is_open: bool,
    greeting: Vec<u8>,
}

fn proxy(server: Answer, greeting: Vec<u8>) -> Answer {
    let Answer::Accept(server) = server else { panic!("a server accepts") };
    Proxy { server, is_open: false, greeting }.into()
}

impl Peer for Proxy {
    fn on_data(&mut self, bytes: &[u8], now: Nanos, to: &mut Actions) {
        if std::mem::replace(&mut self.is_open, true) {
            return self.server.on_data(bytes, now, to);
        }
        assert_eq!(bytes, CONNECT, "{}", bytes.escape_ascii());
        to.send(MS, *b"HTTP/1.1 200 Connection established\r\nX: ");
        to.send(2 * MS, [b"y\r\n\r\n", self.greeting.as_slice()].concat());
    }
}

fn through_proxy(mut spec: LoadSpec) -> LoadSpec {
    let Target::Http { tunnel_to, .. } = &mut spec.target else { unreachable!() };
    *tunnel_to = Some("b:443".into());
    spec
}

#[test]
fn requests_follow_the_tunnel() {
    for connection in [Connection::KeepAlive, Connection::PerRequest] {
        let spec = through_proxy(LoadSpec { connection, ..http() });
        let measurement = measure_on(Network::PERFECT, &spec, |_| {
            proxy(server(|_, head, to| to.send(MS, if head.starts_with("GET / ") { GOOD } else { b"?" })), Vec::new())
        });
        assert_eq!(errors(&measurement), []);
        assert!(measurement.requests > 1000, "{}", measurement.requests);
    }
}

#[test]
fn http2_follows_the_tunnel() {
    for greeting in [Vec::new(), http2::settings()] {
        let server = || http2::server(|request, to| to.send(MS, http2::good(request.stream)));
        let serve = move |_| proxy(server(), greeting.clone());
        let measurement = http2::measure(&through_proxy(http2::http2()), serve);
        assert_eq!(errors(&measurement), []);
        assert!(measurement.requests > 1000, "{}", measurement.requests);
    }
}

#[test]
fn refused_tunnels_have_their_own_error() {
    const NO: &str = "the proxy opened no tunnel: ";
    for (response, ends, expected) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", false, "status 403"),
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\nlog in", true, "status 407"),
        ("HTTP/1.1 2", true, "it closed the connection"),
        (
            "SSH-2.0-x\r\n",
            false,
            "the response does not start with `HTTP/`: another protocol, or a body longer than announced",
        ),
    ] {
        let spec = through_proxy(http());
        let Target::Http { requests, expect, .. } = &spec.target else { unreachable!() };
        let protocol = Http::new(requests, expect, spec.connection, Values::new("", 1)).unwrap();
        let refuse = move |_| {
            server(move |_, _, to| {
                to.send(0, response.as_bytes());
                if ends {
                    to.end_of_stream(0);
                }
            })
        };
        match outcome_of(&spec, protocol, Network::PERFECT, refuse) {
            Err(Outcome::Unreachable(Some((Fault::Proxy, text)))) => assert_eq!(text, format!("{NO}{expected}")),
            other => panic!("{response}: {other:?}"),
        }
    }
}
