//! Formats values as text, for `text`, indexes and reports. The form is Python's, as in Whip's index `(17, False, 2)`.

use std::fmt::{self, Write};

use super::{NESTING_MAX, Outcome, Run, Why};
use crate::message_values::{Pairs, Value};
use crate::syntax::Expr;

impl<'a> Run<'a> {
    pub(super) fn shown(&mut self, at: &Expr, value: Value<'a>) -> Outcome<&'a str> {
        if let Value::Text(text) = value {
            return Ok(text);
        }
        // Writing costs steps and stops when none are left.
        let left = usize::try_from(self.left).unwrap_or(usize::MAX).saturating_mul(super::BYTES_A_STEP);
        let out = bumpalo::collections::String::new_in(self.bump);
        let mut out = Limited { out, left, is_too_deep: false, hide: |_| false };
        match out.value(value, 0) {
            Ok(()) => {
                self.charge_bytes(at, out.out.len())?;
                Ok(out.out.into_bump_str())
            }
            Err(fmt::Error) if out.is_too_deep => self.stop(at, Why::DEPTH),
            Err(fmt::Error) => self.stop(at, Why::Budget),
        }
    }
}

/// Formats a value for a report in at most `most_bytes` bytes, hiding the values of fields whose names `hide` matches.
pub(crate) fn excerpt(value: Value<'_>, most_bytes: usize, hide: fn(&str) -> bool) -> String {
    let mut out = Limited { out: String::new(), left: most_bytes, is_too_deep: false, hide };
    let written = if let Value::Text(text) = value { out.write_str(text) } else { out.value(value, 0) };
    if written.is_err() {
        out.out.push_str("...");
    }
    out.out
}

struct Limited<W> {
    out: W,
    left: usize,
    is_too_deep: bool,
    hide: fn(&str) -> bool,
}

impl<W: Write> Write for Limited<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = (0..=self.left.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let is_whole = end == text.len();
        self.left = if is_whole { self.left - end } else { 0 };
        self.out.write_str(&text[..end])?;
        if is_whole { Ok(()) } else { Err(fmt::Error) }
    }
}

impl<W: Write> Limited<W> {
    fn value(&mut self, value: Value<'_>, depth: u16) -> fmt::Result {
        if depth > NESTING_MAX {
            self.is_too_deep = true;
            return Err(fmt::Error);
        }
        match value {
            Value::Missing => self.write_str("None"),
            Value::Opaque | Value::Malformed(_) => self.write_str("?"),
            Value::Bool(value) => self.write_str(if value { "True" } else { "False" }),
            Value::Int(number) => write!(self, "{number}"),
            Value::Float(number) => write!(self, "{number:?}"),
            Value::Text(text) => self.quoted(text),
            Value::Bytes(bytes) => {
                self.write_str("b'")?;
                bytes.iter().try_for_each(|byte| write!(self, "{}", byte.escape_ascii()))?;
                self.write_str("'")
            }
            Value::Map(pairs) => self.map(pairs, depth),
            Value::Tuple([_]) => self.items(value, "(", ",)", depth),
            Value::Tuple(_) => self.items(value, "(", ")", depth),
            Value::Array(_) | Value::List(_) => self.items(value, "[", "]", depth),
        }
    }

    fn items(&mut self, list: Value<'_>, open: &str, close: &str, depth: u16) -> fmt::Result {
        self.write_str(open)?;
        for (at, item) in list.items().enumerate() {
            self.write_str(if at == 0 { "" } else { ", " })?;
            self.value(item, depth + 1)?;
        }
        self.write_str(close)
    }

    fn map(&mut self, pairs: &Pairs<'_>, depth: u16) -> fmt::Result {
        self.write_str("{")?;
        for (at, (key, value)) in pairs.iter().enumerate() {
            self.write_str(if at == 0 { "" } else { ", " })?;
            self.value(key.value(), depth + 1)?;
            self.write_str(": ")?;
            match key.value() {
                Value::Text(name) if (self.hide)(name) => self.write_str(HIDDEN)?,
                _ => self.value(value.value(), depth + 1)?,
            }
        }
        self.write_str("}")
    }

    /// Writes a nested string in the form of Python's `repr`.
    fn quoted(&mut self, text: &str) -> fmt::Result {
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        self.write_char(quote)?;
        for character in text.chars() {
            match character {
                '\\' => self.write_str("\\\\")?,
                '\n' => self.write_str("\\n")?,
                '\r' => self.write_str("\\r")?,
                '\t' => self.write_str("\\t")?,
                same if same == quote => write!(self, "\\{same}")?,
                '\0'..='\x1f' | '\x7f' => write!(self, "\\x{:02x}", u32::from(character))?,
                other => self.write_char(other)?,
            }
        }
        self.write_char(quote)
    }
}

pub(crate) const HIDDEN: &str = "[redacted]";
