//! The forward proxy's tunnels: `CONNECT host:port`.

use std::sync::Arc;

use contract::monitor::Standing;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::app::App;
use crate::body::Body;
use crate::call::{Hop, Side};
use crate::config::Family;
use crate::dial::Whom;
use crate::metrics::Skip;
use crate::stream::Stream;

/// Opens a tunnel to an endpoint that may be dialled. One to a Thrift service is looked into; one to anything else, most often TLS, passes
/// as it is and is counted as such.
pub(crate) async fn connect(app: &Arc<App>, request: Request<Incoming>) -> Response<Body> {
    let told = |code: StatusCode, text: String| {
        let mut response = Response::new(Body::of(text));
        *response.status_mut() = code;
        response
    };
    let Some(endpoint) = request.uri().authority().map(|authority| authority.as_str().to_owned()) else {
        return told(StatusCode::BAD_REQUEST, "CONNECT needs `host:port`\n".to_owned());
    };
    if !app.dial.may(&endpoint) {
        crate::metrics::count(&app.watch.metrics.dials_refused);
        return told(StatusCode::FORBIDDEN, format!("`{endpoint}` is not allowed: no rule of `allow` matches\n"));
    }
    // A tunnel outlives the connection that it began as, so it has a slot of its own.
    let Ok(slot) = app.slots.clone().try_acquire_owned() else {
        crate::metrics::count(&app.watch.metrics.connections_over);
        return told(StatusCode::SERVICE_UNAVAILABLE, "there are too many connections\n".to_owned());
    };
    let is_thrift = match app.watch.standing(&endpoint) {
        Standing::Service(id) => app.watch.services.get(id).is_some_and(|service| service.family == Family::Thrift),
        Standing::Unlisted | Standing::Conflict => false,
    };
    let upstream = if is_thrift {
        None
    } else {
        match app.dial.connect(&endpoint, Whom::Plain).await {
            Ok(stream) => Some(stream),
            Err(error) => return told(StatusCode::BAD_GATEWAY, format!("`{endpoint}` cannot be reached: {error}\n")),
        }
    };
    let app = app.clone();
    tokio::spawn(async move {
        let _slot = slot;
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        let mut client = Stream::new(TokioIo::new(upgraded));
        // What goes wrong with a tunnel is told by its end.
        let _ = match upstream {
            Some(mut upstream) => {
                app.watch.metrics.skip(Skip::Encrypted);
                crate::thrift::copy(app.limits.idle, &mut client, &mut upstream).await
            }
            None => {
                let hop = Hop {
                    side: Side::Client,
                    endpoint: endpoint.as_str().into(),
                    forward: endpoint,
                    is_tls: false,
                    identity: None,
                };
                crate::thrift::serve(&app, client, &hop, false).await
            }
        };
    });
    Response::new(Body::default())
}
