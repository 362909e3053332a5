//! A compiled contract: its services and operations, with look-ups.

use crate::check_value_types::Typed;
use crate::clause::{Clause, Identify, ServiceId};
use crate::monitor::report::Kind;
use crate::syntax::Direction;

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
        self.identifies.iter().filter(move |identify| identify.content.direction == direction)
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
