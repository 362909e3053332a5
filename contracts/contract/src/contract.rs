//! Compiled contracts.

use crate::clause::{Clause, Identify, ServiceId};
use crate::declared_types::Promise;
use crate::eval::{self, Env, Scratch, Stop, Verdict};
use crate::syntax::Direction;

/// A compiled contract. It is immutable, so threads may share it.
#[derive(Clone, Debug)]
pub struct Contract {
    pub(crate) services: Vec<Service>,
    pub(crate) schemas: Vec<String>,
    pub(crate) hash: u64,
    /// Distinguishes the contracts that one monitor has had in turn.
    pub(crate) generation: u16,
}

/// The number of an operation in its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId {
    pub(crate) service: ServiceId,
    pub(crate) operation: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether a message introduces it with an index, and so names the members that are vouched
    /// for.
    pub(crate) has_introduced_members: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// `findNotes`, `GET /1.1/friends/list.json`.
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) index: Option<Clause>,
    pub(crate) requires: Vec<Clause>,
    pub(crate) ensures: Vec<Clause>,
    pub(crate) on_error: Vec<Clause>,
    pub(crate) identifies: Vec<Identify>,
    pub(crate) promise: Promise,
}

impl Operation {
    fn clauses(&self) -> impl Iterator<Item = &Clause> {
        let asked = self.index.iter().chain(&self.requires).chain(&self.ensures).chain(&self.on_error);
        let typed = self.promise.request.iter().chain(&self.promise.reply).map(|typed| &typed.clause);
        asked.chain(self.identifies.iter().map(|identify| &identify.clause)).chain(typed)
    }

    /// Like `clauses`, for assigning numbers.
    pub(crate) fn clauses_mut(&mut self) -> impl Iterator<Item = &mut Clause> {
        let asked = self.index.iter_mut().chain(&mut self.requires).chain(&mut self.ensures).chain(&mut self.on_error);
        let typed = self.promise.request.iter_mut().chain(&mut self.promise.reply).map(|typed| &mut typed.clause);
        asked.chain(self.identifies.iter_mut().map(|identify| &mut identify.clause)).chain(typed)
    }
}

impl Contract {
    /// The number of a service.
    pub fn service(&self, name: &str) -> Option<ServiceId> {
        self.services.iter().position(|service| service.name == name).map(|at| self.id(at))
    }

    fn id(&self, at: usize) -> ServiceId {
        ServiceId { generation: self.generation, at: at as u16 }
    }

    /// Makes this contract the successor of `before`, with different numbers of services and
    /// operations.
    pub fn after(mut self, before: &Self) -> Self {
        self.generation = before.generation.wrapping_add(1);
        let operations = self.services.iter_mut().flat_map(|service| &mut service.operations);
        for identify in operations.flat_map(|operation| &mut operation.identifies) {
            identify.service.generation = self.generation;
        }
        self
    }

    /// Operation (`Adder.add`) and name (`Adder.add.sum`) of every clause, by number.
    pub(crate) fn clause_names(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        for service in &self.services {
            for operation in &service.operations {
                let name = format!("{}.{}", service.name, operation.name);
                names.extend(operation.clauses().map(|clause| (name.clone(), clause.id.clone())));
            }
        }
        names
    }

    /// The name of a service.
    pub fn service_name(&self, service: ServiceId) -> &str {
        &self.services[usize::from(service.at)].name
    }

    /// Whether replies of an operation introduce endpoints.
    pub fn introduces_by_reply(&self, operation: OperationId) -> bool {
        self.op(operation).identifies.iter().any(|identify| identify.direction == Direction::Reply)
    }

    /// Whether a message introduces members of a service, each with its index.
    pub(crate) fn has_introduced_members(&self, service: ServiceId) -> bool {
        self.services[usize::from(service.at)].has_introduced_members
    }

    /// All services, in the order of the text.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> + use<> {
        let generation = self.generation;
        (0..self.services.len() as u16).map(move |at| ServiceId { generation, at })
    }

    /// The number of an operation. Over HTTP its name is method and template: `GET /users/{id}`.
    pub fn operation(&self, service: ServiceId, name: &str) -> Option<OperationId> {
        let operations = &self.services[usize::from(service.at)].operations;
        let at = operations.iter().position(|operation| operation.name == name)?;
        Some(OperationId { service, operation: at as u16 })
    }

    /// The names of a service's operations, in the order of the text, in which templates are tried.
    pub fn operations(&self, service: ServiceId) -> impl Iterator<Item = &str> {
        self.services[usize::from(service.at)].operations.iter().map(|operation| operation.name.as_str())
    }

    /// The names of the arguments that clauses of this operation refer to, in order.
    pub fn params(&self, operation: OperationId) -> &[String] {
        &self.op(operation).params
    }

    /// Whether any clause or declared type of the operation needs its reply.
    pub fn reads_reply(&self, operation: OperationId) -> bool {
        let operation = self.op(operation);
        let identifies = operation.identifies.iter().any(|identify| identify.direction == Direction::Reply);
        let is_typed = operation.promise.reply.is_some();
        identifies || is_typed || !operation.ensures.is_empty() || !operation.on_error.is_empty()
    }

    /// The paths of the schemas that the text names.
    pub fn schemas(&self) -> &[String] {
        &self.schemas
    }

    /// A hash that ignores layout and comments.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn op(&self, id: OperationId) -> &Operation {
        &self.services[usize::from(id.service.at)].operations[usize::from(id.operation)]
    }
}

/// A kind of clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `requires`.
    Requires,
    /// `ensures`.
    Ensures,
    /// `on_error`.
    OnError,
}

/// A clause, for evaluation without a monitor.
#[derive(Clone, Copy, Debug)]
pub struct ClauseRef<'c> {
    clause: &'c Clause,
}

impl<'c> ClauseRef<'c> {
    /// Its stable name, `Service.operation.label`.
    pub fn id(&self) -> &'c str {
        &self.clause.id
    }

    /// Its expression as written in the contract.
    pub fn text(&self) -> &'c str {
        &self.clause.text
    }

    /// Evaluates the clause for a call, in at most `steps_max` steps.
    pub fn judge(&self, env: Env<'_>, steps_max: u64, scratch: &mut Scratch) -> Verdict {
        eval::judge(&self.clause.code, self.clause.root, env, steps_max, scratch)
    }
}

impl Contract {
    /// The clauses of one kind, in the order of the text.
    pub fn clauses(&self, operation: OperationId, asked: Condition) -> impl Iterator<Item = ClauseRef<'_>> {
        let operation = self.op(operation);
        let clauses = match asked {
            Condition::Requires => &operation.requires,
            Condition::Ensures => &operation.ensures,
            Condition::OnError => &operation.on_error,
        };
        clauses.iter().map(|clause| ClauseRef { clause })
    }

    /// Shows each endpoint that a message introduces, with its service and index, in the order of
    /// the text. An endpoint is repeated for each clause that introduces it.
    ///
    /// # Errors
    /// The first clause that could not be evaluated. The others have been shown.
    pub fn identified(
        &self,
        operation: OperationId,
        direction: Direction,
        env: Env<'_>,
        steps_max: u64,
        scratch: &mut Scratch,
        show: &mut dyn FnMut(ServiceId, &str, Option<&str>),
    ) -> Result<(), Stop> {
        let mut first = Ok(());
        for identify in self.op(operation).identifies.iter().filter(|each| each.direction == direction) {
            let mut take = |endpoint: &str, index: Option<&str>| show(identify.service, endpoint, index);
            first = first.and(eval::identify(identify, env, steps_max, scratch, &mut take));
        }
        first
    }
}
