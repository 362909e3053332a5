//! A file as a tree in which everything knows where it stands.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::place::{Place, line_and_column};
use crate::report::Report;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it stands.
    pub place: Place,
}

impl Node {
    /// Every text in it, with its place.
    pub fn texts<'a>(&'a self, found: &mut Vec<(&'a str, Place)>) {
        match &self.value {
            Value::Text(text) => found.push((text, self.place)),
            Value::List(list) => list.iter().for_each(|item| item.texts(found)),
            Value::Table(table) => table.iter().for_each(|entry| entry.node.texts(found)),
            _ => {}
        }
    }
}

/// What TOML knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A float, which is finite.
    Number(f64),
    /// A boolean.
    Flag(bool),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Table),
    /// A date, or a number that fits no type of ours; the mistake has been reported or will be, as a wrong type.
    Other(&'static str),
}

impl Value {
    /// What it is, with its article.
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

/// Keys with their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<Entry>);

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_place: Place,
    /// The value.
    pub node: Node,
}

impl Table {
    /// Its entries.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry> {
        self.0.iter()
    }

    /// Its entries, by value.
    #[expect(clippy::should_implement_trait, reason = "the type of the iterator has no name")]
    pub fn into_iter(self) -> impl Iterator<Item = Entry> {
        self.0.into_iter()
    }

    /// Its keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|entry| entry.key.as_str())
    }

    /// The entry of that key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    /// The table of that key, where there is one.
    pub fn table(&self, key: &str) -> Option<&Table> {
        match &self.get(key)?.node.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Puts an entry in the place of the one with its key, or at the end.
    pub fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    /// Takes out all entries that `keep` does not.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.0.retain(keep);
    }
}

/// The tree of a TOML document; syntax errors are reported, and what could be read is in the tree all the same.
pub fn document(text: &str, report: &Report) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        // The parser knows no place only for errors of the whole document.
        let span = error.span().unwrap_or(0..0);
        let line = line_and_column(text, span.start).0;
        report.syntax(Place { set: None, start: span.start, end: span.end }, error.message(), line..=line);
    }
    table(document.get_ref(), Place::default(), report)
}

/// The tree of one TOML value that stands at `base`; `None` when it is not TOML.
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
    // The parser sorts by name; a reader expects the order of the file.
    entries.sort_by_key(|entry| entry.key_place);
    Table(entries)
}

/// The parser bounds the depth of what it reads, so this recursion is bounded too.
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
