//! Proxies HTTP: takes each request, checks it, forwards it, and checks its reply.

mod connect_tunnel;
mod header_fields;

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::response;
use hyper::http::uri::PathAndQuery;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::header_fields::{Block, asks_upgrade, block_of, drop_hop_fields, field_bytes, field_of, greeted};
use crate::body::{Body, Read, respond};
use crate::config::ProtocolKind;
use crate::connection_pool::{Conn, MADE_HERE, META};
use crate::contract_services::Service;
use crate::counted_stream::Stream;
use crate::decode::{self, Reply, RequestHead, RequestKind, Unread};
use crate::endpoint::Scheme;
use crate::hop_and_caller::{Caller, Hop, ListenerKind, Whom};
use crate::in_flight_call::InFlightCall;
use crate::listen::admin;
use crate::metrics::Skip;
use crate::shared_state::App;
use crate::unchecked_and_refusal_reasons::{Refusal, Unchecked};

/// The start of an HTTP/2 connection with prior knowledge. Source: RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Empty SETTINGS and a GOAWAY with HTTP_1_1_REQUIRED, which reject HTTP/2. Source: RFC 9113, sections 3.4, 6.8 and 7.
const HTTP_1_1_REQUIRED: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d";

pub(crate) async fn serve(app: &Arc<App>, mut client: Stream, purpose: ListenerKind) -> io::Result<()> {
    if let ListenerKind::Service(hop) = &purpose {
        let is_http_2 = tokio::select! {
            is_http_2 = client.begins_with(PREFACE, app.config.limits.idle) => is_http_2?,
            () = app.ending() => return Ok(()),
        };
        if is_http_2 {
            if app.refuse_unchecked(Unchecked::Protocol).is_err() {
                client.write_all(HTTP_1_1_REQUIRED).await?;
                return client.shutdown().await;
            }
            app.metrics.skip(Skip::Unreadable);
            let mut upstream = app.connect(&hop.forward, hop.whom()).await?;
            return crate::counted_stream::copy(app.config.limits.idle, &mut client, &mut upstream).await;
        }
    }
    let kept = KeptConn::default();
    let is_admin = matches!(purpose, ListenerKind::Admin);
    let service = hyper::service::service_fn(|request| {
        let answer = answer(app.clone(), &purpose, kept.clone(), request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .preserve_header_case(true)
        .half_close(true)
        .auto_date_header(is_admin)
        .max_buf_size(app.config.limits.head_bytes)
        // Most messages are small, so copying the body into one buffer is cheaper than sending two buffers.
        .writev(false)
        .timer(TokioTimer::new())
        .header_read_timeout(app.config.limits.idle);
    let connection = builder.serve_connection(TokioIo::new(client), service).with_upgrades();
    tokio::pin!(connection);
    let done = tokio::select! {
        done = &mut connection => done,
        () = app.ending() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Some(last) = take(&kept) {
        app.pool.put(last);
    }
    done.map_err(io::Error::other)
}

/// The connection of a client's last request, for reuse by the client's next request.
type KeptConn = Arc<Mutex<Option<Conn>>>;

fn take(kept: &KeptConn) -> Option<Conn> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

async fn open(app: &App, authority: &str, whom: Whom) -> io::Result<Conn> {
    let stream = app.connect(authority, whom).await?;
    let opened = timeout(app.config.limits.connect, Conn::new(stream, authority, whom, app.config.limits.head_bytes));
    opened.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn answer(app: Arc<App>, purpose: &ListenerKind, kept: KeptConn, request: Request<Incoming>) -> Response<Body> {
    let listener = match purpose {
        ListenerKind::Admin => return admin::answer(&app, &request).await,
        ListenerKind::Proxy if request.method() == Method::CONNECT => {
            return connect_tunnel::connect(&app, request).await.unwrap_or_else(|failed| *failed);
        }
        ListenerKind::Proxy => None,
        ListenerKind::Service(hop) => Some(hop),
    };
    if let Some(response) = listener.and_then(|hop| greeted(hop, &request)) {
        return response;
    }
    let Some(exchange) = Exchange::new(app, listener, kept, &request) else {
        let text = "this is a forward proxy: expected an absolute URL, `GET http://host/path`\n";
        return *plain(StatusCode::BAD_REQUEST, text.to_owned());
    };
    // The adapter that sent the request must not mistake this adapter's response for the service's.
    let is_from_adapter = exchange.hop.accepts_adapters() && request.headers().contains_key(META);
    exchange.pass(request).await.unwrap_or_else(|mut failed| {
        if is_from_adapter {
            failed.headers_mut().insert(META, HeaderValue::from_static(MADE_HERE));
        }
        *failed
    })
}

/// The adapter's own response, if the service sent none.
type Failed = Box<Response<Body>>;

type Answer = Result<Response<Body>, Failed>;

fn plain(code: StatusCode, text: String) -> Failed {
    respond(code, "text/plain; charset=utf-8", text).into()
}

fn upstream_failed(error: io::Error) -> Failed {
    match error.kind() {
        io::ErrorKind::PermissionDenied => plain(StatusCode::FORBIDDEN, format!("{error}\n")),
        io::ErrorKind::TimedOut => plain(StatusCode::GATEWAY_TIMEOUT, format!("{error}\n")),
        _ => plain(StatusCode::BAD_GATEWAY, format!("cannot reach the service: {error}\n")),
    }
}

fn reply_failed(error: hyper::Error) -> Failed {
    plain(StatusCode::BAD_GATEWAY, format!("no response from the service: {error}\n"))
}

fn request_refused(refusal: &Refusal, family: ProtocolKind) -> Failed {
    refused(family, refusal, refusal.request_status())
}

/// Creates the response to a rejected call: a fault for SOAP, otherwise problem details (RFC 9457).
fn refused(family: ProtocolKind, refusal: &Refusal, code: StatusCode) -> Failed {
    let text = refusal.text();
    if matches!(refusal, Refusal::Broken) {
        return plain(code, text + "\n");
    }
    if family == ProtocolKind::Soap {
        let who = if code.is_client_error() { "Client" } else { "Server" };
        let out = codecs::soap::compose_fault(who, &text);
        // Faults have the status 500 (SOAP 1.1, section 6.2).
        return respond(StatusCode::INTERNAL_SERVER_ERROR, "text/xml; charset=utf-8", out).into();
    }
    let is_violated = matches!(refusal, Refusal::Violated(_));
    let title = if is_violated { "contract violated" } else { "message cannot be checked" };
    let problem = serde_json::json!({ "title": title, "status": code.as_u16(), "detail": text });
    respond(code, "application/problem+json", problem.to_string()).into()
}

struct Exchange {
    app: Arc<App>,
    kept: KeptConn,
    hop: Arc<Hop>,
    /// Authority of the endpoint, for `Host`.
    authority: Arc<str>,
    /// Path after the endpoint's own path.
    path: String,
    is_listed: bool,
    number: u64,
    since: Instant,
    block: Option<Block>,
    upgrade: Option<OnUpgrade>,
}

impl Exchange {
    /// Prepares an exchange. `None` if a request to the forward proxy does not name its destination.
    fn new(app: Arc<App>, listener: Option<&Hop>, kept: KeptConn, request: &Request<Incoming>) -> Option<Self> {
        let uri = request.uri();
        let mut hop = match listener {
            Some(hop) => hop.clone(),
            None if uri.scheme_str() != Some("http") => return None,
            None => {
                let authority = format!("{}:{}", uri.host()?, uri.port_u16().unwrap_or(80));
                Hop::from_party(Scheme::Http, &authority, &authority)
            }
        };
        let authority = hop.endpoint.clone();
        let found = app.routes.find(hop.scheme, &authority, uri.path());
        let is_listed = found.is_some();
        let (endpoint, path) = found.unwrap_or_else(|| (authority.clone(), uri.path()));
        hop.endpoint = endpoint;
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        let (hop, since) = (Arc::new(hop), crate::clock::now());
        Some(Self { app, kept, hop, authority, path, is_listed, number: 0, since, block: None, upgrade: None })
    }

    async fn pass(mut self, request: Request<Incoming>) -> Answer {
        let app = self.app.clone();
        let (mut parts, incoming) = request.into_parts();
        self.upgrade = asks_upgrade(&parts.headers).then(|| parts.extensions.remove::<OnUpgrade>()).flatten();
        drop_hop_fields(&mut parts.headers, self.upgrade.is_some());
        let block = block_of(&mut parts.headers);
        // Metadata from a peer that is not an adapter is a forgery or an accident, so it is dropped.
        let may_carry = self.hop.accepts_adapters();
        if block.is_some() && !may_carry {
            app.metrics.metadata_refused.inc();
        }
        // An empty block would exempt the call from checks.
        self.block =
            block.filter(|block| may_carry && !(app.config.checks.refuses_unchecked && block.bytes.is_empty()));
        let service = if self.is_listed { app.service_or_refusal(&self.hop.endpoint) } else { Ok(None) };
        // A refused call has no service, so its response is the same as for REST.
        let service = service.map_err(|refusal| request_refused(&refusal, ProtocolKind::Rest))?;
        let service = service.filter(|service| service.family != ProtocolKind::Thrift);
        let is_sampled;
        (self.number, is_sampled) = app.next_call();
        let Some(service) = service else {
            app.metrics.skip(Skip::Unlisted);
            return self.unchecked(parts, Body::streaming(incoming)).await;
        };
        let reads_body = service.reads_body(parts.method.as_str(), &self.path);
        // An empty block means that the previous adapter did not check the call, so neither does this one.
        let is_checked = is_sampled && self.block.as_ref().is_none_or(|block| !block.bytes.is_empty());
        if let Some(reads_body) = reads_body.filter(|_| is_checked) {
            if !reads_body {
                return self.checked(&service, parts, Bytes::new(), Body::streaming(incoming)).await;
            }
            return match Body::read(incoming, &app.config.limits, &app.budget).await {
                Read::Cut(_, error) => Err(plain(StatusCode::BAD_REQUEST, format!("incomplete request: {error}\n"))),
                Read::Whole(whole, body) => {
                    self.since = crate::clock::now();
                    self.checked(&service, parts, whole, body).await
                }
                Read::Part(body, skip) => self.unread(skip, &service, parts, body).await,
            };
        }
        if self.upgrade.is_some() {
            self.refuse(Unchecked::Protocol, &service)?;
        }
        if reads_body.is_none() {
            app.unlisted(&service.name, &format!("{} {}", parts.method, self.path));
        } else {
            app.metrics.skip(Skip::Sample);
            if app.peer(&self.hop.endpoint).is_some() && self.hop.caller == Caller::Party {
                parts.headers.insert(META, HeaderValue::from_static(""));
            }
        }
        self.unchecked(parts, Body::streaming(incoming)).await
    }

    fn refuse(&self, why: Unchecked, service: &Service) -> Result<(), Failed> {
        self.app.refuse_unchecked(why).map_err(|refusal| request_refused(&refusal, service.family))
    }

    async fn unread(self, skip: Skip, service: &Service, parts: Parts, body: Body) -> Answer {
        self.refuse(skip.unread(), service)?;
        self.app.metrics.skip(skip);
        self.unchecked(parts, body).await
    }

    async fn unchecked(self, parts: Parts, body: Body) -> Answer {
        let held = self.connection().await?;
        let (response, _) = self.send(parts, body, held).await?;
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(upgrade)) = (response.status(), self.upgrade) {
            self.app.metrics.skip(Skip::Unreadable);
            return switch(&self.app, response, upgrade);
        }
        let (mut parts, body) = response.into_parts();
        drop_hop_fields(&mut parts.headers, false);
        parts.headers.remove(&META);
        Ok(Response::from_parts(parts, Body::streaming(body)))
    }

    /// Connects to the service's adapter if one is known and reachable, and otherwise to the service.
    async fn connection(&self) -> Result<Conn, Failed> {
        let hop = &self.hop;
        let peer = if hop.caller == Caller::Party && self.is_listed { self.app.live_peer(&hop.endpoint) } else { None };
        if let Some(authority) = peer {
            match self.connection_to(&authority, Whom::Peer).await {
                Ok(held) => return Ok(held),
                Err(error) => self.app.peer_failed(&authority, &error),
            }
        }
        self.connection_to(&hop.forward, hop.whom()).await.map_err(upstream_failed)
    }

    async fn connection_to(&self, authority: &str, whom: Whom) -> io::Result<Conn> {
        let pool = &self.app.pool;
        match take(&self.kept) {
            // The previous response may still be in transit; hyper reports when it has been sent.
            Some(mut last) if last.authority == authority && last.whom == whom => {
                last.is_used = true;
                if last.sender.ready().await.is_ok() {
                    return Ok(last);
                }
            }
            Some(last) => pool.put(last),
            None => {}
        }
        match pool.take(authority, whom) {
            Some(conn) => Ok(conn),
            None => open(&self.app, authority, whom).await,
        }
    }

    /// Sends a request, and resends it if the reused connection was closed. Also returns whether an adapter responded.
    async fn send(&self, parts: Parts, body: Body, mut held: Conn) -> Result<(Response<Incoming>, bool), Failed> {
        let (app, hop) = (&self.app, &self.hop);
        let mut request = Request::from_parts(self.origin_form(parts), body);
        loop {
            let is_adapter = held.whom == Whom::Peer;
            let answered = timeout(app.config.limits.answer(is_adapter), held.sender.try_send_request(request)).await;
            let Ok(answered) = answered else {
                app.late(is_adapter.then_some(&held.authority));
                return Err(plain(StatusCode::GATEWAY_TIMEOUT, "no response from the service in time\n".to_owned()));
            };
            let mut error = match answered {
                Ok(response) => {
                    *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
                    return Ok((response, is_adapter));
                }
                Err(error) => error,
            };
            // An error that contains the request means that the request was not sent.
            let Some(message) = error.take_message().filter(|_| held.is_used) else {
                return Err(reply_failed(error.into_error()));
            };
            request = message;
            held = match open(app, &held.authority, held.whom).await {
                Err(error) if is_adapter => {
                    app.peer_failed(&held.authority, &error);
                    request.headers_mut().remove(&META);
                    open(app, &hop.forward, hop.whom()).await
                }
                connected => connected,
            }
            .map_err(upstream_failed)?;
        }
    }

    /// Rewrites a request to origin form, with the host that the client intended.
    fn origin_form(&self, mut parts: Parts) -> Parts {
        let path = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
        // `Host` omits the scheme's default port, as clients do.
        let default = if self.hop.scheme == Scheme::Https { ":443" } else { ":80" };
        let host = self.authority.strip_suffix(default).unwrap_or(&self.authority);
        // A client that connects to the listener names the listener's address, but the service must see its own name.
        if self.hop.caller == Caller::Party
            && let Ok(host) = HeaderValue::from_str(host)
        {
            parts.headers.insert(HOST, host);
        }
        parts.version = hyper::Version::HTTP_11;
        parts
    }

    async fn checked(mut self, service: &Arc<Service>, mut parts: Parts, whole: Bytes, body: Body) -> Answer {
        let app = self.app.clone();
        let block = self.block.take();
        let head = RequestHead {
            method: parts.method.clone(),
            path: self.path.clone(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: parts.headers.clone(),
        };
        let content = app.decoded(&head.headers, &whole);
        if content == Err(Unread::Over) {
            return self.unread(Skip::Size, service, parts, body).await;
        }
        if matches!(content, Err(Unread::Coding(_))) {
            self.refuse(Unchecked::Encoding, service)?;
        }
        let called = app.guarded(|| service.http_request(&head, &content, app.config.checks.refuses_unchecked));
        let known = app.known_request(service, called).map_err(|refusal| request_refused(&refusal, service.family))?;
        let Some((op, request)) = known else {
            if self.upgrade.is_some() {
                self.refuse(Unchecked::Protocol, service)?;
            }
            return self.unchecked(parts, body).await;
        };
        let mut share = app.budget.share();
        let decoded_bytes = if let Ok(Cow::Owned(bytes)) = &content { bytes.capacity() } else { 0 };
        if !share.resize(decoded_bytes + request.memory_bytes()) {
            drop(request);
            drop(content);
            return self.unread(Skip::Memory, service, parts, body).await;
        }
        let mut call = InFlightCall::new(&app, &self.hop, service, op, self.number, self.since);
        let held = call.wait_for(self.connection()).await?;
        let to_adapter = held.whom == Whom::Peer;
        call.line.metadata_bytes += block.as_ref().map_or(0, |block| block.around_bytes);
        let passed = call.request(&request, block.as_ref().map(|block| &block.bytes[..]), to_adapter);
        let passed = passed.and_then(|block| match self.upgrade {
            Some(_) => app.refuse_unchecked(Unchecked::Protocol).map(|()| block),
            None => Ok(block),
        });
        match passed {
            Ok(block) => {
                let field = block.and_then(|block| field_for(&mut call, &block));
                parts.headers.extend(field.map(|field| (META, field)));
            }
            Err(refusal) => {
                app.pool.put(held);
                call.end(0);
                return Err(request_refused(&refusal, service.family));
            }
        }
        let (response, is_adapter) = call.wait_for(self.send(parts, body, held)).await?;
        if to_adapter
            && !is_adapter
            && let Err(refusal) = call.lost(&request)
        {
            call.end(0);
            return Err(request_refused(&refusal, service.family));
        }
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(upgrade)) = (response.status(), self.upgrade) {
            call.skipped(Skip::Unreadable);
            end(call, is_adapter);
            return switch(&app, response, upgrade);
        }
        let (mut parts, incoming) = response.into_parts();
        drop_hop_fields(&mut parts.headers, false);
        if is_adapter && parts.headers.get(&META).is_some_and(|meta| meta == MADE_HERE) {
            parts.headers.remove(&META);
            call.skipped(Skip::Peer);
            call.end(0);
            return Ok(Response::from_parts(parts, Body::streaming(incoming)));
        }
        let block = block_of(&mut parts.headers).filter(|_| is_adapter);
        let reads_body = call.reads_reply();
        // Clients may read a reply of unknown length as it arrives, so forward it first if nothing depends on its end.
        let is_streamed = incoming.size_hint().exact().is_none() && !is_endless(&parts.headers);
        if reads_body && is_streamed && !app.config.checks.enforce && !service.contract.introduces_by_reply(call.op.id)
        {
            drop(request);
            drop(content);
            call.pause();
            let reply_head = parts.clone();
            let done = Box::new(move |body: Result<Bytes, Skip>| {
                call.resume();
                let (app, service) = (call.app.clone(), call.service.clone());
                let content = app.decoded(&head.headers, &whole);
                let called = app.guarded(|| service.http_request(&head, &content, false));
                if let Some(RequestKind::Known(_, request)) = called {
                    let body = body.as_deref().map_err(|skip| *skip);
                    // The reply has been forwarded, so it can no longer be rejected or get another header field.
                    let _ = judge(&mut call, &request, Some((&reply_head, body)), block.as_ref());
                }
                end(call, is_adapter);
            });
            return Ok(Response::from_parts(parts, Body::watched(incoming, &app.config.limits, &app.budget, done)));
        }
        let block = block.as_ref();
        let (body, field) = if reads_body {
            let read = match is_endless(&parts.headers) {
                true => Read::Part(Body::streaming(incoming), Skip::Slow),
                false => call.wait_for(Body::read(incoming, &app.config.limits, &app.budget)).await,
            };
            match read {
                Read::Cut(_, error) if app.config.checks.refuses_unchecked => {
                    call.end(0);
                    return Err(reply_failed(error));
                }
                Read::Cut(body, error) => {
                    call.skipped(Skip::Unreadable);
                    (body.cut(error), None)
                }
                Read::Whole(whole, body) => (body, judge(&mut call, &request, Some((&parts, Ok(&whole))), block)?),
                Read::Part(body, skip) => (body, judge(&mut call, &request, Some((&parts, Err(skip))), block)?),
            }
        } else {
            let field = if call.is_enhanced() { judge(&mut call, &request, None, block)? } else { None };
            (Body::streaming(incoming), field)
        };
        parts.headers.extend(field.map(|field| (META, field)));
        end(call, is_adapter);
        Ok(Response::from_parts(parts, body))
    }
}

/// Switches to another protocol, whose bytes pass unchanged in both directions.
fn switch(app: &Arc<App>, mut response: Response<Incoming>, client: OnUpgrade) -> Answer {
    // The new protocol outlives the HTTP connection, so it needs a slot of its own.
    let Ok(slot) = app.slots.clone().try_acquire_owned() else {
        app.metrics.connections_over.inc();
        return Err(plain(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n".to_owned()));
    };
    drop_hop_fields(response.headers_mut(), true);
    response.headers_mut().remove(&META);
    let service = hyper::upgrade::on(&mut response);
    let idle = app.config.limits.idle;
    tokio::spawn(async move {
        let _slot = slot;
        let (Ok(client), Ok(service)) = (client.await, service.await) else { return };
        let (mut client, mut service) = (Stream::new(TokioIo::new(client)), Stream::new(TokioIo::new(service)));
        let _ = crate::counted_stream::copy(idle, &mut client, &mut service).await;
    });
    Ok(response.map(Body::streaming))
}

/// Whether a reply is a stream of events. Source: the HTML standard, section 9.2.
fn is_endless(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"))
}

/// Checks a reply, given with its body or the reason why that is unavailable, or only its metadata if no clause refers to
/// the reply. Returns the header field to add, if any. Skips the check of an unavailable body. If messages that cannot be
/// checked are rejected, such a reply is judged by its head, and undecided clauses may reject it.
fn judge(
    call: &mut InFlightCall,
    request: &decode::Request<'_>,
    reply: Option<(&response::Parts, Result<&[u8], Skip>)>,
    block: Option<&Block>,
) -> Result<Option<HeaderValue>, Failed> {
    let (app, service) = (call.app.clone(), call.service.clone());
    let content;
    let mut decoded = None;
    if let Some((head, body)) = reply {
        content = body.map_or(Err(Unread::Over), |body| app.decoded(&head.headers, body));
        let skip = body.err().or(match content {
            Err(Unread::Over) => Some(Skip::Size),
            Err(Unread::Coding(_)) => Some(Skip::Unreadable),
            Ok(_) | Err(Unread::Malformed(_)) => None,
        });
        if let Some(skip) = skip.filter(|_| !app.config.checks.refuses_unchecked) {
            call.skipped(skip);
            if content == Err(Unread::Over) {
                return Ok(None);
            }
        }
        decoded = app.guarded(|| service.http_reply(&call.op, head, &content));
    }
    call.line.metadata_bytes += block.map_or(0, |block| block.around_bytes);
    let judged = call.reply(request, &decoded.unwrap_or_else(Reply::opaque), block.map(|block| &block.bytes[..]));
    let block = judged.map_err(|refusal| refused(service.family, &refusal, StatusCode::BAD_GATEWAY))?;
    Ok(block.filter(|block| !block.is_empty()).and_then(|block| field_for(call, &block)))
}

fn field_for(call: &mut InFlightCall, block: &[u8]) -> Option<HeaderValue> {
    let field = field_of(block)?;
    call.line.metadata_bytes += field_bytes(&field) - block.len();
    Some(field)
}

fn end(call: InFlightCall, is_adapter: bool) {
    // Messages over HTTP keep their form between adapters, so only the metadata fields are extra.
    let extra_bytes = if is_adapter { call.line.metadata_bytes as i64 } else { 0 };
    call.end(extra_bytes);
}
