//! Malicious input and failures around the adapter: calls pass, and reports are clear.

mod claimed_labels_and_blame;
mod damaged_and_full_stores;
mod enforce_bypass;
mod peer_adapters;
#[path = "../web/raw_http_peers.rs"]
mod raw_http_peers;
#[path = "../calculator/world.rs"]
mod world;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use raw_http_peers::{contract_file, exchange, request, response};
use world::{Adapter, file, free_port};

fn metrics(adapter: &Adapter) -> String {
    adapter.running.as_ref().unwrap().metrics()
}

/// Waits until the metrics include `line`. Counters change after the response is sent or the connection closed.
#[track_caller]
fn counted(adapter: &Adapter, line: &str) {
    let is_there = |metrics: &str| metrics.lines().any(|known| known.strip_prefix("quintain_adapter_") == Some(line));
    for _ in 0..250 {
        if is_there(&metrics(adapter)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{line}\n{}", metrics(adapter));
}

fn rest(contract: &str, more: &str) -> (Adapter, String) {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    rest_at(port, contract, more)
}

fn rest_at(port: u16, contract: &str, more: &str) -> (Adapter, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), contract);
    let endpoint = format!("http://127.0.0.1:{port}");
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\n\
         [protocols.Any]\nkind = 'rest'\n{more}"
    ));
    let at = adapter.at(&format!("consuming {endpoint}"));
    (adapter, at)
}

fn post(at: &str, body: &[u8]) {
    let got = raw_http_peers::ask(at, &request("POST", "/", &[("Content-Type", "application/json")], body));
    assert!(got.status() == 200 && got.body == body, "{} {}", got.status(), got.text());
}

#[test]
fn expensive_clauses_stop_at_the_step_limit() {
    const BOMB: &str = r#"contract 1
service Any { POST "/"(body) { ensures bomb: all(a in body : all(b in body : all(c in body : all(d in body : a + b + c + d >= 0)))) } }
"#;
    let (adapter, at) = rest(BOMB, "[checks]\nsteps = 20000\n");
    let body = format!("[{}0]", "1,".repeat(2000));
    post(&at, body.as_bytes());
    counted(&adapter, "verdicts_total{verdict=\"error\"} 1");
    let told = adapter.told();
    assert!(told.contains("Broken postcondition") && told.contains("step limit exceeded"), "{told}");
    assert!(!told.contains("Failed postcondition"), "an abandoned check is not a failure: {told}");
}

#[test]
fn malformed_or_large_json_passes_and_is_unknown() {
    const ASKS: &str = "contract 1\nservice Any { POST \"/\"(body) { requires a: body.a > 0 } }\n";
    let (adapter, at) = rest(ASKS, "");
    let wide = format!("{{\"a\": [{}0]}}", "0,".repeat(1_500_000));
    let bodies: [&[u8]; 7] = [
        &b"[".repeat(100_000),
        &b"{\"a\":".repeat(100_000),
        b"{\"a\": 1, \"a\": -1}",
        b"{\"a\": \"\xff\xfe\"}",
        b"{\"a\": 1e999999}",
        wide.as_bytes(),
        b"\x00\x01\x02",
    ];
    for body in bodies {
        post(&at, body);
    }
    counted(&adapter, "verdicts_total{verdict=\"holds\"} 0");
    counted(&adapter, "verdicts_total{verdict=\"fails\"} 0");
    counted(&adapter, "panics_total 0");
    counted(&adapter, "calls_total 7");
}

#[test]
fn json_over_limits_blames_no_party_for_its_type() {
    const TYPED: &str = "contract 1\nservice Any { POST \"/\"(body: {a: list<int>}) -> {a: list<int>}; }\n";
    let (adapter, at) = rest(TYPED, "[checks]\nenforce = true\nunchecked = 'pass'\n");
    let wide = format!("{{\"a\": [{}0]}}", "0,".repeat(1_500_000));
    let bodies: [&[u8]; 7] = [
        &b"[".repeat(100_000),
        &b"{\"a\":".repeat(100_000),
        wide.as_bytes(),
        b"{\"a\": [18446744073709551615]}",
        b"{\"a\": [0, 99999999999999999999999]}",
        b"{\"a\": [1e999]}",
        b"{\"a\": [0], \"b\": \"\\ud800\"}",
    ];
    for body in bodies {
        post(&at, body);
    }
    counted(&adapter, "verdicts_total{verdict=\"fails\"} 0");
    counted(&adapter, "verdicts_total{verdict=\"unknown\"} 14");
    counted(&adapter, "panics_total 0");
}

#[test]
fn xml_with_entities_or_depth_passes_unread() {
    let port = raw_http_peers::serve(None, |request| (response(200, "text/xml", &request.body), false));
    let endpoint = format!("http://127.0.0.1:{port}/");
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{}'\n[[consuming]]\nservice = 'Chess'\nendpoint = '{endpoint}'\n\
         [protocols.Chess]\nkind = 'soap'\nwsdl = '{}'\n",
        file("contract/contracts/chess.contract").display(),
        file("codecs/schemas/chess.wsdl").display(),
    ));
    let at = adapter.at(&format!("consuming {endpoint}"));
    let laughs = r#"<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
        <!ENTITY x SYSTEM "file:///etc/passwd">]><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
        <MakeGame xmlns="http://www.bennedik.com/webservices/XfccBasic"><whiteUser>&b;&x;</whiteUser></MakeGame></e:Body></e:Envelope>"#;
    let deep = "<a>".repeat(200_000);
    let attributes = format!("<a {}/>", (0..50_000).map(|n| format!("a{n}='' ")).collect::<String>());
    let texts = [laughs, &deep, &attributes, "<", "", "\u{feff}"];
    for text in texts {
        let got = raw_http_peers::ask(&at, &request("POST", "/", &[("Content-Type", "text/xml")], text.as_bytes()));
        assert!(got.status() == 200 && got.body == text.as_bytes());
    }
    counted(&adapter, &format!("unchecked_total{{reason=\"unreadable\"}} {}", texts.len()));
    counted(&adapter, "panics_total 0");
}

/// The start of a Thrift message: a strict binary call of `add`.
const ADD: &[u8] = b"\x80\x01\x00\x01\x00\x00\x00\x03add\x00\x00\x00\x07";

fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

#[test]
fn thrift_with_false_lengths_or_depth_passes_unread() {
    // The service returns all bytes without decoding them, since they may not be a message.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all);
                let _ = stream.write_all(&all);
            });
        }
    });
    let at = format!("127.0.0.1:{port}");
    let adapter = Adapter::start(
        "client",
        &world::contract("plain"),
        &format!("[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'"),
    );
    let through = adapter.at(&format!("consuming {at}"));
    let message = |fields: &[u8]| frame(&[ADD, fields].concat());
    let deep = message(&[b"\x0c\x00\x01".repeat(50_000), vec![0; 50_001]].concat());
    let text = message(b"\x0b\x00\x01\x7f\xff\xff\xff");
    let list = message(b"\x0f\x00\x01\x03\x7f\xff\xff\xff");
    let negative = message(b"\x0b\x00\x01\xff\xff\xff\xff\x00");
    let huge_frame = [b"\x7f\xff\xff\xff".as_slice(), ADD].concat();
    let cut = message(b"\x08\x00\x01\x00\x00")[..20].to_vec();
    let unframed = [ADD, b"\x0b\x00\x01\x7f\xff\xff\xff"].concat();
    for bytes in [deep, text, list, negative, huge_frame, cut, unframed] {
        let mut stream = TcpStream::connect(&through).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&bytes).unwrap();
        let back = raw_http_peers::to_the_end(stream);
        // An incomplete frame may be forwarded only in part.
        assert!(back == bytes || bytes.starts_with(b"\x7f\xff"), "{} of {} bytes", back.len(), bytes.len());
    }
    counted(&adapter, "panics_total 0");
    counted(&adapter, "verdicts_total{verdict=\"fails\"} 0");
}

#[test]
fn dead_and_slow_services_fail_calls_in_time() {
    const ANY: &str = "contract 1\nservice Any { POST \"/\"(body) { ensures fine: result.code == 200 } }\n";
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), ANY);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_at = silent.local_addr().unwrap().to_string();
    let dead_at = format!("127.0.0.1:{}", free_port());
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[protocols.Any]\nkind = 'rest'\n[limits]\nrequest = '300ms'\nconnect = '300ms'\n\
         [[consuming]]\nservice = 'Any'\nendpoint = 'http://{silent_at}'\n[[consuming]]\nservice = 'Any'\nendpoint = 'http://{dead_at}'\n"
    ));
    for (at, status) in [(&silent_at, 504), (&dead_at, 502)] {
        for (method, target) in [("POST", "/"), ("GET", "/unlisted")] {
            let through = adapter.at(&format!("consuming http://{at}"));
            assert_eq!(
                raw_http_peers::ask(&through, &request(method, target, &[], b"")).status(),
                status,
                "{method} {target}"
            );
        }
    }
    counted(&adapter, "timeouts_total 2");
    counted(&adapter, "upstream_failed_total 2");
    drop(silent);
}

#[test]
fn endless_replies_are_forwarded_unchecked() {
    const ANY: &str = "contract 1\nservice Any { GET \"/events\"() { ensures fine: result.code == 200 }  GET \"/drip\"() { ensures fine: result.code == 200 } }\n";
    let port = raw_http_peers::serve(None, |request| {
        let kind = if request.start.contains("/events") { "text/event-stream" } else { "text/plain" };
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n");
        (head.into_bytes(), false)
    });
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), ANY);
    let endpoint = format!("http://127.0.0.1:{port}");
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[protocols.Any]\nkind = 'rest'\n[limits]\nrequest = '300ms'\ndrain = '100ms'\n\
         [[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\n"
    ));
    for target in ["/events", "/drip"] {
        let mut stream = TcpStream::connect(adapter.at(&format!("consuming {endpoint}"))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&request("GET", target, &[], b"").to_bytes(1)).unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"first\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
    }
    counted(&adapter, "unchecked_total{reason=\"slow\"} 2");
}

#[test]
fn rejects_long_heads_and_closes_incomplete_requests() {
    const ANY: &str = "contract 1\nservice Any { POST \"/\"(body); }\n";
    let (_adapter, at) = rest(ANY, "[limits]\nhead = '8KiB'\nidle = '300ms'\n");
    let long = "x".repeat(100_000);
    let got = exchange(
        &mut raw_http_peers::connect(&at),
        &request("POST", "/", &[("X-Long", &long)], b"").to_bytes(1),
        false,
    );
    assert!(got.is_err() || got.unwrap().status() == 431);
    let mut half = TcpStream::connect(&at).unwrap();
    half.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    half.write_all(b"POST / HTTP/1.1\r\nHost: x\r\n").unwrap();
    let mut rest = Vec::new();
    half.read_to_end(&mut rest).unwrap();
}

#[test]
fn opens_no_tunnel_without_a_free_slot() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let adapter = Adapter::start(
        "client",
        &world::contract("plain"),
        &format!(
            "proxy = '127.0.0.1:0'\n[limits]\nconnections = 2\ndrain = '100ms'\n[[consuming]]\nservice = 'Adder'\nendpoint = '127.0.0.1:{port}'"
        ),
    );
    let open = || {
        let mut connection = raw_http_peers::connect(&adapter.at("proxy"));
        let connect = request("CONNECT", &format!("127.0.0.1:{port}"), &[], b"");
        let got = exchange(&mut connection, &connect.to_bytes(1), true).unwrap();
        (got.status(), connection)
    };
    // The tunnel keeps one slot, and the connection that requests the second tunnel has the other.
    let (first, _tunnel) = open();
    let (second, connection) = open();
    assert_eq!((first, second), (200, 503));
    drop((_tunnel, connection));
    let again = std::iter::repeat_with(|| open().0).take(200).find(|status| {
        std::thread::sleep(Duration::from_millis(10));
        *status == 200
    });
    assert_eq!(again, Some(200));
}

const LINES: &str = "contract 1\nservice Any { GET \"/{what}\"(what) { ensures fine: len(result.body.items) == 2 } }\n";

/// Starts a service that sends the beginning of a reply, and the rest once a test passes it to the returned sender.
fn in_two(head: &'static str, begin: &'static str) -> (u16, std::sync::mpsc::Sender<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, receive) = std::sync::mpsc::channel::<&'static str>();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        raw_http_peers::head(&mut stream);
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{head}\r\n\r\n{begin}").unwrap();
        if let Ok(rest) = receive.recv_timeout(Duration::from_secs(20)) {
            write!(stream, "{rest}").unwrap();
        }
    });
    (port, send)
}

#[test]
fn a_streamed_reply_streams_and_is_checked_at_its_end() {
    let (port, rest) = in_two("Transfer-Encoding: chunked", "b\r\n{\"items\":[1\r\n");
    let (adapter, at) = rest_at(port, LINES, "");
    let mut stream = TcpStream::connect(&at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&request("GET", "/a", &[], b"").to_bytes(1)).unwrap();
    assert!(raw_http_peers::head(&mut stream).starts_with("HTTP/1.1 200"));
    let mut begin = [0; 14];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin[3..], b"{\"items\":[1", "before the service has sent the rest");
    assert_eq!(adapter.told(), "");
    rest.send("2\r\n]}\r\n0\r\n\r\n").unwrap();
    let mut end = [0; 12];
    stream.read_exact(&mut end).unwrap();
    assert_eq!(&end, b"\r\n2\r\n]}\r\n0\r\n");
    assert!(adapter.told().contains("Failed postcondition"), "{}", adapter.told());
    counted(&adapter, "calls_total 1");
}

#[test]
fn a_reply_that_the_service_cuts_reaches_the_client_cut() {
    for head in ["Transfer-Encoding: chunked", "Content-Length: 100"] {
        let begin = if head.contains("chunked") { "b\r\n{\"items\":[1\r\n" } else { "{\"items\":[1" };
        for (checks, status) in [("", "200"), ("[checks]\nenforce = true\n", "502")] {
            let (port, rest) = in_two(head, begin);
            let (adapter, at) = rest_at(port, LINES, checks);
            let mut stream = TcpStream::connect(&at).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(&request("GET", "/a", &[], b"").to_bytes(1)).unwrap();
            drop(rest);
            let got = raw_http_peers::head(&mut stream);
            assert!(got.starts_with(&format!("HTTP/1.1 {status}")), "{head} {checks}: {got}");
            let mut body = Vec::new();
            if checks.is_empty() {
                let _ = stream.read_to_end(&mut body);
                let body = String::from_utf8(body).unwrap();
                assert!(body.contains("{\"items\":[1") && !body.contains("0\r\n\r\n"), "{head}: {body}");
            }
            assert!(!adapter.told().contains("Failed"), "{}", adapter.told());
            counted(&adapter, "calls_total 1");
        }
    }
}
