//! Claimed labels, and responses that are not the service's own: only parties that failed are blamed.

use contract::metadata::{CallContext, RequestMetadata, encode_request};

use super::*;
use crate::raw_http_peers::Authority;

#[test]
fn a_port_without_proof_of_identity_refuses_labels_over_the_limits() {
    let port = world::adder(-1);
    let endpoint = format!("127.0.0.1:{port}");
    let providing = format!("[[providing]]\nservice = 'Adder'\nendpoint = '{endpoint}'\nadapters = '127.0.0.1:0'");
    let adapter = Adapter::start("adder", &world::contract("plain"), &providing);
    let bad = frame(&[ADD, b"\x08\x00\x01\x00\x00\x00\x00\x08\x00\x02\x00\x00\x00\x00\x00"].concat());
    let call = |sender: &str, invoked: &[&str]| {
        let invoked = invoked.iter().map(|label| (*label).to_owned()).collect();
        let metadata = RequestMetadata { sender: sender.to_owned(), invoked, entries: Vec::new() };
        let block = encode_request(&metadata, CallContext { receiver: &endpoint, service: "Adder", sender: "" });
        let number = block.len() + 1;
        let number = if number < 128 { vec![number as u8] } else { vec![number as u8 | 0x80, (number >> 7) as u8] };
        let mut stream = TcpStream::connect(adapter.at(&format!("adapters {endpoint}"))).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&[&b"whip\x01"[..], &number, &block, &bad].concat()).unwrap();
        assert!(raw_http_peers::to_the_end(stream).len() > 5, "the call passes");
    };
    let long = "x".repeat(300);
    let refused: [(&str, &[&str]); 7] = [
        ("", &["a"]),
        (&long, &["a"]),
        ("unknown", &["a"]),
        ("adder", &["a"]),
        ("a\r\nb", &["a"]),
        ("web", &["a\r\nb"]),
        ("web", &["web", &long]),
    ];
    for (at, (sender, invoked)) in refused.iter().enumerate() {
        call(sender, invoked);
        counted(&adapter, &format!("metadata_refused_total {}", at + 1));
    }
    let told = adapter.told();
    assert_eq!(told.matches("Blaming: unknown (precondition failure)").count(), 1, "{told}");
    assert_eq!(told.matches("Blaming: ").count(), 1, "{told}");
    call("web", &["web"]);
    assert!(adapter.told().contains("Blaming: web (precondition failure)"), "{}", adapter.told());
}

#[test]
fn check_warns_of_a_port_without_proof_of_identity() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        contract_file(folder.path(), "contract 1\nservice Any { GET \"/\"() { ensures a: result.code == 200 } }\n");
    let authority = Authority::new();
    let made = authority.make("server");
    for (tls, is_warned) in [(String::new(), true), (made.peers(), false)] {
        let draft = adapter::config::draft(
            "",
            &format!(
                "name = 'server'\ncontract = '{file}'\n[protocols.Any]\nkind = 'rest'\n[[providing]]\nservice = 'Any'\n\
                 endpoint = 'http://127.0.0.1:1'\nadapters = '127.0.0.1:0'\n{tls}"
            ),
            folder.path(),
        );
        let warnings = adapter::check(&draft).unwrap().warnings;
        assert_eq!(warnings.iter().any(|text| text.contains("no proof of identity")), is_warned, "{warnings:?}");
    }
}

const SHOP: &str = r#"contract 1
service Any { POST "/"(body) { ensures fine: result.body.a > 0 } }
"#;

/// Starts a service that echoes bodies, its adapter, and the adapter of a client that configures `labels`.
fn shop(tls: [&str; 2], labels: &str, checks: [&str; 2]) -> (Adapter, Adapter, String, tempfile::TempDir) {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let endpoint = format!("http://127.0.0.1:{port}");
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), SHOP);
    let common = format!("contract = '{file}'\n[protocols.Any]\nkind = 'rest'\n");
    let server = Adapter::from_text(&format!(
        "name = 'server'\n{common}[[providing]]\nservice = 'Any'\nendpoint = '{endpoint}'\nplain = '127.0.0.1:0'\n\
         adapters = '127.0.0.1:0'\n{}{}",
        tls[0], checks[0]
    ));
    let peer = server.at(&format!("adapters {endpoint}"));
    let web = Adapter::from_text(&format!(
        "name = 'web'\n{common}[[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\npeer = '{peer}'\n\
         labels = {labels}\n{}{}",
        tls[1], checks[1]
    ));
    (server, web, endpoint, folder)
}

#[test]
fn a_certificate_bounds_the_labels_of_the_invoked_entry() {
    let authority = Authority::new();
    let (server_made, web_made) = (authority.make("server"), authority.make("web"));
    let tls = [server_made.peers(), web_made.peers()];
    let (server, web, endpoint, _folder) = shop([&tls[0], &tls[1]], "['payments', 'shipping']", ["", ""]);
    post(&web.at(&format!("consuming {endpoint}")), br#"{"a": 1}"#);
    assert_eq!(server.entry(&endpoint, "Any").labels, ["server"]);
    post(&server.at(&format!("plain {endpoint}")), br#"{"a": 0}"#);
    let told = server.told();
    assert!(told.contains("vouched for by server\n"), "{told}");
    assert!(!told.contains("payments") && !told.contains("shipping"), "{told}");
}

#[test]
fn an_adapter_that_calls_its_own_party_may_use_its_own_label() {
    let port = world::adder(-1);
    let endpoint = format!("127.0.0.1:{port}");
    let adapters = format!("127.0.0.1:{}", free_port());
    let both = format!(
        "[[providing]]\nservice = 'Adder'\nendpoint = '{endpoint}'\nadapters = '{adapters}'\n\
         [[consuming]]\nservice = 'Adder'\nendpoint = '{endpoint}'\npeer = '{adapters}'"
    );
    let adapter = Adapter::start("adder", &world::contract("plain"), &both);
    assert_eq!(world::add(&adapter.at(&format!("consuming {endpoint}")), 0, 0).unwrap(), -1);
    assert!(adapter.told().contains("Blaming: adder (precondition failure)"), "{}", adapter.told());
    counted(&adapter, "metadata_refused_total 0");
}

#[test]
fn a_slow_service_is_neither_blamed_nor_called_unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    const FINE: &str = "contract 1\nservice Any { GET \"/\"() { ensures fine: result.code == 200 } }\n";
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), FINE);
    let common = format!("contract = '{file}'\n[protocols.Any]\nkind = 'rest'\n[limits]\nrequest = '300ms'\n");
    let table = format!("service = 'Any'\nendpoint = '{endpoint}'\n");
    let server = format!("name = 'server'\n{common}[[providing]]\n{table}adapters = '127.0.0.1:0'\n");
    let server = Adapter::from_text(&server);
    let peer = server.at(&format!("adapters {endpoint}"));
    let client = format!("name = 'client'\n{common}[[consuming]]\n{table}peer = '{peer}'\nlabels = ['server']\n");
    let client = Adapter::from_text(&client);
    for _ in 0..2 {
        let got = raw_http_peers::ask(&client.at(&format!("consuming {endpoint}")), &request("GET", "/", &[], b""));
        assert_eq!((got.status(), got.field("whip")), (504, None), "{got:?}");
    }
    assert_eq!((client.told(), server.told()), (String::new(), String::new()));
    counted(&client, "peers_failed_total 0");
    counted(&client, "unchecked_total{reason=\"peer\"} 2");
    counted(&server, "timeouts_total 2");
    drop(silent);
}

#[test]
fn rejection_by_the_other_adapter_is_not_a_service_reply() {
    let checks = ["[checks]\nenforce = true\nensures = 'both'\n", "[checks]\nensures = 'both'\n"];
    let (server, web, endpoint, _folder) = shop(["", ""], "['server']", checks);
    let got =
        raw_http_peers::ask(&web.at(&format!("consuming {endpoint}")), &request("POST", "/", &[], br#"{"a": 0}"#));
    assert!(got.status() == 502 && got.field("whip").is_none(), "{got:?}");
    assert!(server.told().contains("Failed postcondition"), "{}", server.told());
    assert_eq!(web.told(), "");
}

#[test]
fn the_admin_port_is_not_reachable_through_the_proxy() {
    let port = world::adder(0);
    let text = format!("proxy = '127.0.0.1:0'\n[[consuming]]\nservice = 'Adder'\nendpoint = '127.0.0.1:{port}'");
    let adapter = Adapter::start("client", &world::contract("plain"), &text);
    let (proxy, admin) = (adapter.at("proxy"), adapter.at("admin"));
    let port = admin.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let (_, head) = raw_http_peers::tunnel(&proxy, &format!("{host}:{port}"));
        assert!(head.starts_with("HTTP/1.1 403"), "{host}: {head}");
        let got = raw_http_peers::ask(&proxy, &request("GET", &format!("http://{host}:{port}/state"), &[], b""));
        assert_eq!(got.status(), 403, "{host}");
    }
    let got = raw_http_peers::ask(&proxy, &request("GET", &format!("http://127.0.0.1:{port}/health"), &[], b""));
    assert!(got.text().contains("admin port"), "{}", got.text());
    assert!(world::get(&admin, "/health").contains("client"));
}
