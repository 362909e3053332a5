//! A compiled contract: its services, operations and clauses with their code, and look-ups.

use config::place::Lines;
use regex_lite::Regex;

use crate::check_value_types::Typed;
use crate::finding::Span;
use crate::functions::Function;
use crate::monitor::report::Kind;
use crate::syntax::{Binary, Direction, Quantifier};

/// A compiled contract. It is immutable, so threads may share it.
#[derive(Clone, Debug)]
pub struct Contract {
    pub(crate) services: Vec<Service>,
    /// A hash of the contract's content, unaffected by layout and comments.
    pub hash: u64,
    pub(crate) generation: u16,
    /// Operation (`Adder.add`) and name (`Adder.add.sum`) of every clause, indexed by the clause's number.
    pub(crate) clause_names: Vec<(String, String)>,
}

/// The number of an operation. Successive contracts of a monitor use different numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId {
    pub(crate) service: ServiceId,
    pub(crate) operation: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether any message introduces members by index. If not, the configuration vouches for all members.
    pub(crate) has_introduced_members: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) identifies: Vec<Identify>,
    pub(crate) typed: Vec<Typed>,
}

impl Operation {
    pub(crate) fn clauses(&self, kind: Kind) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(move |clause| clause.kind == kind)
    }

    pub(crate) fn identifies(&self, direction: Direction) -> impl Iterator<Item = &Identify> {
        self.identifies.iter().filter(move |identify| identify.direction == direction)
    }

    pub(crate) fn all_clauses_mut(&mut self) -> impl Iterator<Item = &mut Clause> {
        let typed = self.typed.iter_mut().map(|typed| &mut typed.clause);
        let identifies = self.identifies.iter_mut().map(|identify| &mut identify.clause);
        self.clauses.iter_mut().chain(identifies).chain(typed)
    }
}

impl Contract {
    /// Finds a service by name. `None` if the contract lacks it.
    pub fn service(&self, name: &str) -> Option<ServiceId> {
        self.services().find(|id| self.service_name(*id) == name)
    }

    pub(crate) fn service_at(&self, id: ServiceId) -> &Service {
        &self.services[usize::from(id.at)]
    }

    /// Makes this contract the successor of `before`, so that their service and operation numbers differ.
    pub fn after(self, before: &Self) -> Self {
        Self { generation: before.generation.wrapping_add(1), ..self }
    }

    /// Returns the name of a service of this contract.
    pub fn service_name(&self, service: ServiceId) -> &str {
        &self.service_at(service).name
    }

    /// Whether replies of an operation introduce endpoints.
    pub fn introduces_by_reply(&self, operation: OperationId) -> bool {
        self.op(operation).identifies(Direction::Reply).next().is_some()
    }

    /// All services, in the order of the text.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> + use<> {
        let generation = self.generation;
        (0..self.services.len() as u16).map(move |at| ServiceId { generation, at })
    }

    /// Finds an operation by name, such as `add` or `GET /users/{id}`. `None` if the service lacks it.
    pub fn operation(&self, service: ServiceId, name: &str) -> Option<OperationId> {
        let at = self.operations(service).position(|operation| operation == name)?;
        Some(OperationId { service, operation: at as u16 })
    }

    /// The names of a service's operations, in the order of the text. Templates are tried in this order.
    pub fn operations(&self, service: ServiceId) -> impl Iterator<Item = &str> {
        self.service_at(service).operations.iter().map(|operation| operation.name.as_str())
    }

    /// The names of the operation's arguments, in the order of [`crate::Env::args`].
    pub fn params(&self, operation: OperationId) -> &[String] {
        &self.op(operation).params
    }

    /// Whether any clause or declared type of the operation needs the reply.
    pub fn reads_reply(&self, operation: OperationId) -> bool {
        let reads_reply = |clause: &Clause| matches!(clause.kind, Kind::Postcondition | Kind::Exception);
        let op = self.op(operation);
        let typed = op.typed.iter().map(|typed| &typed.clause);
        self.introduces_by_reply(operation) || op.clauses.iter().chain(typed).any(reads_reply)
    }

    pub(crate) fn op(&self, id: OperationId) -> &Operation {
        &self.service_at(id.service).operations[usize::from(id.operation)]
    }

    /// The clauses of one kind in an operation, in the order of the text.
    pub fn clauses(&self, operation: OperationId, kind: Kind) -> impl Iterator<Item = &Clause> {
        self.op(operation).clauses(kind)
    }
}

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
