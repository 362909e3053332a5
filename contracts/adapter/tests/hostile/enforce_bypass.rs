//! Ways around `enforce`: messages that the adapter cannot check must not reach the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const SMALL: &str = r#"contract 1
service Any { POST "/"(body) { requires small: body.a < 10 } }
"#;

struct Gate {
    adapter: Adapter,
    endpoint: String,
    seen: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

fn gate(checks: &str) -> Gate {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let port = raw_http_peers::serve(None, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        (response(200, "application/json", "{}"), false)
    });
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), SMALL);
    let endpoint = format!("http://127.0.0.1:{port}");
    let adapter = Adapter::from_text(&format!(
        "name = 'server'\ncontract = '{file}'\n[protocols.Any]\nkind = 'rest'\n[[providing]]\nservice = 'Any'\n\
         endpoint = '{endpoint}'\nplain = '127.0.0.1:0'\nadapters = '127.0.0.1:0'\n\
         [limits]\nbody = '1KiB'\nrequest = '300ms'\n[checks]\nenforce = true\n{checks}"
    ));
    Gate { adapter, endpoint, seen, _folder: folder }
}

impl Gate {
    fn at(&self, port: &str) -> String {
        self.adapter.at(&format!("{port} {}", self.endpoint))
    }

    fn post(&self, port: &str, fields: &[(&str, &str)], body: &[u8]) -> u16 {
        raw_http_peers::ask(&self.at(port), &request("POST", "/", fields, body)).status()
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

/// Fields and body of a request, and the expected status and reason.
type Attack = (Vec<(&'static str, &'static str)>, Vec<u8>, u16, &'static str);

fn attacks() -> Vec<Attack> {
    let bad = br#"{"a": 99}"#.to_vec();
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&[&bad[..], &[b' '; 100_000]].concat()).unwrap();
    vec![
        (vec![("Content-Encoding", "br")], bad.clone(), 415, "encoding"),
        (vec![("Content-Encoding", "gzip, gzip")], bad.clone(), 415, "encoding"),
        (vec![("Content-Encoding", "gzip")], bomb.finish().unwrap(), 413, "size"),
        (vec![], [&bad[..], &[b' '; 2000]].concat(), 413, "size"),
        (vec![("Connection", "Upgrade"), ("Upgrade", "websocket")], br#"{"a": 1}"#.to_vec(), 403, "protocol"),
        (vec![], br#"{"a": 1, "a": 99}"#.to_vec(), 422, "undecided"),
        (vec![], br#"{"a": 99999999999999999999999}"#.to_vec(), 422, "undecided"),
        (vec![], br#"{"b": 99}"#.to_vec(), 422, "undecided"),
        (vec![], br#"{"a": 99"#.to_vec(), 422, "undecided"),
        (vec![], [&[b'['; 200][..], &[b']'; 200]].concat(), 422, "undecided"),
        (vec![], Vec::new(), 422, "undecided"),
    ]
}

#[test]
fn enforce_rejects_uncheckable_requests() {
    let gate = gate("");
    for port in ["plain", "adapters"] {
        for (fields, body, status, reason) in attacks() {
            let before = metrics(&gate.adapter);
            assert_eq!(gate.post(port, &fields, &body), status, "{fields:?} {}", String::from_utf8_lossy(&body));
            let count = |metrics: &str| {
                let name = format!("quintain_adapter_refused_unchecked_total{{reason=\"{reason}\"}} ");
                metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap()
            };
            assert_eq!(count(&metrics(&gate.adapter)), count(&before) + 1, "{reason}");
        }
        let mut slow = TcpStream::connect(gate.at(port)).unwrap();
        slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        slow.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"a\"").unwrap();
        assert!(raw_http_peers::head(&mut slow).starts_with("HTTP/1.1 408"));
        // HTTP/2 with prior knowledge gets a GOAWAY that requires HTTP/1.1.
        let mut http2 = TcpStream::connect(gate.at(port)).unwrap();
        http2.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        http2.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut frames = Vec::new();
        let _ = http2.read_to_end(&mut frames);
        assert_eq!(frames.len(), 26, "{frames:?}");
        assert_eq!((frames[3], frames[12], frames[25]), (4, 7, 13), "SETTINGS, then GOAWAY with HTTP_1_1_REQUIRED");
    }
    // An empty block claims that another adapter left the call out of its sample.
    assert_eq!(gate.post("adapters", &[("Whip", "")], br#"{"a": 99}"#), 403);
    assert_eq!(gate.seen(), 0, "nothing reached the service");
    assert_eq!(gate.post("plain", &[], br#"{"a": 1}"#), 200);
    assert_eq!(gate.post("adapters", &[("Whip", "")], br#"{"a": 1}"#), 200);
    assert_eq!(gate.seen(), 2);
    counted(&gate.adapter, "refused_unchecked_total{reason=\"slow\"} 2");
    counted(&gate.adapter, "panics_total 0");
}

#[test]
fn unchecked_requests_pass_if_the_configuration_says_so() {
    let gate = gate("unchecked = 'pass'\n");
    for (at, (fields, body, ..)) in attacks().into_iter().enumerate() {
        assert_eq!(gate.post("plain", &fields, &body), 200, "{fields:?}");
        assert_eq!(gate.seen(), at + 1);
    }
    assert_eq!(gate.post("plain", &[], br#"{"a": 99}"#), 403, "a clause that fails still refuses");
    counted(&gate.adapter, "refused_unchecked_total{reason=\"undecided\"} 0");
}

#[test]
fn enforce_rejects_uncheckable_replies() {
    const REPLIES: &str = r#"contract 1
service Any {
    GET "/{what}"(what) { ensures named: result.body.name != "" }
    GET "/code/{what}"(what) { ensures fine: result.code == 200 }
}
"#;
    let port = raw_http_peers::serve(None, |request| {
        let (kind, body) = match request.start.split([' ', '/']).rfind(|part| part.starts_with("x-")).unwrap() {
            "x-events" => ("text/event-stream", "data: 1\n\n".to_owned()),
            "x-large" => ("application/json", format!("{{\"name\": \"\", \"x\": \"{}\"}}", "x".repeat(2000))),
            "x-br" => ("application/json\r\nContent-Encoding: br", "{\"name\": \"\"}".to_owned()),
            "x-down" => return (response(503, "text/html", "<p>later"), false),
            _ => ("application/json", "{\"name\": \"a\"}".to_owned()),
        };
        (response(200, kind, body), false)
    });
    let (adapter, at) = rest_at(port, REPLIES, "[limits]\nbody = '1KiB'\n[checks]\nenforce = true\n");
    let status = |target: &str| raw_http_peers::ask(&at, &request("GET", target, &[], b"")).status();
    for what in ["x-events", "x-large", "x-br"] {
        assert_eq!(status(&format!("/{what}")), 502, "{what}");
        assert_eq!(status(&format!("/code/{what}")), 200, "{what}: the clause reads the head alone");
    }
    assert_eq!((status("/x-good"), status("/x-down")), (200, 503), "an error status may have another body");
    counted(&adapter, "refused_unchecked_total{reason=\"undecided\"} 3");
}

#[test]
fn enforce_rejects_uncheckable_thrift_messages() {
    let port = world::adder(0);
    let endpoint = format!("127.0.0.1:{port}");
    let providing = format!(
        "[[providing]]\nservice = 'Adder'\nendpoint = '{endpoint}'\nplain = '127.0.0.1:0'\nadapters = '127.0.0.1:0'\n\
         [limits]\nbody = '1KiB'\n[checks]\nenforce = true\n"
    );
    let adapter = Adapter::start("server", &world::contract("plain"), &providing);
    let send = |port: &str, bytes: &[u8]| {
        let mut stream = TcpStream::connect(adapter.at(&format!("{port} {endpoint}"))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        raw_http_peers::to_the_end(stream)
    };
    let bad = frame(&[ADD, b"\x08\x00\x01\x00\x00\x00\x00\x08\x00\x02\x00\x00\x00\x00\x00"].concat());
    let got = send("adapters", &[&b"whip\x01\x01"[..], &bad].concat());
    assert!(String::from_utf8_lossy(&got).contains("is violated"), "{got:?}");
    // Sends a reply instead of a call, because some servers respond to it.
    let mut reply = bad.clone();
    reply[7] = 2;
    let got = send("plain", &reply);
    assert!(String::from_utf8_lossy(&got).contains("cannot be checked"), "{got:?}");
    // Sends an oversized frame, bytes that are not Thrift, and the announcement of raw bytes.
    let large = frame(&[ADD, &[0; 2000]].concat());
    assert_eq!(send("plain", &large), b"");
    assert_eq!(send("plain", b"GET / HTTP/1.1\r\n\r\n"), b"");
    assert_eq!(send("adapters", &[&b"whip\x01\x00"[..], &bad].concat()), b"whip\x01");
    counted(&adapter, "refused_unchecked_total{reason=\"size\"} 1");
    counted(&adapter, "refused_unchecked_total{reason=\"unreadable\"} 3");
}

#[test]
fn soap_with_two_readings_is_refused() {
    let port = raw_http_peers::serve(None, |_| (response(200, "text/xml", ""), false));
    let endpoint = format!("http://127.0.0.1:{port}/");
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{}'\n[[consuming]]\nservice = 'Chess'\nendpoint = '{endpoint}'\n\
         [protocols.Chess]\nkind = 'soap'\nwsdl = '{}'\n[checks]\nenforce = true\n",
        file("contract/contracts/chess.contract").display(),
        file("codecs/schemas/chess.wsdl").display(),
    ));
    let at = adapter.at(&format!("consuming {endpoint}"));
    let envelope = r#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
        <Other xmlns="http://www.bennedik.com/webservices/XfccBasic"/></e:Body></e:Envelope>"#;
    let call = |action| {
        let fields = [("Content-Type", "text/xml"), ("SOAPAction", action)];
        let got = raw_http_peers::ask(&at, &request("POST", "/", &fields, envelope.as_bytes()));
        (got.status(), got.text())
    };
    // The body names an unlisted operation. The header names a listed one, which a server may follow.
    let (status, text) = call("MakeGame");
    assert!(status == 500 && text.contains("cannot be checked"), "{status} {text}");
    assert_eq!(call("").0, 200, "an operation that the contract does not list passes");
}
