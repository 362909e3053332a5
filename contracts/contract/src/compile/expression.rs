//! Compiles expressions and checks their types.

use regex_lite::RegexBuilder;

use crate::clause::{Code, Id, Op};
use crate::finding::{Findings, Span, suggestion};
use crate::functions::{self, ArgKind, Function};
use crate::syntax::{Binary, Expr, ExprKind, Name};
use crate::types_and_schema::{Schema, Type};

pub(crate) const PATTERN_MAX_BYTES: usize = 256;

/// Maximum memory of a compiled pattern, in bytes. It bounds the time per matched byte.
const PATTERN_PROGRAM_MAX_BYTES: usize = 16 << 10;

const LOCALS_MAX: u16 = 64;

pub(super) const RESERVED: [&str; 6] = ["result", "error", "receiver", "true", "false", "let"];

/// Names in scope, each with its type and the operation that reads it. Later names hide earlier ones.
type Scope = Vec<(String, Op, Type)>;

/// Names that exist only in other kinds of clauses, each with the reason why it is missing here.
type Absent = Vec<(&'static str, &'static str)>;

pub(super) struct Compiler<'c> {
    pub(super) schema: &'c Schema,
    pub(super) found: &'c mut Findings,
    pub(super) code: Code,
    scope: Scope,
    absent: Absent,
    locals: u16,
}

impl<'c> Compiler<'c> {
    pub(super) fn new(schema: &'c Schema, found: &'c mut Findings, scope: Scope, absent: Absent) -> Self {
        Self { schema, found, code: Code::default(), scope, absent, locals: 0 }
    }

    fn op(&mut self, op: Op, span: Span) -> Id {
        self.code.ops.push(op);
        self.code.spans.push(span);
        (self.code.ops.len() - 1) as Id
    }

    fn text_id(&mut self, text: &str) -> u32 {
        if let Some(known) = self.code.texts.iter().position(|known| **known == *text) {
            return known as u32;
        }
        self.code.texts.push(text.into());
        (self.code.texts.len() - 1) as u32
    }

    pub(super) fn bind(&mut self, name: &Name, of: Type) -> u16 {
        let local = self.locals;
        if local == LOCALS_MAX {
            self.found.mistake("depth", name.span, format!("more than {LOCALS_MAX} names are in scope here"));
            return local - 1;
        }
        if RESERVED.contains(&name.text.as_str()) {
            self.found.mistake("reserved", name.span, format!("`{}` is reserved and cannot be a name", name.text));
        }
        self.locals += 1;
        self.code.locals = self.code.locals.max(self.locals);
        self.scope.push((name.text.clone(), Op::Local(local), of));
        local
    }

    fn unbind(&mut self) {
        if let Some((_, Op::Local(local), _)) = self.scope.pop() {
            self.locals = local;
        }
    }

    pub(super) fn truth(&mut self, expr: &Expr, what: &str) -> Id {
        let (id, of) = self.expression(expr);
        if !matches!(of, Type::Bool | Type::Any) {
            self.wrong_type(expr.span, format!("{what} must be a bool, found {}", of.described()));
        }
        id
    }

    pub(super) fn index_text(&mut self, expr: &Expr) -> Id {
        let (id, of) = self.expression(expr);
        if matches!(of, Type::Record(_) | Type::Named(_) | Type::Map(..) | Type::Bytes) {
            let hint = "use one of its fields, or `text((a, b))` for several";
            let message = format!("an index must be text, found {}", of.described());
            self.found.mistake_hint("type", expr.span, message, hint);
        }
        id
    }

    fn wrong_type(&mut self, span: Span, message: String) {
        self.found.mistake("type", span, message);
    }

    pub(super) fn items_of(&mut self, of: &Type, span: Span) -> Type {
        match of {
            Type::List(of) => (**of).clone(),
            Type::Any => Type::Any,
            Type::Map(key, _) => (**key).clone(),
            _ => {
                self.wrong_type(span, format!("a loop needs a list, found {}", of.described()));
                Type::Any
            }
        }
    }

    pub(super) fn expression(&mut self, expr: &Expr) -> (Id, Type) {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Bool(value) => (self.op(Op::Bool(*value), span), Type::Bool),
            ExprKind::Int(value) => (self.op(Op::Int(*value), span), Type::Int),
            ExprKind::Float(value) => (self.op(Op::Float(*value), span), Type::Float),
            ExprKind::Text(text) => {
                let text = self.text_id(text);
                (self.op(Op::Text(text), span), Type::Text)
            }
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Field(of, field) => self.field(of, field, span),
            ExprKind::Index(of, at) => self.index(of, at, span),
            ExprKind::Call(function, arguments) => self.call(function, arguments, span),
            ExprKind::Quantifier(each, name, within, body) => {
                let (within_id, of) = self.expression(within);
                let item = self.items_of(&of, within.span);
                let local = self.bind(name, item);
                let body = self.truth(body, "the condition on each item");
                self.unbind();
                let of = if *each == crate::syntax::Quantifier::Count { Type::Int } else { Type::Bool };
                (self.op(Op::Quantifier { each: *each, local, within: within_id, body }, span), of)
            }
            ExprKind::Not(of) => {
                let of = self.truth(of, "the operand of `!`");
                (self.op(Op::Not(of), span), Type::Bool)
            }
            ExprKind::Minus(of) => {
                let (id, kind) = self.expression(of);
                if !ArgKind::Number.accepts(&kind) {
                    self.wrong_type(of.span, format!("`-` takes a number, found {}", kind.described()));
                }
                (self.op(Op::Minus(id), span), kind)
            }
            ExprKind::Binary(operator, a, b) => self.binary(*operator, a, b, span),
            ExprKind::If(condition, yes, no) => {
                let condition = self.truth(condition, "the condition before `?`");
                let ((yes, yes_type), (no, no_type)) = (self.expression(yes), self.expression(no));
                let of = joined(&yes_type, &no_type).unwrap_or_else(|| {
                    let (yes, no) = (yes_type.described(), no_type.described());
                    self.wrong_type(span, format!("both values must have the same type, found {yes} and {no}"));
                    Type::Any
                });
                (self.op(Op::If { condition, yes, no }, span), of)
            }
            ExprKind::List(items) => {
                let (first, count, types) = self.operands(items);
                let of = types.into_iter().reduce(|of, next| joined(&of, &next).unwrap_or(Type::Any));
                (self.op(Op::List { first, count }, span), Type::List(Box::new(of.unwrap_or(Type::Any))))
            }
            ExprKind::Tuple(items) => {
                let (first, count, types) = self.operands(items);
                (self.op(Op::Tuple { first, count }, span), Type::Tuple(types))
            }
            ExprKind::Let(name, value, body) => {
                let (value, of) = self.expression(value);
                let local = self.bind(name, of);
                let (body, of) = self.expression(body);
                self.unbind();
                (self.op(Op::Let { local, value, body }, span), of)
            }
        }
    }

    fn operands(&mut self, items: &[Expr]) -> (u32, u32, Vec<Type>) {
        let (ids, types): (Vec<_>, Vec<_>) = items.iter().map(|item| self.expression(item)).unzip();
        let first = self.code.operands.len() as u32;
        self.code.operands.extend(ids);
        (first, items.len() as u32, types)
    }

    fn name(&mut self, name: &str, span: Span) -> (Id, Type) {
        let known = self.scope.iter().rev().find(|(known, ..)| known == name);
        if let Some((_, op, of)) = known {
            let (op, of) = (*op, of.clone());
            return (self.op(op, span), of);
        }
        if let Some((_, why)) = self.absent.iter().find(|(absent, _)| *absent == name) {
            self.found.mistake("unknown-name", span, format!("`{name}` is not available here: {why}"));
        } else {
            let names = self.scope.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>();
            let hint = suggestion(name, names.iter().map(String::as_str));
            self.found.mistake_hint("unknown-name", span, format!("unknown name `{name}`"), hint);
        }
        (self.op(Op::Bool(false), span), Type::Any)
    }

    fn field(&mut self, of: &Expr, field: &Name, span: Span) -> (Id, Type) {
        let (of, kind) = self.expression(of);
        let schema = self.schema;
        let gives = match &kind {
            Type::Any => Type::Any,
            Type::Map(key, value) if matches!(**key, Type::Text | Type::Any) => (**value).clone(),
            Type::Record(_) | Type::Named(_) => {
                let fields = schema.fields(&kind);
                let known = fields.and_then(|fields| fields.iter().find(|known| known.name == field.text));
                if let (None, Some(fields)) = (known, fields) {
                    let hint = suggestion(&field.text, fields.iter().map(|field| field.name.as_str()));
                    let message = format!("{} has no field `{}`", kind.described(), field.text);
                    self.found.mistake_hint("unknown-field", field.span, message, hint);
                }
                known.map_or(Type::Any, |known| known.of.clone())
            }
            _ => {
                self.wrong_type(field.span, format!("{} has no fields", kind.described()));
                Type::Any
            }
        };
        let name = self.text_id(&field.text);
        (self.op(Op::Field { of, name }, span), gives)
    }

    fn index(&mut self, of: &Expr, at: &Expr, span: Span) -> (Id, Type) {
        let (of_id, kind) = self.expression(of);
        let (at_id, at_kind) = self.expression(at);
        let (wanted, gives) = match &kind {
            Type::List(of) => (Type::Int, (**of).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Tuple(items) => {
                let known = match at.kind {
                    ExprKind::Int(at) => usize::try_from(at).ok().and_then(|at| items.get(at)).cloned(),
                    _ => None,
                };
                (Type::Int, known.unwrap_or(Type::Any))
            }
            // `a["b"]` reads a field by its name.
            Type::Record(_) | Type::Named(_) => (Type::Text, Type::Any),
            Type::Any => (Type::Any, Type::Any),
            _ => {
                self.wrong_type(of.span, format!("{} has no items", kind.described()));
                (Type::Any, Type::Any)
            }
        };
        if joined(&wanted, &at_kind).is_none() {
            let message = format!("the index must be {}, found {}", wanted.described(), at_kind.described());
            self.wrong_type(at.span, message);
        }
        (self.op(Op::At { of: of_id, at: at_id }, span), gives)
    }

    fn call(&mut self, name: &Name, arguments: &[Expr], span: Span) -> (Id, Type) {
        let Some(row) = functions::find(&name.text) else {
            let names = functions::TABLE.iter().map(|row| row.name).chain(["all", "any", "count"]);
            let hint = suggestion(&name.text, names);
            self.found.mistake_hint("unknown-function", name.span, format!("unknown function `{}`", name.text), hint);
            arguments.iter().for_each(|argument| drop(self.expression(argument)));
            return (self.op(Op::Bool(false), span), Type::Any);
        };
        let wanted = row.takes.len();
        if arguments.len() < wanted || (arguments.len() > wanted && !row.more) {
            let (least, s) = (if row.more { "at least " } else { "" }, if wanted == 1 { "" } else { "s" });
            let message = format!("`{}` takes {least}{wanted} argument{s}, not {}", row.name, arguments.len());
            self.found.mistake("arguments", span, message);
        }
        if let Function::Matches | Function::Split = row.function {
            let op = match arguments {
                [text, pattern] => self.pattern(matches!(row.function, Function::Split), text, pattern),
                _ => None,
            };
            return (self.op(op.unwrap_or(Op::Bool(false)), span), (row.gives)(&[]));
        }
        let (first, count, types) = self.operands(arguments);
        for (at, (argument, of)) in arguments.iter().zip(&types).enumerate() {
            let takes = row.takes[at.min(wanted - 1)];
            if !takes.accepts(of) {
                let message = format!("`{}` takes {} here, found {}", row.name, takes.describe(), of.described());
                self.wrong_type(argument.span, message);
            }
        }
        // A wrong number of arguments is an error, so this code never runs.
        (self.op(Op::Call { function: row.function, first, count }, span), (row.gives)(&types))
    }

    fn pattern(&mut self, splits: bool, text: &Expr, pattern: &Expr) -> Option<Op> {
        let (of, kind) = self.expression(text);
        if !ArgKind::Text.accepts(&kind) {
            self.wrong_type(text.span, format!("a pattern is matched against text, found {}", kind.described()));
        }
        let compiled = match &pattern.kind {
            ExprKind::Text(source) if source.len() > PATTERN_MAX_BYTES => {
                Err(format!("a pattern may have at most {PATTERN_MAX_BYTES} bytes, this one has {}", source.len()))
            }
            ExprKind::Text(source) => {
                let built = RegexBuilder::new(source).size_limit(PATTERN_PROGRAM_MAX_BYTES).nest_limit(16).build();
                built.map_err(|error| format!("invalid pattern: {error}"))
            }
            _ => Err("a pattern must be a quoted literal".to_owned()),
        };
        let compiled = compiled.map_err(|message| self.found.mistake("pattern", pattern.span, message)).ok()?;
        self.code.patterns.push(compiled);
        Some(Op::Pattern { splits, of, pattern: (self.code.patterns.len() - 1) as u32 })
    }

    fn binary(&mut self, operator: Binary, a: &Expr, b: &Expr, span: Span) -> (Id, Type) {
        if let Binary::And | Binary::Or = operator {
            let what = format!("each side of `{}`", operator.sign().0);
            let (a, b) = (self.truth(a, &what), self.truth(b, &what));
            let op = if operator == Binary::And { Op::And { a, b } } else { Op::Or { a, b } };
            return (self.op(op, span), Type::Bool);
        }
        let ((a_id, a_type), (b_id, b_type)) = (self.expression(a), self.expression(b));
        if operator.is_comparison() {
            self.comparable(operator, (a, &a_type), (b, &b_type), span);
            return (self.op(Op::Compare { how: operator, a: a_id, b: b_id }, span), Type::Bool);
        }
        if operator == Binary::In {
            let item = match &b_type {
                Type::List(of) => (**of).clone(),
                Type::Map(key, _) => (**key).clone(),
                Type::Record(_) | Type::Named(_) => Type::Text,
                Type::Any | Type::Tuple(_) => Type::Any,
                other => {
                    let hint = "for text, use `contains(text, part)`";
                    let message = format!("`in` needs a list or a map, found {}", other.described());
                    self.found.mistake_hint("type", b.span, message, hint);
                    Type::Any
                }
            };
            if joined(&item, &a_type).is_none() {
                let message = format!("each item is {}, but this is {}", item.described(), a_type.described());
                self.wrong_type(a.span, message);
            }
            return (self.op(Op::In { item: a_id, within: b_id }, span), Type::Bool);
        }
        let of = self.arithmetic(operator, (a, &a_type), (b, &b_type), span);
        (self.op(Op::Arithmetic { how: operator, a: a_id, b: b_id }, span), of)
    }

    fn comparable(&mut self, how: Binary, a: (&Expr, &Type), b: (&Expr, &Type), span: Span) {
        if joined(a.1, b.1).is_none() {
            let message = format!("cannot compare {} with {}", a.1.described(), b.1.described());
            let numeral = |x: &Type, y: &Type| ArgKind::Text.accepts(x) && ArgKind::Number.accepts(y);
            if numeral(a.1, b.1) || numeral(b.1, a.1) {
                self.found.mistake_hint("type", span, message, "use `int(text)` to convert text to a number");
            } else {
                self.wrong_type(span, message);
            }
            return;
        }
        let ordered =
            |of: &Type| matches!(of, Type::Any | Type::Int | Type::Float | Type::Text | Type::Bytes | Type::Choice(_));
        let unordered = [a, b].into_iter().find(|(_, of)| !ordered(of));
        if let Some((side, of)) = unordered.filter(|_| !matches!(how, Binary::Equal | Binary::Unequal)) {
            let message = format!("only numbers and text have an order, found {}", of.described());
            return self.wrong_type(side.span, message);
        }
        for ((_, choice), (literal, _)) in [(a, b), (b, a)] {
            let (Type::Choice(choices), ExprKind::Text(text)) = (choice, &literal.kind) else { continue };
            if !choices.contains(text) {
                let hint = suggestion(text, choices.iter().map(String::as_str));
                self.found.mistake_hint("choice", literal.span, format!("this is never {text:?}"), hint);
            }
        }
    }

    fn arithmetic(&mut self, operator: Binary, a: (&Expr, &Type), b: (&Expr, &Type), span: Span) -> Type {
        let sign = operator.sign().0;
        let plus = operator == Binary::Plus;
        match (a.1, b.1) {
            (Type::Any, other) | (other, Type::Any) => match other {
                Type::Any => Type::Any,
                Type::Text | Type::Choice(_) if plus => Type::Text,
                Type::List(_) if plus => Type::List(Box::new(Type::Any)),
                Type::Int | Type::Float => Type::Any,
                _ => {
                    self.wrong_type(span, format!("`{sign}` does not take {}", other.described()));
                    Type::Any
                }
            },
            (Type::Int, Type::Int) => Type::Int,
            (Type::Int | Type::Float, Type::Int | Type::Float) => Type::Float,
            (Type::Text | Type::Choice(_), Type::Text | Type::Choice(_)) if plus => Type::Text,
            (Type::List(x), Type::List(y)) if plus => Type::List(Box::new(joined(x, y).unwrap_or(Type::Any))),
            (x, y) => {
                let message = format!("`{sign}` does not take {} and {}", x.described(), y.described());
                if plus && (ArgKind::Text.accepts(x) || ArgKind::Text.accepts(y)) {
                    self.found.mistake_hint("type", span, message, "use `text(value)` to convert a value to text");
                } else {
                    self.wrong_type(span, message);
                }
                Type::Any
            }
        }
    }
}

pub(super) fn joined(a: &Type, b: &Type) -> Option<Type> {
    let is_record = |of: &Type| matches!(of, Type::Record(_) | Type::Named(_));
    Some(match (a, b) {
        (Type::Any, _) | (_, Type::Any) => Type::Any,
        (Type::Int, Type::Float) | (Type::Float, Type::Int) => Type::Float,
        (Type::Choice(a), Type::Choice(b)) if a == b => Type::Choice(a.clone()),
        (Type::Text | Type::Choice(_), Type::Text | Type::Choice(_)) => Type::Text,
        (Type::List(a), Type::List(b)) => Type::List(Box::new(joined(a, b)?)),
        (Type::Map(k, a), Type::Map(l, b)) => Type::Map(Box::new(joined(k, l)?), Box::new(joined(a, b)?)),
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            Type::Tuple(a.iter().zip(b).map(|(a, b)| joined(a, b)).collect::<Option<_>>()?)
        }
        (Type::Named(a), Type::Named(b)) if a == b => Type::Named(a.clone()),
        (a, b) if is_record(a) && is_record(b) => Type::Any,
        (a, b) if a == b => a.clone(),
        _ => return None,
    })
}
