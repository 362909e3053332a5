//! A compiled clause of a contract, and how an operation identifies services.

use config::place::Lines;

use crate::finding::Span;
use crate::monitor::report::Kind;
use crate::syntax::{Expr, Identifies};

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
    /// The expression, with its names resolved. Not used in checks of types and `identifies` clauses.
    pub(crate) expr: Expr,
    /// Number of local variables.
    pub(crate) locals: u16,
    pub(crate) number: u32,
    /// Whether the clause reads values with secret-sounding names.
    pub(crate) secret: bool,
}

impl Clause {
    /// Creates a clause that starts at byte `start` of the contract and has no expression yet.
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
    pub(crate) service: u16,
    pub(crate) content: Identifies,
}
