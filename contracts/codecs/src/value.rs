//! One owned value for all codecs that are driven by a schema: what mocks answer, what clients send, what a default is.

/// A value without a type of its own: the schema says what an [`Integer`](Value::Integer) is as wide as, and whether a record's field is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// Nothing: `null` of JSON, `xsi:nil` of XML. A field that is absent is left out of its record instead.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// An integer or the number of an enum's member.
    Integer(i64),
    /// A number that is no integer, or is wider than one.
    Double(f64),
    /// Text.
    Text(String),
    /// Bytes that are no text.
    Bytes(Vec<u8>),
    /// A list or a set, in its order.
    List(Vec<Value>),
    /// A map in the order of its writer. Keys may be of any kind.
    Map(Vec<(Value, Value)>),
    /// A struct, a complex type, an object: fields by name, in their order.
    Record(Vec<(String, Value)>),
}

impl Value {
    /// A record of fields.
    pub fn record<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
        Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A field of a record; `None` where it is absent, and for values that are no records.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Value::Record(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// What it is, in one word, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
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

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Value {
        Value::List(values)
    }
}
