//! Decodes SOAP requests and replies into the values of a contract.

use codecs::soap::{Builtin, Envelope, Field, Limits, Response, Type, View, Wsdl};
use contract::{Tape, TapeId, Value};
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use super::{Reply, Request, RequestKind, Unread, own_name};
use crate::contract_services::{Op, Ops};

pub(super) fn request(wsdl: &Wsdl, ops: &Ops, headers: &HeaderMap, body: &[u8], strict: bool) -> RequestKind<'static> {
    let action = headers.get("soapaction").and_then(|action| action.to_str().ok());
    let by_action = action.and_then(|action| wsdl.operation_by_action(action));
    let envelope = match envelope(headers, body) {
        Ok(envelope) => envelope,
        Err(Unread::Over | Unread::Coding(_)) => return RequestKind::Unreadable,
        Err(Unread::Malformed(what)) => {
            // `SOAPAction` may name the operation of a body that cannot be read.
            let Some(op) = by_action.and_then(|named| ops.get(&named.name)) else { return RequestKind::Unreadable };
            let mut tape = Tape::new();
            let args = op.params.iter().map(|_| tape.malformed(what.clone())).collect();
            return RequestKind::Known(op.clone(), Request { tape, args });
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
    let mut tape = Tape::new();
    let fields = &wsdl.complex(request.operation.input.content).fields;
    let args = (0..op.params.len()).map(|at| match (fields.get(at), request.arguments.at(at)) {
        (Some(field), Some(view)) => put_field(&mut tape, wsdl, request.arguments, field, view),
        _ => tape.add(Value::Missing),
    });
    let args = args.collect();
    RequestKind::Known(op.clone(), Request { tape, args })
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
    Envelope::parse(body, &Limits::DEFAULT).map_err(|error| match error.is_over {
        true => Unread::Over,
        false => Unread::Malformed(format!("not an envelope of its operation: {error}")),
    })
}

pub(super) fn reply(wsdl: &Wsdl, op: &Op, headers: &HeaderMap, body: &[u8]) -> Result<Reply<'static>, Unread> {
    let Some(operation) = wsdl.operation(own_name(op)) else { return Ok(Reply::opaque()) };
    if operation.output.is_none() && body.is_empty() {
        return Ok(Reply::opaque());
    }
    let envelope = envelope(headers, body)?;
    let mut tape = Tape::new();
    Ok(match envelope.response(wsdl, operation) {
        Ok(Response::Returned { all, result }) => {
            let fields = operation.output.as_ref().map(|output| wsdl.complex(output.content).fields.as_slice());
            let value = match (result, fields) {
                (Some(view), Some([only])) => put_field(&mut tape, wsdl, all, only, view),
                (Some(view), _) => put(&mut tape, wsdl, view),
                (None, Some([only])) if only.min > 0 && !only.is_list() => {
                    tape.malformed(format!("an envelope without `{}`", only.name))
                }
                (None, Some([_])) => tape.add(Value::Missing),
                (None, _) => put(&mut tape, wsdl, all),
            };
            Reply { tape, value, is_error: false, may_be_undecided: false }
        }
        Ok(Response::Fault(fault)) => {
            let code = tape.text(fault.code_name().to_owned());
            let string = tape.text(fault.string.to_owned());
            let detail = match fault.detail {
                Some(detail) => put(&mut tape, wsdl, detail),
                None => tape.add(Value::Missing),
            };
            let value = tape.map([("code", code), ("string", string), ("detail", detail)]);
            Reply { tape, value, is_error: true, may_be_undecided: false }
        }
        Err(error) => return Err(Unread::Malformed(format!("not an envelope of its operation: {error}"))),
    })
}

fn put_field(tape: &mut Tape<'_>, wsdl: &Wsdl, of: View<'_>, field: &Field, value: View<'_>) -> TapeId {
    // Readers disagree on which duplicate counts, so none is trusted.
    if of.is_repeated(field) { tape.malformed("a duplicate element") } else { put(tape, wsdl, value) }
}

/// Puts a view on the tape. Recursion is bounded, because the reader bounds the depth of envelopes.
fn put(tape: &mut Tape<'_>, wsdl: &Wsdl, view: View<'_>) -> TapeId {
    if view.is_nil() {
        return tape.add(Value::Missing);
    }
    if view.is_list() {
        let items = view.elements().map(|item| put(tape, wsdl, item)).collect::<Vec<_>>();
        return tape.list(items);
    }
    let builtin = match view.ty() {
        Type::Builtin(builtin) => builtin,
        Type::Simple(id) => wsdl.simple(id).base,
        Type::Complex(_) => {
            let fields =
                view.fields().map(|(field, value)| (field.name.clone(), put_field(tape, wsdl, view, field, value)));
            let fields = fields.collect::<Vec<_>>();
            return tape.map(fields);
        }
        Type::Any => {
            let text = view.text().map(|text| tape.text(text.to_owned()));
            return text.unwrap_or_else(|| tape.add(Value::Opaque));
        }
    };
    let bytes = |tape: &mut Tape<'_>| view.as_bytes().map(|value| tape.bytes(value));
    // The description omits the text, which may be secret.
    let (id, fault) = match builtin {
        Builtin::Text => (view.as_str().map(|text| tape.text(text.to_owned())), "not text"),
        Builtin::Boolean => (view.as_bool().map(|value| tape.add(Value::Bool(value))), "not a boolean"),
        Builtin::Integer(min, max) => {
            let is_beyond = || is_beyond(view.text().unwrap_or_default(), min, max);
            let value = view.as_i64().map(Value::Int).or_else(|| is_beyond().then_some(Value::Opaque));
            (value.map(|value| tape.add(value)), "not an integer of its type")
        }
        Builtin::Float => (view.as_f64().map(|value| tape.add(Value::Float(value))), "not a number"),
        Builtin::Base64 => (bytes(tape), "not base64"),
        Builtin::Hex => (bytes(tape), "not hexadecimal digits"),
    };
    id.unwrap_or_else(|| tape.malformed(fault))
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
