pub(crate) mod admin;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::counted_stream::Stream;
use crate::decode::Service;
use crate::dial::GREETING;
use crate::endpoint::{Endpoint, Scheme};
use crate::http;
use crate::in_flight_call::{Caller, Hop, ListenerKind};
use crate::metrics::count;
use crate::shared_state::App;

/// Accepts connections at a bound listener until the adapter ends.
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
                // Usually no descriptors are left, which only time can fix.
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
                // Both sides see a failed connection end, and the counters include it.
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

/// Accepts a connection of another adapter, and identifies it if adapters have certificates.
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

/// Whether a connection begins with the adapters' greeting. Sends the greeting back.
async fn greeted(app: &App, mut stream: Stream) -> io::Result<(Stream, bool)> {
    let greets = stream.begins_with(GREETING, app.limits.idle).await?;
    if greets {
        let mut greeting = [0; GREETING.len()];
        stream.read_exact(&mut greeting).await?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, GREETING).await?;
    }
    Ok((stream, greets))
}

/// The address for the party to reach an endpoint through this adapter.
#[derive(serde::Serialize)]
pub(crate) struct Resolved {
    pub(crate) endpoint: String,
    /// Whether it is reached through the adapter.
    pub(crate) intercepted: bool,
    /// `host:port` to connect to.
    pub(crate) address: String,
    /// URL to use, for endpoints over HTTP.
    pub(crate) url: Option<String>,
    /// Whether to use TLS, for endpoints over HTTP through the adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<bool>,
    /// The service behind it, if an entry names one.
    pub(crate) service: Option<String>,
}

/// Finds or opens the listener for an endpoint. Unknown and forbidden endpoints are reached
/// directly, and all others without room for a listener. Fails if the text is not an endpoint.
pub(crate) async fn resolve(app: &Arc<App>, endpoint: &str) -> Result<Resolved, String> {
    let parsed = Endpoint::parse(endpoint).ok_or_else(|| format!("`{endpoint}` is not a valid endpoint"))?;
    let authority = parsed.authority();
    // The given URL may be below a known endpoint.
    let above = || {
        let (above, _) = app.watch.routes.find(parsed.scheme, &authority, &parsed.path)?;
        Some((app.watch.service(&above)?, above))
    };
    // The known endpoint may be written without a scheme.
    let bare = || {
        let service = app.watch.service(&authority).filter(|service| service.bare == parsed.scheme)?;
        Some((service, authority.as_str().into()))
    };
    let listed = app.watch.service(endpoint).map(|service| (service, endpoint.into())).or_else(above).or_else(bare);
    let service = listed.as_ref().map(|(service, _)| service);
    let parsed = service.map_or(parsed.clone(), |service| parsed.clone().over(service.bare));
    let is_http = parsed.scheme != Scheme::Tcp;
    let direct = Resolved {
        endpoint: endpoint.to_owned(),
        intercepted: false,
        address: authority.clone(),
        url: is_http.then(|| endpoint.to_owned()),
        tls: None,
        service: service.map(|service| service.name.clone()),
    };
    let fits = |service: &Service| crate::config::fits(service.family, &parsed) && app.dial.may(&authority);
    let Some((_, listed)) = listed.filter(|(service, _)| fits(service)) else { return Ok(direct) };
    let Ok(address) = listener_for(app, &listed, &parsed, None).await else { return Ok(direct) };
    let is_encrypted = parsed.scheme == Scheme::Https && app.dial.tls.listen.is_some();
    let scheme = if is_encrypted { "https" } else { "http" };
    let url = is_http.then(|| format!("{scheme}://{address}{}", parsed.path));
    let tls = is_http.then_some(is_encrypted);
    Ok(Resolved { intercepted: true, address: address.to_string(), url, tls, ..direct })
}

/// Opens a client-side listener for an endpoint, or for its whole authority. Fails if there is no
/// room for a listener, or no port.
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
    if at.is_none() && listeners.len() >= app.learned_max {
        app.listeners_over(endpoint);
        return Err(io::Error::other("too many listeners"));
    }
    let bound = match at {
        Some(at) => TcpListener::bind(at).await,
        None => TcpListener::bind((app.local, 0)).await,
    };
    let hop = Hop::from_party(key.0, &key.1, &authority);
    let address = open(app, bound, ListenerKind::Service(hop))?;
    listeners.insert(key, address);
    Ok(address)
}
