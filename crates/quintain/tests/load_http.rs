//! `quintain load http://...` on real sockets: correct servers, faulty servers and usage errors.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::common::scripted_http_servers::{Does, OK, Scripted, certificate};
use crate::common::{Folder, Ran, Server, eventually, signal_process};
use serde_json::{Value, json};

/// Loads a server without warm-up, so that the server counts as many requests as the generator.
fn load(url: &str, more: &[&str]) -> Ran {
    let args = [&["load", url, "--warmup", "0s", "-q"][..], more].concat();
    Folder::new().quintain(&args)
}

/// Checks all cases in parallel, because they mostly wait.
fn each<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(|| check(case)))));
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_load_as_with_wrk() {
    let server = Scripted::start(Does::Answer(OK));
    let ran = Folder::new().quintain(&["load", "-t2", "-c8", "-d300ms", "--latency", &server.url("/a?b#c")]).expect(0);
    assert_eq!(ran.err, "note: `#c` is not sent: fragments are not part of a request\n");
    let lines = ran.out.lines().filter_map(|line| line.split_whitespace().next()).collect::<Vec<_>>();
    let places = ["requests/s", "transfer/s", "latency", "mean", "stdev", "max", "p50", "p99", "statuses", "connect"];
    let places =
        places.map(|name| lines.iter().position(|line| *line == name).unwrap_or_else(|| panic!("{name}: {}", ran.out)));
    assert!(places.is_sorted(), "{}", ran.out);
    assert!(ran.out.contains("8 clients, 2 threads, closed loop") && ran.out.contains("no errors"), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'), "plain text without a terminal: {}", ran.out);
    assert_eq!(server.first(), format!("GET /a?b HTTP/1.1\r\nHost: {}\r\n\r\n", server.address));
}

#[test]
fn json_has_the_keys_of_http() {
    let server = Scripted::start(Does::Answer(OK));
    // With a time limit, requests still waiting at the end would leave maximum and deviation unknown, so `-n` is used.
    let json = load(&server.url("/"), &["-c", "4", "-n", "2000", "--json"]).expect(0).json();
    let requests = number(&json["requests"]);
    assert_eq!(requests, 2000.0);
    assert_eq!(json["errors"], json!({}));
    assert_eq!(number(&json["statuses"]["200"]), requests);
    let (received, transfer) = (number(&json["received_bytes"]), number(&json["transfer_bytes_per_s"]));
    assert!(received >= requests * OK.len() as f64, "{json}");
    let duration_s = number(&json["duration_s"]);
    assert!((transfer * duration_s / received - 1.0).abs() < 1e-9);
    assert_eq!(json["connect_ns"]["count"], 4);
    assert!(number(&json["latency_ns"]["stdev"]) > 0.0 && json["handshake_ns"].is_null(), "{json}");
    for (key, value) in [("protocol", json!("http")), ("pipeline", json!(1)), ("connection", json!("keep-alive"))] {
        assert_eq!(json[key], value, "{key}");
    }
    // Little's law: except at both ends, rate times latency is the number in flight.
    let (by_latency, counted) = (number(&json["in_flight_by_latency"]), number(&json["in_flight_mean"]));
    assert!(
        by_latency > 0.0 && by_latency <= 4.0 + 4.0 * number(&json["latency_ns"]["max"]) / (duration_s * 1e9),
        "{json}"
    );
    assert!(counted > 0.0 && counted <= 4.0, "{json}");
}

#[test]
fn a_number_of_requests_is_met_exactly() {
    let server = Scripted::start(Does::Answer(OK));
    for (requests, more) in [
        (1, &["-c", "1"][..]),
        (1000, &["-c", "7"]),
        (1001, &["-c", "6", "-t", "3"]),
        (1000, &["-c", "3", "--pipeline", "16"]),
    ] {
        let before = server.requests();
        let json = load(&server.url("/"), &[&["-n", &requests.to_string(), "--json"], more].concat()).expect(0).json();
        assert_eq!((&json["requests"], &json["unfinished"]), (&json!(requests), &json!(0)), "{more:?}");
        assert_eq!(json["statuses"], json!({"200": requests}), "{more:?}");
        let warmup = json["warmup_requests"].as_u64().unwrap();
        assert_eq!(server.requests() - before, warmup + requests, "{more:?}: requests counted by the server");
    }
}

#[test]
fn methods_headers_and_bodies_arrive() {
    let server = Scripted::start(Does::Echo);
    let folder = Folder::new();
    let body = folder.write("body", "{\"n\": 1}");
    let expected = format!(
        "PUT /x HTTP/1.1\r\nHost: {}\r\nX-A: b\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{{\"n\": 1}}",
        server.address
    );
    let path = folder.write("expected", &expected);
    let (body, path) = (body.to_str().unwrap(), path.to_str().unwrap());
    let fields = ["-H", "X-A:  b", "-H", "Content-Type: application/json"];
    let flags =
        [&["-X", "PUT", "--body-file", body, "--expect-body-file", path, "-n", "50", "--json"][..], &fields].concat();
    let json = load(&server.url("/x"), &flags).json();
    assert_eq!(server.first(), expected);
    assert_eq!((&json["requests"], &json["errors"]), (&json!(50), &json!({})), "{json}");
    // A body without `--method` makes the request a POST.
    let server = Scripted::start(Does::Answer(OK));
    load(&server.url("/"), &["--body", "hello", "-n", "1"]).expect(0);
    assert!(server.first().starts_with("POST / HTTP/1.1\r\n") && server.first().ends_with("\r\n\r\nhello"));
}

#[test]
fn responses_are_checked_against_expectations() {
    let server = Scripted::start(Does::Answer(OK));
    let found = Scripted::start(Does::Answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    let cases = [
        (&server, &["--expect-status", "2xx", "--expect-body", "test"][..], true, ""),
        (&server, &["--expect-status", "201,404"], false, "status"),
        (&server, &["--expect-body", "text"], false, "body"),
        (&server, &["--expect-body", "tes"], false, "body"),
        (&server, &["--expect-body", "tests"], false, "body"),
        (&found, &[], false, "status"),
        (&found, &["--expect-status", "404"], true, ""),
    ];
    each(&cases, |&(server, flags, requests, kind)| {
        let flags = [&["-c", "2", "-d", "1s", "--json"], flags].concat();
        let ran = load(&server.url("/"), &flags).expect(if requests { 0 } else { 3 });
        let json = ran.json();
        assert_eq!(number(&json["requests"]) > 0.0, requests, "{flags:?}: {json}");
        match kind {
            "" => assert_eq!(json["errors"], json!({}), "{flags:?}"),
            kind => {
                assert!(number(&json["errors"][kind]) > 0.0, "{flags:?}: {json}");
                assert!(json["error_examples"][kind].as_str().unwrap().contains("expected"), "{flags:?}: {json}");
                assert_eq!(json["errors"].as_object().unwrap().len(), 1, "{flags:?}: {json}");
            }
        }
    });
}

#[test]
fn every_kind_of_response_is_counted() {
    const CONFLICT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ntest";
    const BARE_CR: &[u8] = b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 4\r\n\r\ntest";
    const BAD_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\ntest";
    const GARBAGE: &[u8] = b"\x16\x03\x01\x00\xff SSH-2.0\r\n\r\n";
    let cases = [
        (Does::Answer(CONFLICT), "framing"),
        (Does::Answer(BARE_CR), "framing"),
        (Does::Answer(BAD_CHUNK), "framing"),
        (Does::Answer(GARBAGE), "framing"),
        (Does::AnswerAndClose(SHORT), "truncated"),
        (Does::AnswerAndClose(b"HTTP/1.1 20"), "truncated"),
        (Does::AnswerAndClose(b""), "closed"),
        (Does::Answer(SHORT), "timeout"),
        (Does::Silence, "timeout"),
    ];
    each(&cases, |&(does, kind)| {
        let server = Scripted::start(does);
        let json = load(&server.url("/"), &["-c", "2", "-d", "1s", "--timeout", "50ms", "--json"]).expect(3).json();
        assert_eq!(json["requests"], 0, "{does:?}: {json}");
        assert!(number(&json["errors"][kind]) > 0.0, "{does:?}, {kind}: {json}");
    });
    let endless = Box::leak([b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'a'; 100_000]].concat().into_boxed_slice());
    let server = Scripted::start(Does::Answer(endless));
    let json = load(&server.url("/"), &["-c", "2", "-d", "1s", "--json"]).expect(3).json();
    assert!(number(&json["errors"]["head-too-large"]) > 0.0, "{json}");
}

#[test]
fn every_valid_framing_is_accepted() {
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nte\r\n2;x=y\r\nst\r\n0\r\nT: railer\r\n\r\n";
    const INTERIM: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntest";
    const OLD_KEPT: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\ntest";
    for (does, closes) in [
        (Does::Answer(CHUNKED), false),
        (Does::Answer(INTERIM), false),
        (Does::Answer(OLD_KEPT), false),
        (Does::AnswerAndClose(b"HTTP/1.1 200 OK\r\n\r\ntest"), true),
        (Does::AnswerAndClose(b"HTTP/1.0 200 OK\r\n\r\ntest"), true),
        (Does::AnswerAndClose(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ntest"), true),
        (Does::AnswerAndClose(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntest"), true),
    ] {
        let server = Scripted::start(does);
        let json = load(&server.url("/"), &["-c", "2", "-n", "40", "--expect-body", "test", "--json"]).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&json!(40), &json!({})), "{does:?}: {json}");
        assert_eq!(server.connections() > 2, closes, "{does:?}: {} connections", server.connections());
    }
    // A response to HEAD has no body, whatever its Content-Length.
    let server = Scripted::start(Does::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"));
    load(&server.url("/"), &["-X", "HEAD", "-n", "40"]).expect(0);
    let server = Scripted::start(Does::Answer(b"HTTP/1.1 204 No Content\r\n\r\n"));
    load(&server.url("/"), &["-n", "40"]).expect(0);
}

#[test]
fn reconnects_after_unannounced_close() {
    // The response says keep-alive, but the server closes the connection, so the next request is lost.
    let server = Scripted::start(Does::AnswerAndClose(OK));
    let json = load(&server.url("/"), &["-c", "2", "-d", "300ms", "--json"]).expect(0).json();
    assert!(number(&json["requests"]) > 0.0 && number(&json["reconnects"]) > 0.0, "{json}");
}

#[test]
fn a_connection_for_each_request() {
    let server = Scripted::start(Does::Answer(OK));
    for (flags, open) in [(&["--no-keepalive"][..], false), (&["--connection", "per-request", "--rate", "500"], true)] {
        let before = (server.connections(), server.requests());
        let json = load(&server.url("/"), &[&["-c", "4", "-n", "100", "--json"], flags].concat()).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&json!(100), &json!({})), "{json}");
        assert_eq!(json["connection"], "per-request");
        assert_eq!(json["latency_ns"]["clock"], if open { "response" } else { "service" });
        let (connections, requests) = (server.connections() - before.0, server.requests() - before.1);
        assert!(requests >= 100 && connections >= requests, "{connections} connections for {requests} requests");
    }
    assert!(server.first().contains("\r\nConnection: close\r\n"), "{}", server.first());
}

#[test]
fn open_loop_measures_from_the_schedule() {
    let server = Scripted::start(Does::Answer(OK));
    for arrivals in ["poisson", "constant"] {
        let flags = ["-c", "8", "--rate", "1k", "--arrivals", arrivals, "-d", "400ms", "--json"];
        let json = load(&server.url("/"), &flags).expect(0).json();
        assert_eq!((&json["latency_ns"]["clock"], &json["offered_per_s"]), (&json!("response"), &json!(1000.0)));
        assert!(number(&json["requests"]) > 0.0 && json["errors"] == json!({}), "{json}");
    }
}

#[test]
fn mix_is_sampled_by_weight() {
    let server = Scripted::start(Does::Answer(OK));
    let folder = Folder::new();
    let mix = format!("# a mix\n9 {}\nPOST {}\n", server.url("/often"), server.url("/rare"));
    folder.write("mix.txt", &mix);
    let args = ["load", "--urls", "mix.txt", "--body", "x", "-n", "500", "--warmup", "0s", "--json"];
    let json = folder.quintain(&args).expect(0).json();
    assert_eq!(json["target"], format!("http://{}, 2 requests of mix.txt", server.address));
    assert_eq!((&json["requests"], &json["errors"]), (&json!(500), &json!({})));
    // A tenth of the requests go to `/rare`, within six standard deviations. The server may see more than 500.
    let (often, rare) = (server.requests_of("GET /often") as f64, server.requests_of("POST /rare") as f64);
    let all = often + rare;
    assert!(all >= 500.0 && (rare - all / 10.0).abs() < 6.0 * (all * 0.09).sqrt(), "{often} and {rare}");
}

#[test]
fn unix_sockets_and_ipv6() {
    let folder = Folder::new();
    let path = folder.path().join("s");
    assert!(path.as_os_str().as_bytes().len() < 108);
    let server = Scripted::unix(&path, Does::Answer(OK));
    let path = path.to_str().unwrap();
    let json = load("http://localhost/x", &["--unix-socket", path, "-c", "3", "-n", "100", "--json"]).expect(0).json();
    assert_eq!((&json["requests"], &json["errors"]), (&json!(100), &json!({})));
    assert_eq!(server.first(), "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let ran = load("http://localhost/", &["--unix-socket", "/no/such/socket"]).expect(3);
    assert!(ran.err.contains("/no/such/socket") && ran.err.contains("the path of its socket"), "{}", ran.err);
    assert!(ran.err.contains("no such file") && !ran.err.contains("refused"), "{}", ran.err);

    match Scripted::on("[::1]:0", Does::Answer(OK)) {
        Ok(server) => {
            let json = load(&server.url("/"), &["-c", "3", "-n", "100", "--json"]).expect(0).json();
            assert_eq!(json["requests"], 100);
            assert!(server.first().contains("\r\nHost: [::1]:"), "{}", server.first());
        }
        Err(error) => println!("not checked, IPv6 is not there: {error}"),
    }
}

/// Starts an HTTP proxy that opens tunnels only to port `port` of this machine, and returns its address.
fn connect_proxy(port: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = move |mut client: TcpStream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        if !head.starts_with(format!("CONNECT elsewhere.example:{port} HTTP/1.1\r\n").as_bytes()) {
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
        let mut server = TcpStream::connect(("127.0.0.1", port))?;
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || std::io::copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write)));
        std::io::copy(&mut server, &mut client).and_then(|_| client.shutdown(Shutdown::Write))
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || serve(client));
        }
    });
    address
}

#[test]
fn a_proxy_opens_tunnels_and_resolves_the_host() {
    let folder = Folder::new();
    let (pem, config) = certificate(&["elsewhere.example"]);
    let tls = Scripted::tls(config, Does::Answer(OK));
    let port = |address: &str| address.rsplit_once(':').unwrap().1.parse().unwrap();
    let (plain, root) = (Server::start(&["http"]), folder.write("root.pem", &pem));
    for (scheme, port, flags) in [
        ("https", port(&tls.address), &["--cacert", root.to_str().unwrap()][..]),
        ("http", plain.port, &[]),
        ("http", plain.port, &["--no-keepalive"]),
        ("http", plain.port, &["--http2", "--streams", "4"]),
    ] {
        let (url, proxy) = (format!("{scheme}://elsewhere.example:{port}/"), connect_proxy(port));
        let more = [&["-c", "2", "-n", "40", "--json", "--http-proxy", &proxy], flags].concat();
        let json = load(&url, &more).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&json!(40), &json!({})), "{flags:?}: {json}");
        let refused = load(&url.replace("elsewhere", "nowhere"), &more).expect(3);
        assert!(refused.err.contains("the proxy opened no tunnel: status 403"), "{}", refused.err);
    }
}

#[test]
fn https_checks_the_certificate() {
    let folder = Folder::new();
    let (pem, config) = certificate(&["localhost", "127.0.0.1"]);
    let server = Scripted::tls(config, Does::Answer(OK));
    let root = folder.write("root.pem", &pem);
    let (url, root) = (format!("https://{}/", server.address), root.to_str().unwrap().to_owned());
    for (flags, resumed) in [
        (&["--cacert", &root][..], false),
        (&["-k"], false),
        (&["-k", "--no-keepalive"], true),
        (&["-k", "--no-keepalive", "--no-resume"], false),
    ] {
        let json = load(&url, &[&["-c", "2", "-n", "40", "--json"], flags].concat()).expect(0).json();
        assert_eq!((&json["requests"], &json["errors"]), (&json!(40), &json!({})), "{flags:?}: {json}");
        assert_eq!(json["protocol"], "https");
        assert!(number(&json["handshake_ns"]["count"]) >= 2.0, "{json}");
        assert_eq!(number(&json["resumed"]) > 0.0, resumed, "{flags:?}: {json}");
    }
    let text = load(&url, &["-k", "-n", "40"]).expect(0).out;
    assert!(text.contains("handshakes, 0 resumed"), "{text}");

    let ran = load(&url, &["-n", "40"]).expect(3);
    assert!(ran.err.contains("self-signed") && ran.err.contains("`ca_file` (`--cacert`)"), "{}", ran.err);
    let other = folder.write("other.pem", &certificate(&["localhost"]).0);
    load(&url, &["-n", "40", "--cacert", other.to_str().unwrap()]).expect(3);
    let wrong = folder.write("wrong.pem", "no certificate");
    let ran = load(&url, &["-n", "40", "--cacert", wrong.to_str().unwrap()]).expect(2);
    assert!(ran.err.contains("wrong.pem"), "{}", ran.err);
    let (pem, config) = certificate(&["elsewhere.example"]);
    let server = Scripted::tls(config, Does::Answer(OK));
    let root = folder.write("elsewhere.pem", &pem);
    let ran = load(&format!("https://{}/", server.address), &["--cacert", root.to_str().unwrap(), "-n", "1"]).expect(3);
    assert!(
        ran.err.contains("not for `127.0.0.1`") && ran.err.contains("or use `insecure` (`--insecure`)"),
        "{}",
        ran.err
    );
    let plain = Server::start(&["http"]);
    let ran = load(&format!("https://127.0.0.1:{}/", plain.port), &["-k", "-n", "1"]).expect(3);
    assert!(ran.err.contains("does not speak TLS") && !ran.err.contains("is the server running"), "{}", ran.err);
}

#[test]
fn http_2_to_a_server_of_http_1_is_explained() {
    let server = Server::start(&["cache"]);
    let ran = load(&format!("http://127.0.0.1:{}/", server.port), &["--http2", "-d", "100ms"]).expect(3);
    assert!(ran.err.ends_with(": the server uses HTTP/1, not HTTP/2\n"), "{}", ran.err);
}

#[test]
fn the_client_closes_in_order_after_connection_close() {
    let last = Does::AnswerAndWait(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntest");
    let (_, config) = certificate(&["127.0.0.1"]);
    let (plain, tls) = (Scripted::start(last), Scripted::tls(config, last));
    for (url, server) in [(plain.url("/"), &plain), (format!("https://{}/", tls.address), &tls)] {
        for backend in ["epoll", "io_uring"] {
            let before = server.closed();
            // Each of these servers would wait for a minute if the client did not close the connection.
            let flags = ["-k", "-c", "2", "-n", "40", "--backend", backend, "--json"];
            let flags = if url.starts_with("https") { &flags[..] } else { &flags[1..] };
            let json = load(&url, flags).expect(0).json();
            assert_eq!((&json["requests"], &json["errors"]), (&json!(40), &json!({})), "{url} {backend}: {json}");
            eventually("closed connections", || (server.closed() - before >= 40).then_some(()));
        }
    }
}

#[test]
fn think_time_outlasts_the_idle_timeout_of_a_server() {
    let server = Server::start(&["http", "--idle-timeout", "100ms"]);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let json = load(&url, &["-c", "2", "--think", "400ms", "-d", "2s", "--json"]).expect(0).json();
    // Each client sends at intervals slightly longer than 0.4 s.
    assert!((6.0..=8.0).contains(&number(&json["requests"])), "{json}");
    assert_eq!(json["errors"], json!({}));
    assert!(number(&json["reconnects"]) >= 6.0, "{json}");
}

#[test]
fn server_and_load_count_the_same_requests() {
    for flags in [&["-c", "20", "-d", "300ms"][..], &["-c", "4", "--pipeline", "8", "-d", "300ms"], &["-n", "500"]] {
        let folder = Folder::new();
        let log = folder.path().join("times.json");
        let server = Server::start(&["http", "--log", log.to_str().unwrap()]);
        let url = format!("http://127.0.0.1:{}/delay?mean=1ms", server.port);
        let json = folder.quintain(&[&["load", &url, "-q", "--warmup", "100ms", "--json"], flags].concat());
        let json = json.expect(0).json();
        server.end();
        let log: Value = serde_json::from_slice(&std::fs::read(&log).unwrap()).unwrap();
        let [sent, left, served] = [&json["sent"], &json["left_in_flight"], &log["requests"]].map(number);
        assert!((sent - left..=sent).contains(&served), "{flags:?}: {served} served: {json}");
        assert_eq!(sent, left + number(&json["warmup_requests"]) + number(&json["requests"]), "{flags:?}: {json}");
    }
}

#[test]
fn interrupted_load_shows_its_measurement() {
    let server = Scripted::start(Does::Answer(OK));
    let folder = Folder::new();
    let args = ["load", &server.url("/"), "-d", "10m", "--warmup", "0s", "--json"];
    let mut command = folder.command(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("enough requests", || (server.requests() > 1000).then_some(()));
    signal_process(child.id(), "INT");
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(130);
    assert!(number(&ran.json()["requests"]) > 0.0 && ran.json()["stop_reason"] == "interrupted", "{}", ran.out);
}

#[test]
fn load_that_fails_completely_starts_with_the_status() {
    let server =
        Scripted::on("127.0.0.1:0", Does::Answer(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")).unwrap();
    let ran = load(&server.url("/"), &["-c", "1", "-d", "200ms"]).expect(3);
    let first = ran.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("all ") && first.ends_with(" requests failed: status 401 (expected 2xx)"), "{}", ran.out);
    assert!(ran.out.contains("--expect-status 401") && !ran.out.contains("p99"), "{}", ran.out);
}

#[test]
fn unreachable_server_is_reported() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ran = load(&format!("http://127.0.0.1:{port}/"), &[]).expect(3);
    assert!(ran.err.contains("connection refused") && ran.err.contains("is the server running"), "{}", ran.err);
    assert!(ran.out.is_empty());
}

#[test]
fn all_errors_are_reported_at_once() {
    let folder = Folder::new();
    let args = [
        "load",
        "-c",
        "0",
        "-t",
        "many",
        "-d",
        "5x",
        "--timeout",
        "1us",
        "--rate",
        "-1",
        "--pipeline",
        "0",
        "http://user:secret@127.0.0.1/",
        "-s",
        "wrk.lua",
        "--expect-status",
        "2x",
        "--expect-body-file",
        "nor-such",
        "-X",
        "get",
        "-H",
        "Acept text/html",
        "--body-file",
        "no-such-file",
    ];
    let ran = folder.quintain(&args).expect(2);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    insta::assert_snapshot!("mistakes_of_flags", ran.err);

    folder.write(
        "mix.txt",
        "http://127.0.0.1:1/\n0 GET http://127.0.0.1:1/\nget http://127.0.0.1:1/\nhttps://127.0.0.1:1/\nhttp://127.0.0.1:1/a b c\n",
    );
    let args = ["load", "--urls", "mix.txt", "--insecure", "-H", "Connection: close"];
    insta::assert_snapshot!("mistakes_of_a_file", folder.quintain(&args).expect(2).err);

    let args = ["load", "pingpong://127.0.0.1:1", "-X", "GET", "--pipeline", "4", "-k"];
    insta::assert_snapshot!("mistakes_of_protocols", folder.quintain(&args).expect(2).err);
}

#[test]
fn exceeded_limits_are_reported_before_connecting() {
    // The limit does not apply to a user who may raise hard limits, so root drops that capability.
    let script = r#"ulimit -n 64; [ "$(id -u)" = 0 ] || exec "$0" "$@"; exec setpriv --bounding-set=-all --inh-caps=-all "$0" "$@""#;
    let folder = Folder::new();
    let mut command = folder.shell(script);
    let ran = Ran::from(
        command.arg(crate::common::QUINTAIN).args(["load", "http://127.0.0.1:1/", "-c", "100"]).output().unwrap(),
    );
    let ran = ran.expect(4);
    assert!(ran.err.contains("100 connections need") && ran.err.contains("the limit is 64"), "{}", ran.err);
    assert!(
        ran.err.contains("connections are possible") && ran.err.contains("= help: raise the hard limit"),
        "{}",
        ran.err
    );

    let server = Scripted::start(Does::Answer(OK));
    let mut command = folder.shell(r#"ulimit -Sn 64; exec "$0" "$@""#);
    command.arg(crate::common::QUINTAIN).args(["load", &server.url("/"), "-c", "100", "-n", "1000", "--json"]);
    let json = Ran::from(command.output().unwrap()).expect(0).json();
    assert_eq!((&json["requests"], &json["connect_ns"]["count"]), (&json!(1000), &json!(100)), "{json}");

    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let bounds = range.split_whitespace().map(|word| word.parse::<u32>().unwrap()).collect::<Vec<_>>();
    let clients = (bounds[1] - bounds[0] + 2).to_string();
    let ran = folder.quintain(&["load", "http://127.0.0.1:1/", "-c", &clients]).expect(4);
    let (ports, files) = (ran.err.contains("ports to connect from"), ran.err.contains("open files"));
    assert!(ports || files, "{}", ran.err);
}

#[test]
fn quintains_own_server_is_loaded_without_error() {
    let server = Server::start(&["http", "--threads", "2"]);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    for (path, flags) in [
        ("/", &["--expect-body", "test"][..]),
        ("/", &["--pipeline", "16", "--expect-body", "test"]),
        ("/plaintext", &["--expect-body", "Hello, World!"]),
        ("/bytes/100000", &[]),
        ("/chunked/100000", &[]),
        ("/echo", &["--body", "quintain", "--expect-body", "quintain"]),
        ("/", &["-X", "HEAD"]),
        ("/plaintext", &["--no-keepalive"]),
        ("/delay?mean=1ms&dist=constant", &[]),
    ] {
        for backend in ["epoll", "auto"] {
            let fixed = ["-c", "10", "-t", "2", "-n", "300", "--json", "--backend", backend];
            let json = load(&url(path), &[&fixed, flags].concat()).expect(0).json();
            assert_eq!((&json["requests"], &json["errors"]), (&json!(300), &json!({})), "{path} {flags:?}: {json}");
        }
    }
    // A latency cannot be below the server's own service time.
    let json = load(&url("/delay?mean=2ms&dist=constant"), &["-c", "4", "-n", "200", "--json"]).expect(0).json();
    assert!(number(&json["latency_ns"]["p50"]) >= 2e6, "{json}");
}

#[test]
#[ignore = "slow: a search"]
fn search_reports_that_the_highest_rate_holds() {
    let server = Scripted::start(Does::Answer(OK));
    // Any machine meets this objective at such a low rate.
    let args = ["load", "--find", "p50<5s", "--find-from", "150", "--find-to", "300", "-d", "400ms", "--json"];
    let ran = Folder::new().quintain(&[&args[..], &[&server.url("/")]].concat()).expect(0);
    let json = ran.json();
    assert_eq!((&json["version"], &json["search"]["objective"]), (&json!(1), &json!("p50 < 5s")));
    assert_eq!(number(&json["search"]["low"]["rate_per_s"]), 300.0, "{json}");
    assert_eq!(json["search"]["complete"], json!(true), "{json}");
    assert!(json["search"]["high"].is_null());
    assert_eq!(json["search"]["no_high"], json!("no failure up to 300 /s, the highest rate tried"));
    let steps = json["search"]["steps"].as_array().unwrap();
    assert_eq!(number(&steps[0]["rate_per_s"]), 150.0);
    assert_eq!(ran.err.lines().count(), steps.len(), "a line for each step: {}", ran.err);
    assert!(ran.err.starts_with("bracket 150.0 /s: holds ("), "{}", ran.err);
}

#[test]
fn search_without_valid_responses_fails_at_the_lowest_rate() {
    let found = Scripted::start(Does::Answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    let args = ["--find", "errors<1%", "--find-from", "20", "-d", "200ms", "--json"];
    // The lowest allowed rate fails, so the server has failed.
    let ran = load(&found.url("/"), &args).expect(3);
    let json = ran.json();
    assert!(json["search"]["low"].is_null() && !json["search"]["high"].is_null(), "{json}");
    assert_eq!(json["search"]["bound"], "subject");
}

#[test]
fn undecidable_search_exits_as_not_possible_here() {
    // A p99.9 needs 3,688 responses, but a trial has a hundred.
    let server = Scripted::start(Does::Answer(OK));
    let args = ["--find", "p99.9<5s", "--find-from", "500", "--find-to", "500", "-d", "200ms", "--json"];
    let json = load(&server.url("/"), &args).expect(4).json();
    assert_eq!((&json["search"]["bound"], &json["search"]["low"]), (&json!("measuring"), &json!(null)), "{json}");
}

#[test]
fn search_errors_are_reported_at_once() {
    let args =
        ["--find", "p99<5parsecs and subject_rss<1GiB", "--find-from", "10", "--find-to", "5k", "--resolution", "90%"];
    let ran = load("http://localhost:1/", &args).expect(2);
    insta::assert_snapshot!(ran.err, @r"
    error: `--resolution`: must be 0.5 % to 50 %, not `90%`

    error: `--find`: the bound of `p99`: `parsecs` in `5parsecs` is not a unit of time: ns, us, ms, s, m, h

    2 errors
    ");
    let ran = load("http://localhost:1/", &["--find", "subject_rss<1GiB", "--find-to", "1"]).expect(2);
    insta::assert_snapshot!(ran.err, @r"
    error: `--find`: server memory cannot be observed here (`rss < 1GiB`)
      = help: a study with `load.search` starts the server itself and sees its memory
    ");
    let ran = load("http://localhost:1/", &["--find", "p99<5ms", "--rate", "5"]).expect(2);
    assert!(ran.err.contains("cannot be used with"), "{}", ran.err);
}
