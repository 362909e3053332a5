//! Keeps idle HTTP connections to services and other adapters, and opens and greets new ones.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{HOST, HeaderName};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;

use crate::body::Body;
use crate::counted_stream::Stream;
use crate::hop_and_caller::Whom;

/// Maximum number of idle connections per server. Further idle connections are closed.
const WAITING_MAX: usize = 64;
/// Number of servers above which servers without idle connections are removed.
const SERVERS_MAX: usize = 256;

/// The field that carries metadata between adapters. Its name is short, since every call has the field.
pub(crate) const META: HeaderName = HeaderName::from_static("whip");
/// Value of [`META`] in the first request between adapters (`OPTIONS *`) and its response. Metadata never equals it.
pub(crate) const GREETING: &str = "whip-1";

/// Value of [`META`] in a response that an adapter made instead of its service. Metadata never has this value.
pub(crate) const MADE_HERE: &str = "whip-made-here";

pub(crate) struct Conn {
    pub(crate) authority: String,
    pub(crate) whom: Whom,
    pub(crate) sender: SendRequest<Body>,
    /// Whether the connection has been used before, so that the server may have closed it.
    pub(crate) is_used: bool,
    since: Instant,
}

pub(crate) struct Pool {
    waiting: Mutex<HashMap<(Whom, String), Vec<Conn>>>,
    idle: Duration,
}

impl Pool {
    pub(crate) fn new(idle: Duration) -> Self {
        Self { waiting: Mutex::default(), idle }
    }

    /// Takes the most recently used idle connection, the least likely to have been closed. `None` if none is idle.
    pub(crate) fn take(&self, authority: &str, whom: Whom) -> Option<Conn> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let of = waiting.get_mut(&(whom, authority.to_owned()))?;
        std::iter::from_fn(|| of.pop()).find(|conn| self.is_usable(conn))
    }

    fn is_usable(&self, conn: &Conn) -> bool {
        conn.sender.is_ready() && conn.since.elapsed() < self.idle
    }

    pub(crate) fn put(&self, conn: Conn) {
        if !conn.sender.is_ready() {
            return;
        }
        let conn = Conn { is_used: true, since: crate::clock::now(), ..conn };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() > SERVERS_MAX {
            waiting.retain(|_, of| {
                of.retain(|conn| self.is_usable(conn));
                !of.is_empty()
            });
        }
        let of = waiting.entry((conn.whom, conn.authority.clone())).or_default();
        of.retain(|conn| self.is_usable(conn));
        if of.len() < WAITING_MAX {
            of.push(conn);
        }
    }
}

impl Conn {
    /// Begins HTTP on a new connection. Greets the peer if it must be an adapter.
    pub(crate) async fn new(stream: Stream, authority: &str, whom: Whom, head_bytes: usize) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.preserve_header_case(true).max_buf_size(head_bytes).writev(false);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            // An error here also fails the request, which reports it.
            let _ = connection.with_upgrades().await;
        });
        if whom == Whom::Peer {
            greet(&mut sender, authority).await?;
        }
        Ok(Self { authority: authority.to_owned(), whom, sender, is_used: false, since: crate::clock::now() })
    }
}

/// Checks that the peer is an adapter that accepts this one. Called before any request that cannot be repeated.
async fn greet(to: &mut SendRequest<Body>, authority: &str) -> io::Result<()> {
    let request = Request::builder().method(Method::OPTIONS).uri("*").header(HOST, authority).header(META, GREETING);
    let request = request.body(Body::default()).map_err(io::Error::other)?;
    let answer = to.send_request(request).await.map_err(io::Error::other)?;
    let is_adapter = answer.headers().get(META).is_some_and(|meta| meta == GREETING);
    drop(answer);
    to.ready().await.map_err(io::Error::other)?;
    if is_adapter {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("the server at `{authority}` is not an adapter")))
}
