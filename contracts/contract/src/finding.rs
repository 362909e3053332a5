//! Errors and warnings about a contract, with their locations and severities.

use std::fmt;
use std::ops::Range;

use config::nearest::suggestion_of;
use config::place::{Lines, line_and_column};
use serde::Serialize;

/// A range of bytes in a contract, excluding `end`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the byte after the last one.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        // The parser rejects contracts over 1 MiB, so offsets fit in 32 bits.
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }

    /// Returns the span as a range, for slicing the contract.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Prints nothing, so that comparing printed trees ignores layout.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("@")
    }
}

/// The severity of a finding. Only a [`Severity::Mistake`] makes a contract invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The text is not a valid contract.
    Mistake,
    /// The contract is usable, but a part of it may not work as intended.
    Warning,
    /// The text is unusual, but possibly intended.
    Note,
}

/// An error, a warning or a note about a contract's text, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether the contract is invalid, misleading or only unusual.
    pub severity: Severity,
    /// Stable name of the rule, such as `unknown-name`. docs/reference/contracts.md explains each rule.
    pub rule: &'static str,
    /// The message, without a full stop.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The range of bytes that the finding refers to.
    pub span: Range<usize>,
    /// How to fix the problem, or `None` if no fix is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// Creates an error at `span` whose cause is outside the contract's text.
    pub fn mistake(text: &str, span: Span, rule: &'static str, message: String) -> Self {
        let (line, column) = line_and_column(text, span.start as usize);
        Self { severity: Severity::Mistake, rule, message, line, column, span: span.range(), hint: None }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

pub(crate) type Rule = &'static str;

/// Findings in the order of discovery, without line numbers.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) raw: Vec<Finding>,
}

/// Maximum number of findings per contract. Later findings are mostly consequences of earlier ones.
const FINDINGS_MAX: usize = 100;

impl Findings {
    pub(crate) fn mistake(&mut self, rule: Rule, span: Span, message: impl Into<String>) {
        self.push(Severity::Mistake, rule, span, message.into(), None);
    }

    pub(crate) fn mistake_hint(&mut self, rule: Rule, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Severity::Mistake, rule, span, message.into(), Some(hint.into()));
    }

    pub(crate) fn push(&mut self, severity: Severity, rule: Rule, span: Span, message: String, hint: Option<String>) {
        let finding = Finding { severity, rule, message, line: 0, column: 0, span: span.range(), hint };
        self.extend(Findings { raw: vec![finding] });
    }

    pub(crate) fn extend(&mut self, others: Findings) {
        self.raw.extend(others.raw);
        self.raw.truncate(FINDINGS_MAX);
    }

    pub(crate) fn finish(mut self, text: &str) -> Vec<Finding> {
        let lines = Lines::new(text);
        for finding in &mut self.raw {
            (finding.line, finding.column) = lines.place_of(finding.span.start);
        }
        let key = |finding: &Finding| (finding.span.start, finding.severity, finding.message.clone());
        self.raw.sort_by_cached_key(key);
        self.raw.dedup_by_key(|finding| key(finding));
        self.raw
    }
}

/// Suggests the candidate most similar to `word` ("did you mean"), or lists the first candidates.
pub(crate) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    suggestion_of(12, word, candidates)
}

/// Formats findings as `file:line:column: severity: message [rule]`, each followed by its hint.
pub fn to_text(path: &str, findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let weight = ["error", "warning", "note"][finding.severity as usize];
        let Finding { line, column, message, rule, .. } = finding;
        out += &format!("{path}:{line}:{column}: {weight}: {message} [{rule}]\n");
        if let Some(hint) = &finding.hint {
            out += &format!("  = help: {hint}\n");
        }
    }
    out
}
