//! Finds the parameter and result types of an operation, declared or from the schema, and turns them into checks.

use std::collections::BTreeSet;

use codecs::rest_path_and_query::Template;

use super::ContractCompiler;
use super::expression::RESERVED;
use crate::check_value_types::{PromisedPart, Typed};
use crate::clause::Clause;
use crate::finding::{Findings, suggestion};
use crate::monitor::report::Kind;
use crate::syntax::{ClauseKind, Name, Operation};
use crate::types_and_schema::{Field, Signature, Signatures, Type};

/// Maximum number of parameters, more than any IDL has.
const PARAMS_MAX: usize = 256;

fn declared<'s>(operation: &Operation, service: &'s Signatures, found: &mut Findings) -> Option<&'s Signature> {
    let Name { text: name, span } = &operation.name;
    let Some(signature) = service.get(name) else {
        let hint = suggestion(name, service.keys().map(String::as_str));
        found.mistake_hint("unknown-operation", *span, format!("the schema has no operation `{name}`"), hint);
        return None;
    };
    let (theirs, ours) = (signature.params.len(), operation.params.len());
    if theirs != ours {
        let names = signature.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!("parameter count of `{name}` is {ours}, the schema has {theirs}");
        found.mistake_hint("parameters", *span, message, format!("the schema has `({names})`"));
    }
    Some(signature)
}

fn http_types(operation: &Operation, texts: impl Fn() -> Type, found: &mut Findings) -> Vec<Field> {
    let Name { text: path, span } = &operation.name;
    let template = Template::parse(path);
    for mistake in template.as_ref().err().into_iter().flatten() {
        found.mistake("path", *span, format!("`{}` is not a path: {mistake}", path.escape_debug()));
    }
    let variables = template.as_ref().map(|template| template.names().collect::<Vec<_>>()).unwrap_or_default();
    let types = operation.params.iter().map(|param| match param.name.text.as_str() {
        "args" | "headers" => texts(),
        "body" => Type::Any,
        name if template.is_err() || variables.contains(&name) => Type::Text,
        name => {
            let names = ["args", "headers", "body"].into_iter().chain(variables.iter().copied());
            let hint = suggestion(name, names);
            found.mistake_hint("parameters", param.name.span, format!("an HTTP request has no `{name}`"), hint);
            Type::Any
        }
    });
    types.map(|of| Field::new("", of)).collect()
}

impl ContractCompiler<'_> {
    /// Returns the parameters and the result of an operation.
    pub(super) fn types(&self, operation: &Operation, service: &str, found: &mut Findings) -> (Vec<Field>, Type) {
        let mut names = BTreeSet::new();
        for param in &operation.params {
            param.name.add_to(&mut names, "parameter", found);
            if RESERVED.contains(&param.name.text.as_str()) {
                let message = format!("`{}` is reserved and cannot be a parameter", param.name.text);
                found.mistake("reserved", param.name.span, message);
            }
        }
        if operation.params.len() > PARAMS_MAX {
            found.mistake("size", operation.name.span, format!("more than {PARAMS_MAX} parameters"));
        }
        if let Some(method) = &operation.method {
            // Methods are case-sensitive (RFC 9110, section 9.1). All registered methods are in upper case.
            let upper = method.text.to_ascii_uppercase();
            if method.text != upper {
                let message = format!("method `{}` is not in upper case, so no request has it", method.text);
                found.mistake_hint("method", method.span, message, format!("write `{upper}`"));
            }
        }
        let result = operation.result.as_ref().map(|(of, _)| of.clone());
        let texts = || Type::Map(Box::new(Type::Text), Box::new(Type::Text));
        let (theirs, result) = if operation.method.is_some() {
            let body = Field::optional("body", result.unwrap_or(Type::Any));
            let result = vec![Field::new("code", Type::Int), Field::new("headers", texts()), body];
            (http_types(operation, texts, found), Type::Record(result))
        } else {
            let service = self.known.schema.services.get(service);
            let signature = service.and_then(|service| declared(operation, service, found));
            let declared = signature.and_then(|signature| signature.result.clone());
            let params = signature.map(|signature| signature.params.clone()).unwrap_or_default();
            (params, result.or(declared).unwrap_or(Type::Any))
        };
        let unknown = Field::optional("", Type::Any);
        let theirs = theirs.into_iter().chain(std::iter::repeat(unknown));
        let params = operation.params.iter().zip(theirs).map(|(param, theirs)| Field {
            name: param.name.text.clone(),
            of: param.of.clone().unwrap_or(theirs.of),
            ..theirs
        });
        (params.collect(), result)
    }

    /// Returns the checks of an operation's declared types, or none if the operation is `untyped`.
    pub(crate) fn typed(&self, operation: &Operation, id: &str, params: &[Field], result: &Type) -> Vec<Typed> {
        if operation.clauses.iter().any(|clause| matches!(clause.kind, ClauseKind::Untyped)) {
            return Vec::new();
        }
        let is_http = operation.method.is_some();
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
            Some((_, span)) => (*span, self.text[span.range()].to_owned()),
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
