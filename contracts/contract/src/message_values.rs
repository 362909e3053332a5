//! The values of messages, and the values that clauses compute from them.

use std::borrow::Cow;

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
    Array(&'a [MessageValue<'a>]),
    /// A map or a record inside a message.
    Map(&'a Pairs<'a>),
    /// A list created by a clause.
    List(&'a [Value<'a>]),
    /// A tuple created by a clause.
    Tuple(&'a [Value<'a>]),
}

/// The keys and values of a map, or the names and values of a record's fields.
pub type Pairs<'m> = [(MessageValue<'m>, MessageValue<'m>)];

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

/// A value of a message, as its codec reads it. Strings and bytes are borrowed or owned.
/// ```
/// use contract::{MessageValue, Value};
/// let user = MessageValue::record([("id_str", MessageValue::text("117"))]);
/// let body = MessageValue::record([("users", MessageValue::List(vec![user]))]);
/// let Value::Map([(_, users)]) = body.value() else { unreachable!() };
/// assert!(matches!(users.value(), Value::Array(users) if users.len() == 1));
/// ```
#[derive(Clone, Debug)]
pub enum MessageValue<'m> {
    /// A value that borrows nothing, unlike strings, bytes, lists and maps.
    Plain(Value<'static>),
    /// A value of the wrong kind, with a description such as `not valid JSON: ...`.
    Malformed(Cow<'m, str>),
    /// A string.
    Text(Cow<'m, str>),
    /// Bytes.
    Bytes(Cow<'m, [u8]>),
    /// A list.
    List(Vec<MessageValue<'m>>),
    /// A map with keys of any kind, or a record, whose keys are the names of its fields.
    Map(Vec<(MessageValue<'m>, MessageValue<'m>)>),
}

impl<'m> MessageValue<'m> {
    /// Creates a value of the wrong kind from its description.
    pub fn malformed(what: impl Into<Cow<'m, str>>) -> Self {
        Self::Malformed(what.into())
    }

    /// Creates a string.
    pub fn text(text: impl Into<Cow<'m, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a map or record with string keys.
    pub fn record<K: Into<Cow<'m, str>>>(fields: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(fields.into_iter().map(|(name, value)| (Self::text(name), value)).collect())
    }

    /// Memory in use in addition to the value itself, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Malformed(Cow::Owned(text)) | Self::Text(Cow::Owned(text)) => text.capacity(),
            Self::Bytes(Cow::Owned(bytes)) => bytes.capacity(),
            Self::List(items) => {
                items.capacity() * size_of::<Self>() + items.iter().map(Self::memory_bytes).sum::<usize>()
            }
            Self::Map(pairs) => {
                let inner = pairs.iter().map(|(key, value)| key.memory_bytes() + value.memory_bytes());
                pairs.capacity() * size_of::<(Self, Self)>() + inner.sum::<usize>()
            }
            _ => 0,
        }
    }

    /// Returns the value as clauses read it.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Malformed(what) => Value::Malformed(what),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::List(items) => Value::Array(items),
            Self::Map(pairs) => Value::Map(pairs),
        }
    }
}

impl From<Value<'static>> for MessageValue<'_> {
    fn from(value: Value<'static>) -> Self {
        Self::Plain(value)
    }
}

/// The value of a string key, or of the field with this name. [`Value::Missing`] if there is none.
pub(crate) fn field<'a>(pairs: &'a Pairs<'a>, name: &str) -> Value<'a> {
    let is_named = |key: &MessageValue<'_>| matches!(key, MessageValue::Text(text) if text == name);
    pairs.iter().find(|(key, _)| is_named(key)).map_or(Value::Missing, |(_, value)| value.value())
}
