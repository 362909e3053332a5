//! HTTP server: axum on tokio's thread pool, which moves work between threads, as its documentation shows.

use std::io;
use std::net::Ipv4Addr;
use std::process::exit;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::TcpSocket;

/// The maximum N of `/bytes/N`.
const BYTES_MAX: usize = 1 << 20;
static FILL: [u8; BYTES_MAX] = [b'x'; BYTES_MAX];

async fn bytes(Path(size): Path<usize>) -> Result<&'static [u8], StatusCode> {
    FILL.get(..size).ok_or(StatusCode::NOT_FOUND)
}

async fn serve(address: Ipv4Addr, port: u16) -> io::Result<()> {
    let routes = Router::new()
        .route("/", get(|| async { "test" }))
        .route("/plaintext", get(|| async { "Hello, World!" }))
        .route("/bytes/{size}", get(bytes));
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((address, port).into())?;
    let listener = socket.listen(1 << 16)?; // the kernel caps it at net.core.somaxconn
    println!("ready {}", listener.local_addr()?.port());
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true); // broken connections are ignored
    });
    axum::serve(listener, routes).await
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
        eprintln!("usage: http-axum -p PORT [-t THREADS] [-a ADDRESS]");
        exit(2);
    };
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?.block_on(serve(address, port))
}
