//! Thrift over TCP, framed binary: a server with a thread for each connection, and a client.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use codecs::thrift::{Framing, Header, Limits, Message, MessageKind, Outcome, Protocol, Schema, compose_message, idl};
use codecs::value::Value;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

const FRAME_MAX_BYTES: usize = 1 << 20;

fn schema() -> Schema {
    let text = include_str!("calculator.thrift");
    idl::parse("calculator.thrift", text, &mut |name| Err(format!("{name} is not included")))
        .expect("it is checked by tests")
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Serves the methods of a service until the process is killed. Prints `ready` when it listens.
pub(crate) fn serve(
    port: &str,
    service: &'static str,
    answer: impl Fn(&str, Vec<Option<Value>>) -> Value + Send + Sync + 'static,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(("127.0.0.1", port.parse::<u16>()?))?;
    println!("ready {}", listener.local_addr()?.port());
    let (schema, answer) = (Arc::new(schema()), Arc::new(answer));
    for stream in listener.incoming() {
        let (mut stream, schema, answer) = (stream?, schema.clone(), answer.clone());
        // An error closes the connection, so the client notices it.
        std::thread::spawn(move || while one(&mut stream, &schema, service, answer.as_ref()).is_ok() {});
    }
    Ok(())
}

fn one(
    stream: &mut TcpStream,
    schema: &Schema,
    service: &str,
    answer: &dyn Fn(&str, Vec<Option<Value>>) -> Value,
) -> Result<(), Failure> {
    let bytes = read_frame(stream)?;
    let message = Message::decode(Protocol::Binary, &bytes, &Limits::DEFAULT)?;
    let of = schema.service(service).and_then(|service| service.method(message.header.method()));
    let method = of.ok_or("there is no such method")?;
    let arguments = message.arguments(schema, method);
    let fields = schema.structure(method.arguments).in_order();
    let fields = fields.map(|field| arguments.get(&field.name).map(|view| view.to_value())).collect();
    let result = match answer(&method.name, fields) {
        Value::Null => Value::record([]),
        value => Value::record([("success", value)]),
    };
    let header = Header { kind: MessageKind::Reply, ..message.header };
    let out = compose_message(Protocol::Binary, Framing::Framed, &header, schema, method.result, &result)?;
    stream.write_all(&out)?;
    Ok(())
}

pub(crate) struct Remote {
    stream: TcpStream,
    schema: Schema,
    service: &'static str,
}

impl Remote {
    /// Connects to an endpoint, through the adapter if `ADAPTER` names one.
    pub(crate) fn connect(service: &'static str, endpoint: &str) -> Result<Self, Failure> {
        let address = match std::env::var("ADAPTER") {
            Ok(adapter) if !adapter.is_empty() => resolve(&adapter, endpoint)?,
            _ => endpoint.to_owned(),
        };
        let stream = TcpStream::connect(&address).map_err(|error| format!("cannot connect to {address}: {error}"))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, schema: schema(), service })
    }

    /// Calls a method. A thrown exception is an error.
    pub(crate) fn call(&mut self, method: &str, arguments: Value) -> Result<Value, Failure> {
        let of = self.schema.service(self.service).and_then(|service| service.method(method));
        let method = of.ok_or("there is no such method")?;
        let header = Header { name: &method.name, kind: MessageKind::Call, sequence: 1, is_strict: true };
        let out =
            compose_message(Protocol::Binary, Framing::Framed, &header, &self.schema, method.arguments, &arguments)?;
        self.stream.write_all(&out)?;
        let bytes = read_frame(&mut self.stream)?;
        let message = Message::decode(Protocol::Binary, &bytes, &Limits::DEFAULT)?;
        match message.outcome(&self.schema, method) {
            Outcome::Returned(value) => Ok(value.map_or(Value::Null, |view| view.to_value())),
            other => Err(format!("{other:?}").into()),
        }
    }
}

/// Asks the adapter for the address at which to reach an endpoint.
fn resolve(adapter: &str, endpoint: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(adapter)?;
    write!(stream, "GET /resolve?endpoint={endpoint} HTTP/1.1\r\nHost: {adapter}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the adapter's response is incomplete")?;
    let address = body.split_once("\"address\":\"").and_then(|(_, rest)| rest.split_once('"'));
    Ok(address.ok_or_else(|| format!("the adapter says: {body}"))?.0.to_owned())
}
