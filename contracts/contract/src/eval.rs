//! Evaluates compiled clauses. Evaluation is bounded, total and three-valued.

mod failing_values;
mod operators_and_functions;
pub(crate) mod value_text;

pub(crate) use self::failing_values::guilty;

use bumpalo::Bump;

use crate::clause::{Clause, Identify};
use crate::finding::Span;
use crate::message_values::{Value, field};
use crate::syntax::{Binary, Expr, ExprKind, Identifies, Local, Quantifier, Step};

/// Default maximum number of steps per clause.
pub const STEPS_MAX: u64 = 100_000;

const BYTES_A_STEP: usize = 16;

const NESTING_MAX: u16 = 64;

/// The values of a call that clauses refer to, borrowed from its messages.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The arguments, in the order of [`crate::Contract::params`].
    pub args: &'a [Value<'a>],
    /// The result, or the exception or fault for `on_error`. [`Value::Missing`] before the reply.
    pub outcome: Value<'a>,
    /// The called endpoint.
    pub receiver: &'a str,
    /// Maximum number of steps per clause.
    pub steps_max: u64,
}

/// The reason why an expression has no value, with the expression's location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The reason, such as a missing field or an exceeded limit.
    pub why: Why,
    /// Location of the expression in the contract.
    pub span: Span,
}

/// The reason why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The message lacks an optional field or a key of a map.
    #[error("missing from the message")]
    Missing,
    /// The codec could not decode the value, or left it out because of its size.
    #[error("it could not be decoded")]
    Opaque,
    /// A value of the wrong kind, with the expected and the actual kind.
    #[error("expected {0}, found {1}")]
    Kind(&'static str, &'static str),
    /// An operation without a result, such as division by zero, an index out of range, a string in the wrong format, or
    /// a value over a limit.
    #[error("{0}")]
    Impossible(&'static str),
    /// The step limit was reached.
    #[error("step limit exceeded")]
    Budget,
}

impl Why {
    const OVERFLOW: Self = Self::Impossible("the number does not fit in 64 bits");
    const DEPTH: Self = Self::Impossible("the value nests deeper than 64 levels");

    /// Whether the value is missing or could not be decoded, as opposed to an impossible operation.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::Missing | Self::Opaque)
    }
}

/// Memory for values that clauses create, such as joined strings. Each thread has its own, cleared before each clause.
#[derive(Debug, Default)]
pub struct Scratch {
    bump: Bump,
}

impl Scratch {
    /// Starts an evaluation with this number of local variables, and frees the memory of the previous one.
    fn start<'r>(&'r mut self, locals: u16, env: Env<'r>) -> Run<'r> {
        self.bump.reset();
        let bump = &self.bump;
        let locals = match locals {
            0 => &mut [],
            count => bump.alloc_slice_fill_copy(usize::from(count), Value::Missing),
        };
        Run { env, locals, left: env.steps_max, bump, stopped: None, first_stop: None }
    }

    pub(crate) fn index(&mut self, clause: &Clause, env: Env<'_>) -> Result<String, Stop> {
        let mut run = self.start(clause.locals, env);
        run.index_text(&clause.expr).map(str::to_owned).map_err(|NoValue| run.reason())
    }

    /// Passes each introduced endpoint and its index to `take`. Continues after a failure and returns the first one.
    pub(crate) fn identify(&mut self, identify: &Identify, env: Env<'_>, take: TakeEndpoint<'_>) -> Result<(), Stop> {
        let mut run = self.start(identify.clause.locals, env);
        run.walk(&identify.content, 0, take);
        run.first_stop.map_or(Ok(()), Err)
    }
}

impl Clause {
    /// Returns whether the clause holds for a call. Fails if that cannot be decided. Needs no monitor.
    pub fn judge(&self, env: Env<'_>, scratch: &mut Scratch) -> Result<bool, Stop> {
        if let Some(holds) = plain(&self.expr, &env).filter(|_| env.steps_max >= PLAIN_STEPS) {
            return Ok(holds);
        }
        let mut run = scratch.start(self.locals, env);
        run.truth(&self.expr).map_err(|NoValue| run.reason())
    }
}

const PLAIN_STEPS: u64 = 8;

/// Fast path for comparisons of integer arguments and constants, as in most preconditions. `None` for anything else.
fn plain(expr: &Expr, env: &Env<'_>) -> Option<bool> {
    let number = |expr: &Expr| match expr.kind {
        ExprKind::Int(value) => Some(value),
        ExprKind::Param(at) => match env.args.get(usize::from(at)) {
            Some(&Value::Int(value)) => Some(value),
            _ => None,
        },
        _ => None,
    };
    let is_comparison = |expr: &Expr| matches!(expr.kind, ExprKind::Binary(how, ..) if how.is_comparison());
    match &expr.kind {
        ExprKind::Binary(how, a, b) if how.is_comparison() => Some(how.holds(number(a)?.cmp(&number(b)?))),
        // Each side must be a single comparison, which bounds the recursion.
        ExprKind::Binary(Binary::And, a, b) if is_comparison(a) && is_comparison(b) => {
            Some(plain(a, env)? && plain(b, env)?)
        }
        _ => None,
    }
}

pub(crate) type TakeEndpoint<'t> = &'t mut dyn FnMut(&str, Option<&str>);

pub(crate) const NAME_MAX_BYTES: usize = 1024;

/// An error without content, since the reason would not fit into registers. [`Run`] keeps the reason.
pub(crate) struct NoValue;

type Outcome<T> = Result<T, NoValue>;

pub(crate) struct Run<'a> {
    env: Env<'a>,
    locals: &'a mut [Value<'a>],
    left: u64,
    bump: &'a Bump,
    /// Why the last failed operation has no value.
    stopped: Option<Stop>,
    /// The first failure of a step of an `identifies` clause.
    first_stop: Option<Stop>,
}

impl<'a> Run<'a> {
    fn reason(&self) -> Stop {
        self.stopped.expect("what halts says why")
    }

    #[cold]
    fn stop<T>(&mut self, at: &Expr, why: Why) -> Outcome<T> {
        self.halt(Stop { why, span: at.span })
    }

    #[cold]
    fn halt<T>(&mut self, stop: Stop) -> Outcome<T> {
        self.stopped = Some(stop);
        Err(NoValue)
    }

    #[cold]
    fn kind<T>(&mut self, at: &Expr, wanted: &'static str, found: Value<'_>) -> Outcome<T> {
        match found {
            Value::Missing => self.stop(at, Why::Missing),
            Value::Opaque | Value::Malformed(_) => self.stop(at, Why::Opaque),
            other => self.stop(at, Why::Kind(wanted, other.kind())),
        }
    }

    fn charge(&mut self, at: &Expr, steps: u64) -> Outcome<()> {
        let is_enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        if is_enough { Ok(()) } else { self.stop(at, Why::Budget) }
    }

    fn charge_bytes(&mut self, at: &Expr, bytes: usize) -> Outcome<()> {
        self.charge(at, (bytes / BYTES_A_STEP) as u64)
    }

    /// The value of an expression, or [`Value::Missing`] if the message lacks it.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Outcome<Value<'a>> {
        self.charge(expr, 1)?;
        match &expr.kind {
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Text(text) => Ok(Value::Text(text)),
            ExprKind::Param(at) => Ok(self.env.args.get(usize::from(*at)).copied().unwrap_or(Value::Missing)),
            ExprKind::Outcome => Ok(self.env.outcome),
            ExprKind::Receiver => Ok(Value::Text(self.env.receiver)),
            ExprKind::Local(at) => Ok(self.locals[usize::from(*at)]),
            ExprKind::Field(of, name) => self.field(of, &name.text),
            ExprKind::Index(of, at) => self.at(expr, of, at),
            ExprKind::Binary(how, a, b) => match how {
                Binary::And | Binary::Or => self.both(a, b, *how == Binary::Or).map(Value::Bool),
                Binary::In => self.within(expr, a, b).map(Value::Bool),
                how if how.is_comparison() => self.compare(expr, *how, a, b).map(Value::Bool),
                how => self.arithmetic(expr, *how, a, b),
            },
            ExprKind::Not(of) => self.truth(of).map(|value| Value::Bool(!value)),
            ExprKind::Minus(of) => match self.value(of)? {
                Value::Int(number) => match number.checked_neg() {
                    Some(number) => Ok(Value::Int(number)),
                    None => self.stop(expr, Why::OVERFLOW),
                },
                Value::Float(number) => Ok(Value::Float(-number)),
                other => self.kind(of, "a number", other),
            },
            ExprKind::If(condition, yes, no) => {
                let taken = if self.truth(condition)? { yes } else { no };
                self.value(taken)
            }
            ExprKind::Quantifier(each, local, within, body) => self.each(*each, local, within, body),
            ExprKind::Let(local, value, body) => {
                self.locals[usize::from(local.at)] = self.value(value)?;
                self.value(body)
            }
            ExprKind::List(items) => self.operands(expr, items).map(Value::List),
            ExprKind::Tuple(items) => self.operands(expr, items).map(Value::Tuple),
            ExprKind::Apply(function, arguments) => self.call(expr, *function, arguments),
            ExprKind::Pattern(_) => unreachable!("functions read patterns themselves"),
            ExprKind::Name(_) | ExprKind::Call(..) => unreachable!("names and calls are resolved"),
        }
    }

    /// Fast path of `value` for expressions without operands. `None` for others, or if no step is left.
    fn leaf(&mut self, expr: &'a Expr) -> Option<Value<'a>> {
        let left = self.left.checked_sub(1)?;
        let value = match &expr.kind {
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Text(text) => Value::Text(text),
            ExprKind::Param(at) => self.env.args.get(usize::from(*at)).copied().unwrap_or(Value::Missing),
            ExprKind::Local(at) => self.locals[usize::from(*at)],
            ExprKind::Outcome => self.env.outcome,
            _ => return None,
        };
        self.left = left;
        Some(value)
    }

    /// The value of an expression. Fails if the value is missing or could not be decoded.
    fn needed(&mut self, expr: &'a Expr) -> Outcome<Value<'a>> {
        let value = match self.leaf(expr) {
            Some(value) => value,
            None => self.value(expr)?,
        };
        match value {
            Value::Missing | Value::Opaque | Value::Malformed(_) => self.kind(expr, "a value", value),
            value => Ok(value),
        }
    }

    fn truth(&mut self, expr: &'a Expr) -> Outcome<bool> {
        match &expr.kind {
            ExprKind::Binary(how, a, b) if how.is_comparison() => {
                self.charge(expr, 1)?;
                self.compare(expr, *how, a, b)
            }
            _ => match self.value(expr)? {
                Value::Bool(value) => Ok(value),
                other => self.kind(expr, "a bool", other),
            },
        }
    }

    fn text(&mut self, expr: &'a Expr) -> Outcome<&'a str> {
        match self.value(expr)? {
            Value::Text(text) => Ok(text),
            other => self.kind(expr, "text", other),
        }
    }

    /// Evaluates Kleene's `&&` (`decides` is false) or `||` (true): one side can decide even if the other has no value.
    fn both(&mut self, a: &'a Expr, b: &'a Expr, decides: bool) -> Outcome<bool> {
        match self.truth(a) {
            Ok(value) if value == decides => Ok(decides),
            Ok(_) => self.truth(b),
            Err(NoValue) => {
                let first = self.reason();
                match self.truth(b) {
                    Ok(value) if value == decides => Ok(decides),
                    _ => self.halt(first),
                }
            }
        }
    }

    fn field(&mut self, of: &'a Expr, name: &str) -> Outcome<Value<'a>> {
        match self.needed(of)? {
            Value::Map(pairs) => {
                self.charge(of, (pairs.len() / 8) as u64)?;
                Ok(field(pairs, name))
            }
            other => self.kind(of, "a map or record", other),
        }
    }

    fn at(&mut self, expr: &Expr, of: &'a Expr, at: &'a Expr) -> Outcome<Value<'a>> {
        let (within, key) = (self.needed(of)?, self.needed(at)?);
        if within.is_list() {
            let Value::Int(number) = key else { return self.kind(at, "an int", key) };
            return match usize::try_from(number) {
                Ok(position) if position < within.item_count() => Ok(within.item(position)),
                _ => self.stop(expr, Why::Impossible("index out of range")),
            };
        }
        let Value::Map(pairs) = within else { return self.kind(of, "a list or a map", within) };
        if let Value::Text(name) = key {
            self.charge(of, (pairs.len() / 8) as u64)?;
            return Ok(field(pairs, name));
        }
        for (other, value) in pairs {
            if self.equal(expr, other.value(), key, 0)? {
                return Ok(value.value());
            }
        }
        Ok(Value::Missing)
    }

    fn operands(&mut self, expr: &Expr, operands: &'a [Expr]) -> Outcome<&'a [Value<'a>]> {
        self.charge(expr, operands.len() as u64)?;
        let mut values = bumpalo::collections::Vec::with_capacity_in(operands.len(), self.bump);
        for operand in operands {
            values.push(self.needed(operand)?);
        }
        Ok(values.into_bump_slice())
    }

    /// The value of an expression that must be a list, a tuple or a map.
    fn items(&mut self, expr: &'a Expr) -> Outcome<Value<'a>> {
        match self.needed(expr)? {
            value if value.is_list() || matches!(value, Value::Map(_)) => Ok(value),
            value => self.kind(expr, "a list", value),
        }
    }

    fn each(&mut self, each: Quantifier, local: &Local, within: &'a Expr, body: &'a Expr) -> Outcome<Value<'a>> {
        let items = self.items(within)?;
        let mut undecided = None;
        let mut count = 0;
        for item in items.items() {
            self.locals[usize::from(local.at)] = item;
            match (each, self.truth(body)) {
                (Quantifier::All, Ok(false)) => return Ok(Value::Bool(false)),
                (Quantifier::Any, Ok(true)) => return Ok(Value::Bool(true)),
                (_, Ok(holds)) => count += i64::from(holds),
                (_, Err(NoValue)) if self.reason().why == Why::Budget => return Err(NoValue),
                (_, Err(NoValue)) => undecided = undecided.or(self.stopped),
            }
        }
        match (undecided, each) {
            (Some(stop), _) => self.halt(stop),
            (None, Quantifier::All) => Ok(Value::Bool(true)),
            (None, Quantifier::Any) => Ok(Value::Bool(false)),
            (None, Quantifier::Count) => Ok(Value::Int(count)),
        }
    }

    fn index_text(&mut self, expr: &'a Expr) -> Outcome<&'a str> {
        let value = self.needed(expr)?;
        let text = self.shown(expr, value)?;
        match text.len() > NAME_MAX_BYTES {
            true => self.stop(expr, Why::Impossible("the index is longer than 1024 bytes")),
            false => Ok(text),
        }
    }

    fn walk(&mut self, identifies: &'a Identifies, step: usize, take: TakeEndpoint<'_>) {
        if let Err(NoValue) = self.try_walk(identifies, step, take) {
            self.first_stop = self.first_stop.or(self.stopped);
        }
    }

    fn try_walk(&mut self, identifies: &'a Identifies, step: usize, take: TakeEndpoint<'_>) -> Outcome<()> {
        match identifies.steps.get(step) {
            None => return self.introduce(identifies, take),
            Some(Step::When(condition)) => {
                if self.truth(condition)? {
                    self.walk(identifies, step + 1, take);
                }
            }
            Some(Step::Let(local, value)) => {
                self.locals[usize::from(local.at)] = self.needed(value)?;
                self.walk(identifies, step + 1, take);
            }
            Some(Step::For(local, within)) => {
                for item in self.items(within)?.items() {
                    if self.left == 0 {
                        break;
                    }
                    self.locals[usize::from(local.at)] = item;
                    self.walk(identifies, step + 1, take);
                }
            }
        }
        Ok(())
    }

    fn introduce(&mut self, identifies: &'a Identifies, take: TakeEndpoint<'_>) -> Outcome<()> {
        let Identifies { at, index, .. } = identifies;
        let endpoint = match at.kind {
            // Members that a service lists share the receiver's endpoint.
            ExprKind::Receiver => self.env.receiver,
            _ => self.text(at)?,
        };
        if endpoint.is_empty() || endpoint.len() > NAME_MAX_BYTES {
            return self.stop(at, Why::Impossible("the endpoint is empty or longer than 1024 bytes"));
        }
        let index = index.as_ref().map(|index| self.index_text(index)).transpose()?;
        take(endpoint, index);
        Ok(())
    }
}

impl<'a> Value<'a> {
    fn is_list(self) -> bool {
        matches!(self, Value::Array(_) | Value::List(_) | Value::Tuple(_))
    }

    /// The items of a list or tuple, or the keys of a map.
    fn items(self) -> impl Iterator<Item = Value<'a>> {
        (0..self.item_count()).map(move |at| self.item(at))
    }

    fn item_count(self) -> usize {
        match self {
            Value::Array(items) => items.len(),
            Value::Map(pairs) => pairs.len(),
            Value::List(items) | Value::Tuple(items) => items.len(),
            _ => 0,
        }
    }

    fn item(self, position: usize) -> Value<'a> {
        match self {
            Value::Map(pairs) => pairs[position].0.value(),
            Value::Array(items) => items[position].value(),
            Value::List(items) | Value::Tuple(items) => items[position],
            _ => Value::Missing,
        }
    }
}
