//! Decodes Thrift requests and replies into the values of a contract.

use codecs::thrift::{
    Framing, Limits, Message, MessageKind, Outcome, Protocol, Schema, Service, View, WireType, detect,
};
use contract::{Tape, TapeId, Value};

use super::{Reply, Request, RequestKind, Unread, own_name};
use crate::contract_services::{Op, Ops};

/// Describes a field whose wire type differs from the IDL. Apache Thrift's libraries skip such a field.
const OTHER: &str = "of a different type on the wire than in the IDL";

const NO_OUTCOME: &str =
    "not a reply to its method: it has neither a result of the declared type nor a declared exception";

/// Decodes a body that must be exactly one unframed message.
pub(super) fn whole(body: &[u8]) -> Result<Message<'_>, Unread> {
    use codecs::thrift::Detected;
    let protocol = match detect(body, &Limits::DEFAULT) {
        Detected::Thrift(protocol, Framing::Unframed) => protocol,
        Detected::Thrift(..) => return Err(Unread::Malformed("a framed Thrift message".to_owned())),
        _ => return Err(Unread::Malformed("not a Thrift message".to_owned())),
    };
    decode(protocol, body)
}

pub(crate) fn decode(protocol: Protocol, bytes: &[u8]) -> Result<Message<'_>, Unread> {
    Message::decode(protocol, bytes, &Limits::DEFAULT).map_err(|error| match error.is_limit {
        true => Unread::Over,
        false => Unread::Malformed(format!("not a Thrift message: {error}")),
    })
}

pub(super) fn request<'m>(schema: &'m Schema, service: &Service, ops: &Ops, message: &Message<'m>) -> RequestKind<'m> {
    if !matches!(message.header.kind, MessageKind::Call | MessageKind::Oneway) {
        return RequestKind::Unreadable;
    }
    let name = message.header.method();
    let (Some(op), Some(method)) = (ops.get(name), service.method(name)) else {
        return RequestKind::Unlisted(name.to_owned());
    };
    let arguments = message.arguments(schema, method);
    let mut tape = Tape::new();
    let fields = schema.structure(method.arguments).in_order();
    let args = fields.take(op.params.len()).map(|field| match arguments.get_id(field.id) {
        Some(view) => put(&mut tape, view),
        None if arguments.raw_fields().any(|(id, _)| id == field.id) => tape.malformed(OTHER),
        None => tape.add(Value::Missing),
    });
    let args = args.collect();
    RequestKind::Known(op.clone(), Request { tape, args })
}

pub(super) fn reply<'m>(schema: &'m Schema, service: &'m Service, op: &Op, message: &Message<'m>) -> Reply<'m> {
    let Some(method) = service.method(own_name(op)) else { return Reply::opaque() };
    if !matches!(message.header.kind, MessageKind::Reply | MessageKind::Exception) {
        return Reply::unread(Unread::Malformed("a call, not a reply".to_owned()));
    }
    let mut tape = Tape::new();
    let (value, is_error) = match message.outcome(schema, method) {
        Outcome::Returned(Some(view)) => (put(&mut tape, view), false),
        Outcome::Returned(None) => (tape.add(Value::Missing), false),
        Outcome::Threw(name, view) => {
            let thrown = put(&mut tape, view);
            (tape.map([(name, thrown)]), true)
        }
        Outcome::Failed { message, code } => {
            let message = tape.text(String::from_utf8_lossy(message));
            let code = tape.add(Value::Int(i64::from(code)));
            (tape.map([("message", message), ("code", code)]), true)
        }
        Outcome::Missing => (tape.malformed(NO_OUTCOME), false),
    };
    Reply { tape, value, is_error, may_be_undecided: false }
}

/// Puts a view on the tape. Recursion is bounded, because depth and number of values have been checked.
fn put<'m>(tape: &mut Tape<'m>, view: View<'m>) -> TapeId {
    let id = match view.wire_type() {
        WireType::Bool => view.as_bool().map(|value| tape.add(Value::Bool(value))),
        WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => {
            view.as_i64().map(|value| tape.add(Value::Int(value)))
        }
        WireType::Double => view.as_f64().map(|value| tape.add(Value::Float(value))),
        WireType::Bytes | WireType::Uuid => match view.as_str() {
            Some(text) if view.wire_type() == WireType::Bytes => Some(tape.text(text)),
            // A string that is not UTF-8 has no text that a clause could refer to.
            None if matches!(view.schema_type(), Some(codecs::thrift::Type::String)) => {
                Some(tape.malformed("not UTF-8"))
            }
            _ => view.as_bytes().map(|bytes| tape.bytes(bytes)),
        },
        WireType::List | WireType::Set => {
            let items = view.elements().map(|item| put(tape, item)).collect::<Vec<_>>();
            Some(tape.list(items))
        }
        WireType::Map => {
            let pairs = view.pairs().map(|(key, value)| (put(tape, key), put(tape, value))).collect::<Vec<_>>();
            Some(tape.map_of(pairs))
        }
        WireType::Struct => {
            let mut fields = Vec::new();
            for (field, value) in view.known_fields() {
                let id = match value {
                    Some(value) => put(tape, value),
                    None => tape.malformed(OTHER),
                };
                // The last occurrence of a field counts.
                fields.retain(|(name, _): &(&str, TapeId)| *name != field.name);
                fields.push((field.name.as_str(), id));
            }
            Some(tape.map(fields))
        }
    };
    id.unwrap_or_else(|| tape.add(Value::Opaque))
}
