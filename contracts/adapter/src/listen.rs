//! Accepts connections at listeners, identifies their callers, and passes them to their protocol.

pub(crate) mod admin;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};

use crate::contract_services::Service;
use crate::counted_stream::Stream;
use crate::dial_allowed_endpoint::GREETING;
use crate::endpoint::{Endpoint, Scheme};
use crate::hop_and_caller::{Caller, Hop, ListenerKind};
use crate::http;
use crate::shared_state::App;

/// Binds a listener, starts accepting connections at it, and returns its address.
pub(crate) async fn open(app: &Arc<App>, at: impl ToSocketAddrs, purpose: ListenerKind) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at).await?;
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
                app.metrics.connections_over.inc();
            }
            let slot = tokio::select! {
                slot = app.slots.clone().acquire_owned() => slot,
                () = app.ending() => return,
            };
            let (app, purpose) = (app.clone(), purpose.clone());
            tokio::spawn(async move {
                let _slot = slot;
                let metrics = app.metrics.clone();
                metrics.connections.inc();
                metrics.connections_now.inc();
                // Both sides see that a failed connection ends, and the counters include it, so its error is ignored.
                let _ = serve(&app, stream, purpose).await;
                metrics.connections_now.dec();
            });
        }
    })
}

async fn serve(app: &Arc<App>, stream: TcpStream, purpose: ListenerKind) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match purpose {
        ListenerKind::Service(mut hop) => {
            let from_adapters = hop.accepts_adapters();
            let mut stream = match &app.tls.listen {
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
            let greeted = from_adapters && stream.begins_with(GREETING, app.config.limits.idle).await?;
            if greeted {
                let mut greeting = [0; GREETING.len()];
                stream.read_exact(&mut greeting).await?;
                stream.write_all(GREETING).await?;
            }
            crate::thrift::serve(app, stream, hop, greeted).await
        }
        ListenerKind::Proxy | ListenerKind::Admin => http::serve(app, Stream::new(stream), purpose).await,
    }
}

/// Accepts a connection from an adapter, and identifies the adapter if adapters have certificates.
async fn peer(app: &App, stream: TcpStream) -> io::Result<(Stream, Caller)> {
    let Some((acceptor, _)) = &app.tls.peers else {
        let from = stream.peer_addr()?;
        return Ok((Stream::new(stream), Caller::Unproved(from)));
    };
    let tls = app.shaken(acceptor.accept(stream)).await.ok();
    let identity = tls.as_ref().and_then(|tls| crate::tls::identity(tls.get_ref().1.peer_certificates()?.first()?));
    if let (Some(tls), Some(identity)) = (tls, identity) {
        return Ok((Stream::new(tls), Caller::Certified(identity)));
    }
    app.metrics.metadata_refused.inc();
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Finds or opens an endpoint's listener, or else returns the endpoint itself, as the JSON object of `/resolve`. Fails if
/// the endpoint is invalid.
pub(crate) async fn resolve(app: &Arc<App>, endpoint: &str) -> Result<serde_json::Value, String> {
    let parsed = Endpoint::parse(endpoint).ok_or_else(|| format!("`{endpoint}` is not a valid endpoint"))?;
    let authority = parsed.authority();
    // The given URL may be below a known endpoint.
    let above = || {
        let (above, _) = app.routes.find(parsed.scheme, &authority, &parsed.path)?;
        Some((app.service(&above)?, above))
    };
    // The known endpoint may be written without a scheme.
    let bare = || {
        let service = app.service(&authority).filter(|service| service.bare == parsed.scheme)?;
        Some((service, authority.as_str().into()))
    };
    let listed = app.service(endpoint).map(|service| (service, endpoint.into())).or_else(above).or_else(bare);
    let service = listed.as_ref().map(|(service, _)| service);
    let parsed = service.map_or(parsed.clone(), |service| parsed.clone().over(service.bare));
    let is_http = parsed.scheme != Scheme::Tcp;
    let mut resolved = serde_json::json!({
        "endpoint": endpoint,
        "intercepted": false,
        "address": authority,
        "url": is_http.then_some(endpoint),
        "service": service.map(|service| &service.name),
    });
    let fits = |service: &Service| crate::config::fits(service.family, &parsed) && app.may_dial(&authority);
    if let Some((_, listed)) = listed.as_ref().filter(|(service, _)| fits(service))
        && let Ok(address) = listener_for(app, listed, &parsed, None).await
    {
        resolved["intercepted"] = true.into();
        resolved["address"] = address.to_string().into();
        if is_http {
            let is_encrypted = parsed.scheme == Scheme::Https && app.tls.listen.is_some();
            let scheme = if is_encrypted { "https" } else { "http" };
            resolved["url"] = format!("{scheme}://{address}{}", parsed.path).into();
            resolved["tls"] = is_encrypted.into();
        }
    }
    Ok(resolved)
}

/// Opens a listener for a TCP endpoint, or for the authority of an HTTP endpoint. Fails if no listener or port is left.
pub(crate) async fn listener_for(
    app: &Arc<App>,
    endpoint: &str,
    parsed: &Endpoint,
    at: Option<&str>,
) -> io::Result<SocketAddr> {
    let authority = parsed.authority();
    let key = match parsed.scheme {
        Scheme::Tcp => (Scheme::Tcp, endpoint.to_owned()),
        scheme => (scheme, authority.clone()),
    };
    let mut listeners = app.listeners.lock().await;
    if let (Some(known), None) = (listeners.get(&key), at) {
        return Ok(*known);
    }
    if at.is_none() && listeners.len() >= app.config.limits.listeners + app.config.consuming.len() {
        app.listeners_over(endpoint);
        return Err(io::Error::other("too many listeners"));
    }
    let at = at.map_or_else(|| SocketAddr::new(app.config.local, 0).to_string(), str::to_owned);
    let hop = Hop::from_party(key.0, &key.1, &authority);
    let address = open(app, at, ListenerKind::Service(hop)).await?;
    listeners.insert(key, address);
    Ok(address)
}
