//! The syntax tree of a contract.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::finding::{Findings, Span};
use crate::functions::Function;
use crate::monitor::report::Kind;
use crate::types_and_schema::Type;

/// A word and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The word as written.
    pub text: String,
    /// Location in the contract.
    pub span: Span,
}

impl Name {
    /// Adds the name to `names`. Reports an error if they have it already.
    pub(crate) fn add_to<'n>(&'n self, names: &mut BTreeSet<&'n str>, what: &str, found: &mut Findings) {
        if !names.insert(&self.text) {
            found.mistake("twice", self.span, format!("duplicate {what} `{}`", self.text));
        }
    }
}

/// The syntax tree of a whole contract.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Paths of the schemas that the contract must match.
    pub schemas: Vec<Name>,
    /// Services, in the order of the text.
    pub services: Vec<Service>,
}

/// A service and the operations of all its members.
#[derive(Clone, Debug)]
pub struct Service {
    /// Name that the contract gives the service.
    pub name: Name,
    /// Operations, in the order of the text.
    pub operations: Vec<Operation>,
}

/// An operation of a service, with its signature and clauses.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The HTTP method, if any, such as `GET`.
    pub method: Option<Name>,
    /// The name or, over HTTP, the path template.
    pub name: Name,
    /// The parameters, bound by position.
    pub params: Vec<Param>,
    /// The result type and its location, if given.
    pub result: Option<(Type, Span)>,
    /// Clauses, in the order of the text.
    pub(crate) clauses: Vec<Clause>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name by which clauses refer to the parameter.
    pub name: Name,
    /// The declared type, if any.
    pub of: Option<Type>,
}

/// A clause of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// The optional label, which ends the clause's name `Service.operation.label`.
    pub(crate) label: Option<Name>,
    /// The kind of clause, with its expression.
    pub(crate) kind: ClauseKind,
    /// Location in the contract.
    pub(crate) span: Span,
}

/// The kind of a clause, with its content.
#[derive(Clone, Debug)]
pub(crate) enum ClauseKind {
    /// `index`, `requires`, `ensures` or `on_error`, with its expression.
    Expression(Kind, Expr),
    /// An `identifies` clause: the endpoints that a message introduces.
    Identifies(Identifies),
    /// The clause `untyped`, which turns off checks of the operation's declared types.
    Untyped,
}

impl Kind {
    pub(crate) const KEYWORDS: [(&str, Self); 4] = [
        ("index", Self::Index),
        ("requires", Self::Precondition),
        ("ensures", Self::Postcondition),
        ("on_error", Self::Exception),
    ];

    pub(crate) fn keyword(self) -> &'static str {
        Self::KEYWORDS.iter().find(|(_, kind)| *kind == self).map_or("identifies", |(keyword, _)| keyword)
    }
}

/// The message that introduces an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The request introduces the endpoint.
    Request,
    /// The reply introduces the endpoint.
    Reply,
}

/// An `identifies` clause, such as `reply identifies S at E index E for x in L when C let y = E`.
#[derive(Clone, Debug)]
pub(crate) struct Identifies {
    /// The message that introduces the endpoints.
    pub(crate) direction: Direction,
    /// The service that the endpoints belong to.
    pub(crate) service: Name,
    /// The expression for an endpoint's address.
    pub(crate) at: Expr,
    /// The expression for the index of the member, or `None` for the default member.
    pub(crate) index: Option<Expr>,
    /// Loops, conditions and bindings, in the order of the text.
    pub(crate) steps: Vec<Step>,
}

/// A step of an `identifies` clause.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A loop, `for name in within`.
    For(Local, Expr),
    /// A condition, `when condition`.
    When(Expr),
    /// A binding, `let name = value`.
    Let(Local, Expr),
}

/// A name that a loop or `let` binds.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: Name,
    /// Position among the local variables of the clause, assigned by the compiler.
    pub(crate) at: u16,
}

/// An expression with its location and depth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expr {
    /// The kind of expression, with its operands.
    pub(crate) kind: ExprKind,
    /// Location in the contract.
    pub(crate) span: Span,
    /// The nesting depth, 1 for a leaf. Its maximum bounds the stack for walking a tree.
    pub(crate) depth: u16,
}

/// The kind of an expression, with its operands.
#[derive(Clone, Debug, Default)]
pub(crate) enum ExprKind {
    /// `true` or `false`.
    Bool(bool),
    /// An integer of at least 0; the sign is an operator.
    Int(i64),
    /// A float of 64 bits.
    Float(f64),
    /// A string literal, with its escapes resolved.
    Text(String),
    /// A parameter or variable, by name.
    Name(String),
    /// A field, `of.field`.
    Field(Box<Expr>, Name),
    /// An item or the value of a key, `of[at]`.
    Index(Box<Expr>, Box<Expr>),
    /// A function call, `function(arguments)`.
    Call(Name, Vec<Expr>),
    /// A loop, such as `all(name in within : body)`.
    Quantifier(Quantifier, Local, Box<Expr>, Box<Expr>),
    /// A negation, `!a`.
    Not(Box<Expr>),
    /// A change of sign, `-a`.
    Minus(Box<Expr>),
    /// An operation with two sides, such as `a + b`.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// A choice, `condition ? a : b`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A list, `[a, b]`.
    List(Vec<Expr>),
    /// A tuple, `(a, b)` or `(a,)`.
    Tuple(Vec<Expr>),
    /// A binding, `let name = value; body`.
    Let(Local, Box<Expr>, Box<Expr>),
    /// A parameter, by position. This and the following kinds replace names and calls in compiled clauses.
    Param(u16),
    /// The result, or the exception or fault.
    Outcome,
    /// The called endpoint.
    #[default]
    Receiver,
    /// A variable, by [`Local::at`].
    Local(u16),
    /// A call of a function.
    Apply(Function, Vec<Expr>),
    /// A pattern, as an argument of a call.
    Pattern(Regex),
}

/// How a loop combines the results of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    /// Whether the body holds for every item.
    All,
    /// Whether the body holds for at least one item.
    Any,
    /// The number of items for which the body holds.
    Count,
}

impl Quantifier {
    pub(crate) const WORDS: [(&str, Self); 3] = [("all", Self::All), ("any", Self::Any), ("count", Self::Count)];
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Plus,
    Minus,
    Times,
    Divided,
    Remainder,
}

impl Binary {
    /// Sign and binding strength; a larger number binds more strongly. Comparisons do not chain.
    pub(crate) const SIGNS: [(&str, Self, u8); 14] = [
        ("||", Self::Or, 1),
        ("&&", Self::And, 2),
        ("==", Self::Equal, 3),
        ("!=", Self::Unequal, 3),
        ("<", Self::Less, 3),
        ("<=", Self::LessEqual, 3),
        (">", Self::Greater, 3),
        (">=", Self::GreaterEqual, 3),
        ("in", Self::In, 3),
        ("+", Self::Plus, 4),
        ("-", Self::Minus, 4),
        ("*", Self::Times, 5),
        ("/", Self::Divided, 5),
        ("%", Self::Remainder, 5),
    ];

    pub(crate) const COMPARISON: u8 = 3;

    pub(crate) fn is_comparison(self) -> bool {
        matches!(self, Self::Equal | Self::Unequal | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual)
    }

    /// Whether a comparison holds for two values with this ordering. `false` for other operators.
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
            _ => false,
        }
    }

    /// The result of arithmetic. `None` for overflow, undefined results and other operators.
    pub(crate) fn checked(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Plus => a.checked_add(b),
            Self::Minus => a.checked_sub(b),
            Self::Times => a.checked_mul(b),
            Self::Divided => a.checked_div(b),
            // The machine's remainder overflows whenever the quotient does.
            Self::Remainder => a.checked_rem(b),
            _ => None,
        }
    }

    pub(crate) fn sign(self) -> (&'static str, u8) {
        let row = Self::SIGNS.iter().find(|(_, operator, _)| *operator == self);
        row.map(|&(sign, _, strength)| (sign, strength)).expect("every operator has a row")
    }
}

impl File {
    pub(crate) fn identifies(&self) -> impl Iterator<Item = &Identifies> {
        let operations = self.services.iter().flat_map(|service| &service.operations);
        operations.flat_map(|operation| &operation.clauses).filter_map(|clause| match &clause.kind {
            ClauseKind::Identifies(identifies) => Some(identifies),
            _ => None,
        })
    }
}

impl Expr {
    /// Formats the expression without locations, so that equal expressions have the same text.
    pub(crate) fn without_place(&self) -> String {
        format!("{:?}", self.kind)
    }

    pub(crate) fn parts(&self) -> Vec<&Expr> {
        use ExprKind::{Apply, Binary, Call, Field, If, Index, Let, List, Minus, Not, Quantifier, Tuple};
        match &self.kind {
            Field(a, _) | Not(a) | Minus(a) => vec![a],
            Index(a, b) | Quantifier(_, _, a, b) | Binary(_, a, b) | Let(_, a, b) => vec![a, b],
            If(a, b, c) => vec![a, b, c],
            Call(_, all) | Apply(_, all) | List(all) | Tuple(all) => all.iter().collect(),
            _ => Vec::new(),
        }
    }
}
