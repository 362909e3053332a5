//! Serves the mocks over HTTP, with TLS if configured.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use stats::Rng;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::sync::watch::{Receiver, channel};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{MockError, MockListen, MockRequest, Service, respond_text, tls_config, with_field};
use servers::{ServeError, Shutdown};

/// Maximum size of a request's head in bytes; a larger one gets 431.
const HEAD_BYTES_MAX: usize = 64 << 10;
const CONNECTIONS_MAX: usize = 1_000_000;
const LOOK: Duration = Duration::from_millis(20);
/// Pause after a failed accept, which usually means that no descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

struct Server {
    listen: MockListen,
    rng: Mutex<Rng>,
    tls: Option<TlsAcceptor>,
    /// One permit per connection. The semaphore is never closed.
    room: Arc<Semaphore>,
    ended: Receiver<bool>,
}

/// Serves mocks until `shutdown` ends them, one on each address; port 0 lets the kernel choose. `services` creates them
/// once all addresses are known, since a mock may need another's address. `ready` is called with the addresses once
/// connections are accepted. Fails with [`MockError`], but never because of a client.
pub fn serve_mock(
    listen: &MockListen,
    addresses: &[SocketAddr],
    services: impl FnOnce(&[SocketAddr]) -> Vec<Arc<dyn Service>>,
    shutdown: &Shutdown,
    ready: impl FnOnce(&[SocketAddr]),
) -> Result<(), MockError> {
    let mut builder = if listen.threads > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    let runtime = builder.worker_threads(listen.threads.max(1) as usize).enable_all().build();
    let runtime = runtime.map_err(|source| ServeError::Kernel { what: "start the runtime", source })?;
    let served = runtime.block_on(async {
        let (mut listeners, mut bound) = (Vec::new(), Vec::new());
        for &address in addresses {
            let failed = |source| ServeError::Listen { address: address.into(), source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            bound.push(listener.local_addr().map_err(failed)?);
            listeners.push(listener);
        }
        let tls = (!listen.names.is_empty()).then(|| tls_config(&listen.names, listen.cert_out.as_deref()));
        let tls = tls.transpose()?.map(|config| TlsAcceptor::from(Arc::new(config)));
        let (ending, ended) = channel(false);
        let connections = listen.connections.clamp(1, CONNECTIONS_MAX);
        let (rng, room) = (Mutex::new(Rng::new(listen.seed)), Arc::new(Semaphore::new(connections)));
        let server = Arc::new(Server { listen: listen.clone(), rng, tls, room, ended });
        let start = |(listener, service)| tokio::spawn(accept(listener, service, Arc::clone(&server)));
        let accepting = listeners.into_iter().zip(services(&bound)).map(start).collect::<Vec<_>>();
        ready(&bound);
        while !shutdown.is_asked() {
            sleep(LOOK).await;
        }
        accepting.iter().for_each(tokio::task::JoinHandle::abort);
        for task in accepting {
            let _ = task.await; // The listener is closed and its slot is free.
        }
        let _ = ending.send(true); // Fails harmlessly if no connection is open.
        let mut drained = pin!(timeout(listen.drain, server.room.acquire_many(connections as u32)));
        loop {
            tokio::select! {
                _ = &mut drained => return Ok(()),
                () = sleep(LOOK) => if shutdown.is_forced() { return Ok(()) },
            }
        }
    });
    runtime.shutdown_background();
    served
}

async fn accept(listener: TcpListener, service: Arc<dyn Service>, server: Arc<Server>) {
    loop {
        let Ok(permit) = Arc::clone(&server.room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (service, server) = (Arc::clone(&service), Arc::clone(&server));
        tokio::spawn(async move {
            let local = stream.local_addr().map(|address| address.to_string()).unwrap_or_default();
            let context = (local.as_str(), service.as_ref(), &*server);
            match &server.tls {
                None => serve_connection(stream, context).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(server.listen.patience, tls.accept(stream)).await {
                        serve_connection(stream, context).await;
                    }
                }
            }
            drop(permit);
        });
    }
}

type Context<'c> = (&'c str, &'c dyn Service, &'c Server);

async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin, context: Context<'_>) {
    let (_, _, server) = context;
    let answer = |request| async move { Ok::<_, Infallible>(answer(request, context).await) };
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.listen.idle)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let (mut connection, mut ended) = (pin!(connection), server.ended.clone());
    // A client's error ends only its own connection.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn answer(request: Request<Incoming>, (local, service, server): Context<'_>) -> Response<Full<Bytes>> {
    let listen = &server.listen;
    let (mut head, body) = request.into_parts();
    let closing = |status, text: &str| with_field(respond_text(status, text), CONNECTION, "close").map(Full::new);
    let body = match timeout(listen.patience, Limited::new(body, listen.body_bytes).collect()).await {
        Err(_) => return closing(408, "the body took too long"),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return closing(413, &format!("bodies are limited to {} bytes", listen.body_bytes));
        }
        Ok(Err(error)) => return closing(400, &format!("the body is not valid HTTP: {error}")),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let delay = listen.delay.map(|law| {
        let mut rng = server.rng.lock().unwrap_or_else(PoisonError::into_inner);
        law.sample(&mut rng).max(0.0)
    });
    if let Some(ns) = delay {
        sleep(Duration::from_nanos(ns as u64)).await;
    }
    if let Ok(local) = HeaderValue::from_str(local) {
        head.headers.entry(HOST).or_insert(local);
    }
    service.answer(&MockRequest::from_parts(head, body)).map(Full::new)
}
