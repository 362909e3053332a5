//! Decodes SOAP requests and replies into the values of a contract.

use codecs::soap::{Builtin, Envelope, Field, Limits, Response, Type, View, Wsdl};
use contract::{MessageValue, Value};
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::{Reply, Request, RequestKind, Unread, own_name};
use crate::contract_services::{Op, Ops};

const OTHER: &str = "not an envelope of its operation";

pub(super) fn request(wsdl: &Wsdl, ops: &Ops, headers: &HeaderMap, body: &[u8], strict: bool) -> RequestKind<'static> {
    let action = headers.get("soapaction").and_then(|action| action.to_str().ok());
    let by_action = action.and_then(|action| wsdl.operation_by_action(action));
    let envelope = match envelope(headers, body) {
        Ok(envelope) => envelope,
        Err(Unread::Over | Unread::Coding(_)) => return RequestKind::Unreadable,
        Err(Unread::Malformed(what)) => {
            // `SOAPAction` may name the operation of a body that cannot be read.
            let Some(op) = by_action.and_then(|named| ops.get(&named.name)) else { return RequestKind::Unreadable };
            let args = op.params.iter().map(|_| MessageValue::malformed(what.clone())).collect();
            return RequestKind::Known(op.clone(), Request(args));
        }
    };
    let Ok(request) = envelope.request(wsdl, action) else {
        // A server that follows `SOAPAction` would run a listed operation without a check.
        let is_listed = by_action.is_some_and(|named| ops.contains_key(&named.name));
        let (_, element) = envelope.content();
        let unlisted = RequestKind::Unlisted(element.to_owned());
        return if strict && is_listed { RequestKind::Unreadable } else { unlisted };
    };
    if strict && by_action.is_some_and(|named| named.name != request.operation.name) {
        return RequestKind::Unreadable;
    }
    let name = &request.operation.name;
    let Some(op) = ops.get(name) else { return RequestKind::Unlisted(name.clone()) };
    let fields = &wsdl.complex(request.operation.input.content).fields;
    let args = (0..op.params.len()).map(|at| match (fields.get(at), request.arguments.at(at)) {
        (Some(field), Some(view)) => field_value(request.arguments, field, view),
        _ => Value::Missing.into(),
    });
    RequestKind::Known(op.clone(), Request(args.collect()))
}

fn charset(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let parameters = kind.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('='));
    let mut charsets = parameters.filter(|(name, _)| name.eq_ignore_ascii_case("charset"));
    charsets.next().map(|(_, value)| value.trim_matches('"'))
}

fn reads_as_utf8(encoding: &str, body: &[u8]) -> bool {
    let encoding = encoding.to_ascii_lowercase();
    let has_ascii = ["iso-8859-", "windows-125", "latin1"].iter().any(|prefix| encoding.starts_with(prefix));
    matches!(encoding.as_str(), "utf-8" | "utf8" | "us-ascii" | "ascii") || has_ascii && body.is_ascii()
}

/// Whether a document has an unsupported encoding. Sources: RFC 7303, section 3; XML 1.0, section 4.3.3 and appendix F.
fn is_other_encoding(charset: Option<&str>, body: &[u8]) -> bool {
    let head = &body[..body.len().min(4)];
    if head.starts_with(b"\xfe\xff") || head.starts_with(b"\xff\xfe") || head.contains(&0) {
        return true;
    }
    let declared = || {
        let head = &body[..body.len().min(256)];
        let end = head.windows(2).position(|end| end == b"?>")?;
        let head = std::str::from_utf8(&head[..end]).ok()?;
        let value = head.trim_start_matches('\u{feff}').strip_prefix("<?xml")?.split_once("encoding")?.1;
        value.split(['"', '\'']).nth(1)
    };
    charset.into_iter().chain(declared()).any(|encoding| !reads_as_utf8(encoding, body))
}

fn envelope<'m>(headers: &HeaderMap, body: &'m [u8]) -> Result<Envelope<'m>, Unread> {
    if is_other_encoding(charset(headers), body) {
        return Err(Unread::Over);
    }
    Envelope::parse(body, &Limits::DEFAULT).map_err(|error| Unread::new(&error, OTHER))
}

pub(super) fn reply(wsdl: &Wsdl, op: &Op, headers: &HeaderMap, body: &[u8]) -> Result<Reply<'static>, Unread> {
    let Some(operation) = wsdl.operation(own_name(op)) else { return Ok(Reply::opaque()) };
    if operation.output.is_none() && body.is_empty() {
        return Ok(Reply::opaque());
    }
    let envelope = envelope(headers, body)?;
    let (value, is_error) = match envelope.response(wsdl, operation) {
        Ok(Response::Returned { all, result }) => {
            let fields = operation.output.as_ref().map(|output| wsdl.complex(output.content).fields.as_slice());
            let value = match (result, fields) {
                (Some(view), Some([only])) => field_value(all, only, view),
                (Some(view), _) => value(view),
                (None, Some([only])) if only.min > 0 && !only.is_list() => {
                    MessageValue::malformed(format!("an envelope without `{}`", only.name))
                }
                (None, Some([_])) => Value::Missing.into(),
                (None, _) => value(all),
            };
            (value, false)
        }
        Ok(Response::Fault(fault)) => {
            let code = MessageValue::text(fault.code_name().to_owned());
            let string = MessageValue::text(fault.string.to_owned());
            let detail = fault.detail.map_or(Value::Missing.into(), value);
            (MessageValue::record([("code", code), ("string", string), ("detail", detail)]), true)
        }
        Err(error) => return Err(Unread::new(&error, OTHER)),
    };
    Ok(Reply { value, is_error, may_be_undecided: false })
}

fn field_value(of: View<'_>, field: &Field, view: View<'_>) -> MessageValue<'static> {
    // Readers disagree on which duplicate counts, so none is trusted.
    if of.is_repeated(field) { MessageValue::malformed("a duplicate element") } else { value(view) }
}

/// Copies a view. Recursion is bounded, because the reader bounds the depth of envelopes.
fn value(view: View<'_>) -> MessageValue<'static> {
    if view.is_nil() {
        return Value::Missing.into();
    }
    if view.is_list() {
        return MessageValue::List(view.elements().map(value).collect());
    }
    let builtin = match view.ty() {
        Type::Simple(builtin, _) => builtin,
        Type::Complex(_) => {
            let fields = view.fields();
            let fields = fields.map(|(field, value)| (field.name.clone(), field_value(view, field, value)));
            return MessageValue::record(fields);
        }
        Type::Any => {
            let text = view.text().map(|text| MessageValue::text(text.to_owned()));
            return text.unwrap_or(Value::Opaque.into());
        }
    };
    let bytes = || view.as_bytes().map(|bytes| MessageValue::Bytes(bytes.into()));
    // The description omits the text, which may be secret.
    let (value, fault) = match builtin {
        Builtin::Text => (view.as_str().map(|text| MessageValue::text(text.to_owned())), "not text"),
        Builtin::Boolean => (view.as_bool().map(|value| Value::Bool(value).into()), "not a boolean"),
        Builtin::Integer(min, max) => {
            let is_beyond = || is_beyond(view.text().unwrap_or_default(), min, max);
            let value = view.as_i64().map(Value::Int).or_else(|| is_beyond().then_some(Value::Opaque));
            (value.map(MessageValue::from), "not an integer of its type")
        }
        Builtin::Float => (view.as_f64().map(|value| Value::Float(value).into()), "not a number"),
        Builtin::Base64 => (bytes(), "not base64"),
        Builtin::Hex => (bytes(), "not hexadecimal digits"),
    };
    value.unwrap_or(MessageValue::malformed(fault))
}

/// Whether a string is an integer that its type allows, but that exceeds the range of integers in clauses.
fn is_beyond(text: &str, min: i64, max: i64) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let (is_below, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_open = if is_below { min == i64::MIN } else { max == i64::MAX };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_open && is_number && text.parse::<i64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_documents_that_do_not_read_as_utf8() {
        let latin = b"<?xml version=\"1.0\" encoding='ISO-8859-1'?><a>\xe9</a>";
        let utf16 = "<a/>".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for (charset, body, is_other) in [
            (None, &b"<a/>"[..], false),
            (Some("UTF-8"), "<a>\u{e9}</a>".as_bytes(), false),
            (None, latin, true),
            (Some("iso-8859-1"), b"<a>\xe9</a>", true),
            (Some("iso-8859-1"), b"<a>e</a>", false),
            (Some("utf-7"), b"<a>+ADw-</a>", true),
            (None, &utf16, true),
            (None, b"\xff\xfe<\0", true),
            (None, b"<?xml version='1.0'?><a>\xc3\xa9</a>", false),
            (None, b"", false),
        ] {
            assert_eq!(is_other_encoding(charset, body), is_other, "{charset:?} {body:?}");
        }
    }
}
