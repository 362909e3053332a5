//! An owned value shared by all codecs: mock replies, client requests and default values.

use serde::{Serialize, Serializer};

/// A value without a type. The schema defines the width of an [`Integer`](Value::Integer) and
/// whether a record's field is present.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `null` in JSON, `xsi:nil` in XML. An absent field is omitted from its record instead.
    #[default]
    Null,
    /// Stands for a single value still to come, to check the message around it. Never sent.
    Unknown,
    /// True or false.
    Bool(bool),
    /// An integer, or the number of an enum's member.
    Integer(i64),
    /// A number with a fraction, or too large for an integer.
    Double(f64),
    /// Text.
    Text(String),
    /// Binary data.
    Bytes(Vec<u8>),
    /// A list or set, in order.
    List(Vec<Value>),
    /// A map in its writer's order, with keys of any kind.
    #[serde(serialize_with = "serialize_map")]
    Map(Vec<(Value, Value)>),
    /// The ordered fields of a struct, complex type or object.
    #[serde(serialize_with = "serialize_record")]
    Record(Vec<(String, Value)>),
}

fn serialize_map<S: Serializer>(pairs: &[(Value, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| match key {
        Value::Text(text) => (text.clone(), value),
        other => (serde_json::to_string(other).expect("keys are texts"), value),
    }))
}

fn serialize_record<S: Serializer>(fields: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct ComposeError {
    /// Path to the value from the message: field names and element indexes.
    pub path: String,
    /// The error: the thing, its value and the limit.
    pub what: String,
}

impl Value {
    /// Creates a record.
    pub fn record<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
        Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A record's field; `None` if it is absent or the value is not a record.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Value::Record(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// Name of the kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Unknown => "single value",
            Value::Bool(_) => "bool",
            Value::Integer(_) => "integer",
            Value::Double(_) => "double",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Record(_) => "record",
        }
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Value {
        Value::Text(text.into())
    }
}
