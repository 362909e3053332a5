//! Decodes Thrift requests and replies into the values of a contract.

use codecs::thrift::{
    Framing, Limits, Message, MessageKind, Outcome, Protocol, Schema, Service, View, WireType, detect,
};
use contract::{MessageValue, Value};

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
    Message::decode(protocol, bytes, &Limits::DEFAULT).map_err(|error| Unread::new(&error, "not a Thrift message"))
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
    let fields = schema.structure(method.arguments).in_order();
    let args = fields.take(op.params.len()).map(|field| match arguments.get_id(field.id) {
        Some(view) => value(view),
        None if arguments.raw_fields().any(|(id, _)| id == field.id) => MessageValue::malformed(OTHER),
        None => Value::Missing.into(),
    });
    RequestKind::Known(op.clone(), Request(args.collect()))
}

pub(super) fn reply<'m>(schema: &'m Schema, service: &'m Service, op: &Op, message: &Message<'m>) -> Reply<'m> {
    let Some(method) = service.method(own_name(op)) else { return Reply::opaque() };
    if !matches!(message.header.kind, MessageKind::Reply | MessageKind::Exception) {
        return Reply::unread(Unread::Malformed("a call, not a reply".to_owned()));
    }
    let (value, is_error) = match message.outcome(schema, method) {
        Outcome::Returned(Some(view)) => (value(view), false),
        Outcome::Returned(None) => (Value::Missing.into(), false),
        Outcome::Threw(name, view) => (MessageValue::record([(name, value(view))]), true),
        Outcome::Failed { message, code } => {
            let message = MessageValue::text(String::from_utf8_lossy(message));
            let code = Value::Int(i64::from(code)).into();
            (MessageValue::record([("message", message), ("code", code)]), true)
        }
        Outcome::Missing => (MessageValue::malformed(NO_OUTCOME), false),
    };
    Reply { value, is_error, may_be_undecided: false }
}

/// Reads a view. Recursion is bounded, because depth and number of values have been checked.
fn value(view: View<'_>) -> MessageValue<'_> {
    let value = match view.wire {
        WireType::Bool => view.as_bool().map(|value| Value::Bool(value).into()),
        WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => {
            view.as_i64().map(|value| Value::Int(value).into())
        }
        WireType::Double => view.as_f64().map(|value| Value::Float(value).into()),
        WireType::Bytes | WireType::Uuid => match view.as_str() {
            Some(text) if view.wire == WireType::Bytes => Some(MessageValue::text(text)),
            // A string that is not UTF-8 has no text that a clause could refer to.
            None if matches!(view.ty, Some(codecs::thrift::Type::String)) => Some(MessageValue::malformed("not UTF-8")),
            _ => view.as_bytes().map(|bytes| MessageValue::Bytes(bytes.into())),
        },
        WireType::List | WireType::Set => Some(MessageValue::List(view.elements().map(value).collect())),
        WireType::Map => Some(MessageValue::Map(view.pairs().map(|pair| (value(pair.0), value(pair.1))).collect())),
        WireType::Struct => {
            let mut fields = Vec::new();
            for (field, view) in view.known_fields() {
                // The last occurrence of a field counts.
                fields.retain(|(name, _)| *name != field.name.as_str());
                fields.push((field.name.as_str(), view.map_or(MessageValue::malformed(OTHER), value)));
            }
            Some(MessageValue::record(fields))
        }
    };
    value.unwrap_or(Value::Opaque.into())
}
