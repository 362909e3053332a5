use config::place::Lines;

use crate::compiled_code::{Code, Id};
use crate::finding::Span;
use crate::monitor::report::Kind;
use crate::syntax::Direction;

/// Number of a service in its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId {
    /// The contract's generation, so that numbers of different contracts differ.
    pub(crate) generation: u16,
    pub(crate) at: u16,
}

/// A compiled clause.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    pub(crate) kind: Kind,
    /// Stable name: `Service.operation.label`, or kind and number if it has no label.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The first byte of `text` in the contract.
    pub(crate) start: u32,
    pub(crate) code: Code,
    pub(crate) root: Id,
    pub(crate) number: u32,
    /// Whether it reads secret values, judged by their names.
    pub(crate) secret: bool,
}

impl Clause {
    /// Creates a clause without code that starts at byte `start` of the contract.
    pub(crate) fn new(kind: Kind, id: String, text: &str, start: u32, lines: &Lines<'_>) -> Self {
        let (line, column) = lines.place_of(start as usize);
        let (text, line, column) = (text.to_owned(), line as u32, column as u32);
        Self { kind, id, text, line, column, start, ..Self::default() }
    }

    /// A part of the contract as written, if it is within the clause.
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
