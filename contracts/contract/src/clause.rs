//! A compiled clause of a contract with its code, and how an operation identifies services.

use config::place::Lines;
use regex_lite::Regex;

use crate::finding::Span;
use crate::functions::Function;
use crate::monitor::report::Kind;
use crate::syntax::{Binary, Direction, Quantifier};

/// The number of a service. Successive contracts of a monitor use different numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId {
    pub(crate) generation: u16,
    pub(crate) at: u16,
}

/// A compiled clause. [`Clause::judge`] evaluates it for a call.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    pub(crate) kind: Kind,
    /// Stable name: `Service.operation.label`. A clause without a label has its keyword and number instead.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// Byte offset of `text` in the contract.
    pub(crate) start: u32,
    pub(crate) code: Code,
    pub(crate) root: Id,
    pub(crate) number: u32,
    /// Whether the clause reads values with secret-sounding names.
    pub(crate) secret: bool,
}

impl Clause {
    /// Creates a clause that starts at byte `start` of the contract and has no code yet.
    pub(crate) fn new(kind: Kind, id: String, text: &str, start: u32, lines: &Lines<'_>) -> Self {
        let (line, column) = lines.place_of(start as usize);
        let (text, line, column) = (text.to_owned(), line as u32, column as u32);
        Self { kind, id, text, line, column, start, ..Self::default() }
    }

    /// Returns a part of the contract as written, or `None` if the part is outside the clause.
    pub(crate) fn written(&self, span: Span) -> Option<&str> {
        let from = span.start.checked_sub(self.start)? as usize;
        self.text.get(from..from + span.range().len())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Identify {
    pub(crate) clause: Clause,
    pub(crate) direction: Direction,
    pub(crate) service: u16,
    pub(crate) steps: Vec<IdentifyStep>,
    pub(crate) at: Id,
    pub(crate) index: Option<Id>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum IdentifyStep {
    For { local: u16, within: Id },
    When(Id),
    Let { local: u16, value: Id },
}

pub(crate) type Id = u32;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(u32),
    Param(u16),
    Outcome, // the result, or the exception or fault
    Receiver,
    Local(u16),
    Field { of: Id, name: u32 },
    At { of: Id, at: Id },
    Compare { how: Binary, a: Id, b: Id },
    Arithmetic { how: Binary, a: Id, b: Id }, // `+` also joins strings and lists
    And { a: Id, b: Id },
    Or { a: Id, b: Id },
    In { item: Id, within: Id },
    Not(Id),
    Minus(Id),
    If { condition: Id, yes: Id, no: Id },
    Quantifier { each: Quantifier, local: u16, within: Id, body: Id },
    Let { local: u16, value: Id, body: Id },
    List { first: u32, count: u32 },
    Tuple { first: u32, count: u32 },
    Call { function: Function, first: u32, count: u32 },
    Pattern { splits: bool, of: Id, pattern: u32 }, // for `matches` and `split`, compiled with the contract
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    pub(crate) spans: Vec<Span>,
    pub(crate) operands: Vec<Id>,
    pub(crate) texts: Vec<Box<str>>,
    pub(crate) patterns: Vec<Regex>,
    pub(crate) locals: u16,
}
