//! The error type for configuration files.

use std::ops::Range;

use thiserror::Error;

/// An error in a file, or in a `--set` that changes it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {message}", self.place())]
pub struct Diagnostic {
    /// The message, without a full stop.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The faulty bytes: of [`Diagnostic::set`] if there is one, otherwise of the file.
    pub span: Range<usize>,
    /// A suggestion.
    pub hint: Option<String>,
    /// The `KEY=VALUE` with the error; `None` if the error is in the file.
    pub set: Option<String>,
}

impl Diagnostic {
    /// Formats the error as `file:line:column: message`, with the hint on its own line.
    pub fn in_file(&self, file: &str) -> String {
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("\n  = help: {hint}"));
        format!("{file}:{self}{hint}")
    }

    fn place(&self) -> String {
        self.set.as_ref().map_or_else(|| format!("{}:{}", self.line, self.column), |set| format!("--set {set}"))
    }
}

/// Why a text is invalid. The caller adds its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Invalid {
    /// The message, without a full stop.
    pub message: String,
    /// A suggestion.
    pub hint: Option<String>,
}

impl Invalid {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message and the hint in one line.
    pub fn in_one_line(&self) -> String {
        self.hint.as_ref().map_or_else(|| self.message.clone(), |hint| format!("{}; {hint}", self.message))
    }

    /// The same error with the name of the invalid text before the message.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }
}
