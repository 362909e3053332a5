//! What of a contract is judged: clauses with their code.

use crate::code::{Code, Id};
use crate::syntax::Direction;

/// Number of a service in its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId {
    /// That of the contract, so that numbers of one are none of another.
    pub(crate) generation: u16,
    pub(crate) at: u16,
}

/// A clause with one expression.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// Stable name: `Service.operation.label`, or kind and number where it has no label.
    pub(crate) id: String,
    /// The expression as its author wrote it.
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The first byte of `text` in the contract.
    pub(crate) start: u32,
    pub(crate) code: Code,
    pub(crate) root: Id,
    /// Its number among all clauses of the contract.
    pub(crate) number: u32,
    /// Whether it reads what must not be shown, judged by names.
    pub(crate) secret: bool,
}

/// A clause that introduces endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Identify {
    pub(crate) clause: Clause,
    pub(crate) direction: Direction,
    pub(crate) service: ServiceId,
    pub(crate) steps: Vec<IdentifyStep>,
    pub(crate) at: Id,
    pub(crate) index: Option<Id>,
}

/// One step of an `identifies` clause.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IdentifyStep {
    For { local: u16, within: Id },
    When(Id),
    Let { local: u16, value: Id },
}
