//! HTTP server: hyper with a single-threaded tokio runtime and SO_REUSEPORT listener per thread, its fastest setup.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::exit;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use socket2::{Domain, Protocol, Socket, Type};

/// The maximum N of `/bytes/N`.
const BYTES_MAX: usize = 1 << 20;
static FILL: [u8; BYTES_MAX] = [b'x'; BYTES_MAX];

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, b"method not allowed"));
    }
    Ok(match request.uri().path() {
        "/" => plain(StatusCode::OK, b"test"),
        "/plaintext" => plain(StatusCode::OK, b"Hello, World!"),
        path => match path.strip_prefix("/bytes/").and_then(|size| size.parse().ok()) {
            Some(size @ ..=BYTES_MAX) => plain(StatusCode::OK, &FILL[..size]),
            _ => plain(StatusCode::NOT_FOUND, b"not found"),
        },
    })
}

fn plain(status: StatusCode, body: &'static [u8]) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn listen(address: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((address, port)).into())?;
    socket.listen(1 << 16)?; // the kernel caps it at net.core.somaxconn
    Ok(socket.into())
}

/// Runs the streams of an HTTP/2 connection on its thread.
#[derive(Clone)]
struct OwnThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for OwnThread {
    fn execute(&self, stream: F) {
        drop(tokio::task::spawn_local(stream));
    }
}

fn serve(listener: TcpListener) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        // HTTP/2 by prior knowledge, else HTTP/1.1. `pipeline_flush` could delay a response until the next request.
        let http = auto::Builder::new(OwnThread);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(1)).await; // too many files: wait for connections to close
                continue;
            };
            if stream.set_nodelay(true).is_ok() {
                let http = http.clone();
                // Broken connections are ignored.
                drop(tokio::task::spawn_local(async move {
                    http.serve_connection(TokioIo::new(stream), service_fn(answer)).await
                }));
            }
        }
    })
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (words, address) = match &words[..] {
        [words @ .., "-a", address] => (words, address.parse().ok()),
        words => (words, Some(Ipv4Addr::LOCALHOST)),
    };
    let (port, threads) = match *words {
        ["-p", port] => (port.parse().ok(), std::thread::available_parallelism().ok().map(usize::from)),
        ["-p", port, "-t", threads] => (port.parse().ok(), threads.parse().ok().filter(|threads| *threads > 0)),
        _ => (None, None),
    };
    let (Some(port), Some(threads), Some(address)) = (port, threads, address) else {
        eprintln!("usage: http-hyper -p PORT [-t THREADS] [-a ADDRESS]");
        exit(2);
    };
    let first = listen(address, port)?;
    let port = first.local_addr()?.port();
    let others = (1..threads).map(|_| listen(address, port)).collect::<io::Result<Vec<_>>>()?;
    for listener in others {
        std::thread::spawn(|| serve(listener));
    }
    println!("ready {port}");
    serve(first)
}
