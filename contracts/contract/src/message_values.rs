//! The values of a message, as clauses read them, and the tape that holds them.

use std::borrow::Cow;
use std::fmt;

/// A value of a message or a clause. Copying a value copies at most a reference.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A missing optional field, or null.
    Missing,
    /// A value that could not be decoded or was too large.
    Opaque,
    /// A value of the wrong kind, described as in `not valid JSON: ...`. Clauses treat it as [`Value::Opaque`].
    Malformed(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer of 64 bits.
    Int(i64),
    /// A float of 64 bits.
    Float(f64),
    /// Unicode text.
    Text(&'a str),
    /// Arbitrary bytes.
    Bytes(&'a [u8]),
    /// A list inside a message.
    Array(Node<'a>),
    /// A map or a record inside a message.
    Map(Node<'a>),
    /// A list created by a clause.
    List(&'a [Value<'a>]),
    /// A tuple created by a clause.
    Tuple(&'a [Value<'a>]),
}

/// A list, a map or a record on a tape.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    tape: &'a Tape<'a>,
    links: Links,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.links)
    }
}

impl Value<'_> {
    /// The kind of the value for error messages, such as `a list`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing => "nothing",
            Self::Opaque | Self::Malformed(_) => "something that could not be decoded",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Map(_) => "a map or record",
            Self::Array(_) | Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
        }
    }
}

/// The values of a message. Strings and bytes are borrowed or owned; lists and maps are ranges of one array.
/// ```
/// use contract::{Tape, Value};
/// let mut tape = Tape::new();
/// let id = tape.text("117");
/// let user = tape.map([("id_str", id)]);
/// let users = tape.list([user]);
/// let body = tape.map([("users", users)]);
/// let Value::Map(body) = tape.value(body) else { unreachable!() };
/// assert!(matches!(body.field("users"), Value::Array(users) if users.len() == 1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tape<'m> {
    cells: Vec<Cell<'m>>,
    /// Keys and values of maps, and values of lists. Each list or map is a range of this array.
    links: Vec<(Option<Id>, Id)>,
    /// Total size of owned strings and bytes on the tape, in bytes.
    owned_bytes: usize,
}

/// The number of a value on a [`Tape`]. The default is the first value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Id(u32);

#[derive(Clone, Debug)]
enum Cell<'m> {
    Value(Value<'m>),
    Malformed(Cow<'m, str>),
    Text(Cow<'m, str>),
    Bytes(Cow<'m, [u8]>),
    Array(Links),
    Map(Links),
}

#[derive(Clone, Copy, Debug)]
struct Links {
    first: u32,
    count: u32,
}

impl<'m> Tape<'m> {
    /// Creates an empty tape.
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let (cells, links) = (self.cells.capacity(), self.links.capacity());
        cells * size_of::<Cell<'_>>() + links * size_of::<(Option<Id>, Id)>() + self.owned_bytes
    }

    fn push(&mut self, cell: Cell<'m>) -> Id {
        self.owned_bytes += match &cell {
            Cell::Malformed(Cow::Owned(text)) | Cell::Text(Cow::Owned(text)) => text.capacity(),
            Cell::Bytes(Cow::Owned(bytes)) => bytes.capacity(),
            _ => 0,
        };
        let id = Id(u32::try_from(self.cells.len()).expect("a codec limits messages to fewer values"));
        self.cells.push(cell);
        id
    }

    /// Adds a value that borrows nothing, unlike strings, bytes, lists and maps.
    pub fn add(&mut self, value: Value<'static>) -> Id {
        self.push(Cell::Value(value))
    }

    /// Adds a value of the wrong kind, with a description such as `not valid JSON: ...`.
    pub fn malformed(&mut self, what: impl Into<Cow<'m, str>>) -> Id {
        self.push(Cell::Malformed(what.into()))
    }

    /// Adds a string, borrowed or owned.
    pub fn text(&mut self, value: impl Into<Cow<'m, str>>) -> Id {
        self.push(Cell::Text(value.into()))
    }

    /// Adds bytes, borrowed or owned.
    pub fn bytes(&mut self, value: impl Into<Cow<'m, [u8]>>) -> Id {
        self.push(Cell::Bytes(value.into()))
    }

    fn link(&mut self, links: impl IntoIterator<Item = (Option<Id>, Id)>) -> Links {
        let first = self.links.len();
        self.links.extend(links);
        let count = (self.links.len() - first) as u32;
        Links { first: u32::try_from(first).expect("a codec limits messages to fewer values"), count }
    }

    /// Adds a list of values that are already on the tape.
    pub fn list(&mut self, items: impl IntoIterator<Item = Id>) -> Id {
        let links = self.link(items.into_iter().map(|item| (None, item)));
        self.push(Cell::Array(links))
    }

    /// Adds a map or record with string keys. The values must already be on the tape.
    pub fn map<K: Into<Cow<'m, str>>>(&mut self, fields: impl IntoIterator<Item = (K, Id)>) -> Id {
        let fields = fields.into_iter().map(|(key, value)| (Some(self.text(key)), value)).collect::<Vec<_>>();
        let links = self.link(fields);
        self.push(Cell::Map(links))
    }

    /// Adds a map with keys of any kind. Keys and values must already be on the tape.
    pub fn map_of(&mut self, pairs: impl IntoIterator<Item = (Id, Id)>) -> Id {
        let links = self.link(pairs.into_iter().map(|(key, value)| (Some(key), value)));
        self.push(Cell::Map(links))
    }

    /// Returns the value with this number, or [`Value::Missing`] if the tape has none.
    pub fn value(&self, id: Id) -> Value<'_> {
        match self.cells.get(id.0 as usize) {
            None => Value::Missing,
            Some(Cell::Value(value)) => *value,
            Some(Cell::Malformed(what)) => Value::Malformed(what),
            Some(Cell::Text(value)) => Value::Text(value),
            Some(Cell::Bytes(value)) => Value::Bytes(value),
            Some(&Cell::Array(links)) => Value::Array(Node { tape: self, links }),
            Some(&Cell::Map(links)) => Value::Map(Node { tape: self, links }),
        }
    }
}

impl<'a> Node<'a> {
    fn links(self) -> &'a [(Option<Id>, Id)] {
        &self.tape.links[self.links.first as usize..][..self.links.count as usize]
    }

    /// The number of items of a list, or of keys of a map or record.
    #[allow(clippy::len_without_is_empty, reason = "a value, not a collection")]
    pub fn len(self) -> usize {
        self.links().len()
    }

    /// The item of a list, or the value of a map or record, at a position. [`Value::Missing`] beyond the end.
    pub fn at(self, position: usize) -> Value<'a> {
        self.links().get(position).map_or(Value::Missing, |&(_, value)| self.tape.value(value))
    }

    /// The key at a position of a map or record. [`Value::Missing`] in lists and beyond the end.
    pub fn key(self, position: usize) -> Value<'a> {
        let key = self.links().get(position).and_then(|&(key, _)| key);
        key.map_or(Value::Missing, |key| self.tape.value(key))
    }

    /// The value of a string key, or of the field with this name. [`Value::Missing`] if there is none.
    pub fn field(self, name: &str) -> Value<'a> {
        let is = |key: &Id| matches!(&self.tape.cells[key.0 as usize], Cell::Text(text) if text == name);
        let mut links = self.links().iter();
        let found = links.find(|(key, _)| key.as_ref().is_some_and(is));
        found.map_or(Value::Missing, |&(_, value)| self.tape.value(value))
    }
}
