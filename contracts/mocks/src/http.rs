//! The HTTP server of the mocks: hyper on tokio, with rustls for encrypted ones.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use stats::Rng;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch::{Receiver, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{MockAnswer, MockError, MockListen, MockRequest, Service, certificate};
use servers::Shutdown;

/// Maximum size of a request's head in bytes; a larger one gets 431.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Upper limit for the configured number of connections.
const CONNECTIONS_MAX: u32 = 1_000_000;
/// Interval for checking whether the server must end.
const LOOK: Duration = Duration::from_millis(20);
/// Pause after a failed accept, usually for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

type Bound = (TcpListener, Arc<dyn Service>);

struct Shared {
    listen: MockListen,
    rng: Mutex<Rng>,
}

/// Serves mocks until `shutdown` ends them, one on each address; port 0 lets the kernel choose.
/// `service` creates them once all addresses are known, since one may need another's address.
/// `ready` is called with the addresses once connections are accepted.
///
/// # Errors
/// [`MockError`], but never because of a client.
pub fn serve_mock(
    listen: &MockListen,
    addresses: &[SocketAddr],
    service: impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>>,
    shutdown: &Shutdown,
    ready: impl FnOnce(&[SocketAddr]),
) -> Result<(), MockError> {
    let bind = |address: &SocketAddr| {
        let failed = |source| MockError::Listen { address: *address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok((listener, bound))
    };
    let (listeners, bound): (Vec<_>, Vec<_>) =
        addresses.iter().map(bind).collect::<Result<Vec<_>, MockError>>()?.into_iter().unzip();
    let tls = if listen.names.is_empty() { None } else { Some(encrypt(listen)?) };
    let services = listeners.into_iter().zip(service(&bound)).collect::<Vec<Bound>>();
    let mut builder = match listen.threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads as usize);
            builder
        }
    };
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|source| MockError::Kernel { what: "start the runtime", source })?;
    let shared = Arc::new(Shared { listen: listen.clone(), rng: Mutex::new(Rng::new(listen.seed)) });
    let served = runtime.block_on(serve(services, tls, shared, shutdown, || ready(&bound)));
    // Connections that outlive the drain are closed here.
    runtime.shutdown_background();
    served
}

fn encrypt(listen: &MockListen) -> Result<TlsAcceptor, MockError> {
    let made = certificate::make(&listen.names);
    let made = made.map_err(|reason| MockError::Certificate { names: listen.names.join(", "), reason })?;
    if let Some(path) = &listen.cert_out {
        let written = std::fs::write(path, made.root_pem);
        written.map_err(|source| MockError::Write { path: path.clone(), source })?;
    }
    Ok(TlsAcceptor::from(made.config))
}

async fn serve(
    services: Vec<Bound>,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    shutdown: &Shutdown,
    ready: impl FnOnce(),
) -> Result<(), MockError> {
    let (ending, ended) = channel(false);
    let connections = shared.listen.connections.clamp(1, CONNECTIONS_MAX as usize) as u32;
    let room = Arc::new(Semaphore::new(connections as usize));
    let mut accepting = Vec::new();
    for (listener, service) in services {
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| MockError::Kernel { what: "watch a listener", source })?;
        let (tls, shared, room) = (tls.clone(), Arc::clone(&shared), Arc::clone(&room));
        accepting.push(tokio::spawn(accept(listener, service, tls, shared, room, ended.clone())));
    }
    ready();
    while !shutdown.is_asked() {
        sleep(LOOK).await;
    }
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    for task in accepting {
        let _ = task.await; // The listener is closed and its slot is free.
    }
    let _ = ending.send(true); // Nobody may be listening.
    // All slots are free when all connections have ended.
    let mut drained = pin!(timeout(shared.listen.drain, room.acquire_many(connections)));
    loop {
        tokio::select! {
            _ = &mut drained => return Ok(()),
            () = sleep(LOOK) => if shutdown.is_forced() { return Ok(()) },
        }
    }
}

async fn accept(
    listener: tokio::net::TcpListener,
    service: Arc<dyn Service>,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    ended: Receiver<bool>,
) {
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let host = stream.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let (service, shared, ended) = (Arc::clone(&service), Arc::clone(&shared), ended.clone());
        match tls.clone() {
            None => drop(tokio::spawn(connection(stream, host, service, shared, ended, permit))),
            Some(tls) => drop(tokio::spawn(async move {
                let patience = shared.listen.patience;
                if let Ok(Ok(stream)) = timeout(patience, tls.accept(stream)).await {
                    connection(stream, host, service, shared, ended, permit).await;
                }
            })),
        }
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    host: String,
    service: Arc<dyn Service>,
    shared: Arc<Shared>,
    mut ended: Receiver<bool>,
    permit: OwnedSemaphorePermit,
) {
    let idle = shared.listen.idle;
    let answer = service_fn(move |request: Request<Incoming>| {
        let (host, service, shared) = (host.clone(), Arc::clone(&service), Arc::clone(&shared));
        async move { Ok::<_, Infallible>(answer(request, &host, service.as_ref(), &shared).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    // A client's error only ends its own connection.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    drop(permit);
}

async fn answer(
    request: Request<Incoming>,
    local: &str,
    service: &dyn Service,
    shared: &Shared,
) -> Response<Full<Bytes>> {
    let listen = &shared.listen;
    let (head, body) = request.into_parts();
    let body = match timeout(listen.patience, Limited::new(body, listen.body_bytes).collect()).await {
        Err(_) => return closing(MockAnswer::text(408, "the body took too long")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return closing(MockAnswer::text(413, &format!("bodies are limited to {} bytes", listen.body_bytes)));
        }
        Ok(Err(error)) => return closing(MockAnswer::text(400, &format!("the body is not valid HTTP: {error}"))),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let delay = listen.delay.map(|law| {
        let mut rng = shared.rng.lock().unwrap_or_else(PoisonError::into_inner);
        law.sample(&mut rng).max(0.0)
    });
    if let Some(ns) = delay {
        sleep(Duration::from_nanos(ns as u64)).await;
    }
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or(local);
    let request = MockRequest { method: head.method.as_str(), target, host, headers: &head.headers, body: &body };
    response(service.answer(&request))
}

fn response(answer: MockAnswer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    if let Some(allow) = answer.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

/// A response after which the connection cannot be reused.
fn closing(answer: MockAnswer) -> Response<Full<Bytes>> {
    let mut response = response(answer);
    response.headers_mut().insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
    response
}
