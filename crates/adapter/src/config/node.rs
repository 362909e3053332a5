//! A configuration as a tree in which everything knows its line, whether it was TOML or YAML.

use std::cell::RefCell;

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::mistake::Mistake;

/// Line and column, both from 1.
pub(super) type Place = (u32, u32);

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// What both languages know.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Nothing,
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
            Self::Nothing => "nothing",
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
}

impl<'f> Found<'f> {
    pub(super) fn new(source: &'f str) -> Self {
        Self { source, mistakes: RefCell::default() }
    }

    pub(super) fn mistake(&self, place: Place, text: impl Into<String>, hint: Option<String>) {
        let (line, column) = place;
        self.mistakes.borrow_mut().push(Mistake {
            source: self.source.to_owned(),
            line,
            column,
            text: text.into(),
            hint,
        });
    }

    pub(super) fn end(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes
    }
}

/// Reads TOML. What could be read is in the tree whatever else is wrong.
pub(super) fn toml(text: &str, found: &Found<'_>) -> Node {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        found.mistake(place_of(text, at), error.message(), None);
    }
    Node { value: Value::Table(table(document.get_ref(), text)), place: (1, 1) }
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

/// Reads YAML; of several documents the first.
pub(super) fn yaml(text: &str, found: &Found<'_>) -> Node {
    let nothing = Node { value: Value::Nothing, place: (1, 1) };
    match MarkedYaml::load_from_str(text) {
        Ok(documents) => documents.first().map_or(nothing, |first| from_yaml(first, 0)),
        Err(error) => {
            let marker = error.marker();
            found.mistake((marker.line() as u32, marker.col() as u32 + 1), error.info(), None);
            nothing
        }
    }
}

/// Lists and tables within one another that are read of YAML.
const DEPTH_MAX: u32 = 32;

fn from_yaml(node: &MarkedYaml<'_>, depth: u32) -> Node {
    let value = match &node.data {
        _ if depth > DEPTH_MAX => Value::Other("something nested too deep"),
        YamlData::Value(Scalar::Null) => Value::Nothing,
        YamlData::Value(Scalar::Boolean(flag)) => Value::Flag(*flag),
        YamlData::Value(Scalar::Integer(integer)) => Value::Integer(*integer),
        YamlData::Value(Scalar::FloatingPoint(number)) => Value::Number(number.into_inner()),
        YamlData::Value(Scalar::String(text)) => Value::Text(text.clone().into_owned()),
        YamlData::Sequence(items) => Value::List(items.iter().map(|item| from_yaml(item, depth + 1)).collect()),
        YamlData::Mapping(pairs) => Value::Table(
            pairs
                .iter()
                .filter_map(|(key, value)| match &key.data {
                    YamlData::Value(Scalar::String(key)) => {
                        Some((key.clone().into_owned(), from_yaml(value, depth + 1)))
                    }
                    _ => None,
                })
                .collect(),
        ),
        _ => Value::Other("something with a tag or an alias"),
    };
    Node { value, place: (node.span.start.line() as u32, node.span.start.col() as u32 + 1) }
}

fn place_of(text: &str, at: usize) -> Place {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u32, column as u32)
}
