//! Connecting to services and to other adapters: who may be dialled, how long it may take, how adapters greet each other.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::endpoint::{Endpoint, Pattern};
use crate::metrics::{Metrics, count};
use crate::stream::{OwnSocket, OwnSockets, Stream};
use crate::tls::Tls;

/// What an adapter says first to another one that carries Thrift: no Thrift message begins so, as a frame it would be too long.
/// The last byte is the version of what follows.
pub(crate) const GREETING: &[u8; 5] = b"whip\x01";

/// Who may be dialled, and how.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) tls: Tls,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connect: Duration,
    /// Authorities that the configuration names.
    pub(crate) configured: Vec<String>,
    pub(crate) allow: Vec<Pattern>,
    /// Where the adapter answers about itself, which its own proxy must not reach.
    pub(crate) admin: OnceLock<SocketAddr>,
    /// Open connections to other adapters, which may be this one.
    pub(crate) own: OwnSockets,
}

/// Whom a connection is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whom {
    /// A service, plainly.
    Plain,
    /// A service, over TLS.
    Tls,
    /// Another adapter, over TLS where that is configured.
    Peer,
}

impl Dial {
    /// Whether an endpoint may be dialled: the configuration names it, or a rule allows it. Without this, whoever can send an
    /// endpoint in a message could have the adapter connect to wherever the adapter can.
    pub(crate) fn may(&self, authority: &str) -> bool {
        if self.configured.iter().any(|known| known == authority) {
            return true;
        }
        let endpoint = Endpoint::parse(authority);
        endpoint.is_some_and(|to| self.allow.iter().any(|pattern| pattern.matches(&to.host, to.port)))
    }

    /// Connects, handshake of TLS included.
    ///
    /// # Errors
    /// Why not; endpoints that may not be dialled are `PermissionDenied`.
    pub(crate) async fn connect(&self, authority: &str, whom: Whom) -> io::Result<Stream> {
        if !self.may(authority) {
            count(&self.metrics.dials_refused);
            let text = format!("`{authority}` is not allowed: no rule in `allow` matches");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let connected = timeout(self.connect, self.connect_untimed(authority, whom)).await;
        match connected {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            Ok(Err(error)) => {
                self.metrics.upstream_failed.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
            Err(_) => {
                count(&self.metrics.timeouts);
                Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("`{authority}` did not accept the connection in time"),
                ))
            }
        }
    }

    async fn connect_untimed(&self, authority: &str, whom: Whom) -> io::Result<Stream> {
        let tcp = TcpStream::connect(authority).await?;
        tcp.set_nodelay(true)?;
        let (from, to) = (tcp.local_addr()?, tcp.peer_addr()?);
        if self.admin.get().is_some_and(|admin| is_same_listener(*admin, from, to)) {
            count(&self.metrics.dials_refused);
            let text = format!("`{authority}` is the admin port of this adapter");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if whom == Whom::Peer && self.tls.to_peers.is_none() {
            let own = OwnSocket::new(from, &self.own);
            return Ok(Stream::of_own_socket(tcp, own));
        }
        let connector = match (whom, &self.tls.to_peers) {
            (Whom::Plain, _) | (Whom::Peer, None) => return Ok(Stream::new(tcp)),
            (Whom::Tls, _) => &self.tls.upstream,
            (Whom::Peer, Some(connector)) => connector,
        };
        let host = Endpoint::parse(authority).map(|endpoint| endpoint.host).unwrap_or_default();
        let name = ServerName::try_from(host).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("`{authority}` is not a valid server name"))
        })?;
        Ok(Stream::new(connector.connect(name, tcp).await?))
    }

    /// Whether a connection from this address is one that this adapter made to another adapter.
    pub(crate) fn is_own(&self, from: &SocketAddr) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(from)
    }

    /// Connects to another adapter that carries Thrift, and greets it.
    ///
    /// # Errors
    /// Why not; what answers another greeting is no adapter.
    pub(crate) async fn greet(&self, peer: &str) -> io::Result<Stream> {
        let mut stream = self.connect(peer, Whom::Peer).await?;
        let greeted = timeout(self.connect, async {
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

/// Whether a connection leads to a listener of this machine at `listener`, by whichever name or address it was made.
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
    fn finds_the_listener_behind_every_address_of_the_machine() {
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
