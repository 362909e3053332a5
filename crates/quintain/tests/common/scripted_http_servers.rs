//! Small HTTP servers that respond correctly or incorrectly as scripted, to test the generator.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest";

/// Script of a server: its response to each request.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    Answer(&'static [u8]),
    AnswerAndClose(&'static [u8]),
    AnswerAndWait(&'static [u8]),
    /// Responds with the head and body of the request as the body.
    Echo,
    Silence,
}

/// Server in threads of the test process. It ends when dropped or with the process.
#[derive(Debug)]
pub struct Scripted {
    /// Address `host:port` for TCP; empty for a Unix socket.
    pub address: String,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
    /// Number of connections that the client closed cleanly, with `close_notify` over TLS.
    closed: AtomicU64,
    ended: AtomicBool,
    first: Mutex<Vec<u8>>,
    lines: Mutex<BTreeMap<String, u64>>,
}

impl Scripted {
    pub fn start(does: Does) -> Self {
        Self::on("127.0.0.1:0", does).unwrap()
    }

    /// Listens on `address`. Fails if the machine does not have this address.
    pub fn on(address: &str, does: Does) -> std::io::Result<Self> {
        Self::over(address, move |stream, seen| serve(stream, does, seen))
    }

    pub fn tls(config: Arc<ServerConfig>, does: Does) -> Self {
        Self::over("127.0.0.1:0", move |stream, seen| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(StreamOwned::new(connection, stream), does, seen);
        })
        .unwrap()
    }

    fn over(
        address: &str,
        serve: impl Fn(std::net::TcpStream, &Seen) + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let server = Self { address: listener.local_addr()?.to_string(), seen: Arc::default() };
        let seen = Arc::clone(&server.seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if seen.ended.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), serve, seen) = (stream, serve.clone(), Arc::clone(&seen)) else { continue };
                let _ = stream.set_nodelay(true);
                let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
                std::thread::spawn(move || serve(stream, &seen));
            }
        });
        Ok(server)
    }

    pub fn unix(path: &Path, does: Does) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let server = Self { address: String::new(), seen: Arc::default() };
        let seen = Arc::clone(&server.seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), seen) = (stream, Arc::clone(&seen)) else { continue };
                std::thread::spawn(move || serve(stream, does, &seen));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub fn closed(&self) -> u64 {
        self.seen.closed.load(Ordering::Relaxed)
    }

    pub fn requests_of(&self, line: &str) -> u64 {
        self.seen.lines.lock().unwrap().get(line).copied().unwrap_or(0)
    }

    pub fn first(&self) -> String {
        String::from_utf8_lossy(&self.seen.first.lock().unwrap()).into_owned()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.seen.ended.store(true, Ordering::Relaxed);
        let _ = std::net::TcpStream::connect(&self.address);
    }
}

/// Serves one connection. The body of a request has as many bytes as its `Content-Length` says.
fn serve(mut stream: impl Read + Write, does: Does, seen: &Seen) {
    seen.connections.fetch_add(1, Ordering::Relaxed);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
    loop {
        let mut answers = Vec::new();
        while let Some(end) = request_end(&bytes) {
            let request = bytes.drain(..end).collect::<Vec<_>>();
            if seen.requests.fetch_add(1, Ordering::Relaxed) == 0 {
                seen.first.lock().unwrap().clone_from(&request);
            }
            let text = String::from_utf8_lossy(&request);
            let line = text.split(" HTTP/").next().unwrap_or_default();
            *seen.lines.lock().unwrap().entry(line.to_owned()).or_default() += 1;
            match does {
                Does::Answer(answer) => answers.extend_from_slice(answer),
                Does::AnswerAndClose(answer) => {
                    let _ = stream.write_all(answer).and_then(|()| stream.flush());
                    return;
                }
                Does::AnswerAndWait(answer) => {
                    let _ = stream.write_all(answer).and_then(|()| stream.flush());
                    let is_closed = matches!(stream.read(&mut buffer), Ok(0));
                    seen.closed.fetch_add(u64::from(is_closed), Ordering::Relaxed);
                    return;
                }
                Does::Echo => {
                    answers.extend_from_slice(
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.len()).as_bytes(),
                    );
                    answers.extend_from_slice(&request);
                }
                Does::Silence => {}
            }
        }
        if stream.write_all(&answers).and_then(|()| stream.flush()).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

fn request_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let end = head + length.unwrap_or(0);
    (bytes.len() >= end).then_some(end)
}

/// Creates a self-signed certificate for these names, and a server configuration that uses it.
pub fn certificate(names: &[&str]) -> (String, Arc<ServerConfig>) {
    let names = names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    (cert.pem(), Arc::new(config))
}
