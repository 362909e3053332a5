use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::monitor::MemoryStore;

use super::*;
use crate::store::tests::Failing;

const CONTRACT: &str =
    "contract 1\nservice Any { GET \"/{item}\"(item) { index item  ensures fine: result.code == 200 } }\n";

/// Answers each connection once.
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
fn what_fails_in_the_adapter_itself_costs_the_check() {
    let port = service();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("any.contract"), CONTRACT).unwrap();
    {
        let text = format!(
            "name = 'client'\ncontract = 'any.contract'\n[[consuming]]\nservice = 'Any'\nendpoint = 'http://127.0.0.1:{port}'\n\
             [protocols.Any]\nkind = 'rest'\n"
        );
        let config = crate::config::read(&text, Path::new(folder.path())).unwrap();
        let fails = Arc::new(AtomicBool::new(false));
        let failing = Failing { inner: MemoryStore::new(1 << 20, None), fails: fails.clone() };
        let running = start_with(&config, check(&config).unwrap(), Box::new(std::io::sink()), |_, _| {
            (AnyStore::Failing(failing), Vec::new())
        });
        let running = running.unwrap();
        let address = *running.addresses.values().next().unwrap();
        let answer = ask(address);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
        fails.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            let answer = ask(address);
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
        }
        fails.store(false, Ordering::Relaxed);
        let answer = ask(address);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fine"), "{answer}");
        assert!(running.metrics().contains("panics_total 2\n"), "{}", running.metrics());
    }
}
