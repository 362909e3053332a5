//! Compiled clauses.

use crate::code::{Code, Id};
use crate::syntax::Direction;

/// Number of a service in its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId {
    /// The contract's generation, so that numbers of different contracts differ.
    pub(crate) generation: u16,
    pub(crate) at: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    /// Stable name: `Service.operation.label`, or kind and number if it has no label.
    pub(crate) id: String,
    /// The expression as written.
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The first byte of `text` in the contract.
    pub(crate) start: u32,
    pub(crate) code: Code,
    pub(crate) root: Id,
    /// Its number among all clauses of the contract.
    pub(crate) number: u32,
    /// Whether it reads secret values, judged by their names.
    pub(crate) secret: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Identify {
    pub(crate) clause: Clause,
    pub(crate) direction: Direction,
    pub(crate) service: ServiceId,
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
