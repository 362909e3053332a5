//! A TOML file as a tree of values with their places.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::error_collector::Report;
use crate::place::{Place, line_and_column};

/// A value and its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value itself, of any TOML type.
    pub value: Value,
    /// Place of the value, without its key.
    pub place: Place,
}

impl Node {
    /// Lists every string in the node, each with its place.
    pub fn texts(&self) -> Vec<(&str, Place)> {
        match &self.value {
            Value::Text(text) => vec![(text, self.place)],
            Value::List(list) => list.iter().flat_map(Node::texts).collect(),
            Value::Table(table) => table.iter().flat_map(|entry| entry.node.texts()).collect(),
            _ => Vec::new(),
        }
    }
}

/// A TOML value. Nested values have places of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, without its quotes and with its escapes replaced.
    Text(String),
    /// An integer of at most 64 bits.
    Integer(i64),
    /// A finite float.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// An array, whose items have places of their own.
    List(Vec<Node>),
    /// A table, inline or with a header.
    Table(Table),
    /// The name of the type of a date or of a number out of range. Only the number was already reported as an error.
    Other(&'static str),
}

impl Value {
    /// Name of the type with its article, such as `a string`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Number(_) => "a number",
            Value::Flag(_) => "a boolean",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }
}

/// The entries of a TOML table, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<Entry>);

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Name of the key within its table.
    pub key: String,
    /// Place of the key.
    pub key_place: Place,
    /// Value of the key, with its place.
    pub node: Node,
}

impl Table {
    /// Iterates over the entries in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.0.iter()
    }

    /// Iterates over the entries by value, in the order of the file.
    #[expect(clippy::should_implement_trait, reason = "the type of the iterator has no name")]
    pub fn into_iter(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter()
    }

    /// Iterates over the keys in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|entry| entry.key.as_str())
    }

    /// Finds an entry by key; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Finds an entry by key and returns it mutably; `None` if there is none.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    /// The table at `key`; `None` if the key is missing or its value is not a table.
    pub fn table(&self, key: &str) -> Option<&Table> {
        if let Value::Table(table) = &self.get(key)?.node.value { Some(table) } else { None }
    }

    /// The table at `key`, mutably; `None` if the key is missing or its value is not a table.
    pub fn table_mut(&mut self, key: &str) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.get_mut(key)?.node.value { Some(table) } else { None }
    }

    /// Replaces the entry with the same key, or appends `entry` if there is none.
    pub fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// Removes the entry with this key and returns it; `None` if there is none.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.0.retain(keep);
    }
}

/// Parses a TOML document. Reports syntax errors and keeps everything that could be read.
pub fn document(text: &str, report: &Report) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = line_and_column(text, span.start).0;
        report.syntax(Place { set: None, start: span.start, end: span.end }, error.message(), line..=line);
    }
    table(document.get_ref(), Place::default(), report)
}

/// Parses one TOML value located at `base`. Reports errors; `None` if it is not valid TOML.
pub fn value(text: &str, base: Place, report: &Report) -> Option<Node> {
    DeValue::parse(text).ok().map(|value| node(&value, base, report))
}

pub(crate) fn table(table: &DeTable<'_>, base: Place, report: &Report) -> Table {
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().clone().into_owned(),
        key_place: base.part(key.span()),
        node: node(value, base, report),
    };
    let mut entries = table.iter().map(entry).collect::<Vec<_>>();
    // The parser sorts by name, but readers expect the order of the file.
    entries.sort_by_key(|entry| entry.key_place);
    Table(entries)
}

/// Converts a value. The parser limits the depth, which bounds the recursion.
fn node(spanned: &Spanned<DeValue<'_>>, base: Place, report: &Report) -> Node {
    let place = base.part(spanned.span());
    let too_large = |what: &'static str, why: &str| {
        report.mistake(place, format!("{what} {why}"), None);
        Value::Other(what)
    };
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => too_large("an integer", "that does not fit 64 bits"),
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => too_large("a number", "that is not finite"),
        },
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(list) => Value::List(list.iter().map(|item| node(item, base, report)).collect()),
        DeValue::Table(inner) => Value::Table(table(inner, base, report)),
    };
    Node { value, place }
}
