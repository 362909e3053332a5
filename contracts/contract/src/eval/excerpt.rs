//! Values as text, for `text`, indexes and reports. The form is Python's, as in Whip's indexes:
//! `(17, False, 2)`.

use std::fmt::{self, Write};

use super::{NESTING_MAX, Outcome, Run, Why};
use crate::code::Id;
use crate::tape::{Node, Shape, Value};

impl<'a> Run<'a> {
    /// Text unchanged, and other values in Python's form.
    pub(super) fn shown(&mut self, at: Id, value: Value<'a>) -> Outcome<&'a str> {
        if let Value::Text(text) = value {
            return Ok(text);
        }
        // Writing costs steps and stops when none are left.
        let left = usize::try_from(self.left).unwrap_or(usize::MAX).saturating_mul(super::BYTES_A_STEP);
        let mut out = Limited { out: bumpalo::collections::String::new_in(self.bump), left, hide: |_| false };
        let written = out.value(value, 0);
        let text = out.out;
        match written {
            Ok(()) => {
                self.charge_bytes(at, text.len())?;
                Ok(text.into_bump_str())
            }
            Err(why) => self.stop(at, why),
        }
    }
}

/// A value for a report: at most `most_bytes`, without values of fields that `hide` names.
pub(crate) fn excerpt(value: Value<'_>, most_bytes: usize, hide: fn(&str) -> bool) -> String {
    let mut out = Limited { out: String::new(), left: most_bytes, hide };
    let written = match value {
        Value::Text(text) => out.write_str(text).map_err(|_| Why::Budget),
        value => out.value(value, 0),
    };
    if written.is_err() {
        out.out.push_str("...");
    }
    out.out
}

/// Writes up to a number of bytes and then fails.
struct Limited<W> {
    out: W,
    left: usize,
    hide: fn(&str) -> bool,
}

impl<W: Write> Write for Limited<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(left) = self.left.checked_sub(text.len()) {
            self.left = left;
            return self.out.write_str(text);
        }
        // The longest prefix of whole characters that fits.
        let end = (0..=self.left).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.left = 0;
        self.out.write_str(&text[..end])?;
        Err(fmt::Error)
    }
}

impl<W: Write> Limited<W> {
    fn put(&mut self, text: &str) -> Result<(), Why> {
        self.write_str(text).map_err(|fmt::Error| Why::Budget)
    }

    fn value(&mut self, value: Value<'_>, depth: u16) -> Result<(), Why> {
        if depth > NESTING_MAX {
            return Err(Why::Depth);
        }
        let full = |fmt::Error| Why::Budget;
        match value {
            Value::Missing => self.put("None"),
            Value::Opaque | Value::Malformed(_) => self.put("?"),
            Value::Bool(value) => self.put(if value { "True" } else { "False" }),
            Value::Int(number) => write!(self, "{number}").map_err(full),
            Value::Float(number) => write!(self, "{number:?}").map_err(full),
            Value::Text(text) => self.quoted(text),
            Value::Bytes(bytes) => {
                self.put("b'")?;
                bytes.iter().try_for_each(|byte| write!(self, "{}", byte.escape_ascii())).map_err(full)?;
                self.put("'")
            }
            Value::List(items) => self.items(items.iter().copied(), "[", "]", depth),
            Value::Tuple([one]) => self.items([*one].into_iter(), "(", ",)", depth),
            Value::Tuple(items) => self.items(items.iter().copied(), "(", ")", depth),
            Value::Node(node) if node.shape() == Shape::List => {
                self.items((0..node.len()).map(|at| node.at(at)), "[", "]", depth)
            }
            Value::Node(node) => self.map(node, depth),
        }
    }

    fn items<'v>(
        &mut self,
        items: impl Iterator<Item = Value<'v>>,
        open: &str,
        close: &str,
        depth: u16,
    ) -> Result<(), Why> {
        self.put(open)?;
        for (at, item) in items.enumerate() {
            self.put(if at == 0 { "" } else { ", " })?;
            self.value(item, depth + 1)?;
        }
        self.put(close)
    }

    fn map(&mut self, node: Node<'_>, depth: u16) -> Result<(), Why> {
        self.put("{")?;
        for at in 0..node.len() {
            self.put(if at == 0 { "" } else { ", " })?;
            let key = node.key(at);
            self.value(key, depth + 1)?;
            self.put(": ")?;
            match key {
                Value::Text(name) if (self.hide)(name) => self.put(HIDDEN)?,
                _ => self.value(node.at(at), depth + 1)?,
            }
        }
        self.put("}")
    }

    /// A nested text, in the form of Python's `repr`.
    fn quoted(&mut self, text: &str) -> Result<(), Why> {
        let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
        let full = |fmt::Error| Why::Budget;
        self.write_char(quote).map_err(full)?;
        for character in text.chars() {
            match character {
                '\\' => self.put("\\\\")?,
                '\n' => self.put("\\n")?,
                '\r' => self.put("\\r")?,
                '\t' => self.put("\\t")?,
                same if same == quote => write!(self, "\\{same}").map_err(full)?,
                control if u32::from(control) < 0x20 || u32::from(control) == 0x7f => {
                    write!(self, "\\x{:02x}", u32::from(control)).map_err(full)?;
                }
                other => self.write_char(other).map_err(full)?,
            }
        }
        self.write_char(quote).map_err(full)
    }
}

/// Replaces a secret value.
pub(crate) const HIDDEN: &str = "[redacted]";
