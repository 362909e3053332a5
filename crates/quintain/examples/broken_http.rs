//! An HTTP server with the one defect that its first argument names, or without defects (`none`). The requirements are
//! in subjects/REQUIREMENTS.md. It uses a blocking thread per connection, so that each defect takes one line.

#![allow(clippy::print_stderr)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::process::exit;
use std::sync::Mutex;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, listen, socket, sockopt};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [defect, _, port] = &arguments[..] else { panic!("usage: broken_http DEFECT -p PORT") };
    if defect == "says-it-cannot" {
        eprintln!("cannot run here: no such thing");
        exit(69);
    }
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    if defect != "no-reuseaddr" {
        sockopt::set_socket_reuseaddr(&listener, true).expect("SO_REUSEADDR");
    }
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.parse().expect("a port"));
    if let Err(error) = bind(&listener, &address) {
        eprintln!("bind: {error}: address already in use");
        exit(1);
    }
    listen(&listener, 4096).expect("listen");
    let defect: &'static str = defect.clone().leak();
    for stream in TcpListener::from(listener).incoming() {
        let Ok(stream) = stream else { continue };
        if defect != "nagle" {
            stream.set_nodelay(true).expect("TCP_NODELAY");
        }
        let mut connection = Connection { defect, stream, bytes: Vec::new() };
        if defect == "one-client-at-a-time" {
            connection.serve();
        } else {
            std::thread::spawn(move || {
                connection.serve();
                if defect == "leaks-connections" {
                    std::mem::forget(connection);
                }
            });
        }
    }
}

struct Connection {
    defect: &'static str,
    stream: TcpStream,
    /// Received bytes of requests that have no response yet.
    bytes: Vec<u8>,
}

struct Request {
    method: String,
    path: String,
    is_1_0: bool,
    close: bool,
    used: usize,
}

struct Garbage;

/// Lock that the defect `sends-under-one-lock` holds while it sends a response.
static LOCK: Mutex<()> = Mutex::new(());

impl Connection {
    fn is(&self, defect: &str) -> bool {
        self.defect == defect
    }

    fn serve(&mut self) {
        while self.fill() {
            if self.is("drops-partial-requests") && !self.bytes.ends_with(b"\r\n\r\n") {
                self.bytes.clear();
            }
            if self.is("waits-for-more") && !self.bytes.ends_with(b"\r\n\r\n") && self.bytes.starts_with(b"GET ") {
                continue; // as hyper's pipeline_flush does
            }
            if !self.answer_all() {
                self.linger();
                return;
            }
        }
    }

    /// Waits for further requests before closing, so that they do not cause a reset.
    fn linger(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(200)));
        while self.stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    }

    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(got) => {
                self.bytes.extend_from_slice(&buffer[..got]);
                true
            }
            Err(error) => {
                if self.is("dies-at-a-reset") && error.kind() == ErrorKind::ConnectionReset {
                    exit(1);
                }
                false
            }
        }
    }

    fn answer_all(&mut self) -> bool {
        let mut count = 0;
        let mut answers = Vec::new();
        loop {
            let request = match self.next() {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(Garbage) => {
                    match self.defect {
                        "dies-of-garbage" => exit(1),
                        "hangs-at-garbage" => std::thread::sleep(Duration::from_secs(60)),
                        "takes-garbage" => drop(self.send(200, b"test", false, false)),
                        _ => drop(self.send(400, b"bad request", false, true)),
                    }
                    return false;
                }
            };
            self.bytes.drain(..request.used);
            count += 1;
            if self.is("one-answer-a-read") && count > 1 {
                continue;
            }
            if self.is("answers-backwards") {
                answers.push(request);
                continue;
            }
            if !self.answer(&request) {
                return false;
            }
        }
        while let Some(request) = answers.pop() {
            if !self.answer(&request) {
                return false;
            }
        }
        true
    }

    fn next(&self) -> Result<Option<Request>, Garbage> {
        let find = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
        if self.is("answers-early") && self.bytes.starts_with(b"GET / HTTP/1.1\r\n") && self.bytes.len() < 30 {
            let (method, path) = ("GET".to_owned(), "/".to_owned());
            return Ok(Some(Request { method, path, is_1_0: false, close: true, used: self.bytes.len() }));
        }
        let Some(end) = find(&self.bytes, b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&self.bytes[..end]).map_err(|_| Garbage)?;
        let mut lines = head.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, path, version @ ("HTTP/1.0" | "HTTP/1.1")] = words[..] else { return Err(Garbage) };
        let (mut lengths, mut chunked, mut close) = (Vec::new(), false, version == "HTTP/1.0");
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Garbage)?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => lengths.push(value.trim().parse::<usize>().map_err(|_| Garbage)?),
                "transfer-encoding" => chunked = true,
                "connection" => close = value.trim().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        lengths.dedup();
        let body = &self.bytes[end + 4..];
        let ignored = self.is("reads-bodies-as-requests");
        let length = match lengths[..] {
            _ if chunked && ignored => 0,
            _ if chunked => match find(body, b"0\r\n\r\n") {
                Some(last) => last + 5,
                None => return Ok(None),
            },
            [] => 0,
            [_] if ignored => 0,
            [length] if length <= body.len() => length,
            [_] => return Ok(None),
            _ => return Err(Garbage),
        };
        let (method, path) = (method.to_owned(), path.to_owned());
        Ok(Some(Request { method, path, is_1_0: version == "HTTP/1.0", close, used: end + 4 + length }))
    }

    fn answer(&mut self, request: &Request) -> bool {
        let head = request.method == "HEAD" && !self.is("sends-a-body-to-head");
        let size = request.path.strip_prefix("/bytes/").and_then(|size| size.parse::<usize>().ok());
        let (status, body) = match request.path.as_str() {
            "/" if self.is("another-body") => (200, b"tset".to_vec()),
            "/" if self.is("another-status") => (201, b"test".to_vec()),
            "/" => (200, b"test".to_vec()),
            "/plaintext" => (200, b"Hello, World!".to_vec()),
            _ if self.is("has-no-bytes") => (404, b"not found".to_vec()),
            _ if self.is("knows-everything") && size.is_none() => (200, b"test".to_vec()),
            _ => match size {
                Some(size) => (200, vec![b'x'; if self.is("cuts-bytes") { size.min(1000) } else { size }]),
                None => (404, b"not found".to_vec()),
            },
        };
        let close = match self.defect {
            "ignores-close" if !request.is_1_0 => false,
            "keeps-http-1.0" if request.is_1_0 => false,
            "closes-in-silence" => true,
            "closes-at-404" if status == 404 => true,
            _ => request.close,
        };
        self.send(status, &body, head, close) && !close
    }

    /// Sends a response. Returns whether the client is still connected.
    fn send(&mut self, status: u16, body: &[u8], head: bool, close: bool) -> bool {
        let length = if self.is("lies-to-head") && head { 0 } else { body.len() };
        let mut bytes = format!("HTTP/1.1 {status} Whatever\r\n").into_bytes();
        let chunked = self.is("sends-chunks") && !body.is_empty();
        bytes.extend(match chunked {
            true => b"Transfer-Encoding: chunked\r\n".to_vec(),
            false => format!("Content-Length: {length}\r\n").into_bytes(),
        });
        if close {
            bytes.extend(b"Connection: close\r\n");
        }
        bytes.extend(b"\r\n");
        match head {
            true => {}
            false if chunked => {
                bytes.extend(format!("{:x}\r\n", body.len()).bytes());
                bytes.extend([body, b"\r\n0\r\n\r\n"].concat());
            }
            false => bytes.extend(body),
        }
        if self.is("sends-too-much") {
            bytes.extend(b"\r\n\r\n");
        }
        let _lock = self.is("sends-under-one-lock").then(|| LOCK.lock());
        self.stream.write_all(&bytes).is_ok()
    }
}
