//! The flat form of a clause: operations in one array that name each other by number.

use std::cmp::Ordering;

use regex_lite::Regex;

use crate::finding::Span;
use crate::functions::Function;
use crate::syntax::Quantifier;

/// The number of an operation.
pub(crate) type Id = u32;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Compare {
    /// Whether two values in this order are as it says.
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// What is done with two numbers; `Plus` also joins texts and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Number of a text.
    Text(u32),
    /// Position of a parameter.
    Param(u16),
    /// What came back: the result, or the exception or fault.
    Outcome,
    /// The endpoint that the request went to.
    Receiver,
    /// Number of a local value.
    Local(u16),
    /// A field; its name is a text.
    Field {
        of: Id,
        name: u32,
    },
    At {
        of: Id,
        at: Id,
    },
    Compare {
        how: Compare,
        a: Id,
        b: Id,
    },
    Arithmetic {
        how: Arithmetic,
        a: Id,
        b: Id,
    },
    And {
        a: Id,
        b: Id,
    },
    Or {
        a: Id,
        b: Id,
    },
    In {
        item: Id,
        within: Id,
    },
    Not(Id),
    Minus(Id),
    If {
        condition: Id,
        yes: Id,
        no: Id,
    },
    Quantifier {
        each: Quantifier,
        local: u16,
        within: Id,
        body: Id,
    },
    Let {
        local: u16,
        value: Id,
        body: Id,
    },
    /// Operands are `operands[first..first + count]`.
    List {
        first: u32,
        count: u32,
    },
    Tuple {
        first: u32,
        count: u32,
    },
    Call {
        function: Function,
        first: u32,
        count: u32,
    },
    /// `matches` and `split`, whose pattern was read with the contract.
    Pattern {
        splits: bool,
        of: Id,
        pattern: u32,
    },
}

/// The operations of one clause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// Where each operation stands in the contract.
    pub(crate) spans: Vec<Span>,
    pub(crate) operands: Vec<Id>,
    pub(crate) texts: Vec<Box<str>>,
    pub(crate) patterns: Vec<Regex>,
    /// How many local values there may be at once.
    pub(crate) locals: u16,
}
