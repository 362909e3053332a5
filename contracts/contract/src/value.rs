//! Values of messages, borrowed from where the codec left them.

use std::fmt;

use crate::tape::Tape;

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

/// A list, a map or a record on a tape: the tape, and which of its nodes.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub(crate) tape: &'a Tape<'a>,
    pub(crate) id: u32,
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.shape(), self.id)
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
