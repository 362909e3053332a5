//! Connects to endpoints that the configuration allows, over TLS if needed, and greets adapters that carry Thrift.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Config, Consuming, Providing};
use crate::counted_stream::{OwnSocket, Stream};
use crate::endpoint::Endpoint;
use crate::hop_and_caller::Whom;
use crate::shared_state::App;

/// The first bytes between adapters that carry Thrift. No frame length is that large. The last byte is the version.
pub(crate) const GREETING: &[u8; 5] = b"whip\x01";

impl App {
    /// Whether the configuration allows a connection. Without this check, a message could choose any destination.
    pub(crate) fn may_dial(&self, authority: &str) -> bool {
        let Config { providing, consuming, allow, .. } = &self.config;
        let is_offered = |of: &Providing| {
            // If a party calls itself, its adapter connects to itself at one of these addresses.
            let mut adapters = of.adapters_at.iter().chain(&of.adapters);
            of.forward == authority || of.endpoint.authority() == authority || adapters.any(|at| at == authority)
        };
        let is_called = |of: &Consuming| of.endpoint.authority() == authority || of.peer.as_deref() == Some(authority);
        let is_allowed = |to: Endpoint| allow.iter().any(|pattern| pattern.matches(&to.host, to.port));
        providing.iter().any(is_offered)
            || consuming.iter().any(is_called)
            || Endpoint::parse(authority).is_some_and(is_allowed)
    }

    /// Fails with `PermissionDenied`, after counting the attempt, if the configuration forbids a connection.
    pub(crate) fn check_allowed(&self, authority: &str) -> io::Result<()> {
        match self.may_dial(authority) {
            true => Ok(()),
            false => Err(self.dial_refused(format!("`{authority}` is not allowed: no rule in `allow` matches"))),
        }
    }

    /// Connects, over TLS if needed. Fails with `PermissionDenied` if forbidden, or `TimedOut` after `limits.connect`.
    pub(crate) async fn connect(&self, authority: &str, whom: Whom) -> io::Result<Stream> {
        self.check_allowed(authority)?;
        let Ok(connected) = timeout(self.config.limits.connect, self.connect_untimed(authority, whom)).await else {
            self.metrics.timeouts.inc();
            let text = format!("`{authority}` did not accept the connection in time");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        };
        connected.inspect_err(|error| {
            if error.kind() != io::ErrorKind::PermissionDenied {
                self.metrics.upstream_failed.inc();
            }
        })
    }

    fn dial_refused(&self, why: String) -> io::Error {
        self.metrics.dials_refused.inc();
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    }

    async fn connect_untimed(&self, authority: &str, whom: Whom) -> io::Result<Stream> {
        let tcp = TcpStream::connect(authority).await?;
        tcp.set_nodelay(true)?;
        let (from, to) = (tcp.local_addr()?, tcp.peer_addr()?);
        if self.admin.get().is_some_and(|admin| is_same_listener(*admin, from, to)) {
            return Err(self.dial_refused(format!("`{authority}` is the admin port of this adapter")));
        }
        let connector = match (whom, &self.tls.peers) {
            (Whom::Plain, _) => return Ok(Stream::new(tcp)),
            (Whom::Peer, None) => return Ok(Stream::of_own_socket(tcp, OwnSocket::new(from, &self.own_sockets))),
            (Whom::Tls, _) => &self.tls.upstream,
            (Whom::Peer, Some((_, connector))) => connector,
        };
        let host = Endpoint::parse(authority).map(|endpoint| endpoint.host).unwrap_or_default();
        let name = ServerName::try_from(host).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("`{authority}` is not a valid server name"))
        })?;
        Ok(Stream::new(connector.connect(name, tcp).await?))
    }

    /// Connects to an adapter that carries Thrift, and greets it. Fails if the peer does not return the greeting.
    pub(crate) async fn greet(&self, peer: &str) -> io::Result<Stream> {
        let mut stream = self.connect(peer, Whom::Peer).await?;
        let greeted = timeout(self.config.limits.connect, async {
            stream.write_all(GREETING).await?;
            stream.flush().await?;
            let mut answer = [0; GREETING.len()];
            stream.read_exact(&mut answer).await?;
            if answer == *GREETING {
                return Ok(());
            }
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("the server at `{peer}` is not an adapter")))
        });
        greeted.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(stream)
    }
}

/// Whether a connection leads to this listener, by any name or address of the machine.
fn is_same_listener(listener: SocketAddr, from: SocketAddr, to: SocketAddr) -> bool {
    let plain = |address: SocketAddr| address.ip().to_canonical();
    let is_here = plain(to).is_loopback() || plain(from) == plain(to);
    let is_at = |ip: IpAddr| ip.is_unspecified() && is_here || ip == plain(to);
    listener.port() == to.port() && is_at(plain(listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_the_listener_at_every_local_address() {
        let own = |listener: &str, from: &str, to: &str| {
            let ip = |text: &str| text.parse::<SocketAddr>().unwrap();
            is_same_listener(ip(listener), ip(from), ip(to))
        };
        assert!(own("127.0.0.1:9", "127.0.0.1:5", "127.0.0.1:9"));
        assert!(own("0.0.0.0:9", "127.0.0.1:5", "127.0.0.2:9"));
        assert!(own("[::]:9", "10.0.0.1:5", "10.0.0.1:9"));
        assert!(own("127.0.0.1:9", "[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:9"));
        assert!(!own("127.0.0.1:9", "127.0.0.1:5", "127.0.0.1:8"));
        assert!(!own("127.0.0.1:9", "127.0.0.1:5", "127.0.0.2:9"), "another listener may be there");
        assert!(!own("0.0.0.0:9", "10.0.0.1:5", "10.0.0.2:9"));
    }
}
