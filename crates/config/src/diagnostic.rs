//! The error types of configuration files.

use std::ops::Range;

use thiserror::Error;

/// An error in a file, or in a `--set` that changes the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {message}", self.place())]
pub struct Diagnostic {
    /// Error message without a full stop.
    pub message: String,
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
    /// Byte range of the error, in [`Diagnostic::set`] if there is one, otherwise in the file.
    pub span: Range<usize>,
    /// Suggestion for the user; `None` if there is none.
    pub hint: Option<String>,
    /// The `KEY=VALUE` that contains the error; `None` if the error is in the file.
    pub set: Option<String>,
}

impl Diagnostic {
    /// Formats the error as `file:line:column: message`, followed by the hint on a separate line.
    pub fn in_file(&self, file: &str) -> String {
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("\n  = help: {hint}"));
        format!("{file}:{self}{hint}")
    }

    fn place(&self) -> String {
        self.set.as_ref().map_or_else(|| format!("{}:{}", self.line, self.column), |set| format!("--set {set}"))
    }
}

/// Why a string is invalid. The caller adds the place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Invalid {
    /// Error message without a full stop.
    pub message: String,
    /// Suggestion for the user; `None` if there is none.
    pub hint: Option<String>,
    /// The part of the string that is invalid; `None` for the whole string.
    pub part: Option<String>,
}

impl Invalid {
    /// Creates an error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, part: None }
    }

    /// Adds a hint, which replaces an earlier one.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Sets the part of the string that is invalid.
    #[must_use]
    pub fn part(self, part: &str) -> Self {
        Self { part: Some(part.to_owned()), ..self }
    }

    /// Byte range of the invalid part in `text`. `None` if this is the whole text.
    pub fn span_in(&self, text: &str) -> Option<Range<usize>> {
        let part = self.part.as_ref()?;
        // An unclosed part reaches to the end, and can begin like a valid part before it.
        let at = text.strip_suffix(part.as_str()).map(str::len).or_else(|| text.find(part.as_str()))?;
        Some(at..at + part.len())
    }

    /// Formats the message and the hint in one line.
    pub fn in_one_line(&self) -> String {
        self.hint.as_ref().map_or_else(|| self.message.clone(), |hint| format!("{}; {hint}", self.message))
    }

    /// Puts the name of the invalid value before the message.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }
}
