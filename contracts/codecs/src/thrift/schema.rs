//! A Thrift schema: types, structs, enums, services and methods, with look-ups.

use crate::value::Value;

/// ID of a struct in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StructId(pub(crate) u32);

/// ID of an enum in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(pub(crate) u32);

/// The type of a field or element. Typedefs are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// A boolean, `bool`.
    Bool,
    /// An integer of 8 bits, `byte` or `i8`.
    Byte,
    /// An integer of 16 bits, `i16`.
    I16,
    /// An integer of 32 bits, `i32`.
    I32,
    /// An integer of 64 bits, `i64`.
    I64,
    /// A float of 64 bits, `double`.
    Double,
    /// Text, `string`: bytes on the wire, which should be UTF-8.
    String,
    /// Arbitrary bytes, `binary`.
    Binary,
    /// A UUID of 16 bytes, `uuid`.
    Uuid,
    /// An enum, which is an `i32` on the wire.
    Enum(EnumId),
    /// A struct, a union or an exception.
    Struct(StructId),
    /// A list, `list<...>`.
    List(Box<Type>),
    /// A set, `set<...>`.
    Set(Box<Type>),
    /// A map, `map<..., ...>`.
    Map(Box<Type>, Box<Type>),
}

pub(super) const BASE_TYPES: [(&str, Type); 10] = [
    ("bool", Type::Bool),
    ("byte", Type::Byte),
    ("i8", Type::Byte),
    ("i16", Type::I16),
    ("i32", Type::I32),
    ("i64", Type::I64),
    ("double", Type::Double),
    ("string", Type::String),
    ("binary", Type::Binary),
    ("uuid", Type::Uuid),
];

impl Type {
    /// Whether the type is an integer type or enum that can represent `number`.
    pub(crate) fn holds(&self, number: i64) -> bool {
        match self {
            Type::Byte => i8::try_from(number).is_ok(),
            Type::I16 => i16::try_from(number).is_ok(),
            Type::I32 | Type::Enum(_) => i32::try_from(number).is_ok(),
            Type::I64 => true,
            _ => false,
        }
    }
}

/// The kind of a struct. All kinds have the same wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`, and the arguments and results of methods.
    Struct,
    /// `union`: exactly one field is set.
    Union,
    /// `exception`, which a method may throw.
    Exception,
}

/// Whether a field must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// `required`: the field must be present.
    Required,
    /// `optional`: the field may be absent.
    Optional,
    /// Neither keyword: the field is always written, but may be missing when read.
    Default,
}

/// A field of a struct, an argument of a method, or an exception that it may throw.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Number on the wire. Fields without a number get -1, -2 and so on, as in the Apache compiler.
    pub id: i16,
    /// Name in the IDL file.
    pub name: String,
    /// Type of the value, with typedefs resolved.
    pub ty: Type,
    /// Whether the field must be present.
    pub requirement: Requirement,
    /// The value of a missing field, or `None` without a default.
    pub default: Option<Value>,
    /// Position in the file among the fields of its struct, from 1; 0 for a method's result.
    pub(crate) place: u16,
}

/// A struct, a union or an exception, with its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Name; `file.Name` if the struct is from an included file.
    pub name: String,
    /// Whether this is a struct, a union or an exception.
    pub kind: StructKind,
    /// Fields in the order of their numbers.
    pub fields: Vec<Field>,
}

impl Struct {
    /// Returns the field with this name, or `None`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the field with this number on the wire, or `None`.
    pub fn field_by_id(&self, id: i16) -> Option<&Field> {
        self.fields.binary_search_by_key(&id, |field| field.id).ok().map(|index| &self.fields[index])
    }

    /// Returns the fields in file order, which is the order of a method's arguments.
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = &Field> {
        let mut fields = self.fields.iter().collect::<Vec<_>>();
        fields.sort_by_key(|field| field.place);
        fields.into_iter()
    }
}

/// An enum and its named numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// Name; `file.Name` if the enum is from an included file.
    pub name: String,
    /// Names and numbers of the members, in file order.
    pub members: Vec<(String, i32)>,
}

impl Enum {
    /// Returns the number of the member with this name, or `None`.
    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.members.iter().find(|member| member.0 == name).map(|member| member.1)
    }
}

/// A method of a service, with its arguments and result.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Name on the wire, without the service.
    pub name: String,
    /// Whether calls get no reply, not even an error.
    pub is_oneway: bool,
    /// The struct of the arguments.
    pub arguments: StructId,
    /// The struct of the result: field 0 `success`, unless the method is `void`, and the exceptions.
    pub result: StructId,
    /// Type of the result; `None` for `void`.
    pub returns: Option<Type>,
}

/// A service with its methods, including inherited ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Name; `file.Name` if the service is from an included file.
    pub name: String,
    /// Methods in file order, inherited ones first.
    pub methods: Vec<Method>,
}

impl Service {
    /// Returns the method with this name on the wire, or `None`.
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// A resolved IDL file with all its includes. It drives decoding and encoding.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    /// Services, including those from included files.
    pub services: Vec<Service>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) enums: Vec<Enum>,
}

impl Schema {
    /// Returns the service with this name, or `None`.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Returns the struct with this ID. Panics if the ID belongs to a different schema and is out of range.
    pub fn structure(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// Returns the enum with this ID. Panics if the ID belongs to a different schema and is out of range.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.0 as usize]
    }

    /// All structs, unions and exceptions, and the structs `Service.method.arguments` and `Service.method.result`.
    pub fn structs(&self) -> impl ExactSizeIterator<Item = (StructId, &Struct)> {
        self.structs.iter().enumerate().map(|(index, structure)| (StructId(index as u32), structure))
    }

    /// Formats a type in IDL syntax.
    pub fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Enum(id) => self.enumeration(*id).name.clone(),
            Type::Struct(id) => self.structure(*id).name.clone(),
            Type::List(element) => format!("list<{}>", self.type_name(element)),
            Type::Set(element) => format!("set<{}>", self.type_name(element)),
            Type::Map(key, value) => format!("map<{}, {}>", self.type_name(key), self.type_name(value)),
            base => BASE_TYPES.iter().find(|named| named.1 == *base).map_or("", |named| named.0).to_owned(),
        }
    }
}
