//! What does each side of a call owe the other, and who is to blame when it is not kept?

mod clause;
mod code;
mod compile;
mod contract;
mod declared_types;
mod eval;
mod finding;
mod formats;
mod functions;
mod lint;
pub mod metadata;
pub mod monitor;
mod parse;
pub mod print;
pub mod syntax;
mod tape;
mod token;
mod types;

pub use clause::ServiceId;
pub use contract::{ClauseRef, Condition, Contract, OperationId};
pub use eval::{Env, STEPS_MAX, Scratch, Stop, Verdict, Why};
pub use finding::{Finding, Severity, Span, to_text};
pub use parse::{DEPTH_MAX, TEXT_MAX_BYTES, VERSION};
pub use tape::{Id as TapeId, Node, Shape, Tape, Value};
pub use types::{Field, Schema, Signature, Type};

/// What is to be said of a text, and the contract where it is one.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The tree, without what could not be read.
    pub file: syntax::File,
    /// The contract; `None`: one finding at least is a mistake.
    pub contract: Option<Contract>,
    /// Mistakes, warnings and notes, in the order of the text.
    pub findings: Vec<Finding>,
}

/// Reads, checks and compiles a contract. Types are checked against the schema, as far as it is given.
pub fn check(text: &str, schema: Option<&Schema>) -> Checked {
    checked(text, schema.map(|schema| types::KnownSchema { schema, is_whole: true }))
}

/// As [`check`], with a schema of which a part could not be read: that something is not in it is no mistake then.
pub fn check_partly(text: &str, schema: &Schema) -> Checked {
    checked(text, Some(types::KnownSchema { schema, is_whole: false }))
}

fn checked(text: &str, known: Option<types::KnownSchema<'_>>) -> Checked {
    let mut found = finding::Findings::default();
    let file = parse::parse(text, &mut found);
    // A broken clause is left out of the tree, so names it would have brought may seem unknown: but whatever else is
    // wrong is told in the same go.
    let contract = compile::compile(&file, text, known, &mut found);
    let contract = (!found.any_mistake()).then_some(contract);
    if contract.is_some() {
        lint::lint(&file, &mut found);
    }
    Checked { file, contract, findings: found.finish(text) }
}
