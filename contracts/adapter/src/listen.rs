//! Accepts connections at listeners, identifies their callers, and passes them to their protocol.

pub(crate) mod admin;
pub(crate) mod listener_for_endpoint;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::counted_stream::Stream;
use crate::dial_allowed_endpoint::GREETING;
use crate::endpoint::Scheme;
use crate::hop_and_caller::{Caller, ListenerKind};
use crate::http;
use crate::metrics::count;
use crate::shared_state::App;

/// Starts accepting connections at a bound listener and returns the listener's address. Fails if binding failed.
pub(crate) fn open(app: &Arc<App>, bound: io::Result<TcpListener>, purpose: ListenerKind) -> io::Result<SocketAddr> {
    let listener = bound?;
    let address = listener.local_addr()?;
    tokio::spawn(accept(app.clone(), listener, purpose));
    Ok(address)
}

/// Accepts connections. Boxed, because an admin request may open another listener.
fn accept(app: Arc<App>, listener: TcpListener, purpose: ListenerKind) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        loop {
            let taken = tokio::select! {
                taken = listener.accept() => taken,
                () = app.ending() => return,
            };
            let Ok((stream, _)) = taken else {
                // Accepting usually fails because no descriptors are left, so only waiting helps.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            // Without a free slot, further connections wait in the system's bounded queue.
            if app.slots.available_permits() == 0 {
                count(&app.watch.metrics.connections_over);
            }
            let slot = tokio::select! {
                slot = app.slots.clone().acquire_owned() => slot,
                () = app.ending() => return,
            };
            let (app, purpose) = (app.clone(), purpose.clone());
            tokio::spawn(async move {
                let _slot = slot;
                let metrics = app.watch.metrics.clone();
                count(&metrics.connections);
                count(&metrics.connections_now);
                // Both sides see that a failed connection ends, and the counters include it, so its error is ignored.
                let _ = serve(&app, stream, purpose).await;
                metrics.connections_now.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            });
        }
    })
}

async fn serve(app: &Arc<App>, stream: TcpStream, purpose: ListenerKind) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match purpose {
        ListenerKind::Service(mut hop) => {
            let from_adapters = hop.accepts_adapters();
            let stream = match &app.dial.tls.listen {
                _ if from_adapters => {
                    let (stream, caller) = peer(app, stream).await?;
                    hop.caller = caller;
                    stream
                }
                Some(acceptor) if hop.scheme == Scheme::Https => {
                    Stream::new(app.shaken(acceptor.accept(stream)).await?)
                }
                _ => Stream::new(stream),
            };
            if hop.scheme != Scheme::Tcp {
                return http::serve(app, stream, ListenerKind::Service(hop)).await;
            }
            let (stream, greeted) = if from_adapters { greeted(app, stream).await? } else { (stream, false) };
            crate::thrift::serve(app, stream, hop, greeted).await
        }
        ListenerKind::Proxy | ListenerKind::Admin => http::serve(app, Stream::new(stream), purpose).await,
    }
}

/// Accepts a connection from an adapter, and identifies the adapter if adapters have certificates.
async fn peer(app: &App, stream: TcpStream) -> io::Result<(Stream, Caller)> {
    let Some(acceptor) = &app.dial.tls.peers else {
        let from = stream.peer_addr()?;
        return Ok((Stream::new(stream), Caller::Unproved(from)));
    };
    let tls = app.shaken(acceptor.accept(stream)).await.ok();
    let identity = tls.as_ref().and_then(|tls| crate::tls::identity(tls.get_ref().1.peer_certificates()?.first()?));
    if let (Some(tls), Some(identity)) = (tls, identity) {
        return Ok((Stream::new(tls), Caller::Certified(identity)));
    }
    count(&app.watch.metrics.metadata_refused);
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Whether a connection begins with the adapters' greeting. Replies with the greeting if it does.
async fn greeted(app: &App, mut stream: Stream) -> io::Result<(Stream, bool)> {
    let greets = stream.begins_with(GREETING, app.limits.idle).await?;
    if greets {
        let mut greeting = [0; GREETING.len()];
        stream.read_exact(&mut greeting).await?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, GREETING).await?;
    }
    Ok((stream, greets))
}
