//! One thing that is to be said of a contract's text, with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use config::nearest::suggestion_of;
use config::place::{Lines, line_and_column};
use serde::Serialize;

/// Where in a text something stands: bytes from `start` up to and without `end`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        // Texts are limited to less than 2^32 bytes before they are read.
        Self { start: start as u32, end: end as u32 }
    }

    /// From the start of this to the end of the other.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }

    /// As a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Places print as nothing, so that trees of two texts compare by what they say.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("@")
    }
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The text is no contract.
    Mistake,
    /// The contract can be used, but a part of it cannot do what it seems to.
    Warning,
    /// Worth a thought.
    Note,
}

/// One thing that is to be said of a contract's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it weighs.
    pub severity: Severity,
    /// Stable short name, to look up or to ignore it by: `unknown-name`, `contradiction`. docs/CONTRACTS.md lists all.
    pub rule: &'static str,
    /// What is to be said, without a full stop.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// A mistake that was found outside of the text, of what stands at `span` in it.
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

/// Findings of one text as they come, without places yet.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    raw: Vec<(Severity, &'static str, Span, String, Option<String>)>,
}

/// So many findings are kept of one text; what comes later is most often a consequence.
const FINDINGS_MAX: usize = 100;

impl Findings {
    pub(crate) fn mistake(&mut self, rule: &'static str, span: Span, message: impl Into<String>) {
        self.push(Severity::Mistake, rule, span, message.into(), None);
    }

    pub(crate) fn mistake_hint(
        &mut self,
        rule: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Severity::Mistake, rule, span, message.into(), Some(hint.into()));
    }

    pub(crate) fn push(
        &mut self,
        severity: Severity,
        rule: &'static str,
        span: Span,
        message: String,
        hint: Option<String>,
    ) {
        if self.raw.len() < FINDINGS_MAX {
            self.raw.push((severity, rule, span, message, hint));
        }
    }

    pub(crate) fn extend(&mut self, others: Findings) {
        others.raw.into_iter().for_each(|(severity, rule, span, message, hint)| {
            self.push(severity, rule, span, message, hint);
        });
    }

    pub(crate) fn any_mistake(&self) -> bool {
        self.raw.iter().any(|(severity, ..)| *severity == Severity::Mistake)
    }

    /// In the order of the text, each once.
    pub(crate) fn finish(self, text: &str) -> Vec<Finding> {
        let lines = Lines::new(text);
        let mut sorted = BTreeMap::new();
        for (severity, rule, span, message, hint) in self.raw {
            sorted.entry((span.start, severity, message)).or_insert((rule, span, hint));
        }
        let finding = |((_, severity, message), (rule, span, hint)): (_, (&'static str, Span, Option<String>))| {
            let (line, column) = lines.place_of(span.start as usize);
            Finding { severity, rule, message, line, column, span: span.range(), hint }
        };
        sorted.into_iter().map(finding).collect()
    }
}

/// "did you mean", where something is near; else what there is to choose from, of an IDL the first of it.
pub(crate) fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    suggestion_of(12, word, candidates)
}

/// Findings as text, one or two lines each: `file:line:column: weight: message [rule]`, and the hint.
pub fn to_text(path: &str, findings: &[Finding]) -> String {
    let mut out = String::new();
    for finding in findings {
        let weight = match finding.severity {
            Severity::Mistake => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let Finding { line, column, message, rule, .. } = finding;
        out += &format!("{path}:{line}:{column}: {weight}: {message} [{rule}]\n");
        if let Some(hint) = &finding.hint {
            out += &format!("  hint: {hint}\n");
        }
    }
    out
}
