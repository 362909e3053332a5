//! HTTP: serves a client connection, and sends each request to its service or to the next adapter.

mod fields;
mod proxy;

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use contract::monitor::EndpointState;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::fields::{Block, asks_upgrade, block_of, drop_hop_fields, field_bytes, field_of, greeted};
use crate::app::App;
use crate::body::{Body, Read, WholeBody};
use crate::call::{Caller, Decision, Hop, InFlightCall, ParkedCall, Side};
use crate::config::ProtocolKind;
use crate::decode::{HttpReply, HttpRequest, Op, RequestKind, Service};
use crate::dial::Whom;
use crate::encoding::Content;
use crate::endpoint::Scheme;
use crate::metrics::{Skip, count};
use crate::pool::{Conn, MADE_HERE, META};
use crate::refusal::{Refusal, Unchecked};
use crate::stream::Stream;

/// The destination of the requests of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The authority that the listener represents.
    Fixed { side: Side, scheme: Scheme, authority: String, forward: String, caller: Caller },
    /// The URL of each request: a forward proxy.
    Any,
}

/// The start of an HTTP/2 connection with prior knowledge. Source: RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Empty SETTINGS and a GOAWAY with HTTP_1_1_REQUIRED, which reject HTTP/2. Source: RFC 9113,
/// sections 3.4, 6.8 and 7.
const HTTP_1_1_REQUIRED: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d";

pub(crate) async fn serve(app: &Arc<App>, mut client: Stream, target: Target) -> io::Result<()> {
    if let Target::Fixed { scheme, forward, .. } = &target {
        let is_other = tokio::select! {
            is_other = timeout(app.limits.idle, client.begins_with(PREFACE)) => is_other,
            () = app.ending() => return Ok(()),
        };
        if is_other.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            if app.watch.refuse_unchecked(Unchecked::Protocol).is_some() {
                client.write_all(HTTP_1_1_REQUIRED).await?;
                return client.shutdown().await;
            }
            app.watch.metrics.skip(Skip::Unreadable);
            let whom = if *scheme == Scheme::Https { Whom::Tls } else { Whom::Plain };
            let mut upstream = app.dial.connect(forward, whom).await?;
            return crate::stream::copy(app.limits.idle, &mut client, &mut upstream).await;
        }
    }
    let kept = Arc::new(Mutex::new(None));
    let service = {
        let (app, target, kept) = (app.clone(), Arc::new(target), kept.clone());
        hyper::service::service_fn(move |request| {
            let (app, target, kept) = (app.clone(), target.clone(), kept.clone());
            async move { Ok::<_, Infallible>(answer(&app, &target, &kept, request).await) }
        })
    };
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .preserve_header_case(true)
        .half_close(true)
        .auto_date_header(false)
        .max_buf_size(app.limits.head_bytes)
        // Most messages are small: copying the body into one buffer is cheaper than sending two.
        .writev(false)
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.idle);
    let connection = builder.serve_connection(TokioIo::new(client), service).with_upgrades();
    tokio::pin!(connection);
    let done = tokio::select! {
        done = &mut connection => done,
        () = app.ending() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    let last = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(UpstreamConn { authority, whom, conn }) = last {
        app.pool.put(&authority, whom, conn);
    }
    done.map_err(io::Error::other)
}

/// The connection of a client's last request, which the next one reuses.
type Keeping = Arc<Mutex<Option<UpstreamConn>>>;

/// A request with its destination.
struct RoutedRequest {
    hop: Hop,
    /// The endpoint's authority, for `Host`.
    authority: String,
    /// The path after the endpoint's own path.
    behind: String,
    is_listed: bool,
}

async fn answer(app: &Arc<App>, target: &Target, kept: &Keeping, request: Request<Incoming>) -> Response<Body> {
    if *target == Target::Any && request.method() == Method::CONNECT {
        return self::proxy::connect(app, request).await;
    }
    if let Some(response) = greeted(target, &request) {
        return response;
    }
    let Some(going) = going(app, target, &request) else {
        let text = "this is a forward proxy: expected an absolute URL, `GET http://host/path`\n";
        return plain(StatusCode::BAD_REQUEST, text);
    };
    // The other adapter must not take a response of this adapter for the service's.
    let is_from_adapter = going.hop.side == Side::Server { peers: true } && request.headers().contains_key(META);
    match pass(app, &going, kept, request).await {
        Ok(response) => response,
        Err(failed) => {
            let mut response = failed.response();
            if is_from_adapter {
                response.headers_mut().insert(META, HeaderValue::from_static(MADE_HERE));
            }
            response
        }
    }
}

fn going(app: &App, target: &Target, request: &Request<Incoming>) -> Option<RoutedRequest> {
    let path = request.uri().path();
    let (side, scheme, authority, forward, caller) = match target {
        Target::Fixed { side, scheme, authority, forward, caller, .. } => {
            (side.clone(), *scheme, authority.clone(), forward.clone(), caller.clone())
        }
        Target::Any => {
            let uri = request.uri();
            if uri.scheme_str() != Some("http") {
                return None;
            }
            let authority = format!("{}:{}", uri.host()?, uri.port_u16().unwrap_or(80));
            (Side::Client, Scheme::Http, authority.clone(), authority, Caller::Nobody)
        }
    };
    let found = app.watch.routes.find(scheme, &authority, path);
    let is_listed = found.is_some();
    let (endpoint, behind) = found.unwrap_or_else(|| (authority.as_str().into(), path));
    let behind = if behind.is_empty() { "/".to_owned() } else { behind.to_owned() };
    let hop = Hop { side, endpoint, forward, is_tls: scheme == Scheme::Https, caller };
    Some(RoutedRequest { hop, authority, behind, is_listed })
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Any, Self::Any))
    }
}

/// Why a request got no response from its service.
enum Failed {
    Upstream(io::Error),
    Reply(hyper::Error),
    Body(hyper::Error),
    Late,
    Broken,
    Full,
    Refused {
        refusal: Refusal,
        service: Arc<Service>,
        code: StatusCode,
    },
    /// Rejected, without a service whose protocol would define the response.
    Unlisted(Refusal),
}

impl Failed {
    fn response(self) -> Response<Body> {
        match self {
            Self::Upstream(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                plain(StatusCode::FORBIDDEN, &format!("{error}\n"))
            }
            Self::Upstream(error) if error.kind() == io::ErrorKind::TimedOut => {
                plain(StatusCode::GATEWAY_TIMEOUT, &format!("{error}\n"))
            }
            Self::Upstream(error) => plain(StatusCode::BAD_GATEWAY, &format!("cannot reach the service: {error}\n")),
            Self::Reply(error) => plain(StatusCode::BAD_GATEWAY, &format!("no response from the service: {error}\n")),
            Self::Body(error) => plain(StatusCode::BAD_REQUEST, &format!("incomplete request: {error}\n")),
            Self::Late => plain(StatusCode::GATEWAY_TIMEOUT, "no response from the service in time\n"),
            Self::Broken => plain(StatusCode::BAD_GATEWAY, "the adapter failed\n"),
            Self::Full => plain(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n"),
            Self::Refused { refusal, service, code } => refused(service.family, &refusal, code),
            Self::Unlisted(refusal) => refused(ProtocolKind::Rest, &refusal, refusal.request_status()),
        }
    }

    fn request_refused(refusal: Refusal, service: &Arc<Service>) -> Self {
        Self::Refused { code: refusal.request_status(), refusal, service: service.clone() }
    }

    fn reply_refused(refusal: Refusal, service: &Arc<Service>) -> Self {
        Self::Refused { code: StatusCode::BAD_GATEWAY, refusal, service: service.clone() }
    }
}

fn plain(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::of(text.to_owned()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The response to a rejected call: a fault in SOAP, otherwise a problem of RFC 9457.
fn refused(family: ProtocolKind, refusal: &Refusal, code: StatusCode) -> Response<Body> {
    let text = refusal.text();
    let (code, kind, body) = match family {
        ProtocolKind::Soap => {
            let mut out = String::new();
            let who = if code.is_client_error() { "Client" } else { "Server" };
            codecs::soap::compose_fault(&mut out, who, &text, None);
            // SOAP 1.1, section 6.2: faults have the status 500.
            (StatusCode::INTERNAL_SERVER_ERROR, "text/xml; charset=utf-8", out)
        }
        _ => {
            let problem = serde_json::json!({ "title": refusal.title(), "status": code.as_u16(), "detail": text });
            (code, "application/problem+json", problem.to_string())
        }
    };
    let mut response = Response::new(Body::of(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn pass(
    app: &Arc<App>,
    going: &RoutedRequest,
    kept: &Keeping,
    request: Request<Incoming>,
) -> Result<Response<Body>, Failed> {
    let since = crate::clock::now();
    let hop = &going.hop;
    let (mut parts, incoming) = request.into_parts();
    let upgrade = asks_upgrade(&parts.headers).then(|| parts.extensions.remove::<OnUpgrade>()).flatten();
    drop_hop_fields(&mut parts.headers, upgrade.is_some());
    let block = block_of(&mut parts.headers);
    // Metadata from a peer that is not an adapter is a forgery or an accident, so it is dropped.
    let may_carry = matches!(hop.side, Side::Server { peers: true });
    if block.is_some() && !may_carry {
        count(&app.watch.metrics.metadata_refused);
    }
    // An empty block would exempt the call from checks.
    let block = block.filter(|block| may_carry && !(app.watch.refuses_unchecked && block.bytes.is_empty()));
    let service = match app.watch.standing(&hop.endpoint) {
        EndpointState::Service(id) if going.is_listed => {
            app.watch.services.get(id).filter(|service| service.family != ProtocolKind::Thrift)
        }
        EndpointState::Conflict if going.is_listed => match app.watch.refuse_unchecked(Unchecked::Conflict) {
            Some(refusal) => return Err(Failed::Unlisted(refusal)),
            None => None,
        },
        _ => None,
    };
    let (number, is_sampled) = app.watch.next_call();
    let by_head =
        service.as_ref().map(|service| service.by_head(parts.method.as_str(), &going.behind).map(|op| op.cloned()));
    let skip = match &by_head {
        None | Some(Some(None)) => Some(Skip::Unlisted),
        // An empty block means that the previous adapter did not check the call, so neither does
        // this one.
        Some(_) if !is_sampled || block.as_ref().is_some_and(|block| block.bytes.is_empty()) => Some(Skip::Sample),
        Some(_) => None,
    };
    if let (None, Some(service)) = (skip, &service) {
        let reads_body = by_head.flatten().flatten().is_none_or(|op: Arc<Op>| service.reads_body(&op));
        if !reads_body {
            let whole = WholeBody::default();
            let body = Body::streaming(incoming);
            return checked(app, going, kept, service, parts, whole, body, upgrade, block, number, since).await;
        }
        match Body::read(incoming, &app.limits, &app.budget).await {
            Read::Cut(_, error) => return Err(Failed::Body(error)),
            Read::Whole(whole, body) => {
                let since = crate::clock::now();
                return checked(app, going, kept, service, parts, whole, body, upgrade, block, number, since).await;
            }
            Read::Part(body, skip) => {
                if let Some(refusal) = app.watch.refuse_unchecked(skip.unread()) {
                    return Err(Failed::request_refused(refusal, service));
                }
                app.watch.metrics.skip(skip);
                return unchecked(app, send(app, going, kept, parts, body, None).await?, upgrade);
            }
        }
    }
    if let (Some(service), Some(_)) = (&service, &upgrade)
        && let Some(refusal) = app.watch.refuse_unchecked(Unchecked::Protocol)
    {
        return Err(Failed::request_refused(refusal, service));
    }
    match (&service, skip) {
        (Some(service), Some(Skip::Unlisted)) => {
            app.unlisted(&service.name, &format!("{} {}", parts.method, going.behind));
        }
        _ => app.watch.metrics.skip(skip.unwrap_or(Skip::Unlisted)),
    }
    if skip == Some(Skip::Sample) && app.watch.peer(&hop.endpoint).is_some() && hop.side == Side::Client {
        parts.headers.insert(META, HeaderValue::from_static(""));
    }
    unchecked(app, send(app, going, kept, parts, Body::streaming(incoming), None).await?, upgrade)
}

/// Returns the response to an incompletely checked request.
fn unchecked(app: &Arc<App>, sent: Sent, upgrade: Option<OnUpgrade>) -> Result<Response<Body>, Failed> {
    if let (StatusCode::SWITCHING_PROTOCOLS, Some(upgrade)) = (sent.response.status(), upgrade) {
        app.watch.metrics.skip(Skip::Unreadable);
        return switch(app, sent.response, upgrade);
    }
    let (mut parts, body) = sent.response.into_parts();
    drop_hop_fields(&mut parts.headers, false);
    parts.headers.remove(&META);
    Ok(Response::from_parts(parts, Body::streaming(body)))
}

/// Switches to another protocol, whose bytes pass unchanged in both directions.
fn switch(app: &Arc<App>, mut response: Response<Incoming>, client: OnUpgrade) -> Result<Response<Body>, Failed> {
    // It outlives its HTTP connection, so it needs its own slot.
    let Ok(slot) = app.slots.clone().try_acquire_owned() else {
        count(&app.watch.metrics.connections_over);
        return Err(Failed::Full);
    };
    drop_hop_fields(response.headers_mut(), true);
    response.headers_mut().remove(&META);
    let service = hyper::upgrade::on(&mut response);
    let idle = app.limits.idle;
    tokio::spawn(async move {
        let _slot = slot;
        let (Ok(client), Ok(service)) = (client.await, service.await) else { return };
        let (mut client, mut service) = (Stream::new(TokioIo::new(client)), Stream::new(TokioIo::new(service)));
        let _ = crate::stream::copy(idle, &mut client, &mut service).await;
    });
    Ok(response.map(Body::streaming))
}

struct Sent {
    response: Response<Incoming>,
    is_adapter: bool,
}

#[derive(Debug)]
struct UpstreamConn {
    authority: String,
    whom: Whom,
    conn: Conn,
}

/// Whether a reply is a stream of events. Source:
/// <https://html.spec.whatwg.org/multipage/server-sent-events.html>, section 9.2.
fn is_endless(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"))
}

/// Connects to the service's adapter if one is known and responds, otherwise to the service.
async fn connection(app: &App, going: &RoutedRequest, kept: &Keeping, fresh: bool) -> io::Result<UpstreamConn> {
    let hop = &going.hop;
    let peer = if hop.side == Side::Client && going.is_listed { app.peer(&hop.endpoint) } else { None };
    if let Some(authority) = peer {
        match connection_to(app, &authority, Whom::Peer, kept, fresh).await {
            Ok(held) => return Ok(held),
            Err(error) => app.peer_failed(&authority, &error),
        }
    }
    connection_to(app, &hop.forward, hop.whom(), kept, fresh).await
}

async fn connection_to(
    app: &App,
    authority: &str,
    whom: Whom,
    kept: &Keeping,
    fresh: bool,
) -> io::Result<UpstreamConn> {
    let authority = authority.to_owned();
    if !fresh {
        let last = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last {
            // The previous response may still be in transit; hyper reports when it has been sent.
            Some(mut last) if last.authority == authority && last.whom == whom => {
                let is_there = last.conn.sender.ready().await.is_ok();
                last.conn.is_used = true;
                if is_there {
                    return Ok(last);
                }
            }
            Some(last) => app.pool.put(&last.authority, last.whom, last.conn),
            None => {}
        }
        if let Some(conn) = app.pool.take(&authority, whom) {
            return Ok(UpstreamConn { authority, whom, conn });
        }
    }
    let conn = app.pool.open(&app.dial, &authority, whom).await?;
    Ok(UpstreamConn { authority, whom, conn })
}

/// Sends a request, and repeats it if the server had closed the reused connection.
async fn send(
    app: &App,
    going: &RoutedRequest,
    kept: &Keeping,
    parts: Parts,
    body: Body,
    held: Option<UpstreamConn>,
) -> Result<Sent, Failed> {
    let mut held = match held {
        Some(held) => held,
        None => connection(app, going, kept, false).await.map_err(Failed::Upstream)?,
    };
    let mut request = Request::from_parts(origin_form(going, parts), body);
    loop {
        let is_adapter = held.whom == Whom::Peer;
        let answered = timeout(app.limits.answer(is_adapter), held.conn.sender.try_send_request(request)).await;
        match answered {
            Ok(Ok(response)) => {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
                return Ok(Sent { response, is_adapter });
            }
            Ok(Err(mut error)) => match error.take_message() {
                // The request was not sent, and the connection was reused.
                Some(mut message) if held.conn.is_used => {
                    held = match connection_to(app, &held.authority, held.whom, kept, true).await {
                        Ok(held) => held,
                        Err(error) if is_adapter => {
                            app.peer_failed(&held.authority, &error);
                            message.headers_mut().remove(&META);
                            connection_to(app, &going.hop.forward, going.hop.whom(), kept, true)
                                .await
                                .map_err(Failed::Upstream)?
                        }
                        Err(error) => return Err(Failed::Upstream(error)),
                    };
                    request = message;
                }
                _ => return Err(Failed::Reply(error.into_error())),
            },
            Err(_) => {
                app.late(is_adapter.then_some(&held.authority));
                return Err(Failed::Late);
            }
        }
    }
}

/// Rewrites a request to origin form, with the host that the client means.
fn origin_form(going: &RoutedRequest, mut parts: Parts) -> Parts {
    let path = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    // A client that connects to the listener names its address; the service must see its own name.
    if going.hop.side == Side::Client
        && let Ok(host) = HeaderValue::from_str(&host_of(going))
    {
        parts.headers.insert(HOST, host);
    }
    parts.version = hyper::Version::HTTP_11;
    parts
}

/// The authority without the scheme's default port, as clients write it.
fn host_of(going: &RoutedRequest) -> String {
    let own = if going.hop.is_tls { ":443" } else { ":80" };
    going.authority.strip_suffix(own).unwrap_or(&going.authority).to_owned()
}

/// Handles a request that the contract may refer to.
#[allow(clippy::too_many_arguments, reason = "each is a fact of one request, used once")]
async fn checked(
    app: &Arc<App>,
    going: &RoutedRequest,
    kept: &Keeping,
    service: &Arc<Service>,
    mut parts: Parts,
    whole: WholeBody,
    body: Body,
    upgrade: Option<OnUpgrade>,
    block: Option<Block>,
    number: u64,
    since: std::time::Instant,
) -> Result<Response<Body>, Failed> {
    let hop = &going.hop;
    // Clauses read a copy of the head; the head itself is forwarded.
    let (method, query, headers) =
        (parts.method.clone(), parts.uri.query().unwrap_or_default().to_owned(), parts.headers.clone());
    let content = app.decoded(&headers, &whole.bytes);
    let refuse = |why| match app.watch.refuse_unchecked(why) {
        Some(refusal) => Err(Failed::request_refused(refusal, service)),
        None => Ok(()),
    };
    if content == Content::Over {
        refuse(Unchecked::Size)?;
        app.watch.metrics.skip(Skip::Size);
        return unchecked(app, send(app, going, kept, parts, body, None).await?, upgrade);
    }
    let request =
        HttpRequest { method: method.as_str(), path: &going.behind, query: &query, headers: &headers, body: &content };
    if matches!(content, Content::Unread(_)) {
        refuse(Unchecked::Encoding)?;
    }
    let called = app.watch.guarded(|| service.http_request(&request, app.watch.refuses_unchecked));
    let (op, request) = match called {
        Some(RequestKind::Known(op, request)) => (op, request),
        None if !app.watch.fail_open => return Err(Failed::Broken),
        other => {
            if matches!(other, Some(RequestKind::Unreadable)) {
                refuse(Unchecked::Unreadable)?;
            }
            if upgrade.is_some() {
                refuse(Unchecked::Protocol)?;
            }
            match other {
                Some(RequestKind::Unlisted(operation)) => app.unlisted(&service.name, &operation),
                Some(_) => app.watch.metrics.skip(Skip::Unreadable),
                None => app.watch.metrics.skip(Skip::Failed),
            }
            return unchecked(app, send(app, going, kept, parts, body, None).await?, upgrade);
        }
    };
    let mut share = app.budget.share();
    if !share.resize(content.decoded_bytes() + request.tape.memory_bytes()) {
        drop(request);
        drop(content);
        refuse(Unchecked::Memory)?;
        app.watch.metrics.skip(Skip::Memory);
        return unchecked(app, send(app, going, kept, parts, body, None).await?, upgrade);
    }
    let mut passing = InFlightCall::new(app, hop, service, op.clone(), number, since);
    passing.pause();
    let held = connection(app, going, kept, false).await.map_err(Failed::Upstream)?;
    passing.resume();
    let to_adapter = held.whom == Whom::Peer;
    passing.metadata_bytes += block.as_ref().map_or(0, |block| block.around_bytes);
    match passing.request(&request, block.as_ref().map(|block| &block.bytes[..]), to_adapter) {
        Decision::Pass(Some(block)) => {
            if let Some(field) = field_of(&block) {
                passing.metadata_bytes += field_bytes(&field) - block.len();
                parts.headers.insert(META, field);
            }
        }
        Decision::Pass(None) => {}
        Decision::Refuse(refusal) => {
            app.pool.put(&held.authority, held.whom, held.conn);
            passing.end(0);
            return Err(Failed::request_refused(refusal, service));
        }
        Decision::Broken => return Err(Failed::Broken),
    }
    if upgrade.is_some()
        && let Some(refusal) = app.watch.refuse_unchecked(Unchecked::Protocol)
    {
        app.pool.put(&held.authority, held.whom, held.conn);
        passing.end(0);
        return Err(Failed::request_refused(refusal, service));
    }
    passing.pause();
    let sent = send(app, going, kept, parts, body, Some(held)).await;
    passing.resume();
    let Sent { response, is_adapter } = sent?;
    if to_adapter && !is_adapter {
        match passing.lost(&request) {
            Decision::Pass(_) => {}
            Decision::Refuse(refusal) => {
                passing.end(0);
                return Err(Failed::request_refused(refusal, service));
            }
            Decision::Broken => return Err(Failed::Broken),
        }
    }
    if let (StatusCode::SWITCHING_PROTOCOLS, Some(upgrade)) = (response.status(), upgrade) {
        passing.skipped(Skip::Unreadable);
        let extra = if is_adapter { passing.metadata_bytes as i64 } else { 0 };
        passing.end(extra);
        return switch(app, response, upgrade);
    }
    let (mut parts, incoming) = response.into_parts();
    drop_hop_fields(&mut parts.headers, false);
    if is_adapter && parts.headers.get(&META).is_some_and(|meta| meta == MADE_HERE) {
        parts.headers.remove(&META);
        passing.skipped(Skip::Peer);
        passing.end(0);
        return Ok(Response::from_parts(parts, Body::streaming(incoming)));
    }
    let block = block_of(&mut parts.headers).filter(|_| is_adapter);
    let reads = passing.reads_reply() || passing.is_enhanced();
    let reads_body = passing.reads_reply();
    let mut added = None;
    // A client may read a reply without a length as it arrives. If no decision depends on its end,
    // it is forwarded at once and checked afterwards.
    let is_streamed = incoming.size_hint().exact().is_none() && !is_endless(&parts.headers);
    if reads_body && is_streamed && !app.watch.enforce && !op.introduces_by_reply {
        let call = StreamedCall {
            app: app.clone(),
            hop: hop.clone(),
            service: service.clone(),
            call: passing.park(),
            method,
            path: going.behind.clone(),
            query: query.clone(),
            headers: headers.clone(),
            whole: whole.clone(),
            block,
            is_adapter,
            head: parts.clone(),
        };
        let done = Box::new(move |body: Result<Bytes, Skip>| call.judge(body));
        let body = Body::watched(incoming, &app.limits, &app.budget, done);
        return Ok(Response::from_parts(parts, body));
    }
    // Without the whole body, a reply is judged by its head, and undecided clauses may reject it.
    let is_strict = app.watch.refuses_unchecked;
    let judge = |passing: &mut InFlightCall<'_>, head: &hyper::http::response::Parts, content: &Content<'_>| {
        let reply = HttpReply { code: head.status.as_u16(), headers: &head.headers, body: content };
        let reply = app.watch.guarded(|| service.http_reply(&op, &reply));
        let reply = reply.unwrap_or_else(crate::decode::Reply::opaque);
        replied(passing, &request, &reply, block.as_ref(), service)
    };
    let body = if !reads_body {
        if reads {
            let reply = crate::decode::Reply::opaque();
            added = replied(&mut passing, &request, &reply, block.as_ref(), service)?;
        }
        Body::streaming(incoming)
    } else {
        passing.pause();
        let read = match is_endless(&parts.headers) {
            true => Read::Part(Body::streaming(incoming), Skip::Slow),
            false => Body::read(incoming, &app.limits, &app.budget).await,
        };
        passing.resume();
        match read {
            Read::Cut(_, error) if is_strict => {
                passing.end(0);
                return Err(Failed::Reply(error));
            }
            Read::Cut(body, error) => {
                passing.skipped(Skip::Unreadable);
                body.cut(error)
            }
            Read::Whole(whole, body) => {
                let content = app.decoded(&parts.headers, &whole.bytes);
                match &content {
                    Content::Over if !is_strict => passing.skipped(Skip::Size),
                    Content::Unread(_) if !is_strict => passing.skipped(Skip::Unreadable),
                    _ => {}
                }
                if is_strict || content != Content::Over {
                    added = judge(&mut passing, &parts, &content)?;
                }
                body
            }
            Read::Part(body, _) if is_strict => {
                added = judge(&mut passing, &parts, &Content::Over)?;
                body
            }
            Read::Part(body, skip) => {
                passing.skipped(skip);
                body
            }
        }
    };
    if let Some(field) = added {
        parts.headers.insert(META, field);
    }
    // Messages over HTTP keep their form between adapters, so only the fields are extra.
    let extra = if is_adapter { passing.metadata_bytes as i64 } else { 0 };
    passing.end(extra);
    Ok(Response::from_parts(parts, body))
}

/// A call whose reply is checked after it has been forwarded.
struct StreamedCall {
    app: Arc<App>,
    hop: Hop,
    service: Arc<Service>,
    call: ParkedCall,
    method: Method,
    path: String,
    query: String,
    headers: HeaderMap,
    whole: WholeBody,
    block: Option<Block>,
    is_adapter: bool,
    head: hyper::http::response::Parts,
}

impl StreamedCall {
    fn judge(self, body: Result<Bytes, Skip>) {
        let Self { app, hop, service, call, method, path, query, headers, whole, block, is_adapter, head } = self;
        let mut passing = call.resume(&app, &hop, &service);
        let content = body.as_ref().map(|body| app.decoded(&head.headers, body));
        let skip = match &content {
            Ok(Content::Over) => Some(Skip::Size),
            Ok(Content::Unread(_)) => Some(Skip::Unreadable),
            Ok(Content::Plain(_) | Content::Broken(_)) => None,
            Err(skip) => Some(**skip),
        };
        if let Some(skip) = skip {
            passing.skipped(skip);
        }
        if let Ok(content) = content.as_ref().map_err(|_| ()).and_then(|content| match content {
            Content::Over => Err(()),
            content => Ok(content),
        }) {
            let asked = app.decoded(&headers, &whole.bytes);
            let request =
                HttpRequest { method: method.as_str(), path: &path, query: &query, headers: &headers, body: &asked };
            let reply = HttpReply { code: head.status.as_u16(), headers: &head.headers, body: content };
            let called = app.watch.guarded(|| service.http_request(&request, false));
            if let Some(RequestKind::Known(op, request)) = called {
                let reply = app.watch.guarded(|| service.http_reply(&op, &reply));
                let reply = reply.unwrap_or_else(crate::decode::Reply::opaque);
                // The reply cannot be rejected any more, and no field can follow the head.
                let _ = replied(&mut passing, &request, &reply, block.as_ref(), &service);
            }
        }
        let extra = if is_adapter { passing.metadata_bytes as i64 } else { 0 };
        passing.end(extra);
    }
}

/// Checks a reply. Returns the field to send with it, if any.
fn replied(
    passing: &mut InFlightCall<'_>,
    request: &crate::decode::Request<'_>,
    reply: &crate::decode::Reply<'_>,
    block: Option<&Block>,
    service: &Arc<Service>,
) -> Result<Option<HeaderValue>, Failed> {
    passing.metadata_bytes += block.map_or(0, |block| block.around_bytes);
    match passing.reply(request, reply, block.map(|block| &block.bytes[..])) {
        Decision::Pass(Some(block)) if !block.is_empty() => {
            let field = field_of(&block);
            passing.metadata_bytes += field.as_ref().map_or(0, |field| field_bytes(field) - block.len());
            Ok(field)
        }
        Decision::Pass(_) => Ok(None),
        Decision::Refuse(refusal) => Err(Failed::reply_refused(refusal, service)),
        Decision::Broken => Err(Failed::Broken),
    }
}
