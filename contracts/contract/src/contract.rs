//! A contract that is ready to judge calls.

use crate::clause::{Clause, Identify, ServiceId};
use crate::declared_types::Promise;
use crate::eval::{self, Env, Scratch, Stop, Verdict};
use crate::syntax::Direction;

/// A contract that is ready to judge calls. It is never changed, so threads may share it.
#[derive(Clone, Debug)]
pub struct Contract {
    pub(crate) services: Vec<Service>,
    pub(crate) schemas: Vec<String>,
    pub(crate) hash: u64,
    /// Which of the contracts it is that one monitor has had, one after the other.
    pub(crate) generation: u16,
}

/// Number of an operation in its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationId {
    pub(crate) service: ServiceId,
    pub(crate) operation: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether a message introduces it with an index, which then says who vouches for which member.
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
    /// Its clauses, in the order of their numbers.
    fn clauses(&self) -> impl Iterator<Item = &Clause> {
        let asked = self.index.iter().chain(&self.requires).chain(&self.ensures).chain(&self.on_error);
        let typed = self.promise.request.iter().chain(&self.promise.reply).map(|typed| &typed.clause);
        asked.chain(self.identifies.iter().map(|identify| &identify.clause)).chain(typed)
    }

    /// The same, to be numbered.
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

    /// This contract as the one that comes after another one: the numbers of its services and operations are none of `before`'s.
    pub fn after(mut self, before: &Self) -> Self {
        self.generation = before.generation.wrapping_add(1);
        let operations = self.services.iter_mut().flat_map(|service| &mut service.operations);
        for identify in operations.flat_map(|operation| &mut operation.identifies) {
            identify.service.generation = self.generation;
        }
        self
    }

    /// Operation (`Adder.add`) and name (`Adder.add.sum`) of every clause, by its number.
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

    /// Every service, in the order of the text.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> + use<> {
        let generation = self.generation;
        (0..self.services.len() as u16).map(move |at| ServiceId { generation, at })
    }

    /// The number of an operation. Of HTTP its name is method and template: `GET /users/{id}`.
    pub fn operation(&self, service: ServiceId, name: &str) -> Option<OperationId> {
        let operations = &self.services[usize::from(service.at)].operations;
        let at = operations.iter().position(|operation| operation.name == name)?;
        Some(OperationId { service, operation: at as u16 })
    }

    /// The names of a service's operations, in the order of the text: the order in which templates of paths are tried.
    pub fn operations(&self, service: ServiceId) -> impl Iterator<Item = &str> {
        self.services[usize::from(service.at)].operations.iter().map(|operation| operation.name.as_str())
    }

    /// The names of the values that a call of this operation is judged by, in their order.
    pub fn params(&self, operation: OperationId) -> &[String] {
        &self.op(operation).params
    }

    /// Whether any clause of the operation reads its reply, or a type is promised of it.
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

    /// A number that differs between contracts which differ by more than layout and comments.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn op(&self, id: OperationId) -> &Operation {
        &self.services[usize::from(id.service.at)].operations[usize::from(id.operation)]
    }
}

/// Which clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `requires`.
    Requires,
    /// `ensures`.
    Ensures,
    /// `on_error`.
    OnError,
}

/// A clause that can be asked by itself, without a monitor.
#[derive(Clone, Copy, Debug)]
pub struct ClauseRef<'c> {
    clause: &'c Clause,
}

impl<'c> ClauseRef<'c> {
    /// Its stable name, `Service.operation.label`.
    pub fn id(&self) -> &'c str {
        &self.clause.id
    }

    /// Its expression, as it stands in the contract.
    pub fn text(&self) -> &'c str {
        &self.clause.text
    }

    /// What it comes to for a call, in at most so many steps.
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

    /// Shows each endpoint that a message introduces, with its service and index, in the order of the text; one that several
    /// clauses introduce, several times.
    ///
    /// # Errors
    /// The first reason why something could not be said; what else is introduced was shown all the same.
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
