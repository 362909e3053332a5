//! `quintain serve http` as a process: signals, log, memory and curl.
#![expect(clippy::disallowed_methods, reason = "these tests start programs as users do")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Folder, Server, eventually};

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, target: &str) {
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
}

fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn one_signal_drains_and_a_second_exits_at_once() {
    let server = Server::start(&["http", "--threads", "2", "--drain", "1h"]);
    let (mut late, mut later) = (connect(&server), connect(&server));
    ask(&mut late, "/delay?mean=400ms");
    ask(&mut later, "/delay?mean=60s");
    let mut other = connect(&server);
    ask(&mut other, "/");
    other.read_exact(&mut [0; 40]).unwrap(); // The server has read the earlier requests.
    server.signal("TERM");
    let mut said = String::new();
    late.read_to_string(&mut said).unwrap();
    assert!(said.contains("Connection: close\r\n") && said.ends_with("\r\n\r\ntest"), "{said}");
    server.signal("TERM");
    assert_eq!(later.read(&mut [0; 1]).unwrap_or(0), 0, "it did not wait a minute");
    assert_eq!(server.end(), "");
}

#[test]
fn true_service_times_are_logged() {
    let folder = Folder::new();
    let path = folder.path().join("log.json");
    let server = Server::start(&["http", "--log", path.to_str().unwrap()]);
    let mut stream = connect(&server);
    for _ in 0..20 {
        ask(&mut stream, "/delay?mean=2ms");
        stream.read_exact(&mut [0; 100]).unwrap();
        let mut rest = Vec::new();
        while !rest.ends_with(b"test") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            rest.push(byte[0]);
        }
    }
    drop(stream);
    server.end();
    let log: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(log["requests"], 20);
    assert!(log["service_ns"]["p50"].as_f64().unwrap() >= 2e6, "{log}");
    let server = Server::start(&["http", "--log", "-"]);
    assert!(server.end().starts_with("{\"requests\":0,"));
}

#[test]
fn generator_and_server_count_the_same_http2_requests() {
    let folder = Folder::new();
    for (threads, streams) in [("1", "100"), ("2", "4")] {
        let server = Server::start(&["http", "--threads", threads, "--streams", streams, "--log", "-"]);
        let url = format!("http://127.0.0.1:{}/delay?mean=100us&dist=exponential", server.port);
        let load = ["load", &url, "--http2", "-c", "4", "-m", "10", "-n", "2000", "--json"];
        let measured = folder.quintain(&load).expect(0).json();
        assert_eq!((&measured["requests"], &measured["statuses"]["200"]), (&2000.into(), &2000.into()));
        assert_eq!(measured["streams"]["allowed"].to_string(), streams);
        assert!(server.end().starts_with("{\"requests\":2000,"));
    }
}

#[test]
fn requests_cross_the_end_of_connections_without_errors() {
    let folder = Folder::new();
    let server = Server::start(&["http", "--requests-per-connection", "7"]);
    let url = format!("http://127.0.0.1:{}/", server.port);
    for (flags, resends) in [(&["--http2", "-m", "10"][..], true), (&["--http2"], false), (&["--pipeline", "4"], true)]
    {
        let load = ["load", &url, "-c", "4", "-n", "1400", "--warmup", "0s", "--json"];
        let json = folder.quintain(&[&load, flags].concat()).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&1400.into(), &serde_json::json!({})), "{flags:?}");
        assert!(json["reconnects"].as_u64().unwrap() >= 190, "{json}");
        assert_eq!(json["asked_again"].as_u64().unwrap() > 100, resends, "{flags:?}");
    }
}

#[test]
fn https_serves_both_versions_of_http() {
    let folder = Folder::new();
    let root = folder.path().join("root.pem");
    let root = root.to_str().unwrap();
    for backend in ["epoll", "auto"] {
        let flags = ["http", "--tls", "--cert-out", root, "--log", "-", "--threads", "2", "--backend", backend];
        let server = Server::start(&flags);
        let url = format!("https://localhost:{}/bytes/100000", server.port);
        for more in [&["--http2", "-m", "10"][..], &["--pipeline", "3"], &["--no-keepalive"]] {
            let args = ["load", &url, "--cacert", root, "-c", "4", "-n", "200", "--warmup", "0s", "--json"];
            let json = folder.quintain(&[&args, more].concat()).expect(0).json();
            assert_eq!((&json["requests"], &json["errors"]), (&200.into(), &serde_json::json!({})), "{more:?}");
            assert!(json["received_bytes"].as_u64().unwrap() >= 200 * 100_000, "{json}");
        }
        let untrusting = folder.quintain(&["load", &url, "-n", "1"]).expect(3).err;
        assert!(untrusting.contains("certificate"), "{untrusting}");
        let mut plain = connect(&server);
        ask(&mut plain, "/");
        let mut alert = Vec::new();
        plain.read_to_end(&mut alert).unwrap();
        assert_eq!(alert.first(), Some(&21), "a TLS alert");
        assert!(server.end().starts_with("{\"requests\":0,"), "only delayed requests are timed");
    }
}

/// Endless requests and endless pipelining must cost almost no memory.
#[test]
fn memory_is_bounded() {
    let server = Server::start(&["http", "--max-body", "1GiB"]);
    let mut stream = connect(&server);
    ask(&mut stream, "/");
    stream.read_exact(&mut [0; 40]).unwrap();
    let before = peak(&server);

    let flood = |head: &[u8], more: &[u8], bytes: usize| {
        let mut stream = connect(&server);
        let mut written = stream.write(head).unwrap();
        while written < bytes {
            match stream.write(more) {
                Ok(count) => written += count,
                Err(_) => break, // The server has reported the error, waited, and closed the connection.
            }
        }
        stream
    };
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n";
    let fields = flood(head, &b"X-Field: yes\r\n".repeat(1000), 30_000_000);
    let chunks = b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = flood(chunks, &[b"4000\r\n", [b'x'; 0x4000].as_slice(), b"\r\n"].concat(), 200_000_000);
    let pipeline = {
        // If the client does not read responses, the server eventually stops reading.
        let mut stream = connect(&server);
        stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let requests = b"GET /bytes/10000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
        while stream.write_all(&requests).is_ok() {}
        stream
    };
    let mut endless = connect(&server);
    ask(&mut endless, "/bytes/1099511627776");
    for _ in 0..2_000 {
        endless.read_exact(&mut [0; 65_536]).unwrap();
    }
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
            stream
        })
        .collect();
    ask(&mut stream, "/");
    stream.read_exact(&mut [0; 40]).unwrap();
    let grown = peak(&server) - before;
    assert!(grown < 4_000_000, "{grown} bytes more than at first");
    drop((fields, body, pipeline, endless, slow));
}

#[test]
fn curl_can_use_the_server() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("not checked: curl is not installed");
        return;
    }
    let folder = Folder::new();
    let body: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    folder.write("body", &body);
    for backend in ["auto", "epoll"] {
        let server = Server::start(&["http", "--threads", "2", "--backend", backend]);
        let base = format!("http://127.0.0.1:{}", server.port);
        let curl = |args: &[&str], target: &str| {
            let url = format!("{base}{target}");
            let mut command = Command::new("curl");
            command.args(["-sS", "--max-time", "60", "-w", "\n%{http_code} %{num_connects}"]).args(args).arg(url);
            let output = command.current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{args:?} {target}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(curl(&[], "/"), "test\n200 1");
        assert_eq!(curl(&["--http1.0"], "/plaintext"), "Hello, World!\n200 1");
        assert_eq!(curl(&["--http1.0"], "/chunked/10"), "ABCDEFGHIJ\n200 1");
        assert_eq!(curl(&[], "/chunked/10?chunk=3"), "ABCDEFGHIJ\n200 1");
        assert_eq!(curl(&["-o", "discarded"], "/bytes/3000000"), "\n200 1");
        assert_eq!(folder.path().join("discarded").metadata().unwrap().len(), 3_000_000);
        assert_eq!(curl(&["-o", "discarded"], "/nowhere"), "\n404 1");
        assert!(curl(&["-I"], "/bytes/3000000").contains("\r\nContent-Length: 3000000\r\n"));
        // curl waits for `100 Continue` with bodies above 1 MiB; `-T -` sends chunks.
        assert_eq!(curl(&["--data-binary", "@body"], "/echo"), format!("{body}\n200 1"));
        assert_eq!(curl(&["--data-binary", "@body", "-H", "Expect: 100-continue"], "/echo"), format!("{body}\n200 1"));
        assert_eq!(curl(&["-T", "body", "-H", "Transfer-Encoding: chunked"], "/echo"), format!("{body}\n200 1"));
        let http2 = "--http2-prior-knowledge";
        assert_eq!(curl(&[http2], "/chunked/10?chunk=3"), "ABCDEFGHIJ\n200 1");
        assert_eq!(curl(&[http2, "-o", "discarded"], "/bytes/3000000"), "\n200 1");
        assert_eq!(curl(&[http2, "--data-binary", "@body"], "/echo"), format!("{body}\n200 1"));
        assert_eq!(curl(&[http2, "-X", "DELETE", "-o", "discarded"], "/json"), "\n405 1");
        // The second of two requests reuses the connection of the first.
        let url = format!("{base}/json");
        assert!(curl(&["-o", "discarded", &url, "-o", "discarded"], "/").ends_with("\n200 0"));
    }
}

#[test]
fn wrong_flags_are_reported() {
    let folder = Folder::new();
    for (args, said) in [
        (&["serve", "http", "--max-head", "big"][..], "big"),
        (&["serve", "http", "--max-headers", "1000"], "256"),
        (&["serve", "http", "--unix", "a", "--port", "1"], "cannot be used with"),
        (&["serve", "http", "--idle-timeout", "60"], "unit"),
        (&["serve", "http", "--connections", "0"], "1..=1000000"),
        (&["serve", "http", "--unix", "no/such/folder/socket"], "no/such/folder/socket"),
    ] {
        let ran = folder.quintain(args);
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
    let server = Server::start(&["http"]);
    let ran = folder.quintain(&["serve", "http", "-p", &server.port.to_string()]).expect(2);
    assert!(ran.err.contains("= help: `-p 0` picks a free port"), "{}", ran.err);
    eventually("it still serves", || TcpStream::connect(("127.0.0.1", server.port)).ok());
}
