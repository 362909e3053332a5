//! Types of messages: what an IDL, a WSDL or an annotation says of them. Neutral, so that any of them can fill it.

use std::collections::BTreeMap;
use std::fmt;

/// The type of a value in a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Nothing is known; what a clause does with it is checked when it runs.
    Any,
    /// `true` or `false`.
    Bool,
    /// A whole number of up to 64 bits; also an enum that travels as its number.
    Int,
    /// A number with a point, 64 bits.
    Float,
    /// Unicode text.
    Text,
    /// Bytes.
    Bytes,
    /// A text that is one of these: an enum that travels as its name.
    Choice(Vec<String>),
    /// Items of one type, in order; also a set.
    List(Box<Type>),
    /// Keys of one type to values of another.
    Map(Box<Type>, Box<Type>),
    /// Named fields.
    Record(Vec<Field>),
    /// A record of [`Schema::types`], by its name: so a type may contain itself.
    Named(String),
    /// Values of several types, by position. Only clauses make them, no message holds one.
    Tuple(Vec<Type>),
}

/// A field of a record, or a parameter of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: Type,
    /// Whether it may be missing.
    pub optional: bool,
    /// Whether a message without it breaks its type. An IDL may leave that open: whoever writes gives it, whoever reads does without.
    pub required: bool,
}

impl Field {
    /// A field that is always there.
    pub fn new(name: &str, of: Type) -> Self {
        Self { name: name.to_owned(), of, optional: false, required: true }
    }

    /// A field that may be missing.
    pub fn optional(name: &str, of: Type) -> Self {
        Self { name: name.to_owned(), of, optional: true, required: false }
    }
}

/// What an operation takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Its parameters, in the order of their ids.
    pub params: Vec<Field>,
    /// Its result; `None`: it gives nothing.
    pub result: Option<Type>,
    /// The exceptions or faults that it declares: name and type.
    pub errors: Vec<Field>,
}

/// What one or several IDLs or WSDLs say. Names are theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Records by name.
    pub types: BTreeMap<String, Vec<Field>>,
    /// Operations by service and name.
    pub services: BTreeMap<String, BTreeMap<String, Signature>>,
}

/// A schema, and whether all of it is there: of a part nobody can say what is not in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownSchema<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) is_whole: bool,
}

impl Schema {
    /// The fields of a record, under whatever name; `None`: it is no record, or one that is not known.
    pub(crate) fn fields<'s>(&'s self, of: &'s Type) -> Option<&'s [Field]> {
        match of {
            Type::Record(fields) => Some(fields),
            Type::Named(name) => self.types.get(name).map(Vec::as_slice),
            _ => None,
        }
    }

    /// Adds what another file says. What both say, the later one decides.
    pub fn extend(&mut self, other: Schema) {
        self.types.extend(other.types);
        for (service, operations) in other.services {
            self.services.entry(service).or_default().extend(operations);
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
