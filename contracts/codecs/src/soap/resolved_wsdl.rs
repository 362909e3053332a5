//! A resolved WSDL: types, messages, operations and services, with look-ups.

/// ID of a complex type in its [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComplexId(pub(crate) u32);

/// ID of an enumeration in its [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumerationId(pub(crate) u32);

/// How the text of a simple type is read. Source: XML Schema part 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `string` and types derived from it, dates and times, `decimal`, `anyURI` and `QName`.
    Text,
    /// A boolean: `true`, `false`, `1` or `0`.
    Boolean,
    /// An integer from the minimum to the maximum. Integers wider than 64 bits are available only as text.
    Integer(i64, i64),
    /// `float` and `double`, with `INF`, `-INF` and `NaN`.
    Float,
    /// Bytes in base 64, `base64Binary`.
    Base64,
    /// Bytes in hexadecimal, `hexBinary`.
    Hex,
}

/// The type of an element or attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// A built-in type of XML Schema or a restriction of one, with its values if it is an enumeration.
    Simple(Builtin, Option<EnumerationId>),
    /// A complex type, which has fields.
    Complex(ComplexId),
    /// Any content, `anyType`.
    Any,
}

impl Type {
    /// How the text of a simple type is read; `None` for other types.
    pub fn builtin(self) -> Option<Builtin> {
        if let Type::Simple(builtin, _) = self { Some(builtin) } else { None }
    }
}

/// A simple type of a WSDL that allows only some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// Name of the type, or of its element for an anonymous type.
    pub name: String,
    /// The allowed values as text.
    pub values: Vec<String>,
}

/// An element or attribute of a complex type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Local name of the element or attribute.
    pub name: String,
    /// Namespace of the element or attribute; empty if unqualified (`elementFormDefault="unqualified"`).
    pub namespace: String,
    /// Type of the value, or of each value if the field repeats.
    pub ty: Type,
    /// Minimum number of occurrences.
    pub min: u32,
    /// Maximum number of occurrences; `None` for `unbounded`.
    pub max: Option<u32>,
    /// Whether the value may be `xsi:nil`.
    pub is_nillable: bool,
    /// Whether the field is an attribute; otherwise, it is a child element.
    pub is_attribute: bool,
}

impl Field {
    /// Whether the field may occur more than once.
    pub fn is_list(&self) -> bool {
        self.max != Some(1) && self.max != Some(0)
    }
}

/// A complex type of a WSDL, with its elements and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complex {
    /// Name of the type, or of its element for an anonymous type.
    pub name: String,
    /// Elements in order, starting with inherited ones, followed by the attributes.
    pub fields: Vec<Field>,
    /// Whether the type is a `choice`, of which at most one element is present.
    pub is_choice: bool,
}

impl Complex {
    /// Returns the field with this local name, or `None`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the repeated field of a type that only wraps a list, such as `ArrayOfFlight`; `None` for other types.
    pub fn array(&self) -> Option<&Field> {
        let [field] = self.fields.as_slice() else { return None };
        (field.is_list() && !field.is_attribute).then_some(field)
    }
}

/// A request or response of an operation, described by the element in its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Name of the element.
    pub element: String,
    /// Namespace of the element.
    pub namespace: String,
    /// Type of the element.
    pub content: ComplexId,
}

/// An operation in document/literal style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Name in the WSDL's port type.
    pub name: String,
    /// Value of `SOAPAction`; empty if the WSDL has none.
    pub action: String,
    /// The element in the body of a request.
    pub input: Message,
    /// The element in the body of a response; `None` for a one-way operation.
    pub output: Option<Message>,
}

/// A service with the operations of its SOAP 1.1 ports. Ports of other bindings are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Name in the WSDL.
    pub name: String,
    /// The operations of each port, in file order.
    pub operations: Vec<Operation>,
}

/// A resolved WSDL with all its imports. It drives decoding and encoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wsdl {
    /// Services in file order.
    pub services: Vec<Service>,
    pub(crate) complex: Vec<Complex>,
    pub(crate) enumerations: Vec<Enumeration>,
}

impl Wsdl {
    /// Returns the complex type with this ID. Panics if the ID belongs to a different WSDL and is out of range.
    pub fn complex(&self, id: ComplexId) -> &Complex {
        &self.complex[id.0 as usize]
    }

    /// Returns the enumeration with this ID. Panics if the ID belongs to a different WSDL and is out of range.
    pub fn enumeration(&self, id: EnumerationId) -> &Enumeration {
        &self.enumerations[id.0 as usize]
    }

    /// Returns the operations of all ports, in file order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.services.iter().flat_map(|service| &service.operations)
    }

    /// Returns the first operation with this name, or `None`.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.name == name)
    }

    /// Returns the operation whose request has this element in its body, or `None`.
    pub fn operation_by_element(&self, namespace: &str, element: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.input.element == element && operation.input.namespace == namespace)
    }

    /// Returns the operation that a `SOAPAction` names, with or without quotes. `None` if nothing matches. Three
    /// spellings are in use: the WSDL's value, the operation's name, or its namespace and name joined by `/` or `#`.
    pub fn operation_by_action(&self, action: &str) -> Option<&Operation> {
        let action = action.trim();
        let action = action.strip_prefix('"').and_then(|action| action.strip_suffix('"')).unwrap_or(action);
        if action.is_empty() {
            return None;
        }
        let is = |operation: &&Operation| {
            let namespace = operation.input.namespace.as_str();
            let spelled = action.strip_prefix(namespace).filter(|_| !namespace.is_empty());
            let rest = spelled.map(|rest| rest.strip_prefix(['/', '#']).unwrap_or(rest));
            operation.action == action || operation.name == action || rest == Some(operation.name.as_str())
        };
        self.operations().find(is)
    }
}

pub(super) fn builtin(name: &str) -> Option<Type> {
    let integer = Builtin::Integer;
    let builtin = match name {
        "anyType" => return Some(Type::Any),
        "string" | "normalizedString" | "token" | "language" | "Name" | "NCName" | "NMTOKEN" | "ID" | "IDREF"
        | "anyURI" | "QName" | "decimal" | "dateTime" | "date" | "time" | "duration" | "gYear" | "gYearMonth"
        | "gMonth" | "gMonthDay" | "gDay" | "anySimpleType" => Builtin::Text,
        "boolean" => Builtin::Boolean,
        "integer" | "long" => integer(i64::MIN, i64::MAX),
        "int" => integer(i64::from(i32::MIN), i64::from(i32::MAX)),
        "short" => integer(i64::from(i16::MIN), i64::from(i16::MAX)),
        "byte" => integer(i64::from(i8::MIN), i64::from(i8::MAX)),
        "nonNegativeInteger" | "unsignedLong" => integer(0, i64::MAX),
        "unsignedInt" => integer(0, i64::from(u32::MAX)),
        "unsignedShort" => integer(0, i64::from(u16::MAX)),
        "unsignedByte" => integer(0, i64::from(u8::MAX)),
        "positiveInteger" => integer(1, i64::MAX),
        "nonPositiveInteger" => integer(i64::MIN, 0),
        "negativeInteger" => integer(i64::MIN, -1),
        "float" | "double" => Builtin::Float,
        "base64Binary" => Builtin::Base64,
        "hexBinary" => Builtin::Hex,
        _ => return None,
    };
    Some(Type::Simple(builtin, None))
}
