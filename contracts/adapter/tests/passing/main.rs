//! Messages outside the contract pass unchanged: Thrift frames, other bytes, and HTTP of all shapes.

#[path = "../calculator/world.rs"]
mod world;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use proptest::prelude::*;
use world::{Adapter, contract, free_port};

fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut from, mut to) = (stream.try_clone().unwrap(), stream);
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

fn mirror() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while let Ok(frame) = world::read_frame(&mut stream) {
                    if stream.write_all(&frame).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn adapter_before(port: u16) -> Adapter {
    let at = format!("127.0.0.1:{port}");
    Adapter::start("client", &contract("plain"), &format!("[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'"))
}

fn through(address: &str, bytes: &[u8], pieces: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut back = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        back.read_to_end(&mut all).map(|_| all).unwrap_or_default()
    });
    for piece in bytes.chunks(bytes.len().div_ceil(pieces).max(1)) {
        stream.write_all(piece).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    reader.join().unwrap()
}

#[test]
fn non_thrift_bytes_pass_unchanged() {
    let adapter = adapter_before(echo());
    let name =
        adapter.running.as_ref().unwrap().addresses.keys().find(|name| name.starts_with("consuming")).unwrap().clone();
    let at = adapter.at(&name);
    let big = (0..10_000_000_u32).map(|at| (at * 7 + (at >> 8)) as u8).collect::<Vec<_>>();
    let big = [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &big].concat();
    assert!(through(&at, &big, 100) == big);
    let run = |bytes: Vec<u8>, pieces: usize| through(&at, &bytes, pieces) == bytes;
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    runner
        .run(&(proptest::collection::vec(any::<u8>(), 0..600), 1..5_usize), |(bytes, pieces)| {
            prop_assert!(run(bytes, pieces));
            Ok(())
        })
        .unwrap();
}

#[test]
fn unknown_methods_and_long_frames_pass_unchanged() {
    let adapter = adapter_before(mirror());
    let name =
        adapter.running.as_ref().unwrap().addresses.keys().find(|name| name.starts_with("consuming")).unwrap().clone();
    let at = adapter.at(&name);
    let frame = |name: &[u8], filler: usize| {
        let mut message = vec![0x80, 1, 0, 1];
        message.extend((name.len() as u32).to_be_bytes());
        message.extend(name);
        message.extend([0, 0, 0, 9, 11, 0, 1]);
        message.extend((filler as u32).to_be_bytes());
        message.extend(vec![b'x'; filler]);
        message.push(0);
        [&(message.len() as u32).to_be_bytes()[..], &message].concat()
    };
    for frames in
        [vec![frame(b"no_such", 3); 5], vec![frame(b"add", 10_000_000)], vec![frame(b"x", 9_000_000), frame(b"y", 1)]]
    {
        let all = frames.concat();
        assert!(through(&at, &all, 3) == all, "{} bytes", all.len());
    }
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("unchecked_total{reason=\"size\"} 2"), "{metrics}");
}

#[test]
fn connection_to_a_dead_service_ends() {
    let adapter = adapter_before(free_port());
    let name =
        adapter.running.as_ref().unwrap().addresses.keys().find(|name| name.starts_with("consuming")).unwrap().clone();
    assert!(world::add(&adapter.at(&name), 1, 2).is_err());
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("upstream_failed_total 1"), "{metrics}");
}

#[test]
fn learned_endpoints_need_an_allow_rule() {
    let adder = world::adder(0);
    let discovery = format!("127.0.0.1:{}", world::discovery(adder));
    let text = format!(
        "name = 'client'\ncontract = '{}'\nadmin = '127.0.0.1:0'\nallow = ['10.0.0.0/8:*']\nproxy = '127.0.0.1:0'\n\
         [[consuming]]\nservice = 'AdderDiscovery'\nendpoint = '{discovery}'\n\
         [protocols.Adder]\nkind = 'thrift'\nidl = '{idl}'\n[protocols.AdderDiscovery]\nkind = 'thrift'\nidl = '{idl}'\n",
        contract("plain"),
        idl = world::file("codecs/schemas/calculator.thrift").display(),
    );
    let adapter = Adapter::from_text(&text);
    let learned = world::adder_info(&adapter.resolve(&discovery)).unwrap();
    assert_eq!(adapter.resolve(&learned), learned, "directly, as connecting is not allowed");
    let mut tunnel = TcpStream::connect(adapter.at("proxy")).unwrap();
    write!(tunnel, "CONNECT {learned} HTTP/1.1\r\nHost: {learned}\r\n\r\n").unwrap();
    let mut head = [0; 12];
    tunnel.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 403");
}

#[test]
fn tunnels_to_introduced_endpoints_are_checked() {
    let discovery = format!("127.0.0.1:{}", world::discovery(world::adder(-1)));
    let consuming =
        format!("proxy = '127.0.0.1:0'\n[[consuming]]\nservice = 'AdderDiscovery'\nendpoint = '{discovery}'");
    let adapter = Adapter::start("client", &contract("plain"), &consuming);
    let tunnel = |to: &str| {
        let mut tunnel = TcpStream::connect(adapter.at("proxy")).unwrap();
        write!(tunnel, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            tunnel.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        tunnel
    };
    use codecs::value::Value;
    let info = world::call_on(&mut tunnel(&discovery), "AdderDiscovery", "get_adder_info", Value::record([])).unwrap();
    let Some(Value::Integer(port)) = info.get("port") else { panic!("{info:?}") };
    let numbers = Value::record([("a", Value::Integer(2)), ("b", Value::Integer(2))]);
    let sum = world::call_on(&mut tunnel(&format!("127.0.0.1:{port}")), "Adder", "add", numbers).unwrap();
    assert_eq!(sum, Value::Integer(3));
    assert!(adapter.told().contains("Failed postcondition result == a + b"), "{}", adapter.told());
}

#[test]
fn forward_proxy_tunnels_are_checked() {
    let port = world::adder(-1);
    let at = format!("127.0.0.1:{port}");
    let consuming = format!("proxy = '127.0.0.1:0'\n[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'");
    let adapter = Adapter::start("client", &contract("plain"), &consuming);
    let mut tunnel = TcpStream::connect(adapter.at("proxy")).unwrap();
    write!(tunnel, "CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tunnel.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let arguments = codecs::value::Value::record([
        ("a", codecs::value::Value::Integer(2)),
        ("b", codecs::value::Value::Integer(2)),
    ]);
    let sum = world::call_on(&mut tunnel, "Adder", "add", arguments).unwrap();
    assert_eq!(sum, codecs::value::Value::Integer(3));
    assert!(adapter.told().contains("Failed postcondition result == a + b"));
}

#[test]
fn enforce_returns_an_exception_and_keeps_the_connection() {
    let at = format!("127.0.0.1:{}", world::adder(-1));
    let more = format!("[checks]\nenforce = true\n[[consuming]]\nservice = 'Adder'\nendpoint = '{at}'");
    let adapter = Adapter::start("client", &contract("plain"), &more);
    let mut stream = TcpStream::connect(adapter.at(&format!("consuming {at}"))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let numbers = |a, b| {
        codecs::value::Value::record([("a", codecs::value::Value::Integer(a)), ("b", codecs::value::Value::Integer(b))])
    };
    // The first call is rejected before it reaches the service, and the second because of its reply.
    for (a, b, clause) in [(0, 1, "Adder.add.positive"), (2, 2, "Adder.add.sum")] {
        let error = world::call_on(&mut stream, "Adder", "add", numbers(a, b)).unwrap_err().to_string();
        let says = format!("refused: contract clause `{clause}` is violated");
        assert!(error.contains(&says) || error.contains(&format!("{:?}", says.as_bytes())), "{error}");
    }
    let metrics = adapter.running.as_ref().unwrap().metrics();
    assert!(metrics.contains("refused_calls_total 2\n"), "{metrics}");
}
