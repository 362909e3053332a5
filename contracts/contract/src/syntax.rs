//! The tree of a contract as it was written.

use crate::finding::Span;

/// A word with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A whole contract.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct File {
    /// Paths of the schemas that it is to be checked against.
    pub schemas: Vec<Name>,
    /// Its services.
    pub services: Vec<Service>,
}

/// A service: what all its members promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name.
    pub name: Name,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// An operation of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The method, where it is one of HTTP: `GET`.
    pub method: Option<Name>,
    /// Its name, or the template of its path.
    pub name: Name,
    /// Its parameters, bound by position.
    pub params: Vec<Param>,
    /// The type of its result, where that is given.
    pub result: Option<TypeTree>,
    /// Its clauses.
    pub clauses: Vec<Clause>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type, where that is given.
    pub of: Option<TypeTree>,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeTree {
    /// What it is.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// What a type is.
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
    /// The name its author gave it.
    pub label: Option<Name>,
    /// What it asks.
    pub kind: ClauseKind,
    /// Where it stands.
    pub span: Span,
}

/// What a clause asks.
#[derive(Clone, Debug, PartialEq)]
pub enum ClauseKind {
    /// Which member of the service a call uses.
    Index(Expr),
    /// What a request must keep.
    Requires(Expr),
    /// What a result must keep.
    Ensures(Expr),
    /// What a declared exception or fault must keep.
    OnError(Expr),
    /// Which endpoints a message introduces.
    Identifies(Identifies),
    /// The types of the operation are no promise.
    Untyped,
}

/// Which message introduces an endpoint.
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
    /// Which message.
    pub direction: Direction,
    /// The service.
    pub service: Name,
    /// The endpoint.
    pub at: Expr,
    /// The member of the service.
    pub index: Option<Expr>,
    /// Loops, conditions and names, in the order of the text.
    pub steps: Vec<Step>,
}

/// One step of an `identifies` clause.
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
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
    /// How deep it nests, 1 for a leaf. Limited, so that walking it needs a limited stack.
    pub depth: u16,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number, not negative: the sign is an operator.
    Int(i64),
    /// A number with a point.
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
    /// `all(name in within : body)` and its like.
    Quantifier(Quantifier, Name, Box<Expr>, Box<Expr>),
    /// `!a`.
    Not(Box<Expr>),
    /// `-a`.
    Minus(Box<Expr>),
    /// `a + b` and its like.
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

/// What is asked of each item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Whether the body holds for every item.
    All,
    /// Whether it holds for one at least.
    Any,
    /// For how many it holds.
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
    /// Sign and binding strength; what binds stronger has a larger number. Comparisons do not chain.
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

    /// The strength of comparisons, which do not chain.
    pub(crate) const COMPARISON: u8 = 3;

    pub(crate) fn sign(self) -> (&'static str, u8) {
        let row = Self::SIGNS.iter().find(|(_, operator, _)| *operator == self);
        row.map(|&(sign, _, strength)| (sign, strength)).expect("every operator has a row")
    }
}

impl Expr {
    /// The expressions that this one is made of.
    pub(crate) fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Text(_) | ExprKind::Name(_) => {
                Vec::new()
            }
            ExprKind::Field(a, _) | ExprKind::Not(a) | ExprKind::Minus(a) => vec![a],
            ExprKind::Index(a, b)
            | ExprKind::Quantifier(_, _, a, b)
            | ExprKind::Binary(_, a, b)
            | ExprKind::Let(_, a, b) => {
                vec![a, b]
            }
            ExprKind::If(a, b, c) => vec![a, b, c],
            ExprKind::Call(_, all) | ExprKind::List(all) | ExprKind::Tuple(all) => all.iter().collect(),
        }
    }
}
