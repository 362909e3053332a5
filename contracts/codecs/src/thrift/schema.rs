use crate::value::Value;

/// The ID of a struct in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StructId(pub(crate) u32);

/// The ID of an enum in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(pub(crate) u32);

/// The type of a field or element. Typedefs are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool`.
    Bool,
    /// `byte`, `i8`.
    Byte,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `double`.
    Double,
    /// `string`: bytes on the wire, which should be UTF-8.
    String,
    /// `binary`.
    Binary,
    /// `uuid`: 16 bytes.
    Uuid,
    /// An enum: an `i32` on the wire.
    Enum(EnumId),
    /// A struct, a union or an exception.
    Struct(StructId),
    /// `list<...>`.
    List(Box<Type>),
    /// `set<...>`.
    Set(Box<Type>),
    /// `map<..., ...>`.
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
    /// Whether this is an integer type or enum that can represent the number.
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

/// The kind of a struct; the wire format is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`, and the arguments and results of methods.
    Struct,
    /// `union`: exactly one field is set.
    Union,
    /// `exception`.
    Exception,
}

/// Whether a field must be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// `required`.
    Required,
    /// `optional`.
    Optional,
    /// Neither: always written, but may be missing when read.
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
    /// Whether it must be present.
    pub requirement: Requirement,
    /// The value if it is missing.
    pub default: Option<Value>,
    /// Position in the file among the fields of its struct.
    pub(crate) place: u16,
}

/// A struct, a union or an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Name; `file.Name` if from an included file.
    pub name: String,
    /// Whether it is a struct, a union or an exception.
    pub kind: StructKind,
    /// Fields in the order of their numbers.
    pub fields: Vec<Field>,
}

impl Struct {
    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field with this number on the wire.
    pub fn field_by_id(&self, id: i16) -> Option<&Field> {
        self.fields.binary_search_by_key(&id, |field| field.id).ok().map(|index| &self.fields[index])
    }

    /// The fields in file order, the order of a method's arguments.
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = &Field> {
        let mut fields = self.fields.iter().collect::<Vec<_>>();
        fields.sort_by_key(|field| field.place);
        fields.into_iter()
    }
}

/// An enum and its named numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// Name; `file.Name` if from an included file.
    pub name: String,
    /// Names and numbers of its members, in file order.
    pub members: Vec<(String, i32)>,
}

impl Enum {
    /// Name of the first member with this number.
    pub fn name_of(&self, number: i32) -> Option<&str> {
        self.members.iter().find(|member| member.1 == number).map(|member| member.0.as_str())
    }

    /// Number of the member with this name.
    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.members.iter().find(|member| member.0 == name).map(|member| member.1)
    }
}

/// A method of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Name on the wire.
    pub name: String,
    /// Whether calls get no reply, not even an error.
    pub is_oneway: bool,
    /// The struct of its arguments.
    pub arguments: StructId,
    /// The struct of its result: field 0 `success`, unless it is `void`, and its exceptions.
    pub result: StructId,
    /// The result's type; `None` for `void`.
    pub returns: Option<Type>,
}

/// A service with its methods, including inherited ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Name; `file.Name` if from an included file.
    pub name: String,
    /// Inherited methods, then its own in file order.
    pub methods: Vec<Method>,
}

impl Service {
    /// The method with this name on the wire.
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
    /// Returns the service with this name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// The struct with this ID. Panics if the ID belongs to another schema.
    pub fn structure(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// The enum with this ID. Panics if the ID belongs to another schema.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.0 as usize]
    }

    /// All structs, unions and exceptions, including arguments (`Service.method.arguments`) and
    /// results (`Service.method.result`).
    pub fn structs(&self) -> impl ExactSizeIterator<Item = (StructId, &Struct)> {
        self.structs.iter().enumerate().map(|(index, structure)| (StructId(index as u32), structure))
    }

    /// A type in IDL syntax.
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
