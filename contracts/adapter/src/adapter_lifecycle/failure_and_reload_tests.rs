//! Tests of a running adapter: calls pass or fail after internal failures, as configured, and contracts are reloaded.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use super::*;

const CONTRACT: &str =
    "contract 1\nservice Any { GET \"/{item}\"(item) { index item  ensures fine: result.code == 200 } }\n";

fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine");
        }
    });
    port
}

fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn fail_open_decides_whether_calls_pass_after_internal_failure() {
    let port = service();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("any.contract"), CONTRACT).unwrap();
    for (fail_open, status, body) in [(true, "200", "fine"), (false, "502", "the adapter failed")] {
        let text = format!(
            "name = 'client'\ncontract = 'any.contract'\n[[consuming]]\nservice = 'Any'\nendpoint = 'http://127.0.0.1:{port}'\n\
             [protocols.Any]\nkind = 'rest'\n[checks]\nfail_open = {fail_open}\n"
        );
        let draft = crate::config::draft("", &text, folder.path());
        let running = start(&draft.config, check(&draft).unwrap(), Box::new(std::io::sink())).unwrap();
        let set_failing = |fails| running.app.monitor().store().fails = fails;
        let address = *running.addresses.values().next().unwrap();
        let answer = ask(address);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
        set_failing(true);
        for _ in 0..2 {
            let answer = ask(address);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(body),
                "{fail_open}: {answer}"
            );
        }
        set_failing(false);
        let answer = ask(address);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
        assert!(running.metrics().contains("panics_total 2\n"), "{}", running.metrics());
    }
}

fn asking(address: SocketAddr) -> impl FnMut(&str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    move |path| {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"fine") {
            let mut part = [0; 1024];
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&part[..read]);
        }
        String::from_utf8(answer).unwrap()
    }
}

#[test]
fn reload_applies_to_new_calls_and_keeps_entries() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (came, arrived) = std::sync::mpsc::channel::<()>();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let gone = Arc::new(Mutex::new(gone));
        for mut stream in listener.incoming().flatten() {
            let (came, gone) = (came.clone(), gone.clone());
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut head) {
                    if head[..read].starts_with(b"GET /slow") {
                        came.send(()).unwrap();
                        gone.lock().unwrap().recv().unwrap();
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine").unwrap();
                }
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.contract");
    let contract = |code: u16, before: &str| {
        let text = CONTRACT.replace("200", &code.to_string()).replace("service Any", &format!("{before}service Any"));
        std::fs::write(&path, text).unwrap();
    };
    contract(200, "");
    let text = format!(
        "name = 'client'\ncontract = 'any.contract'\n[[consuming]]\nservice = 'Any'\nendpoint = 'http://127.0.0.1:{port}'\n\
         [protocols.Any]\nkind = 'rest'\n[store]\npath = 'state.redb'\n"
    );
    let draft = crate::config::draft("", &text, folder.path());
    let config = &draft.config;
    let start = || super::start(config, check(&draft).unwrap(), Box::new(std::io::sink())).unwrap();
    let running = start();
    let address = *running.addresses.values().next().unwrap();
    let verdict = |clause: &str, verdict: &str| {
        let begin = format!(
            "quintain_adapter_clause_verdicts_total{{operation=\"Any.GET /{{item}}\",clause=\"Any.GET /{{item}}.{clause}\",verdict=\"{verdict}\"}} "
        );
        let metrics = running.metrics();
        metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let mut kept = asking(address);
    kept("/a");
    assert_eq!((verdict("fine", "holds"), verdict("fine", "fails")), (1, 0));
    let slow = std::thread::spawn(move || asking(address)("/slow"));
    arrived.recv_timeout(Duration::from_secs(30)).unwrap();
    // In this contract, `Any` is the second service, so its number differs.
    contract(201, "service First { GET \"/x\"() { ensures result.code == 1 } }\n");
    running.reload(&draft).unwrap();
    kept("/b");
    assert_eq!((verdict("fine", "holds"), verdict("fine", "fails")), (1, 1));
    go.send(()).unwrap();
    slow.join().unwrap();
    assert_eq!((verdict("fine", "holds"), verdict("fine", "fails")), (2, 1), "it began with 200");
    let indexes = |running: &Running| running.entries().into_iter().filter_map(|entry| entry.index).collect::<Vec<_>>();
    assert_eq!(indexes(&running), ["a", "b", "slow"]);
    std::fs::write(&path, "contract 1\nservice Any { GET \"/{item}\"(item) { ensures a: nobody  ensures b: \"x } }\n")
        .unwrap();
    let wrong = running.reload(&draft).unwrap_err().to_string();
    assert!(wrong.contains("`nobody`") && wrong.contains("no closing"), "{wrong}");
    kept("/c");
    assert_eq!((verdict("fine", "holds"), verdict("fine", "fails")), (2, 2));
    contract(200, "");
    running.reload(&draft).unwrap();
    kept("/d");
    assert_eq!((verdict("fine", "holds"), verdict("fine", "fails")), (3, 2));
    assert_eq!(
        running.metrics().lines().find(|line| line.contains("panics_total")),
        Some("quintain_adapter_panics_total 0")
    );
    // The file belongs to the last contract, so an adapter with that contract finds the entries.
    contract(201, "");
    running.reload(&draft).unwrap();
    drop(running);
    assert_eq!(indexes(&start()), ["a", "b", "c", "d", "slow"]);
}
