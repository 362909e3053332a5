//! An owned value that all codecs share, for mock replies, client requests and default values.

use serde::{Serialize, Serializer};

/// A value without its type. The schema has the width of each [`Integer`](Value::Integer) and the required fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `null` in JSON or `xsi:nil` in XML. An absent field is omitted from its record instead.
    #[default]
    Null,
    /// A placeholder for a single unknown value, so that the message around it can be checked. Never sent.
    Unknown,
    /// `true` or `false`.
    Bool(bool),
    /// An integer, or the number of an enum's member.
    Integer(i64),
    /// A number with a fraction, or one too large for an integer.
    Double(f64),
    /// A string of Unicode text.
    Text(String),
    /// Binary data, as opposed to text.
    Bytes(Vec<u8>),
    /// A list or a set, in order.
    List(Vec<Value>),
    /// A map with keys of any kind, in the writer's order.
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

/// A value that does not fit its type, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct ComposeError {
    /// Path from the message to the value: field names and element indexes.
    pub path: String,
    /// The error message, without the path of the value.
    pub what: String,
}

impl Value {
    /// Creates a record from field names and values, in order.
    pub fn record<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
        Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The field of a record. `None` if the field is absent or the value is not a record.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Value::Record(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// Name of the kind of value for error messages, such as `integer`.
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
