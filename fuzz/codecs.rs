//! Assertions for the codecs of contracts. The first byte of a Thrift input chooses limits, framing and cut points.
#![allow(dead_code, reason = "each target uses one function")]

use codecs::json;
use codecs::rest_path_and_query::{Template, parameters};
use codecs::soap::{self, Envelope, Response, wsdl};
use codecs::thrift::{
    self, Framing, Header, Message, MessageKind, MessageReader, Progress, Protocol, Schema, compose_message, detect,
    idl,
};

const EVERY: &str = include_str!("../contracts/codecs/tests/every.thrift");
const CHESS: &str = include_str!("../contracts/codecs/schemas/chess.wsdl");

/// Limits that short inputs reach.
const NARROW: thrift::Limits =
    thrift::Limits { message_bytes: 60, string_bytes: 8, elements: 4, values: 12, depth: 4, name_bytes: 6 };

fn no_file(path: &str) -> Result<String, String> {
    Err(format!("{path} is not there"))
}

/// Checks that a file is a schema or gives errors with valid locations.
pub(crate) fn thrift_idl(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A text that includes `again` includes itself once more.
    let mut include = |path: &str| if path == "again" { Ok(text.to_owned()) } else { no_file(path) };
    match idl::parse("x.thrift", text, &mut include) {
        Ok(schema) => {
            for service in &schema.services {
                for method in &service.methods {
                    let arguments = schema.structure(method.arguments);
                    assert!(arguments.fields.is_sorted_by_key(|field| field.id));
                    assert_eq!(arguments.in_order().len(), arguments.fields.len());
                    assert!(
                        schema
                            .structure(method.result)
                            .fields
                            .iter()
                            .all(|field| !schema.type_name(&field.ty).is_empty())
                    );
                }
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.0.is_empty() && mistakes.0.len() <= codecs::mistake::MISTAKES_MAX);
            let lines = text.split('\n').count();
            for mistake in &mistakes.0 {
                assert!(mistake.line <= lines && mistake.column > 0, "{mistake}");
            }
        }
    }
}

pub(crate) fn thrift_binary(bytes: &[u8]) {
    thrift_messages(Protocol::Binary, bytes);
}

pub(crate) fn thrift_compact(bytes: &[u8]) {
    thrift_messages(Protocol::Compact, bytes);
}

/// Checks that messages do not depend on how the stream is cut and survive a round trip.
fn thrift_messages(protocol: Protocol, bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 1 != 0 { NARROW } else { thrift::Limits::DEFAULT };
    let framing = if control & 2 != 0 { Framing::Framed } else { Framing::Unframed };
    let at = (usize::from(control) * 37) % (stream.len() + 1);
    let whole = stream_messages(protocol, framing, &limits, stream, &[stream.len()]);
    let small = (1..=stream.len()).step_by(stream.len() / 256 + 1).chain([stream.len()]).collect::<Vec<_>>();
    for ends in [vec![at, stream.len()], small] {
        assert_eq!(stream_messages(protocol, framing, &limits, stream, &ends), whole);
    }
    let _ = detect(stream, &limits);
    let schema = idl::parse("every.thrift", EVERY, &mut no_file).unwrap();
    for (begin, end) in whole.0 {
        message(&schema, protocol, &stream[begin..end], &limits);
    }
}

type Found = (Vec<(usize, usize)>, Option<thrift::DecodeError>);

fn stream_messages(
    protocol: Protocol,
    framing: Framing,
    limits: &thrift::Limits,
    stream: &[u8],
    ends: &[usize],
) -> Found {
    let mut reader = MessageReader::new(protocol, framing, *limits);
    let (mut begin, mut found, mut least) = (0, Vec::new(), 0);
    for end in ends {
        loop {
            match reader.read(&stream[begin..*end]) {
                Ok(Progress::Need { more }) => {
                    assert!(more > 0);
                    least = *end + more;
                    break;
                }
                Ok(Progress::Message { used, begin: from }) => {
                    assert!(used > from && begin + used <= *end && begin + used >= least || used == 4);
                    found.push((begin + from, begin + used));
                    begin += used;
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fn message(schema: &Schema, protocol: Protocol, bytes: &[u8], limits: &thrift::Limits) {
    let Ok(read) = Message::decode(protocol, bytes, limits) else { return };
    let method = schema.service("Test").unwrap().method("every").unwrap();
    let _ = read.body.to_value();
    let _ = read.outcome(schema, method);
    let value = read.arguments(schema, method).to_value();
    let header = Header { kind: MessageKind::Oneway, ..read.header };
    let compose = |value| compose_message(protocol, Framing::Unframed, &header, schema, method.arguments, value);
    let Ok(first) = compose(&value) else { return };
    let again = Message::decode(protocol, &first, &thrift::Limits::DEFAULT).expect("it was composed");
    assert_eq!(again.header, header);
    assert_eq!(compose(&again.arguments(schema, method).to_value()).as_ref(), Ok(&first));
    for end in 0..first.len() {
        assert!(Message::decode(protocol, &first[..end], &thrift::Limits::DEFAULT).is_err());
    }
}

/// Checks that an envelope is rejected or survives a round trip.
pub(crate) fn soap(bytes: &[u8]) {
    let limits = soap::Limits { document_bytes: 1 << 16, depth: 12, elements: 200, attributes: 8, text_bytes: 1 << 12 };
    let Ok(envelope) = Envelope::parse(bytes, &limits) else { return };
    let chess = wsdl::parse("chess.wsdl", CHESS, &mut no_file).unwrap();
    for operation in chess.operations() {
        if let Ok(Response::Returned { all, .. }) = envelope.response(&chess, operation) {
            again(&chess, operation.output.as_ref().unwrap(), &all.to_value(), |envelope| {
                let Ok(Response::Returned { all, .. }) = envelope.response(&chess, operation) else { panic!() };
                all.to_value()
            });
        }
    }
    if let Ok(request) = envelope.request(&chess, None) {
        again(&chess, &request.operation.input, &request.arguments.to_value(), |envelope| {
            envelope.request(&chess, None).unwrap().arguments.to_value()
        });
    }
}

fn again(
    wsdl: &soap::Wsdl,
    message: &soap::Message,
    value: &codecs::value::Value,
    read: impl Fn(&Envelope<'_>) -> codecs::value::Value,
) {
    let Ok(first) = soap::compose_envelope(wsdl, message, value) else { return };
    let envelope = Envelope::parse(first.as_bytes(), &soap::Limits::DEFAULT).expect("it was composed");
    let second = soap::compose_envelope(wsdl, message, &read(&envelope)).expect("it was read");
    assert_eq!(first, second);
}

/// Checks that a file is a WSDL or gives errors with valid locations.
pub(crate) fn wsdl(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut import = |location: &str| if location == "again" { Ok(text.to_owned()) } else { no_file(location) };
    match wsdl::parse("x.wsdl", text, &mut import) {
        Ok(wsdl) => {
            for operation in wsdl.operations() {
                let _ = wsdl.complex(operation.input.content);
                assert!(wsdl.operation_by_element(&operation.input.namespace, &operation.input.element).is_some());
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.0.is_empty() && mistakes.0.len() <= codecs::mistake::MISTAKES_MAX);
            let lines = text.split('\n').count();
            assert!(mistakes.0.iter().all(|mistake| mistake.line <= lines && mistake.column > 0));
        }
    }
}

/// Checks that accepted input is also JSON to serde_json and survives a round trip.
pub(crate) fn json(bytes: &[u8]) {
    let Ok(read) = json::parse(bytes) else { return };
    assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
    let first = json::compose(&read);
    assert_eq!(json::compose(&json::parse(first.as_bytes()).expect("it was composed")), first);
}

/// Checks that a template without parameters matches its own text, and that a match has all parameters. The input is
/// lines of templates, then a target.
pub(crate) fn rest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (templates, target) = text.rsplit_once('\n').unwrap_or(("", text));
    let templates = templates.lines().take(20).filter_map(|line| Some((line, Template::parse(line).ok()?)));
    let templates = templates.collect::<Vec<_>>();
    for (text, template) in &templates {
        if !text.contains('{') {
            assert_eq!(template.matches(text), Some(Vec::new()), "{text}");
        }
    }
    for (text, template) in &templates {
        let Some(found) = template.matches(target) else { continue };
        assert_eq!(found.len(), text.matches('{').count());
        assert!(found.iter().all(|parameter| !parameter.1.is_empty()));
    }
    assert!(parameters(target, 50).is_none_or(|all| all.len() <= 50));
}
