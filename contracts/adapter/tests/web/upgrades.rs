//! Protocol switches on HTTP/1.1 connections: the bytes pass unchanged and are counted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::raw_http_peers::{self, contract_file, request};
use super::world::Adapter;

const CHAT: &str = r#"contract 1

service Chat {
    GET "/chat"(headers) {
        requires signed: has(headers.authorization)
        ensures fine: result.code != 500
    }
}
"#;

/// Starts a server that accepts upgrades and responds to every byte with its successor.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let Ok(head) = raw_http_peers::try_head(&mut stream) else { return };
                let head = head.to_ascii_lowercase();
                assert!(!head.contains("\r\nwhip:"), "metadata is only for adapters: {head}");
                if head.contains("upgrade: websocket") {
                    let answer =
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
                    write!(stream, "{answer}!").unwrap();
                } else if !head.starts_with("pri * http/2.0") {
                    let seen = head.contains("upgrade");
                    let body = if seen { "asked" } else { "plain" };
                    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n{body}").unwrap();
                    return;
                }
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() && stream.write_all(&[byte[0].wrapping_add(1)]).is_ok() {}
            });
        }
    });
    port
}

struct Both {
    alone: Adapter,
    pair: Adapter,
    server: Adapter,
    endpoint: String,
    _folder: tempfile::TempDir,
}

fn both(more: &str) -> Both {
    let endpoint = format!("http://127.0.0.1:{}", server());
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), CHAT);
    let adapter = |name: &str, table: &str| {
        Adapter::from_text(&format!(
            "name = '{name}'\ncontract = '{file}'\nallow = ['127.0.0.1:*']\n{table}\n[protocols.Chat]\nkind = 'rest'\n{more}"
        ))
    };
    let consuming = format!("[[consuming]]\nservice = 'Chat'\nendpoint = '{endpoint}'\n");
    let alone = adapter("alone", &consuming);
    let server = adapter(
        "server",
        &format!("[[providing]]\nservice = 'Chat'\nendpoint = '{endpoint}'\nadapters = '127.0.0.1:0'"),
    );
    let peer = server.at(&format!("adapters {endpoint}"));
    let pair = adapter("pair", &format!("{consuming}peer = '{peer}'"));
    Both { alone, pair, server, endpoint, _folder: folder }
}

#[track_caller]
fn counted(adapter: &Adapter, line: &str) {
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.lines().any(|known| known.strip_prefix("quintain_adapter_") == Some(line)), "{line}\n{metrics}");
}

fn connect(adapter: &Adapter, endpoint: &str) -> TcpStream {
    let stream = TcpStream::connect(adapter.at(&format!("consuming {endpoint}"))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn upgrade(target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let fields = [&[("Connection", "Upgrade"), ("Upgrade", "websocket")], fields].concat();
    request("GET", target, &fields, b"").to_bytes(1)
}

fn talk(stream: &mut TcpStream) {
    for byte in [0, 7, 255] {
        stream.write_all(&[byte]).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [byte.wrapping_add(1)]);
    }
}

#[test]
fn upgraded_protocols_pass_through_one_or_two_adapters() {
    let both = both("");
    for adapter in [&both.alone, &both.pair] {
        for (target, fields) in [("/chat", &[("Authorization", "a")][..]), ("/unlisted", &[])] {
            let mut stream = connect(adapter, &both.endpoint);
            stream.write_all(&upgrade(target, fields)).unwrap();
            let head = raw_http_peers::head(&mut stream);
            assert!(head.starts_with("HTTP/1.1 101"), "{head}");
            assert!(head.to_ascii_lowercase().contains("upgrade: websocket"), "{head}");
            let mut first = [0];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"!");
            talk(&mut stream);
        }
        assert_eq!(
            adapter.told().trim_end(),
            "[Whip] `Chat` has no operation `GET /unlisted`: its calls pass unchecked"
        );
        counted(adapter, "unchecked_total{reason=\"unreadable\"} 2");
        counted(adapter, "unchecked_total{reason=\"unlisted\"} 1");
    }
    counted(&both.server, "unchecked_total{reason=\"unreadable\"} 2");
}

#[test]
fn upgrade_requests_are_checked() {
    let both = both("[checks]\nenforce = true\nunchecked = 'pass'\n");
    for adapter in [&both.alone, &both.pair] {
        let mut stream = connect(adapter, &both.endpoint);
        stream.write_all(&upgrade("/chat", &[])).unwrap();
        let head = raw_http_peers::head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    }
    assert!(both.alone.told().contains("Failed precondition"), "{}", both.alone.told());
    assert!(both.server.told().contains("Blaming: pair"), "{}", both.server.told());
}

#[test]
fn h2c_upgrade_requests_continue_with_http_1() {
    let both = both("");
    let mut stream = connect(&both.alone, &both.endpoint);
    let fields = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")];
    stream.write_all(&request("GET", "/chat", &fields, b"").to_bytes(1)).unwrap();
    assert!(raw_http_peers::head(&mut stream).starts_with("HTTP/1.1 200"));
    let mut body = [0; 5];
    stream.read_exact(&mut body).unwrap();
    assert_eq!(&body, b"plain");
    assert!(both.alone.told().contains("Failed precondition"), "{}", both.alone.told());
}

#[test]
fn http_2_by_prior_knowledge_passes_as_bytes_and_is_counted() {
    let both = both("");
    for adapter in [&both.alone, &both.pair] {
        let mut stream = connect(adapter, &both.endpoint);
        // The preface is sent in two pieces. The first could still be the start of an HTTP/1.1 request.
        stream.write_all(b"PRI * HTTP").unwrap();
        stream.write_all(b"/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut begin = [0; 6];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"TN\x0e\x0b\x0e\x0b");
        talk(&mut stream);
        counted(adapter, "unchecked_total{reason=\"unreadable\"} 1");
    }
}

#[test]
fn tunnels_end_when_idle_and_need_a_slot() {
    let idle = both("[limits]\nidle = '200ms'\n");
    let mut stream = connect(&idle.alone, &idle.endpoint);
    stream.write_all(&upgrade("/chat", &[("Authorization", "a")])).unwrap();
    assert!(raw_http_peers::head(&mut stream).starts_with("HTTP/1.1 101"));
    // The connection must end before this test's timeout.
    stream.read_to_end(&mut Vec::new()).unwrap();
    let full = both("[limits]\nconnections = 1\ndrain = '100ms'\n");
    let mut stream = connect(&full.alone, &full.endpoint);
    stream.write_all(&upgrade("/chat", &[("Authorization", "a")])).unwrap();
    let head = raw_http_peers::head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
}
