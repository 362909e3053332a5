//! HTTP through adapters: unchanged messages, and contracts for REST, SOAP and Thrift.

mod case_studies;
mod declared_types;
mod learned_endpoints;
mod raw_http_peers;
mod upgrades;
#[path = "../calculator/world.rs"]
mod world;

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use raw_http_peers::{Message, contract_file, exchange, request, response};
use world::Adapter;

/// A contract for an echo service. Only messages of its operations are read completely.
const ECHO: &str = r#"contract 1

service Echo {
    GET "/echo"(args) { ensures fine: result.code > 0 }
    POST "/echo"(args, headers, body) { ensures fine: result.code > 0 && (has(result.body) || true) }
    PUT "/echo"(args, headers, body) { ensures fine: result.code > 0 }
    DELETE "/echo"(args, body) { ensures fine: result.code > 0 }
    HEAD "/echo"(args) { ensures fine: result.code > 0 }
}
"#;

#[derive(Clone, Default)]
struct Script {
    next: Arc<Mutex<VecDeque<(Message, usize)>>>,
    seen: Arc<Mutex<Vec<Message>>>,
}

impl Script {
    fn serve(&self) -> u16 {
        let script = self.clone();
        raw_http_peers::serve(None, move |request| {
            script.seen.lock().unwrap().push(request.clone());
            let (message, chunk) = script.next.lock().unwrap().pop_front().unwrap();
            (message.to_bytes(chunk), false)
        })
    }
}

struct Ways {
    script: Script,
    client: Adapter,
    _server: Adapter,
    pair: Adapter,
    service_at: String,
    folder: tempfile::TempDir,
}

fn ways() -> Ways {
    let script = Script::default();
    let service_at = format!("127.0.0.1:{}", script.serve());
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), ECHO);
    let adapter = |name: &str, more: &str| {
        Adapter::from_text(&format!(
            "name = '{name}'\ncontract = '{file}'\nproxy = '127.0.0.1:0'\nallow = ['127.0.0.1:*']\n{more}\n[protocols.Echo]\nkind = 'rest'\n"
        ))
    };
    let endpoint = format!("http://{service_at}");
    let consuming = format!("[[consuming]]\nservice = 'Echo'\nendpoint = '{endpoint}'");
    let client = adapter("client", &consuming);
    let server = adapter(
        "server",
        &format!("[[providing]]\nservice = 'Echo'\nendpoint = '{endpoint}'\nadapters = '127.0.0.1:0'"),
    );
    let peer = server.at(&format!("adapters {endpoint}"));
    let pair = adapter("pair", &format!("{consuming}\npeer = '{peer}'"));
    Ways { script, client, _server: server, pair, service_at, folder }
}

fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let field = ("[Xx]-[A-Za-z][A-Za-z0-9-]{0,12}", "[!-~]([ -~]{0,30}[!-~])?");
    proptest::collection::vec(field, 0..6).prop_map(|mut fields| {
        // Two fields whose names differ only in case are one field, and either spelling may be kept.
        let mut seen = std::collections::HashMap::<String, String>::new();
        for (name, _) in &mut fields {
            *name = seen.entry(name.to_ascii_lowercase()).or_insert_with(|| name.clone()).clone();
        }
        fields
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..400),
        Just(br#"{"a": [1, 2.5, "x"], "b": null}"#.to_vec()),
        (1..200_000_usize).prop_map(|length| (0..length).map(|at| (at * 31 + (at >> 7)) as u8).collect()),
    ]
}

fn framed(start: String, mut fields: Vec<(String, String)>, body: Vec<u8>, chunked: bool) -> Message {
    fields.push(match chunked {
        true => ("Transfer-Encoding".to_owned(), "chunked".to_owned()),
        false => ("Content-Length".to_owned(), body.len().to_string()),
    });
    Message { start, fields, body }
}

fn requests() -> impl Strategy<Value = Message> {
    let method = prop_oneof![
        Just("GET"),
        Just("HEAD"),
        Just("POST"),
        Just("PUT"),
        Just("DELETE"),
        Just("PATCH"),
        Just("OPTIONS"),
        Just("PURGE")
    ];
    let path = prop_oneof![Just("/echo".to_owned()), "(/[A-Za-z0-9._~%20:@!$&'()*+,;=-]{0,8}){1,3}"];
    let query = prop_oneof![Just(String::new()), "\\?[A-Za-z0-9._~:@!$&'()*+,;=/?-]{0,20}"];
    (method, path, query, fields(), body(), any::<bool>()).prop_map(
        |(method, path, query, mut fields, body, chunked)| {
            fields.insert(0, ("Host".to_owned(), "a.listener:80".to_owned()));
            let path = path.replace('%', "%25");
            let start = format!("{method} {path}{query} HTTP/1.1");
            match method {
                "GET" | "HEAD" | "OPTIONS" => Message { start, fields, body: Vec::new() },
                _ => framed(start, fields, body, chunked),
            }
        },
    )
}

fn responses() -> impl Strategy<Value = Message> {
    let status = prop_oneof![
        Just("200 OK"),
        Just("201 Created"),
        Just("204 No Content"),
        Just("304 Not Modified"),
        Just("404 Nowhere"),
        Just("500 Internal Server Error"),
        Just("503 Later"),
        Just("299 ")
    ];
    (status, fields(), body(), any::<bool>()).prop_map(|(status, mut fields, body, chunked)| {
        let start = format!("HTTP/1.1 {status}");
        match &status[..3] {
            "204" => Message { start, fields, body: Vec::new() },
            "304" => {
                fields.push(("ETag".to_owned(), "\"x\"".to_owned()));
                Message { start, fields, body: Vec::new() }
            }
            _ => framed(start, fields, body, chunked),
        }
    })
}

#[test]
fn messages_pass_unchanged_unless_a_clause_fails() {
    let ways = ways();
    let endpoint = format!("consuming http://{}", ways.service_at);
    let by = [(ways.client.at(&endpoint), false), (ways.pair.at(&endpoint), false), (ways.client.at("proxy"), true)];
    let pairs = proptest::collection::vec((requests(), responses(), 1..5_000_usize), 1..4);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(300));
    let run = |pairs: Vec<(Message, Message, usize)>| {
        for (address, is_proxy) in &by {
            let mut connection = raw_http_peers::connect(address);
            for (request, reply, chunk) in &pairs {
                let is_head = request.start.starts_with("HEAD ");
                let mut sent = reply.clone();
                if is_head {
                    sent.body.clear();
                    sent.fields.retain(|(name, _)| name != "Transfer-Encoding");
                }
                *ways.script.next.lock().unwrap() = VecDeque::from([(sent.clone(), *chunk)]);
                ways.script.seen.lock().unwrap().clear();
                let mut first = request.clone();
                if *is_proxy {
                    first.start = first.start.replacen(" /", &format!(" http://{}/", ways.service_at), 1);
                }
                let got = exchange(&mut connection, &first.to_bytes(*chunk), is_head)
                    .map_err(|error| TestCaseError::fail(format!("{error}: {:?} by {address}", request.start)))?;
                let seen = ways.script.seen.lock().unwrap().clone();
                prop_assert_eq!(seen.len(), 1);
                prop_assert_eq!(&seen[0].start, &request.start);
                prop_assert_eq!(seen[0].sorted(), request.sorted());
                prop_assert!(seen[0].body == request.body, "the body of {}", request.start);
                prop_assert_eq!(seen[0].field("host"), Some(ways.service_at.as_str()));
                prop_assert_eq!(&got.start, &sent.start);
                prop_assert_eq!(got.sorted(), sent.sorted());
                prop_assert!(got.body == sent.body, "the body of {} to {}", got.start, request.start);
            }
        }
        Ok(())
    };
    runner.run(&pairs, run).unwrap();
    let metrics = ways.client.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("panics_total 0\n"), "{metrics}");
    assert!(!metrics.contains("quintain_adapter_calls_total 0\n"), "some calls are of the contract: {metrics}");
    for adapter in [&ways.client, &ways.pair] {
        let told = adapter.told();
        let lines = told.lines().filter(|line| !line.is_empty()).collect::<std::collections::BTreeSet<_>>();
        assert!(lines.iter().all(|line| line.contains("`Echo` has no operation `")), "{told}");
        assert!(lines.len() <= 64 && told.matches("has no operation").count() == lines.len(), "each once: {told}");
    }
}

#[test]
fn ten_megabytes_pass_both_ways_in_chunks_and_with_a_length() {
    let ways = ways();
    let endpoint = format!("consuming http://{}", ways.service_at);
    let big = (0..10_000_000_u32).map(|at| (at * 7 + (at >> 8)) as u8).collect::<Vec<_>>();
    for chunked in [false, true] {
        for target in ["/echo", "/elsewhere"] {
            let host = vec![("Host".to_owned(), "x".to_owned())];
            let request = framed(format!("POST {target} HTTP/1.1"), host, big.clone(), chunked);
            let reply = framed("HTTP/1.1 200 OK".to_owned(), Vec::new(), big.clone(), chunked);
            for adapter in [&ways.client, &ways.pair] {
                *ways.script.next.lock().unwrap() = VecDeque::from([(reply.clone(), 100_000)]);
                ways.script.seen.lock().unwrap().clear();
                let mut connection = raw_http_peers::connect(&adapter.at(&endpoint));
                let got = exchange(&mut connection, &request.to_bytes(70_000), false).unwrap();
                assert!(got.body == big, "{target}, in chunks: {chunked}");
                let seen = ways.script.seen.lock().unwrap();
                assert!(seen[0].body == big && seen[0].sorted() == request.sorted(), "{target}, in chunks: {chunked}");
            }
        }
    }
    let metrics = ways.client.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("unchecked_total{reason=\"size\"} 2"), "{metrics}");
    drop(ways.folder);
}

#[test]
fn supports_bodies_without_length_and_http_1_0() {
    let port = raw_http_peers::serve(None, |request| {
        let text = format!("HTTP/1.0 200 OK\r\nX-Target: {}\r\n\r\nto the end", request.start);
        (text.into_bytes(), true)
    });
    let folder = tempfile::tempdir().unwrap();
    let adapter = one(&folder, ECHO, port, "");
    for target in ["/echo", "/other"] {
        let got = raw_http_peers::ask(&adapter.1, &request("GET", target, &[], b""));
        assert_eq!((got.status(), got.text()), (200, "to the end".to_owned()));
        let mut old = TcpStream::connect(&adapter.1).unwrap();
        write!(old, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
        let all = String::from_utf8(raw_http_peers::to_the_end(old)).unwrap();
        assert!(all.starts_with("HTTP/1.0 200 OK") && all.ends_with("\r\n\r\nto the end"), "{all}");
    }
}

fn one(folder: &tempfile::TempDir, contract: &str, port: u16, more: &str) -> (Adapter, String) {
    let file = contract_file(folder.path(), contract);
    let service = contract.split("service ").nth(1).unwrap().split(' ').next().unwrap();
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = '{service}'\nendpoint = 'http://127.0.0.1:{port}'\n\
         [protocols.{service}]\nkind = 'rest'\n{more}"
    ));
    let at = adapter.at(&format!("consuming http://127.0.0.1:{port}"));
    (adapter, at)
}

#[test]
fn enforce_decides_between_rejecting_and_reporting() {
    const TEXT: &str = r#"contract 1
service Store { PUT "/{item}"(item, body) { requires small: body.count < 10  ensures made: result.code == 201 } }
"#;
    let port = raw_http_peers::serve(None, |request| {
        (response(if request.start.contains("/good") { 201 } else { 200 }, "text/plain", request.body.clone()), false)
    });
    for enforce in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (adapter, at) = one(&folder, TEXT, port, &format!("[checks]\nenforce = {enforce}\n"));
        let put = |item: &str, count: u32| {
            let body = format!("{{\"count\": {count}}}");
            raw_http_peers::ask(&at, &request("PUT", item, &[("Content-Type", "application/json")], body.as_bytes()))
        };
        assert_eq!(put("/good", 1).status(), 201);
        let (much, wrong) = (put("/good", 10), put("/bad", 1));
        if enforce {
            assert_eq!((much.status(), wrong.status()), (403, 502), "{much:?} {wrong:?}");
            assert_eq!(much.field("content-type"), Some("application/problem+json"));
            assert!(much.text().contains("Store.PUT /{item}.small"), "{much:?}");
        } else {
            assert_eq!((much.status(), wrong.status()), (201, 200));
            assert_eq!(wrong.text(), "{\"count\": 1}");
        }
        let told = adapter.told();
        assert!(told.contains("body.count < 10") && told.contains("result.code == 201"), "{told}");
        assert_eq!(told.matches("Contract Failure").count(), 2);
    }
}

#[test]
fn only_the_sample_is_checked() {
    const TEXT: &str = "contract 1\nservice Store { GET \"/\"() { ensures never: result.code == 1 } }\n";
    let port = raw_http_peers::serve(None, |_| (response(200, "text/plain", "x"), false));
    let folder = tempfile::tempdir().unwrap();
    let (adapter, at) = one(&folder, TEXT, port, "[checks]\nsample = 0.25\n");
    let mut connection = raw_http_peers::connect(&at);
    for _ in 0..400 {
        assert_eq!(exchange(&mut connection, &request("GET", "/", &[], b"").to_bytes(1), false).unwrap().status(), 200);
    }
    let metrics = adapter.running.as_ref().unwrap().metrics();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("quintain_adapter_{name} ")));
        line.unwrap().parse::<u64>().unwrap()
    };
    // Draws depend only on call numbers, so the count is always the same. Expected: 100, standard deviation: 9.
    let looked_at = value("verdicts_total{verdict=\"fails\"}");
    assert!((70..130).contains(&looked_at), "{looked_at}");
    assert_eq!(looked_at + value("unchecked_total{reason=\"sample\"}"), 400);
}

#[test]
fn each_call_has_a_line_in_the_call_log() {
    let port = raw_http_peers::serve(None, |_| (response(200, "text/plain", "x"), false));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.csv");
    let file = contract_file(folder.path(), ECHO);
    let endpoint = format!("http://127.0.0.1:{port}");
    let text = |more: &str| {
        format!(
            "name = 'a'\ncontract = '{file}'\nallow = ['127.0.0.1:*']\n{more}\n[protocols.Echo]\nkind = 'rest'\n\
             [store]\npath = '{}'\n",
            folder.path().join("store").display()
        )
    };
    let adapters_at = format!("127.0.0.1:{}", world::free_port());
    let adapter = Adapter::from_text(&text(&format!(
        "calls = '{}'\n[[consuming]]\nservice = 'Echo'\nendpoint = '{endpoint}'\npeer = '{adapters_at}'\n\
         [[providing]]\nservice = 'Echo'\nendpoint = '{endpoint}'\nadapters = '{adapters_at}'",
        path.display()
    )));
    let at = adapter.at(&format!("consuming {endpoint}"));
    for _ in 0..3 {
        assert_eq!(raw_http_peers::ask(&at, &request("GET", "/echo", &[], b"")).status(), 200);
    }
    drop(adapter);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(adapter::CALLS_HEADER));
    let names = adapter::CALLS_HEADER.split(',').collect::<Vec<_>>();
    let mut rows = lines.map(|line| line.split(',').collect::<Vec<_>>()).collect::<Vec<_>>();
    let column = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let end = rows.pop().unwrap();
    let of_end = ["call", "side", "store_bytes"].map(|name| end[column(name)]);
    let stored = adapter::look(&folder.path().join("store")).unwrap();
    let entries = stored.entries.iter().map(|(key, _, entry)| key.len() + 8 + entry.len()).sum::<usize>();
    let content = entries + stored.names.iter().map(|name| 4 + name.len()).sum::<usize>();
    assert_eq!(of_end, ["6", "end", content.to_string().as_str()], "{text}");
    assert!(end[column("rss_bytes")].parse::<u64>().unwrap() > 1 << 16, "{text}");
    let numbers = |name: &str, side: &str| {
        let of_side = rows.iter().filter(|row| row[column("side")] == side);
        of_side.map(|row| row[column(name)].parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(rows.len(), 6);
    for side in ["client", "server"] {
        assert!(numbers("own_ns", side).iter().all(|ns| *ns > 0), "{text}");
        assert!(numbers("waited_ns", side).iter().all(|ns| *ns > 0), "{text}");
    }
    // Calls introduce nothing, so Whip would have sent 16 bytes plus the sender's name.
    assert_eq!(numbers("whip_bytes", "client"), [17, 17, 17]);
    let (metadata, extra) = (numbers("metadata_bytes", "client"), numbers("extra_bytes", "client"));
    assert_eq!(metadata, extra);
    assert!(metadata[0] > 0 && metadata == numbers("metadata_bytes", "server"), "{text}");
    assert!(rows.iter().all(|row| row[column("operation")] == "Echo.GET /echo" && row[column("verdict")] == "checked"));
}

#[test]
fn forward_proxy_connects_only_to_allowed_endpoints() {
    let port =
        raw_http_peers::serve(None, |request| (response(200, "text/plain", request.field("host").unwrap()), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), ECHO);
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\nproxy = '127.0.0.1:0'\nallow = ['127.0.0.1:{port}']\n[protocols.Echo]\nkind = 'rest'\n"
    ));
    let at = adapter.at("proxy");
    let got = raw_http_peers::ask(&at, &request("GET", &format!("http://127.0.0.1:{port}/a"), &[], b""));
    assert_eq!((got.status(), got.text()), (200, format!("127.0.0.1:{port}")));
    let other = world::free_port();
    for (target, status) in [(format!("http://127.0.0.1:{other}/"), 403), ("/no/authority".to_owned(), 400)] {
        assert_eq!(raw_http_peers::ask(&at, &request("GET", &target, &[], b"")).status(), status, "{target}");
    }
    let refused = raw_http_peers::ask(&at, &request("CONNECT", &format!("127.0.0.1:{other}"), &[], b""));
    assert_eq!(refused.status(), 403);
    let mut tunnel = raw_http_peers::connect(&at);
    tunnel.get_mut().write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        std::io::BufRead::read_line(&mut tunnel, &mut head).unwrap();
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let got = exchange(&mut tunnel, &request("GET", "/b", &[], b"").to_bytes(1), false).unwrap();
    assert_eq!(got.text(), "listener");
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("unchecked_total{reason=\"encrypted\"} 1"), "{metrics}");
    assert!(metrics.contains("dials_refused_total 2"), "{metrics}");
}

#[test]
fn calls_in_flight_finish_before_the_adapter_ends() {
    let (came, has_come) = std::sync::mpsc::sync_channel(1);
    let (go, may_go) = std::sync::mpsc::sync_channel(1);
    let may_go = Mutex::new(may_go);
    let port = raw_http_peers::serve(None, move |_| {
        came.send(()).unwrap();
        may_go.lock().unwrap().recv().unwrap();
        (response(200, "text/plain", "late"), false)
    });
    let folder = tempfile::tempdir().unwrap();
    let (mut adapter, at) = one(&folder, ECHO, port, "[limits]\ndrain = '30s'\n");
    let call = std::thread::spawn(move || raw_http_peers::ask(&at, &request("GET", "/echo", &[], b"")).text());
    has_come.recv().unwrap();
    let running = adapter.running.take().unwrap();
    let end = std::thread::spawn(move || drop(running));
    go.send(()).unwrap();
    assert_eq!(call.join().unwrap(), "late");
    end.join().unwrap();
}

#[test]
fn empty_chunked_bodies_stay_chunked() {
    let ways = ways();
    let chunked = |start: &str| framed(start.to_owned(), Vec::new(), Vec::new(), true);
    let (mut request, reply) = (chunked("POST /echo HTTP/1.1"), chunked("HTTP/1.1 200 OK"));
    request.fields.insert(0, ("Host".to_owned(), "x".to_owned()));
    *ways.script.next.lock().unwrap() = VecDeque::from([(reply.clone(), 1)]);
    let at = ways.pair.at(&format!("consuming http://{}", ways.service_at));
    assert_eq!(raw_http_peers::ask(&at, &request).sorted(), reply.sorted());
    assert_eq!(ways.script.seen.lock().unwrap()[0].sorted(), request.sorted());
}
