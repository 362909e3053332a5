//! What a WSDL says, resolved: services, operations and the types of their messages.

/// A complex type of a [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComplexId(pub(crate) u32);

/// A simple type of a [`Wsdl`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SimpleId(pub(crate) u32);

/// What the text of a simple type is. Source: XML Schema part 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// Text: `string` and what is derived from it, dates and times, `decimal`, `anyURI`, `QName`.
    Text,
    /// `true`, `false`, `1`, `0`.
    Boolean,
    /// An integer between two bounds, both in it.
    Integer {
        /// The least.
        min: i64,
        /// The greatest. `unsignedLong` and `integer` go on beyond it; there their text alone is at hand.
        max: i64,
    },
    /// `float`, `double`, with `INF`, `-INF` and `NaN`.
    Float,
    /// `base64Binary`.
    Base64,
    /// `hexBinary`.
    Hex,
}

/// The type of an element or attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// One of XML Schema's own.
    Builtin(Builtin),
    /// A restriction of one of these.
    Simple(SimpleId),
    /// Elements in it.
    Complex(ComplexId),
    /// `anyType`: whatever is there.
    Any,
}

/// A simple type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Its name; that of the element where it has none of its own.
    pub name: String,
    /// What its text is.
    pub base: Builtin,
    /// The texts that it may be; all, where there is none.
    pub values: Vec<String>,
}

/// An element in a complex type, or an attribute of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its namespace; empty where it has none, as `elementFormDefault="unqualified"` has it.
    pub namespace: String,
    /// Its type.
    pub ty: Type,
    /// How often it must be there at least.
    pub min: u32,
    /// How often it may be there; `None` for `unbounded`.
    pub max: Option<u32>,
    /// Whether `xsi:nil` may stand for its value.
    pub is_nillable: bool,
    /// It is an attribute.
    pub is_attribute: bool,
}

impl Field {
    /// It may be there more than once, and so is a list.
    pub fn is_list(&self) -> bool {
        self.max != Some(1) && self.max != Some(0)
    }
}

/// A complex type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complex {
    /// Its name; that of the element where it has none of its own.
    pub name: String,
    /// Its elements in their order, those of the type that it extends first; then its attributes.
    pub fields: Vec<Field>,
    /// One of its elements is there, not all: `choice`.
    pub is_choice: bool,
}

impl Complex {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The one field of a type that is but a list of it, `ArrayOfFlight` with any number of `Flight`: such a type is read and written as that list.
    pub fn array(&self) -> Option<&Field> {
        match self.fields.as_slice() {
            [field] if field.is_list() && !field.is_attribute => Some(field),
            _ => None,
        }
    }
}

/// A message: the element that the body holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub element: String,
    /// Its namespace.
    pub namespace: String,
    /// What is in it.
    pub content: ComplexId,
}

/// An operation, document/literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// What SOAPAction says, where the WSDL has it; empty where it says that there is none.
    pub action: String,
    /// What is asked.
    pub input: Message,
    /// What is answered; `None` for operations without an answer.
    pub output: Option<Message>,
}

/// An address where a service answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub address: String,
    /// Its operations.
    pub operations: Vec<Operation>,
}

/// A service with its ports for SOAP 1.1; those for other bindings are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// A WSDL and all that it imports, resolved. It drives decoders and encoders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wsdl {
    /// Its target namespace.
    pub namespace: String,
    /// Its services.
    pub services: Vec<Service>,
    pub(crate) complex: Vec<Complex>,
    pub(crate) simple: Vec<Simple>,
}

impl Wsdl {
    /// A complex type.
    ///
    /// # Panics
    ///
    /// Where `id` is another WSDL's.
    pub fn complex(&self, id: ComplexId) -> &Complex {
        &self.complex[id.0 as usize]
    }

    /// A simple type.
    ///
    /// # Panics
    ///
    /// Where `id` is another WSDL's.
    pub fn simple(&self, id: SimpleId) -> &Simple {
        &self.simple[id.0 as usize]
    }

    /// All operations of all ports, in the order of the file.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.services.iter().flat_map(|service| &service.ports).flat_map(|port| &port.operations)
    }

    /// An operation by its name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.name == name)
    }

    /// The operation whose request has this element in its body.
    pub fn operation_by_element(&self, namespace: &str, element: &str) -> Option<&Operation> {
        self.operations().find(|operation| operation.input.element == element && operation.input.namespace == namespace)
    }

    /// The operation that a `SOAPAction` names: as the WSDL has it, as its bare name, or as namespace, `/` and name, which is how servers differ. Quotes
    /// around it are passed over. `None` for an empty one, which says nothing.
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

    /// What the text of a type is; `None` for types that are no text.
    pub(crate) fn base(&self, ty: Type) -> Option<Builtin> {
        match ty {
            Type::Builtin(builtin) => Some(builtin),
            Type::Simple(id) => Some(self.simple(id).base),
            Type::Complex(_) | Type::Any => None,
        }
    }
}

/// One of XML Schema's own types by its name; [`Type::Any`] for `anyType`.
pub(super) fn builtin(name: &str) -> Option<Type> {
    let integer = |min, max| Builtin::Integer { min, max };
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
