//! `/resolve`: the address at which the party reaches an endpoint, with a listener opened for it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::open;
use crate::contract_services::Service;
use crate::endpoint::{Endpoint, Scheme};
use crate::hop_and_caller::{Hop, ListenerKind};
use crate::shared_state::App;

#[derive(serde::Serialize)]
pub(crate) struct Resolved {
    pub(crate) endpoint: String,
    pub(crate) intercepted: bool,
    /// Address to connect to, `host:port`.
    pub(crate) address: String,
    /// URL to use; `None` for endpoints that are not over HTTP.
    pub(crate) url: Option<String>,
    /// Whether to use TLS; `None` unless the endpoint is over HTTP and reached through the adapter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<bool>,
    /// Service of the endpoint, or `None` if no entry names one.
    pub(crate) service: Option<String>,
}

/// Finds or opens an endpoint's listener, or else returns the endpoint itself. Fails if the endpoint is invalid.
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
