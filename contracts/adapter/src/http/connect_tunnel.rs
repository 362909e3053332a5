//! The tunnels of the forward proxy, opened by `CONNECT host:port`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsAcceptor;

use super::{Answer, plain};
use crate::body::Body;
use crate::config::ProtocolKind;
use crate::counted_stream::Stream;
use crate::endpoint::{Endpoint, Scheme};
use crate::hop_and_caller::{Hop, ListenerKind, Whom};
use crate::metrics::Skip;
use crate::shared_state::App;
use crate::unchecked_and_refusal_reasons::{Refusal, Unchecked};

/// The first byte of a TLS handshake. Source: RFC 8446, section 5.1.
const HANDSHAKE: &[u8] = &[22];

/// Opens a tunnel to an allowed endpoint. Messages to a known service are checked: Thrift, HTTP, and HTTPS if the
/// certificate of `tls.listen` covers the host. Other bytes are passed and counted.
pub(super) async fn connect(app: &Arc<App>, request: Request<Incoming>) -> Answer {
    let Some(endpoint) = request.uri().authority().map(|authority| authority.as_str().to_owned()) else {
        return Err(plain(StatusCode::BAD_REQUEST, "CONNECT needs `host:port`\n".to_owned()));
    };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => plain(StatusCode::FORBIDDEN, format!("{error}\n")),
        _ => plain(StatusCode::BAD_GATEWAY, format!("cannot reach `{endpoint}`: {error}\n")),
    };
    app.check_allowed(&endpoint).map_err(failed)?;
    let refused = |refusal: Refusal| plain(refusal.request_status(), format!("{}\n", refusal.text()));
    let service = app.service_or_refusal(&endpoint).map_err(refused)?;
    let Ok(slot) = app.slots.clone().try_acquire_owned() else {
        app.metrics.connections_over.inc();
        return Err(plain(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n".to_owned()));
    };
    let is_thrift = service.is_some_and(|service| service.family == ProtocolKind::Thrift);
    let host = Endpoint::parse(&endpoint).map(|endpoint| endpoint.host).unwrap_or_default();
    let is_plain = app.routes.has(Scheme::Http, &endpoint);
    let is_https = app.routes.has(Scheme::Https, &endpoint);
    let ends_tls = app.tls.ends_for(&host).filter(|_| is_https).cloned();
    if is_https && !is_plain && ends_tls.is_none() {
        app.refuse_unchecked(Unchecked::Encrypted).map_err(refused)?;
    }
    let upstream = match is_thrift || is_plain || ends_tls.is_some() {
        true => None,
        false => Some(app.connect(&endpoint, Whom::Plain).await.map_err(failed)?),
    };
    let app = app.clone();
    tokio::spawn(async move {
        let _slot = slot;
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        let mut client = Stream::new(TokioIo::new(upgraded));
        // A tunnel can report a failure only by ending.
        let _ = match upstream {
            Some(mut upstream) => {
                app.metrics.skip(Skip::Encrypted);
                crate::counted_stream::copy(app.config.limits.idle, &mut client, &mut upstream).await
            }
            None if is_thrift => {
                crate::thrift::serve(&app, client, Hop::from_party(Scheme::Tcp, &endpoint, &endpoint), false).await
            }
            None => within(app, client, endpoint, is_plain, ends_tls).await,
        };
    });
    Ok(Response::new(Body::default()))
}

/// Serves a tunnel to an authority with known endpoints over HTTP. Boxed, because it recurses into `http::serve`.
fn within(
    app: Arc<App>,
    mut client: Stream,
    authority: String,
    is_plain: bool,
    ends_tls: Option<TlsAcceptor>,
) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
    let hop = |scheme| ListenerKind::Service(Hop::from_party(scheme, &authority, &authority));
    let (plain, within_tls) = (hop(Scheme::Http), hop(Scheme::Https));
    Box::pin(async move {
        match (client.begins_with(HANDSHAKE, app.config.limits.idle).await?, ends_tls) {
            (true, Some(acceptor)) => {
                let client = Stream::new(app.shaken(acceptor.accept(client)).await?);
                crate::http::serve(&app, client, within_tls).await
            }
            (false, _) if is_plain => crate::http::serve(&app, client, plain).await,
            // The tunnel carries TLS to an endpoint over plain HTTP, or the reverse.
            _ if app.refuse_unchecked(Unchecked::Encrypted).is_err() => Ok(()),
            _ => {
                let mut upstream = app.connect(&authority, Whom::Plain).await?;
                app.metrics.skip(Skip::Encrypted);
                crate::counted_stream::copy(app.config.limits.idle, &mut client, &mut upstream).await
            }
        }
    })
}
