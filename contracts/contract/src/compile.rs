//! Compiles the tree of a contract: resolves names, checks types, compiles clauses.

mod expression;
mod signature;

use std::collections::BTreeMap;

use config::place::Lines;

use self::expression::{Binding, Compiler, described};
use self::signature::Shape;
use crate::clause::{Clause, Identify, IdentifyStep, ServiceId};
use crate::code::Id;
use crate::contract::{Contract, Operation, Service};
use crate::declared_types::Promise;
use crate::finding::{Findings, Span, suggestion};
use crate::syntax::{self, ClauseKind, Direction, Expr, ExprKind, Name, Step};
use crate::types::{KnownSchema, Schema, Type};

/// Maximum number of services, and of operations per service.
const MANY_MAX: usize = 1000;

/// Maximum number of steps in an `identifies` clause. Each loop adds a level of nesting.
const STEPS_MAX: usize = 16;

/// Compiles a tree. The contract is only usable if no finding is an error.
pub(crate) fn compile(
    file: &syntax::File,
    text: &str,
    known: Option<KnownSchema<'_>>,
    found: &mut Findings,
) -> Contract {
    let empty = Schema::default();
    let given = known.is_some_and(|known| known.is_whole);
    let known = known.unwrap_or(KnownSchema { schema: &empty, is_whole: true });
    let compile = ContractCompiler { file, text, lines: Lines::new(text), given, known, schema: known.schema };
    let mut services = Vec::new();
    let mut names = BTreeMap::new();
    if file.services.len() > MANY_MAX {
        found.mistake("size", file.services[MANY_MAX].name.span, format!("more than {MANY_MAX} services"));
    }
    for service in file.services.iter().take(MANY_MAX) {
        unique(&mut names, &service.name, "service", found);
        services.push(compile.service(service, found));
    }
    let operations = services.iter_mut().flat_map(|service| &mut service.operations);
    for (clause, number) in operations.flat_map(Operation::clauses_mut).zip(0..) {
        clause.number = number;
    }
    let identifies =
        services.iter().flat_map(|service| &service.operations).flat_map(|operation| &operation.identifies);
    let with_index = identifies.filter(|identify| identify.index.is_some()).map(|identify| identify.service.at);
    for at in with_index.collect::<Vec<_>>() {
        if let Some(service) = services.get_mut(usize::from(at)) {
            service.has_introduced_members = true;
        }
    }
    // Spans print as nothing, so layout and comments do not change the hash.
    let hash = rapidhash::v3::rapidhash_v3(format!("{file:?}").as_bytes());
    let schemas = file.schemas.iter().map(|schema| schema.text.clone()).collect();
    Contract { services, schemas, hash, generation: 0 }
}

fn unique<'f>(names: &mut BTreeMap<&'f str, Span>, name: &'f Name, what: &str, found: &mut Findings) {
    if names.insert(&name.text, name.span).is_some() {
        found.mistake("twice", name.span, format!("duplicate {what} `{}`", name.text));
    }
}

struct ContractCompiler<'c> {
    file: &'c syntax::File,
    text: &'c str,
    lines: Lines<'c>,
    /// Whether the complete schema was given.
    given: bool,
    known: KnownSchema<'c>,
    schema: &'c Schema,
}

impl ContractCompiler<'_> {
    fn service(&self, service: &syntax::Service, found: &mut Findings) -> Service {
        let known = self.schema.services.get(&service.name.text);
        if self.given && known.is_none() && service.operations.iter().any(|operation| operation.method.is_none()) {
            let hint = suggestion(&service.name.text, self.schema.services.keys().map(String::as_str));
            let message = format!("the schema has no service `{}`", service.name.text);
            found.mistake_hint("unknown-service", service.name.span, message, hint);
        }
        if service.operations.len() > MANY_MAX {
            let message = format!("`{}` has more than {MANY_MAX} operations", service.name.text);
            found.mistake("size", service.name.span, message);
        }
        let mut names = BTreeMap::new();
        let mut operations = Vec::new();
        for operation in service.operations.iter().take(MANY_MAX) {
            let name = signature::full_name(operation);
            if names.insert(name.clone(), ()).is_some() {
                found.mistake("twice", operation.name.span, format!("duplicate operation `{name}`"));
            }
            let shape = signature::shape(operation, known, self.known, found);
            operations.push(self.operation(&service.name.text, name, operation, &shape, found));
        }
        Service { name: service.name.text.clone(), operations, has_introduced_members: false }
    }

    fn operation(
        &self,
        service: &str,
        name: String,
        operation: &syntax::Operation,
        shape: &Shape,
        found: &mut Findings,
    ) -> Operation {
        let params = shape.params.iter().map(|(name, _)| name.clone()).collect();
        let signature = self.schema.services.get(service).and_then(|known| known.get(&name));
        let (types, id) = ((shape.params.as_slice(), &shape.result), format!("{service}.{name}"));
        let promise = Promise::from_operation(operation, &id, types, signature, self.schema, (self.text, &self.lines));
        let mut out = Operation {
            name,
            params,
            index: None,
            requires: Vec::new(),
            ensures: Vec::new(),
            on_error: Vec::new(),
            identifies: Vec::new(),
            promise,
        };
        let mut labels = BTreeMap::new();
        for clause in &operation.clauses {
            if let Some(label) = &clause.label {
                unique(&mut labels, label, "label", found);
            }
            let (kind, number, expr) = match &clause.kind {
                ClauseKind::Untyped => continue,
                ClauseKind::Index(expr) => ("index", 0, expr),
                ClauseKind::Requires(expr) => ("requires", out.requires.len(), expr),
                ClauseKind::Ensures(expr) => ("ensures", out.ensures.len(), expr),
                ClauseKind::OnError(expr) => ("on_error", out.on_error.len(), expr),
                ClauseKind::Identifies(identifies) => ("identifies", out.identifies.len(), &identifies.at),
            };
            let end = match &clause.label {
                Some(label) => label.text.clone(),
                None if kind == "index" => kind.to_owned(),
                None => format!("{kind}.{}", number + 1),
            };
            let id = format!("{service}.{}.{end}", out.name);
            let blank = |span: Span, secret: bool| {
                let (line, column) = self.lines.place_of(span.start as usize);
                Clause {
                    id,
                    text: self.text[span.range()].to_owned(),
                    line: line as u32,
                    column: column as u32,
                    start: span.start,
                    code: Default::default(),
                    root: 0,
                    number: 0,
                    secret,
                }
            };
            let mut compiler = self.compiler(&clause.kind, shape, found);
            match &clause.kind {
                ClauseKind::Index(expr) => {
                    let (root, of) = compiler.expression(expr);
                    let code = std::mem::take(&mut compiler.code);
                    index_type(&of, expr, found);
                    if out.index.is_some() {
                        let hint = "a call uses one member of a service";
                        found.mistake_hint("twice", clause.span, "duplicate `index`", hint);
                    }
                    out.index = Some(Clause { code, root, ..blank(expr.span, is_secret(expr)) });
                }
                ClauseKind::Identifies(identifies) => {
                    if let Some(identify) = self.identify(identifies, compiler, blank(clause.span, false)) {
                        out.identifies.push(identify);
                    }
                }
                ClauseKind::Untyped => {}
                ClauseKind::Requires(_) | ClauseKind::Ensures(_) | ClauseKind::OnError(_) => {
                    let root = compiler.truth(expr, "a clause");
                    let code = std::mem::take(&mut compiler.code);
                    let list = match kind {
                        "requires" => &mut out.requires,
                        "ensures" => &mut out.ensures,
                        _ => &mut out.on_error,
                    };
                    list.push(Clause { code, root, ..blank(expr.span, is_secret(expr)) });
                }
            }
        }
        out
    }

    fn compiler<'c>(&'c self, kind: &ClauseKind, shape: &Shape, found: &'c mut Findings) -> Compiler<'c> {
        let param = |(at, (name, of)): (usize, &(String, Type))| (name.clone(), Binding::Param(at as u16), of.clone());
        let mut scope = shape.params.iter().enumerate().map(param).collect::<Vec<_>>();
        scope.push(("receiver".to_owned(), Binding::Receiver, Type::Text));
        let reply = match kind {
            ClauseKind::Ensures(_) => true,
            ClauseKind::Identifies(identifies) => identifies.direction == Direction::Reply,
            _ => false,
        };
        let mut absent = Vec::new();
        if reply {
            scope.push(("result".to_owned(), Binding::Outcome, shape.result.clone()));
        } else {
            absent.push(("result", "only `ensures` and `reply identifies` have the result"));
        }
        if matches!(kind, ClauseKind::OnError(_)) {
            scope.push(("error".to_owned(), Binding::Outcome, shape.error.clone()));
        } else {
            absent.push(("error", "only `on_error` has the exception or fault"));
        }
        let mut compiler = Compiler::new(self.schema, found, scope);
        compiler.absent = absent;
        compiler
    }

    fn identify(&self, identifies: &syntax::Identifies, mut compiler: Compiler<'_>, blank: Clause) -> Option<Identify> {
        let names = self.file.services.iter().map(|service| service.name.text.as_str());
        let service = names.clone().position(|name| name == identifies.service.text);
        if service.is_none() {
            let hint = suggestion(&identifies.service.text, names);
            let message = format!("unknown service `{}`", identifies.service.text);
            compiler.found.mistake_hint("unknown-service", identifies.service.span, message, hint);
        }
        if identifies.steps.len() > STEPS_MAX {
            let message = format!("more than {STEPS_MAX} steps in one `identifies`");
            compiler.found.mistake("depth", identifies.service.span, message);
            return None;
        }
        let mut steps = Vec::new();
        for step in &identifies.steps {
            steps.push(match step {
                Step::For(name, within) => {
                    let (id, of) = compiler.expression(within);
                    let item = compiler.items_of(&of, within.span);
                    IdentifyStep::For { local: compiler.bind(name, item), within: id }
                }
                Step::When(condition) => IdentifyStep::When(compiler.truth(condition, "the condition after `when`")),
                Step::Let(name, value) => {
                    let (value, of) = compiler.expression(value);
                    IdentifyStep::Let { local: compiler.bind(name, of), value }
                }
            });
        }
        let (at, of) = compiler.expression(&identifies.at);
        if !matches!(of, Type::Text | Type::Choice(_) | Type::Any) {
            let message = format!("expected text for an endpoint, found {}", described(&of));
            compiler.found.mistake("type", identifies.at.span, message);
        }
        let mut secret = false;
        let index: Option<Id> = identifies.index.as_ref().map(|index| {
            let (id, of) = compiler.expression(index);
            index_type(&of, index, compiler.found);
            // The index may use a name that a step made from a secret value.
            let made_of = identifies.steps.iter().any(|step| match step {
                Step::Let(_, value) => is_secret(value),
                Step::For(..) | Step::When(_) => false,
            });
            secret = is_secret(index) || made_of;
            id
        });
        let code = std::mem::take(&mut compiler.code);
        let clause = Clause { code, secret, ..blank };
        Some(Identify {
            clause,
            direction: identifies.direction,
            service: ServiceId { generation: 0, at: service? as u16 },
            steps,
            at,
            index,
        })
    }
}

fn index_type(of: &Type, expr: &Expr, found: &mut Findings) {
    if matches!(of, Type::Record(_) | Type::Named(_) | Type::Map(..) | Type::Bytes) {
        let hint = "use one of its fields, or `text((a, b))` for several";
        found.mistake_hint("type", expr.span, format!("an index must be text, found {}", described(of)), hint);
    }
}

/// Name parts whose values are redacted, as loggers commonly do.
pub(crate) const SECRETS: [&str; 5] = ["password", "token", "secret", "key", "authorization"];

pub(crate) fn is_secret_name(name: &str) -> bool {
    let contains = |word: &str| {
        name.len() >= word.len()
            && name.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    SECRETS.iter().any(|word| contains(word))
}

/// Whether an expression reads a secret value, judged by the names in it.
fn is_secret(expr: &Expr) -> bool {
    let named = match &expr.kind {
        ExprKind::Name(name) => is_secret_name(name),
        ExprKind::Field(_, field) => is_secret_name(&field.text),
        ExprKind::Text(text) => is_secret_name(text),
        _ => false,
    };
    named || expr.parts().into_iter().any(is_secret)
}
