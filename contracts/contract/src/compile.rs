//! Compiles the syntax tree of a contract.

mod expression;
mod signature;

use std::collections::BTreeSet;

use config::place::Lines;

use self::expression::{Compiler, Scope};
use crate::clause::{Clause, Identify};
use crate::contract::{Contract, Operation, Service};
use crate::finding::{Findings, Span, suggestion};
use crate::monitor::report::Kind;
use crate::syntax::{self, ClauseKind, Direction, Expr, ExprKind, Step};
use crate::types_and_schema::{Field, KnownSchema, Type};

/// Maximum number of services per contract, and of operations per service.
const MANY_MAX: usize = 1000;

/// Maximum number of steps in an `identifies` clause. It bounds the nesting of loops.
const STEPS_MAX: usize = 16;

/// Compiles a syntax tree. The contract is usable only if no finding is an error.
pub(crate) fn compile(file: &syntax::File, text: &str, known: &KnownSchema, found: &mut Findings) -> Contract {
    let compiler = ContractCompiler { file, text, lines: Lines::new(text), known };
    let mut services = Vec::new();
    let mut names = BTreeSet::new();
    if file.services.len() > MANY_MAX {
        found.mistake("size", file.services[MANY_MAX].name.span, format!("more than {MANY_MAX} services"));
    }
    for service in file.services.iter().take(MANY_MAX) {
        service.name.add_to(&mut names, "service", found);
        services.push(compiler.service(service, found));
    }
    let with_index = file.identifies().filter(|identifies| identifies.index.is_some());
    let with_index = with_index.map(|identifies| identifies.service.text.as_str()).collect::<BTreeSet<_>>();
    let mut clause_names = Vec::new();
    for service in &mut services {
        service.has_introduced_members = with_index.contains(service.name.as_str());
        for operation in &mut service.operations {
            let name = format!("{}.{}", service.name, operation.name);
            for clause in operation.all_clauses_mut() {
                clause.number = clause_names.len() as u32;
                clause_names.push((name.clone(), clause.id.clone()));
            }
        }
    }
    // Spans print nothing, so layout and comments do not change the hash.
    let hash = rapidhash::v3::rapidhash_v3(format!("{file:?}").as_bytes());
    Contract { services, hash, generation: 0, clause_names }
}

pub(crate) struct ContractCompiler<'c> {
    file: &'c syntax::File,
    pub(crate) text: &'c str,
    pub(crate) lines: Lines<'c>,
    pub(crate) known: &'c KnownSchema,
}

impl ContractCompiler<'_> {
    fn service(&self, service: &syntax::Service, found: &mut Findings) -> Service {
        let name = &service.name.text;
        let known = self.known.schema.services.get(name);
        let needs_schema = service.operations.iter().any(|operation| operation.method.is_none());
        if self.known.is_given && known.is_none() && needs_schema {
            let hint = suggestion(name, self.known.schema.services.keys().map(String::as_str));
            let message = format!("the schema has no service `{name}`");
            found.mistake_hint("unknown-service", service.name.span, message, hint);
        }
        if service.operations.len() > MANY_MAX {
            found.mistake("size", service.name.span, format!("`{name}` has more than {MANY_MAX} operations"));
        }
        let mut operations = Vec::<Operation>::new();
        for operation in service.operations.iter().take(MANY_MAX) {
            let compiled = self.operation(name, operation, found);
            if operations.iter().any(|other| other.name == compiled.name) {
                found.mistake("twice", operation.name.span, format!("duplicate operation `{}`", compiled.name));
            }
            operations.push(compiled);
        }
        Service { name: name.clone(), operations, has_introduced_members: false }
    }

    fn operation(&self, service: &str, operation: &syntax::Operation, found: &mut Findings) -> Operation {
        let (params, result) = self.types(operation, service, found);
        // The full name, such as `findNotes` or `GET /1.1/friends/list.json`.
        let own = &operation.name.text;
        let name = operation.method.as_ref().map_or(own.clone(), |method| format!("{} {own}", method.text));
        let id = format!("{service}.{name}");
        let typed = self.typed(operation, &id, &params, &result);
        let (mut clauses, mut all_identifies) = (Vec::<Clause>::new(), Vec::new());
        let mut labels = BTreeSet::new();
        for clause in &operation.clauses {
            if let Some(label) = &clause.label {
                label.add_to(&mut labels, "label", found);
            }
            let blank = |kind: Kind, span: Span, number: usize| {
                let end = match &clause.label {
                    Some(label) => label.text.clone(),
                    None if kind == Kind::Index => kind.keyword().to_owned(),
                    None => format!("{}.{}", kind.keyword(), number + 1),
                };
                Clause::new(kind, format!("{id}.{end}"), &self.text[span.range()], span.start, &self.lines)
            };
            match &clause.kind {
                ClauseKind::Untyped => {}
                ClauseKind::Expression(kind, expr) => {
                    let (kind, number) = (*kind, clauses.iter().filter(|clause| clause.kind == *kind).count());
                    let (mut expr, secret) = (expr.clone(), is_secret(expr));
                    let mut compiler = self.compiler(kind, &params, &result, found);
                    match kind {
                        Kind::Index => compiler.index_text(&mut expr),
                        _ => compiler.truth(&mut expr, "a clause"),
                    }
                    let (locals, span) = (compiler.locals_max, expr.span);
                    clauses.push(Clause { expr, locals, secret, ..blank(kind, span, number) });
                    if kind == Kind::Index && number > 0 {
                        let hint = "a call uses one member of a service";
                        found.mistake_hint("twice", clause.span, "duplicate `index`", hint);
                    }
                }
                ClauseKind::Identifies(identifies) => {
                    let blank = blank(Kind::Identifies, clause.span, all_identifies.len());
                    let sees =
                        if identifies.direction == Direction::Reply { Kind::Postcondition } else { Kind::Identifies };
                    let compiler = self.compiler(sees, &params, &result, found);
                    all_identifies.extend(self.identify(identifies, compiler, blank));
                }
            }
        }
        let params = params.into_iter().map(|param| param.name).collect();
        Operation { name, params, clauses, identifies: all_identifies, typed }
    }

    /// Creates a compiler for expressions of a clause of this kind, with the names that the clause can use.
    fn compiler<'c>(&'c self, kind: Kind, params: &[Field], result: &Type, found: &'c mut Findings) -> Compiler<'c> {
        let params = (0..).map(ExprKind::Param).zip(params);
        let params = params.map(|(read, param)| (param.name.clone(), Ok((read, param.of.clone()))));
        let mut scope = params.collect::<Scope>();
        scope.push(("receiver".to_owned(), Ok((ExprKind::Receiver, Type::Text))));
        let (reply, error) = (kind == Kind::Postcondition, kind == Kind::Exception);
        for (name, is_here, of, why) in [
            ("result", reply, result, "only `ensures` and `reply identifies` have the result"),
            // The exception is only known at run time; `error.kind` is its name.
            ("error", error, &Type::Any, "only `on_error` has the exception or fault"),
        ] {
            scope.push((name.to_owned(), if is_here { Ok((ExprKind::Outcome, of.clone())) } else { Err(why) }));
        }
        Compiler { schema: &self.known.schema, found, scope, locals: 0, locals_max: 0 }
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
        let mut content = identifies.clone();
        for step in &mut content.steps {
            match step {
                Step::For(local, within) => compiler.bind_items(local, within),
                Step::When(condition) => compiler.truth(condition, "the condition after `when`"),
                Step::Let(local, value) => {
                    let of = compiler.expression(value);
                    compiler.bind(local, of);
                }
            }
        }
        let of = compiler.expression(&mut content.at);
        if !matches!(of, Type::Text | Type::Choice(_) | Type::Any) {
            let message = format!("expected text for an endpoint, found {}", of.described());
            compiler.found.mistake("type", identifies.at.span, message);
        }
        content.index.iter_mut().for_each(|index| compiler.index_text(index));
        // The index may use a name that a `let` step bound to a secret value.
        let is_made = |step: &Step| matches!(step, Step::Let(_, value) if is_secret(value));
        let is_secret = |index: &Expr| is_secret(index) || identifies.steps.iter().any(is_made);
        let (locals, secret) = (compiler.locals_max, identifies.index.as_ref().is_some_and(is_secret));
        Some(Identify { clause: Clause { locals, secret, ..blank }, service: service? as u16, content })
    }
}

/// Words that mark a name as secret, in upper or lower case. Loggers commonly redact values of such names.
pub(crate) const SECRETS: [&str; 5] = ["password", "token", "secret", "key", "authorization"];

pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|word| name.contains(word))
}

fn is_secret(expr: &Expr) -> bool {
    let named = match &expr.kind {
        ExprKind::Name(name) => is_secret_name(name),
        ExprKind::Field(_, field) => is_secret_name(&field.text),
        ExprKind::Text(text) => is_secret_name(text),
        _ => false,
    };
    named || expr.parts().into_iter().any(is_secret)
}
