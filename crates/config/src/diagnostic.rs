//! One mistake in a file, with its place.

use std::fmt;
use std::ops::Range;

/// One mistake in a file, or in a `--set` that was to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, without a full stop.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The bytes that are wrong. They lie in the text of the file, or in [`Diagnostic::set`] where that is given.
    pub span: Range<usize>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The `KEY=VALUE` that the mistake is in; `None`: it is in the text of the file.
    pub set: Option<String>,
}

impl Diagnostic {
    /// It as text, in the file of that name: `file:line:column: message`, and the hint on a line of its own.
    pub fn in_file(&self, file: &str) -> String {
        let hint = self.hint.as_ref().map_or(String::new(), |hint| format!("\n  hint: {hint}"));
        format!("{file}:{self}{hint}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.set {
            Some(set) => write!(f, "--set {set}: {}", self.message),
            None => write!(f, "{}:{}: {}", self.line, self.column, self.message),
        }
    }
}

impl std::error::Error for Diagnostic {}
