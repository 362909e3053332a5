//! Resolves the names of expressions and checks their types.

use regex_lite::RegexBuilder;

use crate::finding::{Findings, Span, suggestion};
use crate::functions::{self, ArgKind};
use crate::syntax::{Binary, Expr, ExprKind, Local, Name, Quantifier};
use crate::types_and_schema::{Schema, Type};

pub(crate) const PATTERN_MAX_BYTES: usize = 256;

/// Maximum memory of a compiled pattern, in bytes. It bounds the time per matched byte.
const PATTERN_PROGRAM_MAX_BYTES: usize = 16 << 10;

const LOCALS_MAX: u16 = 64;

pub(super) const RESERVED: [&str; 6] = ["result", "error", "receiver", "true", "false", "let"];

/// Names, each with the expression that reads it and its type, or the reason why only other kinds of clauses have it.
/// Later names hide earlier ones.
pub(super) type Scope = Vec<(String, Result<(ExprKind, Type), &'static str>)>;

pub(super) struct Compiler<'c> {
    pub(super) schema: &'c Schema,
    pub(super) found: &'c mut Findings,
    pub(super) scope: Scope,
    pub(super) locals: u16,
    /// Maximum of `locals` so far.
    pub(super) locals_max: u16,
}

impl Compiler<'_> {
    pub(super) fn bind(&mut self, local: &mut Local, of: Type) {
        let Name { text, span } = &local.name;
        if self.locals == LOCALS_MAX {
            return self.found.mistake("depth", *span, format!("more than {LOCALS_MAX} names are in scope here"));
        }
        if RESERVED.contains(&text.as_str()) {
            self.found.mistake("reserved", *span, format!("`{text}` is reserved and cannot be a name"));
        }
        local.at = self.locals;
        self.locals += 1;
        self.locals_max = self.locals_max.max(self.locals);
        self.scope.push((text.clone(), Ok((ExprKind::Local(local.at), of))));
    }

    fn unbind(&mut self) {
        if let Some((_, Ok((ExprKind::Local(local), _)))) = self.scope.pop() {
            self.locals = local;
        }
    }

    pub(super) fn truth(&mut self, expr: &mut Expr, what: &str) {
        let of = self.expression(expr);
        if !matches!(of, Type::Bool | Type::Any) {
            self.wrong_type(expr.span, format!("{what} must be a bool, found {}", of.described()));
        }
    }

    pub(super) fn index_text(&mut self, expr: &mut Expr) {
        let of = self.expression(expr);
        if matches!(of, Type::Record(_) | Type::Named(_) | Type::Map(..) | Type::Bytes) {
            let hint = "use one of its fields, or `text((a, b))` for several";
            let message = format!("an index must be text, found {}", of.described());
            self.found.mistake_hint("type", expr.span, message, hint);
        }
    }

    fn wrong_type(&mut self, span: Span, message: String) {
        self.found.mistake("type", span, message);
    }

    pub(super) fn bind_items(&mut self, local: &mut Local, within: &mut Expr) {
        let item = match self.expression(within) {
            Type::List(of) => *of,
            Type::Any => Type::Any,
            Type::Map(key, _) => *key,
            of => {
                self.wrong_type(within.span, format!("a loop needs a list, found {}", of.described()));
                Type::Any
            }
        };
        self.bind(local, item);
    }

    /// Resolves the names of an expression and returns its type.
    pub(super) fn expression(&mut self, expr: &mut Expr) -> Type {
        let span = expr.span;
        match &mut expr.kind {
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::Int(_) => Type::Int,
            ExprKind::Float(_) => Type::Float,
            ExprKind::Text(_) => Type::Text,
            ExprKind::Name(name) => {
                let of;
                (expr.kind, of) = self.name(name, span);
                of
            }
            ExprKind::Field(of, field) => self.field(of, field),
            ExprKind::Index(of, at) => self.index(of, at),
            ExprKind::Call(function, arguments) => {
                let of;
                (expr.kind, of) = self.call(function, arguments, span);
                of
            }
            ExprKind::Quantifier(each, local, within, body) => {
                self.bind_items(local, within);
                self.truth(body, "the condition on each item");
                self.unbind();
                if *each == Quantifier::Count { Type::Int } else { Type::Bool }
            }
            ExprKind::Not(of) => {
                self.truth(of, "the operand of `!`");
                Type::Bool
            }
            ExprKind::Minus(of) => {
                let kind = self.expression(of);
                if !ArgKind::Number.accepts(&kind) {
                    self.wrong_type(of.span, format!("`-` takes a number, found {}", kind.described()));
                }
                kind
            }
            ExprKind::Binary(operator, a, b) => self.binary(*operator, a, b, span),
            ExprKind::If(condition, yes, no) => {
                self.truth(condition, "the condition before `?`");
                let (yes, no) = (self.expression(yes), self.expression(no));
                joined(&yes, &no).unwrap_or_else(|| {
                    let (yes, no) = (yes.described(), no.described());
                    self.wrong_type(span, format!("both values must have the same type, found {yes} and {no}"));
                    Type::Any
                })
            }
            ExprKind::List(items) => {
                let types = items.iter_mut().map(|item| self.expression(item));
                let of = types.reduce(|of, next| joined(&of, &next).unwrap_or(Type::Any));
                Type::List(Box::new(of.unwrap_or(Type::Any)))
            }
            ExprKind::Tuple(items) => Type::Tuple(items.iter_mut().map(|item| self.expression(item)).collect()),
            ExprKind::Let(local, value, body) => {
                let of = self.expression(value);
                self.bind(local, of);
                let of = self.expression(body);
                self.unbind();
                of
            }
            _ => unreachable!("an expression is resolved once"),
        }
    }

    fn name(&mut self, name: &str, span: Span) -> (ExprKind, Type) {
        match self.scope.iter().rev().find(|(known, _)| known == name) {
            Some((_, Ok(meaning))) => return meaning.clone(),
            Some((_, Err(why))) => {
                self.found.mistake("unknown-name", span, format!("`{name}` is not available here: {why}"));
            }
            None => {
                let names = self.scope.iter().filter(|(_, meaning)| meaning.is_ok());
                let hint = suggestion(name, names.map(|(name, _)| name.as_str()));
                self.found.mistake_hint("unknown-name", span, format!("unknown name `{name}`"), hint);
            }
        }
        (ExprKind::Bool(false), Type::Any)
    }

    fn field(&mut self, of: &mut Expr, field: &Name) -> Type {
        let kind = self.expression(of);
        match &kind {
            Type::Any => Type::Any,
            Type::Map(key, value) if matches!(**key, Type::Text | Type::Any) => (**value).clone(),
            Type::Record(_) | Type::Named(_) => {
                let fields = self.schema.fields(&kind);
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
        }
    }

    fn index(&mut self, of: &mut Expr, at: &mut Expr) -> Type {
        let (kind, at_kind) = (self.expression(of), self.expression(at));
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
        gives
    }

    fn call(&mut self, name: &Name, arguments: &mut Vec<Expr>, span: Span) -> (ExprKind, Type) {
        let Some(row) = functions::find(&name.text) else {
            let names = functions::TABLE.iter().map(|row| row.name).chain(["all", "any", "count"]);
            let hint = suggestion(&name.text, names);
            self.found.mistake_hint("unknown-function", name.span, format!("unknown function `{}`", name.text), hint);
            arguments.iter_mut().for_each(|argument| drop(self.expression(argument)));
            return (ExprKind::Bool(false), Type::Any);
        };
        let wanted = row.takes.len();
        if arguments.len() < wanted || (arguments.len() > wanted && !row.more) {
            let (least, s) = (if row.more { "at least " } else { "" }, if wanted == 1 { "" } else { "s" });
            let message = format!("`{}` takes {least}{wanted} argument{s}, not {}", row.name, arguments.len());
            self.found.mistake("arguments", span, message);
        }
        let mut types = Vec::new();
        for (at, argument) in arguments.iter_mut().enumerate() {
            let takes = row.takes[at.min(wanted - 1)];
            if takes == ArgKind::Pattern {
                self.pattern(argument);
                continue;
            }
            let of = self.expression(argument);
            if !takes.accepts(&of) {
                let message = format!("`{}` takes {} here, found {}", row.name, takes.describe(), of.described());
                self.wrong_type(argument.span, message);
            }
            types.push(of);
        }
        // A wrong number of arguments is an error, so this call is never evaluated.
        (ExprKind::Apply(row.function, std::mem::take(arguments)), (row.gives)(&types))
    }

    fn pattern(&mut self, pattern: &mut Expr) {
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
        match compiled {
            Ok(compiled) => pattern.kind = ExprKind::Pattern(compiled),
            Err(message) => self.found.mistake("pattern", pattern.span, message),
        }
    }

    fn binary(&mut self, operator: Binary, a: &mut Expr, b: &mut Expr, span: Span) -> Type {
        if let Binary::And | Binary::Or = operator {
            let what = format!("each side of `{}`", operator.sign().0);
            self.truth(a, &what);
            self.truth(b, &what);
            return Type::Bool;
        }
        let (a_type, b_type) = (self.expression(a), self.expression(b));
        if operator.is_comparison() {
            self.comparable(operator, (a, &a_type), (b, &b_type), span);
            return Type::Bool;
        }
        if operator != Binary::In {
            return self.arithmetic(operator, &a_type, &b_type, span);
        }
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
        Type::Bool
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

    fn arithmetic(&mut self, operator: Binary, a: &Type, b: &Type, span: Span) -> Type {
        let sign = operator.sign().0;
        let plus = operator == Binary::Plus;
        match (a, b) {
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
