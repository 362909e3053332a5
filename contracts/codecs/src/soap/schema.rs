/// The ID of a complex type in its [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComplexId(pub(crate) u32);

/// The ID of a simple type in its [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SimpleId(pub(crate) u32);

/// How the text of a simple type is read. Source: XML Schema part 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `string` and types derived from it, dates and times, `decimal`, `anyURI`, `QName`.
    Text,
    /// `true`, `false`, `1`, `0`.
    Boolean,
    /// An integer from the minimum to the maximum. Larger ones (`unsignedLong`, `integer`) are only available as text.
    Integer(i64, i64),
    /// `float` and `double`, with `INF`, `-INF` and `NaN`.
    Float,
    /// `base64Binary`.
    Base64,
    /// `hexBinary`.
    Hex,
}

/// The type of an element or attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// A built-in type of XML Schema.
    Builtin(Builtin),
    /// A restriction of a built-in type.
    Simple(SimpleId),
    /// A type with fields.
    Complex(ComplexId),
    /// `anyType`: any content.
    Any,
}

/// A simple type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Its name, or the element's name for an anonymous type.
    pub name: String,
    /// The built-in type it restricts.
    pub base: Builtin,
    /// The allowed texts; empty if all are allowed.
    pub values: Vec<String>,
}

/// An element or attribute of a complex type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Local name of the element or attribute.
    pub name: String,
    /// Namespace; empty if unqualified (`elementFormDefault="unqualified"`).
    pub namespace: String,
    /// Type of the value, per occurrence if it repeats.
    pub ty: Type,
    /// Minimum number of occurrences.
    pub min: u32,
    /// Maximum number of occurrences; `None` for `unbounded`.
    pub max: Option<u32>,
    /// Whether the value may be `xsi:nil`.
    pub is_nillable: bool,
    /// Whether it is an attribute.
    pub is_attribute: bool,
}

impl Field {
    /// Whether it may occur more than once.
    pub fn is_list(&self) -> bool {
        self.max != Some(1) && self.max != Some(0)
    }
}

/// A complex type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complex {
    /// Its name, or the element's name for an anonymous type.
    pub name: String,
    /// Its elements in order, starting with inherited ones, then its attributes.
    pub fields: Vec<Field>,
    /// Whether it is a `choice`: at most one of its elements is present.
    pub is_choice: bool,
}

impl Complex {
    /// Returns the field with this local name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The only field of a type that just wraps a list, such as `ArrayOfFlight` with any number of
    /// `Flight`. Such a type is read and written as that list.
    pub fn array(&self) -> Option<&Field> {
        let [field] = self.fields.as_slice() else { return None };
        (field.is_list() && !field.is_attribute).then_some(field)
    }
}

/// A message: the element in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Name of the element.
    pub element: String,
    /// Namespace of the element.
    pub namespace: String,
    /// Type of the element.
    pub content: ComplexId,
}

/// A document/literal operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Name in the WSDL's port type.
    pub name: String,
    /// Value of `SOAPAction`; empty if the WSDL has none.
    pub action: String,
    /// The request.
    pub input: Message,
    /// The response; `None` for one-way operations.
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

/// A resolved WSDL with everything it imports. It drives decoding and encoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wsdl {
    /// Services in file order.
    pub services: Vec<Service>,
    pub(crate) complex: Vec<Complex>,
    pub(crate) simple: Vec<Simple>,
}

impl Wsdl {
    /// The complex type with this ID. Panics if the ID belongs to another WSDL.
    pub fn complex(&self, id: ComplexId) -> &Complex {
        &self.complex[id.0 as usize]
    }

    /// The simple type with this ID. Panics if the ID belongs to another WSDL.
    pub fn simple(&self, id: SimpleId) -> &Simple {
        &self.simple[id.0 as usize]
    }

    /// All operations of all ports, in file order.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.services.iter().flat_map(|service| &service.operations)
    }

    /// Returns the first operation with this name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.name == name)
    }

    /// The operation whose request has this element in its body.
    pub fn operation_by_element(&self, namespace: &str, element: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.input.element == element && operation.input.namespace == namespace)
    }

    /// The operation that a `SOAPAction` names. Clients and servers spell it in three ways: the WSDL's value, the bare
    /// operation name, or namespace, `/` and name. Quotes around it are ignored. `None` if it is empty.
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

    pub(crate) fn base(&self, ty: Type) -> Option<Builtin> {
        match ty {
            Type::Builtin(builtin) => Some(builtin),
            Type::Simple(id) => Some(self.simple(id).base),
            Type::Complex(_) | Type::Any => None,
        }
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
    Some(Type::Builtin(builtin))
}
