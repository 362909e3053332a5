//! The calculator: a discovery service, an adder and a client, each with an adapter, on real sockets.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this module")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapter::Running;
use codecs::thrift::{
    Framing, Header, Limits, Message, MessageKind, MessageReader, Outcome, Progress, Protocol, Schema, compose_message,
    idl,
};
use codecs::value::Value;

pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

pub fn schema() -> Schema {
    let text = std::fs::read_to_string(file("codecs/schemas/calculator.thrift")).unwrap();
    idl::parse("calculator.thrift", &text, &mut |_| unreachable!()).unwrap()
}

/// Returns a free port below the ephemeral range, so that the system assigns it to no other process.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(131);
    let candidates = std::iter::repeat_with(|| own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)));
    let mut ports = candidates.map(|number| 10_000 + (number % 22_000) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

pub fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_be_bytes(head) as usize];
    stream.read_exact(&mut body)?;
    Ok([&head[..], &body].concat())
}

/// Starts a Thrift service and returns its port. The thread ends with the process.
pub fn serve(service: &'static str, answer: impl Fn(&str, Vec<Option<Value>>) -> Value + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answer, schema) = (Arc::new(answer), Arc::new(schema()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, schema) = (answer.clone(), schema.clone());
            std::thread::spawn(move || {
                let mut stream = stream;
                while let Ok(frame) = read_frame(&mut stream) {
                    let message = Message::decode(Protocol::Binary, &frame[4..], &Limits::DEFAULT).unwrap();
                    let method = schema.service(service).unwrap().method(message.header.method()).unwrap();
                    let arguments = message.arguments(&schema, method);
                    let fields = schema.structure(method.arguments).in_order();
                    let fields = fields.map(|field| arguments.get(&field.name).map(|view| view.to_value())).collect();
                    let result = match answer(&method.name, fields) {
                        Value::Null => Value::record([]),
                        value => Value::record([("success", value)]),
                    };
                    let header = Header { kind: MessageKind::Reply, ..message.header };
                    let out =
                        compose_message(Protocol::Binary, Framing::Framed, &header, &schema, method.result, &result)
                            .unwrap();
                    if stream.write_all(&out).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

pub fn adder(off_by: i64) -> u16 {
    serve("Adder", move |_, arguments| {
        let number = |at: usize| match arguments[at] {
            Some(Value::Integer(number)) => number,
            _ => 0,
        };
        Value::Integer(number(0) + number(1) + off_by)
    })
}

pub fn discovery(first: u16) -> u16 {
    let port = AtomicU16::new(first);
    serve("AdderDiscovery", move |method, arguments| {
        if let ("register_adder", Some(Value::Integer(registered))) = (method, arguments.get(1).cloned().flatten()) {
            port.store(registered as u16, Ordering::Relaxed);
            return Value::Null;
        }
        let port = i64::from(port.load(Ordering::Relaxed));
        Value::record([("host", Value::Text("127.0.0.1".to_owned())), ("port", Value::Integer(port))])
    })
}

pub fn call(address: &str, service: &str, method: &str, arguments: Value) -> io::Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    call_on(&mut stream, service, method, arguments)
}

pub fn call_on(stream: &mut TcpStream, service: &str, method: &str, arguments: Value) -> io::Result<Value> {
    let schema = schema();
    let method = schema.service(service).unwrap().method(method).unwrap();
    let header = Header { name: &method.name, kind: MessageKind::Call, sequence: 7, is_strict: true };
    let out =
        compose_message(Protocol::Binary, Framing::Framed, &header, &schema, method.arguments, &arguments).unwrap();
    stream.write_all(&out)?;
    let frame = read_frame(stream)?;
    let mut reader = MessageReader::new(Protocol::Binary, Framing::Framed, Limits::DEFAULT);
    assert!(matches!(reader.read(&frame), Ok(Progress::Message { .. })));
    let message = Message::decode(Protocol::Binary, &frame[4..], &Limits::DEFAULT).map_err(io::Error::other)?;
    match message.outcome(&schema, method) {
        Outcome::Returned(value) => Ok(value.map_or(Value::Null, |view| view.to_value())),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

pub fn add(address: &str, a: i64, b: i64) -> io::Result<i64> {
    let sum = call(address, "Adder", "add", Value::record([("a", Value::Integer(a)), ("b", Value::Integer(b))]))?;
    match sum {
        Value::Integer(sum) => Ok(sum),
        other => panic!("{other:?}"),
    }
}

pub fn adder_info(address: &str) -> io::Result<String> {
    let info = call(address, "AdderDiscovery", "get_adder_info", Value::record([]))?;
    match (info.get("host"), info.get("port")) {
        (Some(Value::Text(host)), Some(Value::Integer(port))) => Ok(format!("{host}:{port}")),
        other => panic!("{other:?}"),
    }
}

#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<u8>>>);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct Adapter {
    pub running: Option<Running>,
    told: Told,
}

impl Adapter {
    /// Starts an adapter. `more` has further lines of the configuration, followed by its tables.
    pub fn start(name: &str, contract: &str, more: &str) -> Self {
        Self::from_text(&format!(
            "name = '{name}'\ncontract = '{contract}'\nadmin = '127.0.0.1:0'\nallow = ['127.0.0.1:*']\n{more}\n\
             [protocols.Adder]\nkind = 'thrift'\nidl = '{idl}'\n\
             [protocols.AdderDiscovery]\nkind = 'thrift'\nidl = '{idl}'\n",
            idl = file("codecs/schemas/calculator.thrift").display(),
        ))
    }

    pub fn from_text(text: &str) -> Self {
        Self::of(text, Path::new("/"), None)
    }

    /// Starts an adapter with paths relative to `folder`. `says` replaces the adapter's name after the checks.
    pub fn of(text: &str, folder: &Path, says: Option<&str>) -> Self {
        let draft = adapter::config::draft("", text, folder);
        let checked = adapter::check(&draft).unwrap();
        let mut config = draft.config;
        config.name = says.map_or(config.name, str::to_owned);
        let told = Told::default();
        let running = adapter::start(&config, checked, Box::new(told.clone())).unwrap();
        Self { running: Some(running), told }
    }

    pub fn at(&self, what: &str) -> String {
        let addresses = &self.running.as_ref().unwrap().addresses;
        addresses.get(what).unwrap_or_else(|| panic!("{what} is none of {addresses:?}")).to_string()
    }

    pub fn told(&self) -> String {
        self.running.as_ref().unwrap().flush();
        String::from_utf8(self.told.0.lock().unwrap().clone()).unwrap()
    }

    pub fn resolve(&self, endpoint: &str) -> String {
        let answer = get(&self.at("admin"), &format!("/resolve?endpoint={endpoint}"));
        let answer = serde_json::from_str::<serde_json::Value>(&answer).unwrap();
        answer["address"].as_str().unwrap().to_owned()
    }

    pub fn entry(&self, endpoint: &str, service: &str) -> contract::monitor::Shown {
        let all = self.running.as_ref().unwrap().entries();
        let found = all.iter().find(|entry| entry.endpoint == endpoint && entry.service == service);
        found.unwrap_or_else(|| panic!("{endpoint} is none of {all:?}")).clone()
    }
}

pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

pub fn contract(name: &str) -> String {
    file(&format!("contract/contracts/calculator-{name}.contract")).display().to_string()
}

pub struct Full {
    pub discovery: Adapter,
    pub adder: Adapter,
    pub client: Adapter,
    pub discovery_at: String,
    pub adder_at: String,
}

pub fn full(contract_name: &str, off_by: i64) -> Full {
    let contract = contract(contract_name);
    let adder_port = adder(off_by);
    let (public, adapters, adder_adapters) = (free_port(), free_port(), free_port());
    let (discovery_at, adder_at) = (format!("127.0.0.1:{public}"), format!("127.0.0.1:{adder_port}"));
    let inner = discovery(0);
    let discovery = Adapter::start(
        "discovery",
        &contract,
        &format!(
            "[[providing]]\nservice = 'AdderDiscovery'\nendpoint = '{discovery_at}'\nforward = '127.0.0.1:{inner}'\n\
             plain = '{discovery_at}'\nadapters = '127.0.0.1:{adapters}'"
        ),
    );
    let consuming = format!(
        "[[consuming]]\nservice = 'AdderDiscovery'\nendpoint = '{discovery_at}'\npeer = '127.0.0.1:{adapters}'"
    );
    let adder = Adapter::start(
        "adder",
        &contract,
        &format!(
            "[[providing]]\nservice = 'Adder'\nendpoint = '{adder_at}'\nadapters = '127.0.0.1:{adder_adapters}'\n{consuming}"
        ),
    );
    let client = Adapter::start("client", &contract, &consuming);
    let registered =
        Value::record([("host", Value::Text("127.0.0.1".to_owned())), ("port", Value::Integer(i64::from(adder_port)))]);
    call(&adder.resolve(&discovery_at), "AdderDiscovery", "register_adder", registered).unwrap();
    Full { discovery, adder, client, discovery_at, adder_at }
}

impl Full {
    pub fn add(&self, a: i64, b: i64) -> i64 {
        let adder = adder_info(&self.client.resolve(&self.discovery_at)).unwrap();
        assert_eq!(adder, self.adder_at);
        add(&self.client.resolve(&adder), a, b).unwrap()
    }
}
