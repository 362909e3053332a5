//! Operations to values: bounded, total, three-valued.

mod calls;
mod culprits;
pub(crate) mod excerpt;
mod operators;

pub(crate) use self::culprits::guilty;

use bumpalo::Bump;

use crate::clause::{Identify, IdentifyStep};
use crate::code::{Code, Id, Op};
use crate::finding::Span;
use crate::syntax::Quantifier;
use crate::tape::{Shape, Value};

/// Steps that one clause may take, unless its caller says otherwise.
pub const STEPS_MAX: u64 = 100_000;

/// What is made or looked at costs a step for so many bytes.
const BYTES_A_STEP: usize = 16;

/// Values of messages that are compared or shown may nest so deep.
const NESTING_MAX: u16 = 64;

/// What a call is judged by: borrowed from its messages.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The arguments, in the order of [`crate::Contract::params`].
    pub args: &'a [Value<'a>],
    /// The result; or the exception or fault, of clauses `on_error`; [`Value::Missing`] before the reply.
    pub outcome: Value<'a>,
    /// The endpoint that the request went to.
    pub receiver: &'a str,
}

/// What a clause comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Holds,
    /// It is not kept.
    Fails,
    /// It cannot be said: something that it reads is missing, or could not be decoded.
    Unknown(Stop),
    /// It cannot be said: the clause asks for what is not possible, or for too much.
    Error(Stop),
}

/// Why a value could not be had, and where in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub why: Why,
    /// The expression that had no value.
    pub span: Span,
}

/// Why a value could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// An optional field, or a key of a map.
    #[error("missing from the message")]
    Missing,
    /// The codec could not decode it, or left it out for its size.
    #[error("it could not be decoded")]
    Opaque,
    /// A value that the schema promises otherwise, or that has no type.
    #[error("expected {wanted}, found {found}")]
    Kind {
        /// What is needed.
        wanted: &'static str,
        /// What there is.
        found: &'static str,
    },
    /// Beyond 64 bits.
    #[error("the number does not fit in 64 bits")]
    Overflow,
    /// Division or remainder by zero.
    #[error("division by zero")]
    ByZero,
    /// A position that a list does not have.
    #[error("index out of range")]
    Position,
    /// A text that is no number, date or URL.
    #[error("the text is not a {0}")]
    NotA(&'static str),
    /// The budget of steps is used up.
    #[error("step limit exceeded")]
    Budget,
    /// A value nests too deep.
    #[error("the value nests deeper than 64 levels")]
    Depth,
    /// An index is longer than indexes may be.
    #[error("the index is longer than 1024 bytes")]
    IndexLength,
    /// An endpoint is empty or longer than endpoints may be.
    #[error("the endpoint is empty or longer than 1024 bytes")]
    EndpointLength,
}

impl Why {
    /// Whether the message lacks it, rather than that the clause asks for what cannot be.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::Missing | Self::Opaque)
    }
}

impl Verdict {
    pub(crate) fn undecided(stop: Stop) -> Self {
        if stop.why.is_unknown() { Self::Unknown(stop) } else { Self::Error(stop) }
    }
}

/// Memory for what clauses make: joined texts, parts of a split. One for each thread, emptied after each clause.
#[derive(Debug, Default)]
pub struct Scratch {
    bump: Bump,
}

impl Scratch {
    /// Nothing in it yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Whether an expression holds.
pub(crate) fn judge(code: &Code, root: Id, env: Env<'_>, steps: u64, scratch: &mut Scratch) -> Verdict {
    match plain(code, root, &env) {
        Some(true) if steps >= PLAIN_STEPS => return Verdict::Holds,
        Some(false) if steps >= PLAIN_STEPS => return Verdict::Fails,
        _ => {}
    }
    let verdict = {
        let mut run = Run::new(code, env, steps, &scratch.bump);
        match run.truth(root) {
            Ok(true) => Verdict::Holds,
            Ok(false) => Verdict::Fails,
            Err(NoValue) => Verdict::undecided(run.reason()),
        }
    };
    scratch.bump.reset();
    verdict
}

/// What [`plain`] takes at most, in steps.
const PLAIN_STEPS: u64 = 8;

/// Whether an expression holds that compares whole numbers alone, arguments and constants, as most preconditions do; `None`: it is another, or one of
/// them is no whole number.
fn plain(code: &Code, root: Id, env: &Env<'_>) -> Option<bool> {
    let number = |id: Id| match code.ops[id as usize] {
        Op::Int(value) => Some(value),
        Op::Param(at) => match env.args.get(usize::from(at)) {
            Some(&Value::Int(value)) => Some(value),
            _ => None,
        },
        _ => None,
    };
    match code.ops[root as usize] {
        Op::Compare { how, a, b } => Some(how.holds(number(a)?.cmp(&number(b)?))),
        // One comparison on the left, so that it is no recursion without a bound.
        Op::And { a, b } => match (code.ops[a as usize], code.ops[b as usize]) {
            (Op::Compare { .. }, Op::Compare { .. }) => Some(plain(code, a, env)? && plain(code, b, env)?),
            _ => None,
        },
        _ => None,
    }
}

/// The text of an expression that is an index, given to `take`.
pub(crate) fn index(
    code: &Code,
    root: Id,
    env: Env<'_>,
    steps: u64,
    scratch: &mut Scratch,
    take: impl FnOnce(&str),
) -> Result<(), Stop> {
    let result = {
        let mut run = Run::new(code, env, steps, &scratch.bump);
        run.index_text(root).map(take).map_err(|NoValue| run.reason())
    };
    scratch.bump.reset();
    result
}

/// Every endpoint that a message introduces, with its index, given to `take` in order. What one of them lacks does not keep
/// the others from being seen: the first such reason comes back beside them.
pub(crate) fn identify(
    identify: &Identify,
    env: Env<'_>,
    steps: u64,
    scratch: &mut Scratch,
    take: &mut dyn FnMut(&str, Option<&str>),
) -> Result<(), Stop> {
    let first = {
        let mut run = Run::new(&identify.clause.code, env, steps, &scratch.bump);
        let mut first = None;
        run.walk(identify, 0, take, &mut first);
        first
    };
    scratch.bump.reset();
    first.map_or(Ok(()), Err)
}

/// Longest index and longest endpoint, bytes.
pub(crate) const NAME_MAX_BYTES: usize = 1024;

/// There is no value; the run knows why. Reasons are large, and what is handed from operation to operation is to fit into registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoValue;

type Outcome<T> = Result<T, NoValue>;

/// One evaluation.
pub(crate) struct Run<'a> {
    code: &'a Code,
    env: Env<'a>,
    locals: &'a mut [Value<'a>],
    left: u64,
    bump: &'a Bump,
    /// Why the last operation that had no value had none.
    stopped: Option<Stop>,
}

impl<'a> Run<'a> {
    fn new(code: &'a Code, env: Env<'a>, steps: u64, bump: &'a Bump) -> Self {
        let locals = match code.locals {
            0 => &mut [],
            count => bump.alloc_slice_fill_copy(usize::from(count), Value::Missing),
        };
        Self { code, env, locals, left: steps, bump, stopped: None }
    }

    /// Why the last operation that had no value had none.
    fn reason(&self) -> Stop {
        self.stopped.expect("what halts says why")
    }

    #[cold]
    fn stop<T>(&mut self, at: Id, why: Why) -> Outcome<T> {
        self.halt(Stop { why, span: self.code.spans[at as usize] })
    }

    #[cold]
    fn halt<T>(&mut self, stop: Stop) -> Outcome<T> {
        self.stopped = Some(stop);
        Err(NoValue)
    }

    #[cold]
    fn kind<T>(&mut self, at: Id, wanted: &'static str, found: Value<'_>) -> Outcome<T> {
        match found {
            Value::Missing => self.stop(at, Why::Missing),
            Value::Opaque | Value::Malformed(_) => self.stop(at, Why::Opaque),
            other => self.stop(at, Why::Kind { wanted, found: other.kind() }),
        }
    }

    #[inline]
    fn charge(&mut self, at: Id, steps: u64) -> Outcome<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                self.stop(at, Why::Budget)
            }
        }
    }

    fn charge_bytes(&mut self, at: Id, bytes: usize) -> Outcome<()> {
        self.charge(at, (bytes / BYTES_A_STEP) as u64)
    }

    /// The value of an operation; [`Value::Missing`] where the message has none.
    pub(super) fn value(&mut self, id: Id) -> Outcome<Value<'a>> {
        self.charge(id, 1)?;
        match self.code.ops[id as usize] {
            Op::Bool(value) => Ok(Value::Bool(value)),
            Op::Int(value) => Ok(Value::Int(value)),
            Op::Float(value) => Ok(Value::Float(value)),
            Op::Text(text) => Ok(Value::Text(&self.code.texts[text as usize])),
            Op::Param(at) => Ok(self.env.args.get(usize::from(at)).copied().unwrap_or(Value::Missing)),
            Op::Outcome => Ok(self.env.outcome),
            Op::Receiver => Ok(Value::Text(self.env.receiver)),
            Op::Local(local) => Ok(self.locals[usize::from(local)]),
            Op::Field { of, name } => self.field(of, name),
            Op::At { of, at } => self.at(id, of, at),
            Op::Compare { how, a, b } => self.compare(id, how, a, b).map(Value::Bool),
            Op::Arithmetic { how, a, b } => self.arithmetic(id, how, a, b),
            Op::And { a, b } => self.both(a, b, false).map(Value::Bool),
            Op::Or { a, b } => self.both(a, b, true).map(Value::Bool),
            Op::In { item, within } => self.within(id, item, within).map(Value::Bool),
            Op::Not(of) => self.truth(of).map(|value| Value::Bool(!value)),
            Op::Minus(of) => match self.value(of)? {
                Value::Int(number) => match number.checked_neg() {
                    Some(number) => Ok(Value::Int(number)),
                    None => self.stop(id, Why::Overflow),
                },
                Value::Float(number) => Ok(Value::Float(-number)),
                other => self.kind(of, "a number", other),
            },
            Op::If { condition, yes, no } => {
                let taken = if self.truth(condition)? { yes } else { no };
                self.value(taken)
            }
            Op::Quantifier { each, local, within, body } => self.each(each, local, within, body),
            Op::Let { local, value, body } => {
                let value = self.value(value)?;
                self.locals[usize::from(local)] = value;
                self.value(body)
            }
            Op::List { first, count } => self.operands(id, first, count).map(Value::List),
            Op::Tuple { first, count } => self.operands(id, first, count).map(Value::Tuple),
            Op::Call { function, first, count } => self.call(id, function, first, count),
            Op::Pattern { splits, of, pattern } => self.pattern(id, splits, of, pattern),
        }
    }

    /// The value of an operation that has no parts, without the way through [`Self::value`]; `None`: it has parts, or the
    /// budget is used up.
    #[inline]
    fn leaf(&mut self, id: Id) -> Option<Value<'a>> {
        let left = self.left.checked_sub(1)?;
        let value = match self.code.ops[id as usize] {
            Op::Int(value) => Value::Int(value),
            Op::Text(text) => Value::Text(&self.code.texts[text as usize]),
            Op::Param(at) => self.env.args.get(usize::from(at)).copied().unwrap_or(Value::Missing),
            Op::Local(local) => self.locals[usize::from(local)],
            Op::Outcome => self.env.outcome,
            _ => return None,
        };
        self.left = left;
        Some(value)
    }

    /// A value that is needed: a missing one is a reason to stop.
    #[inline]
    fn needed(&mut self, id: Id) -> Outcome<Value<'a>> {
        let value = match self.leaf(id) {
            Some(value) => value,
            None => self.value(id)?,
        };
        match value {
            Value::Missing => self.stop(id, Why::Missing),
            Value::Opaque | Value::Malformed(_) => self.stop(id, Why::Opaque),
            value => Ok(value),
        }
    }

    #[inline]
    fn truth(&mut self, id: Id) -> Outcome<bool> {
        match self.code.ops[id as usize] {
            Op::Compare { how, a, b } => {
                self.charge(id, 1)?;
                self.compare(id, how, a, b)
            }
            _ => match self.value(id)? {
                Value::Bool(value) => Ok(value),
                other => self.kind(id, "a bool", other),
            },
        }
    }

    fn text(&mut self, id: Id) -> Outcome<&'a str> {
        match self.value(id)? {
            Value::Text(text) => Ok(text),
            other => self.kind(id, "text", other),
        }
    }

    /// Kleene's `&&` (`decides` is false) and `||` (true): a side that decides does so whatever the other one is.
    fn both(&mut self, a: Id, b: Id, decides: bool) -> Outcome<bool> {
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

    fn field(&mut self, of: Id, name: u32) -> Outcome<Value<'a>> {
        let code: &'a Code = self.code;
        match self.needed(of)? {
            Value::Node(node) if node.shape() == Shape::Map => {
                // It may take a look at all keys.
                self.charge(of, (node.len() / 8) as u64)?;
                Ok(node.field(&code.texts[name as usize]))
            }
            other => self.kind(of, "a map or record", other),
        }
    }

    fn at(&mut self, id: Id, of: Id, at: Id) -> Outcome<Value<'a>> {
        let (within, key) = (self.needed(of)?, self.needed(at)?);
        let position = |key: Value<'_>| match key {
            Value::Int(number) => usize::try_from(number).ok(),
            _ => None,
        };
        match within {
            Value::Node(node) if node.shape() == Shape::List => match (key, position(key)) {
                (_, Some(at)) if at < node.len() => Ok(node.at(at)),
                (Value::Int(_), _) => self.stop(id, Why::Position),
                (other, _) => self.kind(at, "an int", other),
            },
            Value::Node(node) => {
                if let Value::Text(name) = key {
                    self.charge(of, (node.len() / 8) as u64)?;
                    return Ok(node.field(name));
                }
                for at in 0..node.len() {
                    if self.equal(id, node.key(at), key, 0)? {
                        return Ok(node.at(at));
                    }
                }
                Ok(Value::Missing)
            }
            Value::List(items) | Value::Tuple(items) => match (key, position(key).and_then(|at| items.get(at))) {
                (_, Some(value)) => Ok(*value),
                (Value::Int(_), None) => self.stop(id, Why::Position),
                (other, None) => self.kind(at, "an int", other),
            },
            other => self.kind(of, "a list or a map", other),
        }
    }

    fn operands(&mut self, id: Id, first: u32, count: u32) -> Outcome<&'a [Value<'a>]> {
        self.charge(id, u64::from(count))?;
        let mut values = bumpalo::collections::Vec::with_capacity_in(count as usize, self.bump);
        for at in first..first + count {
            let operand = self.code.operands[at as usize];
            values.push(self.needed(operand)?);
        }
        Ok(values.into_bump_slice())
    }

    /// How many items there are to loop over, and which. Of a map it is the keys.
    fn items(&mut self, id: Id) -> Outcome<Items<'a>> {
        match self.needed(id)? {
            Value::Node(node) if node.shape() == Shape::Map => Ok(Items::Keys(node)),
            Value::Node(node) => Ok(Items::Node(node)),
            Value::List(items) | Value::Tuple(items) => Ok(Items::Slice(items)),
            other => self.kind(id, "a list", other),
        }
    }

    fn each(&mut self, each: Quantifier, local: u16, within: Id, body: Id) -> Outcome<Value<'a>> {
        let items = self.items(within)?;
        let mut undecided = None;
        let mut count = 0;
        for at in 0..items.len() {
            self.locals[usize::from(local)] = items.at(at);
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

    /// The text that an index is known by.
    fn index_text(&mut self, id: Id) -> Outcome<&'a str> {
        let value = self.needed(id)?;
        let text = self.shown(id, value)?;
        if text.len() > NAME_MAX_BYTES { self.stop(id, Why::IndexLength) } else { Ok(text) }
    }

    fn walk(
        &mut self,
        identify: &'a Identify,
        step: usize,
        take: &mut dyn FnMut(&str, Option<&str>),
        first: &mut Option<Stop>,
    ) {
        let stopped = match identify.steps.get(step) {
            None => self.introduce(identify, take),
            Some(&IdentifyStep::When(condition)) => match self.truth(condition) {
                Ok(true) => return self.walk(identify, step + 1, take, first),
                Ok(false) => Ok(()),
                Err(NoValue) => Err(NoValue),
            },
            Some(&IdentifyStep::Let { local, value }) => match self.needed(value) {
                Ok(value) => {
                    self.locals[usize::from(local)] = value;
                    return self.walk(identify, step + 1, take, first);
                }
                Err(NoValue) => Err(NoValue),
            },
            Some(&IdentifyStep::For { local, within }) => match self.items(within) {
                Ok(items) => {
                    for at in 0..items.len() {
                        if self.left == 0 {
                            break;
                        }
                        self.locals[usize::from(local)] = items.at(at);
                        self.walk(identify, step + 1, take, first);
                    }
                    Ok(())
                }
                Err(NoValue) => Err(NoValue),
            },
        };
        if let Err(NoValue) = stopped {
            first.get_or_insert(self.reason());
        }
    }

    fn introduce(&mut self, identify: &Identify, take: &mut dyn FnMut(&str, Option<&str>)) -> Outcome<()> {
        let endpoint = match self.code.ops[identify.at as usize] {
            // Of a list of members one by one the receiver is the endpoint of each.
            Op::Receiver => self.env.receiver,
            _ => self.text(identify.at)?,
        };
        if endpoint.is_empty() || endpoint.len() > NAME_MAX_BYTES {
            return self.stop(identify.at, Why::EndpointLength);
        }
        let index = match identify.index {
            Some(index) => Some(self.index_text(index)?),
            None => None,
        };
        take(endpoint, index);
        Ok(())
    }
}

/// What a loop goes over.
#[derive(Clone, Copy)]
enum Items<'a> {
    Keys(crate::tape::Node<'a>),
    Node(crate::tape::Node<'a>),
    Slice(&'a [Value<'a>]),
}

impl<'a> Items<'a> {
    fn len(self) -> usize {
        match self {
            Self::Keys(node) | Self::Node(node) => node.len(),
            Self::Slice(items) => items.len(),
        }
    }

    fn at(self, position: usize) -> Value<'a> {
        match self {
            Self::Keys(node) => node.key(position),
            Self::Node(node) => node.at(position),
            Self::Slice(items) => items[position],
        }
    }
}
