//! Reads values in place in a message.

use super::check_structure::skip;
use super::cursor::{Cursor, Stop, WireType};
use super::schema::{Field, Schema, Struct, Type};
use crate::value::Value;

/// A value in a message whose structure has been checked. Reading a field or element walks over everything before it;
/// iterating walks once. As in Apache Thrift, mistyped fields are absent and the last of repeated fields counts.
#[derive(Debug, Clone, Copy)]
pub struct View<'m> {
    /// Position of the value's first byte; the input continues after the value.
    cursor: Cursor<'m>,
    /// Type of the value on the wire.
    pub wire: WireType,
    bool: Option<bool>,
    is_ascending: bool,
    schema: Option<&'m Schema>,
    /// Type of the value in the schema. `None` for a message's struct and for unknown values.
    pub ty: Option<&'m Type>,
    structure: Option<&'m Struct>,
}

pub(super) fn wire_type(ty: &Type) -> WireType {
    match ty {
        Type::Bool => WireType::Bool,
        Type::Byte => WireType::Byte,
        Type::I16 => WireType::I16,
        Type::I32 | Type::Enum(_) => WireType::I32,
        Type::I64 => WireType::I64,
        Type::Double => WireType::Double,
        Type::String | Type::Binary => WireType::Bytes,
        Type::Uuid => WireType::Uuid,
        Type::Struct(_) => WireType::Struct,
        Type::List(_) => WireType::List,
        Type::Set(_) => WireType::Set,
        Type::Map(..) => WireType::Map,
    }
}

impl<'m> View<'m> {
    pub(super) fn of_struct(cursor: Cursor<'m>, is_ascending: bool) -> View<'m> {
        View { cursor, wire: WireType::Struct, bool: None, is_ascending, schema: None, ty: None, structure: None }
    }

    pub(super) fn with_struct(self, schema: &'m Schema, structure: &'m Struct) -> View<'m> {
        View { schema: Some(schema), structure: Some(structure), ..self }
    }

    fn with_type(self, schema: &'m Schema, ty: &'m Type) -> Option<View<'m>> {
        let structure = if let Type::Struct(id) = ty { Some(schema.structure(*id)) } else { None };
        (self.wire == wire_type(ty)).then_some(View { schema: Some(schema), ty: Some(ty), structure, ..self })
    }

    fn untyped(self, cursor: Cursor<'m>, wire: WireType, bool: Option<bool>) -> View<'m> {
        View { cursor, wire, bool, schema: None, ty: None, structure: None, ..self }
    }

    fn part(self, cursor: Cursor<'m>, wire: WireType, of: impl Fn(&'m Type) -> Option<&'m Type>) -> View<'m> {
        let part = self.untyped(cursor, wire, None);
        let typed = self.schema.zip(self.ty.and_then(of)).and_then(|(schema, ty)| part.with_type(schema, ty));
        typed.unwrap_or(part)
    }

    fn read<T>(&self, read: impl FnOnce(&mut Cursor<'m>) -> Result<T, Stop>) -> Option<T> {
        let mut cursor = self.cursor;
        read(&mut cursor).ok()
    }

    /// The value as a bool; `None` for other types.
    pub fn as_bool(&self) -> Option<bool> {
        match (self.bool, self.wire) {
            (None, WireType::Bool) => self.read(Cursor::bool),
            (bool, _) => bool,
        }
    }

    /// The value as an integer of any width, or the number of an enum's member; `None` for other types.
    pub fn as_i64(&self) -> Option<i64> {
        match self.wire {
            WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => self.read(|at| at.integer(self.wire)),
            _ => None,
        }
    }

    /// The value as a double; `None` for other types.
    pub fn as_f64(&self) -> Option<f64> {
        if self.wire == WireType::Double { self.read(Cursor::double) } else { None }
    }

    /// The bytes of a string, binary or UUID; `None` for other types.
    pub fn as_bytes(&self) -> Option<&'m [u8]> {
        match self.wire {
            WireType::Bytes => self.read(|at| at.string(usize::MAX)),
            WireType::Uuid => self.read(|at| at.take(16)),
            _ => None,
        }
    }

    /// The text of a string, or of bytes of unknown type. `None` for other types and invalid UTF-8.
    pub fn as_str(&self) -> Option<&'m str> {
        if self.wire != WireType::Bytes || matches!(self.ty, Some(Type::Binary)) {
            return None;
        }
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The field of a struct with this name in the schema; `None` if absent.
    pub fn get(&self, name: &str) -> Option<View<'m>> {
        self.get_id(self.structure?.field(name)?.id)
    }

    /// The field of a struct with this number; `None` if absent.
    pub fn get_id(&self, id: i16) -> Option<View<'m>> {
        let mut found = None;
        for field in self.raw_fields() {
            if field.0 == id {
                let typed = self.typed(field.0, field.1);
                // If fields are in ascending order, no later field has the same number.
                if self.is_ascending {
                    return typed;
                }
                found = typed.or(found);
            } else if self.is_ascending && field.0 > id {
                return None;
            }
        }
        found
    }

    /// Returns the field with its type in the schema, or `None` if its wire type differs.
    fn typed(&self, id: i16, raw: View<'m>) -> Option<View<'m>> {
        match self.schema.zip(self.structure.and_then(|structure| structure.field_by_id(id))) {
            Some((schema, field)) => raw.with_type(schema, &field.ty),
            None => Some(raw),
        }
    }

    /// The fields of a struct that are in its schema, in message order. The value is `None` if its wire type differs.
    pub fn known_fields(&self) -> impl Iterator<Item = (&'m Field, Option<View<'m>>)> + use<'m> {
        let view = *self;
        view.raw_fields().filter_map(move |(id, raw)| Some((view.structure?.field_by_id(id)?, view.typed(id, raw))))
    }

    /// The fields of a struct with their numbers, in message order and without schema types.
    pub fn raw_fields(&self) -> impl Iterator<Item = (i16, View<'m>)> + use<'m> {
        let (view, mut cursor) = (*self, self.cursor);
        let mut last = (self.wire == WireType::Struct).then_some(0);
        std::iter::from_fn(move || {
            let field = cursor.field(last?).ok().flatten();
            last = field.map(|field| field.id);
            let field = field?;
            let value = view.untyped(cursor, field.wire, field.bool);
            if field.bool.is_none() && skip(&mut cursor, field.wire).is_err() {
                last = None;
            }
            Some((field.id, value))
        })
    }

    /// The elements of a list or set, in order; empty for other values.
    pub fn elements(&self) -> impl Iterator<Item = View<'m>> + use<'m> {
        let mut cursor = self.cursor;
        let is_list = matches!(self.wire, WireType::List | WireType::Set);
        let header = is_list.then(|| cursor.list().ok()).flatten();
        let (wire, count) = header.unwrap_or((WireType::Byte, 0));
        let element = self.part(cursor, wire, |ty| match ty {
            Type::List(element) | Type::Set(element) => Some(element),
            _ => None,
        });
        View::values(cursor, [element; 2], u64::from(count))
    }

    /// Iterates over `count` values from `cursor`, whose types alternate between the two in `types`.
    fn values(mut cursor: Cursor<'m>, types: [View<'m>; 2], count: u64) -> impl Iterator<Item = View<'m>> + use<'m> {
        (0..count).map_while(move |at| {
            let view = View { cursor, ..types[(at % 2) as usize] };
            skip(&mut cursor, view.wire).ok()?;
            Some(view)
        })
    }

    /// The pairs of a map, in order; empty for other values.
    pub fn pairs(&self) -> impl Iterator<Item = (View<'m>, View<'m>)> + use<'m> {
        let mut cursor = self.cursor;
        let header = (self.wire == WireType::Map).then(|| cursor.map().ok()).flatten();
        let (key, value, count) = header.unwrap_or((WireType::Byte, WireType::Byte, 0));
        let key = self.part(cursor, key, |ty| if let Type::Map(key, _) = ty { Some(key) } else { None });
        let value = self.part(cursor, value, |ty| if let Type::Map(_, value) = ty { Some(value) } else { None });
        let mut values = View::values(cursor, [key, value], 2 * u64::from(count));
        std::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }

    /// Copies the whole value. Omits fields that the schema lacks; without a schema, each field is named by its number.
    pub fn to_value(&self) -> Value {
        match self.wire {
            WireType::Bool => self.as_bool().map_or(Value::Null, Value::Bool),
            WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => {
                self.as_i64().map_or(Value::Null, Value::Integer)
            }
            WireType::Double => self.as_f64().map_or(Value::Null, Value::Double),
            WireType::Bytes | WireType::Uuid => match (self.as_str(), self.as_bytes()) {
                (Some(text), _) => Value::Text(text.to_owned()),
                (None, bytes) => Value::Bytes(bytes.unwrap_or_default().to_vec()),
            },
            WireType::List | WireType::Set => Value::List(self.elements().map(|element| element.to_value()).collect()),
            WireType::Map => Value::Map(self.pairs().map(|pair| (pair.0.to_value(), pair.1.to_value())).collect()),
            WireType::Struct => Value::Record(match self.structure {
                None => self.raw_fields().map(|(id, view)| (id.to_string(), view.to_value())).collect(),
                Some(_) if self.is_ascending => {
                    let there = self.known_fields().filter_map(|(field, view)| Some((field, view?)));
                    there.map(|(field, view)| (field.name.clone(), view.to_value())).collect()
                }
                Some(structure) => {
                    let there = |field: &Field| Some((field.name.clone(), self.get_id(field.id)?.to_value()));
                    structure.fields.iter().filter_map(there).collect()
                }
            }),
        }
    }
}
