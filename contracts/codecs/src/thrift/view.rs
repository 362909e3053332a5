//! Reads values in place, without copying. Unread values are skipped.

use super::cursor::{Cursor, Protocol, WireType};
use super::schema::{Field, Schema, StructId, Type};
use super::walk::{skip, width};
use crate::value::Value;

/// A value in a message whose structure is checked. Reading a field or element walks over
/// everything before it; iterating walks once.
///
/// A field whose wire type differs from the schema's counts as absent. Of a repeated field, the
/// last one counts. Apache Thrift's libraries do the same.
#[derive(Debug, Clone, Copy)]
pub struct View<'m> {
    /// At the first byte of the value; the input continues after it.
    cursor: Cursor<'m>,
    wire: WireType,
    /// The value of a bool field, which the compact protocol stores in the field's header.
    bool: Option<bool>,
    is_ascending: bool,
    schema: Option<(&'m Schema, Kind<'m>)>,
}

/// A type, or the struct of a message.
#[derive(Debug, Clone, Copy)]
enum Kind<'m> {
    Type(&'m Type),
    Message(StructId),
}

fn fits(wire: WireType, ty: &Type) -> bool {
    wire == wire_type(ty)
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
    pub(super) fn of_struct(
        protocol: Protocol,
        bytes: &'m [u8],
        is_ascending: bool,
        schema: Option<(&'m Schema, StructId)>,
    ) -> View<'m> {
        let cursor = Cursor { bytes, at: 0, protocol };
        let schema = schema.map(|(schema, id)| (schema, Kind::Message(id)));
        View { cursor, wire: WireType::Struct, bool: None, is_ascending, schema }
    }

    /// Its type on the wire.
    pub fn wire_type(&self) -> WireType {
        self.wire
    }

    /// Its type in the schema. `None` for a message's struct and for unknown values.
    pub fn schema_type(&self) -> Option<&'m Type> {
        match self.schema {
            Some((_, Kind::Type(ty))) => Some(ty),
            _ => None,
        }
    }

    /// The ID of its struct in the schema.
    pub fn struct_id(&self) -> Option<StructId> {
        match self.schema {
            Some((_, Kind::Message(id)) | (_, Kind::Type(&Type::Struct(id)))) => Some(id),
            _ => None,
        }
    }

    /// Its value as a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self.bool {
            Some(value) => Some(value),
            None if self.wire == WireType::Bool => self.cursor.bool_here(),
            None => None,
        }
    }

    /// Its value as an integer of any width, or the number of an enum's member.
    pub fn as_i64(&self) -> Option<i64> {
        let mut cursor = self.cursor;
        match self.wire {
            WireType::Byte | WireType::I16 | WireType::I32 | WireType::I64 => cursor.integer(self.wire).ok(),
            _ => None,
        }
    }

    /// Its value as a double.
    pub fn as_f64(&self) -> Option<f64> {
        let mut cursor = self.cursor;
        (self.wire == WireType::Double).then(|| cursor.double().ok()).flatten()
    }

    /// The bytes of a string, binary or UUID.
    pub fn as_bytes(&self) -> Option<&'m [u8]> {
        let mut cursor = self.cursor;
        match self.wire {
            WireType::Bytes => cursor.string(usize::MAX).ok(),
            WireType::Uuid => cursor.take(16).ok(),
            _ => None,
        }
    }

    /// The text of a string, or of an unknown binary, if it is UTF-8.
    pub fn as_str(&self) -> Option<&'m str> {
        if self.wire != WireType::Bytes || matches!(self.schema_type(), Some(Type::Binary)) {
            return None;
        }
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The field of a struct with this name in the schema.
    pub fn get(&self, name: &str) -> Option<View<'m>> {
        let (schema, _) = self.schema?;
        self.get_id(schema.structure(self.struct_id()?).field(name)?.id)
    }

    /// The field of a struct with this number.
    pub fn get_id(&self, id: i16) -> Option<View<'m>> {
        let mut found = None;
        for field in self.raw_fields() {
            if field.0 == id {
                let typed = self.typed(field.0, field.1);
                // Ascending fields are unique, and no greater number comes before this one.
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

    /// The field with its type in the schema; `None` if the wire type differs.
    fn typed(&self, id: i16, raw: View<'m>) -> Option<View<'m>> {
        let Some((schema, structure)) = self.schema.map(|schema| schema.0).zip(self.struct_id()) else {
            return Some(raw);
        };
        match schema.structure(structure).field_by_id(id) {
            Some(field) if !fits(raw.wire, &field.ty) => None,
            Some(field) => Some(View { schema: Some((schema, Kind::Type(&field.ty))), ..raw }),
            None => Some(raw),
        }
    }

    /// The fields of a struct in message order, without mistyped ones. Empty for other values.
    pub fn fields(&self) -> impl Iterator<Item = (Option<&'m Field>, View<'m>)> + use<'m> {
        let view = *self;
        let structure = self.schema.map(|schema| schema.0).zip(self.struct_id());
        view.raw_fields().filter_map(move |(id, raw)| {
            let field = structure.and_then(|(schema, structure)| schema.structure(structure).field_by_id(id));
            view.typed(id, raw).map(|typed| (field, typed))
        })
    }

    /// The fields of a struct that the schema has, in message order; `None` for a mistyped one.
    pub fn known_fields(&self) -> impl Iterator<Item = (&'m Field, Option<View<'m>>)> + use<'m> {
        let view = *self;
        let structure = self.schema.map(|schema| schema.0).zip(self.struct_id());
        view.raw_fields().filter_map(move |(id, raw)| {
            let (schema, structure) = structure?;
            let field = schema.structure(structure).field_by_id(id)?;
            Some((field, view.typed(id, raw)))
        })
    }

    /// The fields of a struct with their numbers, in message order and without schema types.
    pub fn raw_fields(&self) -> impl Iterator<Item = (i16, View<'m>)> + use<'m> {
        let (mut cursor, is_ascending) = (self.cursor, self.is_ascending);
        let mut last = (self.wire == WireType::Struct).then_some(0);
        std::iter::from_fn(move || {
            let field = cursor.field(last?).ok().flatten();
            last = field.map(|field| field.id);
            let field = field?;
            let view = View { cursor, wire: field.wire, bool: field.bool, is_ascending, schema: None };
            if field.bool.is_none() && skip(&mut cursor, field.wire).is_err() {
                last = None;
            }
            Some((field.id, view))
        })
    }

    /// Number of elements of a list or set, or of pairs of a map; `None` for other values.
    pub fn count(&self) -> Option<usize> {
        let mut cursor = self.cursor;
        match self.wire {
            WireType::List | WireType::Set => cursor.list().ok().map(|header| header.1 as usize),
            WireType::Map => cursor.map().ok().map(|header| header.count as usize),
            _ => None,
        }
    }

    /// The schema's type of an element, if it matches the wire type.
    fn part(&self, wire: WireType, of: impl Fn(&'m Type) -> Option<&'m Type>) -> Option<(&'m Schema, Kind<'m>)> {
        let (schema, _) = self.schema?;
        let ty = of(self.schema_type()?)?;
        fits(wire, ty).then_some((schema, Kind::Type(ty)))
    }

    /// The elements of a list or set, in order; empty for other values.
    pub fn elements(&self) -> impl Iterator<Item = View<'m>> + use<'m> {
        let mut cursor = self.cursor;
        let header = match self.wire {
            WireType::List | WireType::Set => cursor.list().ok(),
            _ => None,
        };
        let (wire, mut left) = header.unwrap_or((WireType::Byte, 0));
        let schema = self.part(wire, |ty| match ty {
            Type::List(element) | Type::Set(element) => Some(element),
            _ => None,
        });
        let is_ascending = self.is_ascending;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let view = View { cursor, wire, bool: None, is_ascending, schema };
            skip(&mut cursor, wire).ok()?;
            Some(view)
        })
    }

    /// The element of a list or set at this index.
    pub fn element(&self, index: usize) -> Option<View<'m>> {
        let mut cursor = self.cursor;
        let header = match self.wire {
            WireType::List | WireType::Set => cursor.list().ok()?,
            _ => return None,
        };
        // Elements of fixed size need no walk.
        match width(cursor.protocol, header.0) {
            Some(width) if index < header.1 as usize => {
                cursor.take(width * index).ok()?;
                let first = self.elements().next()?;
                Some(View { cursor, ..first })
            }
            Some(_) => None,
            None => self.elements().nth(index),
        }
    }

    /// The pairs of a map, in order; empty for other values.
    pub fn pairs(&self) -> impl Iterator<Item = (View<'m>, View<'m>)> + use<'m> {
        let mut cursor = self.cursor;
        let header = (self.wire == WireType::Map).then(|| cursor.map().ok()).flatten();
        let mut left = header.map_or(0, |header| header.count);
        let (key, value) = header.and_then(|header| header.types).unwrap_or((WireType::Byte, WireType::Byte));
        let key_schema = self.part(key, |ty| if let Type::Map(key, _) = ty { Some(key) } else { None });
        let value_schema = self.part(value, |ty| if let Type::Map(_, value) = ty { Some(value) } else { None });
        let is_ascending = self.is_ascending;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let first = View { cursor, wire: key, bool: None, is_ascending, schema: key_schema };
            skip(&mut cursor, key).ok()?;
            let second = View { cursor, wire: value, bool: None, is_ascending, schema: value_schema };
            skip(&mut cursor, value).ok()?;
            Some((first, second))
        })
    }

    /// The value of the first key with this text.
    pub fn value_of(&self, key: &str) -> Option<View<'m>> {
        self.pairs().find(|pair| pair.0.as_bytes() == Some(key.as_bytes())).map(|pair| pair.1)
    }

    /// The bytes of the value; empty for a bool stored in its field's header.
    pub fn raw(&self) -> &'m [u8] {
        let mut cursor = self.cursor;
        if self.bool.is_some() || skip(&mut cursor, self.wire).is_err() {
            return &[];
        }
        &self.cursor.bytes[self.cursor.at..cursor.at]
    }

    /// A deep copy. Unknown fields are omitted; without a schema, numbers name the fields.
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
            WireType::Struct if self.struct_id().is_none() => {
                Value::Record(self.raw_fields().map(|(id, view)| (id.to_string(), view.to_value())).collect())
            }
            WireType::Struct if self.is_ascending => {
                let known = self.fields().filter_map(|(field, view)| Some((field?.name.clone(), view.to_value())));
                Value::Record(known.collect())
            }
            WireType::Struct => {
                let Some((schema, id)) = self.schema.map(|schema| schema.0).zip(self.struct_id()) else {
                    return Value::Null;
                };
                let there = |field: &Field| Some((field.name.clone(), self.get_id(field.id)?.to_value()));
                Value::Record(schema.structure(id).fields.iter().filter_map(there).collect())
            }
        }
    }
}

impl Cursor<'_> {
    fn bool_here(mut self) -> Option<bool> {
        self.bool().ok()
    }
}
