//! The syntax tree of a contract.

use std::cmp::Ordering;

use crate::finding::Span;
use crate::monitor::report::Kind;

/// A word and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The word.
    pub text: String,
    /// Location in the contract.
    pub span: Span,
}

/// A whole contract.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct File {
    /// Paths of the schemas to check against.
    pub schemas: Vec<Name>,
    /// The services.
    pub services: Vec<Service>,
}

/// A service and the operations of all its members.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Name that the contract gives the service.
    pub name: Name,
    /// The operations.
    pub operations: Vec<Operation>,
}

/// An operation of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The HTTP method, if any: `GET`.
    pub method: Option<Name>,
    /// The name, or the path template.
    pub name: Name,
    /// The parameters, bound by position.
    pub params: Vec<Param>,
    /// The result type, if given.
    pub result: Option<TypeTree>,
    /// The clauses.
    pub clauses: Vec<Clause>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name by which clauses refer to it.
    pub name: Name,
    /// The type, if given.
    pub of: Option<TypeTree>,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeTree {
    /// The kind.
    pub kind: TypeKind,
    /// Location in the contract.
    pub span: Span,
}

/// The kind of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `int`, `text`, or a type of the schema.
    Named(String),
    /// `list<T>`.
    List(Box<TypeTree>),
    /// `map<K, V>`.
    Map(Box<TypeTree>, Box<TypeTree>),
    /// `{a: T, b?: T}`: name, whether it may be missing, type.
    Record(Vec<(Name, bool, TypeTree)>),
}

/// A clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The optional name, `Service.operation.label`.
    pub label: Option<Name>,
    /// The kind and expression.
    pub kind: ClauseKind,
    /// Location in the contract.
    pub span: Span,
}

/// The kind of a clause.
#[derive(Clone, Debug, PartialEq)]
pub enum ClauseKind {
    /// `index`, `requires`, `ensures` or `on_error`, with its expression.
    Expression(Kind, Expr),
    /// The endpoints that a message introduces.
    Identifies(Identifies),
    /// The operation's declared types are not checked.
    Untyped,
}

impl Kind {
    pub(crate) const KEYWORDS: [(&str, Self); 4] = [
        ("index", Self::Index),
        ("requires", Self::Precondition),
        ("ensures", Self::Postcondition),
        ("on_error", Self::Exception),
    ];

    /// The first word of such a clause.
    pub(crate) fn keyword(self) -> &'static str {
        Self::KEYWORDS.iter().find(|(_, kind)| *kind == self).map_or("identifies", |(keyword, _)| keyword)
    }
}

/// The message that introduces an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The request.
    Request,
    /// The reply.
    Reply,
}

/// `reply identifies S at E index E for x in L when C let y = E`.
#[derive(Clone, Debug, PartialEq)]
pub struct Identifies {
    /// The message.
    pub direction: Direction,
    /// The service.
    pub service: Name,
    /// The endpoint.
    pub at: Expr,
    /// The index of the member.
    pub index: Option<Expr>,
    /// Loops, conditions and names, in the order of the text.
    pub steps: Vec<Step>,
}

/// A step of an `identifies` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `for name in within`.
    For(Name, Expr),
    /// `when condition`.
    When(Expr),
    /// `let name = value`.
    Let(Name, Expr),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// Location in the contract.
    pub span: Span,
    /// The nesting depth, 1 for a leaf. It is bounded, which bounds the stack for walking a tree.
    pub depth: u16,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `true`, `false`.
    Bool(bool),
    /// An integer of at least 0; the sign is an operator.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
    /// A variable.
    Name(String),
    /// `of.field`.
    Field(Box<Expr>, Name),
    /// `of[at]`.
    Index(Box<Expr>, Box<Expr>),
    /// `function(arguments)`.
    Call(Name, Vec<Expr>),
    /// `all(name in within : body)` and similar.
    Quantifier(Quantifier, Name, Box<Expr>, Box<Expr>),
    /// `!a`.
    Not(Box<Expr>),
    /// `-a`.
    Minus(Box<Expr>),
    /// `a + b` and similar.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `condition ? a : b`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `(a, b)`, `(a,)`.
    Tuple(Vec<Expr>),
    /// `let name = value; body`.
    Let(Name, Box<Expr>, Box<Expr>),
}

/// How a loop combines the results of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Whether the body holds for every item.
    All,
    /// Whether it holds for at least one item.
    Any,
    /// The number of items for which it holds.
    Count,
}

impl Quantifier {
    pub(crate) const WORDS: [(&str, Self); 3] = [("all", Self::All), ("any", Self::Any), ("count", Self::Count)];
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is its sign")]
pub enum Binary {
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
        self.sign().1 == Self::COMPARISON && self != Self::In
    }

    pub(crate) fn is_arithmetic(self) -> bool {
        self.sign().1 > Self::COMPARISON
    }

    /// Whether a comparison holds for values in this order. `false` for other operators.
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
        use ExprKind::{Binary, Bool, Call, Field, Float, If, Index, Int, Let, List, Minus, Name, Not, Quantifier};
        use ExprKind::{Text, Tuple};
        match &self.kind {
            Bool(_) | Int(_) | Float(_) | Text(_) | Name(_) => Vec::new(),
            Field(a, _) | Not(a) | Minus(a) => vec![a],
            Index(a, b) | Quantifier(_, _, a, b) | Binary(_, a, b) | Let(_, a, b) => vec![a, b],
            If(a, b, c) => vec![a, b, c],
            Call(_, all) | List(all) | Tuple(all) => all.iter().collect(),
        }
    }
}
