//! Values of messages, borrowed from where the codec left them.

use std::fmt;

/// A value. Copying it copies a reference.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// An optional field that is not there, or null.
    Missing,
    /// Something is there that could not be decoded, or was left out for its size.
    Opaque,
    /// Something is there that is not what it has to be, and what it is instead: `not valid JSON: ...`. Clauses cannot tell it from what could not be decoded; where
    /// a type is promised, it breaks that.
    Malformed(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list, a map or a record inside a message.
    Node(Node<'a>),
    /// A list that a clause made.
    List(&'a [Value<'a>]),
    /// A tuple that a clause made.
    Tuple(&'a [Value<'a>]),
}

/// A list, a map or a record inside a message: the message, and which of its nodes.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// The message.
    pub tree: &'a dyn Tree,
    /// Which of its nodes; what the number means is the tree's own affair.
    pub id: u32,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.tree.shape(self.id), self.id)
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Items by position.
    List,
    /// Values by key, or fields by name.
    Map,
}

/// A decoded message as clauses see it. Codecs implement it over their own form, so nothing is converted; [`crate::Tape`] is
/// a ready one.
///
/// Node numbers come from this tree's own answers, so a number that it never gave need not be understood, but must not
/// panic.
pub trait Tree: Sync {
    /// What the node is.
    fn shape(&self, node: u32) -> Shape;

    /// How many items, or keys that are there.
    fn len(&self, node: u32) -> usize;

    /// How many keys of a map or record; `None`: it is a list.
    fn len_of_map(&self, node: u32) -> Option<usize> {
        (self.shape(node) == Shape::Map).then(|| self.len(node))
    }

    /// The item at a position, or the value of the key at that position; [`Value::Missing`] beyond the end.
    fn at(&self, node: u32, position: usize) -> Value<'_>;

    /// The key at a position of a map or record; [`Value::Missing`] in lists and beyond the end.
    fn key(&self, node: u32, position: usize) -> Value<'_>;

    /// The value of a key that is a text, or the field of that name; [`Value::Missing`] where there is none.
    fn field(&self, node: u32, name: &str) -> Value<'_> {
        (0..self.len(node))
            .find(|&position| matches!(self.key(node, position), Value::Text(key) if key == name))
            .map_or(Value::Missing, |position| self.at(node, position))
    }
}

impl<'a> Node<'a> {
    /// What it is.
    pub fn shape(self) -> Shape {
        self.tree.shape(self.id)
    }

    /// How many items.
    #[allow(clippy::len_without_is_empty, reason = "a value, not a collection")]
    pub fn len(self) -> usize {
        self.tree.len(self.id)
    }

    /// The item at a position.
    pub fn at(self, position: usize) -> Value<'a> {
        self.tree.at(self.id, position)
    }

    /// The key at a position.
    pub fn key(self, position: usize) -> Value<'a> {
        self.tree.key(self.id, position)
    }

    /// The field of a name.
    pub fn field(self, name: &str) -> Value<'a> {
        self.tree.field(self.id, name)
    }
}

impl Value<'_> {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing => "nothing",
            Self::Opaque | Self::Malformed(_) => "something that could not be decoded",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Node(node) => match node.shape() {
                Shape::List => "a list",
                Shape::Map => "a map or record",
            },
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
        }
    }
}
