//! Types of the contract language, and schemas with the signatures of services.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of a value in a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// An unknown type. Operations on its values are checked at run time.
    Any,
    /// `true` or `false`.
    Bool,
    /// An integer of up to 64 bits, or an enum encoded as its number.
    Int,
    /// A float of 64 bits.
    Float,
    /// Unicode text.
    Text,
    /// Bytes, encoded as text by formats without a type for bytes.
    Bytes,
    /// One of these strings: an enum encoded as its name.
    Choice(Vec<String>),
    /// A list or a set of items of one type.
    List(Box<Type>),
    /// A map, with the types of its keys and of its values.
    Map(Box<Type>, Box<Type>),
    /// A record with these fields.
    Record(Vec<Field>),
    /// A record of [`Schema::types`] by name, so that a type may contain itself.
    Named(String),
    /// Values of several types, by position. Only clauses create them.
    Tuple(Vec<Type>),
}

/// A field of a record, or a parameter of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name in the schema or the contract.
    pub name: String,
    /// Type of the value.
    pub of: Type,
    /// Whether a message without the field breaks its type. An IDL's field may be mandatory only for writers.
    pub required: bool,
}

impl Field {
    /// Creates a field that is always present.
    pub fn new(name: &str, of: Type) -> Self {
        Self { name: name.to_owned(), of, required: true }
    }

    /// Creates a field that may be missing.
    pub fn optional(name: &str, of: Type) -> Self {
        Self { name: name.to_owned(), of, required: false }
    }
}

/// The parameters and the result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// The parameters, in the order of their ids.
    pub params: Vec<Field>,
    /// The result, or `None` for an operation without one.
    pub result: Option<Type>,
}

/// The operations of a service, by name.
pub type Signatures = BTreeMap<String, Signature>;

/// The types and services of one or more IDLs or WSDLs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Fields of each record, by the record's name.
    pub types: BTreeMap<String, Vec<Field>>,
    /// Operations, by service and name.
    pub services: BTreeMap<String, Signatures>,
}

pub(crate) struct KnownSchema {
    pub(crate) schema: Arc<Schema>,
    /// Whether a type that the schema lacks is an error.
    pub(crate) is_whole: bool,
    /// Whether a service that the schema lacks is an error.
    pub(crate) is_given: bool,
}

impl Schema {
    /// The fields of a record. `None` for other types and unknown records.
    pub(crate) fn fields<'s>(&'s self, of: &'s Type) -> Option<&'s [Field]> {
        match of {
            Type::Record(fields) => Some(fields),
            Type::Named(name) => self.types.get(name).map(Vec::as_slice),
            _ => None,
        }
    }

    /// Adds the content of `other`, which takes precedence for equal names.
    pub fn extend(&mut self, other: Schema) {
        self.types.extend(other.types);
        for (service, operations) in other.services {
            self.services.entry(service).or_default().extend(operations);
        }
    }
}

impl Type {
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Any => "anything".to_owned(),
            Self::Int => "an int".to_owned(),
            Self::Text | Self::Choice(_) | Self::Bytes | Self::Record(_) | Self::Tuple(_) => self.to_string(),
            other => format!("a {other}"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Text | Self::Choice(_) => f.write_str("text"),
            Self::Bytes => f.write_str("bytes"),
            Self::List(of) => write!(f, "list<{of}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Self::Record(_) => f.write_str("a record"),
            Self::Named(name) => f.write_str(name),
            Self::Tuple(items) => write!(f, "a tuple of {}", items.len()),
        }
    }
}
