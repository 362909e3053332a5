//! SOAP envelopes on a tape.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Tape, TapeId};
use wire::soap::{Builtin, Envelope, Limits, Response, SoapError, Type, View, Wsdl};

use super::{Op, Reply, Request, RequestKind, Unread, own_name};

pub(super) fn request<'m>(
    wsdl: &Wsdl,
    ops: &HashMap<String, Arc<Op>>,
    action: Option<&str>,
    body: &'m [u8],
) -> RequestKind<'m> {
    let envelope = match envelope(body) {
        Ok(envelope) => envelope,
        Err(Unread::Over) => return RequestKind::Unreadable,
        Err(Unread::Malformed(what)) => {
            // Which operation is meant the head may say.
            let named =
                action.and_then(|action| wsdl.operation_by_action(action)).and_then(|named| ops.get(&named.name));
            let Some(op) = named else { return RequestKind::Unreadable };
            let mut tape = Tape::new();
            let args = op.params.iter().map(|_| tape.malformed(what.clone())).collect();
            return RequestKind::Known(op.clone(), Request { tape, args });
        }
    };
    let Ok(request) = envelope.request(wsdl, action) else { return RequestKind::Unlisted };
    let Some(op) = ops.get(&request.operation.name) else { return RequestKind::Unlisted };
    let mut tape = Tape::new();
    let args = (0..op.params.len()).map(|at| match request.arguments.at(at) {
        Some(view) => put(&mut tape, wsdl, view),
        None => tape.missing(),
    });
    let args = args.collect();
    RequestKind::Known(op.clone(), Request { tape, args })
}

fn envelope(body: &[u8]) -> Result<Envelope<'_>, Unread> {
    Envelope::parse(body, &Limits::DEFAULT).map_err(|error| match &error {
        SoapError::Xml(error) if error.is_limit => Unread::Over,
        // It may be all that it has to be, in a version that is not read here.
        SoapError::Version12 => Unread::Over,
        _ => Unread::Malformed(format!("not an envelope of its operation: {error}")),
    })
}

/// What a reply says.
///
/// # Errors
/// It is none of this operation, and why.
pub(super) fn reply(wsdl: &Wsdl, op: &Op, body: &[u8]) -> Result<Reply<'static>, Unread> {
    let Some(operation) = wsdl.operation(own_name(op)) else { return Ok(Reply::opaque()) };
    if operation.output.is_none() && body.is_empty() {
        return Ok(Reply::opaque());
    }
    let envelope = envelope(body)?;
    let mut tape = Tape::new();
    Ok(match envelope.response(wsdl, operation) {
        Ok(Response::Returned { all, result }) => {
            let fields = operation.output.as_ref().map(|output| wsdl.complex(output.content).fields.as_slice());
            let value = match (result, fields) {
                (Some(view), _) => put(&mut tape, wsdl, view),
                (None, Some([only])) if only.min > 0 && !only.is_list() => {
                    tape.malformed(format!("an envelope without `{}`", only.name))
                }
                (None, Some([_])) => tape.missing(),
                (None, _) => put(&mut tape, wsdl, all),
            };
            Reply { tape, value, is_error: false }
        }
        Ok(Response::Fault(fault)) => {
            let code = tape.text(fault.code_name().to_owned());
            let string = tape.text(fault.string.to_owned());
            let detail = match fault.detail {
                Some(detail) => put(&mut tape, wsdl, detail),
                None => tape.missing(),
            };
            let value = tape.map([("code", code), ("string", string), ("detail", detail)]);
            Reply { tape, value, is_error: true }
        }
        Err(error) => return Err(Unread::Malformed(format!("not an envelope of its operation: {error}"))),
    })
}

/// The reader bounds the depth of envelopes, so the recursion is bounded.
fn put(tape: &mut Tape<'_>, wsdl: &Wsdl, view: View<'_>) -> TapeId {
    if view.is_nil() {
        return tape.missing();
    }
    if view.is_list() {
        let items = view.elements().map(|item| put(tape, wsdl, item)).collect::<Vec<_>>();
        return tape.list(items);
    }
    let builtin = match view.ty() {
        Type::Builtin(builtin) => builtin,
        Type::Simple(id) => wsdl.simple(id).base,
        Type::Complex(_) => {
            let fields = view.fields().map(|(field, value)| (field.name.clone(), put(tape, wsdl, value)));
            let fields = fields.collect::<Vec<_>>();
            return tape.map(fields);
        }
        Type::Any => {
            return match view.text() {
                Some(text) => tape.text(text.to_owned()),
                None => tape.opaque(),
            };
        }
    };
    let put = match builtin {
        Builtin::Text => view.as_str().map(|text| tape.text(text.to_owned())),
        Builtin::Boolean => view.as_bool().map(|value| tape.bool(value)),
        Builtin::Integer { .. } => view.as_i64().map(|value| tape.int(value)),
        Builtin::Float => view.as_f64().map(|value| tape.float(value)),
        Builtin::Base64 | Builtin::Hex => view.as_bytes().map(|value| tape.bytes(value)),
    };
    put.unwrap_or_else(|| match builtin {
        Builtin::Integer { min, max } if is_beyond(view.text().unwrap_or_default(), min, max) => tape.opaque(),
        // The text itself may be one that is not to be shown.
        Builtin::Integer { .. } => tape.malformed("not an integer of its type"),
        Builtin::Boolean => tape.malformed("not a boolean"),
        Builtin::Float => tape.malformed("not a number"),
        Builtin::Text => tape.malformed("not text"),
        Builtin::Base64 => tape.malformed("not base64"),
        Builtin::Hex => tape.malformed("not hexadecimal digits"),
    })
}

/// Whether a text is a whole number that its type may have and that is wider than what clauses reckon with.
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
