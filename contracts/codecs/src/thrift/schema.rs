//! What an IDL file says, resolved: no name is left that must be looked up.

use crate::value::Value;

/// A struct of a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StructId(pub(crate) u32);

/// An enum of a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(pub(crate) u32);

/// The type of a field or of an element. Typedefs are resolved.
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
    /// `string`: on the wire bytes, which should be UTF-8.
    String,
    /// `binary`.
    Binary,
    /// `uuid`: 16 bytes.
    Uuid,
    /// An enum: on the wire an `i32`.
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

/// What kind of struct it is. On the wire all are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`, and the arguments and results of methods.
    Struct,
    /// `union`: one field is set.
    Union,
    /// `exception`.
    Exception,
}

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// `required`.
    Required,
    /// `optional`.
    Optional,
    /// Neither: it is written, and may be missing where it is read.
    Default,
}

/// A field of a struct, an argument of a method, an exception that it may throw.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its number on the wire. Negative where the file gave none: -1, -2 and so on, as the Apache compiler has it.
    pub id: i16,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it must be there.
    pub requirement: Requirement,
    /// What a reader assumes where it is missing.
    pub default: Option<Value>,
}

/// A struct, a union or an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Its name; `file.Name` where an included file has it.
    pub name: String,
    /// What kind it is.
    pub kind: StructKind,
    /// Its fields, in the order of their numbers.
    pub fields: Vec<Field>,
    /// Places in `fields` in the order of the file, which is the order of a method's arguments.
    pub(crate) order: Vec<u16>,
}

impl Struct {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A field by its number on the wire.
    pub fn field_by_id(&self, id: i16) -> Option<&Field> {
        self.fields.binary_search_by_key(&id, |field| field.id).ok().map(|index| &self.fields[index])
    }

    /// The fields in the order of the file: a method's arguments by position.
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = &Field> {
        self.order.iter().map(|index| &self.fields[usize::from(*index)])
    }
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enum {
    /// Its name; `file.Name` where an included file has it.
    pub name: String,
    /// Its members with their numbers, in the order of the file.
    pub members: Vec<(String, i32)>,
}

impl Enum {
    /// The first member with a number.
    pub fn name_of(&self, number: i32) -> Option<&str> {
        self.members.iter().find(|member| member.1 == number).map(|member| member.0.as_str())
    }

    /// The number of a member.
    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.members.iter().find(|member| member.0 == name).map(|member| member.1)
    }
}

/// A method of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name, as on the wire.
    pub name: String,
    /// No reply is sent, not even one that says that it failed.
    pub is_oneway: bool,
    /// The struct that holds its arguments.
    pub arguments: StructId,
    /// The struct that holds what it returns, as field 0 `success` unless that is `void`, and the exceptions that it may throw.
    pub result: StructId,
    /// What it returns; `None` for `void`.
    pub returns: Option<Type>,
}

/// A service with its methods, those of the services that it extends among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Its name; `file.Name` where an included file has it.
    pub name: String,
    /// Its methods: inherited ones first, then its own in the order of the file.
    pub methods: Vec<Method>,
}

impl Service {
    /// A method by its name on the wire.
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// A constant with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name; `file.NAME` where an included file has it.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value. Members of enums are integers.
    pub value: Value,
}

/// An IDL file and all that it includes, resolved. It drives decoders and encoders.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    /// Services, those of included files among them.
    pub services: Vec<Service>,
    /// Constants, those of included files among them.
    pub constants: Vec<Constant>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) enums: Vec<Enum>,
}

impl Schema {
    /// A service by its name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// A struct.
    ///
    /// # Panics
    ///
    /// Where `id` is another schema's.
    pub fn structure(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// An enum.
    ///
    /// # Panics
    ///
    /// Where `id` is another schema's.
    pub fn enumeration(&self, id: EnumId) -> &Enum {
        &self.enums[id.0 as usize]
    }

    /// All structs, unions and exceptions, including those of arguments (`Service.method.arguments`) and results
    /// (`Service.method.result`).
    pub fn structs(&self) -> impl ExactSizeIterator<Item = (StructId, &Struct)> {
        self.structs.iter().enumerate().map(|(index, structure)| (StructId(index as u32), structure))
    }

    /// All enums.
    pub fn enums(&self) -> &[Enum] {
        &self.enums
    }

    /// A type as an IDL file would have it.
    pub fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Byte => "byte".to_owned(),
            Type::I16 => "i16".to_owned(),
            Type::I32 => "i32".to_owned(),
            Type::I64 => "i64".to_owned(),
            Type::Double => "double".to_owned(),
            Type::String => "string".to_owned(),
            Type::Binary => "binary".to_owned(),
            Type::Uuid => "uuid".to_owned(),
            Type::Enum(id) => self.enumeration(*id).name.clone(),
            Type::Struct(id) => self.structure(*id).name.clone(),
            Type::List(element) => format!("list<{}>", self.type_name(element)),
            Type::Set(element) => format!("set<{}>", self.type_name(element)),
            Type::Map(key, value) => format!("map<{}, {}>", self.type_name(key), self.type_name(value)),
        }
    }
}
