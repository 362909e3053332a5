//! Turns the declared types of an operation into checks of its request and reply.

use super::{ContractCompiler, OperationTypes};
use crate::check_value_types::{PromisedPart, Typed};
use crate::clause::Clause;
use crate::monitor::report::Kind;
use crate::syntax::{ClauseKind, Operation};
use crate::types_and_schema::{Field, Type};

impl ContractCompiler<'_> {
    /// Returns the checks of an operation's declared types, or none if the operation is `untyped`.
    pub(crate) fn typed(&self, operation: &Operation, id: &str, types: &OperationTypes) -> Vec<Typed> {
        if operation.clauses.iter().any(|clause| matches!(clause.kind, ClauseKind::Untyped)) {
            return Vec::new();
        }
        let (is_http, OperationTypes { params, result }) = (operation.method.is_some(), types);
        // Every HTTP body can be read as text and bytes, JSON or not.
        let is_open = |of: &Type| of.is_unchecked() || is_http && matches!(of, Type::Text | Type::Bytes);
        let declared = params.iter().zip(&operation.params).enumerate();
        let arguments = declared.filter_map(|(at, (field, param))| {
            // Over HTTP, every argument except the body is text, whatever its declared type.
            let is_held = !is_http || (field.name == "body" && param.of.is_some());
            (is_held && !is_open(&field.of)).then(|| (at, field.clone()))
        });
        let arguments = Some(arguments.collect::<Vec<_>>()).filter(|arguments| !arguments.is_empty());
        let answer = match result {
            _ if operation.method.as_ref().is_some_and(|method| method.text == "HEAD") => None,
            Type::Record(fields) if is_http => {
                let body = fields.iter().find(|field| field.name == "body").filter(|body| !is_open(&body.of));
                body.map(|body| PromisedPart::Body(body.of.clone()))
            }
            of => (!of.is_unchecked()).then(|| PromisedPart::Result(of.clone())),
        };
        let (span, reply) = match &operation.result {
            Some(of) => (of.span, self.text[of.span.range()].to_owned()),
            None => (operation.name.span, result.to_string()),
        };
        let request =
            params.iter().map(|Field { name, of, .. }| format!("{name}: {of}")).collect::<Vec<_>>().join(", ");
        let typed = |kind, end, start, shown: String, of| {
            let clause = Clause::new(kind, format!("{id}.type.{end}"), &shown, start, &self.lines);
            Typed { clause, of, schema: self.known.schema.clone() }
        };
        let start = operation.name.span.start;
        let request = arguments.map(|arguments| {
            typed(Kind::Precondition, "request", start, format!("({request})"), PromisedPart::Arguments(arguments))
        });
        let reply = answer.map(|answer| typed(Kind::Postcondition, "reply", span.start, format!("-> {reply}"), answer));
        request.into_iter().chain(reply).collect()
    }
}
