//! SOAP envelopes on a tape.

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Tape, TapeId};
use wire::soap::{Builtin, Envelope, Limits, Response, Type, View, Wsdl};

use super::{Called, Op, Reply, Request, own_name};

pub(super) fn request<'m>(
    wsdl: &Wsdl,
    ops: &HashMap<String, Arc<Op>>,
    action: Option<&str>,
    body: &'m [u8],
) -> Called<'m> {
    let Ok(envelope) = Envelope::parse(body, &Limits::DEFAULT) else { return Called::Unreadable };
    let Ok(request) = envelope.request(wsdl, action) else { return Called::Unlisted };
    let Some(op) = ops.get(&request.operation.name) else { return Called::Unlisted };
    let mut tape = Tape::new();
    let args = (0..op.params.len()).map(|at| match request.arguments.at(at) {
        Some(view) => put(&mut tape, wsdl, view),
        None => tape.missing(),
    });
    let args = args.collect();
    Called::Known(op.clone(), Request { tape, args })
}

pub(super) fn reply(wsdl: &Wsdl, op: &Op, body: &[u8]) -> Reply<'static> {
    let Ok(envelope) = Envelope::parse(body, &Limits::DEFAULT) else { return Reply::opaque() };
    let Some(operation) = wsdl.operation(own_name(op)) else { return Reply::opaque() };
    let mut tape = Tape::new();
    match envelope.response(wsdl, operation) {
        Ok(Response::Returned { all, result }) => {
            let single = operation.output.as_ref().is_some_and(|output| wsdl.complex(output.content).fields.len() == 1);
            let value = match result {
                Some(view) => put(&mut tape, wsdl, view),
                None if single => tape.missing(),
                None => put(&mut tape, wsdl, all),
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
        Err(_) => Reply::opaque(),
    }
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
    // What is none of its type is as good as unreadable: a clause about it has no verdict.
    match builtin {
        Builtin::Text => view.as_str().map(|text| tape.text(text.to_owned())),
        Builtin::Boolean => view.as_bool().map(|value| tape.bool(value)),
        Builtin::Integer { .. } => view.as_i64().map(|value| tape.int(value)),
        Builtin::Float => view.as_f64().map(|value| tape.float(value)),
        Builtin::Base64 | Builtin::Hex => view.as_bytes().map(|value| tape.bytes(value)),
    }
    .unwrap_or_else(|| tape.opaque())
}
