//! A configuration as a tree in which everything knows its line.

use std::cell::RefCell;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::mistake::{MISTAKES_MAX, Mistake};

use super::Key;

/// Line and column, both from 1.
pub(super) type Place = (u32, u32);

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// What TOML knows.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    Other(&'static str),
}

impl Value {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Number(_) => "a number",
            Self::Flag(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// Mistakes of one file as they are found.
pub(super) struct Found<'f> {
    source: &'f str,
    mistakes: RefCell<Vec<Mistake>>,
    /// Lines that are no TOML, from and to which: what else seems to be wrong there is a consequence.
    broken: RefCell<Vec<(u32, u32)>>,
    keys: RefCell<BTreeMap<String, Key>>,
}

impl<'f> Found<'f> {
    pub(super) fn new(source: &'f str) -> Self {
        Self { source, mistakes: RefCell::default(), broken: RefCell::default(), keys: RefCell::default() }
    }

    pub(super) fn mistake(&self, place: Place, text: impl Into<String>, hint: Option<String>) {
        let (line, column) = place;
        if self.broken.borrow().iter().any(|(from, to)| (*from..=*to).contains(&line)) {
            return;
        }
        self.mistakes.borrow_mut().push(Mistake {
            source: self.source.to_owned(),
            line,
            column,
            text: text.into(),
            hint,
        });
    }

    /// Whether a part of the file is no TOML: then nobody knows what is missing.
    pub(super) fn is_partial(&self) -> bool {
        !self.broken.borrow().is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.mistakes.borrow().len()
    }

    /// Remembers what a key may be, as the one who reads it says.
    pub(super) fn key(&self, key: Key) {
        self.keys.borrow_mut().insert(key.name.clone(), key);
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.keys.borrow().values().cloned().collect()
    }

    pub(super) fn end(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes
    }
}

/// Reads TOML. What is none is told and taken for blank, so the rest is in the tree and every further mistake is told, too.
pub(super) fn toml(text: &str, found: &Found<'_>) -> Node {
    let mut text = text.to_owned();
    for _ in 0..MISTAKES_MAX {
        let error = match DeTable::parse(&text) {
            Ok(document) => return Node { value: Value::Table(table(document.get_ref(), &text)), place: (1, 1) },
            Err(error) => error,
        };
        let place = place_of(&text, error.span().map_or(0, |span| span.start));
        found.mistake(place, error.message(), None);
        let (from, to) = broken_lines(&text, place.0);
        found.broken.borrow_mut().push((from, to));
        let lines = text.split_inclusive('\n').zip(1..);
        let blank = |line: &str| line.chars().filter(|sign| *sign == '\n').collect::<String>();
        text = lines
            .map(|(line, number)| if (from..=to).contains(&number) { blank(line) } else { line.to_owned() })
            .collect();
    }
    Node { value: Value::Table(Vec::new()), place: (1, 1) }
}

/// The lines, from and to which, of what is broken where the parser stumbled: a line; of the head of a table all that stands in the table;
/// of a list that was begun before the whole of it.
fn broken_lines(text: &str, stumbled: u32) -> (u32, u32) {
    let is_head = |line: &str| line.trim_start().starts_with('[');
    let begins = |line: &str| {
        let key = line.split_once('=').map(|(key, _)| key.trim());
        key.is_some_and(|key| !key.is_empty() && !key.contains(['[', '{', ',', '#']))
    };
    // How many lists and tables are open after a line. Texts of several lines and brackets in texts are rare enough here.
    let opens = |line: &str| {
        let code = line.split('#').next().unwrap_or_default();
        code.matches(['[', '{']).count() as i64 - code.matches([']', '}']).count() as i64
    };
    let lines = text.lines().collect::<Vec<_>>();
    let at = (stumbled as usize - 1).min(lines.len().saturating_sub(1));
    let behind = |from: usize, goes_on: &mut dyn FnMut(&str) -> bool| {
        from + lines.iter().skip(from + 1).take_while(|line| goes_on(line)).count()
    };
    let before = (0..at).rev().find(|number| begins(lines[*number]));
    let (from, to) = match before {
        Some(begin) if lines[begin..at].iter().map(|line| opens(line)).sum::<i64>() > 0 => {
            let mut open = opens(lines[begin]);
            let to = behind(begin, &mut |line| {
                let is_within =
                    open > 0 && !begins(line) && !(is_head(line) && line.trim_end().ends_with(']') && opens(line) == 0);
                open += opens(line);
                is_within
            });
            (begin, to)
        }
        _ if lines.get(at).is_some_and(|line| is_head(line)) => (at, behind(at, &mut |line| !is_head(line))),
        _ => (at, at),
    };
    (from as u32 + 1, to as u32 + 1)
}

fn table(entries: &DeTable<'_>, text: &str) -> Vec<(String, Node)> {
    let mut entries = entries
        .iter()
        .map(|(key, value)| (key.span().start, (key.get_ref().clone().into_owned(), from_toml(value, text))))
        .collect::<Vec<_>>();
    // The parser sorts by name; a reader expects the order of the file.
    entries.sort_by_key(|entry| entry.0);
    entries.into_iter().map(|entry| entry.1).collect()
}

/// The parser bounds the depth of what it reads, so this recursion is bounded too.
fn from_toml(spanned: &Spanned<DeValue<'_>>, text: &str) -> Node {
    let value = match spanned.get_ref() {
        DeValue::String(value) => Value::Text(value.clone().into_owned()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Other("an integer beyond 64 bits"),
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => Value::Other("a number that is not finite"),
        },
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(list) => Value::List(list.iter().map(|item| from_toml(item, text)).collect()),
        DeValue::Table(inner) => Value::Table(table(inner, text)),
    };
    Node { value, place: place_of(text, spanned.span().start) }
}

fn place_of(text: &str, at: usize) -> Place {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u32, column as u32)
}
