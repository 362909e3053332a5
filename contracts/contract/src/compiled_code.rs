//! The compiled form of a clause: operations in one array that refer to each other by number.

use regex_lite::Regex;

use crate::finding::Span;
use crate::functions::Function;
use crate::syntax::{Binary, Quantifier};

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
