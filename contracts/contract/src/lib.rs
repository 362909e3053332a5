//! Contracts between the parties of a call: parsing, evaluation, and blame for broken clauses.

mod check_value_types;
mod clause;
mod compile;
mod contract;
mod eval;
mod finding;
mod functions;
mod lint;
mod message_values;
pub mod metadata;
pub mod monitor;
mod parse;
pub mod syntax;
mod text_formats;
mod token;
mod types_and_schema;

pub use clause::{Clause, ServiceId};
pub use contract::{Contract, OperationId};
pub use eval::{Env, STEPS_MAX, Scratch, Stop, Why};
pub use finding::{Finding, Severity, Span, to_text};
pub use message_values::{MessageValue, Pairs, Value};
pub use parse::{DEPTH_MAX, TEXT_MAX_BYTES, VERSION};
pub use types_and_schema::{Field, Schema, Signature, Signatures, Type};

/// The result of checking a text: its findings, and the compiled contract if the text is valid.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The syntax tree, without parts that could not be parsed.
    pub file: syntax::File,
    /// The contract, or `None` if a finding is an error.
    pub contract: Option<Contract>,
    /// Errors, warnings and notes, in the order of the text.
    pub findings: Vec<Finding>,
}

/// Parses, checks and compiles a contract, using the types of `schema` if given. Errors are in [`Checked::findings`].
pub fn check(text: &str, schema: Option<&Schema>) -> Checked {
    let (is_given, schema) = (schema.is_some(), schema.cloned().unwrap_or_default().into());
    checked(text, types_and_schema::KnownSchema { schema, is_whole: true, is_given })
}

/// Like [`check`], but with an incomplete schema: names that the schema lacks are not errors.
pub fn check_partly(text: &str, schema: &Schema) -> Checked {
    checked(text, types_and_schema::KnownSchema { schema: schema.clone().into(), is_whole: false, is_given: false })
}

fn checked(text: &str, known: types_and_schema::KnownSchema) -> Checked {
    let mut found = finding::Findings::default();
    let file = parse::parse(text, &known, &mut found);
    // Compiles the rest even if clauses are broken, so that one run reports all errors.
    let contract = compile::compile(&file, text, &known, &mut found);
    let is_valid = found.raw.iter().all(|finding| finding.severity != Severity::Mistake);
    let contract = is_valid.then_some(contract);
    if contract.is_some() {
        lint::lint(&file, text, &mut found);
    }
    Checked { file, contract, findings: found.finish(text) }
}
