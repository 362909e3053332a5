//! Tests the labels that other adapters may claim, and calls while other adapters are unreachable.

use super::*;
use crate::raw_http_peers::Authority;

const INTRODUCES: &str = r#"contract 1
service Any { POST "/"(body) { index body.who  requires given: body.a > 0  ensures fine: result.body.a > 0 } }
"#;

struct Guarded {
    authority: Authority,
    server: Adapter,
    endpoint: String,
    file: String,
    _folder: tempfile::TempDir,
}

fn guarded() -> Guarded {
    let authority = Authority::new();
    let made = authority.make("server");
    let port = raw_http_peers::serve(None, |request| {
        assert!(request.field("whip").is_none());
        (response(200, "application/json", &request.body), false)
    });
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), INTRODUCES);
    let endpoint = format!("http://127.0.0.1:{port}");
    let server = Adapter::from_text(&format!(
        "name = 'server'\ncontract = '{file}'\n[[providing]]\nservice = 'Any'\nendpoint = '{endpoint}'\nplain = '127.0.0.1:0'\n\
         adapters = '127.0.0.1:0'\n[protocols.Any]\nkind = 'rest'\n{}",
        made.peers()
    ));
    Guarded { authority, server, endpoint, file, _folder: folder }
}

impl Guarded {
    fn client(&self, name: &str, tls: &str) -> (Adapter, String) {
        self.liar(name, name, tls)
    }

    /// Starts a client whose name becomes `says` after the checks, which reject a name that the certificate lacks.
    fn liar(&self, name: &str, says: &str, tls: &str) -> (Adapter, String) {
        let peer = self.server.at(&format!("adapters {}", self.endpoint));
        let text = format!(
            "name = '{name}'\ncontract = '{}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{}'\npeer = '{peer}'\n\
             [protocols.Any]\nkind = 'rest'\n{tls}",
            self.file, self.endpoint
        );
        let client = Adapter::of(&text, std::path::Path::new("/"), Some(says));
        let at = client.at(&format!("consuming {}", self.endpoint));
        (client, at)
    }
}

const BAD: &[u8] = br#"{"who": "x", "a": 0}"#;

#[test]
fn certified_adapters_act_for_the_name_in_their_certificate() {
    let world = guarded();
    let (client, at) = world.client("client", &world.authority.make("client").peers());
    post(&at, BAD);
    let told = world.server.told();
    assert!(told.contains("Blaming: client (precondition failure)"), "{told}");
    // No message introduces a member of the service, so the configuration vouches for all members.
    assert!(client.told().contains("vouched for by unknown"), "{}", client.told());
    let (_other, at) = world.liar("mallory", "honest", &world.authority.make("mallory").peers());
    post(&at, br#"{"who": "y", "a": 0}"#);
    let told = world.server.told();
    assert!(!told.contains("honest"), "{told}");
    counted(&world.server, "metadata_refused_total 1");
}

#[test]
fn uncertified_adapters_are_not_trusted_and_calls_pass() {
    let world = guarded();
    let strangers = Authority::new().make("client");
    // Uses the server's roots and a certificate from a different authority.
    let other = world.authority.make("x");
    let wrong = format!("[tls.peers]\n{}ca = '{}'\n", strangers.identity(), other.ca().display());
    for (count, tls) in [(1, String::new()), (2, wrong)] {
        let (client, at) = world.client("client", &tls);
        post(&at, br#"{"who": "x", "a": 1}"#);
        assert!(client.told().contains("Cannot reach"), "{}", client.told());
        counted(&world.server, &format!("metadata_refused_total {count}"));
        counted(&world.server, "calls_total 0");
    }
    let plain = world.server.at(&format!("plain {}", world.endpoint));
    let client = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{}'\npeer = '{plain}'\n\
         [protocols.Any]\nkind = 'rest'\n",
        world.file, world.endpoint
    ));
    post(&client.at(&format!("consuming {}", world.endpoint)), br#"{"who": "x", "a": 1}"#);
    assert!(client.told().contains("is not an adapter"), "{}", client.told());
}

#[test]
fn metadata_from_other_clients_is_dropped() {
    let world = guarded();
    let plain = world.server.at(&format!("plain {}", world.endpoint));
    for forged in ["AQVvdGhlcg", "!!!", ""] {
        let got = raw_http_peers::ask(&plain, &request("POST", "/", &[("Whip", forged)], BAD));
        assert_eq!((got.status(), got.body.as_slice()), (200, BAD));
        assert!(got.field("whip").is_none());
    }
    let told = world.server.told();
    assert!(told.contains("Blaming: unknown (precondition failure)"), "{told}");
    let metrics = metrics(&world.server);
    assert!(!metrics.contains("metadata_refused_total 0\n"), "{metrics}");
}

#[test]
fn forged_metadata_over_thrift_is_a_message_like_any_other() {
    let world = world::full("plain", -1);
    let adapters = world.adder.at(&format!("adapters {}", world.adder_at));
    // A client that sends no greeting counts as a plain client, even at the port for adapters.
    assert_eq!(world::add(&adapters, 0, 0).unwrap(), -1);
    let told = world.adder.told();
    assert!(told.contains("Blaming: unknown (precondition failure)"), "{told}");
    let mut stream = TcpStream::connect(&adapters).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"whip\x01").unwrap();
    let mut greeting = [0; 5];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"whip\x01");
    let call = frame(&[ADD, b"\x08\x00\x01\x00\x00\x00\x02\x08\x00\x02\x00\x00\x00\x02\x00"].concat());
    stream.write_all(&[&[5, 0xff, 0xff, 0xff, 0xff][..], &call].concat()).unwrap();
    let mut reply = [0; 5];
    stream.read_exact(&mut reply).unwrap();
    let metrics = metrics(&world.adder);
    assert!(!metrics.contains("metadata_refused_total 0\n"), "{metrics}");
    // A length over the limit ends the connection.
    let mut stream = TcpStream::connect(&adapters).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"whip\x01\xff\xff\xff\x7f").unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(all.len() <= 5);
}

#[test]
fn checks_all_clauses_without_the_other_adapter() {
    const FILE: &str = INTRODUCES;
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), FILE);
    let endpoint = format!("http://127.0.0.1:{port}");
    let adapters = format!("127.0.0.1:{}", free_port());
    let server = || {
        Adapter::from_text(&format!(
            "name = 'server'\ncontract = '{file}'\n[[providing]]\nservice = 'Any'\nendpoint = '{endpoint}'\n\
             adapters = '{adapters}'\n[limits]\ndrain = '100ms'\n[protocols.Any]\nkind = 'rest'\n"
        ))
    };
    let client = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\npeer = '{adapters}'\n\
         [protocols.Any]\nkind = 'rest'\n"
    ));
    let mut connection = raw_http_peers::connect(&client.at(&format!("consuming {endpoint}")));
    let mut call = |who: &str| {
        let body = format!("{{\"who\": \"{who}\", \"a\": 0}}");
        let got = exchange(&mut connection, &request("POST", "/", &[], body.as_bytes()).to_bytes(1), false).unwrap();
        assert!(got.status() == 200 && got.body == body.as_bytes(), "{who}: {got:?}");
    };
    call("before");
    let told = client.told();
    assert!(told.contains("Failed precondition") && told.contains("Failed postcondition"), "{told}");
    assert!(told.contains(&format!("Cannot reach the adapter at {adapters}")), "{told}");
    // While the service's adapter runs, only that adapter checks the service's clauses.
    let running = server();
    call("while");
    assert!(running.told().contains("Blaming: client"), "{}", running.told());
    assert_eq!(client.told().matches("Failed precondition").count(), 1);
    drop(running);
    for who in ["after", "later"] {
        call(who);
    }
    assert_eq!(client.told().matches("Failed precondition").count(), 3);
}

fn mute(greeting: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            greeting(&mut stream);
            open.push(stream);
        }
    });
    at
}

const BRIEF: &str = "[limits]\nrequest = '300ms'\nconnect = '5s'\n";

#[test]
fn an_adapter_that_greets_and_hangs_costs_one_call_over_http() {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), INTRODUCES);
    let endpoint = format!("http://127.0.0.1:{port}");
    let peer = mute(|stream| {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let greeting =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("whip: ").map(str::to_owned));
        let greeting = greeting.expect("a greeting comes first");
        write!(stream, "HTTP/1.1 200 OK\r\nwhip: {greeting}\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let client = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\npeer = '{peer}'\n\
         [protocols.Any]\nkind = 'rest'\n{BRIEF}"
    ));
    let mut connection = raw_http_peers::connect(&client.at(&format!("consuming {endpoint}")));
    let mut call = || exchange(&mut connection, &request("POST", "/", &[], BAD).to_bytes(1), false).unwrap().status();
    assert_eq!([call(), call(), call()], [504, 200, 200]);
    let told = client.told();
    assert!(told.contains(&format!("The adapter at {peer} did not respond in time")), "{told}");
    // This adapter now checks all clauses. The repeated report is suppressed.
    assert_eq!(told.matches("Failed precondition").count(), 1, "{told}");
}

#[test]
fn an_adapter_that_greets_and_hangs_costs_one_call_over_thrift() {
    let port = world::adder(-1);
    let endpoint = format!("127.0.0.1:{port}");
    let peer = mute(|stream| {
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&greeting).unwrap();
    });
    let consuming = format!("[[consuming]]\nservice = 'Adder'\nendpoint = '{endpoint}'\npeer = '{peer}'\n{BRIEF}");
    let client = Adapter::start("client", &world::contract("plain"), &consuming);
    let at = client.at(&format!("consuming {endpoint}"));
    world::add(&at, 0, 0).unwrap_err();
    assert_eq!(world::add(&at, 0, 0).unwrap(), -1);
    assert_eq!(client.told().matches("Failed precondition").count(), 1, "{}", client.told());
}

#[test]
fn a_thrift_connection_outlives_the_other_adapter() {
    let world = world::full("plain", -1);
    let mut stream = TcpStream::connect(world.client.resolve(&{
        world.add(2, 2);
        world.adder_at.clone()
    }))
    .unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut add = || {
        let numbers = [("a", codecs::value::Value::Integer(0)), ("b", codecs::value::Value::Integer(0))];
        world::call_on(&mut stream, "Adder", "add", codecs::value::Value::record(numbers)).unwrap()
    };
    add();
    assert!(world.client.told().matches("Failed precondition").count() == 0);
    drop(world.adder);
    assert_eq!(add(), codecs::value::Value::Integer(-1));
    assert!(world.client.told().contains("Failed precondition"), "{}", world.client.told());
}

#[test]
fn an_adapter_that_greets_and_ends_costs_no_call() {
    let port = world::adder(-1);
    let endpoint = format!("127.0.0.1:{port}");
    let (ended, has_ended) = std::sync::mpsc::channel();
    let peer = mute(move |stream| {
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&greeting).unwrap();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        ended.send(()).unwrap();
    });
    let consuming = format!("[[consuming]]\nservice = 'Adder'\nendpoint = '{endpoint}'\npeer = '{peer}'\n");
    let client = Adapter::start("client", &world::contract("plain"), &consuming);
    let mut stream = TcpStream::connect(client.at(&format!("consuming {endpoint}"))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    has_ended.recv().unwrap();
    let numbers = [("a", codecs::value::Value::Integer(0)), ("b", codecs::value::Value::Integer(0))];
    let sum = world::call_on(&mut stream, "Adder", "add", codecs::value::Value::record(numbers)).unwrap();
    assert_eq!(sum, codecs::value::Value::Integer(-1));
    assert_eq!(client.told().matches("Failed precondition").count(), 1, "{}", client.told());
}

#[test]
fn thrift_between_adapters_with_certificates_and_without() {
    let authority = Authority::new();
    let port = world::adder(-1);
    let (endpoint, adapters) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", free_port()));
    let table = format!("service = 'Adder'\nendpoint = '{endpoint}'\n");
    let (of_server, of_client) = (authority.make("server"), authority.make("client"));
    let server = format!("[[providing]]\n{table}adapters = '{adapters}'\n{}", of_server.peers());
    let server = Adapter::start("server", &world::contract("plain"), &server);
    let consuming = format!("[[consuming]]\n{table}peer = '{adapters}'\n");
    for (tls, is_believed) in [(of_client.peers(), true), (String::new(), false)] {
        let client = Adapter::start("client", &world::contract("plain"), &(consuming.clone() + &tls));
        assert_eq!(world::add(&client.at(&format!("consuming {endpoint}")), 0, 0).unwrap(), -1);
        // The service's adapter checks calls of a trusted client. An untrusted client's adapter does all checks itself.
        assert_eq!(client.told().contains("Failed precondition"), !is_believed, "{}", client.told());
        let told = server.told();
        assert_eq!(told.matches("Blaming: client (precondition failure)").count(), 1, "{told}");
    }
    counted(&server, "metadata_refused_total 1");
}
